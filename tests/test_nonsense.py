"""What makes no sense is answered by an error of ours that repeats it, never by somebody else's stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import labkit as lab
from labkit import checks, claims, files, hardware, prediction, report, roofline
from labkit.errors import InputError
from labkit.html import table
from labkit.lesson import Lesson, find_lesson
from labkit.measurement import OUT_OF_MEMORY, Measurement, Point, Sweep, Task

T4 = hardware.gpu("T4")
ROOF = lab.Roof("this CPU", "measured", 1e11, 2e10)
TEAM = lab.Team("worker", 1, 100, 60)


def took(time_s: float) -> Measurement:
    return Measurement(task=Task(label="add"), times_s=[time_s] * 5)


def over(*values: int, complete: bool = True, too_large: tuple[int, ...] = ()) -> Sweep:
    points = [Point(value=value, measurement=took(1e-6 * value)) for value in values]
    points += [Point(value=value, outcome=OUT_OF_MEMORY, detail="needs 4 GB, 1 GB is free") for value in too_large]
    return Sweep(label="add", parameter="n", points=points, complete=complete)


def make(n: float, device: str) -> Callable[[], None]:
    return lambda: None


# Each is called with a thing that is no number, no name, no list and no object of ours.
NO_SENSE = {
    "a choice": lambda it: claims.find_claim(it),
    "a lesson": lambda it: checks.find(it, "matmul"),
    "a value of a sweep": lambda it: over(1, 2).at(it),
    "a team": lambda it: lab.overtakes_at(TEAM, it),
    "a sweep to fit": lambda it: lab.fit_team(it),
    "a measurement to extrapolate": lambda it: lab.extrapolate(it, 2, law="n", parameters={}),
    "a GPU for a roof": lambda it: lab.Roof.from_gpu(it, "float32"),
    "a GPU for a transfer": lambda it: roofline.predict_transfer(1e6, it, pinned=True),
    "a GPU for a sweep": lambda it: prediction.predict_sweep([1], gpu=it, label="add", bytes_moved=lambda n: n),
    "work": lambda it: roofline.predict(it, T4, "float32"),
    "a model": lambda it: roofline.predict(roofline.Work(1, 1), T4, "float32", model=it),
    "a roof to exceed": lambda it: roofline.exceeds_peak(it, flop_per_s=1),
    "a roof to predict by": lambda it: roofline.predicted_time_s(flop=1, bytes_moved=1, roof=it, launch_s=0),
    "values": lambda it: prediction.predict_sweep(it, gpu=T4, label="add", bytes_moved=lambda n: n),
    "a function of the value": lambda it: prediction.predict_sweep([1], gpu=T4, label="add", bytes_moved=it),
    "what it returns": lambda it: prediction.predict_sweep(
        [1], gpu=T4, label="add", bytes_moved=lambda n: n, needs_bytes=lambda n: it
    ),
    "FLOP": lambda it: prediction.predict_measurement(gpu=T4, label="add", flop=it, bytes_moved=1),
    "parameters": lambda it: lab.sweep(make, [1], device="cpu", parameters=it, progress=False),
    "a label": lambda it: lab.measure(lambda: None, device="cpu", label=it),
    "a seed": lambda it: lab.compare({"nothing": lambda: None}, device="cpu", seed=it),
    "a model to vary": lambda it: lab.variants(it, torch.ones(1, 2)),
    "a rate": lambda it: lab.under_load(int, rate_per_s=it, duration_s=1),
    "a service time": lambda it: lab.predict_load(it, rate_per_s=1, duration_s=1),
    "a run to draw": lambda it: lab.plot_queue(it),
    "a floating-point format": lambda it: lab.round_to(1.0, it),
    "rows": lambda it: table(it, head=("n",)),
    "a row": lambda it: table([it], head=("n",)),
    "a text": lambda it: files.write_text("x.txt", it),
    "options": lambda it: lab.choice(it),
    "a unit": lambda it: lab.slider(1, 10, unit=it),
    "a button to fold behind": lambda it: lab.explore(str, object=(1, 2), fold=it),
    "a title": lambda it: lab.plot_times(over(1, 2), title=it),
    "loads": lambda it: lab.plot_teams(TEAM, loads=it),
    "a checkpoint": lambda it: lab.load(it),
    "a model to load into": lambda it: lab.load("x.pt", it),
    "a model to save": lambda it: lab.save("x.pt", it),
    "a place to save": lambda it: lab.save(it, torch.nn.Linear(1, 1)),
    "a GPU's index": lambda it: lab.make_gpu_tagged("x.pt", torch.nn.Linear(1, 1), index=it),
    "files": lambda it: report.collect(it),
    "a file": lambda it: report.collect([it]),
}


@pytest.mark.parametrize("nonsense", [object(), 3j, np.zeros(2), torch.zeros(2)], ids=["object", "3j", "np", "torch"])
@pytest.mark.parametrize("call", NO_SENSE.values(), ids=NO_SENSE)
def test_nonsense_is_refused_with_a_sentence(call: Callable[[Any], Any], nonsense: Any) -> None:
    with pytest.raises(InputError):
        call(nonsense)


def test_a_folder_is_not_taken_for_a_list_of_files() -> None:
    with pytest.raises(InputError, match=r"Try paths=\['results'\]"):
        report.collect("results")


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        (over(1, 2), "n=4: the sweep has no measurement there. It has 1, 2."),
        (over(1, complete=False), "n=4: the sweep has no measurement there: it was interrupted. It has 1."),
        (over(1, too_large=(4,)), "out of memory (needs 4 GB, 1 GB is free). It has 1."),
        (over(too_large=(4,)), "It has none at all."),
    ],
)
def test_a_missing_point_says_why_it_is_missing(sweep: Sweep, said: str) -> None:
    with pytest.raises(InputError) as caught:
        sweep.at(4)
    assert said in str(caught.value)


def test_work_that_cannot_be_predicted_says_what_is_missing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_RESULTS", str(tmp_path))
    lesson = Lesson(find_lesson("01"))
    lesson.gpu = None
    with pytest.raises(InputError, match="bytes_moved is missing: where there is no GPU"):
        lesson.gpu_sweep(make, [1, 2], label="add")
    with pytest.raises(InputError, match="label is missing"):
        lesson.gpu_measure(lambda device: make(1, device), bytes_moved=1)


@pytest.mark.parametrize("call", [lab.slider, lab.log_slider])
def test_a_slider_to_a_number_beyond_all_floats_is_refused(call: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="from a number to a larger one"):
        call(1, 10**400)
    with pytest.raises(InputError, match="offer this value"):
        lab.explore(lambda n: "", n=call(1, 10)).set(n=10**400)
