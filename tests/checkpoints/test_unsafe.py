"""Nothing in a file is executed: what would need it is refused by name, and what is plain data is read by our own."""

from __future__ import annotations

import argparse
import collections
import datetime
import pathlib
import pickle
import re
import subprocess
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from small_nets import Net, same, trained
from torch import nn

from labkit.checkpoints import load
from labkit.errors import CheckpointError

STARTED: list[str] = []


def start(what: str) -> None:
    """Stands for any function of the author's: if it is ever called, STARTED says so."""
    STARTED.append(what)


class Calls:
    """An object that a pickle rebuilds by a call: pickle.load would make it."""

    def __init__(self, function, *arguments) -> None:
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class Trick:
    """A class that runs code when its state is set."""

    def __setstate__(self, state) -> None:
        start("setstate")

    def __getstate__(self):
        return {"x": 1}


MALICE = {
    "posix.system": lambda mark: Calls(pathlib.os.system, f"touch {mark}"),
    "builtins.eval": lambda mark: Calls(eval, f"open({str(mark)!r}, 'w')"),
    "builtins.exec": lambda mark: Calls(exec, f"open({str(mark)!r}, 'w')"),
    "subprocess.Popen": lambda mark: Calls(subprocess.Popen, ["touch", str(mark)]),
    "io.open": lambda mark: Calls(open, str(mark), "w"),
    "torch.hub.load": lambda mark: Calls(torch.hub.load, "some/where"),
}


@pytest.fixture(autouse=True)
def nothing_was_started():
    STARTED.clear()
    yield
    assert STARTED == []


@pytest.mark.parametrize("name", MALICE)
@pytest.mark.parametrize("form", ["zip", "old", "pickle 0", "pickle 2", "pickle 4", "pickle 5"])
def test_a_malicious_pickle_is_refused_not_run_and_named(tmp_path: Path, name: str, form: str) -> None:
    mark, path = tmp_path / "it_ran", tmp_path / "model.pt"
    content = {"model": {"weight": torch.zeros(2)}, "epoch": MALICE[name](mark)}
    if form.startswith("pickle"):
        path.write_bytes(pickle.dumps(content["epoch"], protocol=int(form[-1])))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "zip")
    with pytest.raises(CheckpointError) as caught:
        load(path, Net(), device="cpu")
    assert name in str(caught.value) and "not run" in str(caught.value)
    assert "weights_only=False" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__  # torch's own advice stays hidden
    assert not mark.exists()


def test_the_files_of_these_tests_would_run(tmp_path: Path) -> None:
    mark = tmp_path / "it_ran"
    pickle.loads(pickle.dumps(MALICE["posix.system"](mark)))
    assert mark.exists()


def test_a_function_of_the_authors_is_named_and_not_called(written) -> None:
    with pytest.raises(CheckpointError, match=r"object of .*\.start, which is rebuilt by running code"):
        load(written({"model": {"w": torch.zeros(2)}, "x": Calls(start, "call")}), device="cpu")


def test_what_the_program_has_allowed_for_itself_is_not_allowed_here(written) -> None:
    path = written({"model": {"w": torch.zeros(2)}, "x": Trick()})
    torch.serialization.add_safe_globals([Trick])
    try:
        with pytest.raises(CheckpointError, match="Trick"):
            load(path, device="cpu")
        assert Trick in torch.serialization.get_safe_globals()  # and afterwards all is as before
    finally:
        torch.serialization.clear_safe_globals()


def test_the_variable_that_lifts_torchs_protection_has_no_effect(written, monkeypatch) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(CheckpointError, match="start"):
        load(written({"model": {"w": torch.zeros(2)}, "x": Calls(start, "call")}), device="cpu")


# --- whole models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["zip", "old", "wrapped", "inside", "protocol 4"])
def test_a_whole_model_is_refused_by_the_name_of_its_class(written, form: str) -> None:
    net = trained()
    content = {"wrapped": nn.DataParallel(net), "inside": {"epoch": 3, "model": net}}.get(form, net)
    options = {"old": {"_use_new_zipfile_serialization": False}, "protocol 4": {"pickle_protocol": 4}}.get(form, {})
    with pytest.raises(CheckpointError) as caught:
        load(written(content, **options), device="cpu")
    assert "a whole model of class Net (from small_nets)" in str(caught.value)
    assert "torch.save(model.state_dict(), path)" in caught.value.advice and "code of Net" in caught.value.advice
    assert "weights_only=False" not in str(caught.value)


def test_a_whole_model_of_torchs_own_classes_is_refused_too(written) -> None:
    with pytest.raises(CheckpointError, match="whole model of class Sequential"):
        load(written(nn.Sequential(nn.Linear(2, 2))), device="cpu")


def test_a_whole_model_from_code_that_is_not_here(written, monkeypatch) -> None:
    module = types.ModuleType("gone")
    module.Gone = type("Gone", (nn.Module,), {"__module__": "gone"})
    monkeypatch.setitem(__import__("sys").modules, "gone", module)
    path = written(module.Gone())
    monkeypatch.delitem(__import__("sys").modules, "gone")
    with pytest.raises(CheckpointError, match=r"whole model of class Gone \(from gone\)"):
        load(path, device="cpu")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_torchscript_program_is_refused(tmp_path) -> None:
    torch.jit.trace(nn.Linear(2, 2), torch.zeros(1, 2)).save(tmp_path / "script.pt")
    with pytest.raises(CheckpointError, match="TorchScript"):
        load(tmp_path / "script.pt", device="cpu")


# --- plain values that torch refuses -----------------------------------------------------------------------------

WHEN = datetime.datetime(2026, 11, 30, 12, 30, 15, 7)
PLAIN = {
    "float64": (np.float64(0.9), 0.9),
    "float32": (np.float32(0.1), 0.10000000149011612),  # what float32 makes of 0.1
    "float16": (np.float16(1.5), 1.5),
    "int64": (np.int64(-(2**40)), -(2**40)),
    "uint8": (np.uint8(255), 255),
    "bool": (np.bool_(True), True),
    "complex": (np.complex128(1 + 2j), 1 + 2j),
    "text": (np.str_("digits"), "digits"),
    "big endian": (np.arange(3, dtype=">i4")[2], 2),
    "Namespace": (argparse.Namespace(lr=0.1, dims=[1, 2]), {"lr": 0.1, "dims": [1, 2]}),
    "SimpleNamespace": (types.SimpleNamespace(lr=0.1), {"lr": 0.1}),
    "defaultdict": (collections.defaultdict(list, {"a": [1]}), {"a": [1]}),
    "defaultdict of int": (collections.defaultdict(int, a=3), {"a": 3}),
    "Path": (pathlib.Path("/data/run 1/best.pt"), "/data/run 1/best.pt"),
    "PurePath": (pathlib.PurePosixPath("runs/1"), "runs/1"),
    "Windows path": (pathlib.PureWindowsPath(r"C:\data\best.pt"), "C:/data/best.pt"),
    "datetime": (WHEN, WHEN),
    "OrderedDict": (collections.OrderedDict(a=1), {"a": 1}),
    "set": ({1, 2}, {1, 2}),
    "frozenset": (frozenset({1, 2}), frozenset({1, 2})),
    "range": (range(3, 9, 2), range(3, 9, 2)),
    "deque": (collections.deque([1, 2.5], maxlen=5), [1, 2.5]),
    "version of torch": (torch.__version__, str(torch.__version__)),
    "device": (torch.device("cuda:3"), torch.device("cuda:3")),
    "dtype": (torch.float16, torch.float16),
    "bytes": (b"abc\xff", b"abc\xff"),
    "nested": ({"best": [(np.float64(0.5), argparse.Namespace(p=pathlib.Path("a")))]}, {"best": [(0.5, {"p": "a"})]}),
}


# C01-05
@pytest.mark.parametrize("case", PLAIN)
def test_plain_values_in_the_metadata_are_read_as_python_has_them(written, case: str) -> None:
    held, wanted = PLAIN[case]
    found = load(written({"model": {"w": torch.zeros(2)}, "value": held}), device="cpu").metadata["value"]
    assert found == wanted
    assert type(found) is type(wanted) or isinstance(found, dict)


# C01-05
@pytest.mark.parametrize("core", [b"numpy.core.multiarray", b"numpy._core.multiarray"], ids=["NumPy 1", "NumPy 2"])
@pytest.mark.parametrize("held", [np.float64(0.9), np.arange(6.0).reshape(2, 3)], ids=["scalar", "array"])
def test_both_names_of_numpys_core_are_known(tmp_path, core: bytes, held) -> None:
    path = tmp_path / "metrics.pt"
    torch.save({"model": {"w": torch.zeros(2)}, "acc": held}, path)
    swap_pickle(path, lambda data: re.sub(rb"numpy\._?core\.multiarray", core, data))
    assert np.array_equal(load(path, device="cpu").metadata["acc"], held)


def swap_pickle(path: Path, change) -> None:
    """Rewrite the pickle in a file of torch.save, everything else as it was."""
    reader = torch._C.PyTorchFileReader(str(path))
    records = {name: reader.get_record(name) for name in reader.get_all_records()}
    del reader
    writer = torch._C.PyTorchFileWriter(str(path))
    for name, content in records.items():
        if name not in (".format_version", "version", ".data/serialization_id"):
            content = change(content) if name == "data.pkl" else content
            writer.write_record(name, content, len(content))
    writer.write_end_of_file()


# C01-05
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.arange(4, dtype=">f4"),
        np.array(["a", "bc"]),
        np.zeros((0, 3), np.float16),
        np.array(7.5),
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
    ],
    ids=["transposed", "big endian", "texts", "empty", "no axis", "Fortran"],
)
def test_arrays_keep_shape_values_and_kind(written, array) -> None:
    found = load(written({"model": {"w": torch.zeros(2)}, "array": array}), device="cpu").metadata["array"]
    assert type(found) is np.ndarray and found.dtype == array.dtype.newbyteorder("=")
    assert np.array_equal(found, array)
    found[...] = found  # it may be written to


# C01-05
@pytest.mark.parametrize(
    ("held", "named"),
    [
        (np.array([{"a": 1}], dtype=object), "'O8'"),
        (np.zeros(2, dtype=[("a", int)]), "'V8'"),
        (np.datetime64("2026-11-30"), "'M8'"),
        (collections.namedtuple("Pair", "a")(1), "Pair"),
        (pickle.Pickler, "Pickler"),
    ],
    ids=["objects", "records", "datetime64", "namedtuple", "class"],
)
def test_what_cannot_be_read_safely_is_refused_by_name(written, monkeypatch, held, named: str) -> None:
    if named == "Pair":
        type(held).__module__, type(held).__qualname__ = __name__, "Pair"
        monkeypatch.setitem(globals(), "Pair", type(held))
    with pytest.raises(CheckpointError, match=named):
        load(written({"model": {"w": torch.zeros(2)}, "value": held}), device="cpu")


def test_a_dtype_that_lies_is_refused(tmp_path, written) -> None:
    path = written({"model": {"w": torch.zeros(2)}, "acc": np.arange(2.0)})
    swap_pickle(path, lambda data: data.replace(b"X\x02\x00\x00\x00f8", b"X\x02\x00\x00\x00|O"))
    with pytest.raises(CheckpointError, match="only plain numbers"):
        load(path, device="cpu")


def test_the_notes_count_what_became_plain(written) -> None:
    content = {
        "model": {"w": torch.zeros(2)},
        "a": np.float64(1),
        "b": np.int64(2),
        "args": argparse.Namespace(p=Path("x")),
    }
    notes = " ".join(load(written(content), device="cpu").notes)
    assert "NumPy number, now Python's (2×)" in notes
    assert "namespace, now a dict (1×)" in notes and "path, now a text (1×)" in notes


def test_weights_beside_refused_settings_are_not_lost_in_silence(written) -> None:
    net = trained()
    assert same(load(written({"model": net.state_dict(), "lr": 0.1}), device="cpu").state, net.state_dict())
    with pytest.raises(CheckpointError, match="settings as plain numbers and texts"):
        load(written({"model": net.state_dict(), "config": Trick()}), device="cpu")
