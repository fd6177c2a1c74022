import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from labkit import errors
from labkit.errors import InputError, LabkitError, check_choice, check_count, check_positive, check_text

CHILDREN = [errors.InputError, errors.DeviceError, errors.RecordError, errors.KernelError, errors.WorkerError]
NO_NUMBERS = [math.nan, math.inf, -math.inf, "3", b"3", None, True, np.True_, [], [1], {}, 1j, object, 10**400]
NO_NUMBERS += [np.array([1.0, 2.0]), torch.ones(2), torch.ones(1, device="meta"), Decimal("sNaN"), np.float64("nan")]


@pytest.mark.parametrize("child", CHILDREN)
def test_every_error_says_what_was_given_what_is_wrong_and_what_to_do(child):
    error = child("n=-1", "n must be positive", "Try n=64.")
    assert str(error) == "n=-1: n must be positive. Try n=64."
    assert (error.given, error.problem, error.advice) == ("n=-1", "n must be positive", "Try n=64.")
    assert isinstance(error, LabkitError)


def test_an_error_without_advice_ends_with_one_full_stop():
    assert str(LabkitError("n=-1", "n must be positive")) == "n=-1: n must be positive."
    assert str(LabkitError("n=-1", "n must be positive.")) == "n=-1: n must be positive."


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_the_way_to_another_process(again):
    error = again(errors.DeviceError("cuda", "no such GPU", "Use the CPU."))
    assert type(error) is errors.DeviceError
    assert str(error) == "cuda: no such GPU. Use the CPU."


def test_a_notebook_shows_the_message_alone(capsys):
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_cell("from labkit.errors import InputError\nraise InputError('n=-1', 'n must be positive', 'Try n=64.')")
    assert capsys.readouterr().out.strip() == "InputError: n=-1: n must be positive. Try n=64."


@pytest.mark.parametrize("value", [1, 0.5, 1e-308, 5e-324, 10**300])
def test_positive_numbers_pass_unchanged(value):
    passed = check_positive("n", value)
    assert passed == value
    assert type(passed) is type(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(512), 512),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.array(7), 7),
        (torch.tensor(7), 7),
        (torch.tensor(2.5), 2.5),
        (Fraction(1, 4), 0.25),
        (Decimal("0.25"), 0.25),
    ],
)
def test_numbers_of_other_libraries_become_plain_ones_that_json_can_hold(value, plain):
    passed = check_positive("n", value)
    assert passed == plain
    assert type(passed) is type(plain)


@pytest.mark.parametrize("value", [*NO_NUMBERS, -1, -0.5, 0, 0.0, -0.0, np.int64(-3)], ids=repr)
def test_what_is_no_positive_number_is_refused_and_repeated(value):
    with pytest.raises(InputError) as caught:
        check_positive("length", value, unit="metres")
    assert f"length={value!r}: length must be a positive number of metres" in str(caught.value)


def test_zero_passes_only_where_it_may():
    assert check_positive("n", 0, zero_ok=True) == 0
    assert check_positive("n", -0.0, zero_ok=True) == 0
    with pytest.raises(InputError, match="n=-1: n must be zero or a positive number"):
        check_positive("n", -1, zero_ok=True)


@pytest.mark.parametrize("value", [1, 17, np.int32(4), torch.tensor(3)])
def test_counts_are_whole_numbers_from_one_on(value):
    assert check_count("threads", value) == int(value)
    assert type(check_count("threads", value)) is int


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, -1, 1.0, 2.5, np.float64(2)], ids=repr)
def test_what_is_no_count_is_refused_and_repeated(value):
    with pytest.raises(InputError) as caught:
        check_count("threads", value)
    assert f"threads={value!r}: threads must be a whole number" in str(caught.value)


def test_texts():
    assert check_text("label", "matmul") == "matmul"
    assert check_text("note", "", empty_ok=True) == ""
    for bad in ("", "  ", None, 3, b"matmul", ["matmul"]):
        with pytest.raises(InputError) as caught:
            check_text("label", bad)
        assert f"label={bad!r}" in str(caught.value)
    with pytest.raises(InputError, match="note=None: note must be a text"):
        check_text("note", None, empty_ok=True)


@pytest.mark.parametrize("value", ["fast", "", "Quick", None, 3, ["quick"], {"quick": 1}])
def test_unknown_names_are_refused_with_the_list_of_known_ones(value):
    with pytest.raises(InputError) as caught:
        check_choice("profile", value, (name for name in ("quick", "normal")))
    assert str(caught.value).startswith(f"profile={value!r}: ")
    assert caught.value.advice == "Choose one of 'quick', 'normal'."
    assert check_choice("profile", "quick", ("quick", "normal")) == "quick"
