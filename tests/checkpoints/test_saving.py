"""save() and make_gpu_tagged(): files that any machine can load, and files that only a GPU's owner can."""

from __future__ import annotations

import argparse
import collections
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from small_nets import EXAMPLE, Net, same, trained
from torch import nn

from labkit.checkpoints import load, make_gpu_tagged, save
from labkit.errors import CheckpointError, DeviceError, InputError

MESSAGE = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("as_state", [True, False])
def test_what_was_saved_comes_back_bit_for_bit(tmp_path, suffix: str, as_state: bool) -> None:
    net, fresh = trained(), Net()
    path = save(
        tmp_path / f"net{suffix}", net.state_dict() if as_state else net, metadata={"epoch": 3, "name": "digits"}
    )
    assert path == tmp_path / f"net{suffix}"
    loaded = load(path, fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())
    assert loaded.metadata == {"epoch": 3, "name": "digits"}
    assert [note for note in loaded.notes if "eval mode" not in note] == []


def test_training_goes_on_bit_for_bit_from_a_file(tmp_path) -> None:
    net, fresh = trained(), Net()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    net(EXAMPLE).sum().backward()
    optimiser.step()
    metadata = {
        "epoch": 1,
        "history": [{"loss": 0.5, "accuracy": np.float64(0.9)}, {"loss": None}],
        "torch_rng": torch.get_rng_state(),
        "python_rng": random.Random(3).getstate(),
        "numpy_rng": np.random.default_rng(3).bit_generator.state,
    }
    save(tmp_path / "run.pt", net, optimiser=optimiser, metadata=metadata)
    loaded = load(tmp_path / "run.pt", fresh, device="cpu")
    goes_on = torch.optim.Adam(fresh.parameters())
    goes_on.load_state_dict(loaded.optimiser)
    torch.set_rng_state(loaded.metadata["torch_rng"])
    steps = []
    for model, optimiser_of_it in ((net, optimiser), (fresh, goes_on)):
        torch.set_rng_state(metadata["torch_rng"])
        optimiser_of_it.zero_grad()
        model.train()(EXAMPLE).sum().backward()  # dropout draws
        optimiser_of_it.step()
        steps.append(model.state_dict())
    assert same(*steps)
    drawn = random.Random()
    drawn.setstate(loaded.metadata["python_rng"])
    assert drawn.random() == random.Random(3).random()
    assert loaded.metadata["history"] == [{"loss": 0.5, "accuracy": 0.9}, {"loss": None}]
    assert loaded.metadata["numpy_rng"] == metadata["numpy_rng"]


# C01-04
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize(
    "wrap",
    [nn.DataParallel, torch.compile, lambda net: nn.DataParallel(torch.compile(net)), lambda net: inside(net)],
    ids=["DataParallel", "compile", "both", "inside"],
)
@pytest.mark.parametrize("as_state", [True, False])
def test_no_wrappers_prefix_is_ever_written(tmp_path, wrap, suffix: str, as_state: bool) -> None:
    net = trained()
    wanted = {name: value.clone() for name, value in net.state_dict().items()}
    wrapped = wrap(net)
    path = save(tmp_path / f"net{suffix}", wrapped.state_dict() if as_state else wrapped)
    assert set(load_file(path) if suffix == ".safetensors" else torch.load(path)["model"]) == set(wanted)
    assert same(load(path, device="cpu").state, wanted)


def inside(net: Net) -> Net:
    net.body = nn.DataParallel(torch.compile(net.body))
    return net


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_part_that_is_really_called_module_survives(tmp_path, suffix: str) -> None:
    net = nn.ModuleDict({"module": nn.Linear(2, 2), "head": nn.Linear(2, 1)})
    assert same(load(save(tmp_path / f"x{suffix}", net), device="cpu").state, net.state_dict())


# C01-05
def test_metadata_is_written_as_plain_python(tmp_path) -> None:
    metadata = {
        "acc": np.float64(0.9),
        "best": (np.int64(3), np.bool_(True)),
        "path": Path("a/b"),
        "args": argparse.Namespace(lr=np.float32(0.5)),
        "counts": collections.defaultdict(int, a=np.int32(2)),
        "array": np.arange(3),
        "tensor": torch.arange(3),
        np.int64(5): "a key",
    }
    path = save(tmp_path / "x.pt", nn.Linear(1, 1), metadata=metadata)
    content = torch.load(path)  # weights_only is on by default: nothing but plain values passes
    assert content["metadata"]["acc"] == 0.9 and type(content["metadata"]["acc"]) is float
    assert content["metadata"]["best"] == (3, True) and type(content["metadata"]["best"][1]) is bool
    assert content["metadata"]["args"] == {"lr": 0.5} and content["metadata"]["path"] == str(Path("a/b"))
    assert content["metadata"]["counts"] == {"a": 2} and content["metadata"][5] == "a key"
    assert torch.equal(content["metadata"]["array"], torch.arange(3))
    found = load(path, device="cpu")
    assert not any("In the metadata" in note for note in found.notes)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, object()]}, r"metadata\['a'\]\[1\]: a object"),
        ({"net": nn.Linear(1, 1)}, r"metadata\['net'\]: a Linear"),
        ({"f": len}, r"metadata\['f'\]: a builtin_function"),
        ({"o": np.array([{}], dtype=object)}, r"metadata\['o'\]: a ndarray"),
    ],
    ids=["object", "module", "function", "objects"],
)
def test_what_is_not_plain_is_refused_by_its_place(tmp_path, value, place: str) -> None:
    with pytest.raises(InputError, match=place):
        save(tmp_path / "x.pt", nn.Linear(1, 1), metadata=value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", [None, 3, {}, {"epoch": 3}, [torch.zeros(1)], nn.Linear], ids=repr)
def test_what_is_no_model_is_refused(tmp_path, model) -> None:
    for write in (save, make_gpu_tagged):
        with pytest.raises(InputError, match="no model and no dictionary of tensors"):
            write(tmp_path / "x.pt", model)


def test_what_is_no_optimiser_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="no optimiser"):
        save(tmp_path / "x.pt", nn.Linear(1, 1), optimiser={"lr": 1})


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch) -> None:
    path = save(tmp_path / "x.pt", nn.Linear(1, 1), metadata={"epoch": 1})

    def full(content, target):
        Path(target).write_bytes(b"half of it")
        raise RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed")

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", full)
        with pytest.raises(CheckpointError, match="could not be written .*file write failed"):
            save(path, nn.Linear(1, 1), metadata={"epoch": 2})
    assert load(path, device="cpu").metadata == {"epoch": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["x.pt"]
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="could not be written"):
        save(tmp_path / "file" / "x.pt", nn.Linear(1, 1))


def test_a_view_takes_no_more_room_than_it_shows(tmp_path) -> None:
    whole = torch.rand(1000, 1000)
    path = save(tmp_path / "x.pt", {"row": whole[3], "column": whole[:, 3]})
    assert path.stat().st_size < 20_000
    assert same(load(path, device="cpu").state, {"row": whole[3], "column": whole[:, 3]})


def test_tied_weights_stay_tied_in_a_pt_file(tmp_path) -> None:
    tied = torch.rand(100, 1000)
    path = save(tmp_path / "x.pt", {"a": tied, "b": tied})
    assert path.stat().st_size < 500_000  # once 400 kB, not twice
    state = load(path, device="cpu").state
    assert state["a"].data_ptr() == state["b"].data_ptr()


# --- safetensors -------------------------------------------------------------------------------------------------


# C01-12
def test_tied_and_channels_last_weights_are_written_and_read_back_equal(tmp_path) -> None:
    tied, conv = torch.rand(3, 3), nn.Conv2d(4, 4, 3).to(memory_format=torch.channels_last)
    state = {"a": tied, "b": tied, "part": tied[1:], "conv.weight": conv.weight, "turned": tied.T}
    path = save(tmp_path / "x.safetensors", state)
    assert same(load_file(path), {name: value.detach() for name, value in state.items()})
    assert same(load(path, device="cpu").state, {name: value.detach() for name, value in state.items()})


# C01-12
def test_metadata_is_texts_in_the_file_and_itself_again_when_read(tmp_path) -> None:
    metadata = {"epoch": 3, "name": "digits", "losses": [0.5, 0.25], "deep": {"a": None}, "number as text": "3"}
    path = save(tmp_path / "x.safetensors", nn.Linear(1, 1), metadata=metadata)
    with safe_open(path, framework="pt") as file:
        texts = file.metadata()
    assert texts["epoch"] == "3" and texts["name"] == "digits" and all(isinstance(text, str) for text in texts.values())
    assert load(path, device="cpu").metadata == metadata


# C01-12
def test_a_gpu_that_is_not_there_has_our_own_message(tmp_path) -> None:
    path = save(tmp_path / "x.safetensors", nn.Linear(1, 1))
    with pytest.raises(DeviceError, match=r'device="cuda:63"'):
        load(path, device="cuda:63")
    assert load(path).state["weight"].shape == (1, 1)  # "auto" takes what is there


@pytest.mark.parametrize("front", ["module.", "_orig_mod."])
def test_safetensors_of_others_are_read_whatever_the_suffix(tmp_path, front: str) -> None:
    net, fresh = trained(), Net()
    state = {
        front + name: value.half() if value.is_floating_point() else value for name, value in net.state_dict().items()
    }
    save_file(state, tmp_path / "x.bin", {"format": "pt", "epoch": "3"})
    loaded = load(tmp_path / "x.bin", fresh, device="cpu")
    assert loaded.metadata == {"format": "pt", "epoch": "3"}
    assert torch.equal(fresh.head.weight, net.head.weight.half().float())


def test_a_pt_file_with_the_wrong_suffix_is_read(tmp_path) -> None:
    torch.save(trained().state_dict(), tmp_path / "x.safetensors")
    assert same(load(tmp_path / "x.safetensors", device="cpu").state, trained().state_dict())


def test_what_safetensors_cannot_hold_is_refused(tmp_path) -> None:
    net = nn.Linear(1, 1)
    for options in ({"optimiser": torch.optim.SGD(net.parameters())}, {"metadata": {"t": torch.zeros(1)}}):
        with pytest.raises(InputError, match=r"\.pt"):
            save(tmp_path / "x.safetensors", net, **options)
    with pytest.raises(InputError, match="metadata"):
        save(tmp_path / "x.safetensors", net, metadata={"x": float("nan")})


# --- make_gpu_tagged ---------------------------------------------------------------------------------------------


# C01-01
@pytest.mark.skipif(torch.cuda.is_available(), reason="torch loads the file where there is a GPU")
@pytest.mark.parametrize("index", [0, 3, [0, 1]])
def test_no_machine_without_a_gpu_loads_it_and_torch_says_why(tmp_path, index) -> None:
    path = make_gpu_tagged(tmp_path / "x.pt", trained(), index=index)
    with pytest.raises(RuntimeError) as caught:
        torch.load(path)
    assert str(caught.value) == MESSAGE
    assert same(torch.load(path, map_location="cpu"), trained().state_dict())  # the fix that the message names


# C01-01
def test_a_gpu_of_the_next_index_is_missing_on_every_machine(tmp_path) -> None:
    path = make_gpu_tagged(tmp_path / "x.pt", trained(), index=torch.cuda.device_count())
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on"):
        torch.load(path)
    assert same(load(path, Net(), device="cpu").state, trained().state_dict())


def test_the_tags_are_those_of_the_indices(tmp_path) -> None:
    seen = []
    path = make_gpu_tagged(tmp_path / "x.pt", trained(), index=[2, 5])
    torch.load(path, map_location=lambda storage, tag: seen.append(tag) or storage)
    assert seen == ["cuda:2", "cuda:5"] * 4 + ["cuda:2"]


def test_afterwards_torch_saves_as_before(tmp_path) -> None:
    tag = torch.serialization.location_tag
    make_gpu_tagged(tmp_path / "x.pt", trained())
    with pytest.raises(CheckpointError):
        make_gpu_tagged("/dev/null/x.pt", trained())
    assert torch.serialization.location_tag is tag


@pytest.mark.parametrize("index", [-1, 0.5, "0", [], [0, -1], None])
def test_what_is_no_index_is_refused(tmp_path, index) -> None:
    with pytest.raises(InputError, match="index"):
        make_gpu_tagged(tmp_path / "x.pt", trained(), index=index)
