"""The puzzles of lesson 04: eight kernels to write, each on awkward sizes, with a budget."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from labkit.checks.puzzles import Launch, Limit, Puzzle

FLOAT_BYTES = 4
UNTOUCHED = -777.0  # what outputs hold before a launch
MOST_SECTORS = 5  # of 32 neighbouring float32: four, or five where they do not start at a sector

LOADS = ("global_load_bytes",)
STORES = ("global_store_bytes",)
CONFLICTS = ("shared_load_bank_conflicts", "shared_store_bank_conflicts")


def _whole(seed: int, *shape: int) -> np.ndarray:
    """Return whole numbers as float32: sums of them are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


def _untouched(*shape: int) -> np.ndarray:
    return np.full(shape, UNTOUCHED, np.float32)


def _loads(most: Callable[[Launch], float], advice: str) -> Limit:
    return Limit("values loaded from global memory", LOADS, most, advice, unit=FLOAT_BYTES)


def _stores(most: Callable[[Launch], float], advice: str) -> Limit:
    return Limit("values stored to global memory", STORES, most, advice, unit=FLOAT_BYTES)


def _size(name: str) -> Callable[[Launch], float]:
    return lambda launch: launch.arguments[name].size


def _blocks(launch: Launch) -> int:
    return math.prod(launch.grid)


def _rows_of_sectors(name: str) -> Callable[[Launch], float]:
    """Return the most sectors that whole warps along the rows of a matrix touch, once each."""

    def most(launch: Launch) -> float:
        rows, columns = launch.arguments[name].shape
        return MOST_SECTORS * rows * math.ceil(columns / 32)

    return most


# --- guarded map -----------------------------------------------------------------------------------------------------


def _map_launch(n: int) -> Launch:
    return Launch((n // 32 + 1,), (32,), {"x": _whole(n, n), "out": _untouched(n)})


GUARDED_MAP = Puzzle(
    name="guarded_map",
    task="Store x[i] + 10 in out[i] for every element; there are more threads than elements.",
    reference=lambda x: x + 10,
    launches=[_map_launch(n) for n in (100, 1, 31, 32, 33)],
    budget="1 load and 1 store per output, no hazard",
    limits=[
        _loads(_size("out"), "One load per output is enough: keep a value that you need twice."),
        _stores(_size("out"), "One store per output is enough: finish the value first."),
    ],
    symptoms=[
        (
            "Only the first block did its work: a thread's place in the grid is cuda.grid(1), not threadIdx.x.",
            lambda got, expected, a: len(got) > 32 and np.array_equal(got[:32], expected[:32]) and _kept(got[32:]),
        ),
        ("The last element is missing: the guard is i < out.size.", lambda got, expected, a: _only_last_is_kept(got)),
    ],
)


def _kept(part: np.ndarray) -> bool:
    return bool((part == np.float32(UNTOUCHED)).all())


def _only_last_is_kept(got: np.ndarray) -> bool:
    return _kept(got[-1:]) and not (got[:-1] == np.float32(UNTOUCHED)).any()


# --- 2-D map ---------------------------------------------------------------------------------------------------------


def _map_2d(a: np.ndarray) -> np.ndarray:
    rows, columns = np.indices(a.shape)
    return a + 100 * rows + columns


def _map_2d_launch(rows: int, columns: int) -> Launch:
    grid = (columns // 32 + 1, rows // 4 + 1)
    return Launch(grid, (32, 4), {"a": _whole(rows, rows, columns), "out": _untouched(rows, columns)})


MAP_2D = Puzzle(
    name="map_2d",
    task="Store a[row, col] + 100 * row + col in out[row, col]; the grid's x counts columns, its y rows.",
    reference=_map_2d,
    launches=[_map_2d_launch(*shape) for shape in ((5, 40), (1, 1), (4, 32), (7, 3), (33, 33))],
    budget="1 load and 1 store per output, at most 5 sectors for 32 neighbours, no hazard",
    limits=[
        _loads(_size("out"), "One load per output is enough."),
        _stores(_size("out"), "One store per output is enough."),
        Limit(
            "sectors loaded",
            ("global_load_sectors",),
            _rows_of_sectors("a"),
            "Let each lane do one element, with x as the column: then the lanes of a warp read neighbours.",
        ),
    ],
    symptoms=[
        (
            "Rows and columns are swapped: out[row, col] needs 100 * row + col.",
            lambda got, expected, a: np.array_equal(
                got, a["a"] + np.indices(got.shape)[0] + 100 * np.indices(got.shape)[1]
            ),
        ),
        (
            "Elements are missing: cuda.grid(2) gives the column first, a.shape the rows. Do names and guards fit?",
            lambda got, expected, a: _kept(got[got != expected]) and not _kept(got),
        ),
    ],
)


# --- stride fix ------------------------------------------------------------------------------------------------------


def _stride_launch(n: int) -> Launch:
    return Launch((2,), (64,), {"x": _whole(n, n), "out": _untouched(n)})


STRIDE_FIX = Puzzle(
    name="stride_fix",
    task="Store 2 * x[i] in out[i] with fewer threads than elements, so that neighbours in a warp touch neighbours.",
    reference=lambda x: 2 * x,
    launches=[_stride_launch(n) for n in (1000, 1, 127, 128, 129)],
    budget="1 load and 1 store per output, at most 4 sectors for 32 elements, no hazard",
    limits=[
        _loads(_size("out"), "One load per output is enough: does each element belong to one thread?"),
        _stores(_size("out"), "One store per output is enough: does each element belong to one thread?"),
        Limit(
            "sectors loaded",
            ("global_load_sectors",),
            lambda launch: 4 * math.ceil(launch.arguments["x"].size / 32),
            "In each turn of the loop, thread i + 1 must read the element after that of thread i.",
        ),
    ],
    symptoms=[
        (
            "Only the first elements were done: each thread goes on, a whole grid of threads further each time.",
            lambda got, expected, a: len(got) > 128 and np.array_equal(got[:128], expected[:128]) and _kept(got[128:]),
        ),
    ],
    general_hint="Write down which elements thread 0 and thread 1 store. Each element needs exactly one thread.",
)


# --- stencil ---------------------------------------------------------------------------------------------------------


def _stencil(x: np.ndarray) -> np.ndarray:
    wide = np.pad(x, 1)
    return wide[:-2] + wide[1:-1] + wide[2:]


def _stencil_launch(n: int) -> Launch:
    return Launch((math.ceil(n / 64),), (64,), {"x": _whole(n, n), "out": _untouched(n)})


def _differs_only_at_ends_of_blocks(got: np.ndarray, expected: np.ndarray) -> bool:
    places = np.flatnonzero(got != expected)
    return len(got) > 64 and set(places % 64) <= {0, 63}


STENCIL = Puzzle(
    name="stencil",
    task="Store x[i-1] + x[i] + x[i+1] in out[i], where what lies outside of x counts as 0.",
    reference=_stencil,
    launches=[_stencil_launch(n) for n in (200, 1, 63, 64, 65)],
    budget="each block loads its 64 elements and one more at each end, 1 store per output, no hazard",
    limits=[
        _loads(
            lambda launch: launch.arguments["x"].size + 2 * _blocks(launch),
            "Load each element once into shared memory, and read the neighbours from there.",
        ),
        _stores(_size("out"), "One store per output is enough."),
    ],
    symptoms=[
        (
            "Only elements at the ends of a block are wrong: they need a neighbour from the next block, the halo.",
            lambda got, expected, a: _differs_only_at_ends_of_blocks(got, expected),
        ),
        (
            "Everything is one place off: with a halo, thread t's own element stands at t + 1.",
            lambda got, expected, a: len(got) > 62 and np.array_equal(got[1:62], expected[:61]),
        ),
        (
            "Everything is one place off: with a halo, thread t's own element stands at t + 1.",
            lambda got, expected, a: len(got) > 62 and np.array_equal(got[:61], expected[1:62]),
        ),
    ],
)


# --- tiled matmul ----------------------------------------------------------------------------------------------------


def _matmul_launch(m: int, k: int, n: int) -> Launch:
    arguments = {"a": _whole(m, m, k), "b": _whole(n, k, n), "out": _untouched(m, n)}
    return Launch((math.ceil(n / 8), math.ceil(m / 8)), (8, 8), arguments)


def _tile_loads(launch: Launch) -> float:
    columns, rows = launch.grid
    return launch.arguments["a"].size * columns + launch.arguments["b"].size * rows


TILED_MATMUL = Puzzle(
    name="tiled_matmul",
    task="Store the product of a and b in out with tiles of 8×8, for shapes that are no multiple of the tile.",
    reference=lambda a, b: a @ b,
    launches=[_matmul_launch(*shape) for shape in ((9, 6, 11), (1, 1, 1), (8, 8, 8), (5, 17, 3), (17, 9, 8))],
    budget="each block loads each element of its rows and columns once, 1 store per output, no hazard",
    limits=[
        _loads(_tile_loads, "Each thread loads one element of each tile; the products read shared memory."),
        _stores(_size("out"), "Add up in a variable of the thread, and store it once at the end."),
    ],
    symptoms=[
        (
            "Only the last tile was counted: add up over all tiles, and start at 0 once, before the loop.",
            lambda got, expected, a: _is_part(got, a, slice((a["a"].shape[1] - 1) // 8 * 8, None)),
        ),
        (
            "Only the first tile was counted: loop over all tiles along the shared side.",
            lambda got, expected, a: _is_part(got, a, slice(0, 8)),
        ),
        (
            "The last, ragged tile is missing: round the number of tiles up.",
            lambda got, expected, a: _is_part(got, a, slice(0, a["a"].shape[1] // 8 * 8)),
        ),
    ],
    general_hint="Follow one element: which row of a_tile and which column of b_tile does its thread need?",
)


def _is_part(got: np.ndarray, arguments: dict, along: slice) -> bool:
    """Say whether got is the product over a part of the shared side only."""
    return np.array_equal(got, arguments["a"][:, along] @ arguments["b"][along])


# --- transpose -------------------------------------------------------------------------------------------------------


def _transpose_launch(rows: int, columns: int) -> Launch:
    grid = (math.ceil(columns / 32), math.ceil(rows / 32))
    return Launch(grid, (32, 32), {"a": _whole(rows, rows, columns), "out": _untouched(columns, rows)})


CONFLICT_FREE_TRANSPOSE = Puzzle(
    name="conflict_free_transpose",
    task="Store a[row, col] in out[col, row] with tiles of 32×32, so that loads and stores both touch neighbours.",
    reference=np.transpose,
    launches=[_transpose_launch(*shape) for shape in ((33, 50), (1, 1), (32, 32), (1, 40), (65, 2))],
    budget="1 load and 1 store per output, at most 5 sectors for 32 neighbours, 0 bank conflicts, no hazard",
    limits=[
        _loads(_size("out"), "One load per output is enough."),
        _stores(_size("out"), "One store per output is enough."),
        Limit(
            "sectors loaded",
            ("global_load_sectors",),
            _rows_of_sectors("a"),
            "Load along a row of a: the lanes of a warp differ in x.",
        ),
        Limit(
            "sectors stored",
            ("global_store_sectors",),
            _rows_of_sectors("out"),
            "Go through a tile in shared memory: then x can run along a row of out, too.",
        ),
        Limit(
            "bank conflicts",
            CONFLICTS,
            lambda launch: 0,
            "In rows of 32 a column lies in one bank, and any even length shares some. Use 33, in the index, too.",
        ),
    ],
    symptoms=[
        (
            "Inside a tile nothing was turned: store tile[x, y], not tile[y, x].",
            lambda got, expected, a: np.array_equal(got[:32, :32], a["a"][:32, :32]),
        ),
    ],
    general_hint="A tile moves and turns: its blockIdx.x and blockIdx.y swap places, and so do the indices inside.",
)


# --- block sum -------------------------------------------------------------------------------------------------------


def _sum_by_block(x: np.ndarray) -> np.ndarray:
    blocks = math.ceil(x.size / 128)
    return np.pad(x, (0, blocks * 128 - x.size)).reshape(blocks, 128).sum(1)


def _sum_launch(n: int) -> Launch:
    blocks = math.ceil(n / 128)
    return Launch((blocks,), (128,), {"x": _whole(n, n) + np.float32(10), "out": _untouched(blocks)})


BLOCK_SUM = Puzzle(
    name="block_sum",
    task="Store the sum of each block's 128 elements in out[block]; the last block may have fewer.",
    reference=_sum_by_block,
    launches=[_sum_launch(n) for n in (1000, 1, 127, 128, 129)],
    budget="1 load per element, 1 store and at most 32 shared load requests per block, 0 bank conflicts, no hazard",
    limits=[
        _loads(_size("x"), "Each thread loads its own element, once."),
        _stores(_size("out"), "One thread stores, when the sum is complete."),
        Limit(
            "bank conflicts",
            CONFLICTS,
            lambda launch: 0,
            "Let neighbouring threads read neighbouring places: thread t adds the place t + step.",
        ),
        Limit(
            "shared load requests",
            ("shared_load_requests",),
            lambda launch: 32 * _blocks(launch),
            "Halve the number of working threads in each round, and keep those that work side by side.",
        ),
    ],
    symptoms=[
        (
            "Only one element of each block arrived: the other threads' elements must be added to it.",
            lambda got, expected, a: np.array_equal(got, a["x"][::128]),
        ),
    ],
    general_hint="Follow the rounds for a block of four threads on paper: which places are added in which round?",
)


# --- histogram -------------------------------------------------------------------------------------------------------


def _histogram_launch(n: int, high: int) -> Launch:
    x = np.random.default_rng(n).integers(0, high, n).astype(np.int32)
    return Launch((math.ceil(n / 128),), (128,), {"x": x, "out": np.zeros(16, np.int32)})


HISTOGRAM = Puzzle(
    name="histogram",
    task="Add to out[b] how many elements of x equal b, for the 16 values b; out starts at zero.",
    reference=lambda x: np.bincount(x, minlength=16).astype(np.int32),
    launches=[_histogram_launch(n, high) for n, high in ((300, 16), (1, 16), (127, 16), (128, 1), (513, 5))],
    budget="1 load per element, at most 16 atomics on out per block, no hazard",
    limits=[
        _loads(_size("x"), "Each thread loads its own element, once."),
        Limit(
            "atomics on out",
            ("atomics",),
            lambda launch: 16 * _blocks(launch),
            "Count in shared memory first; then one thread per value adds the block's count to out.",
            array="out",
        ),
    ],
    symptoms=[
        (
            "Counts were lost: two threads (or blocks) read the same count and both stored a sum. Use cuda.atomic.add.",
            lambda got, expected, a: bool((got <= expected).all() and got.sum() < expected.sum()),
        ),
        (
            "Something was counted more than once: only threads with an element count, and each count is added once.",
            lambda got, expected, a: bool((got >= expected).all()),
        ),
    ],
)


PUZZLES = (
    GUARDED_MAP,
    MAP_2D,
    STRIDE_FIX,
    STENCIL,
    TILED_MATMUL,
    CONFLICT_FREE_TRANSPOSE,
    BLOCK_SUM,
    HISTOGRAM,
)
