"""Lanes and shares of a fed accelerator: every bar where the run's numbers put it."""

import pytest

from labkit.errors import InputError
from labkit.loading import PipelineRun, Step
from labkit.plotting import alt_text, plot_pipeline, plot_waiting

from .conftest import legend_of


def run(*steps, **fields):
    options = {"label": "photos", "batch": 4, "workers": 0, "start_s": 0, "accelerator": "T4", "source": "predicted"}
    return PipelineRun(steps=[Step(*step) for step in steps], **(options | fields))


# The warm-up ends at 1; then 2 s of waiting and 1 s of work, twice: 6 s, 67 % waiting, 8 images in 6 s.
HUNGRY = run((0, 1), (3, 4), (6, 7))
# One second of work after the other: no waiting, 24 images in 6 s.
FED = run(*[(n, n + 1) for n in range(7)], workers=2)
# Of each step of 2 s the first half is transfer, and one second is waited for it: a third of the time.
CARRIED = run((0, 2, 1), (3, 5, 1), (6, 8, 1), source="measured", accelerator="A100")


def bars_in_row(ax, row):
    """Return (left, width, hatch) of the bars drawn in a row, those of no length left out."""
    bars = [bar for container in ax.containers for bar in container]
    mine = [bar for bar in bars if abs(bar.get_y() + bar.get_height() / 2 - row) < 0.01 and bar.get_width() > 0]
    return [(round(bar.get_x(), 6), round(bar.get_width(), 6), bar.get_hatch()) for bar in mine]


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def test_a_lane_shows_work_on_a_ground_of_waiting():
    ax = plot_pipeline(HUNGRY)
    assert bars_in_row(ax, 0) == [(0, 6, "..."), (2, 1, None), (5, 1, None)]
    assert texts_of(ax) == ["waits 67%"]
    assert legend_of(ax) == ["working", "waiting for a batch"]
    assert ax.get_title(loc="left") == "Fed: T4 (predicted)"


def test_the_transfer_is_the_first_part_of_a_step():
    ax = plot_pipeline(CARRIED)
    assert bars_in_row(ax, 0) == [(0, 6, "..."), (1, 1, "///"), (2, 1, None), (4, 1, "///"), (5, 1, None)]
    assert legend_of(ax) == ["working", "carrying the batch over", "waiting for a batch"]


def test_all_lanes_show_the_same_stretch_of_time():
    long = run(*[(3 * n, 3 * n + 1) for n in range(30)])  # 87 s; eight of its steps are 24 s
    ax = plot_pipeline({"long": long, "fed": run(*[(n, n + 1) for n in range(100)])})
    assert [sum(width for _, width, hatch in bars_in_row(ax, row) if hatch) for row in (0, 1)] == [24, 24]
    assert len(bars_in_row(ax, 1)) == 25
    short = plot_pipeline({"long": long, "fed": FED})
    assert bars_in_row(short, 0)[0] == (0, 6, "...")


def test_a_step_that_goes_on_beyond_the_stretch_is_cut():
    ax = plot_pipeline({"a": run((0, 1), (2, 3), (4, 5)), "b": run((0, 1), (2, 9), (9, 16))})
    assert bars_in_row(ax, 1) == [(0, 4, "..."), (1, 3, None)]


def test_shares_fill_the_bar():
    ax = plot_waiting({"hungry": HUNGRY, "fed": FED, "carried": CARRIED})
    assert bars_in_row(ax, 0) == [
        (0, pytest.approx(1 / 3, abs=1e-5), None),
        (pytest.approx(1 / 3, abs=1e-5), pytest.approx(2 / 3, abs=1e-5), "..."),
    ]
    assert bars_in_row(ax, 1) == [(0, 1, None)]
    assert [hatch for *_, hatch in bars_in_row(ax, 2)] == [None, "///", "..."]
    assert [width for _, width, _ in bars_in_row(ax, 2)] == pytest.approx([1 / 3] * 3, abs=1e-5)
    assert texts_of(ax) == ["waits 67%, 1.33 images/s", "waits 0%, 4 images/s", "waits 33%, 1.33 images/s"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["hungry", "fed", "carried"]


@pytest.mark.parametrize("plot", [plot_pipeline, plot_waiting])
def test_the_text_alternative_holds_the_numbers_and_their_source(plot):
    words = alt_text(plot({"hungry": HUNGRY, "fed": FED}))
    assert "T4 (predicted)" in words
    assert "hungry: waits 67%, 1.33 images/s. fed: waits 0%, 4 images/s." in words
    assert plot(HUNGRY, title="Mine").get_title(loc="left") == "Mine"


@pytest.mark.parametrize("plot", [plot_pipeline, plot_waiting])
@pytest.mark.parametrize("wrong", [{}, 7, [HUNGRY], {"x": 7}, {"": HUNGRY}, {1: HUNGRY}, None])
def test_anything_but_runs_is_refused(plot, wrong):
    with pytest.raises(InputError):
        plot(wrong)
