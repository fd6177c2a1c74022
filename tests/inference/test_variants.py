"""Variants: each a net that answers within its theory's tolerance, or a sentence; and the table that judges them."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scripted import ScriptedClock
from torch import nn

from labkit import devices
from labkit.errors import DataError, DeviceError, InputError
from labkit.inference import Variant, compare_variants, int8, variant, variants
from labkit.inference.int8 import check_int8, convert_to_int8
from labkit.precision import relative_error, tolerance

TERMS, LAYERS = 9 * 8, 3  # of the net below: the longest sum, and the products in a row


@pytest.fixture(autouse=True)
def normal_profile_and_two_cpus(monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_PROFILE", "normal")
    monkeypatch.setattr(devices, "usable_cpus", lambda: 2)


def net() -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, stride=2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 4 * 4, 10))


def images(count: int = 16) -> torch.Tensor:
    return torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def made(name: str, model: nn.Module | None = None, examples: torch.Tensor | None = None, **options: Any) -> Variant:
    (found,) = variants(model or net(), images() if examples is None else examples, names=[name], **options)
    return found


def answers(found: Variant, examples: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return found.run(examples)


@pytest.fixture
def compiled_without_a_compiler(monkeypatch) -> None:
    """torch.compile as far as it goes in Python: the graph is captured and run, and no C++ is written."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    monkeypatch.setattr(variant, "_missing_compiler", lambda: "")


# --- each variant against theory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "1 thread", "channels_last", "bfloat16", "float16"])
def test_answers_are_as_far_from_exact_ones_as_theory_allows(name: str) -> None:
    """Exact means float64. Shorter formats must also show that they are shorter: no format may be ignored."""
    exact = copy.deepcopy(net()).double().eval()(images().double()).detach()
    found = made(name)
    error = relative_error(answers(found, images()), exact)
    in_format = name if "float16" in name else "float32"
    assert 0 < error < tolerance(in_format, terms=TERMS, layers=LAYERS)
    if in_format != "float32":
        assert error > tolerance("float32", terms=TERMS, layers=LAYERS)


class Wrapped(nn.Module):
    """A net that is no Sequential: unlike one, it has no length, and when compiled not even a truth value."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_compiled_answers_are_those_of_float32(compiled_without_a_compiler) -> None:
    found = made("compile", Wrapped(), batch=4)
    assert torch.equal(answers(found, images(4)), net().eval()(images(4)))
    assert repr(found).startswith("compile: torch.compile made one program for batches of 4 in ")
    compared = compare_variants([made("float32", Wrapped()), found], images(8), batch=4, min_time_s=0.001)
    assert compared["compile"].error == 0 and compared["compile"].same_best == 1


def test_what_was_compiled_is_not_compiled_again_when_it_is_timed(compiled_without_a_compiler, monkeypatch) -> None:
    """torch compiles anew for another number of threads: here it is set to more than this process may use."""
    built = []

    def backend(graph: Any, inputs: Any) -> Any:
        built.append(torch.get_num_threads())
        return graph

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile.func, backend=backend))
    monkeypatch.setattr(devices.cpus, "usable_cpus", lambda: 2)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        compare_variants(variants(net(), images(), names=["float32", "compile"]), images(), min_time_s=0.001)
        assert built == [2] and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_cell_that_compiles_can_run_ten_times(compiled_without_a_compiler, monkeypatch) -> None:
    """torch keeps what it compiled, and runs the plain net without a word once that is too much of one source."""
    ran = []

    def backend(graph: Any, inputs: Any) -> Callable[..., Any]:
        return lambda *given: (ran.append(True), graph(*given))[1]

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile.func, backend=backend))
    for _ in range(10):
        found, before = made("compile"), len(ran)
        answers(found, images(1))
        assert len(ran) == before + 1


def test_the_model_itself_stays_as_it_is(compiled_without_a_compiler) -> None:
    model = net().train()
    before = copy.deepcopy(model.state_dict())
    assert all(found.run is not None for found in variants(model, images()))
    assert model.training and all(type(one) in (nn.Conv2d, nn.ReLU, nn.Flatten, nn.Linear) for one in model)
    after = model.state_dict()
    assert all(torch.equal(after[name], before[name]) and after[name].dtype == torch.float32 for name in before)


def test_one_thread_is_timed_with_one_thread() -> None:
    assert made("1 thread").threads == 1 and made("float32").threads is None


# --- int8 against whole numbers worked in NumPy ----------------------------------------------------------------


def in_whole_numbers(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, levels: int) -> np.ndarray:
    """Quantise as the paper says, multiply in int64, and scale back: (n, k) times (m, k)."""
    scale = np.abs(weight).max(axis=1) / 127
    w = np.rint(weight / scale[:, None]).astype(np.int64)
    low, high = min(x.min(), 0), max(x.max(), 0)
    step = (high - low) / levels
    zero = np.rint(-low / step)
    q = np.clip(np.rint(x / step) + zero, 0, levels).astype(np.int64)
    return (q - int(zero)) @ w.T * step * scale + bias


def test_an_8_bit_linear_layer_multiplies_whole_numbers() -> None:
    torch.manual_seed(2)
    layer, x = nn.Linear(100, 7), torch.randn(5, 100)
    found = convert_to_int8(nn.Sequential(layer)).model(x)
    weight, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    expected = in_whole_numbers(x.double().numpy(), weight, bias, check_int8())
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert 1e-3 < relative_error(found, layer(x)) < 0.03  # 8 bits are not more than they are


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 1), (2, 1)])
def test_an_8_bit_convolution_multiplies_whole_numbers(stride: int, padding: int) -> None:
    """Inputs of both signs: the border of zeros must be zeros, too, which are no zeros in whole numbers."""
    torch.manual_seed(3)
    layer, x = nn.Conv2d(6, 5, 3, stride=stride, padding=padding), torch.randn(2, 6, 9, 9) - 0.5
    found = convert_to_int8(nn.Sequential(layer)).model(x)
    patches = nn.functional.unfold(x, 3, stride=stride, padding=padding).transpose(1, 2).reshape(-1, 54)
    weight, bias = layer.weight.detach().double().flatten(1).numpy(), layer.bias.detach().double().numpy()
    x_range = torch.cat([patches, torch.tensor([[x.min(), *[0.0] * 52, x.max()]])]).double().numpy()
    expected = in_whole_numbers(x_range, weight, bias, check_int8())[:-1]
    shape = found.shape
    np.testing.assert_allclose(found.permute(0, 2, 3, 1).reshape(-1, 5).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert shape == layer(x).shape


def test_a_zero_channel_zeros_and_many_axes_pass() -> None:
    layer = nn.Linear(4, 3)
    with torch.no_grad():
        layer.weight[1] = 0
    model = convert_to_int8(nn.Sequential(layer)).model
    torch.testing.assert_close(model(torch.zeros(2, 5, 4)), layer(torch.zeros(2, 5, 4)).detach())
    assert model(torch.randn(2, 5, 4))[..., 1].allclose(layer.bias[1].detach())


def test_what_cannot_be_in_8_bits_stays_and_is_counted() -> None:
    model = nn.Sequential(
        nn.Conv2d(4, 4, 3, groups=2), nn.Conv2d(4, 4, 3, padding="same"), nn.Flatten(), nn.Linear(4, 2)
    )
    found = convert_to_int8(model)
    assert (found.converted, found.left) == (1, 2)
    whole = nn.Sequential(nn.Conv2d(4, 4, 3), nn.Embedding(3, 3))
    assert convert_to_int8(whole)[1:] == (1, 1)


def test_a_layer_fed_with_no_numbers_says_so() -> None:
    model = convert_to_int8(nn.Sequential(nn.Linear(2, 2))).model
    with pytest.raises(InputError, match="infinite numbers or none"):
        model(torch.tensor([[1.0, float("nan")]]))


def test_products_that_overflow_are_made_with_7_bits_or_not_at_all(monkeypatch) -> None:
    """A CPU without VNNI adds two products in 16 bits: 2 · 255 · 127 is too much for it, 2 · 127 · 127 is not."""
    monkeypatch.setattr(int8, "_is_exact", lambda levels: 2 * levels * 127 < 2**15)
    check_int8.cache_clear()
    try:
        assert check_int8() == 127
        found = made("int8")
        assert "7 bits" in found.sentence
        monkeypatch.setattr(int8, "_is_exact", lambda levels: False)
        check_int8.cache_clear()
        assert made("int8").run is None and "are not exact" in made("int8").sentence
        monkeypatch.delattr(int8, "_is_exact")
        check_int8.cache_clear()
        with pytest.raises(DeviceError, match="no 8-bit products for this CPU"):
            check_int8()
    finally:
        check_int8.cache_clear()


# --- what a machine cannot do ----------------------------------------------------------------------------------


def test_without_a_compiler_the_sentence_names_it(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(variant.platform, "system", lambda: "Linux")
    found = made("compile")
    assert found.run is None and found.sentence.endswith("there is no g++ here.")
    monkeypatch.setenv("CXX", "mycc -O2")
    assert made("compile").sentence.endswith("there is no mycc -O2 here.")


def test_a_compiler_that_fails_is_quoted(monkeypatch) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("\nPython.h: No such file\nlong story")

    monkeypatch.setattr(variant, "_missing_compiler", lambda: "")
    monkeypatch.setattr(torch, "compile", breaks)
    assert repr(made("compile")) == "compile: NOT HERE, it failed here with RuntimeError: Python.h: No such file"


def test_the_quick_profile_compiles_nothing(monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_PROFILE", "quick")
    monkeypatch.setattr(torch, "compile", None)
    assert "left out in the quick profile" in made("compile").sentence


@pytest.mark.parametrize(
    ("name", "model", "examples", "said"),
    [
        ("channels_last", nn.Linear(4, 2), torch.rand(3, 4), "these examples have 2 axes"),
        ("channels_last", nn.Identity(), torch.rand(3), "these examples have 1 axis"),
        ("int8", nn.Sequential(nn.ReLU()), torch.rand(3, 4), "no Conv2d or Linear layer"),
    ],
)
def test_what_does_not_fit_the_net_says_why(name: str, model: nn.Module, examples: torch.Tensor, said: str) -> None:
    found = made(name, model, examples)
    assert found.run is None and said in found.sentence
    assert "NOT HERE" in repr(found)


def test_one_usable_cpu_leaves_nothing_to_compare(monkeypatch) -> None:
    monkeypatch.setattr(devices, "usable_cpus", lambda: 1)
    assert "one CPU only" in made("1 thread").sentence


def test_a_net_that_has_no_kernel_for_a_format_says_so() -> None:
    class OnlyFloat32(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.dtype != torch.float32:
                raise NotImplementedError("\"net\" not implemented for 'Half'")
            return x

    found = made("float16", OnlyFloat32())
    assert found.run is None and "not implemented for 'Half'" in found.sentence


def test_a_variant_with_an_answer_of_another_shape_is_refused(monkeypatch) -> None:
    monkeypatch.setitem(variant._MAKERS, "bfloat16", lambda plain, given: Variant("bfloat16", "odd", lambda x: x[0]))
    assert "its answer has the shape (1, 8, 8)" in made("bfloat16").sentence


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: variants(net(), images(), names=["int4"]), "not one that labkit knows"),
        (lambda: variants(net(), images(), names=[]), "nothing to try"),
        (lambda: variants(net(), images(), names=3), "list or tuple"),
        (lambda: variants(net(), images(2), batch=3), "a batch of 3 needs as many"),
        (lambda: variants(lambda x: x, images()), "made of an nn.Module"),
        (lambda: variants(net(), images().long()), "store real numbers"),
        (lambda: variants(TwoAnswers(), images()), "only answers in one tensor"),
        (lambda: compare_variants([], images()), "float32 must be among them"),
        (lambda: compare_variants([Variant("float32", "no")], images()), "float32 must be among them"),
        (lambda: compare_variants(["float32"], images()), "a variant"),
        (lambda: compare_variants(hand_made(ScriptedClock()), torch.rand(1, 3), batch=2), "needs as many"),
        (lambda: compare_variants(hand_made(ScriptedClock()), torch.rand(4, 3), rounds=0), "rounds"),
    ],
)
def test_nonsense_is_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


class TwoAnswers(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x


# --- the comparison ------------------------------------------------------------------------------------------------


def hand_made(clock: ScriptedClock) -> tuple[Variant, ...]:
    """float32 takes 2 s; "int8" takes 1 s, and each answer of the class 0 is 10 % too large: class 1 loses none."""

    def plain(batch: torch.Tensor) -> torch.Tensor:
        clock.work(2.0)
        return batch

    def other(batch: torch.Tensor) -> torch.Tensor:
        clock.work(1.0)
        return batch * torch.tensor([1.1, 1.0])

    return (
        Variant("int8", "whole numbers", other),
        Variant("compile", "no compiler"),
        Variant("float32", "plain", plain),
    )


def test_a_comparison_by_hand() -> None:
    """Rows (10, 10.5), (0, 5), (3, 4), (10, 9): 10 · 1.1 overtakes 10.5, so 3 of 4 keep their best class."""
    clock = ScriptedClock()
    examples = torch.tensor([[10.0, 10.5], [0.0, 5.0], [3.0, 4.0], [10.0, 9.0], [1.0, 1.0]])
    found = compare_variants(hand_made(clock), examples, batch=2, clock=clock)
    assert [outcome.variant.name for outcome in found.outcomes] == ["float32", "int8", "compile"]
    assert found.judged_on == 4  # the fifth makes no batch of two
    assert (found["float32"].error, found["float32"].same_best) == (0.0, 1.0)
    expected = (1 + 0 + 0.3**2 + 1) ** 0.5 / (100 + 110.25 + 25 + 9 + 16 + 100 + 81) ** 0.5
    assert found["int8"].error == pytest.approx(expected)
    assert found["int8"].same_best == 0.75
    assert [m.median_s for m in found.measurements] == pytest.approx([2.0, 1.0])
    assert [(m.dtype, m.task.label) for m in found.measurements] == [("float32", "inference"), ("int8", "inference")]
    assert found["compile"].measurement is None
    shown = repr(found)
    assert "2×" in shown and "75.0%" in shown and "no compiler" in shown
    assert "<table" in found._repr_html_() and "4 examples" in found._repr_html_()


def test_scores_of_one_class_have_no_best_one() -> None:
    run = Variant("float32", "plain", lambda batch: batch)
    assert compare_variants([run], torch.rand(3, 1), min_time_s=0.001)["float32"].same_best is None
    with pytest.raises(InputError, match="There are float32"):
        compare_variants([run], torch.rand(3, 1), min_time_s=0.001)["int8"]


def test_a_model_that_is_one_layer_is_converted_too() -> None:
    layer = nn.Linear(8, 4)
    (int8,) = variants(layer, torch.rand(2, 8), names=["int8"])
    assert int8.run is not None, int8.sentence
    assert "1 of 1 layers" in int8.sentence and type(layer) is nn.Linear


def test_a_batch_that_does_not_fit_the_net_is_told() -> None:
    with pytest.raises(DataError, match="the model Sequential cannot answer it"):
        variants(net(), torch.rand(2, 3, 8, 8))


@pytest.mark.parametrize("cxx", ["", "  "])
def test_an_empty_name_of_a_compiler_is_none(monkeypatch, tmp_path, cxx: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", cxx)
    (found,) = variants(net(), images(), names=["compile"])
    assert found.run is None and "needs a compiler" in found.sentence


def test_answers_that_are_no_numbers_judge_nothing() -> None:
    examples = images() * float("nan")
    found = variants(net(), examples, names=["float32", "bfloat16"])
    with pytest.raises(InputError, match="infinite numbers or none"):
        compare_variants(found, examples, min_time_s=0.001)
