"""Figures: each plot function takes data and ax=None and returns the Axes; show() displays them in a notebook."""

from labkit.plotting.bars import plot_bars, plot_values
from labkit.plotting.fonts import font_for
from labkit.plotting.lines import plot_lines
from labkit.plotting.samples import plot_samples
from labkit.plotting.show import alt_text, show, to_html, to_png
from labkit.plotting.times import plot_throughput, plot_times

__all__ = [
    "alt_text",
    "font_for",
    "plot_bars",
    "plot_lines",
    "plot_samples",
    "plot_throughput",
    "plot_times",
    "plot_values",
    "show",
    "to_html",
    "to_png",
]
