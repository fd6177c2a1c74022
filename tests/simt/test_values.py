"""Values of simulated kernels: the corpus and a hundred random kernels against the scalar reference, to the bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from labkit.simt import cuda, trace

from . import fuzz, reference
from .corpus import CASES, Case

FUZZED = 100  # a thousand in bench/simt.py
PER_TEST = 10


@cache
def expected_of(name: str) -> tuple:
    """All arguments of a case after the reference has run it."""
    case = CASES[name]
    arguments = case.arguments()
    reference.launch(case.kernel, case.grid, case.block, *arguments, shared_bytes=case.shared_bytes)
    return arguments


def assert_same(case: Case, given: tuple) -> None:
    """Compare array by array: equal, or within the ulp that the case allows its transcendental functions."""
    for position, (wanted, came) in enumerate(zip(expected_of(case.name), given, strict=True)):
        if not isinstance(wanted, np.ndarray):
            continue
        where = f"{case.name}, argument {position}"
        if case.ulp and wanted.dtype.kind == "f":
            difference = np.abs(wanted.astype(np.float64) - came.astype(np.float64))
            allowed = case.ulp * np.spacing(np.abs(wanted)).astype(np.float64)
            assert np.all((difference <= allowed) | (wanted == came) | (np.isnan(wanted) & np.isnan(came))), where
        else:
            np.testing.assert_array_equal(came, wanted, err_msg=where)


@pytest.mark.parametrize("name", sorted(CASES))
def test_launch_gives_the_values_of_the_reference(name):
    case = CASES[name]
    arguments = case.arguments()
    cuda.jit(case.kernel)[case.grid, case.block, 0, case.shared_bytes](*arguments)
    assert_same(case, arguments)


@pytest.mark.parametrize("schedule", ["lockstep", "interleaved"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_trace_changes_the_arrays_as_a_launch_does(name, schedule):
    case = CASES[name]
    arguments = case.arguments()
    options = {"shared_bytes": case.shared_bytes} if case.shared_bytes else {}
    trace(cuda.jit(case.kernel), case.grid, case.block, *arguments, schedule=schedule, **options)
    if case.name not in ("atomic_returns_the_old_value",) or schedule == "lockstep":
        assert_same(case, arguments)


def run_every_way(function, grid, block, *arguments):
    """Launch, then trace under both schedules; all three must agree and none may see a hazard."""
    kernel = cuda.jit(function)
    copies = [[argument.copy() for argument in arguments] for _ in range(2)]
    kernel[grid, block](*arguments)
    for schedule, copy in zip(("lockstep", "interleaved"), copies, strict=True):
        traced = trace(kernel, grid, block, *copy, schedule=schedule)
        assert traced.hazards == (), f"{schedule}: {traced.hazards}"
        for launched, simulated in zip(arguments, copy, strict=True):
            np.testing.assert_array_equal(simulated, launched, err_msg=schedule)


@pytest.mark.parametrize("first", range(0, FUZZED, PER_TEST))
def test_random_kernels(first):
    for seed in range(first, first + PER_TEST):
        case = fuzz.generate(seed)
        try:
            problems = fuzz.mismatches(case, run_every_way)
        except Exception as error:
            raise AssertionError(fuzz.report(case, [f"{type(error).__name__}: {error}"])) from error
        assert not problems, fuzz.report(case, problems)


def test_a_wrong_simulator_would_be_noticed():
    """The check can fail: a run in which one thread stores something else does not pass."""
    case = fuzz.generate(3)

    def one_thread_differs(function, grid, block, *arguments):
        reference.launch(function, grid, block, *arguments)
        out_f = arguments[6]
        out_f[-1, 2] = np.nextafter(out_f[-1, 2], np.inf)

    assert len(fuzz.mismatches(case, one_thread_differs)) == 1
