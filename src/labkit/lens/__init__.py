"""The browser part of the lens: what of a trace is sent to it (packing.py, places.py), and lens.js with lens.css.

Its Python side, the function that a lesson calls, is labkit.widgets.lens.
"""

from labkit.lens.packing import MOST_BYTES, pack, to_json

__all__ = ["MOST_BYTES", "pack", "to_json"]
