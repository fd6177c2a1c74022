import pytest

from labkit.comparison import Amdahl, crossover
from labkit.errors import InputError
from labkit.plotting import plot_scaling, plot_speedup

from .conftest import legend_of, series_of, sweep

# Two equal samples each: they have no spread, while a lone sample counts as uncertain.
CPU = {10: [1e-6] * 2, 100: [1e-4] * 2, 1000: [1e-2] * 2}
GPU = {10: [1e-5] * 2, 100: [1e-5] * 2, 1000: [1e-4] * 2}  # ten times slower at 10, ten times faster at 100


def guides_of(ax):
    return [line for line in ax.lines if line.get_gid() == "labkit-guide"]


def test_the_ratio_is_baseline_over_new_with_a_line_at_one():
    ax = plot_speedup(sweep(CPU, label="loop"), sweep(GPU, label="add", source="predicted"))
    (line,) = series_of(ax)
    assert list(line.get_ydata()) == pytest.approx([0.1, 10, 100])
    assert line.get_linestyle() == ":"
    assert legend_of(ax) == ["add, cpu (predicted)", "equally fast"]
    assert any(list(line.get_ydata()) == [1, 1] for line in ax.lines)
    assert ax.get_title(loc="left") == "Speedup over loop, cpu (measured)"
    assert ax.get_yscale() == "log" and ax.yaxis.get_major_formatter()(10) == "10×"


def test_the_band_is_the_range_that_both_spreads_allow():
    base = sweep({5: [1.0, 2.0, 3.0, 4.0, 5.0]})  # quartiles 2 and 4
    ax = plot_speedup(base, sweep({5: [0.5, 0.5]}))
    assert sorted(ax.collections[0].get_segments()[0][:, 1]) == pytest.approx([4.0, 8.0])


def test_a_ratio_over_a_prediction_is_a_prediction():
    ax = plot_speedup(sweep(CPU, source="predicted"), sweep(GPU))
    assert legend_of(ax)[0] == "matmul, cpu (measured); the ratio is predicted"
    assert series_of(ax)[0].get_linestyle() == ":"


def test_values_without_a_baseline_are_left_out_and_counted():
    ax = plot_speedup(sweep({10: [1.0], 20: [1.0]}), sweep({10: [1.0], 30: [1.0]}, oom=(40,)))
    assert list(series_of(ax)[0].get_xdata()) == [10]
    assert "2 points without a baseline left out" in legend_of(ax)[0]


def test_the_crossover_is_a_line_with_its_range_shaded():
    base, new = sweep(CPU), sweep(GPU)
    ax = plot_speedup(base, new, crossover=crossover(base, new))
    # The ratio goes from 0.1 to 10 between 10 and 100: it is 1 halfway in the logarithm.
    assert guides_of(ax)[0].get_xdata()[0] == pytest.approx(10**1.5)
    assert legend_of(ax)[-1] == "crossover at n ≈ 32, range 32 to 32 (measured)"


def test_no_crossover_is_said_too():
    base, new = sweep(GPU), sweep({n: [10 * time for time in times] for n, times in GPU.items()})
    assert "never faster" in legend_of(plot_speedup(base, new, crossover=crossover(base, new)))[-1]
    assert "from the smallest value on" in legend_of(plot_speedup(new, base, crossover=[crossover(new, base)]))[-1]


def test_scaling_shows_speedup_ideal_and_the_fit():
    threads = sweep({1: [8.0], 2: [5.0], 4: [3.5]}, parameter="threads")
    ax = plot_scaling(threads, amdahl=Amdahl(serial=0.25, single_s=8.0))
    assert list(series_of(ax)[0].get_ydata()) == pytest.approx([1, 1.6, 8 / 3.5])
    ideal, fit = guides_of(ax)
    assert ideal.get_ydata()[-1] == pytest.approx(4)
    assert fit.get_ydata()[-1] == pytest.approx(1 / (0.25 + 0.75 / 4))  # Amdahl's formula
    assert legend_of(ax)[-1] == "Amdahl's law fitted to the measured times: 25% serial, never above 4×"
    assert [ax.xaxis.get_major_formatter()(x) for x in ax.get_xticks()] == ["1", "2", "4"]


def test_many_threads_stand_on_logarithmic_axes():
    wide = sweep({1: [64.0], 64: [1.0]}, parameter="threads")
    assert plot_scaling(wide).get_xscale() == "log"


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_speedup(sweep(CPU)), "compares two"),
        (lambda: plot_speedup(sweep(CPU), 3), "not a Sweep"),
        (lambda: plot_speedup(sweep(CPU), sweep({7: [1.0]})), "share no value"),
        (lambda: plot_speedup(sweep(CPU), sweep(GPU, parameter="batch")), "two parameters"),
        (lambda: plot_speedup(sweep(CPU), sweep(GPU), crossover=3), "3"),
        (lambda: plot_scaling(sweep(CPU)), "over n"),
        (lambda: plot_scaling(sweep({1: [1.0]}, parameter="threads")), "two or more"),
        (lambda: plot_scaling(sweep({1: [1.0], 2: [1.0]}, parameter="threads"), amdahl=0.3), "amdahl=0.3"),
    ],
)
def test_nonsense_is_refused_in_a_students_words(draw, said):
    with pytest.raises(InputError, match=said):
        draw()
