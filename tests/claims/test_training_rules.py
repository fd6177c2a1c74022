"""The rules about training, for every outcome that each can give; expected values are worked by hand."""

from __future__ import annotations

import pytest
from evidence import decide, took

from labkit.claims import DEPENDS, NOT_TESTABLE, REFUTED, UPHELD
from labkit.errors import InputError
from labkit.measurement import Measurement

HOUR, DAY = 3600, 86_400
WEEK = 7 * DAY

# --- training-needs-gpu ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("small_s", "large_s", "outcome"),
    [
        (20, 5 * HOUR, REFUTED),
        (20, DAY, REFUTED),  # to the second
        (20, DAY + 1, DEPENDS),
        (20, 900 * DAY, DEPENDS),
        (2 * DAY, 900 * DAY, UPHELD),
    ],
)
def test_hopeless_by_the_patience(small_s: float, large_s: float, outcome: str) -> None:
    trainings = {"the large net": took(large_s), "the digits": took(small_s)}
    verdict = decide("training-needs-gpu", trainings=trainings, patience_s=DAY)
    assert (verdict.outcome, verdict.number) == (outcome, small_s)


def test_where_training_becomes_hopeless_is_interpolated_in_logarithms() -> None:
    # From 100 s to 1,000,000 s, four powers of ten, the work grows by eight; 10,000 s is half the way.
    trainings = {"digits": took(1e2, flop=1e12), "photographs": took(1e6, flop=1e20)}
    verdict = decide("training-needs-gpu", trainings=trainings, patience_s=1e4)
    assert verdict.flips_at == (
        "It becomes hopeless between digits and photographs, at about 10 PFLOP: 10,000× the work of digits."
    )
    assert verdict.sentence == "On this CPU: digits 100 s, photographs 11.6 days. The patience: 2.78 h."


def test_between_three_trainings_it_flips_at_the_patience() -> None:
    trainings = {"a": took(1), "b": took(10), "c": took(1000)}
    verdict = decide("training-needs-gpu", trainings=trainings, patience_s=100)
    assert verdict.flips_at == "It becomes hopeless between b and c."


@pytest.mark.parametrize("other_s", [1, 1000])
def test_a_range_over_the_patience_decides_nothing(other_s: float) -> None:
    trainings = {"this one": took(100, spread=0.2), "other": took(other_s)}
    verdict = decide("training-needs-gpu", trainings=trainings, patience_s=110)
    assert verdict.outcome == DEPENDS
    assert verdict.flips_at.startswith("For this one the range")


def test_an_extrapolated_training_makes_a_prediction() -> None:
    trainings = {"digits": took(20), "large": took(WEEK, source="predicted")}
    verdict = decide("training-needs-gpu", trainings=trainings, patience_s=DAY)
    assert verdict.headline == "predicted: it depends"


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({"trainings": {}, "patience_s": DAY}, "at least one training"),
        ({"trainings": {"digits": 20.0}, "patience_s": DAY}, "trainings['digits']=20.0"),
        ({"trainings": {"digits": took(1)}, "patience_s": 0}, "patience_s=0"),
        ({"trainings": {"digits": took(1)}, "patience_s": float("inf")}, "patience_s=inf"),
    ],
)
def test_evidence_that_does_not_fit_is_refused(evidence: dict, said: str) -> None:
    with pytest.raises(InputError) as caught:
        decide("training-needs-gpu", **evidence)
    assert said in str(caught.value)


# --- days-to-hours ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpu", "gpu", "outcome"),
    [
        (took(WEEK), took(DAY), UPHELD),
        (took(WEEK, spread=0.01), took(DAY), DEPENDS),  # perhaps less than a week
        (took(WEEK), took(DAY, spread=0.01), DEPENDS),  # perhaps more than a day
        (took(10 * WEEK), took(2 * DAY), DEPENDS),  # weeks become days
        (took(2 * HOUR), took(60), DEPENDS),  # hours become a minute
        (took(10 * WEEK), took(11 * DAY), REFUTED),  # 70 : 11 is less than sevenfold
        (took(60), took(600), REFUTED),
        (took(69 * DAY, spread=0.1), took(10 * DAY), DEPENDS),  # 6.9-fold, between 6.2 and 7.6
    ],
)
def test_weeks_and_hours(cpu: Measurement, gpu: Measurement, outcome: str) -> None:
    verdict = decide("days-to-hours", cpu=cpu, gpu=gpu)
    assert (verdict.outcome, verdict.number) == (outcome, cpu.median_s)


def test_the_lengths_for_which_it_holds() -> None:
    # 70 days and 2 days: what takes the GPU a day takes the CPU 35.
    verdict = decide("days-to-hours", cpu=took(70 * DAY), gpu=took(2 * DAY))
    assert (
        verdict.flips_at == "It holds for trainings that take this CPU a week to 35 days: the GPU takes a day at most."
    )


def test_a_lead_around_seven_says_that_it_decides_nothing() -> None:
    verdict = decide("days-to-hours", cpu=took(69 * DAY, spread=0.1), gpu=took(10 * DAY))
    assert "the lead (6.9× (6.21× to 7.59×, measured)) reaches over seven" in verdict.flips_at


def test_the_sentence_gives_the_ranges_and_their_sources() -> None:
    verdict = decide("days-to-hours", cpu=took(10 * DAY, spread=0.1), gpu=took(DAY / 4, spread=0.5, source="predicted"))
    assert verdict.sentence == (
        "The training takes 10 days (9 days to 11 days, measured) on this CPU "
        "and 6 h (3 h to 9 h, predicted) on the GPU."
    )
    assert verdict.headline == "predicted: upheld"


def test_without_a_gpu_it_is_not_testable() -> None:
    verdict = decide("days-to-hours", cpu=took(10 * DAY), gpu=None)
    assert verdict.outcome == NOT_TESTABLE
    assert "10 days" in verdict.sentence and "Colab" in verdict.flips_at
