"""An interrupt that waits until the step is done, so that the weights are those of a whole step."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupt:
    """Whether the reader pressed the stop button since the block began."""

    def __init__(self) -> None:
        self.requested = False

    def request(self, _signal: int = signal.SIGINT, _frame: Any = None) -> None:
        """Take note of one interrupt; a second one, of a reader who will not wait, breaks off at once."""
        if self.requested:
            signal.default_int_handler(signal.SIGINT, _frame)
        self.requested = True


@contextmanager
def waiting_interrupt() -> Iterator[Interrupt]:
    """Run a block in which the first interrupt (Ctrl-C, a notebook's stop button) only sets .requested.

    Outside of the main thread, where Python delivers no interrupt, nothing changes.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = signal.signal(signal.SIGINT, interrupt.request)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
