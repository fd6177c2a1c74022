import base64
import importlib.util
import io
import sys
import types

import ipywidgets
import pytest


class Browser:
    """Does to a widget what its view in the browser does: through the messages that come over the wire."""

    def parts(self, shown, kind=ipywidgets.Widget):
        """Return all widgets of a kind that shown puts on the page."""
        return [widget for widget in self._walk(shown.widget) if isinstance(widget, kind)]

    def _walk(self, widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from self._walk(child)

    def move(self, shown, name, position):
        field = shown.fields[name]
        field.widget.set_state({"value": bool(position)} if field.control.kind == "toggle" else {"index": position})

    def select(self, shown, position):
        (field,) = self.parts(shown, ipywidgets.widgets.widget_selection._Selection)
        field.set_state({"index": position})

    def press(self, shown, text):
        button = self.button(shown, text)
        assert not button.disabled
        for callback in button._click_handlers.callbacks:  # the dispatcher itself only prints what they raise
            callback(button)

    def button(self, shown, text):
        (button,) = [b for b in self.parts(shown, ipywidgets.Button) if b.description == text]
        return button

    def text(self, shown):
        """Return all HTML in view, styles and hidden parts left out."""
        return "".join(self._visible(shown.widget))

    def _visible(self, widget):
        if widget.layout.display == "none":
            return
        if isinstance(widget, ipywidgets.HTML):
            yield widget.value
        for child in getattr(widget, "children", ()):
            yield from self._visible(child)


@pytest.fixture
def browser():
    return Browser()


@pytest.fixture(autouse=True)
def plotting(monkeypatch):
    """Stand in for labkit.plotting where a checkout does not have it."""
    if importlib.util.find_spec("labkit.plotting") is not None:
        return
    module = types.ModuleType("labkit.plotting")

    def to_html(ax, alt=None):
        file = io.BytesIO()
        ax.figure.savefig(file, format="png", dpi=30)
        return f'<img alt="{alt or ""}" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'

    module.to_html = to_html
    monkeypatch.setitem(sys.modules, "labkit.plotting", module)
