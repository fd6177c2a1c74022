from dataclasses import replace

import pytest

from labkit.errors import InputError
from labkit.plotting import alt_text, plot_phases, plot_training, to_png
from labkit.plotting.training import PHASE_LOOKS
from labkit.training import PHASES, Epoch, History

from .conftest import legend_of, measurement, series_of


def epoch(number, loss, train_accuracy, **fields):
    return Epoch(number=number, loss=loss, train_accuracy=train_accuracy, seconds=1.0, **fields)


def step(times_s, **fields):
    from labkit.measurement import Measurement, Task

    return Measurement(task=Task(label="step", parameters={"batch": 64}), times_s=times_s, **fields)


TWO = (
    epoch(1, 1.5, 0.5, test_loss=1.2, test_accuracy=0.75),
    epoch(2, 0.5, 0.9, test_loss=0.6, test_accuracy=0.875),
)
CURVE = History(label="small CNN on digits", planned_epochs=5, epochs=TWO)
SECONDS = dict(zip(PHASES, (1.0, 0.5, 3.0, 5.0, 0.5), strict=True))
PROFILED = History(
    label="small CNN on digits",
    planned_epochs=2,
    epochs=TWO,
    steps=step([10.0] * 4),
    profiled=step([11.0] * 4),
    phases={name: step([seconds] * 4) for name, seconds in SECONDS.items()},
)


def loss_axes(ax):
    (other,) = (each for each in ax.figure.axes if each is not ax)
    return other


# --- the curve ---------------------------------------------------------------------------------------------------


def test_accuracies_stand_left_and_losses_right_over_their_epochs():
    ax = plot_training(CURVE)
    train, test = series_of(ax)
    assert list(train.get_xdata()) == [1, 2] and list(train.get_ydata()) == [0.5, 0.9]
    assert list(test.get_ydata()) == [0.75, 0.875]
    train_loss, test_loss = series_of(loss_axes(ax))
    assert list(train_loss.get_ydata()) == [1.5, 0.5] and list(test_loss.get_ydata()) == [1.2, 0.6]
    assert train_loss.get_linestyle() == "--" != train.get_linestyle()
    assert loss_axes(ax).get_yscale() == "log" and ax.get_yscale() == "linear"
    assert legend_of(ax) == [
        "accuracy while training", "accuracy on test images", "loss while training", "loss on test images"
    ]  # fmt: skip


def test_there_is_room_for_all_planned_epochs_while_it_grows():
    ax = plot_training(CURVE)
    assert ax.get_xlim() == (0.5, 5.5) and ax.get_xlabel() == "epoch, 2 of 5 done"
    assert to_png(plot_training(History(label="net", planned_epochs=5)))  # before the first epoch


def test_a_complete_and_an_interrupted_one_say_so():
    assert plot_training(History(label="net", planned_epochs=2, epochs=TWO)).get_xlabel() == "epoch"
    stopped = History(label="net", planned_epochs=5, epochs=TWO, stopped="interrupted after epoch 2")
    assert plot_training(stopped).get_xlabel() == "epoch, interrupted, 2 of 5 done"


def test_without_a_test_there_are_two_curves():
    ax = plot_training(History(label="net", planned_epochs=1, epochs=(epoch(1, 1.0, 0.5),)))
    assert legend_of(ax) == ["accuracy while training", "loss while training"]


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_left_out_and_said(loss):
    epochs = (epoch(1, 1.0, 0.5), epoch(2, loss, 0.1))
    ax = plot_training(History(label="net", planned_epochs=2, epochs=epochs))
    assert list(series_of(loss_axes(ax))[0].get_xdata()) == [1]
    assert legend_of(ax)[-1] == "loss while training (1 of 2 epochs: no finite number)"
    assert to_png(plot_training(History(label="net", planned_epochs=1, epochs=(epoch(1, loss, 0.1),))))


def test_the_curve_has_a_text_alternative():
    words = alt_text(plot_training(CURVE, title="Digits"))
    assert words.startswith(
        "Digits. Chart of accuracy and loss against the epochs, small CNN on digits, 2 of 5 epochs."
    )
    assert "accuracy on test images: from 75.00% after epoch 1 to 87.50%" in words
    assert "loss while training: from 1.5 after epoch 1 to 0.5" in words


def test_it_draws_into_given_axes():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_training(CURVE, ax=ax) is ax


# --- the phases --------------------------------------------------------------------------------------------------


def test_the_phases_follow_each_other_and_fill_the_step():
    bars = [container[0] for container in plot_phases(PROFILED).containers]
    assert [bar.get_x() for bar in bars] == pytest.approx([0, 1.0, 1.5, 4.5, 9.5])
    assert [bar.get_width() for bar in bars] == pytest.approx(list(SECONDS.values()))


def test_the_legend_names_every_phase_with_its_share():
    ax = plot_phases(PROFILED)
    assert legend_of(ax) == [
        "waiting for data 10.0%", "transfer 5.0%", "forward 30.0%", "backward 50.0%", "optimiser 5.0%"
    ]  # fmt: skip
    assert [text.get_text() for text in ax.texts] == ["10%\n1 s", "30%\n3 s", "50%\n5 s"]  # where there is room


def test_what_the_profile_cost_stands_at_the_axis():
    assert plot_phases(PROFILED).get_xlabel() == "mean time of a profiled step (profiling made it 1.1× to 1.1× as long)"


def test_a_cost_on_both_sides_of_one_is_called_noise():
    noisy = replace(PROFILED, steps=step([9.0, 10.0, 11.0, 12.0]))  # quartiles from below 11 to above it
    label = plot_phases(noisy).get_xlabel()
    assert label.startswith("mean time of a profiled step (what profiling cost is lost in the noise: 0.")
    assert " to 1." in label


def test_several_trainings_stand_under_each_other():
    half = {name: step([seconds / 2] * 4, device_name="T4") for name, seconds in SECONDS.items()}
    other = History(label="wide CNN on digits", planned_epochs=1, phases=half)
    ax = plot_phases(PROFILED, other)
    assert [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()] == [
        "small CNN, batch 64, cpu (measured)", "wide CNN, batch 64, T4 (measured)"
    ]  # fmt: skip
    assert legend_of(ax) == list(PHASES)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_colours_have_a_second_cue_between_neighbours():
    looks = PHASE_LOOKS
    assert len({colour for colour, _ in looks}) == len(PHASES)
    assert all(one[1] != other[1] for one, other in zip(looks, looks[1:], strict=False))


def test_the_phases_have_a_text_alternative():
    words = alt_text(plot_phases(PROFILED, title="Where the time goes"))
    assert words.startswith("Where the time goes. Bar of a step's time, small CNN, batch 64, cpu (measured): waiting")
    assert "backward 50.0%" in words and words.endswith("10 s in all.")


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_training(None), "history=None"),
        (lambda: plot_training([CURVE]), "must be a History"),
        (lambda: plot_training(CURVE, ax=3), "ax=3"),
        (lambda: plot_training(CURVE, title=3), "title=3"),
        (lambda: plot_phases(), "at least one History"),
        (lambda: plot_phases([PROFILED]), "must be a History"),
        (lambda: plot_phases(measurement([1.0])), "must be a History"),
        (lambda: plot_phases(CURVE), "profile_phases=True"),
        (lambda: plot_phases(PROFILED, ax="x"), "ax='x'"),
        (lambda: plot_phases(PROFILED, title=3), "title=3"),
    ],
)
def test_nonsense_is_refused_in_a_students_words(draw, said):
    with pytest.raises(InputError, match=said):
        draw()
