"""The sand model as a figure: the time until a load is delivered, and where one team overtakes another."""

from __future__ import annotations

from matplotlib.axes import Axes

from labkit.errors import InputError, check_positive, listed
from labkit.plotting.lines import plot_lines
from labkit.sand import Team, overtakes_at
from labkit.units import format_count

POINTS = 60


def plot_teams(
    *teams: Team,
    loads: tuple[float, float] = (10, 1_000_000),
    seconds: tuple[float, float] | None = None,
    unit: str = "kg",
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw each team's time in seconds against the load from loads[0] to loads[1], and mark the first overtaking.

    seconds fixes the range of the time axis, so that the figures of a control can be compared.
    Raises InputError for no teams, or loads that do not rise.

    >>> worker, crowd = Team("worker", 1, 100, 60), Team("children", 10_000, 0.5, 60, start_s=600)
    >>> plot_teams(worker, crowd).get_xlabel()
    'load (kg)'
    """
    if not teams or not all(isinstance(team, Team) for team in teams):
        raise InputError(f"teams={teams!r}", "this figure needs at least one Team", "Try Team('worker', 1, 100, 60).")
    ends = [check_positive("loads", load) for load in listed("loads", loads)]
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise InputError(f"loads={loads!r}", "loads are two numbers that rise", "Try loads=(10, 1_000_000).")
    low, high = ends
    steps = [low * (high / low) ** (i / (POINTS - 1)) for i in range(POINTS)]
    crossing = overtakes_at(teams[0], teams[1]) if len(teams) > 1 else None
    marks = [(f"overtakes at {format_count(round(crossing))} {unit}", crossing)] if crossing else []
    ax = plot_lines(
        [(team.name, steps, [team.time_s(load) for load in steps]) for team in teams],
        x_label=f"load ({unit})",
        y_label="seconds until all is delivered",
        x_log=True,
        y_log=True,
        x_formatter=format_count,
        y_formatter=format_count,
        marks=[mark for mark in marks if low <= mark[1] <= high],
        ax=ax,
        title=title,
    )
    if seconds is not None:
        ax.set_ylim(*seconds)
    return ax
