"""Queues by hand and by theory, on clocks that move only when somebody works or sleeps."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scripted import ScriptedClock, ScriptedGpu

from labkit.errors import InputError
from labkit.inference import (
    LoadRun,
    Request,
    mean_wait_s,
    offered_load,
    poisson_arrivals,
    predict_load,
    serve,
    serving,
    under_load,
)
from labkit.measurement import Measurement, Point, Sweep, Task


def served(arrivals_s: list[float], service_s: float, *, duration_s: float = 10.0, **options: Any) -> LoadRun:
    clock = ScriptedClock()
    fn = clock.job(service_s)
    answer = (lambda count: fn()) if options.get("most_in_batch", 1) > 1 else fn
    return serve(answer, arrivals_s, duration_s=duration_s, progress=False, clock=clock, sleep=clock.work, **options)


# --- by hand -------------------------------------------------------------------------------------------------------


def test_one_by_one_by_hand() -> None:
    """Two seconds each. The second and third come while the first is served; the fourth to an idle server."""
    run = served([0.0, 1.0, 1.5, 7.0], 2.0)
    assert run.requests == ((0.0, 0.0, 2.0), (1.0, 2.0, 4.0), (1.5, 4.0, 6.0), (7.0, 7.0, 9.0))
    assert run.waiting_s == (0.0, 1.0, 2.5, 0.0)
    assert run.response_s == (2.0, 3.0, 4.5, 2.0)
    assert run.mean_wait_s == 3.5 / 4
    assert run.queue() == ((0.0, 0), (1.0, 1), (1.5, 2), (2.0, 1), (4.0, 0))
    assert run.load == 8.0 / 10  # 8 seconds of work in 10
    assert run.share_within(2.0) == 0.5 and run.share_within(4.5) == 1.0
    assert run.keeps_up and run.complete and run.unanswered == ()


def test_batches_by_hand() -> None:
    """The three that wait when the first is answered go together; with two at most, the last waits once more."""
    arrivals_s = [0.0, 1.0, 1.5, 1.75, 7.0]
    three = served(arrivals_s, 2.0, most_in_batch=3)
    assert [r.begun_s for r in three.requests] == [0.0, 2.0, 2.0, 2.0, 7.0]
    assert three.call_times_s == (2.0, 2.0, 2.0)
    assert three.load == pytest.approx(6.0 / 10)
    two = served(arrivals_s, 2.0, most_in_batch=2)
    assert [r.begun_s for r in two.requests] == [0.0, 2.0, 2.0, 4.0, 7.0]


def test_a_batch_holds_only_what_has_arrived() -> None:
    counts = []
    clock = ScriptedClock()

    def answer(count: int) -> None:
        counts.append(count)
        clock.work(1.0)

    options = {"duration_s": 5.0, "progress": False, "clock": clock, "sleep": clock.work}
    serve(answer, [0.5, 0.75, 1.0, 1.5, 2.25], most_in_batch=4, **options)
    assert counts == [1, 4, 1, 3, 1]  # the first two are the warm-up


def test_while_nobody_waits_the_server_sleeps_and_does_nothing_else() -> None:
    clock, slept = ScriptedClock(), []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.work(seconds)

    serve(clock.job(1.0), [2.0, 2.5, 6.0], duration_s=10, progress=False, clock=clock, sleep=sleep)
    assert slept == [2.0, 2.0]  # to the first arrival, and from the second answer at 4 s to the third


def test_a_sleep_that_ends_early_goes_on_and_one_that_ends_late_is_told() -> None:
    clock, early = ScriptedClock(), iter([0.5, 1.0])
    run = serve(
        clock.job(1.0), [2.0], duration_s=10, progress=False, clock=clock, sleep=lambda s: clock.work(next(early) * s)
    )
    assert run.requests == ((2.0, 2.0, 3.0),)
    clock = ScriptedClock()
    late = serve(
        clock.job(1.0), [2.0, 6.0], duration_s=10, progress=False, clock=clock, sleep=lambda s: clock.work(s + 0.25)
    )
    assert late.waiting_s == (0.25, 0.25) and late.wake_up_s == 0.25
    assert "250 ms is the system's sleep" in repr(late)


def test_nobody_waits_for_the_progress_bar(monkeypatch) -> None:
    """A bar that takes 5 ms to draw: it may be drawn in the gap of a second, and not between the two in a row."""
    clock = ScriptedClock()

    class SlowBar:
        def __init__(self, **_: Any) -> None:
            self.drawn = 0

        def __enter__(self) -> SlowBar:
            return self

        def __exit__(self, *_: Any) -> None:
            pass

        def update(self, count: int) -> None:
            self.drawn += count
            clock.work(0.005)

    bar = SlowBar()
    monkeypatch.setattr(serving, "tqdm", lambda **_: bar)
    run = serve(clock.job(0.5), [0.0, 0.25, 2.0], duration_s=10, clock=clock, sleep=clock.work)
    assert run.waiting_s == pytest.approx((0.0, 0.25, 0.0))
    assert bar.drawn == 3  # two in the gap, and the last one when all is over: a bar short of its end stays, in red


def test_the_first_calls_are_not_among_the_answers() -> None:
    clock = ScriptedClock()
    run = serve(clock.job(1.0, first=[60.0, 30.0]), [0.0], duration_s=5, progress=False, clock=clock, sleep=clock.work)
    assert run.service_s == (1.0,)


def test_on_a_gpu_an_answer_is_there_when_the_queue_is_drained(monkeypatch) -> None:
    clock = ScriptedClock()
    gpu = ScriptedGpu(clock, launch_s=0.125)
    device = gpu.install(monkeypatch)
    from labkit import devices

    monkeypatch.setattr(devices, "pick", lambda name: device)
    run = serve(gpu.job(2.0), [0.0], duration_s=5, device=device, progress=False, clock=clock, sleep=clock.work)
    assert run.service_s == (2.125,)
    assert run.legend == "Scripted GPU (measured)"


def test_too_many_requests_are_given_up_after_twice_the_duration() -> None:
    """20 requests in 10 seconds, 2 seconds each: 10 are answered by 20 s."""
    run = served([0.5 * n for n in range(20)], 2.0)
    assert len(run.requests) == 10 and run.unanswered == tuple(0.5 * n for n in range(10, 20))
    assert run.load == 4.0 and not run.keeps_up
    assert run.share_within(100.0) == 0.5
    assert run.queue()[-1] == (18.0, 10)
    assert "does NOT keep up" in repr(run)


def test_an_interrupt_keeps_what_was_answered(capsys) -> None:
    clock = ScriptedClock()
    calls = itertools.count()

    def fn() -> None:
        if next(calls) == 5:  # two calls warm up, then three answers
            raise KeyboardInterrupt
        clock.work(1.0)

    run = serve(fn, [0.0, 1.0, 2.0, 3.0, 4.0], duration_s=10, progress=False, clock=clock, sleep=clock.work)
    assert len(run.requests) == 3 and not run.complete
    assert run.unanswered == (3.0,) and run.duration_s == 3.0
    assert "3 requests were answered and are kept" in capsys.readouterr().out
    assert "Interrupted" in repr(run)


def test_an_interrupted_server_that_kept_up_is_not_said_to_fall_behind() -> None:
    clock = ScriptedClock()
    calls = itertools.count()

    def fn() -> None:
        if next(calls) == 5:
            raise KeyboardInterrupt
        clock.work(0.1)

    run = serve(fn, [0.0, 1.0, 2.0, 3.0], duration_s=10, progress=False, clock=clock, sleep=clock.work)
    assert run.unanswered == (3.0,) and run.load < 1
    assert run.keeps_up and "NOT keep up" not in repr(run)


def test_threads_are_as_asked_while_it_runs_and_as_before_afterwards() -> None:
    before, seen = torch.get_num_threads(), set()
    clock = ScriptedClock()

    def fn() -> None:
        seen.add(torch.get_num_threads())
        clock.work(1.0)

    run = serve(fn, [0.0], duration_s=5, threads=1, progress=False, clock=clock, sleep=clock.work)
    assert seen == {1} and run.threads == 1 and torch.get_num_threads() == before
    assert run.legend.endswith(", 1 thread (measured)")


# --- by theory -----------------------------------------------------------------------------------------------------


def test_arrivals_are_a_poisson_process() -> None:
    """Counts per second have mean = variance = rate; gaps have the median ln 2 / rate; the seed decides."""
    arrivals_s = poisson_arrivals(20, 5000, seed=3)
    counts = [0] * 5000
    for at_s in arrivals_s:
        counts[int(at_s)] += 1
    mean = sum(counts) / 5000
    assert mean == pytest.approx(20, rel=0.01)
    assert sum((count - mean) ** 2 for count in counts) / 5000 == pytest.approx(20, rel=0.05)
    gaps_s = sorted(later - sooner for sooner, later in itertools.pairwise(arrivals_s))
    assert gaps_s[len(gaps_s) // 2] == pytest.approx(math.log(2) / 20, rel=0.02)
    assert poisson_arrivals(20, 10, seed=3) == arrivals_s[: len(poisson_arrivals(20, 10, seed=3))]
    assert poisson_arrivals(20, 10, seed=4) != poisson_arrivals(20, 10, seed=3)


@pytest.mark.parametrize(("load", "duration_s", "within"), [(0.2, 2000, 0.05), (0.5, 2000, 0.05), (0.8, 2000, 0.08)])
def test_waiting_follows_the_queue_m_d_1(load: float, duration_s: float, within: float) -> None:
    """load · service / (2 · (1 - load)), by the textbook: the server knows nothing of it."""
    service_s = 0.010
    clock = ScriptedClock()
    run = under_load(
        clock.job(service_s), rate_per_s=load / service_s, duration_s=duration_s, progress=False, clock=clock,
        sleep=clock.work,
    )  # fmt: skip
    assert run.mean_wait_s == pytest.approx(load * service_s / (2 * (1 - load)), rel=within)
    assert run.load == pytest.approx(load, rel=0.02)
    assert run.expected_wait_s == pytest.approx(run.mean_wait_s, rel=within + 0.03)


def test_littles_law() -> None:
    """The mean number that waits, over time, is the arrivals per second times the mean wait."""
    run = predict_load(0.010, rate_per_s=90, duration_s=100)
    end_s = run.requests[-1].answered_s
    steps = [*run.queue(), (end_s, 0)]
    area = sum(length * (after - at_s) for (at_s, length), (after, _) in itertools.pairwise(steps))
    assert area / end_s == pytest.approx(run.arrived / end_s * run.mean_wait_s)


def test_formula_by_hand() -> None:
    assert mean_wait_s(0.25, [1.0, 3.0]) == 1.25  # load 0.5, E[S²] = 5: 0.25 · 5 / (2 · 0.5)
    assert mean_wait_s(0.5, 1.0) == 0.5
    assert mean_wait_s(0.0, 1.0) == 0.0
    assert mean_wait_s(1.0, 1.0) == mean_wait_s(7.0, [1.0]) == math.inf
    assert offered_load(0.25, [1.0, 3.0]) == 0.5


def test_batches_let_the_server_keep_up() -> None:
    """150 requests a second, 10 ms a call: one by one it can answer 100, in batches of 8 up to 800."""
    alone = predict_load(0.010, rate_per_s=150, duration_s=20)
    together = predict_load(0.010, rate_per_s=150, duration_s=20, most_in_batch=8)
    assert not alone.keeps_up and together.keeps_up
    assert together.response.p95_s <= 0.020 < alone.response.p50_s  # at most a call to wait for, and its own


# --- predicted -----------------------------------------------------------------------------------------------------


def measured(times_s: list[float], **fields: Any) -> Measurement:
    fields = {"device_name": "Some CPU", "threads": 2} | fields
    return Measurement(task=Task(label="net", parameters={"batch": 1}), times_s=times_s, **fields)


def test_the_predicted_run_is_the_run_that_a_server_of_these_times_would_have() -> None:
    predicted = predict_load(0.010, rate_per_s=70, duration_s=20, seed=5)
    clock = ScriptedClock()
    options = {"rate_per_s": 70, "duration_s": 20, "seed": 5, "progress": False}
    run = under_load(clock.job(0.010), clock=clock, sleep=clock.work, **options)
    assert len(predicted.requests) == len(run.requests)
    for one, other in zip(predicted.requests, run.requests, strict=True):
        assert one == pytest.approx(other)
    assert (predicted.source, run.source) == ("predicted", "measured")


def test_samples_are_drawn_and_the_device_is_named() -> None:
    run = predict_load(measured([0.010, 0.030]), rate_per_s=10, duration_s=500)
    slow = sum(time_s > 0.020 for time_s in run.service_s) / len(run.requests)
    assert {round(time_s, 6) for time_s in run.service_s} == {0.010, 0.030}
    assert slow == pytest.approx(0.5, abs=0.03)
    assert run.legend == "Some CPU, 2 threads (predicted)"


def test_a_sweep_gives_every_batch_a_time() -> None:
    points = [Point(value=value, measurement=measured([time_s])) for value, time_s in ((1, 0.010), (5, 0.018))]
    found = Sweep(label="net", parameter="batch", points=points)
    run = predict_load(found, rate_per_s=200, duration_s=20, most_in_batch=5)
    per_call = {}
    for request in run.requests:
        per_call.setdefault((request.begun_s, request.answered_s), []).append(request)
    assert {len(requests) for requests in per_call.values()} == {1, 2, 3, 4, 5}
    for (begun_s, answered_s), requests in per_call.items():
        assert answered_s - begun_s == pytest.approx(0.008 + 0.002 * len(requests))


# --- the real clock, and nonsense ----------------------------------------------------------------------------------


def test_in_real_time_requests_are_answered_in_their_order_and_calls_do_not_overlap() -> None:
    start_s, busy_s = time.perf_counter(), time.process_time()
    run = under_load(lambda: None, rate_per_s=50, duration_s=0.3, seed=1, progress=False)
    assert time.perf_counter() - start_s >= run.requests[-1].arrived_s
    assert time.process_time() - busy_s < 0.25  # a server that looks at the clock all the time would have burnt 0.3 s
    assert [r.arrived_s for r in run.requests] == list(poisson_arrivals(50, 0.3, seed=1))
    for one, after in itertools.pairwise(run.requests):
        assert one.answered_s <= after.begun_s


def test_times_from_arrival_to_answer_can_be_recorded() -> None:
    kept = served([0.0, 1.0], 2.0).responses()
    assert kept.times_s == (2.0, 3.0) and kept.task.label == "inference under load"
    assert Measurement.from_dict(kept.to_dict()) == kept
    assert predict_load(0.1, rate_per_s=1, duration_s=10).responses().source == "predicted"


def test_a_run_without_requests_says_so() -> None:
    run = served([], 2.0)
    assert run.arrived == 0 and "0 requests arrived, none was answered" in repr(run)
    for ask in (lambda: run.waiting, lambda: run.load, lambda: run.mean_wait_s, lambda: run.responses()):
        with pytest.raises(InputError, match="no request was answered"):
            ask()
    with pytest.raises(InputError, match="no request arrived"):
        run.share_within(1.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: under_load(None, rate_per_s=1, duration_s=1), "calling a function"),
        (lambda: under_load(int, rate_per_s=0, duration_s=1), "rate_per_s"),
        (lambda: under_load(int, rate_per_s=math.nan, duration_s=1), "rate_per_s"),
        (lambda: under_load(int, rate_per_s=1, duration_s=-1), "duration_s"),
        (lambda: under_load(int, rate_per_s=1e9, duration_s=1), "more than 1,000,000 requests"),
        (lambda: under_load(int, rate_per_s=1, duration_s=1, most_in_batch=0), "most_in_batch"),
        (lambda: under_load(int, rate_per_s=1, duration_s=1, threads=0), "threads"),
        (lambda: under_load(int, rate_per_s=1, duration_s=1, seed="one"), "seed"),
        (lambda: serve(int, [2.0, 1.0], duration_s=5), "one after the other"),
        (lambda: serve(int, [6.0], duration_s=5), "within duration_s"),
        (lambda: serve(int, 3.0, duration_s=5), "list or tuple"),
        (lambda: mean_wait_s(1.0, []), "at least one time"),
        (lambda: mean_wait_s(1.0, [0.0]), "service_s"),
        (lambda: mean_wait_s(-1.0, 1.0), "rate_per_s"),
        (lambda: predict_load(-1.0, rate_per_s=1, duration_s=1), "service"),
        (lambda: predict_load(None, rate_per_s=1, duration_s=1), "service"),
        (lambda: predict_load(measured([1.0]), rate_per_s=1, duration_s=1, most_in_batch=2), "one batch size only"),
        (lambda: predict_load(one_batch(4), rate_per_s=1, duration_s=1), "from batch 1"),
        (lambda: predict_load(one_batch(1), rate_per_s=1, duration_s=1, most_in_batch=2), "to the largest batch"),
        (lambda: served([0.0], 1.0, most_in_batch=2).expected_wait_s, "one by one"),
        (lambda: run_of([(1.0, 0.5, 2.0)]), "in this order"),
    ],
)
def test_nonsense_is_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


def one_batch(value: int) -> Sweep:
    return Sweep(label="net", parameter="batch", points=[Point(value=value, measurement=measured([1.0]))])


def run_of(requests: list[tuple[float, float, float]]) -> LoadRun:
    return LoadRun(label="net", rate_per_s=1, duration_s=10, requests=[Request(*row) for row in requests])
