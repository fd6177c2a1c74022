"""Controls for the lessons: explore a figure, commit a prediction, watch a curve grow.

The only part of labkit that imports ipywidgets. It uses core controls and what ipywidgets 7.7.1 (Colab) and 8 share;
the lens alone brings a script of its own, and has such controls where that cannot be loaded.
"""

from labkit.html import Html, folded, table
from labkit.widgets.controls import Control, choice, log_slider, slider, steps, toggle
from labkit.widgets.explorer import Explorer, explore
from labkit.widgets.lens import Lens, lens
from labkit.widgets.live import Live, live
from labkit.widgets.questions import Commitment, Question, ask_choice, ask_number

__all__ = [
    "Commitment",
    "Control",
    "Explorer",
    "Html",
    "Lens",
    "Live",
    "Question",
    "ask_choice",
    "ask_number",
    "choice",
    "explore",
    "folded",
    "lens",
    "live",
    "log_slider",
    "slider",
    "steps",
    "table",
    "toggle",
]
