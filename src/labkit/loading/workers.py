"""Worker processes: their batches as one stream, a sentence where one dies, and none left when the stream ends."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import signal
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from labkit.errors import InputError, LabkitError, WorkerError

JOIN_S = 5.0
ENDING_S = 1.0  # a pipe ends a moment before its process does
# How torch's RuntimeErrors begin where a worker is gone or silent; the dataset's own begin with "Caught".
GONE = ("DataLoader worker", "DataLoader timed out")


@contextmanager
def batches_of(loader: Any) -> Iterator[Iterator[Any]]:
    """Give the batches of a loader, epoch after epoch without end, and stop its worker processes at the end.

    PyTorch stops them once the iterator is collected, which a traceback that a notebook keeps can put off for hours.
    Raises WorkerError where a worker dies, InputError for a loader without a batch.

    >>> with batches_of([1, 2]) as batches:
    ...     [next(batches) for _ in range(5)]
    [1, 2, 1, 2, 1]
    """
    before = set(multiprocessing.active_children())
    epochs: list[Any] = []
    try:
        yield _endless(loader, epochs)
    except (RuntimeError, EOFError, ConnectionError) as problem:
        if isinstance(problem, LabkitError) or not _tells_of_a_lost_worker(problem):
            raise
        # By signal or not: the one message may have been raised while the other was on its way.
        messages = [str(it) for it in (problem.__cause__, problem.__context__, problem) if it is not None]
        try:
            messages += _signals_of(getattr(epochs[0], "_workers", ()) if epochs else ())
        except RuntimeError as late:  # torch hears of the death by a signal, which may come as late as here
            messages.append(str(late))
        raise worker_error(" ".join(messages), getattr(loader, "num_workers", 0)) from problem
    finally:
        _stop(loader, epochs, before)


def _tells_of_a_lost_worker(problem: Exception) -> bool:
    """Say whether torch lost a worker: it says so, or the pipe ended in the middle of a batch."""
    if isinstance(problem, RuntimeError):
        return str(problem).startswith(GONE)
    return not str(problem).startswith("Caught")  # the data set's own, brought back from the worker


def _signals_of(workers: Iterable[Any]) -> list[str]:
    """Return, as torch would say it, by which signals workers ended: a pipe that ends early comes without a message."""
    by_sentinel = {worker.sentinel: worker for worker in workers}
    ending = [by_sentinel[it] for it in multiprocessing.connection.wait(by_sentinel, timeout=ENDING_S)]
    for worker in ending:
        worker.join(ENDING_S)  # its files are closed a moment before it has an exit code
    ended = [worker.exitcode for worker in ending if worker.exitcode is not None and worker.exitcode < 0]
    return [f"killed by signal: {signal.strsignal(-code)}." for code in ended]


def _endless(loader: Iterable[Any], epochs: list[Any]) -> Iterator[Any]:
    while True:
        with no_word_about_cpus():
            epochs[:] = [iter(loader)]
        found = False
        for batch in epochs[0]:
            found = True
            yield batch
        if not found:
            raise InputError(
                "a loader without a batch", "there is nothing to feed", "Is the batch larger than the data?"
            )


def _stop(loader: Any, epochs: list[Any], before: set[Any]) -> None:
    """Let torch stop its workers now, and end whatever process is left of those started since."""
    try:
        for iterator in [*epochs, getattr(loader, "_iterator", None)]:
            try:
                # What torch itself calls when the iterator is collected; it has no public name.
                getattr(iterator, "_shutdown_workers", lambda: None)()
            except RuntimeError as late:  # all batches are there: a worker that aborts while it leaves does no harm
                if not _tells_of_a_lost_worker(late):
                    raise
        if hasattr(loader, "_iterator"):
            loader._iterator = None  # one with persistent workers would be used again, without its workers
    finally:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
            process.join(JOIN_S)
            if process.is_alive():
                process.kill()
                process.join(JOIN_S)


@contextmanager
def no_word_about_cpus() -> Iterator[None]:
    """Silence torch's warning of more workers than CPUs: a plan has counted the usable ones, and said so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


def worker_error(message: str, workers: int) -> WorkerError:
    """Return torch's message about a lost worker as an error that says what happened and what to do.

    >>> print(worker_error("DataLoader worker (pid 7) is killed by signal: Killed. ", 2))
    workers=2: a worker process was killed, mostly because memory ran out. Use fewer workers, or a smaller batch.
    """
    if "Bus error" in message or "shared memory" in message:
        problem = "a worker process was killed: the shared memory that batches are handed through is full"
        advice = "Use fewer workers or a smaller batch; in Docker, start the container with --shm-size=2g."
    elif "killed by signal" in message:
        by = message.split("killed by signal:")[1].split(".")[0].strip()
        why = ", mostly because memory ran out" if by == "Killed" else f" ({by})"
        problem = f"a worker process was killed{why}"
        advice = "Use fewer workers, or a smaller batch."
    elif "timed out" in message:
        problem = "the workers gave no batch for a long time"
        advice = "Try workers=0: what takes so long, or fails, is then seen."
    else:
        problem = "a worker process ended by itself, so the data set could not be loaded in it"
        advice = (
            "Try workers=0: the reason is then seen. A data set that is defined in a notebook's cell belongs into a "
            "file of its own where workers are not forked (Windows, macOS, Python 3.14)."
        )
    return WorkerError(f"workers={workers}", problem, advice)
