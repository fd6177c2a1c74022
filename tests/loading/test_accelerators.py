"""The stand-in keeps a GPU's times and leaves the CPU free; a real device is timed by its own clock."""

from __future__ import annotations

import time
from collections import namedtuple

import pytest
import torch
from scripted import ScriptedClock, ScriptedGpu

from labkit import devices
from labkit.errors import DeviceError, InputError
from labkit.loading import Accelerator, StandIn, Step
from labkit.loading.accelerators import to_device


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


def test_steps_follow_each_other_and_the_queue_holds_one_besides_the_running_one(clock: ScriptedClock) -> None:
    gpu = StandIn(10.0, clock=clock, sleep=clock.work)
    returned_at = []
    for _ in range(4):
        gpu.submit(None)
        returned_at.append(clock.now_s)
    # The first runs, the second waits in the queue; the third must wait until the second has begun.
    assert returned_at == [0, 0, 10, 20]
    assert gpu.steps() == (Step(0, 10), Step(10, 20), Step(20, 30), Step(30, 40))
    gpu.synchronise()
    assert clock.now_s == 40


def test_a_late_batch_leaves_a_gap(clock: ScriptedClock) -> None:
    gpu = StandIn(10.0, clock=clock, sleep=clock.work)
    gpu.submit(None)
    clock.work(25)
    gpu.submit(None)
    assert gpu.steps() == (Step(0, 10), Step(25, 35))
    gpu.begin()
    assert gpu.steps() == ()
    gpu.synchronise()  # nothing is under way


def test_waiting_for_the_stand_in_burns_no_cpu_time() -> None:
    gpu = StandIn(0.2)
    began_s = time.process_time()
    gpu.submit(None)
    gpu.synchronise()
    assert time.process_time() - began_s < 0.1


def test_a_stand_in_says_that_its_time_is_stated() -> None:
    assert repr(StandIn(0.02)) == "stand-in of 20 ms a step (predicted)"
    assert repr(StandIn(0.02, name="T4")) == "T4, 20 ms a step (predicted)"


@pytest.mark.parametrize("step_s", [0, -1, float("nan"), None, "1 s"])
def test_a_step_time_that_is_none_is_refused(step_s: object) -> None:
    with pytest.raises(InputError):
        StandIn(step_s)


def test_a_gpu_is_timed_by_its_own_clock(clock: ScriptedClock, monkeypatch) -> None:
    gpu = ScriptedGpu(clock, launch_s=0)
    device = gpu.install(monkeypatch)
    accelerator = Accelerator(lambda batch: batch(), device=device)
    work = gpu.job(10.0)
    for pause_s in (5, 25, 2):  # the CPU prepares a batch: late, very late, early
        clock.work(pause_s)
        accelerator.submit(work)
    steps = accelerator.steps()
    # Submitted at 5, 30 and 32; the third starts when the second is done, at 40. Counted from the first start.
    assert [(step.start_s, step.end_s) for step in steps] == [(0, 10), (25, 35), (35, 45)]


def test_a_gpus_queue_holds_one_batch_besides_the_running_one(clock: ScriptedClock, monkeypatch) -> None:
    gpu = ScriptedGpu(clock, launch_s=0)
    accelerator = Accelerator(lambda batch: batch(), device=gpu.install(monkeypatch))
    returned_at = []
    for _ in range(4):
        accelerator.submit(gpu.job(10.0))
        returned_at.append(clock.now_s)
    assert returned_at == [0, 0, 10, 20]
    accelerator.synchronise()
    assert clock.now_s == 40


def test_the_way_to_the_gpu_is_the_first_part_of_a_step(clock: ScriptedClock, monkeypatch) -> None:
    gpu = ScriptedGpu(clock, launch_s=0)

    class Batch:
        device = "cpu"

        def to(self, device: str, *, non_blocking: bool) -> Batch:
            assert (device, non_blocking) == ("cuda:0", True)
            gpu.job(3.0)()
            return self

    accelerator = Accelerator(lambda batch: gpu.job(7.0)(), device=gpu.install(monkeypatch))
    accelerator.submit(Batch())
    assert accelerator.steps() == (Step(0, 10, 3),)


def test_a_device_without_a_queue_is_timed_by_the_clock(clock: ScriptedClock) -> None:
    accelerator = Accelerator(lambda batch: clock.work(4), device="cpu", clock=clock)
    accelerator.submit(torch.zeros(2))
    clock.work(1)
    accelerator.submit(torch.zeros(2))
    assert accelerator.steps() == (Step(0, 4), Step(5, 9))
    accelerator.begin()
    assert accelerator.steps() == ()


def test_a_device_that_is_not_there_is_refused() -> None:
    if any(device.kind == "cuda" for device in devices.find()):
        pytest.skip("not run: this machine has a GPU")
    with pytest.raises(DeviceError):
        Accelerator(print, device="cuda")
    with pytest.raises(InputError, match="a function of a batch"):
        Accelerator(7, device="cpu")


def test_all_tensors_of_a_batch_travel_and_its_shape_stays() -> None:
    pair = namedtuple("pair", "image label")
    batch = pair(torch.zeros(2), {"a": [torch.ones(1), "text"]})
    moved = to_device(batch, "meta")
    assert (moved.image.device.type, moved.label["a"][0].device.type, moved.label["a"][1]) == ("meta", "meta", "text")
    assert type(moved) is pair
