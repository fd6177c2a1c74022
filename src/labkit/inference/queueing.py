"""What theory says about a queue before one is run: one server, requests that arrive at random."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable
from numbers import Real

from labkit.errors import InputError, check_positive, check_seed, listed

MOST_REQUESTS = 1_000_000


def poisson_arrivals(rate_per_s: float, duration_s: float, *, seed: int = 0) -> tuple[float, ...]:
    """Return the seconds at which requests arrive at random: independent of each other, rate_per_s of them on average.

    The gaps of such a Poisson process are exponentially distributed. Raises InputError for more than a million.

    >>> arrivals_s = poisson_arrivals(100, 10, seed=1)
    >>> 900 < len(arrivals_s) < 1100, arrivals_s[-1] < 10
    (True, True)
    """
    check_positive("rate_per_s", rate_per_s)
    check_positive("duration_s", duration_s, unit="seconds")
    if rate_per_s * duration_s > MOST_REQUESTS:
        given = f"rate_per_s={rate_per_s!r}, duration_s={duration_s!r}"
        raise InputError(given, f"these are more than {MOST_REQUESTS:,} requests", "Choose a shorter run.")
    gaps, arrivals_s, at_s = random.Random(check_seed(seed)), [], 0.0
    while (at_s := at_s + gaps.expovariate(rate_per_s)) < duration_s:
        arrivals_s.append(at_s)
    return tuple(arrivals_s)


def offered_load(rate_per_s: float, service_s: float | Iterable[float]) -> float:
    """Return the load: requests per second times the mean seconds of an answer. From 1 on the queue grows for ever.

    >>> offered_load(50, 0.010)
    0.5
    """
    return check_positive("rate_per_s", rate_per_s, zero_ok=True) * statistics.fmean(_times(service_s))


def mean_wait_s(rate_per_s: float, service_s: float | Iterable[float]) -> float:
    """Return the mean seconds that a request waits before it is served, by the formula of Pollaczek and Khinchine.

    rate · E[S²] / (2 · (1 - rate · E[S])): Kleinrock, Queueing Systems I, 1975, section 5.6. service_s is the time of
    an answer, or a list of observed ones; one number gives the wait of the queue M/D/1. From load 1 on it is infinite.

    >>> mean_wait_s(50, 0.010)  # load 0.5: half of a service time
    0.005
    >>> mean_wait_s(90, 0.010), mean_wait_s(100, 0.010)
    (0.045..., inf)
    """
    times_s = _times(service_s)
    load = offered_load(rate_per_s, times_s)
    if load >= 1:
        return math.inf
    return rate_per_s * statistics.fmean(time_s**2 for time_s in times_s) / (2 * (1 - load))


def _times(service_s: float | Iterable[float]) -> list[float]:
    given = [service_s] if isinstance(service_s, Real) else listed("service_s", service_s)
    times_s = [check_positive("service_s", time_s, unit="seconds") for time_s in given]
    if not times_s:
        raise InputError("service_s=[]", "a queue needs at least one time of an answer")
    return times_s
