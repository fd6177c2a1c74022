import pytest
import torch
from scripted import ScriptedClock

from labkit.comparison import rank
from labkit.errors import InputError
from labkit.profiles import PROFILES
from labkit.timing import compare, measure


@pytest.fixture(autouse=True)
def profile(monkeypatch):
    monkeypatch.setenv("LABKIT_PROFILE", "quick")


class SlowingMachine(ScriptedClock):
    """A machine on which every piece of work takes longer, by half after the first half second."""

    def work(self, seconds):
        super().work(seconds * (1 + self.now_s))


def order_of(labels, **options):
    clock, order = ScriptedClock(), []

    def fn_of(label):
        def fn():
            clock.work(0.01)
            if not order or order[-1] != label:
                order.append(label)

        return fn

    compare({label: fn_of(label) for label in labels}, device="cpu", clock=clock, **options)
    return order


def test_each_function_has_its_measurement_in_the_given_order():
    clock = ScriptedClock()
    found = compare({"slow": clock.job(0.004), "fast": clock.job(0.001)}, device="cpu", clock=clock, flop=1e6)
    assert [m.task.label for m in found] == ["slow", "fast"]
    assert [m.median_s for m in found] == pytest.approx([0.004, 0.001])
    assert [m.task.flop for m in found] == [1e6, 1e6]
    assert rank(found).winner is found[1]


# C02-09
def test_the_rounds_are_shuffled_and_every_function_runs_once_in_each():
    labels = ["a", "b", "c", "d"]
    order = order_of(labels, rounds=5)
    rounds = [order_of(labels, rounds=1, seed=seed) for seed in range(6)]
    assert all(sorted(one) == labels for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1
    assert 5 * len(labels) - 4 <= len(order) <= 5 * len(labels)  # the same one may end a round and begin the next
    assert order == order_of(labels, rounds=5)
    assert order != order_of(labels, rounds=5, seed=1)


# C02-09
def test_each_round_warms_up_anew_and_its_first_calls_stand_apart():
    clock = ScriptedClock()
    (found,) = compare({"add": clock.job(0.002, first=[0.5])}, device="cpu", clock=clock, rounds=4)
    assert found.warm_up_s == pytest.approx([0.5, *[0.002] * 7])
    assert max(found.times_s) == pytest.approx(0.002)
    assert len(found.times_s) >= 4 * 5


# C02-09
def test_a_drift_meets_all_functions_alike():
    clock = SlowingMachine()
    one, two = compare({"one": clock.job(0.002), "two": clock.job(0.002)}, device="cpu", clock=clock, rounds=6)
    assert rank([one, two]).winner is None
    assert one.median_s == pytest.approx(two.median_s, rel=0.1)


def test_the_budget_is_shared_by_the_rounds():
    clock = ScriptedClock()
    compare({"add": clock.job(0.0001)}, device="cpu", clock=clock, rounds=3, min_time_s=0.6)
    assert 0.6 <= clock.now_s < 1.0


def test_threads_and_device_are_those_of_measure():
    clock, seen = ScriptedClock(), set()
    fns = {"add": lambda: (seen.add(torch.get_num_threads()), clock.work(0.01))[1]}
    (found,) = compare(fns, device="cpu", clock=clock, threads=1)
    assert seen == {1} and found.threads == 1


def test_one_round_is_one_measurement():
    one, other = ScriptedClock(), ScriptedClock()
    (found,) = compare({"add": one.job(0.002)}, device="cpu", clock=one, rounds=1)
    assert found.times_s == pytest.approx(measure(other.job(0.002), device="cpu", clock=other).times_s)
    assert PROFILES["quick"].name == found.profile


@pytest.mark.parametrize("bad", [{}, [], None, [lambda: 1], "add", lambda: 1])
def test_without_functions_there_is_nothing_to_compare(bad):
    with pytest.raises(InputError) as caught:
        compare(bad, device="cpu")
    assert f"fns={bad!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "bad"),
    [("rounds", 0), ("rounds", -1), ("rounds", 2.5), ("rounds", "3"), ("min_time_s", 0), ("min_time_s", -1)]
    + [("min_time_s", "1"), ("threads", 0), ("calls_per_sample", 0)],
)
def test_nonsense_is_refused_and_repeated(field, bad):
    with pytest.raises(InputError) as caught:
        compare({"add": lambda: pytest.fail("it ran")}, device="cpu", **{field: bad})
    assert f"{field}={bad!r}" in str(caught.value)


@pytest.mark.parametrize("fns", [{"add": 3}, {"add": None}, {3: lambda: 1}])
def test_what_cannot_be_called_or_named_is_refused(fns):
    with pytest.raises(InputError, match="3|None"):
        compare(fns, device="cpu")


def test_an_interrupt_keeps_the_rounds_that_were_finished(capsys):
    clock, calls = ScriptedClock(), []

    def second():
        clock.work(0.002)
        calls.append(clock.now_s)
        if stop_after and len(calls) > stop_after:
            raise KeyboardInterrupt

    stop_after, fns = 0, {"first": clock.job(0.001), "second": second}
    compare(fns, device="cpu", clock=clock, rounds=3)
    stop_after, _ = len(calls) // 2, calls.clear()  # three rounds are alike: the half lies in the second
    first, found = compare(fns, device="cpu", clock=clock, rounds=3)
    assert first.median_s == pytest.approx(0.001) and found.median_s == pytest.approx(0.002)
    assert "1 of 3 rounds were finished and are kept" in capsys.readouterr().out


def test_an_interrupt_before_each_had_its_turn_stops_the_comparison():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare({"never": stop, "works": lambda: None}, device="cpu", min_time_s=0.001)
