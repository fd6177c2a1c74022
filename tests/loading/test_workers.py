"""Worker processes: none is left behind, whatever happens, and the death of one is told in a sentence."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import psutil
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from labkit.devices import usable_cpus
from labkit.errors import InputError, WorkerError
from labkit.loading import JpegImages, StandIn, batches_of, plan_loader, run_pipeline
from labkit.loading.workers import worker_error

TENSORS = TensorDataset(torch.arange(64))
SIGNALS_ARE_POSIX = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="not run: signals are POSIX")


class Fails(Dataset):
    """Goes wrong at item 8, in the way that is asked for."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 8:
            if self.how == "raises":
                raise KeyError("no such photo")
            if self.how == "ends":
                os._exit(3)
            os.kill(os.getpid(), getattr(signal, self.how))
        return torch.zeros(2)


def forked(dataset, **options) -> DataLoader:
    return DataLoader(dataset, batch_size=4, multiprocessing_context="fork", **({"num_workers": 2} | options))


@pytest.mark.parametrize("persistent", [True, False])
def test_no_worker_is_left_though_the_iterator_is_kept(persistent: bool) -> None:
    loader = forked(TENSORS, persistent_workers=persistent)
    with batches_of(loader) as batches:
        first = next(batches)
        assert len(multiprocessing.active_children()) == 2
    assert first[0].tolist() == [0, 1, 2, 3]
    assert multiprocessing.active_children() == []
    with batches_of(loader) as batches:  # the loader can be used again
        assert next(batches)[0].tolist() == [0, 1, 2, 3]
    assert multiprocessing.active_children() == []


def test_persistent_workers_that_were_there_before_are_stopped_with_the_stream() -> None:
    loader = forked(TENSORS, persistent_workers=True)
    assert len(list(loader)) == 16
    assert len(multiprocessing.active_children()) == 2
    with batches_of(loader) as batches:
        next(batches)
    assert multiprocessing.active_children() == []


def test_torch_says_nothing_of_more_workers_than_cpus_where_the_plan_has_said_it() -> None:
    workers = usable_cpus() + 1
    plan = plan_loader(TENSORS, batch=4, workers=workers, start_method="fork", device="cpu", more_than_cpus=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        run = run_pipeline(plan, StandIn(0.001), steps=4, progress=False)
    assert run.workers == workers


def test_no_worker_is_left_after_an_error_in_the_loop() -> None:
    with pytest.raises(ZeroDivisionError), batches_of(forked(TENSORS)) as batches:
        next(batches)
        _ = 1 / 0
    assert multiprocessing.active_children() == []


def test_processes_of_others_are_left_alone() -> None:
    other = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        with batches_of(forked(TENSORS)) as batches:
            next(batches)
        assert other.is_alive()
    finally:
        other.kill()
        other.join()


def test_epochs_follow_each_other_without_end() -> None:
    with batches_of(DataLoader(TENSORS, batch_size=32)) as batches:
        assert [int(next(batches)[0][0]) for _ in range(5)] == [0, 32, 0, 32, 0]


def test_a_loader_without_a_batch_is_no_endless_loop() -> None:
    with pytest.raises(InputError, match="without a batch"), batches_of([]) as batches:
        next(batches)


@SIGNALS_ARE_POSIX
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("SIGKILL", "was killed, mostly because memory ran out"),
        ("SIGBUS", "--shm-size"),
        ("SIGSEGV", "was killed"),
        ("ends", "ended by itself"),
    ],
)
def test_a_worker_that_dies_is_told_and_the_others_are_stopped(how: str, said: str) -> None:
    plan = plan_loader(Fails(how), batch=4, workers=2, start_method="fork", shuffle=False, more_than_cpus=True)
    with pytest.raises(WorkerError, match=said) as caught:
        run_pipeline(plan, StandIn(0.001), steps=12, progress=False)
    assert str(caught.value).startswith("workers=2: ")
    assert multiprocessing.active_children() == []


@SIGNALS_ARE_POSIX
def test_a_pipe_that_ends_in_the_middle_of_a_batch_is_told_too() -> None:
    with pytest.raises(WorkerError, match="--shm-size"), batches_of(forked(TENSORS, num_workers=1)) as batches:
        next(batches)
        (worker,) = multiprocessing.active_children()
        os.kill(worker.pid, signal.SIGBUS)
        with contextlib.suppress(RuntimeError):  # torch's own handler may be first
            worker.join(10)
        raise EOFError


def test_what_a_data_set_raises_is_passed_on_as_it_is() -> None:
    plan = plan_loader(Fails("raises"), batch=4, workers=2, start_method="fork", shuffle=False, more_than_cpus=True)
    with pytest.raises(KeyError, match="no such photo"):
        run_pipeline(plan, StandIn(0.001), steps=12, progress=False)
    assert multiprocessing.active_children() == []


def test_a_worker_that_hangs_is_told() -> None:
    class Hangs(Dataset):
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> int:
            time.sleep(60)
            return index

    with (
        pytest.raises(WorkerError, match="gave no batch for a long time"),
        batches_of(forked(Hangs(), timeout=0.3, num_workers=1)) as it,
    ):
        next(it)
    assert multiprocessing.active_children() == []


def test_other_runtime_errors_are_not_taken_for_a_lost_worker() -> None:
    with pytest.raises(RuntimeError, match="size mismatch"), batches_of(forked(TENSORS)) as batches:
        next(batches)
        raise RuntimeError("size mismatch")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        # As torch 2.13 writes them.
        ("DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that ...", "--shm-size=2g"),
        ("DataLoader worker (pid 7) is killed by signal: Segmentation fault. ", "(Segmentation fault)"),
        ("DataLoader worker (pid(s) 7, 8) exited unexpectedly", "Try workers=0"),
        ("DataLoader timed out after 120 seconds", "no batch for a long time"),
    ],
)
def test_every_message_of_torch_has_its_advice(message: str, said: str) -> None:
    assert said in str(worker_error(message, 2))


# --- in a process of its own ---------------------------------------------------------------------------------------

PROGRAM = """
    import multiprocessing, signal
    from labkit.loading import JpegImages, StandIn, plan_loader, run_pipeline

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell starts in the background

    class Slow(StandIn):
        def submit(self, batch):
            super().submit(batch)
            if len(self._steps) == 12:
                print("going", *(worker.pid for worker in multiprocessing.active_children()), flush=True)

    plan = plan_loader(JpegImages(4000, megapixels=0.01, size=16), batch=4, workers=2, start_method="fork",
                       more_than_cpus=True, device="cpu")
    run = run_pipeline(plan, Slow(0.02), steps=900, progress=False)
    print(run.complete, len(run.waits_s), len(multiprocessing.active_children()), flush=True)
"""


@pytest.fixture
def program():
    """A process that runs a pipeline of two workers, in a group of its own; and the pids of its workers."""
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        going, *pids = process.stdout.readline().split()
        assert (going, len(pids)) == ("going", 2)
        yield process, [int(pid) for pid in pids]
    finally:
        process.kill()
        process.wait()


def wait_until_gone(pids: list[int], limit_s: float) -> bool:
    """Say whether all of them have ended before limit_s seconds are over; one that nobody waits for has ended too."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        if not any(map(_runs, pids)):
            return True
        time.sleep(0.1)
    return False


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@SIGNALS_ARE_POSIX
def test_an_interrupt_keeps_what_was_measured_and_leaves_no_worker(program) -> None:
    process, pids = program
    os.killpg(process.pid, signal.SIGINT)  # as a terminal and a notebook's server do: the workers hear of it, too
    shown, errors = process.communicate(timeout=60)
    lines = shown.splitlines()
    assert lines[0].startswith("Interrupted: ") and lines[0].endswith("steps were measured and are kept."), errors
    complete, steps, left = lines[1].split()
    assert (complete, left) == ("False", "0")
    assert 8 <= int(steps) < 900
    assert wait_until_gone(pids, 10)


@SIGNALS_ARE_POSIX
def test_workers_of_a_killed_kernel_end_by_themselves(program) -> None:
    process, pids = program
    process.kill()
    process.wait()
    assert wait_until_gone(pids, 30)


def test_photos_can_be_interrupted_before_anything_was_measured() -> None:
    class Stops(StandIn):
        def submit(self, batch) -> None:
            raise KeyboardInterrupt

    plan = plan_loader(JpegImages(64, megapixels=0.01, size=16), batch=4, workers=2, start_method="fork", device="cpu")
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(plan, Stops(0.01), progress=False)
    assert multiprocessing.active_children() == []


class LeavesWith:
    """A list of batches whose worker raises when it is told to stop, as torch does where one aborts on its way out."""

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def __iter__(self) -> LeavesWith:
        return self

    def __next__(self) -> int:
        return 1

    def _shutdown_workers(self) -> None:
        raise self.problem


def test_a_worker_that_aborts_while_it_leaves_does_not_spoil_what_was_loaded() -> None:
    lost = RuntimeError("DataLoader worker (pid 7) is killed by signal: Aborted. ")
    with batches_of(LeavesWith(lost)) as batches:
        assert next(batches) == 1


def test_another_error_of_the_end_is_not_hidden() -> None:
    other = LeavesWith(RuntimeError("something else"))
    with pytest.raises(RuntimeError, match="something else"), batches_of(other) as batches:
        assert next(batches) == 1
