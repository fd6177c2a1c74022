import pytest

from labkit.errors import InputError
from labkit.plotting import alt_text, plot_bars, plot_values
from labkit.units import format_bytes

from .conftest import measurement

SLOW = measurement([8.0] * 4, label="loop", flop=16e9)
FAST = measurement([1.0, 2.0, 3.0, 4.0, 5.0], label="sum", flop=16e9)  # quartiles 2 and 4, median 3
GUESS = measurement([0.5], label="sum", source="predicted", flop=16e9)


def bars_of(ax):
    return [bar for container in ax.containers for bar in container if hasattr(bar, "get_width")]


def ends_of(ax):
    return [bar.get_x() + bar.get_width() for bar in bars_of(ax)]


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def whisker_ends(ax):
    return [tuple(line.get_segments()[0][:, 0]) for line in ax.collections]


def test_time_is_the_default_first_on_top_with_the_value_at_the_end():
    ax = plot_bars([SLOW, FAST])
    assert ends_of(ax) == [8.0, 3.0]
    assert texts_of(ax) == ["8 s", "3 s"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["loop\ncpu (measured)", "sum\ncpu (measured)"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # row 0 on top
    assert ax.get_xscale() == "log" and "time per call" in ax.get_xlabel()
    assert whisker_ends(ax) == [(2.0, 4.0)]  # none for a measurement without spread


def test_images_per_second_have_their_unit_at_the_bar_and_on_the_axis():
    ax = plot_bars([measurement([0.5], parameters={"batch": 64})], value="images_per_s")
    assert (ends_of(ax), texts_of(ax)) == ([128], ["128 images/s"])
    assert ax.xaxis.get_major_formatter()(100) == "100"
    assert ax.get_xlabel().startswith("images per second")


def test_the_bars_may_show_something_that_is_no_call():
    assert plot_bars([FAST], x_label="time of a training").get_xlabel() == "time of a training (whiskers: middle half)"


def test_a_mark_is_a_named_line_that_the_axis_has_room_for():
    ax = plot_bars([SLOW, FAST], mark=("your patience", 600.0))
    (line,) = (line for line in ax.lines if line.get_label().startswith("your patience"))
    assert list(line.get_xdata()) == [600.0, 600.0] and ax.get_xlim()[1] > 600
    assert texts_of(ax) == ["8 s", "3 s", "your patience: 10 min"]
    assert ax.texts[-1].get_ha() == "right"  # the line stands at the right end: the text has its room on the left
    assert alt_text(ax).endswith("For comparison: your patience: 10 min.")


@pytest.mark.parametrize("mark", ["patience", ("patience", -1), ("patience", float("nan")), (3600, "patience")])
def test_a_mark_that_is_none_is_refused(mark):
    with pytest.raises(InputError, match="mark"):
        plot_bars([SLOW], mark=mark)


@pytest.mark.parametrize(
    ("value", "ends", "texts", "whiskers"),
    [
        ("flop_per_s", [2e9, 16e9 / 3], ["2 GFLOP/s", "5.33 GFLOP/s"], (4e9, 8e9)),
        ("speedup", [1.0, 8 / 3], ["1×", "2.67×"], None),
    ],
)
def test_throughput_and_speedup(value, ends, texts, whiskers):
    ax = plot_bars([SLOW, FAST], value=value, baseline=SLOW, log=False)
    assert ends_of(ax) == pytest.approx(ends)
    assert texts_of(ax) == texts
    assert ax.get_xscale() == "linear"
    if whiskers:
        assert whisker_ends(ax)[0] == pytest.approx(whiskers)


def test_speedups_start_at_one_so_that_slower_points_the_other_way():
    ax = plot_bars([SLOW], value="speedup", baseline=FAST)
    (bar,) = bars_of(ax)
    assert bar.get_x() + bar.get_width() == pytest.approx(3 / 8)
    assert bar.get_x() == 1 and bar.get_width() < 0


def test_hatches_and_colours_tell_the_sources_apart():
    recorded = measurement([0.4], label="sum", source="recorded")
    bars = bars_of(plot_bars([FAST, recorded, GUESS]))
    assert [bar.get_hatch() or "" for bar in bars] == ["", "///", "..."]
    assert len({bar.get_edgecolor() for bar in bars}) == 3


def test_equal_tasks_are_named_by_device_and_source_alone():
    ax = plot_bars([FAST, GUESS])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["cpu (measured)", "cpu (predicted)"]


def test_long_names_are_broken_before_the_threads():
    long = measurement([1.0], device_name="Intel Xeon Platinum 8481C CPU @ 2", threads=2)
    ax = plot_bars([long])
    assert ax.get_yticklabels()[0].get_text().split("\n")[1:] == [
        "Intel Xeon Platinum 8481C CPU @ 2,",
        "2 threads (measured)",
    ]


def test_implausible_throughput_has_no_bar_but_a_reason():
    bad = measurement([1e-9], flop=1e9, implausible="above the stated peak")
    ax = plot_bars([FAST, bad], value="flop_per_s")
    assert texts_of(ax)[1].startswith("implausible")
    assert bars_of(ax)[1].get_width() == 0


def test_there_is_room_for_the_text_right_of_the_longest_bar():
    for log in (True, False):
        ax = plot_bars([SLOW, FAST], log=log)
        share, _ = (ax.transData - ax.transAxes).transform((8.0, 0))
        assert 0.7 < share < 0.8


def test_plain_values_with_and_without_a_source_or_a_value():
    rows = [("T4", 16e9, "predicted"), ("RTX 4090", None, "predicted"), ("here", 8e9)]
    ax = plot_values(rows, unit_formatter=format_bytes, x_label="memory")
    assert texts_of(ax) == ["16 GB", "not known", "8 GB"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["T4 (predicted)", "RTX 4090 (predicted)", "here"]
    assert ax.get_xlabel() == "memory"


def test_values_of_zero_stand_on_an_even_axis_only():
    ax = plot_values([("none", 0)], unit_formatter=format_bytes, x_label="memory", log=False)
    assert texts_of(ax) == ["0 B"]
    with pytest.raises(InputError, match="log=False"):
        plot_values([("none", 0)], unit_formatter=format_bytes, x_label="memory")


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_bars([]), "nothing"),
        (lambda: plot_bars(FAST), "list of Measurements"),
        (lambda: plot_bars([1.0]), "not a Measurement"),
        (lambda: plot_bars([FAST], value="speed"), "value='speed'"),
        (lambda: plot_bars([FAST], value="speedup"), "baseline=None"),
        (lambda: plot_bars([FAST], value="bytes_per_s"), "bytes_moved"),
        (lambda: plot_bars([FAST], ax=1), "ax=1"),
        (lambda: plot_values([], unit_formatter=str, x_label=""), "at least one row"),
        (lambda: plot_values([("T4", "16 GB")], unit_formatter=str, x_label=""), "16 GB"),
        (lambda: plot_values([("T4", float("nan"))], unit_formatter=str, x_label=""), "nan"),
        (lambda: plot_values([3], unit_formatter=str, x_label=""), "rows has 3"),
        (lambda: plot_values([("T4", 3)], unit_formatter="GB", x_label=""), "GB"),
    ],
)
def test_nonsense_is_refused_in_a_students_words(draw, said):
    with pytest.raises(InputError, match=said):
        draw()
