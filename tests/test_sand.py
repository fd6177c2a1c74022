"""The sand model: trips counted by hand, the crossing of two lines, and the line that fits a sweep."""

from __future__ import annotations

import math
import random

import pytest

from labkit.errors import InputError
from labkit.measurement import OUT_OF_MEMORY, Measurement, Point, Sweep, Task
from labkit.sand import LEAST_S_PER_UNIT, Team, fit_team, largest_miss, overtakes_at

# Carries 100 kg in each minute, at once; and 5,000 kg in each, after ten minutes.
WORKER = Team("worker", workers=1, carry=100, trip_s=60)
CHILDREN = Team("children", workers=10_000, carry=0.5, trip_s=60, start_s=600)


def test_rate_and_first_load_of_two_teams() -> None:
    assert (WORKER.load_per_trip, WORKER.throughput, WORKER.latency_s) == (100, 100 / 60, 60)
    assert (CHILDREN.load_per_trip, CHILDREN.throughput, CHILDREN.latency_s) == (5000, 5000 / 60, 660)


@pytest.mark.parametrize(
    ("load", "worker_s", "children_s"),
    [
        (1, 60, 660),  # one trip, however small
        (100, 60, 660),  # a full barrow
        (100.001, 120, 660),
        (1_000, 600, 660),
        (1_100, 660, 660),  # alike
        (1_200, 720, 660),
        (5_000, 3000, 660),
        (5_001, 3060, 720),  # 51 barrows; a second walk for one kilogram
        (12_000, 7200, 780),
    ],
)
def test_time_is_the_start_and_then_whole_trips(load: float, worker_s: float, children_s: float) -> None:
    assert (WORKER.time_s(load), CHILDREN.time_s(load)) == (worker_s, children_s)


@pytest.mark.parametrize(
    ("load", "carry", "trips"), [(2.1, 0.3, 7), (2.1, 0.7, 3), (0.3, 0.1, 3), (0.7, 0.1, 7), (1e-12, 1, 1)]
)
def test_rounding_makes_no_trip_of_its_own_and_takes_none_away(load: float, carry: float, trips: int) -> None:
    assert Team("x", workers=1, carry=carry, trip_s=1).time_s(load) == trips


def test_the_lines_cross_where_both_take_as_long() -> None:
    # load · 60/100 = 600 + load · 60/5000, so load = 600 / (0.6 - 0.012)
    crossing = overtakes_at(WORKER, CHILDREN)
    assert crossing == pytest.approx(600 / 0.588)
    times_s = [team.start_s + crossing / team.throughput for team in (WORKER, CHILDREN)]
    assert times_s[0] == pytest.approx(times_s[1])


def team(start_s: float, load_per_s: float) -> Team:
    return Team("x", workers=1, carry=load_per_s, trip_s=1, start_s=start_s)


@pytest.mark.parametrize(
    ("challenger", "expected"),
    [
        (team(10, 2), 0.0),  # as early and faster
        (team(5, 2), 0.0),  # earlier and faster
        (team(5, 1), 0.0),  # earlier, as fast
        (team(20, 2), 20.0),  # 10 + x = 20 + x/2
        (team(20, 1), None),  # later, as fast
        (team(20, 0.5), None),  # later and slower
        (team(5, 0.5), None),  # ahead with small loads alone
        (team(10, 1), None),  # alike: nobody is sooner
    ],
)
def test_from_which_load_on_a_team_is_sooner(challenger: Team, expected: float | None) -> None:
    assert overtakes_at(team(10, 1), challenger) == expected


@pytest.mark.parametrize(
    "fields",
    [{"workers": 0}, {"workers": -1}, {"carry": 0}, {"carry": math.nan}, {"trip_s": -1}, {"trip_s": math.inf}]
    + [{"start_s": -1}, {"start_s": math.nan}, {"workers": "many"}, {"carry": None}],
)
def test_a_team_of_nonsense_is_refused(fields: dict) -> None:
    (name,) = fields
    with pytest.raises(InputError, match=f"^{name}="):
        Team(**{"name": "x", "workers": 1, "carry": 1, "trip_s": 1, **fields})


@pytest.mark.parametrize("load", [0, -1, math.nan, math.inf, "much"])
def test_a_load_of_nonsense_is_refused(load) -> None:
    with pytest.raises(InputError, match="^load="):
        WORKER.time_s(load)


# --- the fit -----------------------------------------------------------------------------------------------------


def swept(times_s: dict[float, float]) -> Sweep:
    points = [
        Point(value=n, measurement=Measurement(task=Task(label="add"), times_s=[time_s] * 3))
        for n, time_s in times_s.items()
    ]
    return Sweep(label="add", parameter="n", points=points)


@pytest.mark.parametrize("start_s", [0.0, 5e-6, 1.0])
@pytest.mark.parametrize("load_per_s", [10.0, 1e10])
def test_an_exact_line_gives_its_numbers_back(start_s: float, load_per_s: float) -> None:
    found = fit_team(swept({10**e: start_s + 10**e / load_per_s for e in range(2, 9)}), "x")
    assert found.start_s == pytest.approx(start_s, rel=1e-6, abs=1e-9)
    assert found.throughput == pytest.approx(load_per_s, rel=1e-6)
    assert found.name == "x"


def test_the_fit_has_the_least_error_in_logarithms() -> None:
    random.seed(0)
    times_s = {10**e: (1e-5 + 10**e * 1e-9) * random.uniform(0.8, 1.25) for e in range(1, 8)}

    def error(start_s: float, s_per_unit: float) -> float:
        return sum(math.log((start_s + n * s_per_unit) / time_s) ** 2 for n, time_s in times_s.items())

    found = fit_team(swept(times_s))
    best = error(found.start_s, found.trip_s)
    for start, slope in ((1.01, 1), (0.99, 1), (1, 1.01), (1, 0.99), (1.01, 0.99), (0.99, 1.01)):
        assert error(found.start_s * start, found.trip_s * slope) > best


def test_one_disturbed_point_does_not_ruin_the_fit() -> None:
    times_s = {10**e: 1e-6 + 10**e * 1e-9 for e in range(2, 8)}
    times_s[10**5] *= 100  # another program had the machine
    team = fit_team(swept(times_s))
    assert largest_miss(team, swept(times_s)) < 100


def test_the_largest_miss_is_a_factor_in_either_direction() -> None:
    team = Team("x", workers=1, carry=1.0, trip_s=1.0, start_s=1.0)
    assert largest_miss(team, swept({1: 2, 2: 3, 3: 4})) == pytest.approx(1)
    assert largest_miss(team, swept({1: 4, 2: 3, 3: 4})) == pytest.approx(2)
    assert largest_miss(team, swept({1: 2, 2: 1, 3: 4})) == pytest.approx(3)


def test_a_fit_below_zero_becomes_a_line_through_the_origin() -> None:
    # The line through (1, 1), (2, 3), (3, 6) starts below zero. Through the origin, Σ ln²(s·x/y) is least at the
    # geometric mean of y/x: (1 · 3/2 · 2) ** (1/3).
    found = fit_team(swept({1: 1, 2: 3, 3: 6}))
    assert found.start_s == 0
    assert found.trip_s == pytest.approx(3 ** (1 / 3))


def test_times_that_fall_become_a_constant() -> None:
    # Σ ln²(a/y) is least at the geometric mean of y: (4 · 2 · 1) ** (1/3) = 2.
    found = fit_team(swept({1: 4, 2: 2, 3: 1}))
    assert found.start_s == pytest.approx(2)
    assert found.trip_s == LEAST_S_PER_UNIT


def test_points_out_of_memory_do_not_count() -> None:
    full = swept({1: 1, 2: 2})
    points = [*full.points, Point(value=3, outcome=OUT_OF_MEMORY)]
    with pytest.raises(InputError, match="2 points: .* at least three values"):
        fit_team(Sweep(label="add", parameter="n", points=points))


def test_without_a_name_it_is_the_legend_of_the_sweep() -> None:
    sweep = swept({1: 1, 2: 2, 3: 3})
    assert fit_team(sweep).name == sweep.legend
