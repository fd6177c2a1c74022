import dataclasses
import math
import random

import numpy as np
import pytest

from labkit.comparison import crossover, fit_amdahl, fit_power_law, interval_s, rank, speedup, weakest_source
from labkit.errors import InputError
from labkit.measurement import OUT_OF_MEMORY, Measurement, Point, Sweep, Task

PREDICTED = {"source": "predicted", "provenance": "a model"}
RECORDED = {"source": "recorded", "provenance": "a file"}


def measurement(times_s, label="add", **fields):
    return Measurement(task=Task(label=label), times_s=times_s, **fields)


def around(median_s, spread=1.0, **fields):
    """Return a measurement whose quartiles are median / spread and median · spread, without any drift."""
    return measurement([median_s * spread**power for power in (-1, 1, 0, 1, -1)], **fields)


def sweep(times_s, *, spread=1.0, parameter="n", too_large=(), **fields):
    points = [Point(value=value, measurement=around(time_s, spread, **fields)) for value, time_s in times_s.items()]
    points += [Point(value=value, outcome=OUT_OF_MEMORY) for value in too_large]
    return Sweep(label="add", parameter=parameter, points=points)


class TestInterval:
    def test_without_a_drift_it_is_the_quartiles(self):
        assert interval_s(measurement([4, 1, 3, 2])) == (1.75, 3.25)
        assert interval_s(measurement([1] * 30)) == (1, 1)
        assert interval_s(around(3.0, 1.25)) == pytest.approx((3 / 1.25, 3 * 1.25))

    @pytest.mark.parametrize("times_s", [range(11, 20), range(19, 10, -1)])
    def test_a_drift_widens_it(self, times_s):
        # Quartiles 13 and 17; the medians of the first and last three are 12 and 18.
        assert interval_s(measurement(times_s)) == pytest.approx((13 / 1.5, 17 * 1.5))

    def test_the_same_samples_without_order_hardly_drift(self):
        # Quartiles 13 and 17 again; the medians of the first and last three are 15 and 16.
        samples = [11, 15, 19, 12, 18, 14, 13, 17, 16]
        assert interval_s(measurement(samples)) == pytest.approx((13 * 15 / 16, 17 * 16 / 15))

    def test_it_stays_above_zero(self):
        low, high = interval_s(measurement([1, 1, 1, 50, 50, 50, 100, 100, 100]))
        assert 0 < low < high

    def test_a_lone_sample_is_not_exact_and_a_prediction_is(self):
        low, high = interval_s(measurement([1.0]))
        assert low < 0.7 and high > 1.5
        assert interval_s(measurement([1.0], **RECORDED)) == (low, high)
        assert interval_s(measurement([1.0], **PREDICTED)) == (1.0, 1.0)


class TestSpeedup:
    def test_it_is_baseline_over_new_and_its_range_comes_from_both_spreads(self):
        found = speedup(around(6.0, 1.5), around(2.0, 1.25))
        assert found.ratio == 3.0
        assert found.low == pytest.approx(3 / 1.5 / 1.25)
        assert found.high == pytest.approx(3 * 1.5 * 1.25)

    @pytest.mark.parametrize(
        ("baseline_s", "new_s", "spread", "clear"),
        [
            (2.0, 1.0, 1.1, True),
            (1.0, 2.0, 1.1, True),
            (1.1, 1.0, 1.2, False),
            (1.0, 1.1, 1.2, False),
            (1, 1, 1, False),
        ],
    )
    def test_it_is_clear_if_equally_fast_is_excluded(self, baseline_s, new_s, spread, clear):
        assert speedup(around(baseline_s, spread), around(new_s, spread)).clear == clear

    def test_two_single_numbers_are_no_clear_speedup(self):
        assert not speedup(measurement([1.1]), measurement([1.0])).clear
        assert speedup(measurement([10.0]), measurement([1.0])).clear

    def test_it_says_where_it_comes_from(self):
        assert speedup(around(4.0), around(2.0)).source == "measured"
        assert speedup(around(4.0), around(2.0, **RECORDED)).source == "recorded"
        assert speedup(around(4.0, **PREDICTED), around(2.0, **RECORDED)).source == "predicted"
        assert str(speedup(around(6.0, 1.5), around(2.0, **PREDICTED))) == "3× (2× to 4.5×, predicted)"


class TestRank:
    def test_the_fastest_wins_if_no_other_range_touches_its_own(self):
        slow, fast, middle = around(9, 1.1, label="loop"), around(1, 1.1, label="torch"), around(3, 1.1, label="numpy")
        found = rank([slow, fast, middle])
        assert found.ordered == (fast, middle, slow)
        assert found.winner is fast
        assert "torch is fastest" in str(found)
        assert "3×" in str(found)

    def test_overlapping_spreads_give_no_clear_winner(self):
        found = rank([around(1.1, 1.2, label="numpy"), around(1.0, 1.2, label="torch")])
        assert found.winner is None
        assert [m.task.label for m in found.ordered] == ["torch", "numpy"]
        assert str(found).startswith("No clear winner")
        assert "torch" in str(found) and "numpy" in str(found)

    def test_a_wide_third_can_spoil_a_narrow_win(self):
        found = rank([around(1.0, 1.05), around(1.2, 1.01, label="steady"), around(1.5, 1.6, label="wild")])
        assert found.winner is None
        assert "wild" in str(found) and "steady" not in str(found)

    # C02-09
    @pytest.mark.parametrize("cooling", [False, True])
    def test_a_drift_is_no_win(self, cooling):
        # The same work twice, while the clock falls from 1450 to 1237 TFLOP/s within 100 repeats and stays there.
        drifting = [1 / (1450 + (1237 - 1450) * i / 99) for i in range(100)]
        if cooling:
            drifting.reverse()
        later = [drifting[-1] * (1 + 0.001 * (i % 3)) for i in range(100)]
        found = rank([measurement(drifting, "first"), measurement(later, "second")])
        assert found.winner is None
        assert str(found).startswith("No clear winner")

    def test_a_difference_larger_than_the_drift_is_a_win(self):
        drifting = [1 / (1450 + (1237 - 1450) * i / 99) for i in range(100)]
        found = rank([measurement(drifting, "first"), measurement([2 * time_s for time_s in drifting], "second")])
        assert found.winner.task.label == "first"

    def test_samples_of_one_distribution_are_not_ranked(self):
        draw = random.Random(9)
        for _ in range(50):
            one, two = ([draw.lognormvariate(0, 0.1) for _ in range(30)] for _ in range(2))
            assert rank([measurement(one, "one"), measurement(two, "two")]).winner is None

    def test_two_single_numbers_are_not_ranked(self):
        assert rank([measurement([1.0], "one"), measurement([1.1], "two")]).winner is None

    def test_the_same_task_on_two_devices_is_told_apart_by_the_device(self):
        found = rank([around(1.0, 1.1, device_name="EPYC"), around(1.0, 1.1, device="cuda:0", device_name="T4")])
        assert "EPYC" in str(found) and "T4" in str(found)

    def test_an_implausible_time_wins_nothing(self):
        wrong = around(0.001, label="unsynchronised", implausible="above the stated peak")
        found = rank([wrong, around(1.0)])
        assert found.winner is None
        assert found.ordered[0] is wrong
        assert "unsynchronised is implausible" in str(found)
        assert rank([wrong]).winner is None

    def test_one_alone_is_called_so(self):
        alone = around(1.0)
        assert rank([alone]).winner is alone
        assert "Only add" in str(rank([alone]))

    @pytest.mark.parametrize("bad", [[], (), None, 3, "abc", [1.0], [around(1.0), None]])
    def test_nonsense_is_refused(self, bad):
        with pytest.raises(InputError):
            rank(bad)


class TestCrossover:
    GRID = (10, 100, 10_000, 100_000)
    LINEAR = {n: 1e-6 * n for n in GRID}  # a CPU: as long as the work
    CONSTANT = dict.fromkeys(GRID, 1e-3)  # a GPU: its launch, whatever the work; they meet at n = 1000

    def test_it_is_interpolated_in_logarithms(self):
        found = crossover(sweep(self.LINEAR), sweep(self.CONSTANT))
        assert found.value == pytest.approx(1000)
        assert found.low == pytest.approx(1000)
        assert found.high == pytest.approx(1000)
        assert not found.always and not found.never

    def test_two_power_laws_meet_where_they_must(self):
        # 2 · n^1.5 = 50 · n^0.5 at n = 25, between the points 16 and 64.
        found = crossover(sweep({n: 2 * n**1.5 for n in (4, 16, 64)}), sweep({n: 50 * n**0.5 for n in (4, 16, 64)}))
        assert found.value == pytest.approx(25)

    def test_the_spreads_give_its_range(self):
        # Both may be off by a factor of 1.2, and the lines meet at slope 1: a factor of 1.44 either way.
        found = crossover(sweep(self.LINEAR, spread=1.2), sweep(self.CONSTANT, spread=1.2))
        assert found.value == pytest.approx(1000)
        assert found.low == pytest.approx(1000 / 1.44)
        assert found.high == pytest.approx(1000 * 1.44)

    def test_a_range_that_leaves_the_sizes_tried_is_open(self):
        linear, constant = {900: 0.9, 1100: 1.1}, {900: 1.0, 1100: 1.0}
        found = crossover(sweep(linear, spread=1.2), sweep(constant, spread=1.2))
        assert found.value == pytest.approx(1000)
        assert (found.low, found.high) == (900, None)

    def test_sweeps_over_different_values_are_compared_where_both_reach(self):
        cpu = sweep({n: 1e-6 * n for n in (1, 30, 5_000, 10**6)})
        gpu = sweep(dict.fromkeys((10, 20_000, 10**9), 1e-3))
        assert crossover(cpu, gpu).value == pytest.approx(1000)

    def test_a_value_that_only_one_sweep_has_is_interpolated_in_logarithms(self):
        # The lines meet between 10 and a million, and at 10 the CPU's time stands between two far points.
        cpu = sweep({1: 1e-6, 10**6: 1.0})
        gpu = sweep({1: 1e-3, 10: 1e-3, 10**6: 1e-3})
        assert crossover(cpu, gpu).value == pytest.approx(1000)

    def test_out_of_memory_points_are_left_out(self):
        gpu = sweep(dict.fromkeys((10, 10000), 0.001), too_large=[10**5])
        assert crossover(sweep(self.LINEAR), gpu).value == pytest.approx(1000)

    def test_only_the_last_crossing_counts(self):
        # Ahead at 1, behind at 10, ahead from between 10 and 1000 on: 10^-1 to 10^1 in time crosses at n = 100.
        cpu, gpu = sweep({1: 2.0, 10: 1.0, 1000: 10.0}), sweep({1: 1.0, 10: 10.0, 1000: 1.0})
        assert crossover(cpu, gpu).value == pytest.approx(100)
        cpu, gpu = sweep(dict.fromkeys((1, 10, 100, 10**4), 1.0)), sweep({1: 2.0, 10: 0.5, 100: 10.0, 10**4: 0.1})
        assert crossover(cpu, gpu).value == pytest.approx(1000)

    def test_equal_at_a_point_is_the_crossing(self):
        assert crossover(sweep({1: 1.0, 10: 5.0, 100: 9.0}), sweep({1: 2.0, 10: 5.0, 100: 3.0})).value == 10

    def test_ahead_from_the_smallest_value_on(self):
        found = crossover(sweep({1: 2.0, 10: 20.0}), sweep({1: 1.0, 10: 1.0}))
        assert (found.value, found.always, found.never) == (None, True, False)
        assert (found.low, found.high) == (1, 1)

    def test_ahead_from_the_smallest_value_on_as_far_as_the_spread_tells(self):
        # At n = 1 the spreads overlap (1.1 against 1, each off by 1.2); surely ahead from 1.1 · n = 1.44 on.
        found = crossover(sweep({1: 1.1, 10: 11.0}, spread=1.2), sweep({1: 1.0, 10: 1.0}, spread=1.2))
        assert (found.value, found.always, found.low) == (None, True, 1)
        assert found.high == pytest.approx(1.44 / 1.1)

    def test_never_ahead(self):
        found = crossover(sweep({1: 1.0, 10: 1.0}), sweep({1: 2.0, 10: 2.0}))
        assert (found.value, found.always, found.never) == (None, False, True)
        assert (found.low, found.high) == (None, None)

    def test_never_ahead_as_far_as_the_spread_tells(self):
        # The challenger reaches 1.1 at n = 10 and may be off by 1.2, as the other: perhaps ahead from 1.44 n/10 on.
        found = crossover(sweep({1: 1.0, 10: 1.0}, spread=1.2), sweep({1: 11.0, 10: 1.1}, spread=1.2))
        assert found.never and found.high is None
        assert found.low == pytest.approx(11 / 1.44)

    def test_falling_behind_again_is_never(self):
        assert crossover(sweep({1: 5.0, 10: 1.0}), sweep({1: 1.0, 10: 2.0})).never

    def test_a_shared_value_is_enough(self):
        assert crossover(sweep({1: 2.0, 10: 2.0}), sweep({10: 1.0, 100: 1.0})).always

    @pytest.mark.parametrize(("cpu", "gpu"), [(RECORDED, PREDICTED), (PREDICTED, {}), ({}, PREDICTED)])
    def test_it_says_where_it_comes_from(self, cpu, gpu):
        assert crossover(sweep(self.LINEAR, **cpu), sweep(self.CONSTANT, **gpu)).source == "predicted"

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            (sweep({1: 1.0, 2: 1.0}), sweep({3: 1.0, 4: 1.0})),
            (sweep({3: 1.0, 4: 1.0}), sweep({1: 1.0, 2: 1.0})),
            (sweep({1: 1.0}), sweep({1: 1.0}, parameter="threads")),
            (sweep({}, too_large=[1]), sweep({1: 1.0})),
            (sweep({1: 1.0}), sweep({}, too_large=[1])),
        ],
    )
    def test_sweeps_that_share_nothing_are_refused(self, one, two):
        with pytest.raises(InputError, match="only cross") as caught:
            crossover(one, two)
        assert str(one.values) in str(caught.value) and str(two.values) in str(caught.value)

    @pytest.mark.parametrize("bad", [None, 3, around(1.0), {1: 1.0}])
    def test_what_is_no_sweep_is_refused_and_repeated(self, bad):
        for pair in ((bad, sweep({1: 1.0})), (sweep({1: 1.0}), bad)):
            with pytest.raises(InputError) as caught:
                crossover(*pair)
            assert repr(bad) in str(caught.value)


class TestPowerLaw:
    @pytest.mark.parametrize(("exponent", "scale"), [(3, 2e-11), (1, 1.0), (0, 7.0), (-0.5, 3.0), (2.807, 1e-9)])
    def test_an_exact_law_is_found(self, exponent, scale):
        xs = [64, 128, 512, 1000]
        found = fit_power_law(xs, [scale * x**exponent for x in xs])
        assert found.exponent == pytest.approx(exponent, abs=1e-9)
        assert found.scale == pytest.approx(scale)

    def test_noise_is_fitted_as_numpy_does_it(self):
        draw = random.Random(3)
        xs = [2**power for power in range(12)]
        ys = [3 * x**2.5 * draw.lognormvariate(0, 0.3) for x in xs]
        slope, intercept = np.polyfit(np.log(xs), np.log(ys), 1)
        found = fit_power_law(xs, ys)
        assert (found.exponent, found.scale) == (pytest.approx(slope), pytest.approx(math.exp(intercept)))

    @pytest.mark.parametrize(
        ("xs", "ys"),
        [([], []), ([1], [1]), ([2, 2], [1, 3]), ([1, 2], [1]), ([0, 1], [1, 1]), ([1, 2], [1, -1]), (3, 4)]
        + [([1, math.nan], [1, 2]), ("12", [1, 2]), ([1, 2], None), ([1, "2"], [1, 2])],
    )
    def test_nonsense_is_refused_and_repeated(self, xs, ys):
        with pytest.raises(InputError) as caught:
            fit_power_law(xs, ys)
        assert "xs" in str(caught.value) or "ys" in str(caught.value)


class TestAmdahl:
    @pytest.mark.parametrize("serial", [0, 0.05, 0.5, 1])
    def test_an_exact_law_is_found(self, serial):
        counts = [1, 2, 4, 8]
        found = fit_amdahl(counts, [3 * (serial + (1 - serial) / count) for count in counts])
        assert found.serial == pytest.approx(serial, abs=1e-9)
        assert found.single_s == pytest.approx(3)
        assert found.time_s(16) == pytest.approx(3 * (serial + (1 - serial) / 16))
        assert found.limit == (pytest.approx(1 / serial) if serial else math.inf)

    def test_noise_is_fitted_as_numpy_does_it(self):
        draw = random.Random(4)
        counts = [1, 2, 3, 4, 6, 8]
        times_s = [(0.2 + 0.8 / count) * draw.uniform(0.9, 1.1) for count in counts]
        parallel, serial = np.polyfit([1 / count for count in counts], times_s, 1)
        found = fit_amdahl(counts, times_s)
        assert found.single_s == pytest.approx(parallel + serial)
        assert found.serial == pytest.approx(serial / (parallel + serial))

    def test_faster_than_the_threads_allow_is_all_parallel(self):
        # 1 s and 0.4 s: the best b/p has b = (1/1 + 0.4/2) / (1 + 1/4) = 0.96.
        found = fit_amdahl([1, 2], [1.0, 0.4])
        assert (found.serial, found.single_s) == (0, pytest.approx(0.96))

    @pytest.mark.parametrize(
        ("counts", "times_s"), [([1, 2, 4], [1, 2, 3]), ([2, 4], [0.1, 10]), ([1, 2], [1, 1.0001])]
    )
    def test_slower_with_every_thread_is_all_serial(self, counts, times_s):
        found = fit_amdahl(counts, times_s)
        assert (found.serial, found.limit) == (1, 1)
        assert found.single_s == pytest.approx(sum(times_s) / len(times_s))

    @pytest.mark.parametrize(
        ("counts", "times_s"),
        [
            ([], []),
            ([1], [1.0]),
            ([1, 1], [1, 1]),
            ([1, 2], [1]),
            ([0, 1], [1, 1]),
            ([1, 2.5], [1, 1]),
            ([1, 2], [1, 0]),
        ]
        + [([1, 2], [1, math.nan]), (2, [1, 1]), ([1, 2], "ab"), ([1, -2], [1, 1])],
    )
    def test_nonsense_is_refused(self, counts, times_s):
        with pytest.raises(InputError, match="threads|times_s"):
            fit_amdahl(counts, times_s)

    @pytest.mark.parametrize("bad", [0, -1, math.nan, "2"])
    def test_a_time_on_no_threads_is_refused(self, bad):
        with pytest.raises(InputError) as caught:
            fit_amdahl([1, 2], [1, 1]).time_s(bad)
        assert f"threads={bad!r}" in str(caught.value)


def test_the_weakest_source_is_named():
    measured, recorded, predicted = around(1.0), around(1.0, **RECORDED), around(1.0, **PREDICTED)
    assert weakest_source(measured, measured) == "measured"
    assert weakest_source(measured, recorded) == "recorded"
    assert weakest_source(recorded, predicted, measured) == "predicted"
    for bad in ((), (measured, None)):
        with pytest.raises(InputError):
            weakest_source(*bad)


@pytest.mark.parametrize("bad", [None, 1.0, [around(1.0)]])
def test_what_is_no_measurement_is_refused_and_repeated(bad):
    for call in (lambda: speedup(bad, around(1.0)), lambda: speedup(around(1.0), bad)):
        with pytest.raises(InputError) as caught:
            call()
        assert repr(bad) in str(caught.value)


def test_results_cannot_be_changed():
    for found in (speedup(around(1.0), around(1.0)), rank([around(1.0)]), fit_amdahl([1, 2], [1, 1])):
        with pytest.raises(dataclasses.FrozenInstanceError):
            found.source = "measured"
