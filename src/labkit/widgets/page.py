"""How a control and its figure stand on the page: the style, the fold, and the copy that a saved notebook shows."""

from __future__ import annotations

import uuid

import ipywidgets
from IPython import get_ipython
from IPython.display import display, update_display

from labkit.html import Html, folded

# ipywidgets cuts a label of more than 80 pixels to "Siz…", and a long option of radio buttons runs over the next one.
# Here a label stands above its field, and everything wraps. The class names are those of ipywidgets 7 and 8.
STYLE = """<style>
.labkit-fields > .labkit-field { flex: 1 1 260px; min-width: 220px; max-width: 460px; margin: 0 20px 8px 0; }
.labkit-control { height: auto; margin: 0; }
.labkit-field .labkit-control { width: 100%; flex-flow: row wrap; }
.labkit-field .labkit-control > .widget-label { display: block; flex: 0 0 100%; width: auto; max-width: 100%;
  height: auto; margin: 0; overflow: visible; white-space: normal; text-align: left; line-height: 1.4;
  font-weight: 600; }
.labkit-field .labkit-control .slider-container { flex: 1 1 100px; margin-left: 10px; margin-right: 10px; }
.labkit-field .labkit-control > .widget-readout { flex: 0 0 auto; width: auto; min-width: 72px; max-width: 50%;
  text-align: left; white-space: nowrap; }
.labkit-field .labkit-control.widget-hslider { max-width: 460px; }
.labkit-field .labkit-control > select { flex: 1 1 auto; max-width: 300px; }
.labkit-field .labkit-control .widget-radio-box { margin: 2px 0 6px 0; }
.labkit-field .labkit-control .widget-radio-box label { display: flex; flex-direction: row-reverse;
  justify-content: flex-end; align-items: flex-start; height: auto; line-height: 1.4; padding: 2px 0; }
.labkit-field .labkit-control .widget-radio-box input { flex: 0 0 auto; height: 1.4em; margin: 0 8px 0 1px; }
.labkit-field .labkit-control input:focus-visible, .labkit-field .labkit-control .noUi-handle:focus-visible {
  outline: 2px solid #2196f3; outline-offset: 1px; }
.labkit-note, .labkit-figure { margin-left: 0; }
.jupyter-button + .labkit-note, .labkit-note + .jupyter-button { margin-left: 8px; }
.labkit-note .widget-html-content, .labkit-figure .widget-html-content { height: auto; line-height: 1.4; }
.labkit-figure.labkit-stale { opacity: 0.4; transition: opacity 0.2s 0.3s; }
.labkit-figure img { max-width: 100%; height: auto; }
</style>"""

STALE = "labkit-stale"  # a figure that waits for its drawing pales, though not for one that is quick


class Spot:
    """A place in a cell's output that holds one piece of HTML; outside of a notebook it only remembers it."""

    def __init__(self) -> None:
        self.html = ""
        self._display_id: str | None = None

    def show(self) -> None:
        """Put the place into the output of the running cell."""
        if get_ipython() is not None:
            self._display_id = self._display_id or uuid.uuid4().hex
            display(self._content(), display_id=self._display_id)

    def put(self, html: str) -> None:
        """Replace what stands there."""
        self.html = html
        if self._display_id is not None:
            update_display(self._content(), display_id=self._display_id)

    def _content(self) -> Html:
        return Html(self.html, "a figure for notebooks")


class SavedCopy(Spot):
    """The folded copy that is left where there is no kernel: in a saved, exported or reopened notebook.

    While the controls are alive, their style hides it.
    """

    def __init__(self, summary: str) -> None:
        super().__init__()
        self.hidden_class = f"labkit-saved-{uuid.uuid4().hex[:8]}"
        self._summary = summary

    def _content(self) -> Html:
        copy = folded(self._summary, self.html)
        return Html(f'<div class="{self.hidden_class}">{copy.html}</div>', copy.text)


def figure_place() -> ipywidgets.HTML:
    """Return the one widget that a figure is shown in."""
    place = ipywidgets.HTML()
    place.add_class("labkit-figure")
    return place


class Page(ipywidgets.VBox):
    """The outermost box. Its repr is what a notebook shows where it knows the box no longer."""

    def __repr__(self) -> str:
        return "The controls of this cell work once it has been run."


def page(parts: list[ipywidgets.Widget], fold: str, copy: SavedCopy) -> Page:
    """Return parts one below the other, with labkit's style; behind a button that says fold, if it says something."""
    style = ipywidgets.HTML(
        f"{STYLE}<style>.{copy.hidden_class} {{ display: none; }}</style>", layout={"display": "none"}
    )
    body = ipywidgets.VBox(parts)
    if not fold:
        return Page([style, body])
    wide = {"width": "auto", "height": "auto", "align_self": "flex-start"}
    opener = ipywidgets.ToggleButton(description=fold, icon="caret-right", layout=wide)
    body.layout.display = "none"

    def turn(change: dict) -> None:
        body.layout.display = None if change["new"] else "none"
        opener.icon = "caret-down" if change["new"] else "caret-right"

    opener.observe(turn, "value")
    return Page([style, opener, body])
