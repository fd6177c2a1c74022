"""What a lesson's pipelines feed: the GPU that is here, or a stand-in that says where its step time is from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from labkit.errors import InputError
from labkit.lesson import Lesson, find_lesson
from labkit.loading import Accelerator, StandIn
from labkit.prediction import predict_measurement
from labkit.units import format_s

WORK = {"label": "training step", "flop": 1e9, "bytes_moved": 1e6, "launches": 10}


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lesson:
    monkeypatch.setenv("LABKIT_RESULTS", str(tmp_path))
    monkeypatch.setenv("LABKIT_PROFILE", "quick")
    return Lesson(find_lesson("06"))


def make(device: str):
    return lambda batch: batch.sum()


def test_without_a_gpu_the_step_takes_as_long_as_predicted_and_the_prediction_is_kept(lesson: Lesson) -> None:
    lesson.gpu = None
    fed = lesson.accelerator(make, **WORK)
    expected = predict_measurement(gpu=lesson.reference, **WORK)
    assert isinstance(fed, StandIn)
    assert (fed.step_s, fed.source) == (expected.median_s, "predicted")
    step = format_s(fed.step_s)
    assert repr(fed) == f"stand-in for a {lesson.reference.key}, {step} a step (predicted)"
    (kept,) = lesson.results.found()
    assert (kept.source, kept.median_s) == ("predicted", expected.median_s)


def test_a_gpu_does_the_step_itself(lesson: Lesson) -> None:
    lesson.gpu = lesson.cpu  # the CPU in its place
    fed = lesson.accelerator(make, **WORK)
    assert isinstance(fed, Accelerator)
    fed.submit(torch.ones(3))
    assert (len(fed.steps()), fed.source) == (1, "measured")
    assert lesson.results.found() == ()


def test_work_that_cannot_be_predicted_says_what_is_missing(lesson: Lesson) -> None:
    lesson.gpu = None
    with pytest.raises(InputError, match="bytes_moved is missing"):
        lesson.accelerator(make, label="training step")
