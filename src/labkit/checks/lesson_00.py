"""The exercises of lesson 00: the sand model and the counting of lanes."""

from __future__ import annotations

import math

from labkit.checks.exercises import Exercise


def _delivery_time(load: float, workers: int, carry: float, trip_s: float, start_s: float) -> float:
    return start_s + math.ceil(load / (workers * carry)) * trip_s


def _delivery_time_by_loop(load: float, workers: int, carry: float, trip_s: float, start_s: float) -> float:
    time_s, left = start_s, load
    while left > 0:
        left -= workers * carry
        time_s += trip_s
    return time_s


DELIVERY_TIME = Exercise(
    name="delivery_time",
    task="Return the seconds until the whole load is delivered: the start-up time, then whole trips.",
    reference=_delivery_time,
    cases=[
        (100, 1, 50, 60, 0),
        (101, 1, 50, 60, 7),
        (1, 10_000, 0.5, 30, 600),
        (5_000, 10_000, 0.5, 30, 600),
        (5_003, 10_000, 0.5, 31, 600),
        (17, 3, 2, 5, 1),
    ],
    known_wrong=[
        (
            "A half-full trip takes as long as a full one: round the trips up with math.ceil.",
            lambda load, workers, carry, trip_s, start_s: start_s + load / (workers * carry) * trip_s,
        ),
        (
            "A last, half-full trip is missing: // rounds down, math.ceil rounds up.",
            lambda load, workers, carry, trip_s, start_s: start_s + load // (workers * carry) * trip_s,
        ),
        (
            "The start-up time is missing: nobody carries anything before it is over.",
            lambda load, workers, carry, trip_s, start_s: math.ceil(load / (workers * carry)) * trip_s,
        ),
        (
            "Start-up happens once, not before every trip.",
            lambda load, workers, carry, trip_s, start_s: math.ceil(load / (workers * carry)) * (trip_s + start_s),
        ),
        (
            "All workers walk at once: a trip carries workers × carry.",
            lambda load, workers, carry, trip_s, start_s: start_s + math.ceil(load / carry) * trip_s,
        ),
    ],
    also_right=[
        _delivery_time_by_loop,
        lambda load, workers, carry, trip_s, start_s: start_s - (-load // (workers * carry)) * trip_s,
    ],
    general_hint="Count the trips of the first case by hand, then add the start-up time.",
)


def _break_even(start_a_s: float, rate_a: float, start_b_s: float, rate_b: float) -> float:
    return (start_b_s - start_a_s) / (1 / rate_a - 1 / rate_b)


BREAK_EVEN = Exercise(
    name="break_even",
    task="Return the load at which team B (later start, higher rate) has caught up with team A.",
    reference=_break_even,
    cases=[(5, 3, 100, 7), (0, 1, 100, 2), (0, 0.5, 1e-5, 50), (2, 10, 2.5, 1000)],
    known_wrong=[
        (
            "The teams start at different times: use the difference of the two start-up times.",
            lambda start_a_s, rate_a, start_b_s, rate_b: start_b_s / (1 / rate_a - 1 / rate_b),
        ),
        (
            "That is a time. The load is what team A has delivered by then.",
            lambda start_a_s, rate_a, start_b_s, rate_b: (
                start_a_s + _break_even(start_a_s, rate_a, start_b_s, rate_b) / rate_a
            ),
        ),
        (
            "Team B goes on working while team A is ahead: compare both times, not A's alone.",
            lambda start_a_s, rate_a, start_b_s, rate_b: (start_b_s - start_a_s) * rate_a,
        ),
        (
            "A load takes start + load / rate; dividing by the rate, not multiplying, turns a load into seconds.",
            lambda start_a_s, rate_a, start_b_s, rate_b: (start_b_s - start_a_s) / (rate_b - rate_a),
        ),
    ],
    also_right=[
        lambda start_a_s, rate_a, start_b_s, rate_b: (start_b_s - start_a_s) * rate_a * rate_b / (rate_b - rate_a),
        lambda start_a_s, rate_a, start_b_s, rate_b: (start_a_s - start_b_s) / (1 / rate_b - 1 / rate_a),
    ],
    general_hint="Write start_a + load / rate_a = start_b + load / rate_b and solve it for the load.",
)


def _count_lanes(cpus: int, simd_bits: int, dtype_bits: int) -> int:
    return cpus * (simd_bits // dtype_bits)


COUNT_LANES = Exercise(
    name="count_lanes",
    task="Return how many numbers of dtype_bits a CPU with this many cores and this SIMD width adds in one step.",
    reference=_count_lanes,
    cases=[(1, 128, 32), (2, 256, 32), (7, 512, 64), (3, 512, 8), (64, 256, 16)],
    known_wrong=[
        (
            "Every core has its own SIMD unit: multiply by the cores.",
            lambda cpus, simd_bits, dtype_bits: simd_bits // dtype_bits,
        ),
        ("A SIMD register holds simd_bits / dtype_bits numbers.", lambda cpus, simd_bits, dtype_bits: cpus * simd_bits),
        (
            "Bits, not bytes: divide by dtype_bits as it is.",
            lambda cpus, simd_bits, dtype_bits: cpus * simd_bits // (dtype_bits // 8),
        ),
        (
            "The lanes depend on the dtype: float64 has half as many as float32.",
            lambda cpus, simd_bits, dtype_bits: cpus * simd_bits // 32,
        ),
    ],
    also_right=[
        lambda cpus, simd_bits, dtype_bits: int(cpus * simd_bits / dtype_bits),
        lambda cpus, simd_bits, dtype_bits: sum(simd_bits // dtype_bits for _ in range(cpus)),
    ],
)

EXERCISES = (DELIVERY_TIME, BREAK_EVEN, COUNT_LANES)
