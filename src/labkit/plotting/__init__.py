"""Figures: each plot function takes data and ax=None and returns the Axes; show() displays them in a notebook.

A figure is made without pyplot, so that no backend is set, none stays open, and rcParams stay as they are.
"""

from labkit.plotting.bars import plot_bars, plot_values
from labkit.plotting.fonts import font_for
from labkit.plotting.images import plot_images
from labkit.plotting.lines import plot_lines
from labkit.plotting.pipeline import plot_pipeline, plot_waiting
from labkit.plotting.ratios import plot_scaling, plot_speedup
from labkit.plotting.requests import plot_banks, plot_request
from labkit.plotting.roofline import plot_roofline
from labkit.plotting.samples import plot_samples
from labkit.plotting.serving import plot_latency, plot_load, plot_queue
from labkit.plotting.show import alt_text, show, to_html, to_png
from labkit.plotting.sustained import plot_over_time
from labkit.plotting.teams import plot_teams
from labkit.plotting.times import plot_throughput, plot_times
from labkit.plotting.training import plot_phases, plot_training

__all__ = [
    "alt_text",
    "font_for",
    "plot_banks",
    "plot_bars",
    "plot_images",
    "plot_latency",
    "plot_lines",
    "plot_load",
    "plot_over_time",
    "plot_pipeline",
    "plot_phases",
    "plot_queue",
    "plot_request",
    "plot_roofline",
    "plot_samples",
    "plot_scaling",
    "plot_speedup",
    "plot_teams",
    "plot_throughput",
    "plot_times",
    "plot_training",
    "plot_values",
    "plot_waiting",
    "show",
    "to_html",
    "to_png",
]
