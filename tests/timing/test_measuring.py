import math
import random

import numpy as np
import pytest
import torch
from scripted import ScriptedClock, ScriptedGpu, TensorOn
from torch.utils.benchmark import Timer

from labkit import devices
from labkit.errors import DeviceError, InputError
from labkit.hardware import gpu as catalogue_gpu
from labkit.hardware import gpus
from labkit.measurement import Measurement
from labkit.profiles import PROFILES
from labkit.timing import clocks, measure, measuring

QUICK, NORMAL = PROFILES["quick"], PROFILES["normal"]


@pytest.fixture(autouse=True)
def profile(monkeypatch):
    monkeypatch.setenv("LABKIT_PROFILE", "quick")


@pytest.fixture
def clock():
    return ScriptedClock()


def on_cpu(fn, clock, **options):
    return measure(fn, device="cpu", clock=clock, **options)


# --- a queue (a GPU) ---------------------------------------------------------------------------------------------


# C02-01
@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.parametrize("calls_per_sample", [None, 1, 3])
def test_a_job_of_20_ms_behind_a_queue_takes_20_ms(monkeypatch, clock, kind, calls_per_sample):
    gpu = ScriptedGpu(clock)
    device = gpu.install(monkeypatch, kind)
    found = measure(gpu.job(0.020), device=device, clock=clock, calls_per_sample=calls_per_sample)
    assert found.median_s == pytest.approx(0.020, rel=0.10)
    assert min(found.times_s) > 0.018
    assert found.device == device.torch_name
    assert found.device_name == "Scripted GPU"


# C02-01
def test_without_a_synchronise_the_same_job_would_look_2000_times_faster(monkeypatch, clock):
    gpu = ScriptedGpu(clock)
    device = gpu.install(monkeypatch)
    monkeypatch.setattr(devices, "synchronizer", lambda _: lambda: None)
    monkeypatch.setattr(clocks.Ticker, "device_times_s", lambda *_: ())
    assert measure(gpu.job(0.020), device=device, clock=clock).median_s < 0.00002


def test_times_grow_with_the_job(monkeypatch, clock):
    gpu = ScriptedGpu(clock)
    device = gpu.install(monkeypatch)
    times_s = [measure(gpu.job(job_s), device=device, clock=clock).median_s for job_s in (0.001, 0.002, 0.004)]
    assert times_s == pytest.approx([0.001, 0.002, 0.004], rel=0.02)


def test_both_clocks_of_a_gpu_are_read_for_every_sample(monkeypatch, clock):
    # Jobs of 1, 2, 3 … ms after two warm-up calls: any pair of events but the right one gives another number.
    gpu = ScriptedGpu(clock, launch_s=10e-6, sync_s=5e-6)
    device = gpu.install(monkeypatch)
    jobs_s = [0.001 * i for i in range(1, 100)]
    found = measure(gpu.job(0.1, first=[0.5, 0.25, *jobs_s]), device=device, clock=clock, calls_per_sample=1)
    n = len(found.times_s)
    assert n >= 5
    assert found.device_times_s == pytest.approx([job_s + 10e-6 for job_s in jobs_s[:n]], rel=1e-9)
    assert found.times_s == pytest.approx([job_s + 10e-6 + 5e-6 for job_s in jobs_s[:n]], rel=1e-9)
    assert found.warm_up_s == pytest.approx([0.5 + 15e-6, 0.25 + 15e-6])


def test_device_times_are_per_call(monkeypatch, clock):
    gpu = ScriptedGpu(clock, launch_s=0.0)
    device = gpu.install(monkeypatch)
    found = measure(gpu.job(0.002), device=device, clock=clock, calls_per_sample=7)
    assert found.device_times_s == pytest.approx([0.002] * len(found.times_s))
    assert found.calls_per_sample == 7


def test_a_tiny_job_costs_the_host_its_launch(monkeypatch, clock):
    gpu = ScriptedGpu(clock, launch_s=8e-6, sync_s=20e-6)
    device = gpu.install(monkeypatch)
    found = measure(gpu.job(1e-6), device=device, clock=clock)
    assert found.median_s == pytest.approx(8e-6, rel=0.01)
    alone = measure(gpu.job(1e-6), device=device, clock=clock, calls_per_sample=1)
    assert alone.median_s == pytest.approx(8e-6 + 1e-6 + 20e-6, rel=0.01)  # launch, job, and the wait for it


def test_the_host_s_time_does_not_contain_the_making_of_an_event_before_the_work(monkeypatch, clock):
    gpu = ScriptedGpu(clock, launch_s=8e-6, event_s=30e-6)
    device = gpu.install(monkeypatch)
    found = measure(gpu.job(100e-6), device=device, clock=clock, calls_per_sample=1)
    assert found.median_s == pytest.approx(108e-6)
    assert found.device_median_s == pytest.approx(108e-6)


# C02-01
def test_the_queue_is_drained_before_the_start_and_before_the_stop(monkeypatch, clock):
    gpu = ScriptedGpu(clock)
    device = gpu.install(monkeypatch)
    found = measure(gpu.job(0.020), device=device, clock=clock, calls_per_sample=2)
    order = gpu.calls[-6 * len(found.times_s) :]
    assert order == ["synchronize", "event", "launch", "launch", "event", "synchronize"] * len(found.times_s)


def test_an_expensive_clock_leaves_enough_samples_inside_the_budget(monkeypatch, clock):
    # Waiting for a queue costs a reading of the clock 20 µs; a sample of 10,000 of them would be all of the budget.
    gpu = ScriptedGpu(clock, launch_s=8e-6, sync_s=20e-6)
    device = gpu.install(monkeypatch)
    found = measure(gpu.job(1e-6), device=device, clock=clock)
    assert len(found.times_s) >= 5
    assert clock.now_s < 2 * QUICK.max_time_s


# C02-05
@pytest.mark.parametrize("kind", ["cpu", "cuda", "mps"])
def test_the_device_decides_what_is_waited_for(monkeypatch, clock, kind):
    waited = []
    for module in (torch.cuda, torch.mps):
        monkeypatch.setattr(module, "synchronize", lambda *_, name=module.__name__: waited.append(name))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    gpu = ScriptedGpu(clock)
    monkeypatch.setattr(torch.cuda, "Event", gpu.event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: f"stream of {index}")
    measure(clock.job(0.01), device=devices.Device(kind, 0, "any"), clock=clock)
    assert set(waited) == ({f"torch.{kind}"} if kind != "cpu" else set())


def test_on_a_cpu_nothing_is_waited_for_and_there_is_one_clock(clock):
    assert on_cpu(clock.job(0.01), clock).device_times_s == ()


# --- the first calls ---------------------------------------------------------------------------------------------


# C02-03
def test_a_slow_first_call_stands_apart(clock):
    found = on_cpu(clock.job(0.0037, first=[0.3, 0.01]), clock)
    assert found.warm_up_s == pytest.approx((0.3, 0.01))
    assert found.first_s == pytest.approx(0.3)
    assert found.times_s == pytest.approx([0.0037] * len(found.times_s))


# C02-03
def test_a_slow_first_launch_on_a_gpu_stands_apart(monkeypatch, clock):
    gpu = ScriptedGpu(clock)
    device = gpu.install(monkeypatch)
    found = measure(gpu.job(0.020, first=[0.3]), device=device, clock=clock)
    assert found.first_s == pytest.approx(0.3, rel=0.01)
    assert max(found.times_s) == pytest.approx(0.020, rel=0.01)


def test_a_slow_second_call_does_not_stretch_the_budget(clock):
    found = on_cpu(clock.job(0.001, first=[5.0, 2.0]), clock)
    assert clock.now_s - 7.0 < 2 * QUICK.max_time_s
    assert found.median_s == pytest.approx(0.001)


# --- samples and budget ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_s", [0, 0.3e-6, 20e-6])
@pytest.mark.parametrize("call_s", [2e-6, 37e-6, 0.9e-3, 4e-3, 0.029])
def test_enough_samples_inside_the_budget(call_s, read_s):
    clock = ScriptedClock(read_s)
    found = on_cpu(clock.job(call_s), clock)
    assert len(found.times_s) >= 5
    assert found.median_s == pytest.approx(call_s, rel=0.002 if call_s < 1e-3 else 0.03)
    assert sum(found.times_s) * found.calls_per_sample >= QUICK.min_time_s
    assert clock.now_s <= 3 * QUICK.max_time_s


@pytest.mark.parametrize("name", list(PROFILES))
def test_the_profile_sets_the_budget(monkeypatch, clock, name):
    monkeypatch.setenv("LABKIT_PROFILE", name)
    found = on_cpu(clock.job(0.001), clock)
    assert PROFILES[name].min_time_s <= sum(found.times_s) * found.calls_per_sample <= PROFILES[name].max_time_s
    assert found.profile == name


def test_the_caller_may_set_the_budget(clock):
    found = on_cpu(clock.job(0.001), clock, min_time_s=3.0)
    assert 3.0 <= sum(found.times_s) * found.calls_per_sample <= 3.4


def test_noise_is_measured_for_longer_than_calm_but_not_for_ever(clock):
    draw = random.Random(1)
    calm = on_cpu(clock.job(0.001), clock)
    calm_s = clock.now_s
    noisy = on_cpu(clock.job(1, first=(draw.choice([0.001, 0.003]) for _ in range(10**6))), clock, calls_per_sample=1)
    noisy_s = clock.now_s - calm_s
    assert calm_s < 2 * QUICK.min_time_s + 0.01
    assert QUICK.max_time_s <= noisy_s < QUICK.max_time_s + 0.02
    assert len(noisy.times_s) > len(calm.times_s)
    assert "NOISY" in repr(noisy)
    assert "NOISY" not in repr(calm)


# C02-07
def test_the_spread_comes_from_several_samples(clock):
    durations = iter([0.1, 0.1] + [0.001, 0.002, 0.003] * 1000)
    found = on_cpu(lambda: clock.work(next(durations)), clock, calls_per_sample=1)
    assert len(found.times_s) >= 5
    assert found.iqr_s == pytest.approx(0.002, rel=0.1)


@pytest.mark.parametrize(("call_s", "fewest"), [(0.1, 5), (0.2, 3), (10.0, 1)])
def test_a_slow_function_is_given_up_with_fewer_samples_and_says_so(clock, call_s, fewest):
    found = on_cpu(clock.job(call_s), clock)
    assert len(found.times_s) >= fewest
    assert clock.now_s <= 3.1 * call_s + max(call_s, 5 * QUICK.max_time_s + call_s)
    assert found.median_s == pytest.approx(call_s)
    if len(found.times_s) < 4:
        assert f"only {len(found.times_s)} sample" in repr(found)


def test_a_fixed_number_of_calls_makes_each_sample(clock):
    calls = []
    found = on_cpu(lambda: (calls.append(1), clock.work(0.002))[0], clock, calls_per_sample=4)
    assert len(calls) == 2 + 4 * len(found.times_s)
    assert found.calls_per_sample == 4
    assert found.times_s == pytest.approx([0.002] * len(found.times_s))


def test_samples_are_not_collected_without_end(clock):
    assert len(on_cpu(clock.job(1e-7), clock, calls_per_sample=1).times_s) == 1000


def test_a_clock_too_coarse_for_one_call_counts_many():
    seen = ScriptedClock()
    coarse = lambda: math.floor(seen.now_s * 1000) / 1000  # noqa: E731 - a clock that ticks once a millisecond
    found = measure(seen.job(37e-6), device="cpu", clock=coarse, min_time_s=0.2)
    assert found.median_s == pytest.approx(37e-6, rel=0.1)


def test_a_clock_that_stands_still_does_not_hang(monkeypatch):
    monkeypatch.setattr(measuring, "MOST_CALLS", 1000)
    monkeypatch.setattr(measuring, "MOST_SAMPLES", 10)
    found = measure(lambda: None, device="cpu", clock=lambda: 0.0)
    assert 0 < found.median_s < 1e-6


@pytest.mark.parametrize("call_s", [3e-6, 250e-6, 0.012])
def test_torch_utils_benchmark_finds_the_same(call_s):
    # Two programs, the same scripted work with 20 % of noise, a clock that costs 0.2 µs to read.
    def noisy(clock):
        draw = random.Random(7)
        return lambda: clock.work(call_s * draw.uniform(0.8, 1.2))

    ours_clock, theirs_clock = ScriptedClock(0.2e-6), ScriptedClock(0.2e-6)
    ours = measure(noisy(ours_clock), device="cpu", clock=ours_clock, min_time_s=0.2)
    timer = Timer("fn()", globals={"fn": noisy(theirs_clock)}, timer=theirs_clock)
    theirs = timer.adaptive_autorange(0.05, min_run_time=0.2)
    assert ours.median_s == pytest.approx(theirs.median, rel=0.03)


# --- caches ------------------------------------------------------------------------------------------------------


def test_cold_empties_the_caches_before_every_call_and_counts_only_the_call(monkeypatch, clock):
    log = []
    flush = clock.job(0.050)
    monkeypatch.setattr(measuring, "cache_flusher", lambda device: lambda: (log.append("flush"), flush()))
    found = on_cpu(lambda: (log.append("call"), clock.work(10e-6))[0], clock, cold=True)
    n = len(found.times_s)
    assert found.calls_per_sample == 1
    assert log[-2 * n :] == ["flush", "call"] * n
    assert found.times_s == pytest.approx([10e-6] * n)
    assert "caches emptied before every call" in repr(found)


def test_emptying_the_caches_counts_for_the_budget(monkeypatch, clock):
    flush = clock.job(0.050)
    monkeypatch.setattr(measuring, "cache_flusher", lambda device: flush)
    found = on_cpu(clock.job(10e-6), clock, cold=True)
    assert len(found.times_s) >= 5
    assert clock.now_s < 2 * max(QUICK.max_time_s, 5 * 0.050)


def test_warm_is_the_default(monkeypatch, clock):
    monkeypatch.setattr(measuring, "cache_flusher", lambda device: pytest.fail("the caches were emptied"))
    assert on_cpu(clock.job(0.001), clock).notes == ()


def test_the_flusher_overwrites_more_than_any_cache_holds(monkeypatch):
    assert max(gpu.l2_bytes for gpu in gpus() if gpu.l2_bytes) < clocks.CACHE_BYTES
    monkeypatch.setattr(clocks, "CACHE_BYTES", 4096)
    buffer = clocks.cache_flusher(devices.pick("cpu"))()
    assert buffer.numel() * buffer.element_size() == 4096
    assert buffer.device.type == "cpu"


# --- threads -----------------------------------------------------------------------------------------------------


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


# C02-07
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_as_asked_while_fn_runs_and_as_before_afterwards(three_threads, clock, threads):
    seen = set()
    found = on_cpu(lambda: (seen.add(torch.get_num_threads()), clock.work(0.01))[1], clock, threads=threads)
    assert seen == {threads}
    assert found.threads == threads
    assert f"{threads} thread" in found.legend
    assert torch.get_num_threads() == 3


# C02-07
@pytest.mark.parametrize(("usable", "expected"), [(1, 1), (2, 2), (8, 3)])
def test_by_default_torch_chooses_and_the_usable_cpus_are_the_limit(
    monkeypatch, three_threads, clock, usable, expected
):
    monkeypatch.setattr("labkit.devices.cpus.usable_cpus", lambda *_: usable)
    seen = set()
    found = on_cpu(lambda: (seen.add(torch.get_num_threads()), clock.work(0.01))[1], clock)
    assert seen == {found.threads} == {expected}
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("at_call", [1, 2, 3, 6])
def test_threads_are_restored_after_any_end(three_threads, clock, error, at_call):
    calls = []

    def fn():
        calls.append(1)
        clock.work(0.01)
        if len(calls) == at_call:
            raise error

    with pytest.raises(error):
        on_cpu(fn, clock, threads=1)
    assert torch.get_num_threads() == 3


# --- the device that did the work --------------------------------------------------------------------------------


def nested(tensor):
    return {"loss": 1.0, "layers": [None, (torch.ones(1), {"deep": [tensor]})]}


@pytest.mark.parametrize("wrap", [lambda tensor: tensor, lambda tensor: (None, [tensor]), nested])
@pytest.mark.parametrize("lies_on", ["cuda:0", "mps:0", "meta"])
def test_work_of_another_device_is_refused(three_threads, clock, wrap, lies_on):
    with pytest.raises(DeviceError) as caught:
        on_cpu(clock.job(0.01, result=wrap(TensorOn(lies_on))), clock, threads=1)
    assert "device='cpu'" in str(caught.value)
    assert lies_on in str(caught.value)
    assert caught.value.advice
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("lies_on", ["cpu", "cuda:1", "mps:0"])
def test_the_cpu_s_work_is_not_counted_for_a_gpu_nor_one_gpu_s_for_another(monkeypatch, clock, lies_on):
    device = ScriptedGpu(clock).install(monkeypatch)
    with pytest.raises(DeviceError, match=f"'cuda:0'.*'{lies_on}'"):
        measure(clock.job(0.01, result=TensorOn(lies_on)), device=device, clock=clock)


def test_work_of_the_right_gpu_is_accepted_and_its_dtype_found(monkeypatch, clock):
    device = ScriptedGpu(clock).install(monkeypatch)
    result = [TensorOn("cuda:0", torch.float16), TensorOn("cuda:0", torch.float32)]
    assert measure(clock.job(0.01, result=result), device=device, clock=clock).dtype == "float16"


@pytest.mark.parametrize("result", [None, 3.0, "text", [1, 2], np.ones(3)])
def test_what_is_no_tensor_says_nothing_about_the_device(clock, result):
    assert on_cpu(clock.job(0.01, result=result), clock).dtype is None


@pytest.mark.parametrize(
    ("dtype", "expected"), [(None, "float64"), ("tf32", "tf32"), (torch.int8, "int8"), (np.float32, "float32")]
)
def test_the_dtype_is_found_unless_given(clock, dtype, expected):
    assert on_cpu(clock.job(0.01, result=torch.ones(1, dtype=torch.float64)), clock, dtype=dtype).dtype == expected


def test_a_device_that_is_not_here_is_refused_before_anything_runs(clock):
    for device in ("cuda:99", "tpu", "", None, 3):
        with pytest.raises(DeviceError) as caught:
            measure(lambda: pytest.fail("it ran"), device=device, clock=clock)
        assert str(device) in str(caught.value)


# --- what is impossible ------------------------------------------------------------------------------------------


def measured_on(monkeypatch, key, call_s, **work):
    clock = ScriptedClock()
    device = ScriptedGpu(clock).install(monkeypatch, spec=catalogue_gpu(key) if key else None)
    return measure(clock.job(call_s), device=device, clock=clock, **work)


@pytest.mark.parametrize(
    ("key", "dtype", "peak"),
    [
        # The makers' datasheets: T4 8.1 and 65 TFLOP/s; A100 312 and, in TF32, 156 TFLOP/s.
        ("T4", "float32", 8.1e12),
        ("T4", "float16", 65e12),
        ("A100", "float16", 312e12),
        # A convolution of float32 runs in TF32 unless told otherwise: 19.5 TFLOP/s are no limit for it.
        ("A100", "float32", 156e12),
    ],
)
def test_a_throughput_above_the_stated_peak_is_flagged_and_no_speed(monkeypatch, key, dtype, peak):
    above = measured_on(monkeypatch, key, 1e-3, flop=1.05 * peak * 1e-3, dtype=dtype)
    assert "IMPLAUSIBLE" in repr(above)
    assert "stated peak" in above.implausible and "synchronise" in above.implausible
    assert above.flop_per_s is None
    below = measured_on(monkeypatch, key, 1e-3, flop=0.95 * peak * 1e-3, dtype=dtype)
    assert below.implausible == ""
    assert below.flop_per_s == pytest.approx(0.95 * peak)


def test_a_bandwidth_above_the_stated_one_is_flagged_and_no_speed(monkeypatch):
    # T4: 320 GB/s.
    above = measured_on(monkeypatch, "T4", 1e-3, bytes_moved=350e6)
    assert above.bytes_per_s is None
    assert "350 GB/s" in above.implausible and "320 GB/s" in above.implausible and "cache" in above.implausible
    assert measured_on(monkeypatch, "T4", 1e-3, bytes_moved=300e6).bytes_per_s == pytest.approx(300e9)


def test_where_no_peak_is_stated_nothing_is_flagged(monkeypatch, clock):
    assert measured_on(monkeypatch, None, 1e-3, flop=1e30, bytes_moved=1e30).implausible == ""
    assert on_cpu(clock.job(1e-3), clock, flop=1e30, bytes_moved=1e30).implausible == ""
    assert measured_on(monkeypatch, "T4", 1e-3).implausible == ""
    assert measured_on(monkeypatch, "T4", 1e-3, flop=1e30, dtype="float8_e5m2").implausible == ""


# C03-05
def test_a_fallback_to_the_cpu_is_marked(monkeypatch, clock):
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    gpu = ScriptedGpu(clock)
    assert "CPU fallback" in repr(measure(gpu.job(0.01), device=gpu.install(monkeypatch, "mps"), clock=clock))
    assert "CPU fallback" not in repr(on_cpu(clock.job(0.01), ScriptedClock(1e-3)))


# --- what is kept ------------------------------------------------------------------------------------------------


def test_everything_that_was_said_is_kept(clock, tmp_path):
    found = on_cpu(clock.job(0.001), clock, label="mm", dtype="int8", parameters={"n": 3}, flop=54, bytes_moved=9)
    assert str(found.task) == "mm n=3 int8"
    assert (found.task.flop, found.task.bytes_moved) == (54, 9)
    assert found.source == "measured"
    assert found.machine == devices.machine().id
    assert found.device_name == devices.cpu_name()
    assert Measurement.load(found.save(tmp_path / "a.json")) == found


def test_a_real_product_on_the_real_clock():
    x = torch.ones(64, 64)
    found = measure(lambda: x @ x, device="cpu", label="mm", flop=2 * 64**3, min_time_s=0.001)
    assert found.dtype == "float32"
    assert found.flop_per_s > 0
    assert found.median_s > 0


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("fn", None),
        ("fn", 3),
        ("fn", torch.ones(1)),
        ("fn", "a @ b"),
        ("min_time_s", 0),
        ("min_time_s", -1),
        ("min_time_s", math.nan),
        ("min_time_s", "0.2"),
        ("threads", 0),
        ("threads", -1),
        ("threads", 1.5),
        ("threads", "2"),
        ("calls_per_sample", 0),
        ("calls_per_sample", 1.5),
        ("calls_per_sample", True),
        ("flop", -1),
        ("flop", math.nan),
        ("bytes_moved", "1"),
        ("label", 3),
        ("dtype", " "),
        ("dtype", 3.5),
        ("parameters", [1]),
        ("parameters", {"n": math.nan}),
    ],
)
def test_nonsense_is_refused_and_repeated_before_anything_runs(clock, field, bad):
    options = {"fn": lambda: pytest.fail("it ran"), "device": "cpu", "clock": clock} | {field: bad}
    with pytest.raises(InputError) as caught:
        measure(**options)
    assert repr(bad) in str(caught.value) or repr(bad["n"]) in str(caught.value)


def test_cold_and_many_calls_exclude_each_other(clock):
    with pytest.raises(InputError, match="cold=True, calls_per_sample=10"):
        on_cpu(lambda: pytest.fail("it ran"), clock, cold=True, calls_per_sample=10)
