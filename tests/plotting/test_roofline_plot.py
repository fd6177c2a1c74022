import pytest

from labkit.errors import InputError
from labkit.plotting import plot_roofline
from labkit.roofline import Roof

from .conftest import legend_of, series_of

CPU = Roof("CPU float32", "measured", peak_flop_per_s=100e9, bandwidth_bytes_per_s=20e9)
T4 = Roof("T4 float32", "predicted", peak_flop_per_s=8e12, bandwidth_bytes_per_s=320e9)


def test_each_roof_is_a_slope_up_to_its_ridge_point_and_flat_from_there():
    line, _ = series_of(plot_roofline([CPU, T4]))
    xs, ys = line.get_data()
    assert xs[1] == 5 and ys[1] == 100e9  # 100 GFLOP/s over 20 GB/s
    assert ys[0] == pytest.approx(20e9 * xs[0])
    assert ys[2] == 100e9 and xs[2] > 25
    assert line.get_markevery() == [1]  # the ridge point is marked


def test_line_styles_and_legend_name_the_source():
    ax = plot_roofline([CPU, T4])
    assert [line.get_linestyle() for line in series_of(ax)] == ["-", ":"]
    assert legend_of(ax) == [
        "CPU float32: 100 GFLOP/s, 20 GB/s, ridge point 5 FLOP/byte (measured)",
        "T4 float32: 8 TFLOP/s, 320 GB/s, ridge point 25 FLOP/byte (predicted)",
    ]
    assert ax.get_xlabel() == "arithmetic intensity (FLOP per byte)"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_points_are_drawn_where_they_lie_and_look_like_their_source():
    rows = [("a", 2.0, 30e9, "measured"), ("b", 3.0, 40e9, "recorded"), ("c", 4.0, 50e9, "predicted")]
    ax = plot_roofline(CPU, rows)
    points = [line for line in ax.lines if line.get_gid() == "labkit-point"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in points] == [(2.0, 30e9), (3.0, 40e9), (4.0, 50e9)]
    assert [line.get_markerfacecolor() for line in points] == ["black", "white", "white"]
    assert len({line.get_marker() for line in points}) == 3
    (cross,) = (line for line in ax.lines if line.get_marker() == "x")
    assert cross.get_xdata()[0] == 4.0
    assert legend_of(ax)[1:] == ["a: 30 GFLOP/s (measured)", "b: 40 GFLOP/s (recorded)", "c: 50 GFLOP/s (predicted)"]


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_roofline([]), "nothing"),
        (lambda: plot_roofline([1]), "not a Roof"),
        (lambda: plot_roofline(CPU, 3), "points=3"),
        (lambda: plot_roofline(CPU, [("a", 1.0, 1e9)]), "points has"),
        (lambda: plot_roofline(CPU, [("a", -1.0, 1e9, "measured")]), "intensity=-1"),
        (lambda: plot_roofline(CPU, [("a", 1.0, 1e9, "guessed")]), "guessed"),
    ],
)
def test_nonsense_is_refused_in_a_students_words(draw, said):
    with pytest.raises(InputError, match=said):
        draw()
