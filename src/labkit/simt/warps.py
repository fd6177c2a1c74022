"""What the lanes of one warp do together: shuffles and votes."""

from __future__ import annotations

import numpy as np

from labkit.simt.lanes import WARP_SIZE, Mask, Value


def among(mask: Mask, members: Value | None) -> Mask:
    """Return the active lanes that the member mask (bits, as in 0xffffffff) names."""
    if members is None or (not isinstance(members, np.ndarray) and int(members) & 0xFFFFFFFF == 0xFFFFFFFF):
        return mask
    named = np.asarray(members).astype(np.int64) >> mask.lanes.lane & 1
    return mask.split(named.astype(bool))[0]


def shuffle(mask: Mask, kind: str, value: Value, place: Value) -> tuple[np.ndarray, np.ndarray]:
    """Return for each lane the value of the lane that it asks, and which lanes asked one that does not take part.

    A place outside the warp gives the lane's own value for up and down; shfl_sync takes the place modulo 32.
    """
    lane = mask.lanes.lane
    value = mask.spread(value)
    source = {
        "shfl_sync": lambda: place % WARP_SIZE,
        "shfl_up_sync": lambda: np.where(lane - place < 0, lane, lane - place),
        "shfl_down_sync": lambda: np.where(lane + place >= WARP_SIZE, lane, lane + place),
        "shfl_xor_sync": lambda: lane ^ place & (WARP_SIZE - 1),
    }[kind]()
    source = np.broadcast_to(source, lane.shape)
    rows = mask.lanes.by_warp(value, 0)
    takes_part = mask.lanes.by_warp(mask.active, False)
    warp = mask.lanes.warp
    return rows[warp, source], mask.active & ~takes_part[warp, source]


def bits(mask: Mask, predicate: Value) -> np.ndarray:
    """Return for each lane the active lanes of its warp where the predicate holds, as bits."""
    holds = mask.lanes.by_warp(mask.active & predicate, False)
    ballots = holds @ (np.int64(1) << np.arange(WARP_SIZE))
    return ballots[mask.lanes.warp]


def vote(mask: Mask, kind: str, predicate: Value) -> np.ndarray:
    """Return ballot_sync (int32 bits), all_sync, any_sync or eq_sync (bool) for each lane."""
    yes = bits(mask, predicate)
    if kind == "ballot_sync":
        return yes.astype(np.int32)
    everyone = bits(mask, np.True_)
    if kind == "any_sync":
        return yes != 0
    return yes == everyone if kind == "all_sync" else (yes == everyone) | (yes == 0)
