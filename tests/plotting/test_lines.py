import pytest

from labkit.errors import InputError
from labkit.plotting import plot_lines

from .conftest import legend_of, series_of

AXES = {"x_label": "time (s)", "y_label": "sand (kg)"}


def test_lines_of_a_model_differ_by_colour_and_dashes():
    ax = plot_lines([("barrow", [0, 60], [0, 50]), ("children", [0, 60], [0, 90])], **AXES)
    first, second = series_of(ax)
    assert list(second.get_ydata()) == [0, 90]
    assert first.get_linestyle() != second.get_linestyle() and first.get_color() != second.get_color()
    assert legend_of(ax) == ["barrow", "children"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (s)", "sand (kg)")


def test_a_source_looks_as_in_every_other_figure():
    ax = plot_lines([("T4", [1, 2], [1, 2], "predicted")], x_log=True, y_log=True, **AXES)
    assert series_of(ax)[0].get_linestyle() == ":"
    assert legend_of(ax) == ["T4 (predicted)"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_marks_are_vertical_lines_with_a_name():
    ax = plot_lines([("barrow", [0, 60], [0, 50])], marks=[("overtaken", 40)], **AXES)
    assert list(ax.lines[-1].get_xdata()) == [40, 40]
    assert legend_of(ax)[-1] == "overtaken"


def test_arrays_are_lists_of_numbers_too():
    np = pytest.importorskip("numpy")
    assert list(series_of(plot_lines([("a", np.arange(3), np.ones(3))], **AXES))[0].get_xdata()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("series", "said"),
    [
        ([], "at least one line"),
        (3, "series=3"),
        ([("a", [1, 2])], "a line is a label"),
        ([("a", [1, 2], [1])], "2 x and 1 y"),
        ([("a", [], [])], "0 x and 0 y"),
        ([("a", [1], [float("nan")])], "nan"),
        ([("a", 1, 2)], "list of numbers"),
        ([("a", [1], [1], "guessed")], "guessed"),
    ],
)
def test_nonsense_is_refused_in_a_students_words(series, said):
    with pytest.raises(InputError, match=said):
        plot_lines(series, **AXES)


def test_marks_of_another_shape_are_refused():
    with pytest.raises(InputError, match="marks has"):
        plot_lines([("a", [1], [1])], marks=[3], **AXES)
