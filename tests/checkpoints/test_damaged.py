"""Files that are no checkpoint, or no longer one: each has its own sentence, and none any other error."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import random
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from small_nets import Net, same, trained
from torch import nn

from labkit.checkpoints import load, sha256_of
from labkit.errors import CheckpointError, InputError

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 102540417\n"
PAGE = "<!DOCTYPE html>\n<html><head><title>Sign in · Drive</title></head><body>weights</body></html>"
KINDS = {
    "empty": (b"", r"empty \(0 bytes\).*Download or copy it again"),
    "text": (b"epoch,loss\n1,0.5\n", "a text of 17 bytes that begins with 'epoch,loss'"),
    "JSON": (b'{"weight_map": {"a": "model-00001.safetensors"}}', "a text of 48 bytes"),
    "web page": (PAGE.encode(), "a web page titled “Sign in · Drive”.*download button"),
    "page in capitals": (b"\n <HTML><BODY>Not found</BODY></HTML>", "a web page"),
    "LFS pointer": (LFS.encode(), r"Git LFS pointer of \d+ bytes.*weights of 103 MB.*git lfs pull"),
    "gzip": (gzip.compress(b"weights" * 100), "packed by gzip: unpack it"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5 file, as Keras writes"),
    "GGUF": (b"GGUF" + bytes(range(200)), "GGUF file"),
    "tar": (bytes(257) + b"ustar" + bytes(300), "tar archive.*can run code"),
    "other": (bytes([7, 200, 3, 0] * 50), "begins with the bytes 07 c8 03 00"),
    "pickle": (pickle.dumps({"a": [1, 2]}), "pickle of other data, not written by torch.save"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_checkpoint_is_called_what_it_is(tmp_path: Path, kind: str) -> None:
    content, sentence = KINDS[kind]
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"(?s)model.pt.*{sentence}"):
        load(path, device="cpu")


def test_numpys_formats_and_other_archives_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    np.savez(tmp_path / "a.npz", w=np.zeros(3))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("weights.pt", b"x" * 100)
    for name, sentence in (
        ("a.npy", "numpy.load"),
        ("a.npz", "zip archive, but no"),
        ("a.zip", "may be a file inside"),
    ):
        with pytest.raises(CheckpointError, match=sentence):
            load(tmp_path / name)


def test_a_missing_file_a_folder_and_a_lack_of_rights(tmp_path: Path, written, monkeypatch) -> None:
    path = written({"w": torch.zeros(2)})
    with pytest.raises(CheckpointError, match="no such file. Did you mean 'file_0.pt'"):
        load(tmp_path / "file0.pt")
    with pytest.raises(CheckpointError, match="no such file. Look into"):
        load(tmp_path / "nowhere" / "x.pt")
    with pytest.raises(CheckpointError, match=r"folder, not a file. Name a file in it, such as 'file_0.pt'"):
        load(tmp_path)

    def forbidden(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)  # a superuser may read all: chmod would prove nothing
    with pytest.raises(CheckpointError, match="may not read"):
        load(path)


@pytest.mark.parametrize("path", [None, 3, "", b"x.pt", torch.zeros(2), "a\0b"], ids=repr)
def test_what_is_no_path_is_refused(path) -> None:
    with pytest.raises(InputError, match="not the path of a file"):
        load(path)


# --- cut files ---------------------------------------------------------------------------------------------------

LARGE = {"weight": torch.rand(300, 1000)}  # 1.2 MB


# C01-10
@pytest.mark.parametrize(
    ("kept", "face"),
    [(0.5, RuntimeError), (0.95, RuntimeError), (60_000, OSError), (5000, OSError), (0, EOFError)],
)
def test_each_face_of_a_cut_file_is_one_message(written, kept: float, face: type[Exception]) -> None:
    path = written(LARGE)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if kept < 1 else int(kept)])
    with pytest.raises(face):  # what torch itself says: three kinds of error for one fault
        torch.load(path, map_location="cpu")
    with pytest.raises(CheckpointError) as caught:
        load(path, device="cpu")
    assert path.name in str(caught.value) and "again" in caught.value.advice
    if kept:
        found = {0.5: "601 kB", 0.95: "1.14 MB", 60_000: "60 kB", 5000: "5 kB"}[kept]
        assert f"only {found} of at least 1.2 MB are here" in str(caught.value)


# C01-10
def test_a_small_cut_file(written) -> None:
    path = written({"weight": torch.rand(50, 80)})
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(CheckpointError, match="only 9 kB of at least 16 kB are here"):
        load(path, device="cpu")


# C01-10
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9, 0.999])
def test_cut_files_of_other_formats(tmp_path, written, share: float) -> None:
    old = written(LARGE, _use_new_zipfile_serialization=False)
    save_file(LARGE, tmp_path / "x.safetensors")
    for path in (old, tmp_path / "x.safetensors"):
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(CheckpointError, match="the end of the file is missing"):
            load(path, device="cpu")


# C01-10
def test_an_old_file_cut_at_any_byte_is_cut_and_torchs_advice_is_not_repeated(written) -> None:
    path = written({"weight": torch.rand(40)}, _use_new_zipfile_serialization=False)
    whole = path.read_bytes()
    for kept in range(1, len(whole)):
        path.write_bytes(whole[:kept])
        with pytest.raises(CheckpointError, match="the end of the file is missing") as caught:
            load(path, device="cpu")
        assert "trust" not in str(caught.value)


# C01-10
def test_a_file_that_lacks_a_few_bytes_is_told_in_bytes(tmp_path: Path) -> None:
    save_file(LARGE, tmp_path / "x.safetensors")
    whole = (tmp_path / "x.safetensors").read_bytes()
    (tmp_path / "x.safetensors").write_bytes(whole[:-3])
    with pytest.raises(CheckpointError, match=f"only {len(whole) - 3:,} bytes of at least {len(whole):,} bytes are"):
        load(tmp_path / "x.safetensors", device="cpu")


def test_a_cut_file_of_half_precision_counts_its_own_bytes(written) -> None:
    path = written(
        {"a": torch.rand(1000).half(), "b": torch.rand(1000).double(), "c": torch.zeros(1000, dtype=torch.bool)}
    )
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(CheckpointError, match="of at least 11 kB"):  # 2 + 8 + 1 bytes for each
        load(path, device="cpu")


def test_any_byte_may_be_wrong_or_missing(tmp_path: Path, written) -> None:
    draw = random.Random(0)
    paths = [written({"model": trained().state_dict(), "epoch": 3})]
    paths.append(written(trained().state_dict(), _use_new_zipfile_serialization=False))
    save_file(trained().state_dict(), tmp_path / "x.safetensors")
    for path in (*paths, tmp_path / "x.safetensors"):
        whole = path.read_bytes()
        for _ in range(150):
            changed = bytearray(whole)
            for _ in range(draw.choice([1, 1, 4])):
                changed[draw.randrange(len(whole))] = draw.randrange(256)
            path.write_bytes(changed[: draw.choice([len(whole), draw.randrange(len(whole))])])
            try:
                load(path, Net(), device="cpu")
            except CheckpointError as problem:
                assert path.name in str(problem)


# --- checked by size and SHA-256 ---------------------------------------------------------------------------------


def test_the_digest_is_that_of_the_standard_library(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(300_000)
    (tmp_path / "x.bin").write_bytes(content)
    assert sha256_of(tmp_path / "x.bin") == hashlib.sha256(content).hexdigest()
    with pytest.raises(CheckpointError, match="no such file"):
        sha256_of(tmp_path / "y.bin")


def test_a_file_with_the_right_digest_is_loaded(written) -> None:
    path = written(LARGE)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for text in (digest, digest.upper(), f"sha256:{digest}", f" {digest}\n"):
        assert same(load(path, sha256=text, size_bytes=path.stat().st_size, device="cpu").state, LARGE)


# C01-10
def test_another_file_is_refused_with_both_digests_and_sizes_before_it_is_read(written) -> None:
    path = written(LARGE)
    digest, size = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
    content = bytearray(path.read_bytes())
    content[size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        load(path, sha256=digest, device="cpu")
    for part in (digest, hashlib.sha256(content).hexdigest(), f"{size:,} bytes", path.name):
        assert part in str(caught.value)
    path.write_bytes(content[:-10])
    with pytest.raises(CheckpointError) as caught:
        load(path, sha256=digest, size_bytes=size, device="cpu")
    assert f"it has {size - 10:,} bytes, and {size:,} were expected" in str(caught.value)
    assert digest in str(caught.value) and "download it again" in caught.value.advice


@pytest.mark.parametrize("sha256", ["", "abc", "g" * 64, 3, "0" * 63])
def test_what_is_no_digest_is_refused(written, sha256) -> None:
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        load(written(LARGE), sha256=sha256)


# --- another model -----------------------------------------------------------------------------------------------


def test_another_architecture_says_which_names_and_which_shapes(written) -> None:
    fresh = Net(classes=7)
    before = {name: value.clone() for name, value in fresh.state_dict().items()}
    state = trained().state_dict()
    state["extra.weight"] = state.pop("body.0.bias")
    with pytest.raises(CheckpointError) as caught:
        load(written(state), fresh, device="cpu")
    said = str(caught.value)
    assert "do not fit the model Net" in said
    assert "missing in the file: body.0.bias" in said and "unknown to the model: extra.weight" in said
    assert "head.weight is (5, 48) in the file, (7, 48) in the model" in said
    assert "head.bias is (5,) in the file, (7,) in the model" in said
    assert same(fresh.state_dict(), before) and fresh.training  # nothing was changed


def test_strict_false_takes_what_fits_and_notes_the_rest(written) -> None:
    fresh, state = Net(classes=7), trained().state_dict()
    before = fresh.head.weight.detach().clone()
    state["extra.weight"] = state.pop("body.0.bias")
    loaded = load(written(state), fresh, device="cpu", strict=False)
    assert torch.equal(fresh.body[0].weight, state["body.0.weight"])
    assert torch.equal(fresh.head.weight, before)
    notes = " ".join(loaded.notes)
    assert "missing in the file: body.0.bias" in notes and "unknown to the model: extra.weight" in notes
    assert "head.weight is (5, 48) in the file" in notes


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "model",
    [nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(9, 9), nn.Linear(9, 9))],
    ids=["other names", "other shapes"],
)
def test_if_nothing_fits_it_is_an_error_whatever_strict_says(written, model, strict: bool) -> None:
    state = {"0.weight": torch.zeros(3, 3), "0.bias": torch.zeros(3)} if len(model) == 2 else Net().state_dict()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(CheckpointError, match="nothing in it fits the model Sequential: the file has .* the model has"):
        load(written(state), model, device="cpu", strict=strict)
    assert same(model.state_dict(), before)


def test_many_names_are_counted_not_listed(written) -> None:
    state = {f"layer{n}.weight": torch.zeros(1) for n in range(100)}
    with pytest.raises(CheckpointError) as caught:
        load(written(state), Net(), device="cpu")
    assert "and 94 more" in str(caught.value) and len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (torch.zeros(3), "no weights but a Tensor"),
        ([torch.zeros(3)], "no weights but a list"),
        ({}, "no weights but an empty dictionary"),
        ({"epoch": 3, "loss": 0.5}, r"it holds 'epoch' \(int\), 'loss' \(float\)"),
        (torch.optim.SGD([torch.zeros(1)], lr=1).state_dict(), "no weights; it holds 'state'"),
    ],
    ids=["tensor", "list", "empty", "settings", "optimiser"],
)
def test_a_file_without_weights_says_what_it_holds(written, content, said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        load(written(content), device="cpu")


def test_every_message_is_one_line_and_says_what_to_do(tmp_path: Path) -> None:
    for content, _ in KINDS.values():
        (tmp_path / "x.pt").write_bytes(content)
        with pytest.raises(CheckpointError) as caught:
            load(tmp_path / "x.pt")
        assert "\n" not in str(caught.value) and re.search(r"[.…]$", str(caught.value))
