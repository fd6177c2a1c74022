import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest

from labkit.errors import InputError, RecordError
from labkit.measurement import Task

MATMUL = Task(label="matmul", dtype="float32", parameters={"n": 512, "layout": "odd"}, flop=2 * 512**3, bytes_moved=0)


def test_a_task_reads_as_its_label_sizes_and_dtype():
    assert str(MATMUL) == "matmul n=512 layout=odd float32"
    assert str(Task(label="add")) == "add"


def test_a_task_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MATMUL.label = "add"
    with pytest.raises(TypeError):
        MATMUL.parameters["n"] = 1
    sizes = {"n": 1}
    task = Task(label="add", parameters=sizes)
    sizes["n"] = 2
    assert task.parameters == {"n": 1}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda task: pickle.loads(pickle.dumps(task))])
def test_a_copy_is_equal(again):
    assert again(MATMUL) == MATMUL


def test_equal_tasks_are_one_key():
    same = Task.from_dict(MATMUL.to_dict())
    assert same == MATMUL
    assert {MATMUL: 1}[same] == 1
    assert dataclasses.replace(MATMUL, parameters={"n": 513}) not in {MATMUL: 1}


def test_sizes_from_numpy_become_plain_numbers():
    task = Task(label="add", parameters={"n": np.int64(7), "share": np.float32(0.5)}, flop=np.int64(7))
    assert [type(value) for value in (*task.parameters.values(), task.flop)] == [int, float, int]
    assert task == Task(label="add", parameters={"n": 7, "share": 0.5}, flop=7)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("label", ""),
        ("label", "  "),
        ("label", None),
        ("label", 3),
        ("dtype", ""),
        ("dtype", np.float32),
        ("flop", -1),
        ("flop", math.nan),
        ("flop", "2e9"),
        ("bytes_moved", math.inf),
        ("bytes_moved", -4096),
        ("parameters", [("n", 1)]),
        ("parameters", 512),
    ],
)
def test_nonsense_is_refused_and_repeated(field, bad):
    with pytest.raises(InputError) as caught:
        Task(**{"label": "add", field: bad})
    assert f"{field}={bad!r}" in str(caught.value)


@pytest.mark.parametrize("bad", [math.nan, None, [1, 2], {"a": 1}, object()])
def test_a_parameter_must_be_a_number_or_a_text(bad):
    with pytest.raises(InputError) as caught:
        Task(label="add", parameters={"n": bad})
    assert f"n={bad!r}" in str(caught.value)
    with pytest.raises(InputError, match="512"):
        Task(label="add", parameters={512: "n"})


def test_a_parameter_may_be_negative_zero_or_a_flag():
    sizes = {"shift": -3, "offset": 0, "transposed": True, "layout": ""}
    assert Task(label="add", parameters=sizes).parameters == sizes


@pytest.mark.parametrize("data", [None, 3, "add", [], {}, {"name": "add"}, {"label": "add", "colour": 1}, {"label": 3}])
def test_what_is_no_task_cannot_be_read_as_one(data):
    with pytest.raises(RecordError):
        Task.from_dict(data)
