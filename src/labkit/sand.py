"""Carrying sand: latency and throughput without jargon.

One strong worker with a barrow against ten thousand children with small shovels. A Team has a start-up time and
makes trips; each trip carries up to workers × carry at once. The same two numbers, start-up time and rate, describe
any device: fit_team reads them from a measured sweep.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labkit.errors import InputError, check_positive
from labkit.measurement import Sweep

LEAST_S_PER_UNIT = 1e-18
DECADES = 20  # of e: how far the search for the start-up time goes beyond the values


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

    The line minimises the error in logarithms, so that every decade of the values counts alike, and twice too much as
    heavily as half. Raises InputError for fewer than three values.
    """
    values, times_s = sweep.values, sweep.medians_s
    if len(values) < 3:
        raise InputError(f"{len(values)} points", "fitting start-up time and throughput needs at least three values")
    start_s, seconds_per_unit = _fit_line_in_logarithms(values, times_s)
    return Team(name or sweep.legend, workers=1, carry=1.0, trip_s=seconds_per_unit, start_s=start_s)


def largest_miss(team: Team, sweep: Sweep) -> float:
    """Return the largest factor between a measured time of the sweep and the time that the team would take."""
    predicted_s = [team.start_s + value / team.throughput for value in sweep.values]
    ratios = [time_s / other_s for time_s, other_s in zip(sweep.medians_s, predicted_s, strict=True)]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def _fit_line_in_logarithms(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Return (intercept, slope) ≥ 0 of the line that minimises Σ ln²(line / y): twice as much counts as half as much.

    For a given ratio r = intercept / slope the line is slope · (r + x), and the best ln(slope) is the mean of
    ln(y / (r + x)); what is left is their variance. So only r is searched, from "no start-up time" to "nothing else".
    """

    def logs(r: float) -> list[float]:
        return [math.log(y / (r + x)) for x, y in zip(xs, ys, strict=True)]

    def error(log_r: float) -> float:
        return statistics.pvariance(logs(math.exp(log_r)))

    low, high = math.log(xs[0]) - DECADES, math.log(xs[-1]) + DECADES
    steps = [low + (high - low) * i / 200 for i in range(201)]
    nearest = min(range(1, 200), key=lambda i: error(steps[i]))
    r = math.exp(_minimum(error, steps[nearest - 1], steps[nearest + 1]))
    least = statistics.pvariance(logs(r))
    if statistics.pvariance(logs(0)) <= least:
        return 0.0, math.exp(statistics.fmean(logs(0)))
    if statistics.pvariance([math.log(y) for y in ys]) <= least:
        return statistics.geometric_mean(ys), LEAST_S_PER_UNIT
    slope = math.exp(statistics.fmean(logs(r)))
    return r * slope, slope


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one valley between low and high is least, by ternary search."""
    for _ in range(100):
        third = (high - low) / 3
        if function(low + third) < function(high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2
