"""lens(): look into a trace, step by step, in the browser; and plain sliders where its script cannot be loaded."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import ipywidgets
from IPython.display import display

from labkit.html import Html, escape
from labkit.simt import Trace
from labkit.widgets.controls import Control, choice, steps
from labkit.widgets.explorer import Explorer
from labkit.widgets.fields import note
from labkit.widgets.page import Page, SavedCopy, page

HAZARDS_BELOW_FIGURE = 5
ACCESS_KINDS = 3  # load, store and atomic come first among the kinds of a step


def lens(trace: Trace, *, warps: Iterable[int] | None = None) -> Lens:
    """Return a lens on a trace: what each warp does, step by step; as a cell's last expression it is shown.

    Stepping and playing happen in the browser, with no round trip to the kernel. warps: which ones to look into,
    numbered over the grid; None is all of them, or of a large launch a sample (the lens says so). A figure of the
    request where the lens rests is left for a notebook that is saved, exported or reopened. Raises InputError if this
    is no trace, or its launch has no such warp.

    >>> import numpy as np
    >>> from labkit.simt import cuda, trace
    >>> def double(x):
    ...     i = cuda.grid(1)
    ...     x[i] = 2 * x[i]
    >>> lens(trace(double, 2, 32, np.ones(64)))
    Lens(double, 2 warps, 0 hazards)
    """
    return Lens(trace, warps)


class Lens:
    """A lens on a trace; see lens. packed is what the browser got, widget what is shown."""

    def __init__(self, trace: Trace, warps: Iterable[int] | None) -> None:
        from labkit.lens import pack, to_json

        self.packed = pack(trace, warps)
        self.trace = trace
        self.executions = _executions(self.packed)
        self.explorer = self._explorer() if any(self.executions.values()) else None
        stand_in, self.saved_copy = self._stand_in()
        self.browser = _browser_lens(to_json(self.packed), f"labkit-stand-in-{uuid.uuid4().hex[:8]}")
        parts: list[ipywidgets.Widget] = [stand_in]
        if self.browser is not None:
            stand_in.add_class(self.browser.stand_in)
            self.browser.observe(self._follow, "place")
            parts.insert(0, self.browser)
        self.widget = Page(parts)

    def look_at(self, warp: int, line: int | str, occurrence: int) -> None:
        """Let the figure for saved notebooks show this request; the browser asks for it when it comes to rest."""
        if self.explorer is not None:
            execution = {"execution": occurrence + 1} if "execution" in self.explorer.fields else {}
            self.explorer.set(warp=warp, line=line, **execution)

    def _ipython_display_(self) -> None:
        display(self.widget)
        self.saved_copy.show()

    def __repr__(self) -> str:
        count, hazards = len(self.packed["warps"]), len(self.trace.hazards)
        return (
            f"Lens({self.trace.kernel_name}, {count} warp{'s' * (count != 1)}, {hazards} hazard{'s' * (hazards != 1)})"
        )

    def _follow(self, change: dict[str, Any]) -> None:
        if change["new"]:
            self.look_at(**change["new"])

    def _stand_in(self) -> tuple[ipywidgets.Widget, SavedCopy]:
        """Return what is shown where the script is not, and the copy for saved notebooks."""
        if self.explorer is not None:
            return self.explorer.widget, self.explorer.saved_copy
        copy = SavedCopy("Lens without controls")
        copy.put(f"<p>{escape(self.trace.kernel_name)} did nothing that can be drawn.</p>{self._hazards().html}")
        return page([note(copy.html)], "", copy), copy

    def _explorer(self) -> Explorer:
        """Return sliders and a figure for the same choice."""
        lines = {key: text for key, text, _ in self.packed["source"]}
        used = [line for line in lines if any(line in of_warp for of_warp in self.executions.values())]
        drawn = [step for entry in self.packed["warps"] for step in entry["steps"] if step[2] < ACCESS_KINDS]
        touching = {step[1] for step in drawn if self.packed["arrays"][step[5]][1] in ("global", "shared")}
        start = next((line for n, line in enumerate(lines) if n in touching), used[0])
        controls: dict[str, Control] = {
            "warp": choice({f"warp {warp}": warp for warp, of_warp in self.executions.items() if of_warp}),
            "line": choice({f"{line}: {lines[line].strip()[:60]}": line for line in used}, value=start),
        }
        most = max(count for of_warp in self.executions.values() for count in of_warp.values())
        if most > 1:
            controls["execution"] = steps(range(1, most + 1), label="Execution of the line")
        return Explorer(self._draw, controls, run_button=False, fold="")

    def _draw(self, warp: int, line: int | str, execution: int = 1) -> Any:
        from labkit.plotting import plot_request, to_html

        count = self.executions[warp].get(line, 0)
        if not count:
            return f"<p>Warp {warp} does nothing in line {line}.</p>{self._hazards().html}"
        ax = plot_request(self.trace, warp=warp, line=line, occurrence=min(execution, count) - 1)
        return to_html(ax) + self._hazards().html

    def _hazards(self) -> Html:
        hazards = self.trace.hazards
        items = [f"<li>{escape(hazard)}</li>" for hazard in hazards[:HAZARDS_BELOW_FIGURE]]
        if len(hazards) > HAZARDS_BELOW_FIGURE:
            items.append(f"<li>and {len(hazards) - HAZARDS_BELOW_FIGURE} more</li>")
        sampled = f"<p>{escape(self.packed['sampled'])}</p>" if self.packed["sampled"] else ""
        found = f"<p>Hazards:</p><ul>{''.join(items)}</ul>" if items else "<p>No hazards.</p>"
        return Html(sampled + found)


def _executions(packed: dict[str, Any]) -> dict[int, dict[int | str, int]]:
    """Return how often each warp executes each line, as far as that is known."""
    names = [line for line, *_ in packed["source"]]
    counts: dict[int, dict[int | str, int]] = {}
    for entry in packed["warps"]:
        of_warp = counts.setdefault(entry["warp"], {})
        for _, line, _, occurrence, *_ in entry["steps"]:
            of_warp[names[line]] = max(of_warp.get(names[line], 0), occurrence + 1)
    return counts


def _browser_lens(data: str, stand_in: str) -> Any:
    """Return the browser part, None where anywidget is missing: the sliders stand in for it."""
    try:
        from labkit.lens.browser import BrowserLens
    except ImportError:
        return None
    return BrowserLens(data=data, stand_in=stand_in)
