"""Steps of single warps, each expected by hand from the kernel's text."""

import numpy as np
import pytest

from labkit.errors import InputError
from labkit.simt import Access, WarpEvent, cuda, trace


@cuda.jit
def stage(x, y):
    cells = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    if i % 2 == 0:
        cells[i] = x[i]
    cuda.syncthreads()
    for k in range(2):
        y[i + 32 * k] = cells[(i * 2) % 64]


FIRST = stage.py_func.__code__.co_firstlineno
BRANCH, COPY, BARRIER, LOOP, READ = (FIRST + offset for offset in (4, 5, 6, 7, 8))
ALL, EVEN = tuple(range(32)), tuple(range(0, 32, 2))


@pytest.fixture
def staged():
    return trace(stage, 1, 64, np.ones(64, np.float32), np.zeros(96, np.float32))


def test_steps_come_in_the_order_of_the_program(staged):
    steps = staged.steps([1])[1]
    in_order = [(step.line, step.kind, step.occurrence) for step in steps]
    turn = [[(LOOP, "branch", k), (READ, "load", k), (READ, "store", k)] for k in range(2)]
    assert in_order == [
        (BRANCH, "branch", 0),
        (COPY, "load", 0),
        (COPY, "store", 0),
        (BARRIER, "barrier", 0),
        *turn[0],
        *turn[1],
        (LOOP, "branch", 2),
    ]
    assert all(step.warp == 1 for step in steps)
    assert [step.time for step in steps] == sorted({step.time for step in steps})


def test_a_branch_knows_the_lanes_that_take_it(staged):
    branch, *_, last = (step for step in staged.steps([0])[0] if isinstance(step, WarpEvent))
    assert (branch.lanes, branch.taken) == (ALL, EVEN)
    assert (last.lanes, last.taken) == (ALL, ())  # the loop's end


def test_an_access_knows_lanes_elements_and_cost(staged):
    load, store = (step for step in staged.steps([1])[1] if isinstance(step, Access) and step.line == COPY)
    assert load.lanes == store.lanes == EVEN
    assert load.indices == tuple((32 + lane,) for lane in EVEN)
    assert load.addresses == tuple(4 * (32 + lane) for lane in EVEN)
    assert (load.array, load.space, load.shape, load.itemsize) == ("x", "global", (64,), 4)
    assert load.passes == 4  # 128 bytes, every second word
    # Cells 0, 2, …, 62: banks 0, 2, …, 30, each asked for two words.
    read = next(step for step in staged.steps([0])[0] if step.kind == "load" and step.line == READ)
    assert (read.space, read.passes, read.conflicts) == ("shared", 2, 1)


def test_accesses_are_the_steps_that_touch_memory(staged):
    steps = staged.steps([0, 1])
    for warp in (0, 1):
        expected = tuple(step for step in steps[warp] if isinstance(step, Access))
        assert staged.accesses(warp=warp) == expected
    assert [a.kind for a in staged.accesses(line=READ)] == ["load", "store"] * 2


def test_warps_of_a_block_keep_one_time(staged):
    first, second = staged.steps([0, 1]).values()
    assert [(s.time, s.line, s.kind) for s in first] == [(s.time, s.line, s.kind) for s in second]


def test_the_number_of_steps_can_be_limited(staged):
    assert staged.steps([0], limit=3)[0] == staged.steps([0])[0][:3]


@pytest.mark.parametrize("warp", [-1, 2, 0.5, True])
def test_a_warp_that_the_launch_does_not_have_is_refused(staged, warp):
    with pytest.raises(InputError):
        staged.steps([warp])


def test_mistakes_are_steps_as_well():
    def wrong(x):
        i = cuda.threadIdx.x
        x[i + 1] = 0
        if i < 4:
            cuda.syncthreads()

    first = wrong.__code__.co_firstlineno
    steps = trace(wrong, 1, 32, np.zeros(32, np.float32)).steps()[0]
    mistakes = {step.kind: (step.line, step.lanes, step.array) for step in steps if isinstance(step, WarpEvent)}
    assert mistakes["out_of_bounds"] == (first + 2, (31,), "x")
    assert mistakes["divergent_barrier"] == (first + 4, (0, 1, 2, 3), "")


def test_source_has_the_lines_of_the_kernel_and_of_what_it_calls():
    @cuda.jit(device=True)
    def double(value):
        return value * 2

    @cuda.jit
    def kernel(x):
        x[cuda.threadIdx.x] = double(x[cuda.threadIdx.x])

    texts = trace(kernel, 1, 32, np.ones(32, np.float32)).source()
    first, helper = kernel.py_func.__code__.co_firstlineno, double.py_func.__code__.co_firstlineno
    assert list(texts) == [first, first + 1, first + 2, helper, helper + 1, helper + 2]
    assert texts[first + 2] == "    x[cuda.threadIdx.x] = double(x[cuda.threadIdx.x])"
    assert texts[helper + 2] == "    return value * 2"
