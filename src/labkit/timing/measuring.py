"""measure(), compare() and sustain(): the time of one call, with its spread."""

from __future__ import annotations

import dataclasses
import functools
import random
import statistics
import time
import timeit
from collections.abc import Callable, Mapping
from typing import Any

from tqdm.auto import tqdm

from labkit import devices
from labkit.errors import InputError, check_positive
from labkit.measurement import Measurement, Task
from labkit.profiles import current_profile
from labkit.timing.clocks import Clock, Ticker, cache_flusher, check_result_device
from labkit.units import format_bytes_per_s, format_flop_per_s

STABLE_SPREAD = 0.05  # stop early once the middle half of the samples lies within 5 % of the median
FEWEST_SAMPLES = 5
MOST_SAMPLES = 1000
FEWEST_SUSTAINED = 30


def measure(
    fn: Callable[[], Any],
    *,
    device: Any,
    label: str = "",
    dtype: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    flop: float | None = None,
    bytes_moved: float | None = None,
    min_time_s: float | None = None,
    threads: int | None = None,
    cold: bool = False,
    calls_per_sample: int | None = None,
    clock: Clock = time.perf_counter,
) -> Measurement:
    """Time fn() on the device that the caller names, and return every sample in seconds per call.

    The first two calls are kept apart. Then torch.utils.benchmark's adaptive_autorange chooses how many calls make
    one sample and takes samples until their spread is small or the profile's time budget is spent. What that Timer
    does not do is added here: it runs on one thread unless told otherwise (here: torch's own choice, capped by the
    usable CPUs), it reads only the host's clock (here also CUDA events), and it cannot empty caches between calls.

    cold=True overwrites a buffer larger than the caches before every call. calls_per_sample=1 synchronises after
    every single call: the latency that a caller waits for. By default many calls share one synchronisation, so that
    on a GPU the host's time of a tiny operation is the cost of launching it. The loop itself costs a call about 0.1 µs.

    Raises DeviceError if the device is absent or the tensors that fn returns lie elsewhere, InputError for nonsense.

    >>> import torch
    >>> x = torch.ones(1000)
    >>> m = measure(lambda: x + x, device="cpu", label="add", min_time_s=0.001)
    >>> m.device, m.dtype, m.source, m.median_s > 0
    ('cpu', 'float32', 'measured', True)
    """
    if not callable(fn):
        raise InputError(f"fn={fn!r}", "measure calls a function", "Wrap the expression: measure(lambda: a @ b, …).")
    if calls_per_sample is not None:
        check_positive("calls_per_sample", calls_per_sample)
    profile = current_profile()
    min_time_s = check_positive("min_time_s", profile.min_time_s if min_time_s is None else min_time_s, unit="seconds")
    target = devices.pick(device)
    threads = devices.default_threads() if threads is None else threads
    ticker = Ticker(target, clock)

    with devices.cpu_threads(threads):
        warm_up_s, found_dtype = _warm_up(fn, target, ticker)
        budget_s = (max(min_time_s, FEWEST_SAMPLES * warm_up_s[-1]), max(profile.max_time_s, 2 * min_time_s))
        if cold or calls_per_sample is not None:
            calls = 1 if cold else calls_per_sample
            prepare = cache_flusher(target) if cold else "pass"
            times_s = _fixed_samples(fn, prepare, calls, ticker, *budget_s)
        else:
            times_s, calls = _adaptive_samples(fn, threads, ticker, *budget_s)

    measurement = Measurement(
        task=Task(
            label=label or "unnamed",
            dtype=dtype or found_dtype,
            parameters=parameters or {},
            flop=flop,
            bytes_moved=bytes_moved,
        ),
        times_s=times_s,
        warm_up_s=warm_up_s,
        device_times_s=ticker.device_times_s(len(times_s), calls),
        calls_per_sample=calls,
        device=target.torch_name,
        device_name=target.name,
        machine=devices.machine().id,
        threads=threads,
        profile=profile.name,
        notes=_notes(target, cold),
    )
    return dataclasses.replace(measurement, implausible=_above_stated_peak(measurement, target))


def compare(
    fns: Mapping[str, Callable[[], Any]], *, device: Any, rounds: int = 3, seed: int = 0, **options: Any
) -> tuple[Measurement, ...]:
    """Measure several functions in shuffled rounds, so that a drift of the machine meets all of them alike.

    fns maps a label to a function; options are those of measure. Returns one measurement each, in the order of fns.

    >>> import torch
    >>> x = torch.ones(100)
    >>> one, two = compare({"add": lambda: x + x, "multiply": lambda: x * x}, device="cpu", min_time_s=0.001)
    >>> one.task.label, two.task.label
    ('add', 'multiply')
    """
    if not isinstance(fns, Mapping) or not fns:
        raise InputError(f"fns={fns!r}", "compare needs a dictionary of at least one function", 'Try {"add": fn}.')
    check_positive("rounds", rounds)
    min_time_s = options.pop("min_time_s", None) or current_profile().min_time_s
    shuffle = random.Random(seed)
    found: dict[str, list[Measurement]] = {label: [] for label in fns}
    for _ in range(rounds):
        for label in shuffle.sample(list(fns), len(fns)):
            share = measure(fns[label], device=device, label=label, min_time_s=min_time_s / rounds, **options)
            found[label].append(share)
    return tuple(functools.reduce(Measurement.merge, found[label]) for label in fns)


def sustain(
    fn: Callable[[], Any],
    *,
    device: Any,
    duration_s: float,
    label: str = "",
    progress: bool = True,
    clock: Clock = time.perf_counter,
    **options: Any,
) -> Measurement:
    """Run fn() without a pause for duration_s seconds and return all samples in order, to see a machine grow slower.

    A sample is as many calls as take about a hundredth of the run; on a busy machine, where calls take longer than
    they did at first, the run is prolonged until there are FEWEST_SUSTAINED samples. An interrupt keeps the samples so
    far. options are those of measure; raises what measure raises.
    """
    check_positive("duration_s", duration_s, unit="seconds")
    sample_s = duration_s / 100
    short = measure(fn, device=device, label=label, clock=clock, min_time_s=sample_s, **options)
    calls = max(round(sample_s / short.median_s), 1)
    ticker = Ticker(devices.pick(device), clock)
    timer, times_s = timeit.Timer(fn, timer=ticker), []
    bar = tqdm(total=round(duration_s), unit="s", desc=label or "sustained run", disable=not progress, leave=False)
    with devices.cpu_threads(short.threads), bar:
        try:
            while sum(times_s) * calls < duration_s or len(times_s) < FEWEST_SUSTAINED:
                times_s.append(_at_least_one_ns(timer.timeit(calls) / calls))
                bar.update(round(sum(times_s) * calls) - bar.n)
        except KeyboardInterrupt:
            if not times_s:
                raise
            print(f"Interrupted: {len(times_s)} samples were taken and are kept.")
    device_times_s = ticker.device_times_s(len(times_s), calls)
    return dataclasses.replace(short, times_s=times_s, device_times_s=device_times_s, calls_per_sample=calls)


def _warm_up(fn: Callable[[], Any], target: devices.Device, ticker: Ticker) -> tuple[tuple[float, float], str | None]:
    start_s = ticker()
    result = fn()
    first_s = ticker() - start_s
    dtype = check_result_device(result, target)
    del result
    second_s = timeit.timeit(fn, number=1, timer=ticker)
    return (_at_least_one_ns(first_s), _at_least_one_ns(second_s)), dtype


def _adaptive_samples(
    fn: Callable[[], Any], threads: int, ticker: Ticker, min_time_s: float, max_time_s: float
) -> tuple[tuple[float, ...], int]:
    from torch.utils.benchmark import Timer

    timer = Timer("fn()", globals={"fn": fn}, timer=ticker, num_threads=threads)
    found = timer.adaptive_autorange(STABLE_SPREAD, min_run_time=min_time_s, max_run_time=max(min_time_s, max_time_s))
    return tuple(found.times), found.number_per_run


def _fixed_samples(
    fn: Callable[[], Any],
    prepare: Callable[[], Any] | str,
    calls: int,
    ticker: Ticker,
    min_time_s: float,
    max_time_s: float,
) -> tuple[float, ...]:
    """Take samples of a fixed number of calls: torch's Timer would choose that number itself and warm up anew."""
    timer = timeit.Timer(fn, setup=prepare, timer=ticker)
    times_s: list[float] = []
    while len(times_s) < MOST_SAMPLES:
        times_s.append(_at_least_one_ns(timer.timeit(calls) / calls))
        spent_s = sum(times_s) * calls
        if len(times_s) >= FEWEST_SAMPLES and (spent_s >= max_time_s or (spent_s >= min_time_s and _stable(times_s))):
            break
    return tuple(times_s)


def _stable(times_s: list[float]) -> bool:
    low, median, high = statistics.quantiles(times_s, n=4)
    return (high - low) / median < STABLE_SPREAD


def _at_least_one_ns(time_s: float) -> float:
    return max(time_s, 1e-9)  # as torch's Timer does: no clock read is shorter, and zero would divide


def _notes(target: devices.Device, cold: bool) -> tuple[str, ...]:
    notes = ["caches emptied before every call"] if cold else []
    if fallback := devices.timing_note(target):
        notes.append(fallback)
    return tuple(notes)


def _above_stated_peak(measurement: Measurement, target: devices.Device) -> str:
    """Say which stated peak the throughput exceeds, or return "". A CPU has no stated peak: its peaks are measured."""
    if target.spec is None:
        return ""
    causes = "only the launch was timed, a synchronise is missing, or the data came from a cache"
    peak_flop_per_s = target.spec.peak_flop_per_s.get(measurement.dtype or "float32")
    if peak_flop_per_s and measurement.flop_per_s and measurement.flop_per_s > peak_flop_per_s:
        peak = format_flop_per_s(peak_flop_per_s)
        return f"{format_flop_per_s(measurement.flop_per_s)} is above the stated peak of {peak}: {causes}"
    bandwidth = target.spec.bandwidth_bytes_per_s
    if bandwidth and measurement.bytes_per_s and measurement.bytes_per_s > bandwidth:
        peak = format_bytes_per_s(bandwidth)
        return f"{format_bytes_per_s(measurement.bytes_per_s)} is above the stated peak of {peak}: {causes}"
    return ""
