"""Synthetic measurements whose every number is chosen by hand."""

import matplotlib
import pytest

from labkit.measurement import Measurement, Point, Sweep, Task


def measurement(times_s, *, source="measured", label="mm", flop=None, bytes_moved=None, parameters=(), **fields):
    fields.setdefault("provenance", "" if source == "measured" else "a hand-made example")
    task = Task(label=label, flop=flop, bytes_moved=bytes_moved, parameters=dict(parameters))
    return Measurement(task=task, times_s=times_s, source=source, **fields)


def sweep(times_by_value, *, label="matmul", parameter="n", oom=(), complete=True, **fields):
    points = [Point(value=value, measurement=measurement(times, **fields)) for value, times in times_by_value.items()]
    points += [Point(value=value, outcome="out of memory") for value in oom]
    return Sweep(label=label, parameter=parameter, points=points, complete=complete)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def series_of(ax):
    return [line for line in ax.lines if line.get_gid() == "labkit-series"]


@pytest.fixture(autouse=True)
def nothing_global_changes():
    """Whatever a test draws: rcParams, the backend and pyplot's figures are as before."""
    import matplotlib.pyplot as plt

    params, figures = dict(matplotlib.rcParams), plt.get_fignums()
    yield
    assert dict(matplotlib.rcParams) == params
    assert plt.get_fignums() == figures
