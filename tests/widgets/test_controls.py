import math

import pytest

from labkit.errors import InputError
from labkit.units import format_bytes, format_s
from labkit.widgets import choice, log_slider, slider, steps, toggle
from labkit.widgets.controls import as_control


def test_whole_ends_give_whole_numbers_and_both_ends_belong():
    assert slider(1, 5).values == (1, 2, 3, 4, 5)
    assert slider(1, 10, 4).values == (1, 5, 9, 10)
    assert all(type(value) is int for value in slider(0, 10_000).values)


def test_decimal_steps_are_exact():
    assert slider(0, 0.5, 0.1).values == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)  # binary sums would give 0.30000000000000004


@pytest.mark.parametrize(("lo", "hi", "step"), [(0, 1.0, 0.005), (0, 200, 1), (0, 10_000, 50), (0, 3e-3, 2e-5)])
def test_a_step_is_chosen_that_is_round(lo, hi, step):
    values = slider(lo, hi).values
    assert values[1] - values[0] == pytest.approx(step)
    assert (values[0], values[-1]) == (lo, hi)


def test_a_log_slider_doubles_between_powers_of_two():
    assert log_slider(2**10, 2**14).values == (1024, 2048, 4096, 8192, 16384)
    assert log_slider(3, 24).values == (3, 6, 12, 24)


def test_a_log_slider_goes_through_round_numbers_elsewhere():
    assert log_slider(0.1, 1.0).values == (0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
    assert log_slider(7, 30).values == (7, 8, 10, 12, 15, 20, 25, 30)
    assert log_slider(1, 1000, factor=10).values == (1, 10, 100, 1000)


def test_a_log_slider_starts_where_told_and_else_in_the_middle():
    control = log_slider(64, 1024, value=1000)
    assert control.values == (64, 128, 256, 512, 1000, 1024)
    assert control.values[control.start] == 1000
    middle = log_slider(1, 100)
    assert middle.values[middle.start] == 10
    middle = log_slider(1, 2000, factor=10)  # the middle is 45: as a factor 100 is nearer than 10
    assert middle.values[middle.start] == 100


def test_texts_carry_units():
    assert log_slider(1024, 4096, unit=lambda n: format_bytes(n, binary=True)).texts == ("1 KiB", "2 KiB", "4 KiB")
    assert slider(0.0, 0.002, 0.001, unit=format_s).texts == ("0 s", "1 ms", "2 ms")
    assert slider(1, 2, unit="threads").texts == ("1 threads", "2 threads")
    assert steps([10_000, 0.5]).texts == ("10,000", "0.5")


def test_short_forms():
    assert as_control("n", (1, 3)) == slider(1, 3)
    assert as_control("n", (0, 1, 0.5)) == slider(0, 1, 0.5)
    assert as_control("dtype", ["float32", "float64"]) == choice(["float32", "float64"])
    assert as_control("dtype", {"single": 4, "double": 8}).values == (4, 8)
    assert as_control("warm", True) == toggle(True)


@pytest.mark.parametrize("spec", [None, 3, "abc", (1,), (1, 2, 3, 4), ("a", "b"), object()])
def test_other_specs_are_refused_by_name(spec):
    with pytest.raises(InputError, match="size="):
        as_control("size", spec)


@pytest.mark.parametrize(
    "make",
    [
        lambda: slider(5, 5),
        lambda: slider(5, 1),
        lambda: slider(0, math.inf),
        lambda: slider(math.nan, 1),
        lambda: slider(True, 5),
        lambda: slider(0, 1, -0.1),
        lambda: slider(0, 1, 0),
        lambda: slider(0, 10, 0.001),  # 10,001 positions
        lambda: slider(0, 10, value=11),
        lambda: log_slider(0, 10),
        lambda: log_slider(-1, 10),
        lambda: log_slider(1, 100, factor=1),
        lambda: log_slider(1, 1e9, factor=1.001),
        lambda: log_slider(1, 100, value=0.5),
        lambda: steps([1]),
        lambda: steps([1, 2], value=3),
        lambda: choice([]),
        lambda: choice("float32"),
        lambda: choice([1, 1.0000001]),  # the same text twice
        lambda: choice(["a"], value="b"),
        lambda: toggle("yes"),
        lambda: slider(1, 5, label="n < 5"),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(InputError):
        make()


def test_a_value_that_is_not_offered_names_the_nearest():
    with pytest.raises(InputError, match=r"n=1000: .*nearest one is 1024"):
        log_slider(256, 4096).position_of("n", 1000)
    with pytest.raises(InputError, match="float32, float64"):
        choice(["float32", "float64"]).position_of("dtype", "int8")
