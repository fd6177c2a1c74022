"""The ipywidgets behind a Control: one labelled field each, set by position, so that any object can be a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from labkit.html import escape
from labkit.widgets.controls import Control


class Field:
    """One control on the page: its ipywidget, the box it is shown in, and its value."""

    def __init__(self, name: str, control: Control) -> None:
        self.name = name
        self.control = control
        self.widget = _make_widget(control, control.label or name.replace("_", " "))
        self.widget.add_class("labkit-control")
        _explain(self.widget, control.description or self.widget.description)
        parts = [self.widget]
        if control.description:
            parts.append(note(f"<small>{escape(control.description)}</small>"))
        self.view = ipywidgets.VBox(parts)
        self.view.add_class("labkit-field")

    @property
    def position(self) -> int | None:
        """The position that is set, None while nothing is chosen."""
        return int(self.widget.value) if self.control.kind == "toggle" else self.widget.index

    @property
    def value(self) -> Any:
        """The value that is set, None while nothing is chosen."""
        return None if self.position is None else self.control.values[self.position]

    def set(self, value: Any) -> None:
        """Move to value as a hand would; raise InputError if it is not offered."""
        position = self.control.position_of(self.name, value)
        if self.control.kind == "toggle":
            self.widget.value = bool(position)
        else:
            self.widget.index = position

    def on_change(self, react: Callable[[], Any]) -> None:
        """Call react after each move."""
        self.widget.observe(lambda _: react(), "value" if self.control.kind == "toggle" else "index")


def note(html: str = "") -> ipywidgets.HTML:
    """Return a line of HTML that wraps instead of being cut."""
    line = ipywidgets.HTML(html)
    line.add_class("labkit-note")
    return line


def button(text: str, *, primary: bool = False) -> ipywidgets.Button:
    """Return a button as wide as its text."""
    return ipywidgets.Button(
        description=text,
        button_style="primary" if primary else "",
        layout={"width": "auto", "height": "auto", "flex": "0 0 auto", "align_self": "flex-start"},
    )


def _explain(widget: ipywidgets.DOMWidget, text: str) -> None:
    """Set what a hovering pointer shows; left alone, ipywidgets 8 shows the word null there."""
    trait = "tooltip" if widget.has_trait("tooltip") else "description_tooltip"
    widget.set_trait(trait, text)


def _make_widget(control: Control, label: str) -> ipywidgets.DOMWidget:
    if control.kind == "toggle":
        return ipywidgets.Checkbox(value=bool(control.start), description=label, indent=False)
    # The widget's own values are positions: they compare, whatever the values are.
    options = [(text, position) for position, text in enumerate(control.texts)]
    common = {"options": options, "description": label, "style": {"description_width": "initial"}}
    if control.kind == "slider":
        return ipywidgets.SelectionSlider(index=control.start, continuous_update=False, **common)
    kind = ipywidgets.RadioButtons if control.kind == "radio" else ipywidgets.Dropdown
    return kind(index=control.start, **common)
