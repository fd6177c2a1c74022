"""Carrying sand: latency and throughput without jargon.

One strong worker with a barrow against ten thousand children with small shovels. A Team has a start-up time and
makes trips; each trip carries up to workers × carry at once. The same two numbers, start-up time and rate, describe
any device: fit_team reads them from a measured sweep.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labkit.errors import InputError, check_positive
from labkit.measurement import Sweep

LEAST_S_PER_UNIT = 1e-18


@dataclass(frozen=True)
class Team:
    """Workers who carry loads: workers × carry a trip, trip_s seconds a trip, start_s seconds before the first.

    >>> children = Team("children", workers=10_000, carry=0.5, trip_s=60, start_s=600)
    >>> children.time_s(12_000)
    780
    """

    name: str
    workers: int
    carry: float
    trip_s: float
    start_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("workers", "carry", "trip_s"):
            check_positive(name, getattr(self, name))
        check_positive("start_s", self.start_s, zero_ok=True)

    @property
    def load_per_trip(self) -> float:
        """What all workers carry in one trip."""
        return self.workers * self.carry

    @property
    def throughput(self) -> float:
        """Load per second once the work runs."""
        return self.load_per_trip / self.trip_s

    @property
    def latency_s(self) -> float:
        """Seconds until the first load arrives."""
        return self.start_s + self.trip_s

    def time_s(self, load: float) -> float:
        """Return the seconds until the whole load is delivered: the start, then whole trips."""
        check_positive("load", load)
        trips = math.ceil(round(load / self.load_per_trip, 9))  # 2.1 / 0.3 comes out a hair above 7
        return self.start_s + max(trips, 1) * self.trip_s


def overtakes_at(incumbent: Team, challenger: Team) -> float | None:
    """Return the load from which on challenger delivers sooner, trips taken as continuous; None if it never does.

    start + load / throughput is a line for each team; the load where they meet is returned, and 0 where the
    challenger is ahead from the start.
    """
    later_s = challenger.start_s - incumbent.start_s
    gain = 1 / incumbent.throughput - 1 / challenger.throughput  # seconds saved for each unit of load
    if gain <= 0:
        return 0.0 if gain == 0 and later_s < 0 else None
    return max(later_s / gain, 0.0)


def fit_team(sweep: Sweep, name: str = "") -> Team:
    """Return the team whose start-up time and throughput fit a sweep best: time = start + value / throughput.

    The line minimises the relative error, so that every decade of the values counts alike. Raises InputError for fewer
    than three values.
    """
    values, times_s = sweep.values, sweep.medians_s
    if len(values) < 3:
        raise InputError(f"{len(values)} points", "fitting start-up time and throughput needs at least three values")
    start_s, seconds_per_unit = _fit_line_in_relative_error(values, times_s)
    return Team(name or sweep.legend, workers=1, carry=1.0, trip_s=seconds_per_unit, start_s=start_s)


def _fit_line_in_relative_error(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Return (intercept, slope) ≥ 0 of the line that minimises the squared relative error: weights 1/y²."""
    weights = [1 / y**2 for y in ys]
    total = sum(weights)
    x_mean = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
    y_mean = sum(w * y for w, y in zip(weights, ys, strict=True)) / total
    covariance = sum(w * (x - x_mean) * (y - y_mean) for w, x, y in zip(weights, xs, ys, strict=True))
    variance = sum(w * (x - x_mean) ** 2 for w, x in zip(weights, xs, strict=True))
    slope = covariance / variance
    intercept = y_mean - slope * x_mean
    if intercept < 0:  # no negative start-up time: the best line through the origin
        ratios = [x / y for x, y in zip(xs, ys, strict=True)]
        return 0.0, sum(ratios) / sum(ratio**2 for ratio in ratios)
    if slope <= 0:  # the size does not matter: the best constant, and the least rate that a team can have
        return y_mean, LEAST_S_PER_UNIT
    return intercept, slope
