"""What the browser is sent of a trace, worked out by hand for small kernels, and how much of it for large ones."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.errors import InputError
from labkit.lens import MOST_BYTES, pack, to_json
from labkit.lens.packing import MOST_STEPS, MOST_WARPS
from labkit.simt import cuda, trace


@cuda.jit
def gather(x, y):
    i = cuda.grid(1)
    if i < 40:
        y[i] = x[2 * i]


FIRST = gather.py_func.__code__.co_firstlineno
BRANCH, COPY = 3, 4  # lines of the source, counted from 0
ALL = 2**32 - 1


def floats(*shape):
    return np.zeros(shape, np.float32)


@pytest.fixture
def gathered():
    return pack(trace(gather, 2, 32, floats(128), floats(64)))


def rows_of(packed, warp):
    (entry,) = (entry for entry in packed["warps"] if entry["warp"] == warp)
    return [row[1:] for row in entry["steps"]]  # without the time


def kind(packed, name):
    return packed["kinds"].index(name)


def test_steps_of_a_full_warp(gathered):
    x, y = (gathered["arrays"].index(["x", "global", 4, (128,)]), gathered["arrays"].index(["y", "global", 4, (64,)]))
    every, second = (gathered["patterns"].index(tuple(range(0, stop, step))) for stop, step in ((32, 1), (64, 2)))
    assert rows_of(gathered, 0) == [
        [BRANCH, kind(gathered, "branch"), 0, ALL, ALL],
        [COPY, kind(gathered, "load"), 0, ALL, x, 0, second, 8, 0],  # 256 bytes, every second word
        [COPY, kind(gathered, "store"), 0, ALL, y, 0, every, 4, 0],
    ]


def test_steps_of_a_warp_of_which_eight_lanes_pass_the_guard(gathered):
    branch, load, store = rows_of(gathered, 1)
    assert branch[3:] == [ALL, 0b1111_1111]
    (*_, mask, _, base, pattern, sectors, conflicts) = load
    # Lane 0 is thread 32, which reads element 64; lane 7 reads element 78: 60 bytes later, in the second sector.
    assert (mask, base, sectors, conflicts) == (0b1111_1111, 256, 2, 0)
    assert gathered["patterns"][pattern] == (0, 2, 4, 6, 8, 10, 12, 14)
    assert (store[3], store[5], store[7]) == (0b1111_1111, 128, 1)


def test_source_comes_with_the_counters_of_the_whole_launch(gathered):
    keys, texts, counts = zip(*gathered["source"], strict=True)
    assert keys == (FIRST, FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4)
    assert texts[COPY] == "        y[i] = x[2 * i]"
    of_copy = dict(zip(gathered["counters"], counts[COPY], strict=True))
    assert (of_copy["global_load_requests"], of_copy["global_load_sectors"]) == (2, 8 + 2)
    assert (of_copy["global_store_requests"], of_copy["global_store_sectors"]) == (2, 4 + 1)
    assert dict(zip(gathered["counters"], gathered["totals"], strict=True))["divergent_branches"] == 1
    assert counts[2] is None


def test_a_small_launch_is_here_in_full(gathered):
    assert (gathered["sampled"], gathered["hazards"]) == ("", [])
    assert [(entry["block"], entry["threads"]) for entry in gathered["warps"]] == [
        ([0, 0, 0], [0, 31]),
        ([1, 0, 0], [0, 31]),
    ]


def test_a_loop_is_asked_about_only_where_its_lanes_part():
    def rounds(x):
        for _ in range(cuda.threadIdx.x // 16 + 1):
            x[cuda.threadIdx.x] = 0

    packed = pack(trace(rounds, 1, 32, floats(32)))
    store, branch = kind(packed, "store"), kind(packed, "branch")
    # All lanes go in; after a round the upper half goes on; after another the loop ends for all that are left.
    assert [row[1] for row in rows_of(packed, 0)] == [store, branch, store]


def test_an_array_with_gaps_has_no_shape():
    x = floats(64)[::2]
    packed = pack(trace(gather.py_func, 1, 16, x, floats(16)))
    assert ["x", "global", 4, None] in packed["arrays"]


def test_a_large_launch_is_sampled_by_warp_and_says_so():
    packed = pack(trace(gather, 1000, 64, floats(80), floats(64)))
    assert len(packed["warps"]) <= MOST_WARPS
    assert f"{len(packed['warps'])} of 2,000 warps" in packed["sampled"]
    shown = {entry["warp"] for entry in packed["warps"]}
    assert {0, 1, 1998, 1999} <= shown  # the first block and the last
    assert len(shown) == 24  # of the 1,000 blocks of two warps, twelve


def test_the_warps_of_a_hazard_are_among_the_sample():
    def late(x):
        if cuda.grid(1) == 777 * 64 + 40:
            x[-0 + x.size] = 1

    packed = pack(trace(late, 1000, 64, floats(4)))
    assert packed["hazards"][0]["places"][0] is not None
    assert 777 * 2 + 1 in {entry["warp"] for entry in packed["warps"]}


def test_warps_that_ran_one_after_another_are_said_to_be_shown_in_step():
    packed = pack(trace(gather, 2, 32, floats(128), floats(64), schedule="interleaved"))
    assert "here each block runs in step" in packed["sampled"]


def test_the_student_may_choose_the_warps():
    result = trace(gather, 1000, 64, floats(80), floats(64))
    assert [entry["warp"] for entry in pack(result, [1234, 5])["warps"]] == [5, 1234]


@pytest.fixture(scope="module")
def scattered():
    """A launch of which no two requests look alike, and there are 64,000."""

    def scatter(x, y):
        i = cuda.grid(1)
        place = i * 7919 + 1
        for _ in range(1000):
            place = (place * 48271) % 2147483647
            y[i] += x[place % x.size]

    return trace(scatter, 1, 64, np.zeros(9_000_000, np.int8), np.zeros(64, np.int64))


def test_never_more_than_two_megabytes_are_sent(scattered):
    packed = pack(scattered)
    size = len(to_json(packed).encode())
    assert size <= MOST_BYTES == 2_000_000
    assert size > 300_000  # it is not cut short without need
    assert "only the first steps" in packed["sampled"]


def test_the_limit_on_bytes_holds_where_steps_are_not_limited(scattered, monkeypatch):
    monkeypatch.setattr("labkit.lens.packing.MOST_STEPS", 10**9)
    monkeypatch.setattr("labkit.lens.packing.MOST_STEPS_OF_A_WARP", 10**9)
    monkeypatch.setattr("labkit.lens.packing.MOST_BYTES", 500_000)
    packed = pack(scattered)
    assert 250_000 < len(to_json(packed).encode()) <= 500_000
    assert sum(len(entry["steps"]) for entry in packed["warps"]) < MOST_STEPS
    assert packed["sampled"]


@pytest.mark.parametrize("warps", [[], [2], [-1], [0.5], [True]])
def test_warps_that_are_not_there_are_refused(warps):
    with pytest.raises(InputError):
        pack(trace(gather, 2, 32, floats(128), floats(64)), warps)


def test_what_is_no_trace_is_refused():
    with pytest.raises(InputError, match="no trace"):
        pack(gather)


def test_a_launch_that_was_not_run_has_its_source_and_its_hazard():
    packed = pack(trace(gather, 1, 2048, floats(128), floats(64)))
    assert packed["warps"] == []
    assert [hazard["kind"] for hazard in packed["hazards"]] == ["launch limits"]
    assert len(packed["source"]) == 5


# --- where hazards are --------------------------------------------------------------------------------------------


def hazard_of(kernel, *arguments, block=32, **options):
    packed = pack(trace(kernel, 1, block, *arguments, **options))
    (hazard,) = packed["hazards"]
    return packed, hazard


def test_a_missing_second_barrier_is_shown_across_the_rounds():
    def rounds(x, y):
        cells = cuda.shared.array(32, np.float32)
        i = cuda.threadIdx.x
        for _ in range(3):
            cells[i] = x[i]
            cuda.syncthreads()
            y[i] = cells[31 - i]

    packed, hazard = hazard_of(rounds, floats(32), floats(32))
    # A round: load x, store cells, barrier, load cells, store y. The store of round 1 overtakes the load of round 0.
    (warp, step, lane), (other_warp, other_step, other_lane) = hazard["places"]
    assert (warp, step, other_warp, other_step) == (0, 6, 0, 3)
    assert lane == 31 - other_lane
    first = rounds.__code__.co_firstlineno
    assert hazard["lines"] == [first + 4, first + 6]
    assert [packed["warps"][0]["steps"][n][2] for n in (6, 3)] == [kind(packed, "store"), kind(packed, "load")]


def test_a_missing_first_barrier_is_shown_between_two_warps():
    def exchange(x, y):
        cells = cuda.shared.array(64, np.float32)
        i = cuda.threadIdx.x
        cells[i] = x[i]
        y[i] = cells[63 - i]

    _, hazard = hazard_of(exchange, floats(64), floats(64), block=64)
    (warp, step, lane), (other_warp, other_step, other_lane) = hazard["places"]
    assert (step, other_step) == (2, 1)  # load x, store cells, load cells
    assert (warp * 32 + lane) + (other_warp * 32 + other_lane) == 63


def test_rounds_that_a_barrier_parts_are_passed_over():
    def last_without(x, y):
        cells = cuda.shared.array(32, np.float32)
        i = cuda.threadIdx.x
        for k in range(3):
            cells[i] = x[i]
            if k < 2:
                cuda.syncthreads()
            y[i] = cells[31 - i]
            cuda.syncthreads()

    packed, hazard = hazard_of(last_without, floats(32), floats(32))
    (warp, step, _), (_, other_step, _) = hazard["places"]
    rows = packed["warps"][warp]["steps"]
    store, load = kind(packed, "store"), kind(packed, "load")
    assert [(rows[n][2], rows[n][3]) for n in (other_step, step)] == [(store, 2), (load, 2)]  # both of round 2


def test_the_earlier_access_is_the_last_one_before():
    def written_twice(x, y):
        cells = cuda.shared.array(32, np.float32)
        i = cuda.threadIdx.x
        for _ in range(2):
            cells[i] = x[i]
        y[i] = cells[31 - i]

    _, hazard = hazard_of(written_twice, floats(32), floats(32))
    assert [step for _, step, _ in hazard["places"]] == [4, 3]  # load, store, load, store, load


def test_an_index_out_of_bounds_is_shown_at_the_lanes_that_have_it():
    def beyond(x):
        x[cuda.threadIdx.x + 1] = 0

    packed, hazard = hazard_of(beyond, floats(32))
    assert hazard["places"] == [[0, 0, 31], None]
    assert rows_of(packed, 0)[0][1:4] == [kind(packed, "out_of_bounds"), 0, 1 << 31]


def test_a_barrier_for_a_few_is_shown():
    def some(x):
        if cuda.threadIdx.x < 4:
            cuda.syncthreads()

    packed, hazard = hazard_of(some, floats(1))
    warp, step, lane = hazard["places"][0]
    assert packed["warps"][warp]["steps"][step][2] == kind(packed, "divergent_barrier")
    assert lane < 4
