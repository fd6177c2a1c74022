"""The lens in the browser, as a widget: a script and a style, and what they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

HERE = Path(__file__).parent


class BrowserLens(anywidget.AnyWidget):
    """Shows `data` (JSON, see packing.py), hides what has the class `stand_in`, and says in `place` where it rests.

    place: {"warp": …, "line": …, "occurrence": …} of the request in view, empty before the student moves.
    """

    _esm = (HERE / "lens.js").read_text(encoding="utf-8")
    _css = (HERE / "lens.css").read_text(encoding="utf-8")
    data = traitlets.Unicode("{}").tag(sync=True)
    stand_in = traitlets.Unicode("").tag(sync=True)
    place: dict[str, Any] = traitlets.Dict().tag(sync=True)
