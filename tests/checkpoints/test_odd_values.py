"""Tensors that are no plain real numbers, metadata of every kind, and marks that only look like ours."""

from __future__ import annotations

import datetime
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from labkit import files
from labkit.checkpoints import load, make_gpu_tagged, save
from labkit.errors import CheckpointError, InputError, LabkitError

DAY = datetime.datetime(2026, 5, 4, 3, 2, 1, tzinfo=datetime.UTC)


# --- tensors -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("make", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr], ids=["coo", "csr"])
def test_sparse_weights_are_loaded_shown_and_saved(tmp_path: Path, written, make) -> None:
    content = {"weight": make(torch.eye(3)), "bias": torch.zeros(3)}
    loaded = load(written(content), device="cpu")
    assert torch.equal(loaded.state["weight"].to_dense(), torch.eye(3))
    assert "2 tensors with 12 numbers" in repr(loaded)
    again = load(save(tmp_path / "again.pt", content), device="cpu")
    assert torch.equal(again.state["weight"].to_dense(), torch.eye(3))


def test_sparse_weights_go_into_a_dense_layer(written) -> None:
    layer = nn.Linear(3, 3)
    load(written({"weight": torch.eye(3).to_sparse(), "bias": torch.zeros(3)}), layer, device="cpu")
    assert torch.equal(layer.weight.detach(), torch.eye(3)) and layer.weight.layout == torch.strided


def test_the_imaginary_part_is_never_dropped_in_silence(written) -> None:
    path = written({"weight": torch.full((3, 3), 1 + 2j), "bias": torch.zeros(3)})
    with pytest.raises(CheckpointError, match="weight is complex64 in the file, float32 in the model"):
        load(path, nn.Linear(3, 3), device="cpu")
    model = nn.Linear(3, 3, dtype=torch.complex64)
    load(path, model, strict=False, device="cpu")
    assert model.weight[0, 0].item() == 1 + 2j


@pytest.mark.parametrize("write", [save, make_gpu_tagged])
def test_weights_without_values_are_not_written(tmp_path: Path, write) -> None:
    with pytest.raises(InputError, match="weight.*no values"):
        write(tmp_path / "x.pt", nn.Linear(2, 2, device="meta"))
    assert not list(tmp_path.iterdir())


def test_a_model_without_values_cannot_be_loaded_into(written) -> None:
    with pytest.raises(InputError, match="no values"):
        load(written(nn.Linear(2, 2).state_dict()), nn.Linear(2, 2, device="meta"), device="cpu")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_safetensors_refuses_what_it_cannot_hold_before_anything_is_written(tmp_path: Path) -> None:
    eight_bits = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    for state in ({"w": eight_bits}, {"w": torch.eye(2).to_sparse()}, {"__metadata__": torch.ones(2)}):
        with pytest.raises(InputError, match="safetensors"):
            save(tmp_path / "x.safetensors", state)
    assert not list(tmp_path.iterdir())
    assert load(save(tmp_path / "x.pt", {"__metadata__": torch.ones(2)}), device="cpu").state  # .pt has no such rule


# --- metadata ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metadata", [3, [1, 2], "epoch", {"epoch"}], ids=repr)
def test_metadata_that_is_no_dictionary_is_refused(tmp_path: Path, metadata) -> None:
    with pytest.raises(InputError, match="metadata"):
        save(tmp_path / "x.pt", nn.Linear(1, 1), metadata=metadata)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_metadata_that_holds_itself_is_refused(tmp_path: Path, suffix: str) -> None:
    metadata: dict = {}
    metadata["self"] = [metadata]
    with pytest.raises(InputError, match="deep"):
        save(tmp_path / f"x{suffix}", nn.Linear(1, 1), metadata=metadata)


def test_what_load_gives_as_metadata_can_be_saved_again(tmp_path: Path, written) -> None:
    metadata = {
        "at": DAY,
        "day": DAY.date(),
        "took": datetime.timedelta(minutes=1),
        "args": types.SimpleNamespace(lr=1),
    }
    loaded = load(written({"model": {"w": torch.zeros(2)}, **metadata, "raw": bytearray(b"x")}), device="cpu")
    assert loaded.metadata["at"] == DAY
    again = torch.load(save(tmp_path / "again.pt", loaded.state, metadata=loaded.metadata))  # torch alone can read it
    assert again["metadata"] == {
        "at": "2026-05-04T03:02:01+00:00", "day": "2026-05-04", "took": 60.0, "args": {"lr": 1}, "raw": bytearray(b"x"),
    }  # fmt: skip


def test_a_type_in_the_metadata_becomes_its_name(written) -> None:
    content = {"model": {"w": torch.zeros(2)}, "cast": float, "kinds": [int, np.ndarray]}
    loaded = load(written(content), device="cpu")
    assert loaded.metadata == {"cast": "builtins.float", "kinds": ["builtins.int", "numpy.ndarray"]}


@pytest.mark.parametrize(
    "content",
    [
        {"labkit": 1, "model": {"w": torch.ones(1)}, "metadata": 3},
        {"labkit": torch.zeros(3), "model": {"w": torch.ones(1)}},
        {"labkit": np.ones(3), "model": {"w": torch.ones(1)}},
        {"labkit": True, "model": {"w": torch.ones(1)}},
    ],
    ids=["metadata", "tensor", "array", "True"],
)
def test_a_file_that_only_looks_like_ours_is_read_as_any_other(written, content) -> None:
    loaded = load(written(content), device="cpu")
    assert loaded.state["w"].item() == 1 and "labkit" in loaded.metadata


def test_odd_marks_in_a_safetensors_file_are_metadata(tmp_path: Path) -> None:
    save_file({"w": torch.ones(1)}, tmp_path / "x.safetensors", {"labkit": "5", "a": "b"})
    assert load(tmp_path / "x.safetensors", device="cpu").metadata == {"labkit": "5", "a": "b"}


# --- arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", ["yes", 1, None])
def test_strict_is_true_or_false(written, strict) -> None:
    with pytest.raises(InputError, match="strict"):
        load(written(nn.Linear(1, 1).state_dict()), nn.Linear(1, 1), strict=strict, device="cpu")


@pytest.mark.parametrize("name", ["n" * 240, "模" * 80])  # 255 bytes is the most on Linux
def test_a_long_name_can_be_written_if_the_system_takes_it(tmp_path: Path, name: str) -> None:
    assert save(tmp_path / f"{name}.pt", nn.Linear(1, 1)).is_file()


def test_a_layer_without_a_size_yet_is_no_crash(written) -> None:
    with pytest.raises(LabkitError, match="size"):
        load(written(nn.Linear(2, 2).state_dict()), nn.LazyLinear(2), device="cpu")


# --- counters, links, threads ------------------------------------------------------------------------------------


def norm(count: int) -> nn.BatchNorm1d:
    layer = nn.BatchNorm1d(3)
    layer.num_batches_tracked += count
    return layer


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_counters_halved_with_all_the_rest_are_counters_again(written, dtype) -> None:
    state = {name: value.to(dtype) for name, value in norm(128).state_dict().items()}
    fresh = norm(0)
    loaded = load(written(state), fresh, device="cpu")
    assert fresh.num_batches_tracked.item() == 128 and fresh.num_batches_tracked.dtype == torch.int64
    assert any("into int64" in note for note in loaded.notes)


def test_a_counter_that_became_infinite_is_left_out_and_noted(written) -> None:
    state = {name: value.half() for name, value in norm(10**6).state_dict().items()}
    assert state["num_batches_tracked"].isinf()
    fresh = norm(5)
    loaded = load(written(state), fresh, device="cpu")
    assert fresh.num_batches_tracked.item() == 5
    assert any("1 counter of batches left out" in note for note in loaded.notes)


def test_weights_in_the_place_of_a_counter_are_still_refused(written) -> None:
    state = norm(0).state_dict() | {"num_batches_tracked": torch.tensor(0.5)}
    with pytest.raises(CheckpointError, match="num_batches_tracked is float32 in the file, int64 in the model"):
        load(written(state), norm(0), device="cpu")


def test_files_can_be_loaded_by_several_threads(written) -> None:
    """torch keeps what a file may name in one list for the whole program."""
    path = written({"model": nn.Linear(3, 3).state_dict(), "acc": np.float64(0.5), "from": Path("x")})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: load(path, device="cpu").metadata, range(100)))
    assert found == [{"acc": 0.5, "from": "x"}] * 100


def test_the_home_folder_is_not_a_folder_called_tilde(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for suffix in ("pt", "safetensors"):
        save(f"~/net.{suffix}", nn.Linear(1, 1))
        assert load(f"~/net.{suffix}", nn.Linear(1, 1), device="cpu").model
    make_gpu_tagged("~/tagged.pt", nn.Linear(1, 1))
    files.write_json("~/record.json", {"a": 1})
    assert files.read_json("~/record.json") == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["home"]
    assert len(list((tmp_path / "home").iterdir())) == 4


def test_a_link_stays_one_and_a_dead_one_is_named(tmp_path: Path) -> None:
    real, link, dead = tmp_path / "real.pt", tmp_path / "link.pt", tmp_path / "dead.pt"
    save(real, nn.Linear(1, 1))
    link.symlink_to(real)
    dead.symlink_to("nowhere.pt")
    save(link, nn.Linear(2, 2))
    assert link.is_symlink() and load(real, nn.Linear(2, 2), device="cpu").model
    with pytest.raises(CheckpointError, match="dead.pt is a link to 'nowhere.pt'"):
        load(dead, device="cpu")


def test_the_suffix_may_be_in_capitals(tmp_path: Path) -> None:
    path = save(tmp_path / "NET.SAFETENSORS", nn.Linear(1, 1))
    assert path.read_bytes()[8:9] == b"{"
    assert load(path, nn.Linear(1, 1), device="cpu").model
