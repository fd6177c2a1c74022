"""Callbacks on the kernel's main thread: one thing at a time, and the stop button stops it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from IPython import get_ipython


def on_main_thread(work: Callable[[], Any]) -> Any:
    """Return work(), run on the main thread, after the cell that runs there; raise what it raises.

    JupyterLab hands the messages of widgets to a thread of their own (ipykernel 7 calls it a subshell). There, a
    callback would measure while a cell measures, share pyplot's state with it, and never hear of an interrupt.
    """
    loop = getattr(getattr(get_ipython(), "kernel", None), "io_loop", None)
    if loop is None or threading.current_thread() is threading.main_thread():
        return work()
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            with _interrupts():
                result = work()
        except BaseException as problem:  # raised again on the thread that asked
            outcome.set_exception(problem)
        else:
            outcome.set_result(result)

    # The caller waits: while it does, the browser holds further moves back, and listens for what work prints.
    loop.add_callback(run)
    return outcome.result()


@contextmanager
def _interrupts() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt: between cells the kernel ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
