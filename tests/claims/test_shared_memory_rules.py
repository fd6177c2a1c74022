"""The rules about shared memory, for every outcome that each can give; expected values are worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from evidence import decide, took

from labkit.claims import DEPENDS, NOT_TESTABLE, REFUTED, UPHELD
from labkit.errors import InputError
from labkit.occupancy import Occupancy, occupancy

SAVED = {"add": 1.0, "product": 8.0}


# --- shared-unused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("users", "files", "outcome"),
    [(0, 25, UPHELD), (1, 25, UPHELD), (2, 25, DEPENDS), (12, 25, DEPENDS), (13, 26, REFUTED), (20, 20, REFUTED)],
)
def test_unused_by_the_share_of_source_files(users: int, files: int, outcome: str) -> None:
    sources = {f"file{n}": n < users for n in range(files)}
    verdict = decide("shared-unused", saved=SAVED, sources=sources)
    assert (verdict.outcome, verdict.number) == (outcome, pytest.approx(users / files))
    assert f"Of {files} source files with kernels of the library, {users} use it." in verdict.sentence


def test_unused_names_some_of_both_kinds_and_how_many_more() -> None:
    sources = {f"user{n}": True for n in range(8)} | {f"other{n}": False for n in range(12)}
    verdict = decide("shared-unused", saved=SAVED, sources=sources)
    assert verdict.flips_at == (
        "It depends on the work: used in user0, user1, user2, user3, user4, user5 and 2 more; "
        "not in other0, other1, other2, other3, other4, other5 and 6 more."
    )


def test_unused_by_the_profile_where_there_are_no_sources() -> None:
    verdict = decide("shared-unused", saved=SAVED, sources={}, library={"add": 0, "product": 49_152})
    assert (verdict.outcome, verdict.number) == (REFUTED, 0.5)
    assert "by the profile: add none, product 48 KiB." in verdict.sentence
    assert "Of 2 operations of the library, 1 use it." in verdict.sentence


def test_unused_tells_the_profile_beside_the_sources() -> None:
    verdict = decide("shared-unused", saved=SAVED, sources={"a": True, "b": True}, library={"add": 0})
    assert (verdict.outcome, verdict.number) == (REFUTED, 1)
    assert "by the profile: add none." in verdict.sentence


def test_unused_without_evidence_says_what_it_needs_and_still_tells_the_counts() -> None:
    verdict = decide("shared-unused", saved=SAVED, sources={})
    assert (verdict.outcome, verdict.number) == (NOT_TESTABLE, None)
    assert verdict.sentence == "Counted, shared memory makes the sectors fewer by: add 1×, product 8×."


# --- shared-needs-sync -----------------------------------------------------------------------------------------------

RACES = {"the first barrier": 2, "the second barrier": 1}
RUNS = dict(wrong_runs=3, runs=4, lockstep_right=True)


def test_sync_is_needed_if_every_barrier_is() -> None:
    verdict = decide("shared-needs-sync", complete=0, without=RACES, **RUNS)
    assert (verdict.outcome, verdict.number) == (UPHELD, 0.75)
    assert verdict.sentence == (
        "Races found: with all barriers 0, without the first barrier 2, without the second barrier 1. "
        "3 of 4 shuffled schedules gave wrong values, and the one in step gave the right ones."
    )


def test_sync_is_not_needed_if_no_barrier_is() -> None:
    runs = dict(wrong_runs=0, runs=4, lockstep_right=False)
    verdict = decide("shared-needs-sync", complete=0, without=dict.fromkeys(RACES, 0), **runs)
    assert (verdict.outcome, verdict.number) == (REFUTED, 0)
    assert verdict.sentence.endswith("0 of 4 shuffled schedules gave wrong values.")


def test_sync_depends_on_the_barrier() -> None:
    verdict = decide("shared-needs-sync", complete=0, without=RACES | {"the first barrier": 0}, **RUNS)
    assert verdict.outcome == DEPENDS
    assert verdict.flips_at == "It depends on the barrier: the second barrier is needed, the others are not."


def test_sync_is_not_decided_by_a_kernel_that_races_anyway() -> None:
    assert decide("shared-needs-sync", complete=1, without=RACES, **RUNS).outcome == NOT_TESTABLE


# --- shared-is-scarce ------------------------------------------------------------------------------------------------

# A T4's SM holds 32 warps, so 4 blocks of 256 threads; its 64 KiB hold 4 blocks of 16 KiB each.
ROOMY, SCARCE = occupancy(256, shared_bytes=2048), occupancy(256, shared_bytes=20_000)


def test_the_examples_are_what_their_names_say() -> None:
    assert (ROOMY.limits, ROOMY.fraction) == (("warps",), 1)
    assert (SCARCE.limits, SCARCE.fraction) == (("shared_memory",), 0.75)


@pytest.mark.parametrize(
    ("kernels", "flips_at_bytes", "outcome"),
    [
        ({"a": SCARCE, "b": SCARCE}, 16_640, UPHELD),
        ({"a": ROOMY, "b": SCARCE}, 16_640, DEPENDS),
        ({"a": ROOMY}, 16_640, DEPENDS),
        ({"a": ROOMY, "b": SCARCE}, None, DEPENDS),
        ({"a": ROOMY}, None, REFUTED),
    ],
)
def test_scarce(kernels: dict[str, Occupancy], flips_at_bytes: int | None, outcome: str) -> None:
    verdict = decide("shared-is-scarce", kernels=kernels, flips_at_bytes=flips_at_bytes, device="T4")
    assert (verdict.outcome, verdict.number, verdict.source) == (outcome, flips_at_bytes, "predicted")


def test_scarce_tells_where_it_begins_and_what_the_banks_cost() -> None:
    verdict = decide(
        "shared-is-scarce",
        kernels={"tiles": ROOMY, "large": SCARCE},
        flips_at_bytes=16_640,
        device="T4",
        wavefronts={"pitch 32": 32.0, "pitch 33": 1.0},
    )
    assert verdict.flips_at == "It becomes the bottleneck from 16.3 KiB a block on."
    assert "Occupancy on the T4: tiles 100%, large 75%." in verdict.sentence
    assert verdict.sentence.endswith("Wavefronts for one read, as counted, with pitch 32: 32; pitch 33: 1.")


# --- global-is-better ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plain_s", "shared_s", "spread", "source", "outcome"),
    [
        (1.0, 1.0, 0.0, "measured", UPHELD),
        (1.0, 1.1, 0.0, "measured", UPHELD),
        (8.0, 1.0, 0.1, "measured", REFUTED),
        (1.5, 1.0, 0.4, "measured", UPHELD),  # 1.5×, but the spreads overlap: no clear gain
        (1.5, 1.0, 0.4, "predicted", REFUTED),  # two predictions move together
        (1.15, 1.0, 0.0, "predicted", UPHELD),  # too little to write a second kernel for
    ],
)
def test_global_by_one_task(plain_s: float, shared_s: float, spread: float, source: str, outcome: str) -> None:
    pair = took(plain_s, spread=spread, source=source), took(shared_s, spread=spread, source=source)
    verdict = decide("global-is-better", pairs={"product": pair})
    assert (verdict.outcome, verdict.source) == (outcome, source)
    assert verdict.number == pytest.approx(plain_s / shared_s)


def test_global_depends_on_the_task() -> None:
    pairs = {"addition": (took(1.0), took(1.0)), "product": (took(8.0), took(1.0, source="predicted"))}
    verdict = decide("global-is-better", pairs=pairs)
    assert (verdict.headline, verdict.number) == ("predicted: it depends", 8)
    assert verdict.flips_at == "Shared memory pays in product; in addition global memory alone is just as good."
    assert verdict.sentence == "With shared memory the speedup over global memory alone is: addition 1×, product 8×."


# --- gpu-harder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worst", "outcome"), [(700, UPHELD), (200, UPHELD), (199, DEPENDS), (120, DEPENDS), (119, REFUTED), (100, REFUTED)]
)
def test_harder(worst: float, outcome: str) -> None:
    verdict = decide("gpu-harder", work={"first": worst, "last": 100}, agree=True)
    assert (verdict.outcome, verdict.number) == (outcome, worst / 100)


def test_harder_names_the_worst_and_the_best_wherever_they_stand() -> None:
    verdict = decide("gpu-harder", work={"first": 300, "second": 400, "third": 100}, agree=True)
    assert verdict.sentence == "3 kernels give the result of one line on the CPU; second takes 4× the turns of third."


def test_harder_is_not_decided_by_wrong_kernels() -> None:
    assert decide("gpu-harder", work={"a": 2, "b": 1}, agree=False).outcome == NOT_TESTABLE


# --- nonsense --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim_id", "evidence"),
    [
        ("shared-unused", dict(saved={}, sources={"a": True})),
        ("shared-unused", dict(saved={"add": 0}, sources={"a": True})),
        ("shared-unused", dict(saved={"add": float("nan")}, sources={"a": True})),
        ("shared-needs-sync", dict(complete=0, without={}, **RUNS)),
        ("shared-needs-sync", dict(complete=0, without=RACES, wrong_runs=0, runs=0, lockstep_right=True)),
        ("shared-is-scarce", dict(kernels={}, flips_at_bytes=None, device="T4")),
        ("shared-is-scarce", dict(kernels={"a": ROOMY}, flips_at_bytes=None, device="T4", wavefronts={"a": -1})),
        ("global-is-better", dict(pairs={})),
        ("gpu-harder", dict(work={"a": 1}, agree=True)),
        ("gpu-harder", dict(work={"a": 1, "b": 0}, agree=True)),
    ],
)
def test_nonsense_is_refused(claim_id: str, evidence: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        decide(claim_id, **evidence)
