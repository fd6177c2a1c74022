"""measure(), compare() and sustain(): the time of one call, with its spread."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
import statistics
import time
import timeit
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from labkit import devices
from labkit.devices.dtypes import dtype_name
from labkit.errors import InputError, check_count, check_number, check_positive, check_text
from labkit.measurement import Measurement, Task
from labkit.profiles import current_profile
from labkit.timing.clocks import Clock, Ticker, cache_flusher, check_result_device
from labkit.units import format_bytes_per_s, format_flop_per_s

if TYPE_CHECKING:
    from labkit.hardware import Gpu

STABLE_SPREAD = 0.05  # stop early once the middle half of the samples lies within 5 % of the median
FEWEST_SAMPLES = 5
MOST_SAMPLES = 1000
PATIENCE = 5  # times the budget: after that, even fewer samples must do
SHARE_OF_A_SAMPLE = 0.1  # of the time that a timing takes at least, unless reading the clock costs too much for that
CLOCK_SHARE = 1e-3  # the most of a sample that reading the clock may take
MOST_CALLS = 10**7  # in a sample: a clock that stands still must not keep us forever
FEWEST_SUSTAINED = 30
MOST_PROLONGED = 10  # times the duration: a run is not prolonged for samples beyond that


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
    min_samples: int = FEWEST_SAMPLES,
    clock: Clock = time.perf_counter,
) -> Measurement:
    """Time fn() on the device that the caller names, and return every sample in seconds per call.

    The first two calls are kept apart. Then as many calls make one sample as it takes for the clock not to matter, and
    samples are taken until their spread is small or the profile's time budget is spent. That is what
    torch.utils.benchmark's adaptive_autorange does, and the two agree; but its Timer runs on one thread unless told
    otherwise (here: torch's own choice, capped by the usable CPUs), reads only the host's clock (here also CUDA
    events), cannot empty caches between calls, and makes a sample last 10,000 clock reads: on a GPU, where each waits
    for the queue, the budget is then spent after one or two. So the samples are taken with timeit, as its own are.

    cold=True overwrites a buffer larger than the caches before every call. calls_per_sample=1 synchronises after
    every single call: the latency that a caller waits for. By default many calls share one synchronisation, so that
    on a GPU the host's time of a tiny operation is the cost of launching it. The loop itself costs a call about 0.1 µs.
    min_samples asks for that many samples even where the time budget is spent, as far as five times the budget allows.

    Raises DeviceError if the device is absent or the tensors that fn returns lie elsewhere, InputError for nonsense.

    >>> import torch
    >>> x = torch.ones(1000)
    >>> m = measure(lambda: x + x, device="cpu", label="add", min_time_s=0.001)
    >>> m.device, m.dtype, m.source, m.median_s > 0
    ('cpu', 'float32', 'measured', True)
    """
    if not callable(fn):
        raise InputError(f"fn={fn!r}", "measure calls a function", "Wrap the expression: measure(lambda: a @ b, …).")
    if dtype is not None and not isinstance(dtype, str):
        dtype = dtype_name(dtype)
    label = check_text("label", label, empty_ok=True) or "unnamed"
    parameters = {} if parameters is None else parameters
    task = Task(label=label, dtype=dtype, parameters=parameters, flop=flop, bytes_moved=bytes_moved)
    profile = current_profile()
    min_time_s = check_positive("min_time_s", profile.min_time_s if min_time_s is None else min_time_s, unit="seconds")
    calls = _given_calls(calls_per_sample, cold)
    min_samples = check_count("min_samples", min_samples)
    target = devices.pick(device)
    ticker = Ticker(target, clock)

    with devices.cpu_threads(threads) as threads:
        warm_up_s, found_dtype = _warm_up(fn, target, ticker)
        timer = timeit.Timer(fn, setup=cache_flusher(target) if cold else "pass", timer=ticker)
        calls = calls or _calls_per_sample(timer, SHARE_OF_A_SAMPLE * min_time_s)
        max_time_s = max(profile.max_time_s, 2 * min_time_s)
        times_s = _samples(timer, calls, clock, min_time_s, max_time_s, min_samples)

    measurement = Measurement(
        task=dataclasses.replace(task, dtype=dtype or found_dtype),
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

    fns maps a label to a function; options are those of measure. Returns one measurement each, in the order of fns. An
    interrupt keeps the rounds that were finished, once each function has had its turn.

    >>> import torch
    >>> x = torch.ones(100)
    >>> one, two = compare({"add": lambda: x + x, "multiply": lambda: x * x}, device="cpu", min_time_s=0.001)
    >>> one.task.label, two.task.label
    ('add', 'multiply')
    """
    if not isinstance(fns, Mapping) or not fns:
        raise InputError(f"fns={fns!r}", "compare needs a dictionary of at least one function", 'Try {"add": fn}.')
    rounds = check_count("rounds", rounds)
    min_time_s = options.pop("min_time_s", None)
    min_time_s = check_positive("min_time_s", current_profile().min_time_s if min_time_s is None else min_time_s)
    shuffle = random.Random(check_number("seed", seed))
    found: dict[str, list[Measurement]] = {label: [] for label in fns}
    try:
        for _ in range(rounds):
            for label in shuffle.sample(list(fns), len(fns)):
                share = measure(fns[label], device=device, label=label, min_time_s=min_time_s / rounds, **options)
                found[label].append(share)
    except KeyboardInterrupt:
        if not all(found.values()):
            raise
        finished = min(map(len, found.values()))
        found = {label: shares[:finished] for label, shares in found.items()}
        print(f"Interrupted: {finished} of {rounds} rounds were finished and are kept.")
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
    they did at first, the run is prolonged for FEWEST_SUSTAINED samples, tenfold at most. An interrupt keeps what was
    measured. options are those of measure, but for cold, which would be a pause; raises what measure raises.
    """
    duration_s = check_positive("duration_s", duration_s, unit="seconds")
    if options.get("cold"):
        raise InputError("cold=True", "emptying the caches is a pause, and a sustained run has none")
    sample_s = duration_s / 100
    short = measure(fn, device=device, label=label, clock=clock, min_time_s=sample_s, **options)
    calls = max(round(sample_s / short.median_s), 1)
    target = devices.pick(device)
    ticker = Ticker(target, clock)
    timer, times_s = timeit.Timer(fn, timer=ticker), []
    bar = tqdm(total=round(duration_s), unit="s", desc=label or "sustained run", disable=not progress, leave=False)
    with devices.cpu_threads(short.threads), bar:
        try:
            while _goes_on(len(times_s), sum(times_s) * calls, duration_s):
                times_s.append(_at_least_one_ns(timer.timeit(calls) / calls))
                bar.update(round(sum(times_s) * calls) - bar.n)
        except KeyboardInterrupt:
            if not times_s:
                raise
            print(f"Interrupted: {len(times_s)} samples were taken and are kept.")
    device_times_s = ticker.device_times_s(len(times_s), calls)
    found = dataclasses.replace(short, times_s=times_s, device_times_s=device_times_s, calls_per_sample=calls)
    return dataclasses.replace(found, implausible=_above_stated_peak(found, target))


def _goes_on(samples: int, spent_s: float, duration_s: float) -> bool:
    return spent_s < duration_s or (samples < FEWEST_SUSTAINED and spent_s < MOST_PROLONGED * duration_s)


def _warm_up(fn: Callable[[], Any], target: devices.Device, ticker: Ticker) -> tuple[tuple[float, float], str | None]:
    start_s = ticker()
    result = fn()
    first_s = ticker() - start_s
    dtype = check_result_device(result, target)
    del result
    second_s = timeit.timeit(fn, number=1, timer=ticker)
    return (_at_least_one_ns(first_s), _at_least_one_ns(second_s)), dtype


def _given_calls(calls_per_sample: int | None, cold: bool) -> int | None:
    """Return the calls of a sample if the caller decides them, else None."""
    if calls_per_sample is None:
        return 1 if cold else None
    calls = check_count("calls_per_sample", calls_per_sample)
    if cold and calls > 1:
        given = f"cold=True, calls_per_sample={calls}"
        raise InputError(given, "caches are cold for the first call of a sample only", "Leave one of the two out.")
    return calls


def _calls_per_sample(timer: timeit.Timer, sample_s: float) -> int:
    """Return how many calls last as long as a sample should, and long enough for the clock's own time not to matter."""
    clock_s = statistics.median(timer.timeit(0) for _ in range(5))
    sample_s = max(sample_s, clock_s / CLOCK_SHARE)
    calls = 1
    while calls < MOST_CALLS and (took_s := _at_least_one_ns(timer.timeit(calls))) < sample_s:
        wanted = math.ceil(calls * sample_s / took_s)
        calls = min(max(wanted, calls + 1), 10 * calls, MOST_CALLS)
    return calls


def _samples(
    timer: timeit.Timer, calls: int, clock: Clock, min_time_s: float, max_time_s: float, min_samples: int
) -> tuple[float, ...]:
    """Return samples in seconds per call; the budget counts all that passes, the emptying of caches included."""
    times_s: list[float] = []
    start_s = clock()
    while len(times_s) < max(MOST_SAMPLES, min_samples):
        times_s.append(_at_least_one_ns(timer.timeit(calls)) / calls)
        spent_s = clock() - start_s
        if len(times_s) < min_samples:
            enough = spent_s >= PATIENCE * max_time_s
        else:
            enough = spent_s >= max_time_s or (spent_s >= min_time_s and _stable(times_s))
        if enough:
            break
    return tuple(times_s)


def _stable(times_s: list[float]) -> bool:
    low, median, high = statistics.quantiles(times_s, n=4, method="inclusive")
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
    peak_flop_per_s = _stated_peak_flop_per_s(target.spec, measurement.dtype)
    if peak_flop_per_s and measurement.flop_per_s and measurement.flop_per_s > peak_flop_per_s:
        peak = format_flop_per_s(peak_flop_per_s)
        return f"{format_flop_per_s(measurement.flop_per_s)} is above the stated peak of {peak}: {causes}"
    bandwidth = target.spec.bandwidth_bytes_per_s
    if bandwidth and measurement.bytes_per_s and measurement.bytes_per_s > bandwidth:
        peak = format_bytes_per_s(bandwidth)
        return f"{format_bytes_per_s(measurement.bytes_per_s)} is above the stated peak of {peak}: {causes}"
    return ""


def _stated_peak_flop_per_s(spec: Gpu, dtype: str | None) -> float | None:
    """Return the most FLOP/s that work on tensors of dtype can reach, or None where nothing is stated for it.

    cuDNN computes float32 convolutions in TF32 unless told otherwise, so float32 may be as fast as that.
    """
    names = {None: tuple(spec.peak_flop_per_s), "float32": ("float32", "tf32")}.get(dtype, (dtype,))
    return max((spec.peak_flop_per_s[name] for name in names if name in spec.peak_flop_per_s), default=None)
