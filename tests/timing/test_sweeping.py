import gc
import math
import weakref

import numpy as np
import pytest
import torch
from scripted import ScriptedClock, ScriptedGpu

from labkit import devices
from labkit.errors import DeviceError, InputError
from labkit.measurement import Sweep
from labkit.timing import sweep
from labkit.units import format_bytes


@pytest.fixture(autouse=True)
def profile(monkeypatch):
    monkeypatch.setenv("LABKIT_PROFILE", "quick")


@pytest.fixture
def clock():
    return ScriptedClock()


def linear(clock):
    """Return a make whose function takes n milliseconds."""
    return lambda n, device: clock.job(n * 1e-3)


def swept(make, values, clock, **options):
    return sweep(make, values, **{"device": "cpu", "clock": clock, "progress": False} | options)


# --- what is measured --------------------------------------------------------------------------------------------


def test_every_value_is_measured_once_and_stands_in_rising_order(clock):
    made = []

    def make(n, device):
        made.append((n, device))
        return clock.job(n * 1e-3)

    found = swept(make, [4, 1, 3, 2], clock, label="add", parameter="size")
    assert (found.label, found.parameter, found.complete) == ("add", "size", True)
    assert found.values == (1, 2, 3, 4)
    assert found.medians_s == pytest.approx([0.001, 0.002, 0.003, 0.004])
    assert sorted(made) == [(n, "cpu") for n in (1, 2, 3, 4)]
    assert [str(m.task) for m in found.measurements] == [f"add size={n}" for n in (1, 2, 3, 4)]


# C02-09
def test_values_are_visited_in_a_shuffled_order_that_the_seed_repeats(clock):
    def order(seed):
        made = []
        swept(lambda n, device: (made.append(n), clock.job(1e-3))[1], range(1, 11), clock, seed=seed)
        return made

    assert order(0) == order(0)
    assert order(0) != order(1)
    assert all(order(seed) != sorted(order(seed)) for seed in range(3))


def test_the_work_is_a_function_of_the_value(clock):
    found = swept(linear(clock), [1, 2], clock, flop=lambda n: 2 * n**3, bytes_moved=lambda n: 8 * n)
    assert [(m.task.flop, m.task.bytes_moved) for m in found.measurements] == [(2, 8), (16, 16)]


def test_a_sweep_over_threads_measures_on_each(clock):
    seen, before = [], torch.get_num_threads()

    def make(n, device):
        return lambda: (seen.append((n, torch.get_num_threads())), clock.work(0.01))[1]

    found = swept(make, [1, 2, 3], clock, parameter="threads", threads=lambda n: n)
    assert set(seen) == {(1, 1), (2, 2), (3, 3)}
    assert [m.threads for m in found.measurements] == [1, 2, 3]
    assert torch.get_num_threads() == before


def test_options_are_those_of_measure_and_other_parameters_are_kept(clock):
    found = swept(linear(clock), [2], clock, threads=1, calls_per_sample=3, dtype="int8", parameters={"batch": 7})
    (only,) = found.measurements
    assert (only.threads, only.calls_per_sample, only.dtype) == (1, 3, "int8")
    assert only.task.parameters == {"batch": 7, "n": 2}


def test_the_device_is_handed_to_the_maker(monkeypatch, clock):
    gpu, handed = ScriptedGpu(clock), []
    device = gpu.install(monkeypatch)
    make = lambda n, name: (handed.append(name), gpu.job(n * 1e-3))[1]  # noqa: E731
    found = swept(make, [1, 2], clock, device=device)
    assert handed == ["cuda:0", "cuda:0"]
    assert found.medians_s == pytest.approx([0.001, 0.002], rel=0.02)


def test_values_from_numpy_become_plain_numbers(clock, tmp_path):
    found = swept(linear(clock), np.logspace(0, 2, 3).astype(int), clock)
    assert found.values == (1, 10, 100)
    assert [type(value) for value in found.values] == [int] * 3
    assert Sweep.load(found.save(tmp_path / "a.json")) == found


def test_a_progress_bar_is_shown_and_can_be_turned_off(clock, capsys):
    swept(linear(clock), [1, 2], clock, label="add", progress=True)
    shown = capsys.readouterr().err
    assert "add" in shown and "/2" in shown
    swept(linear(clock), [1, 2], clock, label="add", progress=False)
    assert capsys.readouterr() == ("", "")


# --- out of memory -----------------------------------------------------------------------------------------------

NO_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
    torch.cuda.OutOfMemoryError("CUDA out of memory."),
    MemoryError(),
    MemoryError("Unable to allocate 7.28 TiB for an array"),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 400000000000000 bytes. Error code 12 (Cannot allocate memory)"
    ),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 4000 bytes."),
    RuntimeError("MPS backend out of memory (MPS allocated: 9.00 GB, other allocations: 100 MB)"),
    RuntimeError("Invalid buffer size: 19.45 GB"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
]
OTHER_ERRORS = [ValueError("bad"), RuntimeError("mat1 and mat2 shapes cannot be multiplied"), DeviceError("a", "b")]


class Held:
    """Something large; circular things go only when the collector comes."""

    alive = weakref.WeakSet()

    def __init__(self, circular=False):
        self.itself = self if circular else None
        Held.alive.add(self)


def failing(clock, error, *, at, while_making=False, circular=False):
    """Return a make that fails at one value, deep inside, with Held objects in every frame, and a log of who lived."""
    alive_at = {}
    Held.alive.clear()

    def fail(depth, held):
        if depth:
            return fail(depth - 1, Held(circular))
        alive_at["raise"] = len(Held.alive)
        raise type(error)(*error.args)  # anew: an error that somebody keeps keeps its frames alive

    def make(n, device):
        alive_at[n] = len(Held.alive)
        held = Held(circular) if n == at else None
        if n == at and while_making:
            fail(3, Held(circular))
        return lambda: (fail(3, Held(circular)) if n == at else None, clock.work(1e-3), held)[1]

    return make, alive_at


# C04-01
@pytest.mark.parametrize("error", NO_MEMORY, ids=lambda error: f"{type(error).__name__}-{str(error)[:12]}")
@pytest.mark.parametrize("while_making", [True, False])
def test_a_point_without_memory_is_kept_as_such_and_the_others_go_on(clock, error, while_making):
    make, _ = failing(clock, error, at=2, while_making=while_making)
    found = swept(make, [1, 2, 3, 4], clock)
    assert found.values == (1, 3, 4)
    assert found.complete
    (point,) = found.out_of_memory
    assert point.value == 2
    assert point.detail and point.detail in (str(error)[:120], "MemoryError")
    assert "n=2: out of memory" in repr(found)


# C04-01
@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("while_making", [True, False])
@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), MemoryError()], ids=repr)
def test_what_the_failed_point_held_is_gone_before_the_next_is_made(clock, error, while_making, circular):
    values = [1, 2, 3, 4, 5]
    for at in values:  # whichever place the shuffled order gives to it
        make, alive_at = failing(clock, error, at=at, while_making=while_making, circular=circular)
        swept(make, values, clock)
        assert alive_at.pop("raise") == 5
        assert set(alive_at.values()) == {0}
        assert not Held.alive


def test_a_gpu_s_cached_memory_is_given_back(monkeypatch, clock):
    gpu, emptied = ScriptedGpu(clock), []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(len(Held.alive)))
    make, _ = failing(clock, torch.OutOfMemoryError("CUDA out of memory"), at=2)
    swept(make, [1, 2, 3], clock, device=gpu.install(monkeypatch))
    assert emptied == [0]


# C04-01
def test_after_a_sweep_without_memory_the_next_device_still_runs(clock):
    make, _ = failing(clock, MemoryError(), at=2)
    assert swept(make, [2], clock).values == ()
    assert swept(linear(clock), [2], clock).values == (2,)


@pytest.mark.parametrize("error", OTHER_ERRORS, ids=repr)
@pytest.mark.parametrize("while_making", [True, False])
def test_any_other_error_is_not_hidden(clock, error, while_making):
    before = torch.get_num_threads()
    make, _ = failing(clock, error, at=2, while_making=while_making)
    with pytest.raises(type(error)) as caught:
        swept(make, [1, 2, 3], clock, threads=1)
    assert str(caught.value) == str(error)
    assert torch.get_num_threads() == before


def test_a_real_allocation_beyond_the_address_space_is_out_of_memory(clock):
    def make(n, device):
        x = torch.empty(n, dtype=torch.uint8, device=device)
        return lambda: (x[:1] + 1, clock.work(1e-3))[0]

    found = swept(make, [100, 2**50], clock)  # a petabyte
    assert found.values == (100,)
    assert found.out_of_memory[0].value == 2**50


def test_what_needs_more_than_is_free_is_refused_before_anything_is_allocated(monkeypatch, clock):
    monkeypatch.setattr(devices, "free_memory_bytes", lambda device: 1000)
    made = []
    make = lambda n, device: (made.append(n), clock.job(1e-3))[1]  # noqa: E731
    found = swept(make, [100, 800, 950, 10**6], clock, needs_bytes=lambda n: n)
    assert sorted(made) == [100, 800]
    assert found.values == (100, 800)
    assert [point.value for point in found.out_of_memory] == [950, 10**6]  # a tenth of the free memory is left alone
    assert found.out_of_memory[1].detail == "needs 1 MB, 1 kB are free"


def test_a_container_s_limit_counts_as_the_free_memory(monkeypatch, clock):
    limit = devices.cgroups.MemoryLimit(limit_bytes=3 * 10**6, used_bytes=10**6)
    monkeypatch.setattr("labkit.devices.cgroups.memory_limits", lambda *_: [limit])
    found = swept(linear(clock), [1, 3], clock, needs_bytes=lambda n: n * 10**6)
    assert found.values == (1,)
    assert format_bytes(2 * 10**6) in found.out_of_memory[0].detail


# C04-03
def test_two_runs_leave_as_many_objects_as_one(clock):
    class Model(Held):
        def __call__(self):
            clock.work(1e-3)

    def live():
        gc.collect()
        return len(Held.alive)

    Held.alive.clear()
    for circular in (False, True):
        make = lambda n, device, circular=circular: Model(circular)  # noqa: E731
        swept(make, [1, 2, 3], clock)
        after_one = live()
        swept(make, [1, 2, 3], clock)
        assert live() == after_one == 0


# --- interrupts --------------------------------------------------------------------------------------------------


def stopped_at(clock, nth):
    """Return a make whose nth function is interrupted by the stop button."""
    made = []

    def make(n, device):
        made.append(n)

        def fn():
            clock.work(n * 1e-3)
            if len(made) == nth:
                raise KeyboardInterrupt

        return fn

    return make, made


def test_an_interrupt_keeps_the_points_measured_so_far(clock, capsys):
    before = torch.get_num_threads()
    make, made = stopped_at(clock, 3)
    found = swept(make, [1, 2, 3, 4, 5], clock, threads=1)
    assert found.values == tuple(sorted(made[:2]))
    assert not found.complete
    assert "interrupted" in repr(found)
    assert "2 of 5" in capsys.readouterr().out
    assert torch.get_num_threads() == before


def test_an_interrupt_before_the_first_point_is_an_interrupt(clock):
    make, _ = stopped_at(clock, 1)
    with pytest.raises(KeyboardInterrupt):
        swept(make, [1, 2], clock)


# --- nonsense ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("values", []),
        ("values", ()),
        ("values", 5),
        ("values", None),
        ("values", "123"),
        ("n", -1),
        ("n", 0),
        ("n", math.nan),
        ("n", "10"),
        ("n", None),
        ("make", None),
        ("make", 3),
        ("parameter", ""),
        ("parameter", None),
        ("flop", 2e9),
        ("bytes_moved", "8"),
        ("needs_bytes", 10**6),
        ("label", 3),
        ("threads", 0),
        ("min_time_s", -1),
    ],
)
def test_nonsense_is_refused_and_repeated_before_anything_runs(clock, field, bad):
    options = {"make": lambda n, device: lambda: pytest.fail("it ran"), "values": [1]}
    options |= {"values": [1, bad]} if field == "n" else {field: bad}
    with pytest.raises(InputError) as caught:
        swept(clock=clock, **options)
    shown = [] if bad == () else bad
    assert f"{field}={shown!r}" in str(caught.value)


def test_a_value_given_twice_is_refused_before_anything_runs(clock):
    with pytest.raises(InputError, match=r"\[1, 2, 1\].*once"):
        swept(lambda n, device: pytest.fail("it ran"), [1, 2, 1], clock)


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "many"])
@pytest.mark.parametrize("field", ["needs_bytes", "flop", "bytes_moved"])
def test_a_function_of_the_value_must_give_a_number(clock, field, bad):
    with pytest.raises(InputError) as caught:
        swept(lambda n, device: lambda: pytest.fail("it ran"), [1], clock, **{field: lambda n: bad})
    assert f"{field}={bad!r}" in str(caught.value)


def test_a_maker_that_makes_no_function_is_refused(clock):
    with pytest.raises(InputError, match="fn=3"):
        swept(lambda n, device: 3, [1], clock)


def test_an_absent_device_is_refused(clock):
    with pytest.raises(DeviceError, match="cuda:99"):
        swept(lambda n, device: pytest.fail("it ran"), [1], clock, device="cuda:99")
