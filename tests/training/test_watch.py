"""The times of a training, on a machine whose time is written in a script."""

from __future__ import annotations

import pytest
from scripted import ScriptedClock, ScriptedGpu

from labkit import devices
from labkit.training.steps import Training
from labkit.training.watch import BACKWARD, FORWARD, OPTIMISER, PHASES, PROFILED_IN_A_ROW, StepWatch

from .conftest import BATCH, tiny_data, tiny_net, tiny_train

CPU = devices.pick("cpu")


def run(watch, work, epochs):
    """Let each epoch, a list of numbers of images, pass: work(name) is what a phase of a step takes."""
    for images_of_steps in epochs:
        watch.start_epoch()
        for images in images_of_steps:
            done = watch.start_step()
            for name in PHASES:
                work(name)
                done(name)
            watch.end_step(images)
        watch.end_epoch()


def watch_of(clock, *, profile=False, device=CPU):
    return StepWatch(device, batch=8, profile=profile, clock=clock)


def test_the_first_step_of_an_epoch_and_partial_batches_do_not_count():
    clock = ScriptedClock()
    seconds = iter([9, 1, 1, 5, 8, 2, 2, 6])  # of whole steps: first, full, full, partial; and again
    work = {"forward": lambda: clock.work(next(seconds))}
    watch = watch_of(clock)
    run(watch, lambda name: work.get(name, int)(), [[8, 8, 8, 3], [8, 8, 8, 3]])
    assert watch.steps_s == [1, 1, 2, 2]
    assert watch.first_steps_s == [9, 8]
    assert watch.phases_s == {} and watch.profiled_s == []


def test_the_time_between_two_epochs_belongs_to_none():
    clock = ScriptedClock()
    watch = watch_of(clock)
    for _ in range(2):
        run(watch, lambda name: clock.work(0.5), [[8, 8, 8]])
        clock.work(100)  # a test, a checkpoint, a curve
    assert watch.steps_s == [2.5] * 4


def test_phases_are_told_apart_and_add_up_to_the_profiled_steps():
    clock = ScriptedClock()
    seconds = dict(zip(PHASES, (1, 2, 30, 40, 5), strict=True))
    watch = watch_of(clock, profile=True)
    run(watch, lambda name: clock.work(seconds[name]), [[8] * 20])
    assert {name: set(times_s) for name, times_s in watch.phases_s.items()} == {
        name: {time_s} for name, time_s in seconds.items()
    }
    assert set(watch.profiled_s) == {78} == set(watch.steps_s)
    assert len(watch.profiled_s) + len(watch.steps_s) == 19
    assert list(watch.phases_s) == list(PHASES)


def test_profiled_steps_and_others_take_turns_so_that_a_drift_meets_both():
    clock = ScriptedClock()
    durations = iter(range(1, 1000))  # a machine that becomes slower with every step

    def work(name):
        if name == "forward":
            clock.work(next(durations))

    watch = watch_of(clock, profile=True)
    run(watch, work, [[8] * 41])
    assert 16 <= len(watch.profiled_s) <= 24
    assert sum(watch.profiled_s) / len(watch.profiled_s) == pytest.approx(
        sum(watch.steps_s) / len(watch.steps_s), abs=PROFILED_IN_A_ROW
    )


def test_a_gpus_steps_are_its_own_time_and_nobody_waits_within_an_epoch(monkeypatch):
    clock = ScriptedClock()
    gpu = ScriptedGpu(clock, launch_s=1e-5)
    device = gpu.install(monkeypatch)
    job = gpu.job(0.25)
    watch = watch_of(clock, device=device)
    run(watch, lambda name: job() if name == "forward" else None, [[8] * 6])
    assert watch.steps_s == pytest.approx([0.25] * 5)  # the host had launched all after 60 µs
    assert gpu.calls.count("synchronize") == 2 and gpu.calls[-1] == "synchronize"


def test_a_gpus_phases_hold_the_work_that_they_launched(monkeypatch):
    clock = ScriptedClock()
    gpu = ScriptedGpu(clock, launch_s=0.0)
    device = gpu.install(monkeypatch)
    jobs = {FORWARD: gpu.job(1), BACKWARD: gpu.job(2), OPTIMISER: gpu.job(0.5)}
    watch = watch_of(clock, device=device, profile=True)
    run(watch, lambda name: jobs.get(name, int)(), [[8] * 12])
    found = {name: set(times_s) for name, times_s in watch.phases_s.items()}
    assert found[FORWARD] == {1} and found[BACKWARD] == {2} and found[OPTIMISER] == {0.5}
    assert max(found["transfer"]) < 1e-6


def test_what_waiting_costs_is_in_the_profiled_steps_alone(monkeypatch):
    """Each wait costs the host 1 ms; the device works 10 ms a step: the cost is five waits, and one before."""
    clock = ScriptedClock()
    gpu = ScriptedGpu(clock, launch_s=0.0, sync_s=1e-3)
    device = gpu.install(monkeypatch)
    job = gpu.job(10e-3)
    watch = watch_of(clock, device=device, profile=True)
    run(watch, lambda name: job() if name == FORWARD else None, [[8] * 40])
    assert sorted(watch.steps_s)[len(watch.steps_s) // 2] == pytest.approx(10e-3)
    assert max(watch.profiled_s) == pytest.approx(16e-3)


def test_apples_gpu_has_no_such_events_and_is_waited_for(monkeypatch):
    clock = ScriptedClock()
    gpu = ScriptedGpu(clock, launch_s=1e-5)
    device = gpu.install(monkeypatch, kind="mps")
    job = gpu.job(0.25)
    watch = watch_of(clock, device=device)
    run(watch, lambda name: job() if name == FORWARD else None, [[8] * 4])
    assert watch.steps_s == pytest.approx([0.25] * 3, abs=2e-5)


def test_a_clock_that_stands_still_gives_no_zero():
    watch = watch_of(lambda: 5.0, profile=True)
    run(watch, lambda name: None, [[8] * 12])
    assert min(watch.steps_s + watch.profiled_s) == 1e-9 == min(watch.phases_s[FORWARD])


# --- in a real training ------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock on which a step of the real loop takes 2 s, and the first one 50 s."""
    clock = ScriptedClock()
    of_ours, seconds = Training.run_step, iter([50.0])

    def run_step(self, which):
        clock.work(next(seconds, 2.0) - 1.0)
        with_watch = self.watch.end_step
        self.watch.end_step = lambda images: (clock.work(1.0), with_watch(images))
        of_ours(self, which)
        self.watch.end_step = with_watch

    monkeypatch.setattr(Training, "run_step", run_step)
    return clock


def test_images_per_s_are_those_of_the_full_batches(clock):
    """Two full batches and a partial one an epoch: the first of each epoch and the partial one are left out."""
    history = tiny_train(tiny_net(), tiny_data(), epochs=3, clock=clock)
    assert history.throughput.times_s == (2.0,) * 3
    assert history.throughput.warm_up_s == (50.0, 2.0, 2.0)
    assert history.images_per_s == BATCH / 2.0 and history.images_per_s_range == (4.0, 4.0)
    assert [epoch.seconds for epoch in history.epochs] == [54.0, 6.0, 6.0]


def test_tests_and_callbacks_are_no_part_of_an_epochs_time(clock):
    history = tiny_train(
        tiny_net(), tiny_data(), epochs=2, test=tiny_data(9), clock=clock, on_epoch=lambda _: clock.work(1000)
    )
    assert [epoch.seconds for epoch in history.epochs] == [54.0, 6.0]


def test_an_epoch_that_was_interrupted_and_resumed_has_the_time_of_both_parts(clock, monkeypatch, tmp_path):
    from .conftest import press_stop

    options = {"epochs": 1, "checkpoint": tmp_path / "net.pt", "clock": clock}
    with monkeypatch.context() as patch:
        press_stop(patch, 2)
        tiny_train(tiny_net(), tiny_data(), **options)
    history = tiny_train(tiny_net(), tiny_data(), resume=True, **options)
    assert [epoch.seconds for epoch in history.epochs] == [52.0 + 2.0]
