"""Atomic updates: the lanes of a batch take turns in order, as if each update were one undivided step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labkit.simt.lanes import Value
from labkit.simt.memory import Address, poison

_FOLDS = {
    "add": np.add,
    "sub": np.subtract,
    "max": np.fmax,
    "min": np.fmin,
    "nanmax": np.fmax,
    "nanmin": np.fmin,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
}

# What a cell becomes from its old value and the lane's operands.
_STEPS: dict[str, Callable[..., np.ndarray]] = {
    "exch": lambda old, new: new,
    "cas": lambda old, expected, new: np.where(old == expected, new, old),
    "inc": lambda old, limit: np.where(old >= limit, 0, old + old.dtype.type(1)).astype(old.dtype),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)).astype(old.dtype),
}


def update(name: str, cells: np.ndarray, at: Address, values: tuple[Value, ...], wanted: bool) -> Value:
    """Apply an atomic operation to one cell per active lane; return what each lane found (poison for the others).

    Among lanes that share a cell the lower one goes first. Without `wanted` nobody reads what was found.
    """
    lanes = np.flatnonzero(at.mask.active)
    cell = at.cell[lanes] if isinstance(at.cell, np.ndarray) else np.full(len(lanes), at.cell)
    operands = [v[lanes] if isinstance(v, np.ndarray) else np.full(len(lanes), v) for v in values]
    if name in _FOLDS and not wanted:
        _FOLDS[name].at(cells, cell, operands[0])
        return poison(cells.dtype)
    found = np.full(len(at.mask.active), poison(cells.dtype))
    found[lanes] = _in_turn(name, cells, cell, operands)
    return found


def _in_turn(name: str, cells: np.ndarray, cell: np.ndarray, operands: list[np.ndarray]) -> np.ndarray:
    """Let the lanes of each cell take their turns; return the old values."""
    order = np.argsort(cell, kind="stable")
    sorted_cell = cell[order]
    starts = np.flatnonzero(np.r_[True, sorted_cell[1:] != sorted_cell[:-1]]) if len(cell) else np.empty(0, int)
    sizes = np.diff(np.r_[starts, len(cell)])
    old = np.empty(len(cell), cells.dtype)
    if name in _FOLDS and len(sizes) and sizes.max() > len(sizes):
        for start, size in zip(starts, sizes, strict=True):  # few cells, many lanes each: fold along the lanes
            lanes = order[start : start + size]
            place = cell[lanes[0]]
            course = _FOLDS[name].accumulate(np.r_[cells[place : place + 1], operands[0][lanes]])
            old[lanes] = course[:-1]
            cells[place] = course[-1]
        return old
    step = _STEPS.get(name) or _FOLDS[name]
    turn = np.arange(len(cell)) - np.repeat(starts, sizes)
    by_turn = order[np.argsort(turn, kind="stable")]
    ends = np.cumsum(np.bincount(turn)) if len(turn) else []
    for start, end in zip(np.r_[0, ends[:-1]].astype(int), ends, strict=True) if len(ends) else ():
        lanes = by_turn[start:end]
        old[lanes] = cells[cell[lanes]]
        cells[cell[lanes]] = step(old[lanes], *(operand[lanes] for operand in operands))
    return old
