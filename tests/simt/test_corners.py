"""Corners of the simulator that a plain kernel does not reach; expected values are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.simt import KernelError, cuda, predict, trace

BOTH = pytest.mark.parametrize("schedule", ["lockstep", "interleaved"])


@BOTH
def test_dynamic_shared_memory_is_one_buffer_under_all_its_types(schedule):
    def reinterpret(x, y):
        floats = cuda.shared.array(0, np.float32)
        words = cuda.shared.array(0, np.int32)
        low = cuda.shared.array(0, np.uint8)
        t = cuda.threadIdx.x
        floats[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        y[cuda.grid(1)] = words[31 - t] + low[4 * t]

    x = np.arange(96, dtype=np.float32)
    y = np.zeros(96, np.int64)
    traced = trace(cuda.jit(reinterpret), 3, 32, x, y, shared_bytes=128, schedule=schedule)
    mirrored = np.ascontiguousarray(x.reshape(3, 32)[:, ::-1]).reshape(-1)
    np.testing.assert_array_equal(y, mirrored.view(np.int32) + x.view(np.uint8)[::4].astype(np.int64))
    assert traced.hazards == ()


def test_race_between_two_types_of_dynamic_shared_memory_is_found():
    def mixed(x, y):
        floats = cuda.shared.array(0, np.float32)
        low = cuda.shared.array(0, np.uint8)
        t = cuda.threadIdx.x
        floats[t] = x[t]
        y[t] = low[(4 * t + 5) % 128]  # a byte of the next lane's float

    hazards = trace(cuda.jit(mixed), 1, 32, np.ones(32, np.float32), np.zeros(32), shared_bytes=128).hazards
    assert [(h.kind, h.scope, h.count) for h in hazards] == [("race", "warp", 32)]


@BOTH
def test_threads_that_return_on_the_other_side_of_a_branch_are_no_hazard(schedule):
    def one_warp_returns(y):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        if t < 32:
            cuda.syncthreads()
            y[t] = t
        else:
            s[t] = t
            return

    traced = trace(cuda.jit(one_warp_returns), 1, 64, np.zeros(64, np.int32), schedule=schedule)
    assert traced.hazards == () and any("return" in str(note) for note in traced.notes)


@BOTH
def test_read_of_another_block_is_remembered_across_a_barrier(schedule):
    def first_block_updates(x, y):
        i = cuda.grid(1)
        seen = x[0]
        cuda.syncthreads()
        y[i] = seen
        if i == 0:
            x[0] = x[0] + 1

    hazards = trace(cuda.jit(first_block_updates), 2, 32, np.zeros(1), np.zeros(64), schedule=schedule).hazards
    assert [(h.kind, h.scope, h.array) for h in hazards] == [("race", "grid", "x")]


def test_plain_read_by_the_last_of_many_atomics_is_a_race():
    def last_reads(total, y):
        t = cuda.threadIdx.x
        cuda.atomic.add(total, 0, 1)
        if t == 31:
            y[0] = total[0]

    hazards = trace(cuda.jit(last_reads), 1, 32, np.zeros(1, np.int32), np.zeros(1)).hazards
    assert [(h.kind, h.array, h.access) for h in hazards] == [("race", "total", "read after write")]


def test_arguments_that_overlap_are_one_array():
    def shift(a, b):
        i = cuda.grid(1)
        b[i] = a[i]

    cells = np.zeros(65, np.float32)
    assert [h.kind for h in trace(cuda.jit(shift), 2, 32, cells[:64], cells[1:]).hazards] == ["race"]
    assert trace(cuda.jit(shift), 2, 32, cells[:64], cells[:64]).hazards == ()


def test_trace_honours_the_strides_of_a_view():
    def add_hundred(v):
        i, j = cuda.grid(2)
        if i < v.shape[0] and j < v.shape[1]:
            v[i, j] += 100

    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    expected = base.copy()
    expected[:, ::2] += 100
    traced = trace(cuda.jit(add_hundred), 1, (4, 4), base[::-1, ::2])
    np.testing.assert_array_equal(base, expected)
    load = traced.accesses(warp=0)[0]
    # Lane 0 is (0, 0), the first element of the last row: 3 rows of 24 bytes behind the lowest address.
    assert (load.indices[0], load.addresses[0]) == ((0, 0), 72)
    assert (load.indices[5], load.addresses[5]) == ((1, 1), 2 * 24 + 8)
    with pytest.raises(KernelError, match="gaps"):
        cuda.jit(add_hundred)[1, (4, 4)](base[::-1, ::2])


@pytest.mark.parametrize(
    "signature", ["void(float32[:], int32)", "(float32[::1], i4)", ["void(float64[:], int32)", "void(f4[:], int32)"]]
)
def test_signature_converts_numbers_and_refuses_other_arrays(signature):
    def halve(x, n):
        x[0] = n / 2

    kernel = cuda.jit(signature)(halve)
    x = np.zeros(1, np.float32)
    kernel[1, 1](x, 3.9)  # 3 as int32
    assert x[0] == 1.5
    with pytest.raises(KernelError, match="signature"):
        kernel[1, 1](np.zeros(1, np.int8), 3)


def test_lines_and_arrays_add_up_to_the_whole():
    @cuda.jit(device=True)
    def fold(s, t, n):
        while n > 0:
            if t < n:
                s[t] += s[t + n]
            cuda.syncthreads()
            n //= 2
        return s[0]

    def total(x, out):
        s = cuda.shared.array(64, np.float32)
        t = cuda.threadIdx.x
        s[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        out[cuda.blockIdx.x] = fold(s, t, 32)

    x = np.arange(256, dtype=np.float32)
    traced = trace(cuda.jit(total), 4, 64, x, np.zeros(4, np.float32))
    assert traced.hazards == ()
    # A block: one barrier of its own and one in each of 6 rounds. FLOP: 63 additions a block.
    assert (traced.counters["barriers"], traced.counters["flop"]) == (4 * 7, 4 * 63)
    for name in ("barriers", "flop", "branches", "shared_load_requests", "instructions"):
        assert sum(line[name] for line in traced.by_line().values()) == traced.counters[name]
    assert traced.by_array()["x"]["global_load_bytes"] == 4 * 256


def test_prediction_follows_the_bytes():
    def scale(x):
        i = cuda.grid(1)
        x[i] = np.float32(2) * x[i]

    n = 1 << 20
    prediction = predict(trace(cuda.jit(scale), n // 256, 256, np.ones(n, np.float32)), "T4")
    # 8 MiB over 75 % of 320 GB/s, after a launch of 5 µs; both from the catalogue.
    assert prediction.source == "predicted" and "predicted" in str(prediction)
    assert prediction.bottleneck == "memory"
    assert prediction.seconds == pytest.approx(5e-6 + 8 * n / (0.75 * 320e9))
    assert prediction.low_s < prediction.seconds < prediction.high_s


def test_numba_kernel_is_traced_by_its_source():
    numba_cuda = pytest.importorskip("numba.cuda")

    @numba_cuda.jit
    def fill(x):
        i = numba_cuda.grid(1)
        if i < x.size:
            x[i] = numba_cuda.threadIdx.x

    x = np.zeros(50, np.int32)
    assert trace(fill, 2, 32, x).hazards == ()
    np.testing.assert_array_equal(x, np.arange(50) % 32)
