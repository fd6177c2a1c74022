"""Rounding by hand, by torch's own casts and by exact arithmetic; errors against their theory."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from labkit.errors import InputError
from labkit.precision import (
    ROUNDED,
    relative_error,
    round_to,
    tf32_settings,
    tolerance,
    unit_roundoff,
)

MANTISSA_BITS = {"tf32": 10, "bfloat16": 7, "float16": 10}


SMALLEST_EXPONENT = {"tf32": -126, "bfloat16": -126, "float16": -14}  # below it the gaps stay as they are


def nearest(x: float, name: str) -> float:
    """Round in exact arithmetic: Python's round() of a fraction takes ties to even."""
    mantissa_bits = MANTISSA_BITS[name]
    exponent = max(math.frexp(x)[1] - 1, SMALLEST_EXPONENT[name])
    gap = Fraction(2) ** (exponent - mantissa_bits)
    return float(round(Fraction(x) / gap) * gap)


# C12-01
@pytest.mark.parametrize(
    ("x", "name", "rounded"),
    [
        (1024.5, "tf32", 1024.0),  # halfway between 1024 and 1025: to the even one
        (1024.6, "tf32", 1025.0),
        (1025.5, "tf32", 1026.0),
        (-1024.5, "tf32", -1024.0),
        (1.0 + 2**-11, "tf32", 1.0),
        (1.0 + 3 * 2**-11, "tf32", 1.0 + 2**-9),
        (0.1, "tf32", 0.0999755859375),  # 1638 * 2^-14: 0.1 / 2^-14 = 1638.4
        (257.0, "bfloat16", 256.0),  # 8 bits in all: 256, 258, 260
        (259.0, "bfloat16", 260.0),
        (2049.0, "float16", 2048.0),  # 11 bits in all
        (65519.0, "float16", 65504.0),
        (65520.0, "float16", math.inf),  # halfway to 65536, which is too large
        (2.0**-25, "float16", 0.0),  # half of the smallest subnormal number: to even
        (3.4028235e38, "bfloat16", math.inf),
        (3.4028235e38, "tf32", math.inf),
        (0.0, "tf32", 0.0),
        (math.inf, "tf32", math.inf),
    ],
)
def test_rounding_by_hand(x: float, name: str, rounded: float) -> None:
    assert round_to(x, name) == rounded


@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_equals_exact_arithmetic(name: str) -> None:
    rng = np.random.default_rng(0)
    xs = (rng.standard_normal(500) * 10.0 ** rng.integers(-3, 4, 500)).astype(np.float32)
    ties = np.float32(1 + (rng.integers(0, 100, 50) + 0.5) * 2.0 ** -MANTISSA_BITS[name])
    for x in np.concatenate([xs, ties]):
        assert round_to(float(x), name) == nearest(float(x), name)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_rounding_equals_torchs_own_cast(name: str) -> None:
    x = torch.randn(10_000, generator=torch.Generator().manual_seed(0)) * 100
    assert torch.equal(round_to(x, name), x.to(getattr(torch, name)).float())


def test_what_is_no_number_stays_so_and_the_given_is_left_alone() -> None:
    x = np.array([math.nan, -math.inf, 1024.5], dtype=np.float32)
    before = x.copy()
    rounded = round_to(x, "tf32")
    assert math.isnan(rounded[0]) and rounded[1] == -math.inf and rounded[2] == 1024
    np.testing.assert_array_equal(x, before)


def test_a_nan_with_all_bits_set_is_no_overflow() -> None:
    x = np.array([0x7FFFFFFF, 0xFFFFFFFF], dtype=np.uint32).view(np.float32)
    assert np.isnan(round_to(x, "tf32")).all() and np.isnan(round_to(x, "bfloat16")).all()


def test_the_shape_and_kind_of_the_input_come_back() -> None:
    assert isinstance(round_to(1, "tf32"), float)
    assert round_to(torch.ones(2, 3, dtype=torch.float64), "tf32").shape == (2, 3)
    assert round_to(torch.tensor(1024.5), "tf32").shape == ()
    assert round_to(np.ones((2, 0)), "bfloat16").shape == (2, 0)
    assert round_to(torch.arange(3), "float16").dtype == torch.float32
    assert round_to([1024.5, 1.0], "tf32").tolist() == [1024, 1]
    assert isinstance(round_to(np.float64(1024.5), "tf32"), float)


# C12-01
def test_products_of_rounded_numbers_are_as_far_off_as_measured_elsewhere() -> None:
    """N = 512: 2.9e-4 in TF32 against 5.1e-7 in float32, in the table that the case is from.

    By theory: a mantissa spread evenly in the logarithm is rounded with a root mean square of u·sqrt(1/3)·sqrt(3/8
    over ln 2) = 0.425 u; two inputs make sqrt(2) times that: 2.9e-4 for u = 2^-11.
    """
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((512, 512)).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    in_tf32 = relative_error(round_to(a, "tf32") @ round_to(b, "tf32"), exact)
    in_float32 = relative_error(a @ b, exact)
    expected = math.sqrt(2) * math.sqrt(1 / 3) * math.sqrt(3 / 8 / math.log(2)) * 2**-11
    assert in_tf32 == pytest.approx(expected, rel=0.05)
    assert in_tf32 == pytest.approx(2.9e-4, rel=0.05)
    assert in_float32 < 1e-6 < in_tf32
    assert in_float32 < tolerance("float32", terms=512) < in_tf32 < tolerance("tf32", terms=512)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_product_in_half_precision_stays_within_its_tolerance_and_uses_it(name: str) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((256, 256)).astype(np.float32) for _ in range(2))
    result = round_to(round_to(a, name) @ round_to(b, name), name)
    error = relative_error(result, a.astype(np.float64) @ b.astype(np.float64))
    assert tolerance(name, terms=256) / 10 < error < tolerance(name, terms=256)


# C12-01
def test_the_defaults_of_torch_are_told() -> None:
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("highest")
        assert tf32_settings() == {"matrix products": False, "convolutions": True}
        torch.set_float32_matmul_precision("high")
        assert tf32_settings()["matrix products"]
    finally:
        torch.set_float32_matmul_precision(before)


def test_tolerances_by_hand() -> None:
    assert [unit_roundoff(name) for name in ("float32", "tf32", "float16", "bfloat16")] == [
        2**-24, 2**-11, 2**-11, 2**-8,
    ]  # fmt: skip
    assert tolerance("float32", terms=4) == 2 * 2**-24 + 2 * 2**-24
    assert tolerance("bfloat16", terms=16, layers=2) == 2 * (3 * 2**-8 + 4 * 2**-24)


@pytest.mark.parametrize(
    ("result", "reference", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([0.0, 0.0], [3.0, 4.0], 1.0),
        ([3.0, 5.0], [3.0, 4.0], 0.2),
        ([1e200, 0.0], [1e200, 1e200], 1 / math.sqrt(2)),  # whose squares are beyond all floats
        ([1e-200], [2e-200], 0.5),
        ([1.0], [0.0], math.inf),
        ([0.0], [0.0], 0.0),
        ([math.nan, 1.0], [1.0, 1.0], math.inf),
        ([math.inf, 1.0], [math.inf, 1.0], 0.0),
        ([math.inf, 1.0], [-math.inf, 1.0], math.inf),
        ([math.nan], [math.nan], 0.0),
    ],
)
def test_relative_error_by_hand(result: list[float], reference: list[float], error: float) -> None:
    assert relative_error(result, reference) == pytest.approx(error)
    assert relative_error(torch.tensor(result, dtype=torch.float64), np.array(reference)) == pytest.approx(error)


def test_half_precision_results_can_be_compared() -> None:
    x = torch.tensor([1.0, 2.0])
    assert relative_error(x.to(torch.bfloat16), x) == relative_error(x.half(), x) == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: round_to(1.0, "float8"), "'tf32', 'bfloat16', 'float16'"),
        (lambda: round_to("1.5", "tf32"), "must hold real numbers"),
        (lambda: round_to(object(), "tf32"), "must hold real numbers"),
        (lambda: round_to([1.0, [2.0]], "tf32"), "must hold real numbers"),
        (lambda: round_to(torch.ones(1, dtype=torch.complex64), "tf32"), "no real numbers"),
        (lambda: round_to(torch.ones(1, device="meta"), "tf32"), "no real numbers"),
        (lambda: relative_error([1.0], [1.0, 2.0]), "same shape"),
        (lambda: relative_error([], []), "at least one number"),
        (lambda: unit_roundoff("float64"), "not one that labkit knows"),
        (lambda: tolerance("tf32", terms=0), "terms"),
        (lambda: tolerance("tf32", terms=1, layers=-1), "layers"),
    ],
)
def test_nonsense_is_refused(call: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


def test_the_difference_of_the_largest_numbers_is_within_reach() -> None:
    largest = 1.7e308
    assert relative_error([largest, 0.0], [-largest, 0.0]) == pytest.approx(2.0)
    assert relative_error([5e-324], [1e-323]) == 0.5  # the smallest ones of all


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_tensors_that_are_not_dense_are_refused_and_negated_views_are_read() -> None:
    for odd in (torch.eye(2).to_sparse(), torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)):
        with pytest.raises(InputError):
            round_to(odd, "tf32")
        with pytest.raises(InputError):
            relative_error(odd, torch.ones(2))
    negated = torch.tensor([1024.6 + 1024.6j]).conj().imag  # a view that is negated when it is read
    assert round_to(negated, "tf32").tolist() == [-1025.0]
