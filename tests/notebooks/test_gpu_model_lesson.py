"""What lesson 05 says in numbers about its own network, and that its failures are PyTorch's own."""

from __future__ import annotations

import re

import pytest
import torch
from lessons import NOTEBOOKS
from notebook_style import Notebook, source_of, tags_of

import labkit as lab

(PATH,) = NOTEBOOKS.glob("05_*.ipynb")
CELLS = {cell["id"]: cell for cell in Notebook.read(PATH).cells("code")}


def test_the_tolerance_is_that_of_the_network() -> None:
    stated = re.search(r"terms=(\d+), layers=(\d+)", source_of(CELLS["verdict-on-cpu"]))
    weights = [parameter for parameter in lab.small_cnn().parameters() if parameter.ndim > 1]
    assert (int(stated[1]), int(stated[2])) == (max(weight[0].numel() for weight in weights), len(weights))


@pytest.mark.parametrize("cell", ["failure", "prefix-failure", "attack-refused"])
def test_a_failure_shown_on_purpose_is_marked(cell: str) -> None:
    assert "raises-exception" in tags_of(CELLS[cell])


# C01-01
@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        (0, "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"),
        (1, "Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1"),
        (4, "Attempting to deserialize object on CUDA device 4 but torch.cuda.device_count() is 4"),
    ],
)
def test_the_file_fails_on_every_machine_whatever_gpus_it_has(tmp_path, monkeypatch, gpus: int, message: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    names = {"torch": torch, "lab": lab, "net": lab.small_cnn(), "files": tmp_path}
    lines = source_of(CELLS["make-friends-file"]).splitlines()
    exec("\n".join(line for line in lines if not line.startswith(("folder", "files"))), names)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        exec(source_of(CELLS["failure"]), names)
    exec('found = torch.load(friends, map_location="cpu")', names)
    assert torch.equal(names["found"]["body.12.bias"], names["net"].state_dict()["body.12.bias"])
