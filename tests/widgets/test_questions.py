from datetime import UTC, datetime

import pytest

from labkit.errors import InputError
from labkit.units import format_count, format_ratio
from labkit.widgets import Commitment, ask_choice, ask_number, questions

HALF_PAST_TWO = datetime(2026, 11, 30, 14, 30).astimezone()


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr(questions, "_now", lambda: HALF_PAST_TWO)


def test_nothing_is_committed_and_nothing_picked_at_the_start(browser):
    kept = []
    question = ask_choice("Which is faster?", ["CPU", "GPU"], kept.append)
    assert question.committed is None
    assert kept == []
    assert "Which is faster?" in browser.text(question)
    assert browser.button(question, "Commit my prediction").disabled
    with pytest.raises(InputError, match="nothing to commit"):
        question.commit()
    assert kept == []


def test_pick_and_commit(browser):
    kept = []
    question = ask_choice("Which is faster?", {"the CPU": "cpu", "the GPU": "gpu"}, kept.append)
    browser.select(question, 1)
    assert kept == []
    browser.press(question, "Commit my prediction")
    assert kept == ["gpu"]
    assert question.committed == Commitment("gpu", HALF_PAST_TWO)
    assert "<b>the GPU</b> · committed 2026-11-30 at 14:30" in browser.text(question)
    assert "2026-11-30 at 14:30" in question.html


def test_a_commitment_can_be_changed_and_counts_until_then(browser):
    kept = []
    question = ask_choice("Which?", ["CPU", "GPU"], kept.append)
    browser.select(question, 0)
    browser.press(question, "Commit my prediction")
    browser.press(question, "Change")
    assert question.committed.value == "CPU"
    browser.select(question, 1)
    assert question.committed.value == "CPU"
    browser.press(question, "Commit my prediction")
    assert kept == ["CPU", "GPU"]
    assert question.committed.value == "GPU"


def test_rerunning_the_cell_shows_the_earlier_commitment(browser):
    at = datetime(2026, 11, 29, 9, 5, tzinfo=UTC)
    kept = []
    question = ask_choice("Which?", ["CPU", "GPU"], kept.append, committed=("GPU", at))
    assert kept == []
    local = at.astimezone().strftime("%Y-%m-%d at %H:%M")
    assert f"<b>GPU</b> · committed {local}" in browser.text(question)
    assert question.committed == Commitment("GPU", at)


def test_numbers_go_through_round_numbers_with_their_unit(browser):
    kept = []
    question = ask_number("How many times?", 0.1, 1000, kept.append, unit=format_ratio)
    browser.select(question, 20)  # two powers of ten above 0.1
    browser.press(question, "Commit my prediction")
    assert kept == [10.0]
    assert "<b>10×</b>" in browser.text(question)


def test_numbers_in_equal_steps():
    kept = []
    ask_number("Per cent?", 0, 100, kept.append, log=False).pick(37).commit()
    assert kept == [37]


def test_an_earlier_number_is_a_position_even_off_the_grid(browser):
    question = ask_number("At which n?", 10, 10_000, print, unit=format_count, committed=(1234, HALF_PAST_TWO))
    assert "<b>1,234</b>" in browser.text(question)


def test_a_failing_on_commit_is_shown_and_raised_and_keeps_nothing(browser):
    def fail(value):
        raise OSError("disk <full>")

    question = ask_choice("Which?", ["CPU", "GPU"], fail)
    browser.select(question, 0)
    with pytest.raises(OSError, match="full"):
        browser.press(question, "Commit my prediction")
    assert question.committed is None
    assert "OSError: disk &lt;full&gt;" in browser.text(question)


def test_questions_and_answers_are_escaped(browser):
    question = ask_choice("Is n < 3?", ["<yes>"], print).pick("<yes>")
    question.commit()
    assert "Is n &lt; 3?" in browser.text(question)
    assert "<b>&lt;yes&gt;</b>" in browser.text(question)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ask_choice("", ["a"], print),
        lambda: ask_choice("Which?", [], print),
        lambda: ask_choice("Which?", ["a"], "print"),
        lambda: ask_choice("Which?", ["a"], print, committed="a"),
        lambda: ask_choice("Which?", ["a"], print, committed=("b", HALF_PAST_TWO)),
        lambda: ask_number("How many?", 10, 1, print),
        lambda: ask_number("How many?", 0, 10, print),
        lambda: ask_number("How many?", 1, 10, print, committed=(11, HALF_PAST_TWO)),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(InputError):
        make()


def test_the_repr_tells_the_state():
    question = ask_choice("Which?", ["CPU", "GPU"], lambda value: None)
    assert repr(question) == "Question('Which?', no prediction yet)"
    question.pick("GPU").commit()
    assert repr(question) == "Question('Which?', predicted GPU)"
