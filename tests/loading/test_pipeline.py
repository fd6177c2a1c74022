"""Waiting, counted on a scripted clock: every expected number is worked by hand."""

from __future__ import annotations

import pytest
import torch
from scripted import ScriptedClock
from torch.utils.data import TensorDataset

from labkit.errors import InputError
from labkit.loading import (
    Accelerator,
    JpegImages,
    PipelineRun,
    Sample,
    StandIn,
    Step,
    plan_loader,
    run_pipeline,
)

BATCH = 8


class Pipeline:
    """A loader without workers whose batches take decode_s each, and a stand-in, on one scripted clock."""

    def __init__(self, decode_s: float, step_s: float, first_s: float = 0.0) -> None:
        self.clock = ScriptedClock()
        self.decode_s, self.first_s = decode_s, first_s
        self.gpu = StandIn(step_s, clock=self.clock, sleep=self.clock.work)

    def __iter__(self):
        self.clock.work(self.first_s)
        for _ in range(100):
            self.clock.work(self.decode_s)
            each_s = torch.full((BATCH,), self.decode_s / BATCH, dtype=torch.float64)
            yield Sample(torch.zeros(BATCH, 3, 2, 2), torch.zeros(BATCH), each_s)

    def run(self, **options) -> PipelineRun:
        return run_pipeline(self, self.gpu, progress=False, clock=self.clock, **({"steps": 10} | options))


@pytest.mark.parametrize(
    ("decode_s", "step_s", "wait_s", "limited_by"),
    [
        (30.0, 10.0, 20.0, "the loading"),  # while it works for 10 s, 10 of the 30 s pass
        (10.0, 30.0, 0.0, "the accelerator"),
        (10.0, 10.0, 0.0, "the accelerator"),
        (11.0, 10.0, 1.0, "neither stage alone"),
    ],
)
def test_the_accelerator_waits_for_what_its_own_work_does_not_hide(
    decode_s: float, step_s: float, wait_s: float, limited_by: str
) -> None:
    run = Pipeline(decode_s, step_s).run()
    assert run.waits_s == pytest.approx([wait_s] * 10)
    assert run.waiting_share == pytest.approx(wait_s / max(decode_s, step_s))
    assert run.images_per_s == pytest.approx(BATCH / max(decode_s, step_s))
    assert (run.step_s, run.limited_by) == (pytest.approx(step_s), limited_by)
    assert (run.decode_s, run.feeding_s) == (pytest.approx(decode_s), pytest.approx(decode_s))
    assert run.ideal_share == pytest.approx(run.waiting_share)  # nothing but decoding costs time here


def test_a_loop_that_waits_for_every_step_hides_nothing() -> None:
    run = Pipeline(30.0, 10.0).run(synchronise_each_step=True)
    assert run.waits_s == pytest.approx([30.0] * 10)
    assert run.waiting_share == pytest.approx(0.75)


def test_the_start_stands_apart() -> None:
    run = Pipeline(3.0, 1.0, first_s=50.0).run()
    assert run.start_s == pytest.approx(53.0)
    assert run.waits_s == pytest.approx([2.0] * 10)


def test_workers_share_the_decoding_and_steps_are_the_same_number_for_each() -> None:
    loader = Pipeline(30.0, 10.0)
    loader.num_workers = 3
    run = loader.run(steps=10)
    assert (run.workers, len(run.waits_s)) == (3, 12)
    assert run.feeding_s == pytest.approx(10.0)  # as long as a step
    assert run.ideal_share == pytest.approx(0.0, abs=1e-9)
    assert run.batch == BATCH


def test_an_interrupt_keeps_what_was_measured(capsys) -> None:
    pipeline = Pipeline(3.0, 1.0)
    submit, calls = pipeline.gpu.submit, []

    def stopped(batch) -> None:
        calls.append(batch)
        if len(calls) == 8:
            raise KeyboardInterrupt
        submit(batch)

    pipeline.gpu.submit = stopped
    run = pipeline.run()
    assert (run.complete, len(run.waits_s), run.waiting_share) == (False, 6, pytest.approx(2 / 3))
    assert "6 steps were measured and are kept" in capsys.readouterr().out
    assert "Interrupted" in repr(run)


def test_an_interrupt_before_anything_was_measured_is_passed_on() -> None:
    pipeline = Pipeline(3.0, 1.0)

    def stopped(batch) -> None:
        raise KeyboardInterrupt

    pipeline.gpu.submit = stopped
    with pytest.raises(KeyboardInterrupt):
        pipeline.run()


def test_the_text_says_who_limits_and_what_was_found() -> None:
    said = repr(Pipeline(30e-3, 10e-3).run(label="photos"))
    assert said == (
        "photos, 0 workers, stand-in of 10 ms a step: waits 67% of the time, 267 images/s, limited by the loading. "
        "First batch after 30 ms."
    )


def test_as_a_measurement_it_is_predicted_where_the_step_time_was_stated() -> None:
    run = Pipeline(30e-3, 10e-3).run()
    found = run.measurement
    assert (found.source, found.times_s) == ("predicted", pytest.approx([30e-3] * 10))
    assert "a step of a stated time" in found.provenance
    parameters = dict(found.task.parameters)
    assert parameters["waiting_share"] == pytest.approx(2 / 3, abs=1e-4)
    assert (parameters["batch"], parameters["workers"], parameters["decode_s"]) == (BATCH, 0, pytest.approx(30e-3))
    assert type(found).from_dict(found.to_dict()) == found


def test_a_real_device_gives_a_measured_run() -> None:
    clock = ScriptedClock()

    def loader():
        for _ in range(20):
            clock.work(3.0)
            yield (torch.zeros(BATCH, 2), torch.zeros(BATCH))

    cpu = Accelerator(lambda batch: clock.work(1.0), device="cpu", clock=clock)
    run = run_pipeline(loader(), cpu, steps=6, progress=False, clock=clock)
    assert (run.source, run.batch, run.decode_s) == ("measured", BATCH, None)
    assert (run.feeding_s, run.ideal_share) == (None, None)
    assert run.waiting_share == pytest.approx(0.75)  # a CPU has no queue: it cannot prepare and work at once
    assert run.measurement.source == "measured"


def test_photos_and_tensors_run_through_the_same_pipeline() -> None:
    photos = plan_loader(JpegImages(32, megapixels=0.01, size=16), batch=4, workers=0, device="cpu")
    run = run_pipeline(photos, StandIn(0.001), steps=5, progress=False)
    assert (run.batch, len(run.waits_s), run.workers) == (4, 5, 0)
    assert run.decode_s > 0
    tensors = plan_loader(TensorDataset(torch.zeros(32, 3)), batch=4, workers=0, device="cpu")
    assert run_pipeline(tensors, StandIn(0.001), steps=5, progress=False).decode_s is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"loader": 7},
        {"loader": []},
        {"accelerator": 0.01},
        {"steps": 0},
        {"steps": 1.5},
        {"label": ""},
    ],
)
def test_nonsense_is_refused(wrong: dict) -> None:
    given = {"loader": [torch.zeros(2)], "accelerator": StandIn(0.001), "progress": False} | wrong
    with pytest.raises(InputError):
        run_pipeline(given.pop("loader"), given.pop("accelerator"), **given)


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": [Step(0, 1)]},
        {"steps": [Step(0, 1), Step(0.5, 2)]},
        {"steps": [Step(0, 1), Step(2, 1.5), Step(3, 4)]},
        {"steps": [Step(0, 1), Step(2, 1.5)]},
        {"steps": [(0, 1), (2, 3)]},
        {"batch": 0},
        {"workers": -1},
        {"source": "guessed"},
        {"start_s": float("nan")},
        {"decode_s": 0},
        {"label": " "},
    ],
)
def test_a_run_that_cannot_be_is_refused(wrong: dict) -> None:
    run = {"label": "x", "batch": 1, "workers": 0, "start_s": 0, "accelerator": "GPU", "source": "measured"}
    PipelineRun(**run, steps=[Step(0, 1), Step(1, 2)])
    with pytest.raises(InputError):
        PipelineRun(**({**run, "steps": [Step(0, 1), Step(1, 2)]} | wrong))
