"""The lens on the kernel's side: what it hands to the browser, and the sliders and the figure that stand in for it."""

import json
import sys

import ipywidgets
import numpy as np
import pytest

from labkit.errors import InputError
from labkit.simt import cuda, trace
from labkit.widgets import lens
from labkit.widgets import page as page_module


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < 40:
        for k in range(3):
            c[i] += a[i] + b[k * i]


FIRST = add.py_func.__code__.co_firstlineno
BRANCH, ADD = FIRST + 3, FIRST + 5


@pytest.fixture
def result():
    return trace(add, 2, 32, *(np.ones(128, np.float32) for _ in range(3)))


def images(shown):
    return [w.value for w in [*walk(shown.widget)] if isinstance(w, ipywidgets.HTML) and "<img" in w.value]


def walk(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def alt(html):
    return html.split('alt="')[1].split('"')[0]


def test_the_browser_gets_the_trace_the_script_and_the_style(result):
    shown = lens(result)
    state = shown.browser.get_state()
    assert json.loads(state["data"])["kernel"] == "add"
    assert "export default" in state["_esm"]
    assert ".labkit-lens" in state["_css"]


def test_the_script_can_hide_what_stands_in_for_it(result):
    shown = lens(result)
    browser, stand_in = shown.widget.children
    assert browser is shown.browser
    assert browser.stand_in in stand_in._dom_classes
    assert 'model.get("stand_in")' in browser._esm
    assert lens(result).browser.stand_in != browser.stand_in


def test_the_figure_shows_the_first_request_at_the_start(result):
    (image,) = images(lens(result))
    assert alt(image).startswith(f"line {ADD}, warp 0, execution 1 of 3.")


def test_where_the_lens_rests_the_figure_and_the_saved_copy_follow(result):
    shown = lens(result)
    shown.browser.set_state({"place": {"warp": 1, "line": ADD, "occurrence": 2}})  # as it comes over the wire
    (image,) = images(shown)
    assert alt(image).startswith(f"line {ADD}, warp 1, execution 3 of 3.")
    assert "by 8 lanes" in alt(image)
    assert image in shown.saved_copy.html
    shown.browser.set_state({"place": {"warp": 0, "line": BRANCH, "occurrence": 0}})
    assert "Branch: 32 of 32 active lanes take it." in alt(images(shown)[0])


def test_sliders_make_the_same_choice(result, browser):
    shown = lens(result).explorer
    assert shown.fields["line"].control.values == (BRANCH, ADD)
    browser.move(shown, "warp", 1)
    browser.move(shown, "execution", 1)
    assert alt(shown.html).startswith(f"line {ADD}, warp 1, execution 2 of 3.")


def test_a_line_that_a_warp_does_not_reach_is_said_to_be_so(browser):
    def guarded(x):
        if cuda.threadIdx.x < 32:
            x[cuda.threadIdx.x] = 1

    shown = lens(trace(guarded, 1, 64, np.ones(32))).explorer
    browser.move(shown, "warp", 1)
    assert f"Warp 1 does nothing in line {guarded.__code__.co_firstlineno + 2}" in shown.html


def test_hazards_stand_below_the_figure():
    def race(x):
        x[0] = cuda.threadIdx.x

    shown = lens(trace(race, 1, 32, np.zeros(1)))
    assert "race: thread" in shown.saved_copy.html
    assert repr(shown) == "Lens(race, 1 warp, 1 hazard)"


def test_a_launch_that_was_not_run_is_explained(browser):
    shown = lens(trace(add, 1, 2048, *(np.ones(128, np.float32) for _ in range(3))))
    assert "launch_limits" in shown.saved_copy.html
    assert "launch_limits" in browser.text(shown)
    assert shown.packed["warps"] == []


def test_without_anywidget_the_sliders_are_all_there_is(result, monkeypatch, browser):
    monkeypatch.setitem(sys.modules, "labkit.lens.browser", None)  # an import of it fails
    shown = lens(result)
    assert shown.browser is None
    assert browser.parts(shown, ipywidgets.SelectionSlider)
    assert images(shown)


def test_it_is_shown_with_a_copy_that_is_saved(result, monkeypatch):
    shown, order = lens(result), []
    monkeypatch.setattr(sys.modules[lens.__module__], "display", order.append)
    monkeypatch.setattr(page_module.SavedCopy, "show", lambda copy: order.append(copy))
    shown._ipython_display_()
    assert order == [shown.widget, shown.saved_copy]


def test_nonsense_is_refused(result):
    with pytest.raises(InputError, match="no trace"):
        lens(add)
    with pytest.raises(InputError, match="2 warps"):
        lens(result, warps=[2])
