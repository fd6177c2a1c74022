import math

import pytest
import torch
from scripted import ScriptedClock, ScriptedGpu

from labkit.errors import InputError
from labkit.hardware import gpu as catalogue_gpu
from labkit.timing import sustain


@pytest.fixture(autouse=True)
def profile(monkeypatch):
    monkeypatch.setenv("LABKIT_PROFILE", "quick")


@pytest.fixture
def clock():
    return ScriptedClock()


def on_cpu(fn, clock, duration_s=3.0, **options):
    return sustain(fn, device="cpu", duration_s=duration_s, clock=clock, progress=False, **options)


class HotMachine(ScriptedClock):
    """A machine that needs half as long again for everything after its first 10 seconds."""

    def work(self, seconds):
        super().work(seconds * (1 if self.now_s < 10 else 1.5))


def test_it_works_for_the_whole_duration_in_samples_of_a_hundredth_of_it(clock):
    found = on_cpu(clock.job(0.001), clock)
    assert sum(found.times_s) * found.calls_per_sample == pytest.approx(3.0, rel=0.02)
    assert found.calls_per_sample == 30
    assert len(found.times_s) in (100, 101)  # 100 times 0.03 s, up to rounding
    assert found.times_s == pytest.approx([0.001] * len(found.times_s))


def test_the_samples_keep_their_order_and_show_a_machine_that_slows_down():
    clock = HotMachine()
    found = on_cpu(clock.job(0.01), clock, duration_s=20.0)
    assert found.times_s[:10] == pytest.approx([0.01] * 10)
    assert found.times_s[-10:] == pytest.approx([0.015] * 10)
    slower = [time_s > 0.0101 for time_s in found.times_s]
    assert slower == sorted(slower)


def test_a_call_longer_than_a_sample_is_a_sample_and_there_are_always_thirty(clock):
    found = on_cpu(clock.job(0.2), clock, duration_s=1.0)
    assert (found.calls_per_sample, len(found.times_s)) == (1, 30)


def test_a_run_is_prolonged_tenfold_at_most(clock):
    found = on_cpu(clock.job(2.0), clock, duration_s=1.0)
    assert len(found.times_s) == 5  # 10 s of 2 s calls


def test_an_interrupt_keeps_the_samples_so_far_and_the_threads(clock, capsys):
    before = torch.get_num_threads()

    def fn():
        clock.work(0.05)
        if clock.now_s > 2:
            raise KeyboardInterrupt

    found = on_cpu(fn, clock, threads=1)
    assert found.times_s == pytest.approx([0.05] * len(found.times_s))
    assert len(found.times_s) > 10
    assert "Interrupted" in capsys.readouterr().out
    assert torch.get_num_threads() == before


def test_an_interrupt_before_the_first_sample_is_an_interrupt(clock):
    calls = []

    def fn():
        calls.append(clock.work(0.3))
        if len(calls) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_cpu(fn, clock)


def test_both_clocks_of_a_gpu_stay_together_through_an_interrupt(monkeypatch, clock):
    gpu = ScriptedGpu(clock, launch_s=0.0)
    device, jobs = gpu.install(monkeypatch), []

    def fn():
        jobs.append(0.06 + 0.001 * len(jobs))
        gpu.job(jobs[-1])()
        if len(jobs) == 30:
            raise KeyboardInterrupt

    found = sustain(fn, device=device, duration_s=5, clock=clock, progress=False)
    n = len(found.times_s)
    assert n > 10
    assert found.times_s == pytest.approx(jobs[29 - n : 29])
    assert found.device_times_s == pytest.approx(jobs[29 - n : 29])


def test_a_throughput_above_the_peak_in_the_long_run_is_flagged(monkeypatch):
    clock = ScriptedClock()
    device = ScriptedGpu(clock).install(monkeypatch, spec=catalogue_gpu("T4"))
    short = iter([0.01] * 12)
    found = sustain(
        lambda: clock.work(next(short, 0.001)),
        device=device,
        duration_s=3,
        clock=clock,
        progress=False,
        flop=8.1e12 * 0.005,
        dtype="float32",
    )
    assert "IMPLAUSIBLE" in repr(found)
    assert found.flop_per_s is None


def test_a_progress_bar_is_shown_and_can_be_turned_off(clock, capsys):
    sustain(clock.job(0.05), device="cpu", duration_s=2, clock=clock, label="hot")
    assert "hot" in capsys.readouterr().err
    on_cpu(clock.job(0.05), clock)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("duration_s", 0),
        ("duration_s", -1),
        ("duration_s", math.nan),
        ("duration_s", "60"),
        ("fn", None),
        ("cold", True),
    ]
    + [("threads", 0), ("label", 3)],
)
def test_nonsense_is_refused_and_repeated_before_anything_runs(clock, field, bad):
    options = {"fn": lambda: pytest.fail("it ran"), "device": "cpu", "duration_s": 1, "clock": clock} | {field: bad}
    with pytest.raises(InputError) as caught:
        sustain(**options)
    assert f"{field}={bad!r}" in str(caught.value)
