"""History: numbers worked out by hand, what it says of itself, and the way through JSON."""

from __future__ import annotations

import json
import math

import pytest
import torch

from labkit.errors import InputError, RecordError
from labkit.measurement import Measurement, Task
from labkit.training import PHASES, Epoch, History

from .conftest import tiny_data, tiny_net, tiny_train


def step(times_s, *, batch=64, **fields):
    return Measurement(task=Task(label="step", parameters={"batch": batch}), times_s=times_s, **fields)


def epoch(number, **fields):
    return Epoch(**{"number": number, "loss": 0.5, "train_accuracy": 0.75, "seconds": 2.0} | fields)


def history(**fields):
    return History(**{"label": "small CNN on digits", "planned_epochs": 2} | fields)


FULL = history(
    epochs=(epoch(1), epoch(2, loss=0.25, train_accuracy=0.5, test_accuracy=0.9875, test_loss=0.3)),
    steps=step([0.5, 0.5, 1.0, 0.25, 0.5]),
    profiled=step([0.6, 0.6, 0.6]),
    phases={"forward": step([0.1, 0.3]), "backward": step([0.6, 0.6])},
    notes=("float64 became float32",),
)


def test_images_per_s_is_the_batch_over_the_median_step():
    assert FULL.images_per_s == 128 == FULL.throughput.images_per_s
    assert FULL.images_per_s_range == (128, 128)
    assert history(steps=step([1.0, 2.0, 3.0, 4.0, 5.0], batch=12)).images_per_s_range == (3, 6)


def test_shares_are_of_the_phases_together():
    assert FULL.phase_shares == {"forward": pytest.approx(0.25), "backward": pytest.approx(0.75)}
    assert history().phase_shares == {}


def test_the_cost_of_a_profile_is_a_ratio_with_its_range():
    cost = FULL.profiling_cost
    assert cost.ratio == pytest.approx(1.2) and cost.low <= 1.2 <= cost.high
    assert history().profiling_cost is None


def test_what_was_trained():
    assert FULL.complete and FULL.test_accuracy == 0.9875 and FULL.train_s == 4
    assert not history(epochs=(epoch(1),)).complete
    assert history().test_accuracy is None and history().train_s == 0


def test_it_says_what_happened():
    text = repr(FULL)
    for part in ("2 of 2 epochs in 4 s", "loss 0.25", "50.00% while training", "98.75% on the test images",
                 "128 images/s (middle half 128 to 128)", "cpu (measured)", "forward 25.0%, backward 75.0%",
                 "A profiled step took 1.2×", "float64 became float32"):  # fmt: skip
        assert part in text, text
    page = FULL._repr_html_()
    assert page.count("<tr>") == 3 and "<details" in page and "98.75%" in page
    assert "<table" not in history()._repr_html_()


def test_an_interrupted_one_says_so():
    stopped = history(epochs=(epoch(1),), stopped="interrupted in epoch 2, after step 3 of 9")
    assert "1 of 2 epochs" in repr(stopped) and "Interrupted in epoch 2, after step 3 of 9" in repr(stopped)


def test_without_a_full_step_there_is_no_throughput_but_a_reason():
    with pytest.raises(InputError, match="no step with a full batch .* Train longer"):
        history().images_per_s  # noqa: B018
    short = tiny_train(tiny_net(), tiny_data(9), epochs=2)  # one full batch an epoch, which is its first
    assert short.steps is None and "images/s" not in repr(short)


def test_a_model_that_looks_at_its_data_is_trained_without_a_count():
    class Looking(torch.nn.Linear):
        def forward(self, images):
            return super().forward(images.flatten(1) * (2.0 if images.max().item() > 0.5 else 1.0))

    trained = tiny_train(Looking(16, 3), tiny_data(), epochs=1)
    assert trained.throughput.task.flop is None and trained.complete


def test_the_flop_of_a_step_are_those_of_torchs_counter():
    """conv 1→2, 2→4, 4→8 on 4×4, 4×4, 2×2; linear 8→3: forward once, backward twice, but none for the images."""
    trained = tiny_train(tiny_net(), tiny_data(), epochs=1)
    forward = [2 * 9 * 1 * 2 * 16, 2 * 9 * 2 * 4 * 16, 2 * 9 * 4 * 8 * 4, 2 * 8 * 3]
    assert trained.throughput.task.flop == 8 * (3 * sum(forward) - forward[0])


@pytest.mark.parametrize("of", [FULL, history(), history(epochs=(epoch(1, loss=math.inf),), stopped="early")])
def test_the_way_through_json_and_a_file_changes_nothing(of, tmp_path):
    assert History.from_dict(json.loads(json.dumps(of.to_dict(), allow_nan=False))) == of
    assert History.load(of.save(tmp_path / "history.json")) == of


def test_a_real_one_goes_through_json(tmp_path):
    trained = tiny_train(tiny_net(), tiny_data(40), epochs=3, profile_phases=True, test=tiny_data(9))
    assert tuple(trained.phases) == PHASES
    assert History.load(trained.save(tmp_path / "history.json")) == trained
    assert trained.throughput.dtype == "float32" and trained.throughput.threads == 1
    assert trained.throughput.task.parameters["batch"] == 8


@pytest.mark.parametrize(
    "damage",
    [
        {"epochs": 3},
        {"epochs": [{"number": 1}]},
        {"epochs": [FULL.to_dict()["epochs"][1]]},
        {"phases": []},
        {"phases": {"forward": 3}},
        {"steps": {"task": 1}},
        {"format_version": 99},
        {"colour": "red"},
        {"planned_epochs": 0},
    ],
    ids=str,
)
def test_a_damaged_record_is_refused(damage):
    with pytest.raises(RecordError):
        History.from_dict(FULL.to_dict() | damage)


@pytest.mark.parametrize("data", [None, [], "history", {"label": "x"}])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(RecordError):
        History.from_dict(data)


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": ""},
        {"planned_epochs": 0},
        {"epochs": 3},
        {"epochs": (1,)},
        {"epochs": (epoch(2),)},
        {"epochs": (epoch(1), epoch(1))},
        {"steps": 0.5},
        {"phases": [1]},
        {"phases": {"forward": 1}},
        {"notes": "note"},
        {"stopped": None},
    ],
    ids=str,
)
def test_what_makes_no_history_is_refused(wrong):
    with pytest.raises(InputError):
        history(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"number": 0}, {"seconds": 0}, {"train_accuracy": 1.5}, {"test_accuracy": -1}, {"train_accuracy": "a"}]
)
def test_what_makes_no_epoch_is_refused(wrong):
    with pytest.raises(InputError):
        epoch(**{"number": 1} | wrong)


def test_a_step_must_name_its_batch():
    with pytest.raises(InputError, match="does not say how many images"):
        history(steps=Measurement(task=Task(label="add"), times_s=[1.0])).images_per_s  # noqa: B018
