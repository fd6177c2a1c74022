"""Every rule on synthetic measurements, for every outcome that it can give; expected values are worked by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from evidence import decide, swept, took

from labkit.claims import DEPENDS, NOT_TESTABLE, OUTCOMES, REFUTED, UPHELD, Verdict, all_claims, find_claim
from labkit.errors import InputError

# --- serial-cpu-wins -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpu_s", "gpu_s", "spread", "outcome"),
    [(1.0, 5.0, 0.1, UPHELD), (5.0, 1.0, 0.1, REFUTED), (1.0, 1.1, 0.2, DEPENDS)],
)
def test_serial(cpu_s: float, gpu_s: float, spread: float, outcome: str) -> None:
    verdict = decide("serial-cpu-wins", cpu=took(cpu_s, spread=spread), gpu=took(gpu_s, spread=spread), steps=1000)
    assert verdict.outcome == outcome
    assert verdict.number == pytest.approx(gpu_s / cpu_s)


def test_serial_names_the_time_of_one_step() -> None:
    verdict = decide("serial-cpu-wins", cpu=took(0.002), gpu=took(0.005), steps=1000)
    assert verdict.sentence == "One step takes 2 µs on the CPU and 5 µs on the GPU."


# --- parallel-gpu-wins and small-data ----------------------------------------------------------------------------

CPU = {10: 1e-6, 1000: 1e-4}  # a line in logarithms
CROSSES_AT_100 = {10: 1e-5, 1000: 1e-5}  # equal to the CPU where 1e-6 * (n/10) = 1e-5, so at n = 100


def test_large_data_won_by_the_gpu() -> None:
    verdict = decide("parallel-gpu-wins", cpu=swept(CPU), gpu=swept(CROSSES_AT_100))
    assert (verdict.outcome, verdict.number) == (UPHELD, pytest.approx(10))
    assert "overtakes at about n = 100 " in verdict.sentence


def test_a_small_crossover_is_not_rounded_to_a_size_that_was_tried() -> None:
    """Sizes 1 and 100, the CPU's time a line in logarithms: equal at 1.5."""
    verdict = decide("parallel-gpu-wins", cpu=swept({1: 1e-6, 100: 1e-4}), gpu=swept({1: 1.5e-6, 100: 1.5e-6}))
    assert "overtakes at about n = 1.5 " in verdict.sentence


def test_large_data_won_by_the_cpu() -> None:
    verdict = decide("parallel-gpu-wins", cpu=swept(CPU), gpu=swept({10: 1e-3, 1000: 1e-3}))
    assert verdict.outcome == REFUTED
    assert "overtakes at no size" in verdict.sentence


def test_large_data_undecided() -> None:
    verdict = decide("parallel-gpu-wins", cpu=swept(CPU, spread=0.3), gpu=swept({10: 1e-3, 1000: 0.9e-4}, spread=0.3))
    assert verdict.outcome == DEPENDS


def test_small_data_hides_the_advantage() -> None:
    verdict = decide("small-data", cpu=swept(CPU), gpu=swept(CROSSES_AT_100))
    assert (verdict.outcome, verdict.number) == (UPHELD, pytest.approx(100))


def test_small_data_shows_the_advantage() -> None:
    verdict = decide("small-data", cpu=swept(CPU), gpu=swept({10: 1e-7, 1000: 1e-5}))
    assert verdict.outcome == REFUTED
    assert "ahead from the smallest size" in verdict.sentence


def test_small_data_where_the_ranges_overlap() -> None:
    """A lead within the spread upholds nothing, least of all where the GPU is ahead from the first size on."""
    verdict = decide("small-data", cpu=swept(CPU, spread=0.3), gpu=swept({10: 0.9e-6, 1000: 1e-5}, spread=0.3))
    assert verdict.outcome == DEPENDS
    assert "about equally fast" in verdict.flips_at


def test_a_sentence_names_the_gpu_that_its_numbers_belong_to() -> None:
    t4 = dataclasses.replace(took(5.0, source="predicted"), device_name="T4")
    assert "on the T4" in decide("serial-cpu-wins", cpu=took(1.0), gpu=t4, steps=1).sentence


def test_small_data_where_the_gpu_never_leads() -> None:
    verdict = decide("small-data", cpu=swept(CPU), gpu=swept({10: 1e-3, 1000: 1e-3}))
    assert verdict.outcome == DEPENDS
    assert "No size up to 1,000" in verdict.flips_at


# --- same-code -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("difference", "outcome"), [(1e-6, UPHELD), (1e-5, UPHELD), (1.1e-5, REFUTED)])
def test_same_code(difference: float, outcome: str) -> None:
    verdict = decide("same-code", differences={"mps": 0.0, "cuda:0": difference}, tolerance=1e-5)
    assert verdict.outcome == outcome
    assert "cuda:0" in verdict.sentence


def test_same_code_needs_a_second_device() -> None:
    assert decide("same-code", differences={}, tolerance=1e-5).outcome == NOT_TESTABLE


# --- memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gpu_s", "outcome"), [(0.1, UPHELD), (0.6, DEPENDS), (2.0, REFUTED)])
def test_bandwidth(gpu_s: float, outcome: str) -> None:
    verdict = decide("high-bandwidth", cpu=took(1.0, bytes_moved=20e9), gpu=took(gpu_s, bytes_moved=20e9))
    assert (verdict.outcome, verdict.number) == (outcome, pytest.approx(1 / gpu_s))
    assert "20 GB/s" in verdict.sentence


@pytest.mark.parametrize(("cpu_bytes", "outcome"), [(8e9, REFUTED), (32e9, DEPENDS), (512e9, UPHELD)])
def test_capacity(cpu_bytes: float, outcome: str) -> None:
    gpus = {"T4": 16 * 2**30, "A100": 80 * 2**30}
    verdict = decide("cpu-more-memory", cpu_bytes=cpu_bytes, gpu_bytes=gpus, source="predicted")
    assert (verdict.outcome, verdict.headline) == (outcome, f"predicted: {outcome}")
    if outcome == DEPENDS:
        assert verdict.flips_at == "The answer changes between T4 (16 GiB) and A100 (80 GiB)."


def test_capacity_without_any_gpu() -> None:
    assert decide("cpu-more-memory", cpu_bytes=8e9, gpu_bytes={}, source="measured").outcome == NOT_TESTABLE


# --- transfers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpu_s", "gpu_s", "transfer_s", "outcome", "passes"),
    [
        (1.0, 0.1, 0.45, REFUTED, 1),  # 0.45 s to carry, 0.9 s saved by the first pass
        (1.0, 0.1, 9.0, DEPENDS, 10.0),
        (1.0, 1.5, 0.1, UPHELD, None),  # nothing is saved at all
    ],
)
def test_feeding(cpu_s: float, gpu_s: float, transfer_s: float, outcome: str, passes: float | None) -> None:
    verdict = decide("feeding-costs", cpu=took(cpu_s), gpu=took(gpu_s), transfer=took(transfer_s))
    assert (verdict.outcome, verdict.number) == (outcome, passes if passes is None else pytest.approx(passes))


def test_feeding_counts_each_array_carried() -> None:
    verdict = decide("feeding-costs", cpu=took(1.0), gpu=took(0.1), transfer=took(9.0), arrays=2)
    assert verdict.number == pytest.approx(20)


@pytest.mark.parametrize(("transfer_s", "outcome"), [(0.5, REFUTED), (30.0, DEPENDS), (5000.0, UPHELD)])
def test_unified_memory(transfer_s: float, outcome: str) -> None:
    verdict = decide("unified-memory", gpu=took(1.0), transfer=took(transfer_s))
    assert (verdict.outcome, verdict.number) == (outcome, pytest.approx(transfer_s / (transfer_s + 1)))


# --- cores and lanes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "gpu_lanes", "outcome"),
    [(2, 2560, UPHELD), (128, 2560, DEPENDS), (2, 384, DEPENDS), (2, None, NOT_TESTABLE)],
)
def test_lanes(cores: int, gpu_lanes: int | None, outcome: str) -> None:
    verdict = decide("few-strong-cores", cpu_cores=cores, lanes_per_core=16, gpu_lanes=gpu_lanes)
    assert verdict.outcome == outcome
    if gpu_lanes:
        assert verdict.number == pytest.approx(gpu_lanes / (cores * 16))


def test_lanes_tell_what_one_core_gained() -> None:
    measured = {"one_lane": took(1.2), "all_lanes": took(0.1)}
    verdict = decide("few-strong-cores", cpu_cores=2, lanes_per_core=16, gpu_lanes=2560, **measured)
    assert "run 12× (12× to 12×, measured) as fast as a chain" in verdict.sentence


@pytest.mark.parametrize(
    ("times_s", "outcome"),
    [
        ({1: 1.0, 2: 0.5, 4: 0.25}, UPHELD),
        ({1: 1.0, 2: 0.6, 4: 0.4}, DEPENDS),  # 20 % serial: 1/p = (1 + 0.2)/0.2 = 6 threads
        ({1: 1.0, 2: 1.2, 4: 1.5}, REFUTED),
        ({1: 1.0, 2: 1.0, 4: 1.0}, REFUTED),
        ({1: 1.0}, NOT_TESTABLE),
    ],
)
def test_cores(times_s: dict[float, float], outcome: str) -> None:
    verdict = decide("more-cores", threads=swept(times_s, parameter="threads"))
    assert verdict.outcome == outcome
    if outcome == DEPENDS:
        assert "20% of the work stays serial" in verdict.sentence
        assert "about 6 threads" in verdict.flips_at


def test_cores_need_a_sweep_over_threads() -> None:
    with pytest.raises(InputError, match="sweep over threads that starts at 1"):
        decide("more-cores", threads=swept({1: 1.0, 2: 0.5}))


# --- matrix products -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("product_s", "outcome", "at_once"), [(0.01, REFUTED, 100), (1.0, UPHELD, 1)])
def test_one_by_one(product_s: float, outcome: str, at_once: float) -> None:
    # 1e9 multiply-adds; one dependent addition takes 1e-3 s / 1e6 = 1 ns
    product = took(product_s, flop=2e9)
    verdict = decide("thousand-matmul", chain=took(1e-3), steps=1_000_000, product=product)
    assert (verdict.outcome, verdict.number) == (outcome, pytest.approx(at_once))


def test_one_by_one_needs_the_flop() -> None:
    with pytest.raises(InputError, match="flop=2"):
        decide("thousand-matmul", chain=took(1e-3), steps=10, product=took(1.0))


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        ({"one": 0.5, "all": 0.2}, UPHELD),
        ({"loop": 5000.0, "all": 0.05}, DEPENDS),
        ({"one": 0.05, "all": 0.02}, REFUTED),
    ],
)
def test_tens_to_hundreds(codes: dict[str, float], outcome: str) -> None:
    measured = {name: took(time_s) for name, time_s in codes.items()}
    verdict = decide("tens-to-hundreds", cpu_codes=measured, gpu=took(0.01))
    assert verdict.outcome == outcome
    assert verdict.number == pytest.approx(codes["all"] / 0.01)


@pytest.mark.parametrize(
    ("gpu_s", "outcome"),
    [
        ({"float32": 0.01, "float64": 0.05}, UPHELD),
        ({"float32": 0.01, "float64": 0.5}, DEPENDS),
        ({"float32": 0.5}, REFUTED),
    ],
)
def test_float_expert(gpu_s: dict[str, float], outcome: str) -> None:
    cpu = {"float32": took(1.0), "float64": took(1.0), "int8": took(1.0)}
    verdict = decide("float-expert", cpu=cpu, gpu={dtype: took(s) for dtype, s in gpu_s.items()} | {"int8": took(1e-6)})
    assert verdict.outcome == outcome
    assert verdict.number == pytest.approx(1 / max(gpu_s.values()))


def test_float_expert_without_a_gpu() -> None:
    assert decide("float-expert", cpu={"float32": took(1.0)}, gpu={}).outcome == NOT_TESTABLE


@pytest.mark.parametrize(
    ("last_s", "jitter_s", "outcome"),
    [(1.0, 0.0, REFUTED), (1.02, 0.0, REFUTED), (1.25, 0.0, UPHELD), (1.05, 0.3, DEPENDS)],
)
def test_heat(last_s: float, jitter_s: float, outcome: str) -> None:
    jitter = [(-1) ** i * jitter_s for i in range(60)]
    times_s = [base + wobble for base, wobble in zip([1.0] * 30 + [last_s] * 30, jitter, strict=True)]
    assert decide("heat", times_s=times_s).outcome == outcome


def test_heat_needs_a_long_run() -> None:
    verdict = decide("heat", times_s=[0.01] * 100)
    assert verdict.outcome == NOT_TESTABLE
    assert "1 s with 100 calls" in verdict.sentence


# --- all of them ---------------------------------------------------------------------------------------------------

NEEDS_A_GPU = {
    "serial-cpu-wins": {"cpu": took(1.0), "gpu": None, "steps": 10},
    "parallel-gpu-wins": {"cpu": swept(CPU), "gpu": None},
    "small-data": {"cpu": swept(CPU), "gpu": None},
    "high-bandwidth": {"cpu": took(1.0), "gpu": None},
    "feeding-costs": {"cpu": took(1.0), "gpu": None, "transfer": None},
    "unified-memory": {"gpu": None, "transfer": None},
    "tens-to-hundreds": {"cpu_codes": {"loop": took(1.0)}, "gpu": None},
}


@pytest.mark.parametrize("claim_id", NEEDS_A_GPU)
def test_without_any_gpu_number_it_is_not_testable_here(claim_id: str) -> None:
    verdict = decide(claim_id, **NEEDS_A_GPU[claim_id])
    assert verdict.outcome == NOT_TESTABLE
    assert verdict.headline == "not testable here"
    assert "Colab" in verdict.flips_at


@pytest.mark.parametrize("source", ["predicted", "recorded"])
@pytest.mark.parametrize(
    ("claim_id", "evidence"),
    [
        ("serial-cpu-wins", lambda s: {"cpu": took(1.0), "gpu": took(5.0, source=s), "steps": 10}),
        ("parallel-gpu-wins", lambda s: {"cpu": swept(CPU), "gpu": swept(CROSSES_AT_100, source=s)}),
        ("small-data", lambda s: {"cpu": swept(CPU), "gpu": swept(CROSSES_AT_100, source=s)}),
        ("high-bandwidth", lambda s: {"cpu": took(1.0, bytes_moved=1), "gpu": took(0.1, source=s, bytes_moved=1)}),
        ("feeding-costs", lambda s: {"cpu": took(1.0), "gpu": took(0.1), "transfer": took(9.0, source=s)}),
        ("unified-memory", lambda s: {"gpu": took(1.0), "transfer": took(9.0, source=s)}),
        ("few-strong-cores", lambda s: {"cpu_cores": 2, "lanes_per_core": 8, "gpu_lanes": 2560, "source": s}),
        ("tens-to-hundreds", lambda s: {"cpu_codes": {"all": took(1.0)}, "gpu": took(0.01, source=s)}),
        ("float-expert", lambda s: {"cpu": {"float32": took(1.0)}, "gpu": {"float32": took(0.01, source=s)}}),
    ],
)
def test_a_number_that_was_not_measured_never_gives_more_than_its_source(claim_id: str, evidence, source: str) -> None:
    verdict = decide(claim_id, **evidence(source))
    assert verdict.source == source
    assert verdict.headline == f"{source}: {verdict.outcome}"


def test_every_claim_has_a_lesson_and_a_sentence() -> None:
    ids = [claim.id for claim in all_claims()]
    assert len(ids) == len(set(ids)) == 26
    for claim in all_claims():
        assert claim.lessons
        assert claim.statement.endswith(".")
    assert {claim.id for claim in all_claims("00")} == {"few-strong-cores"}


def test_unknown_claim_and_evidence_are_named() -> None:
    with pytest.raises(InputError, match="'gpus-are-magic'"):
        find_claim("gpus-are-magic")
    with pytest.raises(InputError, match=r"evidence speed .* It needs: cpu, gpu, steps\."):
        decide("serial-cpu-wins", speed=3)


@pytest.mark.parametrize("outcome", [DEPENDS, NOT_TESTABLE])
def test_a_verdict_without_its_condition_is_refused(outcome: str) -> None:
    with pytest.raises(InputError, match="must say where it flips"):
        Verdict(outcome=outcome, sentence="So it is.")


def test_outcomes_are_the_four() -> None:
    assert OUTCOMES == ("upheld", "refuted", "it depends", "not testable here")
    with pytest.raises(InputError, match="'maybe'"):
        Verdict(outcome="maybe", sentence="So it is.")


# --- evidence that does not fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim_id", "evidence", "said"),
    [
        ("serial-cpu-wins", {"cpu": swept(CPU), "gpu": None, "steps": 1}, "the rule needs Measurement here"),
        ("serial-cpu-wins", {"cpu": took(1.0), "gpu": "fast", "steps": 1}, "the rule needs Measurement or None here"),
        ("parallel-gpu-wins", {"cpu": took(1.0), "gpu": None}, "the rule needs Sweep here"),
        ("tens-to-hundreds", {"cpu_codes": [took(1.0)], "gpu": None}, "the rule needs Mapping here"),
        ("float-expert", {"cpu": {"float32": 1.0}, "gpu": {}}, "cpu['float32']=1.0"),
        ("cpu-more-memory", {"cpu_bytes": 1, "gpu_bytes": {"M2": None}, "source": "measured"}, "gpu_bytes['M2']=None"),
        ("same-code", {"differences": {"GPU": None}, "tolerance": 1e-5}, "differences['GPU']=None"),
        ("few-strong-cores", {"cpu_cores": 0.5, "lanes_per_core": 8, "gpu_lanes": 1}, "cpu_cores=0.5"),
        ("heat", {"times_s": took(1.0)}, "times_s must be a list"),
        ("high-bandwidth", {"cpu": took(1.0), "gpu": took(1.0)}, "Measure it with bytes_moved="),
    ],
)
def test_evidence_of_another_kind_is_refused(claim_id: str, evidence: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        decide(claim_id, **evidence)
    assert said in str(caught.value)


@pytest.mark.parametrize("claim_id", ["parallel-gpu-wins", "small-data"])
def test_two_interrupted_sweeps_may_share_no_size(claim_id: str) -> None:
    with pytest.raises(InputError, match="no value at which all were measured.* run to their end"):
        decide(claim_id, cpu=swept({10: 1.0, 1000: 1.0}), gpu=swept({100: 1.0}))


def test_a_result_that_is_no_number_refutes_that_the_same_code_runs() -> None:
    verdict = decide("same-code", differences={"one": 1e-7, "other": float("nan")}, tolerance=1e-5)
    assert (verdict.outcome, verdict.number) == (REFUTED, None)
    assert "On other" in verdict.sentence


def test_a_verdict_on_a_time_that_cannot_be_believed_says_so() -> None:
    doubtful = dataclasses.replace(took(1e-9), implausible="9 PFLOP/s is above the stated peak of 8.1 TFLOP/s")
    for claim_id, cpu in (
        ("tens-to-hundreds", {"cpu_codes": {"loops": took(1.0)}}),
        ("serial-cpu-wins", {"cpu": took(1.0), "steps": 1}),
    ):
        verdict = decide(claim_id, gpu=doubtful, **cpu)
        assert verdict.sentence.endswith(
            "Beware, the time of work is implausible: 9 PFLOP/s is above the stated peak of 8.1 TFLOP/s."
        )
