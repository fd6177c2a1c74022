import types

import ipywidgets
import pytest

from labkit.errors import InputError
from labkit.html import Html
from labkit.widgets import choice, explore, live, log_slider, slider, toggle
from labkit.widgets import explorer as explorer_module

pyplot = pytest.importorskip("matplotlib.pyplot")


def draw_line(n):
    _, ax = pyplot.subplots(figsize=(2, 1))
    ax.plot([0, n])
    return ax


# C08-03
def test_thirty_moves_leave_one_image_and_no_open_figure(browser):
    explorer = explore(draw_line, n=(0, 40))
    seen = set()
    for position in range(1, 31):
        browser.move(explorer, "n", position)
        images = [w for w in browser.parts(explorer, ipywidgets.HTML) if "<img" in w.value]
        assert len(images) == 1
        assert images[0].value.count("<img") == 1
        assert pyplot.get_fignums() == []
        seen.add(images[0].value)
    assert len(seen) > 1  # the axis reaches to n: the picture changed
    outputs = [w.outputs for w in browser.parts(explorer, ipywidgets.Output)]
    assert outputs == [()]


def test_a_figure_that_was_open_before_stays_open(browser):
    mine = pyplot.figure()
    explorer = explore(draw_line, n=(0, 4))
    browser.move(explorer, "n", 2)
    assert pyplot.get_fignums() == [mine.number]
    pyplot.close(mine)


def test_a_figure_of_a_failed_drawing_is_closed(browser):
    def fail(n):
        pyplot.figure()
        if n:
            raise ValueError("late")
        return "ok"

    explorer = explore(fail, n=(0, 4))
    with pytest.raises(ValueError, match="late"):
        browser.move(explorer, "n", 1)
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    "make", [lambda: pyplot.subplots()[1], lambda: pyplot.subplots(1, 2)[1], lambda: pyplot.subplots()[0]]
)
def test_axes_arrays_of_axes_and_figures_are_shown(make):
    assert explore(lambda n: make(), n=(0, 1)).html.count("<img") == 1
    assert pyplot.get_fignums() == []


def test_every_kind_of_control_gives_its_values_to_draw(browser):
    explorer = explore(
        lambda **values: repr(values),
        n=(1, 4),
        size=log_slider(256, 1024, value=512),
        dtype={"single": 32, "double": 64},
        layout=["row", "column"],
        warm=True,
    )
    assert explorer.html == "{'n': 1, 'size': 512, 'dtype': 32, 'layout': 'row', 'warm': True}"
    for name, position in {"n": 3, "size": 2, "dtype": 1, "layout": 1, "warm": 0}.items():
        browser.move(explorer, name, position)
    assert explorer.html == "{'n': 4, 'size': 1024, 'dtype': 64, 'layout': 'column', 'warm': False}"
    assert explorer.values == {"n": 4, "size": 1024, "dtype": 64, "layout": "column", "warm": False}


def test_values_may_be_objects_that_do_not_compare(browser):
    numpy = pytest.importorskip("numpy")
    arrays = {"zeros": numpy.zeros(3), "ones": numpy.ones(3)}
    explorer = explore(lambda x: str(x.sum()), x=arrays)
    assert explorer.set(x=arrays["ones"]).html == "3.0"
    browser.move(explorer, "x", 0)
    assert explorer.html == "0.0"


def test_html_objects_and_captions_are_shown_and_captions_escaped():
    assert explore(lambda n: Html("<b>x</b>"), n=(0, 1)).html == "<b>x</b>"
    html = explore(lambda n: ("<b>x</b>", "n < 3"), n=(0, 1)).html
    assert html == '<b>x</b><p class="labkit-caption" style="margin: 4px 0px">n &lt; 3</p>'


@pytest.mark.parametrize("result", [None, 3.5, object(), Html])
def test_a_drawing_with_nothing_to_show_is_refused(result):
    with pytest.raises(InputError):
        explore(lambda n: result, n=(0, 1))


def test_a_forgotten_return_is_named():
    with pytest.raises(InputError, match="return"):
        explore(lambda n: None, n=(0, 1))


def test_the_first_error_is_raised_by_explore_itself():
    with pytest.raises(ZeroDivisionError):
        explore(lambda n: str(1 / n), n=(0, 4))


def test_a_later_error_is_shown_escaped_and_raised_and_then_forgotten(browser):
    def draw(n):
        if n == 2:
            raise ValueError("no <2> here")
        return f"n is {n}"

    explorer = explore(draw, n=(0, 4))
    with pytest.raises(ValueError, match="no <2> here"):
        browser.move(explorer, "n", 2)
    assert "ValueError: no &lt;2&gt; here" in explorer.html
    assert "#b71c1c" in explorer.html
    assert "n is" not in explorer.html
    browser.move(explorer, "n", 3)
    assert explorer.html == "n is 3"


def test_set_moves_several_controls_and_draws_once():
    drawn = []
    explorer = explore(lambda a, b: drawn.append((a, b)) or "x", a=(0, 5), b=(0, 5))
    assert drawn == [(0, 0)]
    explorer.set(a=3, b=4)
    assert drawn == [(0, 0), (3, 4)]
    explorer.set(a=3, b=4)  # nothing moved
    assert drawn == [(0, 0), (3, 4)]


def test_set_refuses_what_no_hand_could_do():
    explorer = explore(lambda n: "x", n=(0, 5))
    with pytest.raises(InputError, match="m=1"):
        explorer.set(m=1)
    with pytest.raises(InputError, match="n=9"):
        explorer.set(n=9)
    assert explorer.values == {"n": 0}


def test_moves_during_a_drawing_are_drawn_once_afterwards(browser):
    drawn = []

    def draw(n):
        drawn.append(n)
        if n == 1:
            for position in (2, 3, 4, 5):
                browser.move(explorer, "n", position)
        return f"n is {n}"

    explorer = explore(draw, n=(0, 5))
    browser.move(explorer, "n", 1)
    assert drawn == [0, 1, 5]
    assert explorer.html == "n is 5"


def test_sliders_react_on_release_and_show_the_unit():
    explorer = explore(
        lambda n: "x", n=log_slider(1024, 4096, unit=lambda n: f"{n // 1024} KiB", label="Size of a row")
    )
    widget = explorer.fields["n"].widget
    assert widget.continuous_update is False
    assert [text for text, _ in widget.options] == ["1 KiB", "2 KiB", "4 KiB"]
    assert widget.readout is True
    assert widget.description == "Size of a row"


def test_every_control_has_a_label_and_says_its_description(browser):
    explorer = explore(
        lambda **values: "x",
        batch_size=slider(1, 5, description="images in one step"),
        dtype=choice(["float32"]),
        warm=toggle(),
    )
    assert [field.widget.description for field in explorer.fields.values()] == ["batch size", "dtype", "warm"]
    assert "images in one step" in browser.text(explorer)


class Clock:
    def __init__(self, *readings_s):
        self.readings_s = list(readings_s)

    def perf_counter(self):
        return self.readings_s.pop(0)


def test_with_a_run_button_nothing_runs_until_it_is_pressed(browser, monkeypatch):
    monkeypatch.setattr(explorer_module, "time", Clock(10.0, 12.5))
    drawn = []
    during = {}

    def draw(n):
        drawn.append(n)
        during["disabled"] = browser.button(explorer, "Run").disabled
        during["text"] = browser.text(explorer)
        return f"n is {n}"

    explorer = explore(draw, n=(0, 5), run_button=True)
    assert drawn == []
    assert "Not run yet" in explorer.html
    browser.move(explorer, "n", 3)
    explorer.set(n=4)
    assert drawn == []
    browser.press(explorer, "Run")
    assert drawn == [4]
    assert explorer.html == "n is 4"
    assert during["disabled"] is True
    assert "running…" in during["text"]
    assert browser.button(explorer, "Run").disabled is False
    assert "running…" not in browser.text(explorer)
    assert "finished after 2.5 s" in browser.text(explorer)
    browser.move(explorer, "n", 1)
    assert drawn == [4]
    assert explorer.html == "n is 4"
    assert "changed" in browser.text(explorer)


def test_a_failed_run_is_shown_raised_and_can_be_repeated(browser):
    def draw(n):
        raise RuntimeError("no memory")

    explorer = explore(draw, n=(0, 5), run_button=True)
    with pytest.raises(RuntimeError):
        browser.press(explorer, "Run")
    assert "RuntimeError: no memory" in explorer.html
    assert browser.button(explorer, "Run").disabled is False
    assert "running…" not in browser.text(explorer)


def test_an_interrupted_run_says_so_and_can_be_repeated(browser):
    def draw(n):
        raise KeyboardInterrupt

    explorer = explore(draw, n=(0, 5), run_button=True)
    with pytest.raises(KeyboardInterrupt):
        browser.press(explorer, "Run")
    assert "Stopped" in explorer.html
    assert browser.button(explorer, "Run").disabled is False


def test_a_run_within_a_run_does_nothing():
    drawn = []

    def draw(n):
        drawn.append(n)
        explorer.run()
        return "x"

    explorer = explore(draw, n=(0, 5), run_button=True)
    explorer.run()
    assert drawn == [0]


def test_a_live_figure_inside_a_callback_takes_the_explorer_s_place(browser):
    seen = []

    def draw(n):
        (figure,) = [w for w in browser.parts(explorer, ipywidgets.HTML) if "labkit-figure" in w._dom_classes]
        assert "labkit-stale" in figure._dom_classes  # what still stands there is of the last run
        curve = live()
        curve.update("1 of 2")
        assert "labkit-stale" not in figure._dom_classes
        seen.append(explorer.html)
        return "2 of 2"

    explorer = explore(draw, n=(0, 5), run_button=True)
    browser.press(explorer, "Run")
    assert seen == ["1 of 2"]
    assert explorer.html == "2 of 2"


def test_a_fold_hides_everything_until_it_is_opened(browser):
    explorer = explore(lambda n: "the answer", n=(0, 5), fold="Show the figure")
    assert browser.text(explorer) == ""
    (opener,) = browser.parts(explorer, ipywidgets.ToggleButton)
    assert opener.description == "Show the figure"
    opener.set_state({"value": True})
    assert "the answer" in browser.text(explorer)
    opener.set_state({"value": False})
    assert browser.text(explorer) == ""


@pytest.mark.parametrize("draw", [None, "x", 3])
def test_draw_must_be_a_function(draw):
    with pytest.raises(InputError):
        explore(draw, n=(0, 1))


@pytest.mark.parametrize("run_button", [False, True])
def test_controls_that_draw_does_not_take_are_refused_at_once(run_button):
    with pytest.raises(InputError, match=r"draw\(n\)"):
        explore(lambda n: "x", m=(0, 1), run_button=run_button)
    with pytest.raises(InputError, match=r"draw\(n, m\)"):
        explore(lambda n, m: "x", m=(0, 1), run_button=run_button)


def test_an_explorer_needs_a_control():
    with pytest.raises(InputError, match="no control"):
        explore(lambda: "x")


def test_displaying_shows_the_controls_once_and_a_folded_copy(monkeypatch):
    shown = []
    monkeypatch.setattr(explorer_module, "display", shown.append)
    explorer = explore(lambda n: "the figure", n=(0, 1))
    copies = []
    explorer.saved_copy = types.SimpleNamespace(show=lambda: copies.append(1))
    explorer._ipython_display_()
    assert shown == [explorer.widget]
    assert copies == [1]


def test_the_saved_copy_is_folded_and_hidden_only_while_the_controls_live(browser):
    explorer = explore(lambda n: "the figure", n=(0, 1))
    html = explorer.saved_copy._content().html
    assert html.startswith(f'<div class="{explorer.saved_copy.hidden_class}"><details')
    assert "Figure without controls</summary>" in html
    assert "the figure" in html
    styles = [w.value for w in browser.parts(explorer, ipywidgets.HTML)]
    assert any(f".{explorer.saved_copy.hidden_class} {{ display: none; }}" in style for style in styles)
