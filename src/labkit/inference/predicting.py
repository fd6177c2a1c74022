"""The same queue on a clock of its own: what a load would do to a server whose times are known, without the wait."""

from __future__ import annotations

import random
from collections.abc import Callable

from labkit.errors import InputError, check_count, check_positive, check_seed
from labkit.inference.load_runs import LoadRun
from labkit.inference.queueing import poisson_arrivals
from labkit.inference.serving import GIVEN_UP, Server
from labkit.measurement import Measurement, Sweep

Service = float | Measurement | Sweep


def predict_load(
    service: Service,
    *,
    rate_per_s: float,
    duration_s: float,
    seed: int = 0,
    most_in_batch: int = 1,
    label: str = "inference",
) -> LoadRun:
    """Return what under_load would find for a server whose times are known: predicted, within milliseconds.

    service is the seconds of every call; or a measurement, whose samples are drawn at random; or a sweep over "batch",
    whose medians are joined by straight lines, so that a batch of any size up to its largest has a time. The arrivals
    are those that under_load draws from the same seed. Raises InputError for nonsense.

    >>> run = predict_load(0.010, rate_per_s=50, duration_s=100)
    >>> run.source, round(run.load, 2), run.keeps_up
    ('predicted', 0.49, True)
    """
    check_count("most_in_batch", most_in_batch)
    arrivals_s = poisson_arrivals(rate_per_s, duration_s, seed=seed)
    time_of = _time_of(service, most_in_batch, random.Random(check_seed(seed)))
    clock = _OwnClock()
    server = Server(lambda count: clock.pass_by(time_of(count)), arrivals_s, most_in_batch, clock.read, clock.pass_by)
    while server.goes_on(GIVEN_UP * duration_s):
        server.step()
    return LoadRun(
        label=label,
        rate_per_s=rate_per_s,
        duration_s=duration_s,
        requests=tuple(server.requests),
        unanswered=server.left(duration_s),
        most_in_batch=most_in_batch,
        source="predicted",
        **_named(service),
    )


def _named(service: Service) -> dict[str, object]:
    """Return what the service times say about the device that they are from."""
    known = service.measurements[0] if isinstance(service, Sweep) else service
    if not isinstance(known, Measurement):
        return {"device": "a server of known times"}
    return {name: getattr(known, name) for name in ("device", "device_name", "machine", "threads")}


def _time_of(service: Service, most_in_batch: int, draw: random.Random) -> Callable[[int], float]:
    """Return the function that gives the seconds of a call that answers so many requests."""
    if isinstance(service, Sweep):
        return _between_batches(service, most_in_batch)
    if not isinstance(service, Measurement):
        service_s = check_positive("service", service, unit="seconds")
        return lambda count: service_s
    if most_in_batch > 1:
        advice = "Give a sweep over batch: throughput(model, example, [1, 8, 64])."
        raise InputError(f"most_in_batch={most_in_batch}", "one measurement knows one batch size only", advice)
    times_s = (service.median_s,) if service.source == "predicted" else service.times_s
    return lambda count: draw.choice(times_s)


def _between_batches(found: Sweep, most_in_batch: int) -> Callable[[int], float]:
    import numpy as np

    values = found.values
    if found.parameter != "batch" or not values or values[0] > 1 or values[-1] < most_in_batch:
        given = f"a sweep over {found.parameter}={values} for most_in_batch={most_in_batch}"
        raise InputError(given, "its times must reach from batch 1 to the largest batch", "Measure these two as well.")
    return lambda count: float(np.interp(count, values, found.medians_s))


class _OwnClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def read(self) -> float:
        return self.now_s

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds
