"""How a control and its figure stand on the page: the style, the fold, and the copy that a saved notebook shows."""

from __future__ import annotations

import uuid

import ipywidgets
from IPython import get_ipython
from IPython.display import display, update_display

from labkit.html import Html, folded

# ipywidgets cuts a label of more than 80 pixels to "Siz…". Here it stands above its field and wraps.
STYLE = """<style>
.labkit-field { margin: 0 20px 6px 0; }
.labkit-field .labkit-control { width: 100%; height: auto; flex-flow: row wrap; margin: 0; }
.labkit-field .labkit-control > .widget-label { flex: 0 0 100%; width: auto; max-width: 100%; height: auto; margin: 0;
  overflow: visible; white-space: normal; text-align: left; line-height: 1.4; font-weight: 600; }
.labkit-field .labkit-control > .widget-readout { flex: 0 0 auto; width: auto; min-width: 64px; max-width: 50%;
  height: auto; margin: 0 0 0 8px; text-align: right; white-space: nowrap; }
.labkit-field .labkit-control > select { flex: 1 1 auto; }
.labkit-note, .labkit-note p { line-height: 1.35; margin: 0; }
.labkit-note .widget-html-content, .labkit-figure .widget-html-content { line-height: 1.4; height: auto; }
</style>"""


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


def page(parts: list[ipywidgets.Widget], fold: str, copy: SavedCopy) -> ipywidgets.VBox:
    """Return parts one below the other, with labkit's style; behind a button that says fold, if it says something."""
    style = ipywidgets.HTML(
        f"{STYLE}<style>.{copy.hidden_class} {{ display: none; }}</style>", layout={"display": "none"}
    )
    body = ipywidgets.VBox(parts)
    if not fold:
        return ipywidgets.VBox([style, body])
    opener = ipywidgets.ToggleButton(description=fold, icon="caret-right", layout={"width": "auto"})
    body.layout.display = "none"

    def turn(change: dict) -> None:
        body.layout.display = None if change["new"] else "none"
        opener.icon = "caret-down" if change["new"] else "caret-right"

    opener.observe(turn, "value")
    return ipywidgets.VBox([style, opener, body])
