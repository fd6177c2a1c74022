"""The exercises of lesson 04: two counts by hand, and the puzzles."""

from __future__ import annotations

from labkit.checks.exercises import Exercise
from labkit.checks.lesson_04_puzzles import PUZZLES

SECTORS_SAVED = Exercise(
    name="sectors_saved",
    task="Return how many times fewer sectors the tiled product loads than the naive one, for a tile of 8, 16 or 32.",
    reference=lambda tile: tile * (32 / tile + tile / 8) / 8,
    cases=[(32,), (16,), (8,)],
    known_wrong=[
        (
            "That is how requests and bytes fall. A request of the naive kernel touches fewer sectors.",
            lambda tile: tile,
        ),
        (
            "A warp covers 32 / tile rows: the naive load of a touches one sector in each of them.",
            lambda tile: tile * (1 + tile / 8) / 8,
        ),
        (
            "Count both loads of each kernel: two requests touch 8 sectors in the tiled one.",
            lambda tile: tile * (32 / tile + tile / 8) / 4,
        ),
        (
            "The tiled kernel loads once for tile steps of the naive one: multiply by the tile.",
            lambda tile: (32 / tile + tile / 8) / 8,
        ),
    ],
    also_right=[lambda tile: 4 + tile**2 / 64, lambda tile: {8: 5, 16: 8, 32: 20}[tile]],
    general_hint="Per step the naive kernel touches 32 / tile sectors of a, tile / 8 of b; per tile, the tiled one 8.",
)

BLOCKS_BY_SHARED = Exercise(
    name="blocks_by_shared",
    task="Return how many blocks of a kernel fit on an SM at once, as far as shared memory and threads allow.",
    reference=lambda sm_bytes, block_bytes, sm_threads, block_threads: min(
        sm_bytes // block_bytes, sm_threads // block_threads
    ),
    cases=[(65536, 2048, 1024, 256), (65536, 20000, 1024, 128), (65536, 32769, 1024, 32), (102400, 9000, 1536, 1024)],
    known_wrong=[
        (
            "The scarcest resource decides: a block needs its bytes and its threads.",
            lambda sm_bytes, block_bytes, sm_threads, block_threads: sm_bytes // block_bytes,
        ),
        (
            "Shared memory is a limit, too: count the blocks whose bytes fit.",
            lambda sm_bytes, block_bytes, sm_threads, block_threads: sm_threads // block_threads,
        ),
        (
            "A block fits as a whole or not at all: round down.",
            lambda sm_bytes, block_bytes, sm_threads, block_threads: min(
                sm_bytes / block_bytes, sm_threads / block_threads
            ),
        ),
    ],
    also_right=[
        lambda sm_bytes, block_bytes, sm_threads, block_threads: int(
            min(sm_bytes / block_bytes, sm_threads / block_threads)
        ),
        lambda sm_bytes, block_bytes, sm_threads, block_threads: sum(
            n * block_bytes <= sm_bytes and n * block_threads <= sm_threads for n in range(1, 100)
        ),
    ],
)

EXERCISES = (SECTORS_SAVED, BLOCKS_BY_SHARED, *PUZZLES)
