"""Every hazard is found, in every run and under both schedules, and no near miss is accused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from labkit.simt import KernelError, cuda, trace

from .corpus import CASES
from .hazardous import SUSPECTS, Suspect

GUILTY = [suspect for suspect in SUSPECTS if suspect.guilty]
INNOCENT = [suspect for suspect in SUSPECTS if not suspect.guilty]
RAISED_BY_A_LAUNCH = ("out_of_bounds", "divergent_barrier", "launch_limits")
SCHEDULES = ("lockstep", "interleaved")


def _name(suspect: Suspect) -> str:
    return suspect.kernel.__name__


def _trace(suspect: Suspect, **options):
    return trace(cuda.jit(suspect.kernel), suspect.grid, suspect.block, *suspect.fresh(), **options)


def test_at_least_five_kernels_and_five_near_misses_for_every_kind():
    for guilty in (True, False):
        counts = Counter((s.kind, s.scope) for s in SUSPECTS if s.guilty == guilty)
        assert min(counts.values()) >= 5 and len(counts) == 7, counts


# C07-04
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("suspect", GUILTY, ids=_name)
def test_hazard_is_found(suspect, schedule):
    found = _trace(suspect, schedule=schedule).hazards
    matching = [h for h in found if h.kind == suspect.kind and (suspect.scope is None or h.scope == suspect.scope)]
    assert matching, found
    if suspect.line is not None:  # of two unordered accesses either may come first, so either may be the one reported
        assert any(suspect.line == h.line or f"line {suspect.line}" in h.message for h in matching), matching


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("suspect", INNOCENT, ids=_name)
def test_near_miss_is_not_accused(suspect, schedule):
    assert _trace(suspect, schedule=schedule).hazards == ()


@pytest.mark.parametrize("suspect", GUILTY, ids=_name)
def test_only_what_a_gpu_would_not_survive_raises_at_launch(suspect):
    launch = cuda.jit(suspect.kernel)[suspect.grid, suspect.block]
    if suspect.kind in RAISED_BY_A_LAUNCH:
        with pytest.raises(KernelError) as caught:
            launch(*suspect.fresh())
        assert "line" in str(caught.value)
    else:
        launch(*suspect.fresh())


@pytest.mark.parametrize("suspect", INNOCENT, ids=_name)
def test_near_miss_can_be_launched(suspect):
    cuda.jit(suspect.kernel)[suspect.grid, suspect.block](*suspect.fresh())


@pytest.mark.parametrize("name", sorted(CASES))
def test_corpus_has_no_hazards(name):
    case = CASES[name]
    for schedule in SCHEDULES:
        options = {"shared_bytes": case.shared_bytes} if case.shared_bytes else {}
        traced = trace(cuda.jit(case.kernel), case.grid, case.block, *case.arguments(), schedule=schedule, **options)
        assert traced.hazards == ()


# ---- what a hazard says ---------------------------------------------------------------------------------------------


def mirrored(x, y):
    s = cuda.shared.array(8, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    y[t] = s[7 - t]


def test_race_message_names_both_threads_lines_array_and_index():
    x = np.arange(8)
    (hazard,) = trace(cuda.jit(mirrored), 1, 8, x, np.zeros_like(x)).hazards
    first = mirrored.__code__.co_firstlineno
    assert (hazard.kind, hazard.scope, hazard.line, hazard.count) == ("race", "warp", first + 4, 8)
    message = str(hazard.message)
    # Some thread t reads cell 7 - t, which thread 7 - t wrote on line 4 of the function.
    reader = hazard.thread[0]
    assert f"line {first + 4}" in message and f"line {first + 3}" in message
    assert "`s`" in message or " s[" in message
    assert str(reader) in message and str(7 - reader) in message
    assert tuple(hazard.block) == (0, 0, 0)


def test_out_of_bounds_message_names_array_index_and_size():
    def reader(x, y):
        t = cuda.threadIdx.x
        y[t] = x[t + 3]

    x = np.arange(8)
    y = np.zeros(8, np.int64)
    (hazard,) = trace(cuda.jit(reader), 1, 8, x, y).hazards
    assert hazard.kind == "out_of_bounds" and hazard.count == 3  # threads 5, 6, 7 read cells 8, 9, 10
    assert hazard.line == reader.__code__.co_firstlineno + 2
    message = hazard.message
    assert "x" in message and "8" in message and str(hazard.thread[0]) in message
    np.testing.assert_array_equal(y[:5], x[3:])


def test_out_of_bounds_store_is_dropped_and_the_trace_goes_on():
    def writer(y):
        t = cuda.threadIdx.x
        y[t + 1] = t
        y[0] = 99 if t == 0 else y[0]

    y = np.zeros(4, np.int64)
    trace(cuda.jit(writer), 1, 4, y)
    np.testing.assert_array_equal(y[1:], [0, 1, 2])


def test_hazards_come_one_per_pair_of_lines_with_a_count():
    def racy(y):
        s = cuda.shared.array(32, np.int64)
        t = cuda.threadIdx.x
        s[t] = t
        for _ in range(5):
            y[t] += s[t ^ 1]

    hazards = trace(cuda.jit(racy), 3, 32, np.zeros(32, np.int64)).hazards
    shared = [h for h in hazards if h.kind == "race" and h.scope == "warp"]
    assert len(shared) == 1
    assert shared[0].count >= 3 * 32


def test_trace_releases_a_divergent_barrier_and_goes_on():
    y = np.zeros(32, np.int64)

    def stuck(y):
        t = cuda.threadIdx.x
        if t < 16:
            cuda.syncthreads()
            y[t] = 1
        else:
            y[t] = 2

    traced = trace(cuda.jit(stuck), 1, 32, y)
    assert [h.kind for h in traced.hazards] == ["divergent_barrier"]
    np.testing.assert_array_equal(y, [1] * 16 + [2] * 16)


def test_notes_for_what_is_legal_but_worth_knowing():
    def returned(y):
        t = cuda.threadIdx.x
        if t >= 20:
            return
        cuda.syncthreads()
        y[t] = 1

    def same(y):
        y[0] = 5

    def negative(x, y):
        y[cuda.threadIdx.x] = x[-1]

    early = trace(cuda.jit(returned), 1, 32, np.zeros(20, np.int64))
    assert early.hazards == () and any("return" in str(note) for note in early.notes)
    equal = trace(cuda.jit(same), 1, 32, np.zeros(1, np.int64))
    assert equal.hazards == () and any("same value" in str(note) for note in equal.notes)
    wrapped = trace(cuda.jit(negative), 1, 4, np.arange(4), np.zeros(4, np.int64))
    assert wrapped.hazards == () and any("negative" in str(note) for note in wrapped.notes)
    clean = trace(cuda.jit(CASES["vector_add"].kernel), 3, 32, *CASES["vector_add"].arguments())
    assert not clean.notes


# ---- the tiled product ----------------------------------------------------------------------------------------------


def make_tiled(tile, first_barrier=True, second_barrier=True):
    """The tiled product, with either barrier taken out on request."""

    def tiled(a, b, c):
        left = cuda.shared.array((tile, tile), np.float32)
        right = cuda.shared.array((tile, tile), np.float32)
        column, row = cuda.grid(2)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        total = np.float32(0)
        for step in range((a.shape[1] + tile - 1) // tile):
            k = step * tile
            left[ty, tx] = a[row, k + tx] if row < a.shape[0] and k + tx < a.shape[1] else np.float32(0)
            right[ty, tx] = b[k + ty, column] if k + ty < b.shape[0] and column < b.shape[1] else np.float32(0)
            if first_barrier:
                cuda.syncthreads()
            for i in range(tile):
                total += left[ty, i] * right[i, tx]
            if second_barrier:
                cuda.syncthreads()
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = total

    return tiled


def product_inputs(m, k, n, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, (m, k)).astype(np.float32), rng.uniform(-1, 1, (k, n)).astype(np.float32)
    return a, b, np.zeros((m, n), np.float32)


@pytest.mark.parametrize("tile", [4, 8, 16])
@pytest.mark.parametrize("shape", [(8, 8, 8), (5, 7, 3), (4, 12, 4), (1, 1, 1), (9, 6, 11), (64, 64, 64)])
def test_tiled_product_equals_numpy(tile, shape):
    m, k, n = shape
    a, b, c = product_inputs(*shape)
    grid = (-(-n // tile), -(-m // tile))
    cuda.jit(make_tiled(tile))[grid, (tile, tile)](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)
    traced_c = np.zeros_like(c)
    traced = trace(cuda.jit(make_tiled(tile)), grid, (tile, tile), a, b, traced_c)
    assert traced.hazards == ()
    np.testing.assert_array_equal(traced_c, c)


@pytest.mark.parametrize("missing", ["first", "second"])
@pytest.mark.parametrize("tile", [4, 8, 16])
def test_tiled_product_without_a_barrier_is_reported_in_every_run(tile, missing):
    kernel = cuda.jit(make_tiled(tile, first_barrier=missing != "first", second_barrier=missing != "second"))
    seeds = range(10 if tile < 16 else 3)
    for options in [{"schedule": "lockstep"}] + [{"schedule": "interleaved", "seed": seed} for seed in seeds]:
        a, b, c = product_inputs(2 * tile, 2 * tile, tile)
        traced = trace(kernel, (1, 2), (tile, tile), a, b, c, **options)
        races = [h for h in traced.hazards if h.kind == "race"]
        assert races, options
        # With the first barrier gone a tile is read before it is complete, with the second it is refilled too early.
        assert all(h.array in ("left", "right") for h in races)


def test_interleaved_schedule_shows_a_wrong_answer_where_lockstep_shows_none():
    """Two warps, no barrier: in step the sum is right by luck; one warp after another reads what is not there yet."""
    kernel = cuda.jit(make_tiled(16, first_barrier=False))
    a, b, c = product_inputs(16, 48, 16)
    trace(kernel, 1, (16, 16), a, b, c)
    np.testing.assert_allclose(c, a @ b, atol=1e-4)
    answers = set()
    for seed in range(4):
        wrong = np.zeros_like(c)
        trace(kernel, 1, (16, 16), a, b, wrong, schedule="interleaved", seed=seed)
        assert not np.allclose(wrong, a @ b, atol=1e-4)
        answers.add(wrong.tobytes())
    assert len(answers) > 1
