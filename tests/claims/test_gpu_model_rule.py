"""The rule about a GPU-trained model on a CPU, for every outcome that it can give; expected values by hand."""

from __future__ import annotations

from typing import Any

import pytest
from evidence import decide, swept

from labkit.claims import DEPENDS, NOT_TESTABLE, REFUTED, UPHELD, Verdict
from labkit.errors import InputError

CPU = {1: 1e-3, 8: 8e-3, 64: 64e-3}
FAST, MIXED, SLOW = ({1: a, 8: b, 64: c} for a, b, c in [(5e-4, 1e-3, 2e-3), (1e-3, 2e-3, 4e-3), (4e-3, 9e-3, 0.1)])


def verdict_on(gpu: dict[int, float] | None, **changed: Any) -> Verdict:
    spread, source = changed.pop("spread", 0.0), changed.pop("source", "measured")
    evidence = {"same_best": 1.0, "drift": 1e-6, "tolerance": 1e-5, "cpu": swept(CPU, parameter="batch", spread=spread)}
    evidence["gpu"] = gpu and swept(gpu, parameter="batch", spread=spread, source=source)
    return decide("gpu-model-on-cpu", **(evidence | changed))


def test_slower_at_every_batch_upholds_it() -> None:
    verdict = verdict_on(FAST)
    assert (verdict.outcome, verdict.number, verdict.source) == (UPHELD, 32, "measured")
    assert "2× at batch 1, 8× at batch 8, 32× at batch 64" in verdict.sentence
    assert "same best class for 100.0% of the inputs" in verdict.sentence
    assert "differ by 1.0e-06; rounding explains up to 1e-05" in verdict.sentence


def test_slower_at_some_batches_only_depends_on_the_batch() -> None:
    verdict = verdict_on(MIXED)
    assert (verdict.outcome, verdict.number) == (DEPENDS, 16)
    assert verdict.flips_at == "The CPU is clearly slower at batch 8, 64, and not at batch 1."


def test_slower_nowhere_leaves_out_the_slower() -> None:
    verdict = verdict_on(SLOW)
    assert verdict.outcome == DEPENDS
    assert verdict.flips_at == "It can be used, and up to batch 64 it is not clearly slower."


def test_a_lead_within_the_spread_is_none() -> None:
    # Twice as fast at batch 1, with quartiles 40 % below and above: from 0.6 / 0.7 on, so 0.86 times.
    verdict = verdict_on(FAST, spread=0.4)
    assert verdict.flips_at == "The CPU is clearly slower at batch 8, 64, and not at batch 1."


@pytest.mark.parametrize("changed", [{"drift": 1.1e-5}, {"same_best": 0.98}], ids=["scores", "classes"])
def test_other_answers_refute_it_however_fast(changed: dict[str, float]) -> None:
    verdict = verdict_on(FAST, **changed)
    assert verdict.outcome == REFUTED
    assert "These are other answers." in verdict.sentence


@pytest.mark.parametrize("changed", [{"drift": 1e-5}, {"same_best": 0.99}, {"drift": 0}], ids=str)
def test_the_limits_themselves_are_allowed(changed: dict[str, float]) -> None:
    assert verdict_on(FAST, **changed).outcome == UPHELD


def test_without_times_of_a_gpu_it_is_not_testable() -> None:
    assert verdict_on(None).outcome == NOT_TESTABLE


@pytest.mark.parametrize(
    ("drift_source", "gpu_source", "source"),
    [
        ("predicted", "measured", "predicted"),
        ("measured", "recorded", "recorded"),
        ("recorded", "predicted", "predicted"),
        ("recorded", "measured", "recorded"),
    ],
)
def test_the_weakest_source_counts(drift_source: str, gpu_source: str, source: str) -> None:
    verdict = verdict_on(FAST, source=gpu_source, drift_source=drift_source)
    assert (verdict.outcome, verdict.source, verdict.headline) == (UPHELD, source, f"{source}: upheld")


@pytest.mark.parametrize(
    "changed",
    [
        {"same_best": 1.01},
        {"same_best": -1},
        {"drift": -1e-9},
        {"tolerance": 0},
        {"drift": float("nan")},
        {"cpu": None},
    ],
    ids=str,
)
def test_nonsense_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        verdict_on(FAST, **changed)
