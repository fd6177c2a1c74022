import signal
import threading
import types

import pytest

from labkit.widgets import threads
from labkit.widgets.threads import on_main_thread


class Loop:
    """An event loop of a kernel whose main thread, this one, is between two cells."""

    def __init__(self):
        self.asked = threading.Event()

    def add_callback(self, callback):
        self.callback = callback
        self.asked.set()

    def run_once(self):
        assert self.asked.wait(10)
        self.callback()


@pytest.fixture
def loop(monkeypatch):
    loop = Loop()
    shell = types.SimpleNamespace(kernel=types.SimpleNamespace(io_loop=loop))
    monkeypatch.setattr(threads, "get_ipython", lambda: shell)
    return loop


def ask(work, loop):
    """Call on_main_thread(work) on another thread and return what it returned or raised there."""
    outcomes = []

    def call():
        try:
            outcomes.append(on_main_thread(work))
        except BaseException as problem:
            outcomes.append(problem)

    thread = threading.Thread(target=call)
    thread.start()
    loop.run_once()
    thread.join(10)
    assert not thread.is_alive()
    return outcomes[0]


def test_work_from_another_thread_is_done_on_the_main_one(loop):
    assert ask(threading.current_thread, loop) is threading.main_thread()


def test_the_caller_gets_the_exception(loop):
    def fail():
        raise ValueError("on the main thread")

    problem = ask(fail, loop)
    assert isinstance(problem, ValueError)
    assert str(problem) == "on the main thread"


def test_an_interrupt_stops_the_work_and_the_kernel_ignores_it_again_afterwards(loop):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a kernel does between cells
    try:
        problem = ask(lambda: signal.raise_signal(signal.SIGINT), loop)
        assert isinstance(problem, KeyboardInterrupt)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_on_the_main_thread_work_is_simply_done(loop):
    assert on_main_thread(lambda: 3) == 3
    assert not loop.asked.is_set()


def test_without_a_kernel_work_is_done_on_the_thread_that_asks():
    asked_on = []
    thread = threading.Thread(target=lambda: on_main_thread(lambda: asked_on.append(threading.current_thread())))
    thread.start()
    thread.join(10)
    assert asked_on == [thread]
