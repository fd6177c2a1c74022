"""Files that were saved on a GPU, from wrapped models, in half precision: loaded as they should be, with notes."""

from __future__ import annotations

import itertools

import pytest
import torch
from small_nets import EXAMPLE, Net, answer, same
from torch import nn

from labkit.checkpoints import load
from labkit.errors import CheckpointError, DeviceError, InputError

MESSAGE = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)
WRAPPED = ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.", "module.module.", ""]


def note_with(notes: tuple[str, ...], *words: str) -> str:
    """The only note in which all of these words stand."""
    found = [note for note in notes if all(word in note for word in words)]
    assert len(found) == 1, notes
    return found[0]


# --- devices -----------------------------------------------------------------------------------------------------


# C01-01
@pytest.mark.skipif(torch.cuda.is_available(), reason="torch loads the file where there is a GPU")
def test_torch_refuses_the_file_with_its_well_known_message(net, tagged) -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.load(tagged(net.state_dict(), "cuda:0"))
    assert str(caught.value) == MESSAGE


# C01-01
@pytest.mark.parametrize(
    "tags", [("cuda:0",), ("cuda:7",), ("cuda:0", "cuda:1", "cuda:3"), ("cuda",), ("mps",)], ids=str
)
def test_every_tensor_ends_on_the_cpu_bit_for_bit(net, fresh, tagged, tags) -> None:
    path = tagged(net.state_dict(), *tags)
    loaded = load(path, fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())
    assert same(load(path, device="cpu").state, net.state_dict())
    assert {tensor.device.type for tensor in fresh.state_dict().values()} == {"cpu"}
    for tag in tags:
        assert "now on cpu" in note_with(loaded.notes, f"saved on {tag},")
    assert loaded.model is fresh


def test_the_notes_count_the_tensors_of_each_device(net, tagged) -> None:
    notes = load(tagged(net.state_dict(), "cuda:0", "cuda:1"), device="cpu").notes  # nine tensors take turns
    assert notes[:2] == ("5 tensors saved on cuda:0, now on cpu.", "4 tensors saved on cuda:1, now on cpu.")


def test_a_file_of_this_device_needs_no_note(net, written) -> None:
    loaded = load(written(net.state_dict()), net.eval(), device="cpu")
    assert loaded.notes == ()
    assert "Nothing had to be changed." in repr(loaded)


def test_the_model_is_in_eval_mode_and_says_so(net, fresh, written) -> None:
    assert fresh.training
    loaded = load(written(net.state_dict()), fresh, device="cpu")
    assert not any(part.training for part in fresh.modules())
    assert "eval mode" in note_with(loaded.notes, "dropout")
    assert torch.equal(answer(fresh), answer(net))


def test_a_gpu_that_is_not_there_is_an_error_and_only_auto_falls_back(net, written) -> None:
    path = written(net.state_dict())
    with pytest.raises(DeviceError, match="cuda:63"):
        load(path, device="cuda:63")
    assert load(path).state["head.weight"].device.type in ("cpu", "cuda", "mps")


def test_the_old_format_of_torch_is_read_too(net, fresh, written) -> None:
    load(written(net.state_dict(), _use_new_zipfile_serialization=False), fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())


# --- names -------------------------------------------------------------------------------------------------------


# C01-04
@pytest.mark.parametrize("front", WRAPPED)
@pytest.mark.parametrize("inner", ["", "module.", "_orig_mod.", "_orig_mod.module."])
def test_wrappers_in_any_order_and_place_come_off(net, fresh, written, front: str, inner: str) -> None:
    state = {front + name.replace("body.", f"body.{inner}"): value for name, value in net.state_dict().items()}
    loaded = load(written(state), fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())
    assert same(load(written(state), device="cpu").state, net.state_dict())
    for segment in ("module", "_orig_mod"):
        count = sum(segment in name.split(".") for name in state)
        if count:
            assert f"taken off {count} name" in note_with(loaded.notes, f'"{segment}."')


# C01-04
def test_a_compiled_net_as_torch_itself_names_it(net, fresh, written) -> None:
    state = torch.compile(net).state_dict()
    assert all(name.startswith("_orig_mod.") for name in state)
    assert "torch.compile" in note_with(load(written(state), fresh, device="cpu").notes, "_orig_mod")
    assert same(fresh.state_dict(), net.state_dict())


@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.compile], ids=["DataParallel", "compile"])
@pytest.mark.parametrize("front", WRAPPED)
def test_the_model_may_be_wrapped_as_well(net, fresh, written, wrap, front: str) -> None:
    load(written({front + name: value for name, value in net.state_dict().items()}), wrap(fresh), device="cpu")
    assert same(fresh.state_dict(), net.state_dict())


class Wrapping(nn.Module):
    """A net that has a part of its own called module, as spectral norm and weight drop had."""

    def __init__(self) -> None:
        super().__init__()
        self.module, self.head = nn.Linear(2, 2), nn.Linear(2, 1)


@pytest.mark.parametrize("front", WRAPPED)
def test_a_part_that_is_really_called_module_keeps_its_name(written, front: str) -> None:
    net, fresh = Wrapping(), Wrapping()
    load(written({front + name: value for name, value in net.state_dict().items()}), fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())


def test_names_that_would_become_one_are_kept(written) -> None:
    state = {"module.weight": torch.zeros(1), "weight": torch.ones(1)}
    assert same(load(written(state), device="cpu").state, state)


@pytest.mark.parametrize("front", ["model.", "net.backbone.", "module.model."])
def test_a_net_that_was_a_part_of_something_larger(net, fresh, written, front: str) -> None:
    state = {front + name: value for name, value in net.state_dict().items()}
    loaded = load(written({"state_dict": state}), fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())
    assert "taken off 9 names" in note_with(loaded.notes, "something larger")
    with pytest.raises(CheckpointError, match="loss.weight"):  # what else the larger thing had is still not wanted
        load(written(state | {"loss.weight": torch.zeros(2)}), fresh, device="cpu")


# --- dtypes ------------------------------------------------------------------------------------------------------


# C01-07
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_becomes_float32_before_the_first_forward(net, fresh, written, dtype) -> None:
    path = written(
        {name: value.to(dtype) if value.is_floating_point() else value for name, value in net.state_dict().items()}
    )
    for loaded in (load(path, fresh, device="cpu"), load(path, device="cpu")):
        name = str(dtype).removeprefix("torch.")
        assert loaded.state["head.weight"].dtype == torch.float32
        assert loaded.state["body.1.num_batches_tracked"].dtype == torch.int64
        assert f"turned from {name} into float32" in note_with(loaded.notes, "8 tensors")
        # Each value is the rounded one exactly: float32 holds every float16 and bfloat16.
        assert torch.equal(loaded.state["head.weight"], net.head.weight.to(dtype).float())
    assert torch.equal(answer(fresh).argmax(1), answer(net).argmax(1))
    assert (answer(fresh) - answer(net)).abs().max() < 1e-2
    answer(fresh).numpy()  # a bfloat16 result could not be plotted


# C01-07
def test_a_model_in_half_precision_becomes_float32_too_and_keeps_its_parameters(net, written) -> None:
    fresh = Net().half()
    before = list(fresh.parameters())
    loaded = load(written(net.half().state_dict()), fresh, device="cpu")
    assert {parameter.dtype for parameter in fresh.parameters()} == {torch.float32}
    assert all(new is old for new, old in zip(fresh.parameters(), before, strict=True))
    assert "of the model turned from float16" in note_with(loaded.notes, "6 parameters")
    assert answer(fresh).isfinite().all()


def test_double_precision_is_kept_or_rounded_to_the_models_and_noted(net, fresh, written) -> None:
    path = written(net.double().state_dict())
    assert load(path, device="cpu").state["head.weight"].dtype == torch.float64
    assert "8 tensors turned from float64 into float32." in load(path, fresh, device="cpu").notes
    assert fresh.head.weight.dtype == torch.float32
    wide = Net().double()
    load(path, wide, device="cpu")
    assert same(wide.state_dict(), net.state_dict())


def test_whole_numbers_in_the_place_of_weights_are_no_weights(net, fresh, written) -> None:
    state = net.state_dict() | {"head.weight": torch.ones(5, 48, dtype=torch.int8)}
    with pytest.raises(CheckpointError, match="head.weight is int8 in the file, float32 in the model"):
        load(written(state), fresh, device="cpu")


def test_weights_without_values_are_no_weights(written) -> None:
    with pytest.raises(CheckpointError, match="no values"):
        load(written(nn.Linear(2, 2, device="meta").state_dict()), device="cpu")


# --- models ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [nn.Linear(2, 2).state_dict(), Net, "Net"], ids=["state", "class", "text"])
def test_into_must_be_a_model(net, written, kind) -> None:
    with pytest.raises(InputError, match="into=Net"):
        load(written(net.state_dict()), kind)


def test_large_weights_are_handed_over_and_stay_apart(written) -> None:
    net, one, two = (nn.Linear(600, 600) for _ in range(3))  # 1.44 MB: above the size from which nothing is copied
    path = written({"model": net.state_dict(), "best": net.state_dict(), "first": net.weight.detach()[0]})
    before = one.weight
    load(path, one, device="cpu")
    loaded = load(path, two, device="cpu")
    assert one.weight is before and one.weight.requires_grad
    with torch.no_grad():
        one.weight.zero_()
    assert torch.equal(two.weight, net.weight) and torch.equal(loaded.metadata["best"]["weight"], net.weight)
    with torch.no_grad():
        two.weight.zero_()
    assert torch.equal(loaded.metadata["best"]["weight"], net.weight)
    assert torch.equal(loaded.metadata["first"], net.weight[0])


def test_a_large_file_of_tied_weights_does_not_tie_a_models_own(written) -> None:
    tied = torch.rand(600, 600)
    fresh = nn.Sequential(nn.Linear(600, 600, bias=False), nn.Linear(600, 600, bias=False))
    load(written({"0.weight": tied, "1.weight": tied}), fresh, device="cpu")
    with torch.no_grad():
        fresh[0].weight.zero_()
    assert torch.equal(fresh[1].weight, tied)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Conv2d(64, 64, 9).to(memory_format=torch.channels_last),
        lambda: nn.LSTM(400, 400),
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(600, 600)),
        lambda: nn.Linear(600, 600).double(),
        lambda: nn.Linear(600, 600).share_memory(),
        lambda: nn.EmbeddingBag(600, 600),
    ],
)
def test_large_weights_of_every_kind_arrive(written, make) -> None:
    net, fresh = make(), make()
    for tensor in fresh.parameters():
        nn.init.zeros_(tensor)
    strides = [tensor.stride() for tensor in fresh.parameters()]
    shared = [tensor.is_shared() for tensor in fresh.parameters()]
    load(written({name: value.contiguous() for name, value in net.state_dict().items()}), fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())
    assert strides == [tensor.stride() for tensor in fresh.parameters()]
    assert shared == [tensor.is_shared() for tensor in fresh.parameters()]


def test_weights_that_the_model_ties_may_be_missing_once(written) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
            self.head.weight = self.embed.weight

    net, fresh = Tied(), Tied()
    load(written({"embed.weight": net.embed.weight.detach()}), fresh, device="cpu")
    assert torch.equal(fresh.head.weight, net.embed.weight)
    assert fresh.head.weight is fresh.embed.weight


def test_a_batch_norm_from_before_its_counter_is_complete(net, fresh, written) -> None:
    state = {name: value for name, value in net.state_dict().items() if not name.endswith("num_batches_tracked")}
    load(written(state), fresh, device="cpu")
    assert torch.equal(answer(fresh), answer(net))


# C01-07
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_file_put_into_half_precision_with_its_counters_is_loaded(net, fresh, written, dtype) -> None:
    """Many write {name: value.half() for all names}; a batch norm's counter is whole in the model."""
    net.body[1].num_batches_tracked.fill_(96)
    loaded = load(written({name: value.to(dtype) for name, value in net.state_dict().items()}), fresh, device="cpu")
    assert torch.equal(fresh.body[1].num_batches_tracked, torch.tensor(96))
    note_with(loaded.notes, "1 tensor turned from", "into int64")


# C01-07
def test_a_counter_too_large_for_half_precision_is_left_out_and_noted(net, fresh, written) -> None:
    net.body[1].num_batches_tracked.fill_(100_000)  # float16 ends at 65504
    before = int(fresh.body[1].num_batches_tracked)
    loaded = load(written({name: value.half() for name, value in net.state_dict().items()}), fresh, device="cpu")
    assert int(fresh.body[1].num_batches_tracked) == before
    note_with(loaded.notes, "Too large for half precision", "body.1.num_batches_tracked")
    assert torch.equal(answer(fresh).argmax(1), answer(net).argmax(1))


def test_an_optimiser_made_before_loading_still_trains_the_model(net, fresh, written) -> None:
    optimiser = torch.optim.SGD(fresh.parameters(), lr=0.1)
    load(written(net.state_dict()), fresh, device="cpu")
    fresh(EXAMPLE).sum().backward()
    optimiser.step()
    assert not torch.equal(fresh.head.weight, net.head.weight)


def test_what_is_shown_says_how_much_and_what_changed(net, fresh, tagged) -> None:
    loaded = load(tagged({"model": net.state_dict(), "epoch": 3}, "cuda:0"), fresh, device="cpu")
    numbers = sum(value.numel() for value in net.state_dict().values())
    assert repr(loaded).splitlines()[0].startswith(f"9 tensors with {numbers} numbers, ")
    assert "in the model Net" in repr(loaded) and "Metadata: epoch." in repr(loaded)
    assert loaded._repr_html_().count("<li>") == 1 + len(loaded.notes)


def test_three_wrappers_in_every_order(net, fresh, written) -> None:
    for order in itertools.product(["module", "_orig_mod"], repeat=3):
        load(
            written({".".join([*order, name]): value for name, value in net.state_dict().items()}), fresh, device="cpu"
        )
        assert same(fresh.state_dict(), net.state_dict())
