"""What a kernel may contain, what is refused and how, and what a launch checks before it starts."""

from __future__ import annotations

import inspect
import linecache
import warnings

import numpy as np
import pytest
from numba.core.errors import TypingError

from labkit.errors import LabkitError
from labkit.simt import KernelError, cuda, trace
from labkit.simt.launch import DEFAULT_STEP_LIMIT

from . import reference

TILE = 8

# Each body is the statement under test; x and y are arrays, t is the thread. What the message must name; the refusal
# also says what to write instead.
UNSUPPORTED = {
    "list": ("v = [1, 2, 3]", "list"),
    "list comprehension": ("v = [i for i in range(3)]", "comprehension|list"),
    "dictionary": ("v = {1: 2}", "dict"),
    "set": ("v = {1, 2}", "set"),
    "generator expression": ("y[t] = sum(x[i] for i in range(3))", "generator|sum"),
    "lambda": ("f = lambda a: a + 1", "lambda"),
    "nested function": ("def inner(a):\n        return a", "function|def"),
    "class": ("class C:\n        pass", "class"),
    "try": ("try:\n        y[t] = 1\n    except ValueError:\n        pass", "try"),
    "with": ("with open('f') as f:\n        y[t] = 1", "with"),
    "raise": ("raise ValueError('no')", "raise"),
    "yield": ("yield 1", "yield|generator"),
    "import": ("import math", "import"),
    "global": ("global SOMETHING", "global"),
    "delete": ("del t", "del"),
    "slice": ("y[0:2] = 1", "slice"),
    "slice that is read": ("v = x[1:3]", "slice"),
    "loop over an array": ("for v in x:\n        y[t] += v", "loop|for|range"),
    "loop over a tuple": ("for v in (1, 2):\n        y[t] += v", "loop|for|range"),
    "enumerate": ("for i, v in enumerate(x):\n        y[i] = v", "loop|for|range|enumerate"),
    "string": ("y[t] = 'text'", "string|text"),
    "formatted string": ("v = f'{t}'", "string|f-string"),
    "numpy function": ("y[t] = np.sum(x)", "sum"),
    "numpy array": ("v = np.zeros(3)", "zeros"),
    "array method": ("y[t] = x.sum()", "sum"),
    "whole-array arithmetic": ("v = x + y", "array"),
    "whole array stored": ("y[t] = x", "array"),
    "matrix product": ("v = x @ y", "@|matrix"),
    "unknown function": ("y[t] = sorted(x)", "sorted"),
    "unknown name": ("y[t] = undefined_name", "undefined_name"),
    "unknown attribute": ("y[t] = x.nbytes", "nbytes"),
    "unknown cuda function": ("cuda.launch_rockets()", "launch_rockets"),
    "unknown math function": ("y[t] = math.comb(3, 2)", "comb"),
    "complex number": ("y[t] = 1j", "complex|1j"),
    "value returned from a kernel": ("return t", "return"),
    "identity": ("y[t] = t is None", "is"),
    "membership": ("y[t] = t in (1, 2)", "in"),
    "starred assignment": ("a, *b = 1, 2, 3", r"\*|starred"),
    "assignment expression": ("y[t] = (v := 3)", ":=|walrus|assignment expression|expression"),
    "attribute assignment": ("x.flag = 1", "attribute|flag"),
    "float as an index": ("y[t] = x[0.5]", "float|index|integer"),
    "bits of a float": ("y[t] = 1.5 & 3", "float|&"),
    "range of a float": ("for i in range(2.5):\n        y[t] = i", "float|range"),
    "too many indices": ("y[t] = x[t, t]", "dimension|indices|index"),
    "async": ("await x", "await"),
}


def build(body: str, name: str):
    source = f"def kernel(x, y):\n    t = cuda.threadIdx.x\n    y[t] = 7\n    {body}\n"
    filename = f"<unsupported {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    import math

    namespace = {"cuda": cuda, "np": np, "math": math, "__name__": "unsupported"}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["kernel"]


@pytest.mark.parametrize("how", ["launch", "trace"])
@pytest.mark.parametrize("name", [name for name in UNSUPPORTED if name != "async"])
def test_unsupported_construct_is_refused_before_anything_runs(name, how):
    body, wanted = UNSUPPORTED[name]
    kernel = cuda.jit(build(body, name))  # never at decoration
    x, y = np.ones(4), np.zeros(4)
    with pytest.raises(KernelError, match=f"(?i){wanted}") as caught:
        kernel[1, 4](x, y) if how == "launch" else trace(kernel, 1, 4, x, y)
    assert "line 4" in str(caught.value)
    assert caught.value.advice, "says what to write instead"
    assert not y.any(), "refused before anything ran"


# ---- shapes that are not constants (a GPU's compiler refuses them, Numba's simulator does not) ----------------------


def shape_from_an_argument(y, n):
    s = cuda.shared.array(n, np.float32)
    s[0] = 1
    y[0] = s[0]


def shape_from_the_block(y, n):
    s = cuda.shared.array(cuda.blockDim.x, np.float32)
    s[0] = 1
    y[0] = s[0]


def shape_from_a_variable(y, n):
    size = 4 * n
    s = cuda.shared.array((size, 2), np.float32)
    s[0, 0] = 1
    y[0] = s[0, 0]


def local_shape_from_an_argument(y, n):
    s = cuda.local.array(n, np.float32)
    s[0] = 1
    y[0] = s[0]


def shape_from_a_sum(y, n):
    s = cuda.shared.array((TILE, TILE + 1), np.float32)
    s[0, 0] = 1
    y[0] = s[0, 0]


SHAPES = [
    shape_from_an_argument,
    shape_from_the_block,
    shape_from_a_variable,
    shape_from_a_sum,
    local_shape_from_an_argument,
]


# C07-01
@pytest.mark.parametrize("kernel", SHAPES, ids=lambda kernel: kernel.__name__)
def test_shape_must_be_a_compile_time_constant(kernel):
    """A name or a literal; even TILE + 1 is no constant to Numba, so that cell would fail on a GPU."""
    y = np.zeros(4)
    with pytest.raises(TypingError, match="array"):
        reference.types_of(kernel, y, 8)
    with pytest.raises(KernelError, match="constant") as caught:
        cuda.jit(kernel)[1, 1](y, 8)
    lines, first = inspect.getsourcelines(kernel)
    line = first + next(offset for offset, text in enumerate(lines) if ".array(" in text)
    assert f"line {line}" in str(caught.value)
    assert not y.any()


def test_shape_may_be_a_closure_variable_or_a_local_name_for_a_literal():
    size = 4

    def kernel(y):
        rows = 3
        s = cuda.shared.array((rows, size), np.float32)
        s[2, 3] = 1
        y[0] = s[2, 3]

    y = np.zeros(1)
    reference.types_of(kernel, y)
    cuda.jit(kernel)[1, 1](y)
    assert y[0] == 1


def test_shape_may_be_an_expression_of_literals_which_python_works_out():
    def kernel(y):
        s = cuda.shared.array((2 * 3, 8 - 1), np.float32)
        s[5, 6] = 1
        y[0] = s[5, 6]

    y = np.zeros(1)
    reference.types_of(kernel, y)
    cuda.jit(kernel)[1, 1](y)
    assert y[0] == 1


# ---- what Numba's compiler refuses: the cell would fail on a GPU -----------------------------------------------------

REFUSED_BY_NUMBA = {
    "barrier that counts a bool": "y[t] = cuda.syncthreads_count(x[t] > 0)",
    "barrier that counts a float": "y[t] = cuda.syncthreads_and(1.5)",
    "selp of two types": "y[t] = cuda.selp(x[t] > 0, x[t], 3)",
    "bool as an index": "y[x[t] > 0] = 1",
    "bits of a float": "cuda.atomic.and_(x, 0, 3)",
    "shift of a float": "y[t] = x[t] << 2",
    "tuple with a variable index": "y[t] = (1, 2.0)[t]",
    "grid of four dimensions": "y[t] = cuda.grid(4)",
    "shuffle without a mask": "y[t] = cuda.shfl_down_sync(x[t], 1)",
}


@pytest.mark.parametrize("name", REFUSED_BY_NUMBA)
def test_what_numba_refuses_is_refused(name):
    kernel = build(REFUSED_BY_NUMBA[name], f"by numba: {name}")
    x, y = np.ones(4), np.zeros(4)
    with pytest.raises((TypingError, TypeError)):
        reference.types_of(kernel, x, y)
    with pytest.raises(KernelError, match="line 4"):
        cuda.jit(kernel)[1, 4](x, y)
    assert not y.any()


# ---- what a launch checks -------------------------------------------------------------------------------------------


def nothing(y):
    pass


def make_static(count):
    def static(y):
        s = cuda.shared.array(count, np.float32)
        s[0] = 1
        y[0] = s[0]

    return static


def dynamic(y):
    s = cuda.shared.array(0, np.float32)
    s[0] = 1
    y[0] = s[0]


# grid, block, shared bytes, kernel. CUDA C++ Programming Guide, technical specifications: 1,024 threads a block,
# 1,024 × 1,024 × 64 at most; grids up to 2**31 − 1 × 65,535 × 65,535; 48 KiB of static shared memory; a T4 has 64 KiB.
TOO_LARGE = {
    "1025 threads": (1, 1025, 0, nothing),
    "33 x 32 threads": (1, (33, 32), 0, nothing),
    "16 x 16 x 5 threads": (1, (16, 16, 5), 0, nothing),
    "block of 65 layers": (1, (1, 1, 65), 0, nothing),
    "grid of 65536 rows": ((1, 65536), 1, 0, nothing),
    "grid of 65536 layers": ((1, 1, 65536), 1, 0, nothing),
    "grid of 2**31 columns": (2**31, 1, 0, nothing),
    "static shared memory": (1, 1, 0, make_static(48 * 256 + 1)),
    "dynamic shared memory": (1, 1, 64 * 1024 + 4, dynamic),
    "no threads": (1, 0, 0, nothing),
    "no blocks": (0, 1, 0, nothing),
    "an axis of no threads": (1, (4, 0), 0, nothing),
}
JUST_FITS = {
    "1024 threads": (1, 1024, 0, nothing),
    "32 x 32 threads": (1, (32, 32), 0, nothing),
    "block of 64 layers": (1, (1, 1, 64), 0, nothing),
    "grid of 65535 rows": ((1, 65535), 1, 0, nothing),
    "static shared memory": (1, 1, 0, make_static(48 * 256)),
    "dynamic shared memory": (1, 1, 64 * 1024, dynamic),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_launch_limits(name):
    grid, block, shared, kernel = TOO_LARGE[name]
    with pytest.raises(KernelError):
        cuda.jit(kernel)[grid, block, 0, shared](np.zeros(1))
    hazards = trace(cuda.jit(kernel), grid, block, np.zeros(1), shared_bytes=shared).hazards
    assert hazards and {hazard.kind for hazard in hazards} == {"launch_limits"}


@pytest.mark.parametrize("name", JUST_FITS)
def test_just_within_the_limits(name):
    grid, block, shared, kernel = JUST_FITS[name]
    cuda.jit(kernel)[grid, block, 0, shared](np.zeros(1))
    assert trace(cuda.jit(kernel), grid, block, np.zeros(1), shared_bytes=shared).hazards == ()


@pytest.mark.parametrize(
    ("grid", "block"), [(-1, 32), (1, -32), (1.5, 32), (1, "32"), ((1, 1, 1, 1), 1), (1, None), ((), 1)]
)
def test_senseless_launches_are_refused(grid, block):
    with pytest.raises(LabkitError):
        cuda.jit(nothing)[grid, block](np.zeros(1))


def add_one(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i] + 1


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_arguments(count):
    with pytest.raises((LabkitError, TypeError), match="argument"):
        cuda.jit(add_one)[1, 32](*[np.zeros(4)] * count)


@pytest.mark.parametrize("bad", [[1, 2, 3], "text", {"a": 1}, np.array(["a"]), np.zeros(2, complex), object()])
def test_arguments_that_a_kernel_cannot_take(bad):
    y = np.zeros(4)
    with pytest.raises(LabkitError):
        cuda.jit(add_one)[1, 32](bad, y)
    assert not y.any()


def test_non_contiguous_arrays():
    """A launch refuses them as Numba does; a trace honours their strides."""
    base = np.arange(16.0)
    x, y = base[::2], np.zeros(8)
    with pytest.raises(LabkitError, match="contiguous"):
        cuda.jit(add_one)[1, 32](x, y)
    assert not y.any()
    assert trace(cuda.jit(add_one), 1, 32, x, y).hazards == ()
    np.testing.assert_array_equal(y, x + 1)
    trace(cuda.jit(add_one), 1, 32, np.arange(8.0), base[1::2])
    np.testing.assert_array_equal(base, [0, 1, 2, 2, 4, 3, 6, 4, 8, 5, 10, 6, 12, 7, 14, 8])


def test_fortran_order_is_contiguous():
    def transpose_into(a, b):
        i, j = cuda.grid(2)
        b[i, j] = a[i, j]

    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    b = np.zeros((2, 3))
    cuda.jit(transpose_into)[1, (2, 3)](a, b)
    np.testing.assert_array_equal(b, a)


def test_read_only_arrays_are_not_written():
    y = np.zeros(4)
    y.flags.writeable = False
    with pytest.raises(LabkitError):
        cuda.jit(add_one)[1, 4](np.zeros(4), y)
    assert not y.any()


# ---- decorators, device arrays, signatures --------------------------------------------------------------------------


@cuda.jit
def bare(y):
    y[cuda.grid(1)] = 1


@cuda.jit()
def called(y):
    y[cuda.grid(1)] = 2


@cuda.jit("void(float64[:])")
def with_signature(y):
    y[cuda.grid(1)] = 3


@cuda.jit(fastmath=True, opt=True, lineinfo=True, max_registers=32)
def with_options(y):
    y[cuda.grid(1)] = 4


@pytest.mark.parametrize(("kernel", "value"), [(bare, 1), (called, 2), (with_signature, 3), (with_options, 4)])
def test_every_form_of_the_decorator(kernel, value):
    y = np.zeros(8)
    kernel[2, 4](y)
    assert (y == value).all()
    traced = np.zeros(8)
    trace(kernel, 2, 4, traced)
    assert (traced == value).all()


def test_device_arrays_look_like_numbas():
    x = np.arange(8.0)
    device_x = cuda.to_device(x)
    device_y = cuda.device_array(8, np.float64)
    like = cuda.device_array_like(x)
    assert device_y.shape == like.shape == (8,) and device_y.dtype == np.float64
    cuda.jit(add_one)[1, 8, cuda.stream()](device_x, device_y)
    cuda.synchronize()
    np.testing.assert_array_equal(device_y.copy_to_host(), x + 1)
    x[0] = 99  # the copy on the device keeps its value
    assert device_x.copy_to_host()[0] == 0
    host = np.zeros(8)
    device_y.copy_to_host(host)
    np.testing.assert_array_equal(host, np.arange(8.0) + 1)
    assert cuda.is_available() in (True, False)


def test_kernel_without_its_bracket_is_explained():
    with pytest.raises(LabkitError, match=r"\["):
        bare(np.zeros(4))


def test_trace_reads_a_kernel_of_numba():
    numba_cuda = pytest.importorskip("numba.cuda")

    def numba_kernel(y):
        i = numba_cuda.grid(1)
        if i < y.size:
            y[i] = i * 2

    y = np.zeros(40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = trace(numba_cuda.jit(numba_kernel), 2, 32, y)
    np.testing.assert_array_equal(y, np.arange(40) * 2)
    assert traced.hazards == () and traced.counters["global_store_requests"] == 2


# ---- running --------------------------------------------------------------------------------------------------------


def endless(y):
    t = cuda.threadIdx.x
    while y[t] == 0:
        if t < 3:
            y[t] = 1


@pytest.mark.parametrize("how", ["launch", "trace"])
def test_a_kernel_that_never_ends_is_stopped(how, monkeypatch):
    monkeypatch.setattr("labkit.simt.launch.DEFAULT_STEP_LIMIT", 3000)  # the real one takes seconds
    with pytest.raises(KernelError) as caught:
        if how == "launch":
            cuda.jit(endless)[1, 8](np.zeros(8))
        else:
            trace(cuda.jit(endless), 1, 8, np.zeros(8), step_limit=3000)
    message = str(caught.value)
    line = endless.__code__.co_firstlineno
    assert any(f"line {line + offset}" in message for offset in (2, 3, 4))
    assert "5 threads" in message  # lanes 3 to 7 are still running


def test_the_step_limit_is_finite_and_leaves_room():
    assert 10_000 < DEFAULT_STEP_LIMIT < 10**8

    def long(y):
        t = cuda.threadIdx.x
        for _ in range(20_000):
            y[t] += 1

    y = np.zeros(2)
    cuda.jit(long)[1, 2](y)
    assert (y == 20_000).all()


def test_print_says_which_thread_said_what(capsys):
    def talks(x):
        t = cuda.threadIdx.x
        if t == 2 or t == 3:
            print("value", x[t], t)

    cuda.jit(talks)[1, 4](np.array([1.5, 2.5, 3.5, 4.5]))
    said = capsys.readouterr().out
    assert "value 3.5 2" in said and "value 4.5 3" in said
    assert len(said.strip().splitlines()) == 2


def test_print_is_bounded(capsys):
    def talks(x):
        for i in range(1000):
            print("x", i)

    cuda.jit(talks)[64, 256](np.zeros(1))
    assert len(capsys.readouterr().out) < 200_000


def test_failed_assertion_is_told():
    def asserts(y):
        t = cuda.threadIdx.x
        assert t < 3, "too many"
        y[t] = 1

    try:
        noted = " ".join(str(note) for note in trace(cuda.jit(asserts), 1, 4, np.zeros(4)).notes)
    except KernelError as error:
        noted = str(error)
    assert "too many" in noted or "assert" in noted


def test_dynamic_shared_memory_that_is_too_small_is_out_of_bounds():
    def fill(y):
        s = cuda.shared.array(0, np.float64)
        t = cuda.threadIdx.x
        s[t] = t
        y[t] = s[t]

    cuda.jit(fill)[1, 16, 0, 128](np.zeros(16))
    hazards = trace(cuda.jit(fill), 1, 16, np.zeros(16), shared_bytes=64).hazards
    assert {hazard.kind for hazard in hazards} >= {"out_of_bounds"}
    with pytest.raises(KernelError, match="s"):
        cuda.jit(fill)[1, 16](np.zeros(16))


# C07-08
def test_toy_launches_warn_about_nothing():
    """Small grids and host arrays are what lessons use; Numba's performance warnings are not for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cuda.jit(add_one)[1, 4](np.zeros(4), np.zeros(4))
        trace(cuda.jit(add_one), 1, 4, np.zeros(4), np.zeros(4))


# ---- the same answer every time -------------------------------------------------------------------------------------


def racy(y, z):
    s = cuda.shared.array(64, np.int64)
    t = cuda.threadIdx.x
    s[t] = t + cuda.blockIdx.x
    z[cuda.grid(1)] = s[(t + 37) % 64]
    cuda.atomic.add(y, t % 3, s[63 - t])


def everything(result, arrays):
    return (dict(result.counters), result.hazards, tuple(map(str, result.notes)), [array.tolist() for array in arrays])


def run_racy(**options):
    arrays = np.zeros(3, np.int64), np.zeros(256, np.int64)
    return everything(trace(cuda.jit(racy), 4, 64, *arrays, **options), arrays)


def test_lockstep_is_deterministic():
    assert run_racy() == run_racy()


def test_interleaved_is_deterministic_for_a_seed():
    runs = [run_racy(schedule="interleaved", seed=seed) for seed in (0, 0, 1, 1, 2, 3)]
    assert runs[0] == runs[1] and runs[2] == runs[3]
    assert len({str(run[3]) for run in runs}) > 1


def test_both_schedules_count_the_same_on_a_correct_kernel():
    def correct(x, y):
        s = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        y[cuda.grid(1)] = s[63 - t] * 2

    results = []
    for schedule in ("lockstep", "interleaved"):
        arrays = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
        results.append(everything(trace(cuda.jit(correct), 4, 64, *arrays, schedule=schedule), arrays))
    assert results[0] == results[1]


def test_unknown_schedule():
    with pytest.raises(LabkitError, match="lockstep"):
        trace(cuda.jit(nothing), 1, 1, np.zeros(1), schedule="random")


def test_memory_is_bounded_whatever_the_grid():
    """Four million threads go in batches: beyond the arrays, far less than a byte per thread and variable is held."""
    import tracemalloc

    x = np.zeros(2**22, np.float32)
    y = np.zeros_like(x)
    kernel = cuda.jit(add_one)
    kernel[1, 32](x, y)
    tracemalloc.start()
    kernel[2**14, 256](x, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (y == 1).all()
    assert peak < 64 * 2**20
