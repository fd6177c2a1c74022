"""Where the bytes that a request touches stand on the page, and what it does in words."""

from __future__ import annotations

from labkit.simt import Access, WarpEvent
from labkit.units import count_of

LANES = 32
BANKS = 32
WORD_BYTES = 4
SECTOR_BYTES = 32
ROW_BYTES = 128  # a cache line of four sectors, or one word of each bank

_NAMES = {
    "barrier": "Barrier: the block's threads wait here for each other.",
    "syncwarp": "syncwarp: the warp's lanes wait here for each other.",
    "shuffle": "Shuffle: the lanes hand each other registers.",
    "vote": "Vote: each lane hears what the others say.",
}


def row_bytes(access: Access) -> int:
    """Return how many bytes one row of the drawing has: 128, and fewer where more than 32 elements would stand in it.

    Shared memory has 32 banks whatever the element size.
    """
    return ROW_BYTES if access.space == "shared" else min(ROW_BYTES, LANES * access.itemsize)


def cells_of(access: Access) -> dict[int, list[int]]:
    """Return the lanes that touch each element, by its byte address; in shared memory small elements word by word."""
    unit = max(access.itemsize, WORD_BYTES) if access.space == "shared" else access.itemsize
    cells: dict[int, list[int]] = {}
    for lane, address in zip(access.lanes, access.addresses, strict=True):
        cells.setdefault(address // unit * unit, []).append(lane)
    return cells


def bank_degrees(access: Access) -> dict[int, int]:
    """Return, for each bank that is asked, the most distinct words it must serve at a time: the conflict degree.

    Elements of 8 bytes are served half a warp at a time, of 16 bytes a quarter.
    """
    words_each = max(1, access.itemsize // WORD_BYTES)
    asked: dict[tuple[int, int], set[int]] = {}
    for lane, address in zip(access.lanes, access.addresses, strict=True):
        for word in range(address // WORD_BYTES, address // WORD_BYTES + words_each):
            asked.setdefault((word % BANKS, lane * words_each // LANES), set()).add(word)
    degrees: dict[int, int] = {}
    for (bank, _), words in sorted(asked.items()):
        degrees[bank] = max(degrees.get(bank, 0), len(words))
    return degrees


def row_label(access: Access, start: int) -> str:
    """Return the name of the element at a byte address of the array, or the address where the array has gaps."""
    if not is_packed(access):
        return f"byte {start}"
    cell, index = start // access.itemsize, []
    for extent in reversed(access.shape):
        index.append(cell % extent)
        cell //= extent
    return f"{access.array}[{', '.join(map(str, reversed(index)))}]"


def is_packed(access: Access) -> bool:
    """Tell whether the array's elements lie without gaps, last index fastest."""
    expected = access.itemsize
    for extent, stride in zip(reversed(access.shape), reversed(access.strides), strict=True):
        if stride != expected:
            return False
        expected *= extent
    return True


def describe(step: Access | WarpEvent) -> str:
    """Return a step in words, with its cost.

    >>> describe(WarpEvent(3, "branch", 0, 0, lanes=(0, 1, 2), taken=(1,)))
    'Branch: 1 of 3 active lanes takes it; the warp diverges.'
    """
    if isinstance(step, WarpEvent):
        return _describe_event(step)
    lanes = f"{len(step.lanes)} {'lane' if len(step.lanes) == 1 else 'lanes'}"
    what = {"load": "Load from", "store": "Store to", "atomic": "Atomic update of"}[step.kind]
    asked = f"{what} {step.array} ({step.space} memory) by {lanes}, {len(step.lanes) * step.itemsize} bytes"
    if step.space == "global":
        return f"{asked}: {count_of(step.passes, 'sector')} of 32 bytes."
    if step.space == "shared":
        conflicts = f", {count_of(step.conflicts, 'bank conflict')}" if step.conflicts else ", no bank conflict"
        return f"{asked}: {count_of(step.passes, 'wavefront')}{conflicts}."
    return f"{asked}; each lane has its own copy." if step.space == "local" else f"{asked}."


def _describe_event(event: WarpEvent) -> str:
    if event.kind == "branch":
        takes = (
            f"{len(event.taken)} of {len(event.lanes)} active lanes {'takes' if len(event.taken) == 1 else 'take'} it"
        )
        return f"Branch: {takes}{'; the warp diverges' if 0 < len(event.taken) < len(event.lanes) else ''}."
    which = ", ".join(map(str, event.lanes))
    if event.kind == "out_of_bounds":
        return f"Out of bounds: {event.array} has no such element for {count_of(len(event.lanes), 'lane')} ({which})."
    if event.kind == "divergent_barrier":
        return f"A barrier that not all threads of the block reach: lanes {which} wait."
    return _NAMES[event.kind]
