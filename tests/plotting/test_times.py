import numpy as np
import pytest

from labkit.errors import InputError
from labkit.measurement import Point, Sweep
from labkit.plotting import plot_throughput, plot_times

from .conftest import legend_of, measurement, series_of, sweep

CUBIC = {10: [1e-6, 2e-6, 3e-6, 4e-6, 1e-5], 100: [1e-3] * 5, 1000: [1.0] * 5}


def test_medians_are_drawn_with_the_quartiles_as_a_band_on_logarithmic_axes():
    ax = plot_times(sweep(CUBIC))
    (line,) = series_of(ax)
    assert list(line.get_xdata()) == [10, 100, 1000]
    assert list(line.get_ydata()) == [3e-6, 1e-3, 1.0]
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    assert {y for x, y in corners if x == 10} == {2e-6, 4e-6}  # the quartiles of 1, 2, 3, 4, 10
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "n" and "time per call" in ax.get_ylabel()


def test_ticks_are_written_with_units():
    ax = plot_times(sweep({16: [1e-6], 1024: [1e-2]}))
    assert [ax.yaxis.get_major_formatter()(y) for y in (1e-6, 1e-5, 1e-3, 1)] == ["1 µs", "10 µs", "1 ms", "1 s"]
    assert [ax.xaxis.get_major_formatter()(x) for x in ax.get_xticks()] == ["16", "1,024"]
    ax = plot_times(sweep({1000: [1e-6], 10**6: [1e-3]}, parameter="block_bytes"))
    assert [ax.xaxis.get_major_formatter()(x) for x in ax.get_xticks()] == ["1 kB", "1 MB"]
    assert ax.get_xlabel() == "block"


@pytest.mark.parametrize(
    ("source", "dashes", "filled", "markers"),
    [("measured", "-", True, "os^DvPX"), ("recorded", "--", False, "os^DvPX"), ("predicted", ":", None, ["x", "+"])],
)
def test_each_source_has_its_own_line_and_filling_and_stands_in_the_legend(source, dashes, filled, markers):
    ax = plot_times(sweep({1: [1e-3], 2: [2e-3]}, source=source), sweep({1: [1e-3], 2: [3e-3]}, source=source))
    first, second = series_of(ax)
    assert first.get_linestyle() == second.get_linestyle() == dashes
    if filled is not None:
        assert first.get_markerfacecolor() == (first.get_color() if filled else "white")
    assert first.get_marker() in markers and second.get_marker() in markers
    assert first.get_marker() != second.get_marker() and first.get_color() != second.get_color()
    assert all(f"({source})" in text for text in legend_of(ax))


def test_eight_series_differ_in_colour_or_marker():
    ax = plot_times(*(sweep({1: [1e-3]}, label=f"s{i}") for i in range(20)))
    assert len({(line.get_color(), line.get_marker()) for line in series_of(ax)}) == 20


def test_out_of_memory_points_are_labelled_crosses_at_the_upper_edge():
    ax = plot_times(sweep(CUBIC, oom=(2000, 4000)))
    (crosses,) = (line for line in ax.lines if line.get_gid() == "labkit-mark")
    assert list(crosses.get_xdata()) == [2000, 4000] and crosses.get_marker() == "X"
    assert min(crosses.get_ydata()) > 0.9 and crosses.get_transform() != ax.transData
    assert [text.get_text() for text in ax.texts] == ["out of memory"]
    assert ax.get_xlim()[1] > 4000


def test_a_sweep_where_nothing_fitted_still_shows_its_crosses():
    nothing = Sweep(label="matmul", parameter="n", points=[Point(value=9, outcome="out of memory")])
    ax = plot_times(nothing, sweep({3: [1.0]}), slope=3)
    assert legend_of(ax)[0] == "matmul (nothing measured)"


def test_an_interrupted_sweep_says_so():
    assert legend_of(plot_times(sweep(CUBIC, complete=False)))[0].endswith("(measured), interrupted")


def test_the_guide_has_the_slope_that_it_names():
    ax = plot_times(sweep(CUBIC), slope=3)
    (guide,) = (line for line in ax.lines if line.get_gid() == "labkit-guide")
    xs, ys = guide.get_data()
    assert np.log(ys[1] / ys[0]) / np.log(xs[1] / xs[0]) == pytest.approx(3)
    assert legend_of(ax)[-1] == "slope 3: twice the n, 8 times the time"


def test_throughput_is_the_work_over_the_time_and_its_band_is_turned_round():
    ax = plot_throughput(sweep({8: [1.0, 2.0, 4.0, 5.0, 8.0]}, flop=8e9))
    (line,) = series_of(ax)
    assert list(line.get_ydata()) == [2e9]  # 8 GFLOP in the median of 4 s
    (bar,) = ax.collections
    assert sorted(bar.get_segments()[0][:, 1]) == pytest.approx([8e9 / 5, 8e9 / 2])
    assert ax.yaxis.get_major_formatter()(2e9) == "2 GFLOP/s"


def test_bytes_per_second_and_peaks_with_their_source():
    ax = plot_throughput(
        sweep({8: [2.0]}, bytes_moved=6e9), quantity="bytes_per_s", peaks=[("T4", 320e9), ("copy", 9e9, "measured")]
    )
    assert list(series_of(ax)[0].get_ydata()) == [3e9]
    assert [text.get_text() for text in ax.texts] == ["T4: 320 GB/s (predicted)", "copy: 9 GB/s (measured)"]
    guides = [line for line in ax.lines if line.get_gid() == "labkit-guide"]
    assert [(line.get_ydata()[0], line.get_linestyle()) for line in guides] == [(320e9, ":"), (9e9, "-")]


def test_images_per_second_are_the_batch_over_the_time():
    points = [
        Point(value=width, measurement=measurement([time_s], parameters={"batch": 32, "width": width}))
        for width, time_s in ((8, 0.5), (16, 2.0))
    ]
    ax = plot_throughput(Sweep(label="step", parameter="width", points=points), quantity="images_per_s")
    assert list(series_of(ax)[0].get_ydata()) == [64, 16]
    assert ax.yaxis.get_major_formatter()(64) == "64"  # the axis names the unit
    assert ax.get_ylabel().startswith("images per second")


def test_implausible_points_are_left_out_and_counted():
    good = Point(value=1, measurement=measurement([1.0], flop=1e9))
    bad = Point(value=2, measurement=measurement([1e-9], flop=1e9, implausible="above the stated peak"))
    ax = plot_throughput(Sweep(label="mm", parameter="n", points=[good, bad]))
    assert list(series_of(ax)[0].get_xdata()) == [1]
    assert legend_of(ax)[0].endswith("1 point left out (implausible)")


def test_drawing_into_given_axes_goes_on_with_the_next_colour():
    ax = plot_times(sweep(CUBIC))
    assert plot_times(sweep(CUBIC, label="again"), ax=ax) is ax
    first, second = series_of(ax)
    assert first.get_color() != second.get_color()
    assert len(legend_of(ax)) == 2


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_times(), "nothing"),
        (lambda: plot_times([1, 2]), "not a Sweep"),
        (lambda: plot_times(sweep(CUBIC), sweep(CUBIC, parameter="batch")), "sweeps over n and batch"),
        (lambda: plot_times(sweep(CUBIC), slope=-1), "slope=-1"),
        (lambda: plot_times(sweep(CUBIC), ax="left"), "ax='left'"),
        (lambda: plot_throughput(sweep(CUBIC)), "its flop is"),
        (lambda: plot_throughput(sweep(CUBIC), quantity="images_per_s"), "its batch is. Say how much one call does"),
        (lambda: plot_throughput(sweep(CUBIC, flop=1.0), quantity="flops"), "quantity='flops'"),
        (lambda: plot_throughput(sweep(CUBIC, flop=1.0), peaks=[("T4", -1)]), "T4=-1"),
        (lambda: plot_throughput(sweep(CUBIC, flop=1.0), peaks=[("T4", 0)]), "T4=0"),
        (lambda: plot_throughput(sweep(CUBIC, flop=1.0), peaks="T4"), "peaks='T4'"),
        (lambda: plot_throughput(sweep(CUBIC, flop=1.0), peaks=[("T4", 1.0, "rumour")]), "rumour"),
    ],
)
def test_nonsense_is_refused_in_a_students_words(draw, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        draw()


@pytest.mark.parametrize(
    ("times", "ticks"),
    [
        ((1e-6, 1e-3), ["1 µs", "10 µs", "100 µs", "1 ms"]),
        ((1e-3, 7200), ["1 ms", "10 ms", "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h"]),
        ((100, 2000), ["2 min", "5 min", "10 min", "20 min", "30 min"]),
        ((60, 600_000), ["1 min", "10 min", "1 h", "10 h", "1 day"]),
    ],
)
def test_long_times_are_told_in_minutes_hours_and_days(times, ticks):
    ax = plot_times(sweep({1: [times[0]], 2: [times[1]]}))
    low, high = times
    shown = [ax.yaxis.get_major_formatter()(tick) for tick in ax.get_yticks() if low <= tick <= high]
    assert shown == ticks


@pytest.mark.parametrize(("count", "ticked"), [(100, True), (5000, False)])
def test_thousands_of_values_have_no_tick_each(count, ticked):
    ax = plot_times(sweep({value: [1e-6 * value] for value in range(1, count + 1)}))
    assert (len(ax.xaxis.get_minorticklocs()) > 0) is ticked
