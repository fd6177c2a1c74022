"""Counters against values worked out by hand; the working is in the comments.

A sector is an aligned 32 bytes; arrays start on a 256-byte boundary. A warp of 32 lanes, 4-byte words: 128 bytes.
"""

from __future__ import annotations

import numpy as np
import pytest

from labkit.simt import cuda, trace

from .test_hazards import make_tiled, product_inputs


def traced(kernel, grid, block, *arguments, **options):
    result = trace(cuda.jit(kernel), grid, block, *arguments, **options)
    assert result.hazards == ()
    return result


def loads(counters) -> tuple[int, int, int]:
    return tuple(int(counters[f"global_load_{what}"]) for what in ("requests", "sectors", "bytes"))


def stores(counters) -> tuple[int, int, int]:
    return tuple(int(counters[f"global_store_{what}"]) for what in ("requests", "sectors", "bytes"))


# ---- global memory --------------------------------------------------------------------------------------------------


def make_strided(stride, offset=0):
    def strided(x, y):
        i = cuda.grid(1)
        y[i] = x[i * stride + offset]

    return strided


@pytest.mark.parametrize(
    ("dtype", "stride", "offset", "sectors"),
    [
        # float32: lanes touch bytes 4·s·i to 4·s·i + 3, together 128·s bytes; a sector holds 8/s of them, at least one.
        (np.float32, 1, 0, 4),
        (np.float32, 2, 0, 8),
        (np.float32, 4, 0, 16),
        (np.float32, 8, 0, 32),
        (np.float32, 16, 0, 32),
        (np.float32, 32, 0, 32),
        # Misaligned by one: bytes 4 to 131 lie in sectors 0 to 4.
        (np.float32, 1, 1, 5),
        # By eight: bytes 32 to 159, aligned again.
        (np.float32, 1, 8, 4),
        # Stride 2 from element 1: bytes 4 to 255, sectors 0 to 7.
        (np.float32, 2, 1, 8),
        # Broadcast: one word, one sector.
        (np.float32, 0, 0, 1),
        (np.float32, 0, 13, 1),
        # Backwards from the end: the same 128 bytes.
        (np.float32, -1, 31, 4),
        # float64: 256 bytes, 8 sectors; stride 4 is 32 bytes: a sector each.
        (np.float64, 1, 0, 8),
        (np.float64, 2, 0, 16),
        (np.float64, 4, 0, 32),
        (np.float64, 1, 1, 9),
        (np.float64, 0, 3, 1),
        # int8: 32 bytes, one sector; misaligned two; stride 4 is 128 bytes: 4 sectors; stride 32: a sector each.
        (np.int8, 1, 0, 1),
        (np.int8, 1, 1, 2),
        (np.int8, 4, 0, 4),
        (np.int8, 32, 0, 32),
        # int16: 64 bytes, 2 sectors.
        (np.int16, 1, 0, 2),
    ],
)
def test_sectors_of_one_warp(dtype, stride, offset, sectors):
    x = np.zeros(32 * 32 + 32, dtype)
    counters = traced(make_strided(stride, offset), 1, 32, x, np.zeros(32, dtype)).counters
    item = np.dtype(dtype).itemsize
    assert loads(counters) == (1, sectors, 32 * item)
    # The store is the plain one: 32 items side by side.
    assert stores(counters) == (1, item, 32 * item)


@pytest.mark.parametrize(
    ("grid", "block", "requests", "sectors", "count"),
    [
        (1, 8, 1, 1, 8),  # 8 lanes, 32 bytes
        (1, 9, 1, 2, 9),  # 36 bytes
        (1, 1, 1, 1, 1),
        (1, 40, 2, 5, 40),  # 128 bytes and 32 bytes
        (1, 64, 2, 8, 64),
        (3, 20, 3, 9, 60),  # 80 bytes a block: 0-79 sectors 0-2; 80-159 sectors 2-4; 160-239 sectors 5-7: 3 + 3 + 3
        (
            2,
            36,
            4,
            5 + 6,
            72,
        ),  # 128 + 16 bytes: 4 + 1; then from byte 144: 144-271 is sectors 4-8 (5), 272-287 is 8 (1)
    ],
)
def test_partial_warps(grid, block, requests, sectors, count):
    x = np.zeros(200, np.float32)
    counters = traced(make_strided(1), grid, block, x, np.zeros_like(x)).counters
    assert loads(counters) == stores(counters) == (requests, sectors, 4 * count)
    assert counters["warps"] == requests
    assert counters["threads"] == count
    assert counters["blocks"] == grid


def by_rows(a, b):
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    b[y, x] = a[y, x]


def by_columns(a, b):
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    b[y, x] = a[x, y]


@pytest.mark.parametrize(
    ("kernel", "block", "requests", "sectors"),
    [
        # Rows of 64 floats are 256 bytes apart. A warp of an (8, 4) block: 4 rows × 32 bytes.
        (by_rows, (8, 4), 1, 4),
        # (4, 8): 8 rows × 16 bytes.
        (by_rows, (4, 8), 1, 8),
        # (2, 16): 16 rows × 8 bytes.
        (by_rows, (2, 16), 1, 16),
        # (16, 16): 8 warps, each 2 rows × 64 bytes.
        (by_rows, (16, 16), 8, 8 * 4),
        # (5, 7): 35 threads; warp 0 is rows 0 to 5 whole (30 lanes) and 2 lanes of row 6, 20 bytes a row: 7 sectors;
        # warp 1 is the last 3 lanes of row 6: 1 sector.
        (by_rows, (5, 7), 2, 8),
        # By columns a warp of a (16, 16) block touches 16 rows × 2 neighbours (y = 2w, 2w + 1: 8 bytes in one sector).
        (by_columns, (16, 16), 8, 8 * 16),
        # (32, 2): each warp is one column: 32 rows.
        (by_columns, (32, 2), 2, 64),
        # (4, 8): 4 rows × 8 neighbours, 32 bytes.
        (by_columns, (4, 8), 1, 4),
    ],
)
def test_blocks_of_two_dimensions(kernel, block, requests, sectors):
    a = np.zeros((64, 64), np.float32)
    counters = traced(kernel, 1, block, a, np.zeros((64, 64), np.float32)).counters
    assert loads(counters) == (requests, sectors, 4 * block[0] * block[1])


def test_every_argument_starts_on_its_own_boundary_and_strides_are_honoured():
    base = np.zeros(200, np.float32)
    y = np.zeros(32, np.float32)
    assert loads(traced(make_strided(1), 1, 32, base[1:], y).counters) == (1, 4, 128)  # a view starts aligned
    assert loads(traced(make_strided(1), 1, 32, base[::2], y).counters) == (1, 8, 128)  # 8 bytes apart
    assert loads(traced(make_strided(1), 1, 32, base[::-1], y).counters)[::2] == (1, 128)
    square = np.zeros((64, 64), np.float32)
    out = np.zeros((64, 64), np.float32)
    # The transpose of a view: rows of the transposed array are columns of memory.
    assert loads(traced(by_rows, 1, (16, 16), square.T, out).counters) == (8, 128, 1024)


def test_only_active_lanes_and_warps_count():
    def guarded(x, y):
        i = cuda.threadIdx.x
        if i < 40:
            y[i] = x[i]

    counters = traced(guarded, 1, 96, np.zeros(96, np.float32), np.zeros(96, np.float32)).counters
    # Warp 0: 128 bytes; warp 1: 8 lanes, 32 bytes; warp 2: no active lane, no request.
    assert loads(counters) == stores(counters) == (2, 5, 160)


def test_loads_in_a_loop_with_lane_dependent_bounds():
    def triangle(x, y):
        i = cuda.threadIdx.x
        total = np.float32(0)
        for j in range(i):
            total += x[j]
        y[i] = total

    counters = traced(triangle, 1, 32, np.zeros(32, np.float32), np.zeros(32, np.float32)).counters
    # Pass j has the 31 - j lanes with i > j: 31 requests of one broadcast word; 0 + 1 + … + 31 = 496 words asked for.
    assert loads(counters) == (31, 31, 496 * 4)


def test_two_loads_on_one_line_are_two_requests():
    def both(x, y):
        i = cuda.threadIdx.x
        y[i] = x[i] + x[i + 1]

    counters = traced(both, 1, 32, np.zeros(64, np.float32), np.zeros(32, np.float32)).counters
    assert loads(counters) == (2, 4 + 5, 256)


def test_augmented_store_is_a_load_and_a_store():
    def add(y):
        y[cuda.threadIdx.x] += 1

    counters = traced(add, 1, 32, np.zeros(32, np.float32)).counters
    assert loads(counters) == stores(counters) == (1, 4, 128)


# ---- shared memory --------------------------------------------------------------------------------------------------


def shared(counters, what="load") -> tuple[int, int, int]:
    return tuple(int(counters[f"shared_{what}_{name}"]) for name in ("requests", "wavefronts", "bank_conflicts"))


def make_column(pitch, dtype=np.float32):
    """Each lane writes and reads the first cell of its row: a column of the array."""

    def column(y):
        s = cuda.shared.array((32, pitch), dtype)
        t = cuda.threadIdx.x
        s[t, 0] = t
        y[t] = s[t, 0]

    return column


# C07-11
@pytest.mark.parametrize(
    ("pitch", "degree"),
    [
        (32, 32),  # word 32t: always bank 0
        (33, 1),  # word 33t: bank t
        (16, 16),  # word 16t: banks 0 and 16, sixteen words each
        (17, 1),  # word 17t: 17 is odd, so 17t mod 32 takes all values
        (1, 1),
        (2, 2),  # word 2t: the even banks, two words each
        (8, 8),  # banks 0, 8, 16, 24
        (64, 32),
        (31, 1),
    ],
)
def test_column_of_a_shared_array(pitch, degree):
    counters = traced(make_column(pitch), 1, 32, np.zeros(32, np.float32)).counters
    # 32 distinct words need at least one wavefront.
    assert shared(counters) == shared(counters, "store") == (1, degree, degree - 1)


PADDED = 32 * 33


# C07-11
def test_padding_does_not_help_when_the_index_keeps_the_old_stride():
    def padded(y):
        s = cuda.shared.array(PADDED, np.float32)
        t = cuda.threadIdx.x
        s[t * 32] = t
        y[t] = s[t * 32]

    counters = traced(padded, 1, 32, np.zeros(32, np.float32)).counters
    assert shared(counters) == (1, 32, 31)


def make_square_column(pitch):
    def square(y):
        s = cuda.shared.array((16, pitch), np.float32)
        x = cuda.threadIdx.x
        row = cuda.threadIdx.y
        s[x, row] = x
        y[row, x] = s[x, row]

    return square


@pytest.mark.parametrize(
    ("pitch", "degree"),
    [
        # A warp of a 16×16 block is x = 0…15 for two rows y, y + 1; its words are pitch·x + y and pitch·x + y + 1.
        (16, 8),  # banks y, y + 1 (x even) and y + 16, y + 17 (x odd): 8 words each
        (17, 2),  # 17a = 17b + 1 mod 32 for a = 0, b = 15: one bank has two words
        (32, 16),  # banks y and y + 1: 16 words each
        (33, 2),  # bank x + y and x + y + 1: neighbours in x and y meet
        (18, 1),  # 18x mod 32 takes each even value once for x < 16 (9 is odd): with y + 1 each bank has one word
    ],
)
def test_column_in_a_square_block(pitch, degree):
    counters = traced(make_square_column(pitch), 1, (16, 16), np.zeros((16, 16), np.float32)).counters
    assert shared(counters) == (8, 8 * degree, 8 * (degree - 1))


@pytest.mark.parametrize(
    ("pitch", "wavefronts"),
    [
        # 8-byte words go half a warp at a time. Cell t is words 2·pitch·t and the next one.
        (1, 2),  # each half: 32 words side by side
        (17, 2),  # 34t mod 32 = 2t: 16 pairs fill the 32 banks
        (33, 2),  # 66t mod 32 = 2t
        (16, 32),  # 32t: banks 0 and 1, 16 words each, twice
        (32, 32),
        (2, 4),  # 4t mod 32: banks 0, 1, 4, 5, …: 8 different places for 16 lanes, two words each, twice
    ],
)
def test_float64_goes_by_half_warps(pitch, wavefronts):
    counters = traced(make_column(pitch, np.float64), 1, 32, np.zeros(32)).counters
    # The fewest: one for each half that has active lanes.
    assert shared(counters) == (1, wavefronts, wavefronts - 2)


def test_float64_of_half_a_warp_is_one_wavefront():
    counters = traced(make_column(1, np.float64), 1, 16, np.zeros(32)).counters
    assert shared(counters) == (1, 1, 0)
    counters = traced(make_column(16, np.float64), 1, 20, np.zeros(32)).counters
    assert shared(counters) == (1, 16 + 4, 18)  # 16 lanes and 4 lanes, all in bank 0 and 1


@pytest.mark.parametrize(
    ("pitch", "degree"),
    [
        (1, 1),  # 32 bytes: 8 words in 8 banks, 4 lanes a word
        (4, 1),  # word t
        (32, 8),  # word 8t: banks 0, 8, 16, 24
        (33, 1),  # t = 4q + r: word 33q + 8r, bank q + 8r with q < 8: all different
        (128, 32),  # word 32t
    ],
)
def test_int8_shares_words(pitch, degree):
    counters = traced(make_column(pitch, np.int8), 1, 32, np.zeros(32, np.int64)).counters
    assert shared(counters) == (1, degree, degree - 1)


def make_reader(index):
    """Fill shared memory, wait, then read one cell per lane."""

    def reader(places, y):
        s = cuda.shared.array(128, np.float32)
        t = cuda.threadIdx.x
        for i in range(4):
            s[t + 32 * i] = i
        cuda.syncthreads()
        y[t] = s[places[t]]

    return reader, np.array([index(t) for t in range(32)])


@pytest.mark.parametrize(
    ("index", "degree"),
    [
        (lambda t: 7, 1),  # the same word for all: broadcast
        (lambda t: t, 1),
        (lambda t: 31 - t, 1),
        (lambda t: t // 2, 1),  # each word for two lanes
        (lambda t: (t % 2) * 32, 2),  # two words of bank 0
        (lambda t: (t % 4) * 32, 4),  # four words of bank 0
        (lambda t: 5 + (t % 3) * 32 if t < 30 else t, 3),  # three words of bank 5, two lanes elsewhere
    ],
)
def test_words_of_one_bank(index, degree):
    kernel, places = make_reader(index)
    counters = traced(kernel, 1, 32, places, np.zeros(32, np.float32)).counters
    assert shared(counters) == (1, degree, degree - 1)
    assert shared(counters, "store") == (4, 4, 0)


# ---- the tiled product ----------------------------------------------------------------------------------------------


def naive(a, b, c):
    column, row = cuda.grid(2)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[row, k] * b[k, column]
    c[row, column] = total


@pytest.mark.parametrize(("tile", "n"), [(4, 16), (8, 16), (16, 32)])
def test_tiling_divides_requests_and_bytes_by_the_tile(tile, n):
    grid, block = (n // tile, n // tile), (tile, tile)
    plain = traced(naive, grid, block, *product_inputs(n, n, n)).counters
    tiled = traced(make_tiled(tile), grid, block, *product_inputs(n, n, n)).counters
    # Naive: 2n loads a thread; tiled: 2 loads in each of n / tile steps.
    warps = (n // tile) ** 2 * -(-tile * tile // 32)
    assert (plain["global_load_requests"], plain["global_load_bytes"]) == (2 * n * warps, 2 * n * n * n * 4)
    assert plain["global_load_requests"] == tile * tiled["global_load_requests"]
    assert plain["global_load_bytes"] == tile * tiled["global_load_bytes"]
    assert plain["flop"] == tiled["flop"] == 2 * n**3
    # Bytes: the loads and one store of c; intensity is FLOP over those.
    asked = 2 * n**3 * 4 + n * n * 4
    assert plain["arithmetic_intensity"] == pytest.approx(2 * n**3 / asked)


# ---- control flow, arithmetic, cooperation --------------------------------------------------------------------------


def test_branches_and_divergence_of_a_guard():
    def guarded(x, y):
        i = cuda.grid(1)
        if i < y.size:
            y[i] = x[i]

    # 77 elements, three warps: each decides once; the last has 13 lanes inside and 19 outside.
    counters = traced(guarded, 3, 32, np.zeros(77), np.zeros(77)).counters
    assert (counters["branches"], counters["divergent_branches"]) == (3, 1)


def test_branches_of_a_loop_whose_length_differs_by_lane():
    def triangle(y):
        i = cuda.threadIdx.x
        for j in range(i):
            y[i] += j

    # A warp asks for another trip until lane 31 has had its 31: 32 times. At the k-th time (from 0) lane k leaves and
    # the lanes above go on, so the first 31 are divergent; at the last one lane 31 is alone.
    counters = traced(triangle, 1, 32, np.zeros(32)).counters
    assert (counters["branches"], counters["divergent_branches"]) == (32, 31)


def test_uniform_branches_do_not_diverge():
    def uniform(y):
        i = cuda.grid(1)
        if cuda.blockIdx.x == 1:
            for _ in range(4):
                y[i] += 1

    # Two blocks of two warps: 4 decisions; the warps of block 1 ask 5 times for another trip: 10.
    counters = traced(uniform, 2, 64, np.zeros(128)).counters
    assert (counters["branches"], counters["divergent_branches"]) == (14, 0)


def test_flop_by_dtype():
    def arithmetic(x, z, y):
        i = cuda.threadIdx.x
        y[i] = x[i] * x[i] + x[i]  # two of float32
        z[i] = z[i] * 2.0 - 1.0 / z[i]  # three of float64
        y[i] = cuda.fma(x[i], x[i], x[i])  # two of float32
        i += 1  # none: an integer

    x = np.ones(40, np.float32)
    counters = traced(arithmetic, 1, 40, x, np.ones(40), np.zeros(40, np.float32)).counters
    assert (counters["flop_float32"], counters["flop_float64"], counters["flop"]) == (160, 120, 280)


def test_flop_of_active_lanes_only():
    def guarded(x, y):
        i = cuda.threadIdx.x
        if i < 10:
            y[i] = x[i] + x[i]

    assert traced(guarded, 1, 64, np.ones(64, np.float32), np.zeros(64, np.float32)).counters["flop"] == 10


def test_arithmetic_intensity_of_saxpy():
    def saxpy(a, x, y):
        i = cuda.grid(1)
        y[i] = a * x[i] + y[i]

    # 2 FLOP for two loads and one store of 4 bytes.
    counters = traced(saxpy, 2, 32, np.float32(2), np.ones(64, np.float32), np.ones(64, np.float32)).counters
    assert counters["arithmetic_intensity"] == pytest.approx(2 / 12)
    assert counters["global_load_sectors_per_request"] == 4


def test_barriers_are_counted_once_a_block():
    def waits(y):
        for _ in range(3):
            cuda.syncthreads()
        y[cuda.grid(1)] = 1

    assert traced(waits, 5, 64, np.zeros(320)).counters["barriers"] == 15


@pytest.mark.parametrize(("bins", "turns"), [(1, 31), (2, 15), (4, 7), (32, 0)])
def test_atomics_on_one_address_take_turns(bins, turns):
    def histogram(y):
        cuda.atomic.add(y, cuda.threadIdx.x % bins, 1)

    # One warp: 32 / bins lanes on each address, served one after another. Two blocks: twice that.
    counters = traced(histogram, 2, 32, np.zeros(32, np.int32)).counters
    assert (counters["atomics"], counters["atomic_requests"], counters["atomic_serialisations"]) == (64, 2, 2 * turns)
    assert loads(counters) == stores(counters) == (0, 0, 0)


def test_mean_active_lanes():
    def plain(y):
        y[cuda.threadIdx.x] = 1

    assert traced(plain, 1, 64, np.zeros(64)).counters["mean_active_lanes"] == 32
    assert traced(plain, 1, 8, np.zeros(64)).counters["mean_active_lanes"] == 8
    assert traced(plain, 1, 40, np.zeros(64)).counters["mean_active_lanes"] == 20  # 32 and 8


def test_local_memory_is_counted_on_its_own():
    def local(y):
        mine = cuda.local.array(3, np.float32)
        for i in range(3):
            mine[i] = i
        y[cuda.threadIdx.x] = mine[1] + mine[2]

    counters = traced(local, 1, 32, np.zeros(32, np.float32)).counters
    assert counters["local_accesses"] == 32 * (3 + 2)
    assert (counters["local_store_requests"], counters["local_load_requests"]) == (3, 2)
    assert loads(counters) == (0, 0, 0)


# ---- lines and accesses ---------------------------------------------------------------------------------------------


def test_lines_add_up_to_the_whole():
    result = traced(make_tiled(8), (2, 2), (8, 8), *product_inputs(16, 16, 16))
    lines = result.by_line()
    for name in ("global_load_requests", "global_load_sectors", "global_load_bytes", "global_store_bytes", "flop",
                 "shared_load_wavefronts", "shared_store_requests", "barriers", "branches"):  # fmt: skip
        assert sum(line.get(name, 0) for line in lines.values()) == result.counters[name], name


def test_counts_stand_at_the_line_that_caused_them():
    def two(x, y):
        i = cuda.threadIdx.x
        a = x[i]
        b = x[i * 2]
        y[i] = a + b

    first = two.__code__.co_firstlineno
    lines = traced(two, 1, 32, np.zeros(64, np.float32), np.zeros(32, np.float32)).by_line()
    assert lines[first + 2]["global_load_sectors"] == 4
    assert lines[first + 3]["global_load_sectors"] == 8
    assert lines[first + 4]["global_store_sectors"] == 4
    assert lines[first + 4]["flop"] == 32


def test_counters_of_one_allocation():
    def two(x, y, z):
        s, r = cuda.shared.array(64, np.float32), cuda.shared.array(64, np.float32)
        i = cuda.threadIdx.x
        s[i] = x[i]
        r[i * 2] = y[i * 2]
        z[i] = s[i] + r[i * 2]

    arrays = traced(two, 1, 32, np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(32, np.float32)).by_array()
    assert arrays["x"]["global_load_sectors"] == 4
    assert arrays["y"]["global_load_sectors"] == 8
    assert arrays["s"]["shared_load_bank_conflicts"] == 0
    assert arrays["r"]["shared_load_bank_conflicts"] == 1  # stride 2: two words in each even bank


def test_accesses_of_one_warp():
    def reader(x, y):
        i = cuda.grid(1)
        for k in range(3):
            y[i] += x[i * 2 + k]

    line = reader.__code__.co_firstlineno + 3
    result = traced(reader, 2, 64, np.zeros(300, np.float32), np.zeros(128, np.float32))
    accesses = [a for a in result.accesses(line=line, warp=3) if a.array == "x"]
    # Warp 3 is the second warp of block 1: threads 96 to 127, cells 2i, then 2i + 1, then 2i + 2.
    assert len(accesses) == 3
    for k, access in enumerate(accesses):
        assert access.kind == "load" and access.line == line
        assert [tuple(np.atleast_1d(index)) for index in access.indices] == [(2 * i + k,) for i in range(96, 128)]
