"""The reference is checked, too: against NumPy, code that Numba compiles, and Numba's CUDA simulator."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numba import njit, types

from . import fuzz, reference
from .corpus import CASES
from .test_values import expected_of

# Kernels without barriers, atomics or shared memory: with the thread index as a parameter their body runs on the CPU.
COMPILED = (
    "accumulator_that_starts_as_an_integer", "augmented_operators", "casts_between_kinds", "chained_comparison",
    "collatz", "comparisons", "conditional_expression_unifies", "float32_and_literals", "float_operators",
    "int32_products_are_int64", "integer_operators", "integer_power_and_true_division", "integer_wraparound",
    "large_integers_stay_exact", "linear_congruential", "narrow_casts_wrap",
    "negation_of_narrow_integers", "nested_loops_and_breaks",
    "scalar_arguments", "small_unsigned_arrays", "stores_convert", "unsigned_differences", "unsigned_meets_signed",
    "variable_of_two_types", "variable_reused_with_another_type",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if case.expected))
def test_numpy_agrees(name):
    case = CASES[name]
    for position, wanted in case.expected(*case.arguments()).items():
        np.testing.assert_allclose(expected_of(name)[position], wanted, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_kernel_of_the_corpus_depends_on_the_order_of_its_threads(name):
    case = CASES[name]
    arguments = case.arguments()
    reference.launch(case.kernel, case.grid, case.block, *arguments, shared_bytes=case.shared_bytes, reverse=True)
    for wanted, came in zip(expected_of(name), arguments, strict=True):
        if isinstance(wanted, np.ndarray):
            np.testing.assert_array_equal(came, wanted)


def test_no_random_kernel_depends_on_the_order_of_its_threads():
    for seed in range(5):
        case = fuzz.generate(seed)

        def reversed_run(function, grid, block, *arguments):
            reference.launch(function, grid, block, *arguments, reverse=True)

        assert not fuzz.mismatches(case, reversed_run), case.source


class _ThreadAsParameter(ast.NodeTransformer):
    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        is_index = ast.unparse(node) == "cuda.threadIdx.x"
        return ast.Name("thread_index", ast.Load()) if is_index else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_grid = ast.unparse(node) == "cuda.grid(1)"
        return ast.parse("np.int64(thread_index)", mode="eval").body if is_grid else self.generic_visit(node)


def per_thread(kernel):
    """The kernel's body as a function of (arguments…, thread_index), compiled by numba.njit."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    function = _ThreadAsParameter().visit(tree).body[0]
    function.decorator_list = []
    function.args.args.append(ast.arg("thread_index"))
    namespace = dict(kernel.__globals__)
    exec(compile(ast.fix_missing_locations(tree), "<per thread>", "exec"), namespace)
    return njit(error_model="numpy")(namespace[kernel.__name__])


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_agrees(name):
    case = CASES[name]
    function, arguments = per_thread(case.kernel), case.arguments()
    for block in range(case.grid):
        for thread in range(case.block):
            function(*arguments, np.int32(block * case.block + thread))
    for wanted, came in zip(expected_of(name), arguments, strict=True):
        if isinstance(wanted, np.ndarray):
            np.testing.assert_array_equal(came, wanted)


def test_types_are_those_of_the_compiler():
    """What the specification says about types, read off Numba's own type inference."""
    found = reference.types_of(
        CASES["accumulator_that_starts_as_an_integer"].kernel,
        *CASES["accumulator_that_starts_as_an_integer"].arguments(),
    )
    # `total = 0` meets float32 · float32: from the loop on it is a float64; np.float32(0) stays float32.
    assert {kind for name, kind in found.items() if name.startswith("total.")} == {"float64"}
    assert {kind for name, kind in found.items() if name.startswith("single")} == {"float32"}
    compiled = njit(lambda a, b: (a * b, a * 2, a * 2.0, b + b, b / b))
    compiled(np.float32(1), np.int32(1))
    (signature,) = compiled.nopython_signatures
    # float32·int32, float32·int64 and float32·float64 are float64; int32 + int32 is int64; int32 / int32 is float64.
    wide = [types.float64, types.float64, types.float64, types.int64, types.float64]
    assert list(signature.return_type) == wide


# Kernels whose types NumPy's scalars and Numba's compiler agree on, launches of at most 64 threads.
SIMULATED = (
    "atomic_add_sub_max_min", "binary_search", "bitonic_sort", "block_reduction", "chained_indices",
    "device_function_with_a_loop", "elif_ladder", "first_negative", "four_dimensions", "inclusive_scan",
    "insertion_sort_in_a_local_array", "nested_loops_and_breaks", "odd_block", "return_inside_a_loop",
    "skip_with_continue", "stencil_with_a_halo", "three_dimensional_grid", "tiled_matmul", "transpose_2d", "while_true",
)  # fmt: skip


def test_numbas_simulator_agrees():
    """One subprocess, because the simulator is chosen before numba.cuda is first imported."""
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "LABKIT_SIMT": "cpu", "PYTHONPATH": paths}
    command = [sys.executable, "-m", "tests.simt.numba_simulator", *SIMULATED]
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    for name, given in json.loads(run.stdout.splitlines()[-1]).items():
        arrays = [argument for argument in expected_of(name) if isinstance(argument, np.ndarray)]
        for wanted, came in zip(arrays, given, strict=True):
            np.testing.assert_allclose(np.array(came), wanted, rtol=1e-6, atol=1e-6, err_msg=name)
