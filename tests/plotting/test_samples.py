import pytest

from labkit.errors import InputError
from labkit.plotting import plot_over_time, plot_samples

from .conftest import legend_of, measurement, series_of


def guides_of(ax):
    return [line for line in ax.lines if line.get_gid() == "labkit-guide"]


def test_every_sample_is_a_dot_in_the_order_of_time_and_the_first_call_a_star():
    ax = plot_samples(measurement([3e-6, 1e-6, 2e-6], warm_up_s=[9e-4, 4e-6]))
    (dots,) = series_of(ax)
    assert list(dots.get_xdata()) == [1, 2, 3] and list(dots.get_ydata()) == [3e-6, 1e-6, 2e-6]
    assert dots.get_linestyle() == "None"
    star, second = (line for line in ax.lines if line.get_gid() == "labkit-mark")
    assert (star.get_marker(), list(star.get_xdata()), list(star.get_ydata())) == ("*", [-1], [9e-4])
    assert (second.get_marker(), list(second.get_xdata()), second.get_markerfacecolor()) == ("o", [0], "white")
    assert guides_of(ax)[0].get_ydata()[0] == 2e-6  # the median of 1, 2, 3: warm-up counts for nothing
    assert legend_of(ax) == ["mm, cpu (measured): median 2 µs, first call 900 µs"]


def test_the_band_reaches_from_quartile_to_quartile():
    ax = plot_samples(measurement([1.0, 2.0, 3.0, 4.0, 5.0]))
    heights = ax.patches[0].get_extents().transformed(ax.transData.inverted()).intervaly
    assert sorted(heights) == pytest.approx([2.0, 4.0])


def test_the_axis_is_logarithmic_only_where_an_even_one_would_flatten_the_samples():
    assert plot_samples(measurement([1.0, 2.0], warm_up_s=[9.0])).get_yscale() == "linear"
    assert plot_samples(measurement([1.0, 2.0], warm_up_s=[11.0])).get_yscale() == "log"


def test_equal_samples_still_give_ticks_that_differ():
    ax = plot_samples(measurement([1.0, 1.0001]))
    low, high = ax.get_ylim()
    ticks = [ax.yaxis.get_major_formatter()(tick) for tick in ax.get_yticks() if low <= tick <= high]
    assert len(ticks) >= 3 and len(set(ticks)) == len(ticks)


def test_several_measurements_differ_in_colour_and_marker():
    first, second = series_of(plot_samples(measurement([1.0, 1.1]), measurement([2.0, 2.2])))
    assert first.get_color() != second.get_color() and first.get_marker() != second.get_marker()


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_samples(), "nothing"),
        (lambda: plot_samples([1.0, 2.0]), "not a Measurement"),
        (lambda: plot_samples(measurement([1.0], source="predicted")), "no samples"),
    ],
)
def test_samples_of_nonsense_are_refused(draw, said):
    with pytest.raises(InputError, match=said):
        draw()


def test_a_run_that_slows_down_shows_it():
    ax = plot_over_time(measurement([0.01] * 50 + [0.02] * 50, flop=1e6))
    assert legend_of(ax) == [
        "mm, cpu (measured)",
        "first tenth: 100 MFLOP/s",
        "last tenth: 50 MFLOP/s, 50% below the first",
    ]
    first, last = guides_of(ax)
    assert list(first.get_xdata()) == pytest.approx([0, 0.1])  # ten calls of 10 ms
    assert list(last.get_xdata()) == pytest.approx([1.32, 1.5])  # up to the end: 50 × 10 ms + 50 × 20 ms
    assert ax.get_ylim()[0] == 0
    rates = series_of(ax)[0].get_ydata()
    assert rates[0] == pytest.approx(1e8) and rates[-1] == pytest.approx(5e7)


def test_a_sample_of_many_calls_lasts_that_many_times_as_long():
    ax = plot_over_time(measurement([0.01] * 20, calls_per_sample=10))
    assert guides_of(ax)[1].get_xdata()[1] == pytest.approx(2.0)
    assert legend_of(ax)[1] == "first tenth: 100 calls/s"


def test_the_work_decides_the_quantity_unless_it_is_named():
    run = measurement([1.0] * 20, flop=2e9, bytes_moved=3e9, parameters={"batch": 32})
    assert "2 GFLOP/s" in legend_of(plot_over_time(run))[1]
    assert "3 GB/s" in legend_of(plot_over_time(run, quantity="bytes_per_s"))[1]
    assert "32 images/s" in legend_of(plot_over_time(run, quantity="images_per_s"))[1]
    assert "1 calls/s" in legend_of(plot_over_time(run, quantity="calls_per_s"))[1]


def test_pairs_of_time_and_rate_say_their_source():
    pairs = [(float(second), 7e9) for second in range(1, 21)]
    ax = plot_over_time(pairs, quantity="flop_per_s", label="H200", source="recorded")
    assert legend_of(ax)[0] == "H200 (recorded)"
    assert legend_of(ax)[2] == "last tenth: 7 GFLOP/s, as fast as the first"
    assert series_of(ax)[0].get_linestyle() == "--"


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_over_time([1.0] * 19), "19 samples"),
        (lambda: plot_over_time(3), "3"),
        (lambda: plot_over_time([1.0, -1.0] * 20), "-1"),
        (lambda: plot_over_time([1.0] * 20, quantity="flop_per_s"), "how much work"),
        (lambda: plot_over_time([1.0] * 20, quantity="speed"), "speed"),
        (lambda: plot_over_time([1.0] * 20, source="rumour"), "rumour"),
        (lambda: plot_over_time([(2.0, 1.0), (1.0, 1.0)] * 10), "go back"),
        (lambda: plot_over_time(measurement([1.0] * 20), quantity="flop_per_s"), "flop"),
        (lambda: plot_over_time(measurement([1.0] * 20, flop=1.0, implausible="too fast")), "too fast"),
    ],
)
def test_runs_of_nonsense_are_refused(draw, said):
    with pytest.raises(InputError, match=said):
        draw()
