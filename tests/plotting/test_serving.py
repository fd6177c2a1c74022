import pytest

from labkit.errors import InputError
from labkit.inference import LoadRun, Request, predict_load
from labkit.plotting import alt_text, plot_latency, plot_load, plot_queue

from .conftest import legend_of, measurement, series_of


def guides_of(ax):
    return [line for line in ax.lines if line.get_gid() == "labkit-guide"]


def run_of(rows, *, rate_per_s=1.0, duration_s=10.0, **fields):
    requests = [Request(*row) for row in rows]
    return LoadRun(label="net", rate_per_s=rate_per_s, duration_s=duration_s, requests=requests, **fields)


# --- latency -------------------------------------------------------------------------------------------------------


def test_the_curve_is_the_share_of_calls_and_the_marks_are_the_percentiles():
    ax = plot_latency(measurement([0.004, 0.001, 0.003, 0.002]))
    (curve,) = series_of(ax)
    assert list(curve.get_xdata()) == [0.001, 0.002, 0.003, 0.004]
    assert list(curve.get_ydata()) == [25, 50, 75, 100]
    (marks,) = (line for line in ax.lines if line.get_gid() == "labkit-mark")
    assert list(zip(marks.get_xdata(), marks.get_ydata(), strict=True)) == [(0.002, 50), (0.004, 95), (0.004, 99)]
    assert legend_of(ax) == ["mm, cpu (measured): p50 2 ms, p95 4 ms, p99 4 ms"]
    assert ax.get_xscale() == "log"


def test_a_limit_is_a_line_and_stands_in_the_words():
    ax = plot_latency(measurement([0.001] * 4), limit_s=0.05, title="Slow?")
    (limit,) = guides_of(ax)
    assert list(limit.get_xdata()) == [0.05, 0.05]
    assert alt_text(ax).startswith("Slow? Share of the calls") and "limit 50 ms" in alt_text(ax)


def test_calls_of_one_label_are_told_apart():
    fast = measurement([0.001] * 4, label="net")
    slow = measurement([0.002] * 4, label="net")
    assert [text.split(",")[0] for text in legend_of(plot_latency(fast, slow))] == ["net", "net"]
    first, second = series_of(plot_latency(fast, slow))
    assert first.get_color() != second.get_color()


# --- load ----------------------------------------------------------------------------------------------------------


def test_a_run_is_a_mean_and_a_p95_above_its_load():
    """Two seconds each at 0 and 1: waits 0 and 1 s, answers after 2 and 3 s; four seconds of work in ten."""
    ax = plot_load(run_of([(0, 0, 2), (1, 2, 4)]), limit_s=5)
    theory, mean, p95 = series_of(ax)
    assert list(mean.get_xdata()) == [0.4] and list(mean.get_ydata()) == [2.5]
    assert list(p95.get_ydata()) == [3]
    assert theory.get_linestyle() == ":" and mean.get_linestyle() == "None"
    half = min(zip(theory.get_xdata(), theory.get_ydata(), strict=True), key=lambda point: abs(point[0] - 0.5))
    assert half[1] == pytest.approx(2 + 2 * half[0] / (2 * (1 - half[0])))  # M/D/1: service + wait
    assert [list(line.get_xdata()) for line in guides_of(ax)][0] == [1, 1]
    assert legend_of(ax)[-1] == "limit 5 s"


def test_measured_and_predicted_runs_are_not_mixed():
    measured = run_of([(0, 0, 2), (1, 2, 4)])
    predicted = predict_load(2.0, rate_per_s=0.1, duration_s=1000)
    labels = legend_of(plot_load(measured, predicted))
    assert [label for label in labels if label.startswith("mean, ")] == [
        "mean, a server of known times (predicted)",
        "mean, cpu (measured)",
    ]


def test_an_overloaded_run_stays_in_view():
    heavy = predict_load(0.01, rate_per_s=200, duration_s=5)
    ax = plot_load(heavy)
    assert ax.get_xlim()[1] > heavy.load > 1.9


# --- the queue -----------------------------------------------------------------------------------------------------


def test_few_steps_are_drawn_as_they_are():
    ax = plot_queue(run_of([(0, 0, 2), (1, 2, 4), (1.5, 4, 6)]))
    (line,) = series_of(ax)
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == [
        (0, 0), (1, 1), (1.5, 2), (2, 1), (4, 0), (10, 0),
    ]  # fmt: skip
    assert line.get_drawstyle() == "steps-post"
    assert "at most 2" in alt_text(ax)


def test_of_many_steps_no_peak_is_lost():
    run = predict_load(0.01, rate_per_s=95, duration_s=60)
    (line,) = series_of(plot_queue(run))
    assert len(line.get_xdata()) <= 201
    assert max(line.get_ydata()) == max(length for _, length in run.queue()) > 5
    lengths = dict(run.queue())
    for at_s, most in zip(line.get_xdata()[:-1], line.get_ydata()[:-1], strict=True):
        held = max((time_s for time_s in lengths if time_s <= at_s), default=0)
        assert most >= lengths[held]


def test_a_run_that_was_overloaded_ends_with_the_queue_that_is_left():
    run = run_of([(0, 0, 10), (1, 10, 20)], unanswered=[2.0, 3.0])
    (line,) = series_of(plot_queue(run))
    assert list(line.get_ydata())[-1] == 2 and list(line.get_xdata())[-1] == 20


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_latency(), "nothing"),
        (lambda: plot_latency([0.001]), "not a Measurement"),
        (lambda: plot_latency(measurement([1.0], source="predicted")), "no single calls"),
        (lambda: plot_latency(measurement([1.0], calls_per_sample=5)), "mean of 5 calls"),
        (lambda: plot_latency(measurement([1.0]), limit_s=0), "limit_s"),
        (lambda: plot_load(), "nothing"),
        (lambda: plot_load(3), "not a LoadRun"),
        (lambda: plot_load(run_of([])), "no request was answered"),
        (lambda: plot_load(run_of([(0, 0, 1)], most_in_batch=4)), "one by one"),
        (lambda: plot_queue(), "nothing"),
        (lambda: plot_queue("run"), "not a LoadRun"),
    ],
)
def test_nonsense_is_refused(draw, said):
    with pytest.raises(InputError, match=said):
        draw()
