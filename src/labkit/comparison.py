"""What measurements say about each other: ranking, speedup, crossover, and the laws that they follow.

Pure functions of measurements: nothing is timed here, and nothing is decided where the spreads do not allow it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from labkit.errors import InputError, check_count, check_positive, listed
from labkit.measurement import Measurement, Sweep
from labkit.units import format_ratio

T = TypeVar("T")

LONE_SAMPLE_SPREAD = 1.58  # seven medians of one torch.mm on a shared 2-core machine differed by up to 58 %


@dataclass(frozen=True)
class Speedup:
    """How many times faster one measurement is than another, with the range that their spreads allow."""

    ratio: float
    low: float
    high: float
    source: str

    @property
    def clear(self) -> bool:
        """Whether the range excludes "equally fast"."""
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        return f"{format_ratio(self.ratio)} ({format_ratio(self.low)} to {format_ratio(self.high)}, {self.source})"


@dataclass(frozen=True)
class Ranking:
    """Measurements from fastest to slowest, and the winner, or None where spreads overlap."""

    ordered: tuple[Measurement, ...]
    winner: Measurement | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Crossover:
    """The value from which on one sweep is faster than another: the best estimate and its range.

    value is None where the challenger never overtakes (never) or is ahead from the smallest value on (always). low is
    the earliest value that the spreads allow, or None if they allow none; high is the latest, or None if the challenger
    may never overtake. So low=None makes a "never" sure, and high at the smallest value an "always".
    """

    value: float | None
    low: float | None
    high: float | None
    always: bool
    never: bool
    source: str


@dataclass(frozen=True)
class PowerLaw:
    """y = scale · x ** exponent, fitted by least squares in logarithms."""

    exponent: float
    scale: float


@dataclass(frozen=True)
class Amdahl:
    """time(p) = single_s · (serial + (1 - serial) / p), fitted by least squares; Amdahl, AFIPS 1967."""

    serial: float
    single_s: float

    def time_s(self, threads: float) -> float:
        """Return the fitted time in seconds on that many threads (a fraction reads between two whole numbers)."""
        check_positive("threads", threads)
        return self.single_s * (self.serial + (1 - self.serial) / threads)

    @property
    def limit(self) -> float:
        """The speedup that no number of threads can exceed."""
        return math.inf if self.serial == 0 else 1 / self.serial


def interval_s(measurement: Measurement) -> tuple[float, float]:
    """Return the range in seconds in which the median is believed: the quartiles, widened by a drift.

    A machine that slows down while it is being timed shows a narrow middle half around a moving centre. So the
    quartiles are widened by the ratio of the medians of the last and the first third of the samples. A lone
    sample shows no spread at all and is given the one that repeated runs on a shared machine were seen to have.
    """
    low, high = measurement.quartiles_s
    if len(measurement.times_s) == 1 and measurement.source != "predicted":
        return low / LONE_SAMPLE_SPREAD, high * LONE_SAMPLE_SPREAD
    third = len(measurement.times_s) // 3
    if third < 2:
        return low, high
    first, last = measurement.times_s[:third], measurement.times_s[-third:]
    drift = statistics.median(last) / statistics.median(first)
    drift = max(drift, 1 / drift)
    return low / drift, high * drift


def speedup(baseline: Measurement, new: Measurement) -> Speedup:
    """Return how many times faster new is than baseline, from the medians, with its range.

    >>> from labkit.measurement import Task
    >>> slow = Measurement(task=Task(label="loop"), times_s=[2.0, 2.0, 2.0])
    >>> fast = Measurement(task=Task(label="sum"), times_s=[0.5, 0.5, 0.5])
    >>> speedup(slow, fast).ratio
    4.0
    """
    (baseline_low, baseline_high), (new_low, new_high) = (
        interval_s(_checked(Measurement, it)) for it in (baseline, new)
    )
    return Speedup(
        ratio=baseline.median_s / new.median_s,
        low=baseline_low / new_high,
        high=baseline_high / new_low,
        source=weakest_source(baseline, new),
    )


def rank(measurements: Sequence[Measurement]) -> Ranking:
    """Order measurements by their medians; name a winner only if its range overlaps with no other.

    Raises InputError if there is nothing to rank.
    """
    measurements = [_checked(Measurement, it) for it in listed("measurements", measurements)]
    if not measurements:
        raise InputError("measurements=[]", "there is nothing to rank", "Give at least one measurement.")
    ordered = tuple(sorted(measurements, key=lambda measurement: measurement.median_s))
    if ordered[0].implausible:
        return Ranking(ordered, None, f"No clear winner: the time of {ordered[0].task} is implausible.")
    if len(ordered) == 1:
        return Ranking(ordered, ordered[0], f"Only {ordered[0].task} was measured.")
    fastest, second = ordered[0], min(ordered[1:], key=lambda measurement: interval_s(measurement)[0])
    names = [str(m.task) if m.task != n.task else m.legend for m, n in ((fastest, second), (second, fastest))]
    if interval_s(fastest)[1] < interval_s(second)[0]:
        ratio = speedup(ordered[1], fastest)
        return Ranking(ordered, fastest, f"{names[0]} is fastest: {ratio} faster than the next.")
    sentence = f"No clear winner: the spreads of {names[0]} and {names[1]} overlap."
    return Ranking(ordered, None, sentence)


def crossover(incumbent: Sweep, challenger: Sweep) -> Crossover:
    """Return the value from which on challenger stays faster than incumbent, with the range the spreads allow.

    Times are interpolated in logarithms on the values that both ranges cover. Raises InputError if they share none.
    """
    values = _shared_values(incumbent, challenger)
    bounds = [([interval_s(m)[i] for m in sweep.measurements]) for sweep in (incumbent, challenger) for i in (0, 1)]
    slow_low, slow_high, fast_low, fast_high = bounds

    def lead(incumbent_s: Sequence[float], challenger_s: Sequence[float]) -> list[float]:
        """Return log(incumbent / challenger) at each value: above zero where the challenger is faster."""
        return [
            _interpolated(incumbent.values, incumbent_s, value) - _interpolated(challenger.values, challenger_s, value)
            for value in values
        ]

    best = _stays_positive_from(values, lead(incumbent.medians_s, challenger.medians_s))
    earliest = _stays_positive_from(values, lead(slow_high, fast_low))
    latest = _stays_positive_from(values, lead(slow_low, fast_high))
    always = best == values[0]
    return Crossover(
        value=None if always else best,
        low=earliest,
        high=latest,
        always=always,
        never=best is None,
        source=weakest_source(incumbent.measurements[0], challenger.measurements[0]),
    )


def shared_values(*sweeps: Sweep) -> tuple[float, ...]:
    """Return the values at which every sweep has a measurement, in rising order. Raises InputError if there is none.

    >>> from labkit.measurement import Point, Task
    >>> at = lambda *ns: [Point(value=n, measurement=Measurement(task=Task(label="a"), times_s=[1.0])) for n in ns]
    >>> one, other = (Sweep(label="a", parameter="n", points=at(*ns)) for ns in ((1, 2, 3), (2, 3, 4)))
    >>> shared_values(one, other)
    (2, 3)
    """
    found = [set(_checked(Sweep, sweep).values) for sweep in sweeps]
    shared = set.intersection(*found) if found else set()
    if not shared:
        given = " and ".join(f"{sweep.parameter}={sweep.values}" for sweep in sweeps) or "no sweeps"
        advice = "Let both run to their end, over the same values."
        raise InputError(given, "there is no value at which all were measured", advice)
    return tuple(sorted(shared))


def fit_power_law(xs: Sequence[float], ys: Sequence[float]) -> PowerLaw:
    """Fit y = scale · x ** exponent by least squares in logarithms.

    >>> fit_power_law([1, 2, 4], [3, 24, 192]).exponent
    3.0
    """
    xs = [check_positive("xs", x) for x in listed("xs", xs)]
    ys = [check_positive("ys", y) for y in listed("ys", ys)]
    if len(xs) != len(ys) or len(set(xs)) < 2:
        raise InputError(f"xs={xs}, ys={ys}", "a power law needs a y for each x, and at least two different x")
    fit = statistics.linear_regression([math.log(x) for x in xs], [math.log(y) for y in ys])
    return PowerLaw(exponent=round(fit.slope, 12), scale=math.exp(fit.intercept))


def fit_amdahl(threads: Sequence[int], times_s: Sequence[float]) -> Amdahl:
    """Fit Amdahl's law to the times in seconds on each number of threads: a line in 1/threads.

    Neither the serial nor the parallel part can take less than no time: a fit that would say so is made with that
    part left out.

    >>> fit_amdahl([1, 2, 4], [1.0, 0.6, 0.4]).serial
    0.2
    """
    threads = [check_count("threads", count) for count in listed("threads", threads)]
    times_s = [check_positive("times_s", time_s, unit="seconds") for time_s in listed("times_s", times_s)]
    if len(threads) != len(times_s) or len(set(threads)) < 2:
        given = f"threads={threads}, times_s={times_s}"
        raise InputError(given, "Amdahl's law needs a time for each thread count, and at least two thread counts")
    shares = [1 / count for count in threads]
    parallel_s, serial_s = statistics.linear_regression(shares, times_s)
    if serial_s < 0:
        parallel_s, serial_s = statistics.linear_regression(shares, times_s, proportional=True).slope, 0.0
    elif parallel_s < 0:
        parallel_s, serial_s = 0.0, statistics.fmean(times_s)
    single_s = serial_s + parallel_s
    return Amdahl(serial=round(serial_s / single_s, 12), single_s=single_s)


def weakest_source(*measurements: Measurement) -> str:
    """Return the source that a number computed from these measurements has: predicted beats recorded beats measured."""
    if not measurements:
        raise InputError("measurements=()", "without a measurement there is no source", "Give at least one.")
    sources = {_checked(Measurement, measurement).source for measurement in measurements}
    return next(source for source in ("predicted", "recorded", "measured") if source in sources)


def _checked(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise InputError(repr(value), f"this is not a {kind.__name__}")
    return value


def _shared_values(incumbent: Sweep, challenger: Sweep) -> list[float]:
    """Return every value of either sweep that lies in the range of both."""
    mine, theirs = _checked(Sweep, incumbent).values, _checked(Sweep, challenger).values
    if incumbent.parameter == challenger.parameter and mine and theirs:
        low, high = max(mine[0], theirs[0]), min(mine[-1], theirs[-1])
        if low <= high:
            return sorted(value for value in {*mine, *theirs} if low <= value <= high)
    given = f"{incumbent.parameter}={mine} and {challenger.parameter}={theirs}"
    raise InputError(given, "two sweeps can only cross where both measured the same range of the same parameter")


def _interpolated(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Return log(y) at x, linear in logarithms between the two nearest points."""
    for (x0, y0), (x1, y1) in zip(zip(xs, ys, strict=True), zip(xs[1:], ys[1:], strict=True), strict=False):
        if x0 <= x <= x1:
            share = math.log(x / x0) / math.log(x1 / x0)
            return math.log(y0) * (1 - share) + math.log(y1) * share
    return math.log(ys[0] if x <= xs[0] else ys[-1])


def _stays_positive_from(values: Sequence[float], lead: Sequence[float]) -> float | None:
    """Return the value from which on lead stays above zero, interpolated in log(value), or None."""
    if lead[-1] <= 0:
        return None
    last_behind = max((i for i, ahead in enumerate(lead) if ahead <= 0), default=None)
    if last_behind is None:
        return values[0]
    share = -lead[last_behind] / (lead[last_behind + 1] - lead[last_behind])
    return values[last_behind] * (values[last_behind + 1] / values[last_behind]) ** share
