"""What a GPU would not forgive, in words: each hazard with its place, its threads and how often it happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from labkit.simt.program import Site

SCOPES = ("warp", "block", "grid")

_VERBS = {
    "read after write": ("reads", "wrote"),
    "write after read": ("writes", "read"),
    "write after write": ("writes", "wrote"),
}
_MISSING_ORDER = {
    "warp": "nothing orders two lanes of a warp but syncthreads() or syncwarp()",
    "block": "there is no barrier between",
    "grid": "nothing orders two blocks within one launch",
}


@dataclass(frozen=True)
class Hazard:
    """Something that a GPU would not forgive.

    kind: race, out_of_bounds, uninitialised_shared, uninitialised_local, divergent_barrier or launch_limits.
    scope: for a race how far apart the two threads are: warp, block or grid; else the scope concerned.
    line, block, thread, array, index: where it happened first. other_*: the earlier access of a race.
    count: how often it happened (once per thread and access).
    """

    kind: str
    scope: str
    message: str
    line: int | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    count: int = 1
    array: str | None = None
    index: tuple[int, ...] | None = None
    access: str | None = None
    other_line: int | None = None
    other_block: tuple[int, int, int] | None = None
    other_thread: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.kind}: {self.message}{times}"


@dataclass(frozen=True)
class Who:
    """A thread, for messages: its place in its block and its block's in the grid."""

    thread: tuple[int, int, int]
    block: tuple[int, int, int]

    def __str__(self) -> str:
        return f"thread {show(self.thread)} of block {show(self.block)}"


class HazardBook:
    """Collects hazards: one per kind, array and pair of lines, with how often it happened and its widest scope."""

    def __init__(self) -> None:
        self._found: dict[tuple, Hazard] = {}

    def add(self, hazard: Hazard, function: str = "") -> None:
        """Add a hazard, or add to the count of one like it."""
        key = (hazard.kind, hazard.array, hazard.line, hazard.other_line, function)
        known = self._found.get(key)
        if known is None:
            self._found[key] = hazard
            return
        wider = hazard.kind == "race" and SCOPES.index(hazard.scope) > SCOPES.index(known.scope)
        self._found[key] = replace(hazard if wider else known, count=known.count + hazard.count)

    def report(self, kind: str, scope: str, site: Site, who: Who, message: str, **more: Any) -> None:
        """Add a hazard that happened at a place in the kernel's text."""
        hazard = Hazard(kind, scope, message, line=site.line, block=who.block, thread=who.thread, **more)
        self.add(hazard, site.function)

    def report_race(
        self, site: Site, who: Who, element: Element, what: str, scope: str, earlier: Site, earlier_who: Who, count: int
    ) -> None:
        """Add a race: who is at the element now, and who was there before with nothing to order the two."""
        verb, earlier_verb = _VERBS[what]
        before = str(earlier_who) if who.block != earlier_who.block else f"thread {show(earlier_who.thread)}"
        self.report(
            "race",
            scope,
            site,
            who,
            f"{who} {verb} {element} in line {site.line}, {before} {earlier_verb} it in line {earlier.line}, "
            f"and {_MISSING_ORDER[scope]}",
            count=count,
            array=element.array,
            index=element.index,
            access=what,
            other_line=earlier.line,
            other_block=earlier_who.block,
            other_thread=earlier_who.thread,
        )

    def __iter__(self) -> Iterator[Hazard]:
        return iter(self._found.values())


@dataclass(frozen=True)
class Element:
    """An element of an array, for messages."""

    array: str
    index: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(map(str, self.index))}]"


def show(place: tuple[int, ...]) -> str:
    """Return coordinates for a message: without the trailing dimensions that are 0, but at least x.

    >>> show((3, 0, 0)), show((3, 1, 0))
    ('3', '(3, 1)')
    """
    while len(place) > 1 and place[-1] == 0:
        place = place[:-1]
    return str(place[0]) if len(place) == 1 else str(place)
