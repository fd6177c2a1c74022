"""The stop button: the step at work is finished, and all that was learned until then is kept."""

from __future__ import annotations

import signal
import threading

import pytest
import torch

from labkit.training.interrupt import waiting_interrupt
from labkit.training.steps import Training

from .conftest import STEPS, press_stop, same_weights, tiny_data, tiny_net, tiny_train, train_by_hand


@pytest.fixture
def stop_in_step(monkeypatch):
    """Return press_stop for a test; what it patched is undone when the test says so."""
    return lambda number, times=1: press_stop(monkeypatch, number, times)


@pytest.mark.parametrize(
    ("step", "epochs_done", "where"),
    [
        (1, 0, "in epoch 1, after step 1 of 3"),
        (2, 0, "in epoch 1, after step 2 of 3"),
        (3, 1, "after epoch 1"),
        (5, 1, "in epoch 2, after step 2 of 3"),
    ],
)
def test_the_weights_are_those_of_the_last_finished_step(stop_in_step, monkeypatch, capsys, step, epochs_done, where):
    ours, by_hand, data = tiny_net(), tiny_net(), tiny_data()
    stop_in_step(step)
    history = tiny_train(ours, data, epochs=3)
    monkeypatch.undo()
    train_by_hand(by_hand, data, steps=step, epochs=3)
    assert same_weights(ours, by_hand)
    assert not history.complete and len(history.epochs) == epochs_done
    assert history.stopped == f"interrupted {where}" and f"I{history.stopped[1:]}" in repr(history)
    assert f"Interrupted {where}: what was learned until then is kept in the model." in capsys.readouterr().out
    assert not ours.training


def test_an_interrupt_in_the_very_last_step_comes_too_late_to_stop_anything(stop_in_step):
    stop_in_step(2 * STEPS)
    assert tiny_train(tiny_net(), tiny_data(), epochs=2).complete


def test_a_second_interrupt_does_not_wait(stop_in_step, monkeypatch):
    ours, by_hand, data = tiny_net(), tiny_net(), tiny_data()
    stop_in_step(2, times=2)
    history = tiny_train(ours, data, epochs=1)
    monkeypatch.undo()
    train_by_hand(by_hand, data, steps=1, epochs=1)
    assert history.stopped == "interrupted in epoch 1, after step 1 of 3"
    for one, other in zip(ours.parameters(), by_hand.parameters(), strict=True):
        assert torch.equal(one, other)  # the weights; the second step's images are in the normalisation already


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN, lambda *_: None])
def test_the_readers_own_handler_is_put_back(stop_in_step, handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        stop_in_step(1)
        tiny_train(tiny_net(), tiny_data(), epochs=1)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_a_curve_is_drawn_ends_the_training_after_it():
    drawn = []

    def draw(history):
        signal.raise_signal(signal.SIGINT)
        drawn.append(len(history.epochs))

    history = tiny_train(tiny_net(), tiny_data(), epochs=3, on_epoch=draw)
    assert drawn == [1] and history.stopped == "interrupted after epoch 1"


def test_a_keyboard_interrupt_that_is_raised_keeps_what_was_learned_too():
    def stop(history):
        if len(history.epochs) == 2:
            raise KeyboardInterrupt

    history = tiny_train(tiny_net(), tiny_data(), epochs=3, on_epoch=stop)
    assert len(history.epochs) == 2 and not history.complete


def test_in_another_thread_training_goes_on_without_touching_signals():
    found = []
    thread = threading.Thread(target=lambda: found.append(tiny_train(tiny_net(), tiny_data(), epochs=1)))
    thread.start()
    thread.join()
    assert found[0].complete


def test_outside_of_the_block_an_interrupt_is_what_it_always_was():
    with waiting_interrupt() as interrupt:
        assert not interrupt.requested
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_the_step_that_was_broken_off_is_known(stop_in_step, monkeypatch):
    seen = []
    monkeypatch.setattr(Training, "__init__", keep_in(seen, Training.__init__))
    stop_in_step(2, times=2)
    tiny_train(tiny_net(), tiny_data(), epochs=1)
    assert seen[0].in_step and seen[0].step == 1


def keep_in(seen, init):
    def keeping(self, *arguments):
        seen.append(self)
        init(self, *arguments)

    return keeping
