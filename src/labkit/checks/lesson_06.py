"""The exercises of lesson 06: an ideal pipeline, the workers it takes, and the shared memory that they fill."""

from __future__ import annotations

import math

from labkit.checks.exercises import Exercise

WAITING_BY_HAND = Exercise(
    name="waiting_by_hand",
    task="Return the share of the time for which the accelerator waits where loading and step take turns.",
    reference=lambda load_s, step_s: load_s / (load_s + step_s),
    cases=[(3.0, 2.0), (1.0, 1.0), (0.002, 0.018), (0.75, 0.05), (1e-3, 4.0)],
    known_wrong=[
        ("That is the share of working: the accelerator waits while the CPU loads.", lambda a, b: b / (a + b)),
        ("A share is a part of the whole: divide by both times together.", lambda a, b: a / b),
        ("Nothing overlaps in this loop: the whole of the loading is waiting.", lambda a, b: max(0, a - b) / (a + b)),
        ("That is a time in seconds; divide it by the time of both.", lambda a, b: a),
        ("A share lies between 0 and 1: without the factor 100.", lambda a, b: 100 * a / (a + b)),
    ],
    also_right=[lambda a, b: 1 - b / (a + b), lambda a, b: 1 / (1 + b / a)],
    general_hint="In one turn, who works how long, and how long does a turn take?",
)


def _waiting_share(load_s: float, step_s: float, workers: int) -> float:
    every_s = load_s / max(1, workers)
    return max(0.0, every_s - step_s) / max(every_s, step_s)


def _waiting_share_by_branch(load_s: float, step_s: float, workers: int) -> float:
    if workers == 0:
        workers = 1
    if load_s <= step_s * workers:
        return 0
    return 1 - step_s * workers / load_s


WAITING_SHARE = Exercise(
    name="waiting_share",
    task="Return the share of the time for which the accelerator waits where workers load batches beside its steps.",
    reference=_waiting_share,
    cases=[(4.0, 1.0, 1), (4.0, 1.0, 0), (4.0, 1.0, 2), (4.0, 1.0, 4), (4.0, 1.0, 9), (0.3, 0.05, 3), (0.02, 0.5, 1)],
    known_wrong=[
        (
            "Loading and step overlap now: only what is longer than a step is waited for.",
            lambda a, b, w: a / max(1, w) / (a / max(1, w) + b),
        ),
        (
            "With 0 workers the main process loads: as fast as one worker.",
            lambda a, b, w: max(0.0, a / w - b) / (a / w),
        ),
        (
            "Where batches come faster than steps, nothing is waited for: never below 0.",
            lambda a, b, w: 1 - b * max(1, w) / a,
        ),
        (
            "The workers share the work: with w of them a batch comes every load_s / w.",
            lambda a, b, w: _waiting_share(a, b, 1),
        ),
        (
            "More workers wait less: divide the time of loading by them.",
            lambda a, b, w: _waiting_share(a * max(1, w), b, 1),
        ),
        (
            "That is a time; the share divides it by the time of a whole turn.",
            lambda a, b, w: max(0.0, a / max(1, w) - b),
        ),
        (
            "They overlap: a whole turn takes as long as the slower of the two, not as long as both.",
            lambda a, b, w: max(0.0, a / max(1, w) - b) / (a / max(1, w) + b),
        ),
        (
            "The main process loads only where there are no workers.",
            lambda a, b, w: _waiting_share(a, b, w + 1),
        ),
    ],
    also_right=[
        _waiting_share_by_branch,
        lambda a, b, w: max(0, 1 - b / (a / max(w, 1))),
        lambda a, b, w: sorted([0.0, 1 - b * (w or 1) / a])[1],
    ],
    general_hint="How often does a batch come, how long does a step take, and which of the two sets the pace?",
)


def _workers_needed(image_s: float, step_s: float, batch: int) -> int:
    return math.ceil(batch * image_s / step_s)


WORKERS_NEEDED = Exercise(
    name="workers_needed",
    task="Return the fewest workers with which an ideal pipeline never lets the accelerator wait.",
    reference=_workers_needed,
    cases=[(3.0, 2.0, 5), (0.25, 1.0, 8), (0.25, 1.0, 9), (0.5, 2.0, 1), (0.0078125, 0.015625, 32), (0.125, 3.0, 50)],
    known_wrong=[
        ("A part of a worker does not exist: round up.", lambda image_s, step_s, batch: batch * image_s / step_s),
        ("Rounded down, they are too slow by a little: round up.", lambda i, s, b: max(1, int(b * i / s))),
        ("A batch has many images: multiply the time of one by them.", lambda i, s, b: max(1, math.ceil(i / s))),
        ("The other way round: the loading over the step.", lambda i, s, b: s / (b * i)),
        ("The other way round: the loading over the step.", lambda i, s, b: max(1, math.ceil(s / (b * i)))),
        ("Where it comes out even, one more is too many: round up.", lambda i, s, b: int(b * i / s) + 1),
    ],
    also_right=[
        lambda i, s, b: max(1, -int(-b * i // s)),
        lambda i, s, b: next(w for w in range(1, 10_000) if b * i <= w * s),
    ],
    general_hint="With w workers a batch comes every batch · image_s / w seconds. Which is the first w that will do?",
)

SHM_BYTES = Exercise(
    name="shm_bytes",
    task="Return the bytes of shared memory that all batches take which the workers may prepare ahead.",
    reference=lambda batch, item_bytes, workers, prefetch: batch * item_bytes * workers * prefetch,
    cases=[(32, 602_112, 4, 2), (1, 8, 1, 1), (16, 12_288, 0, 2), (7, 301, 3, 5), (256, 602_112, 16, 2)],
    known_wrong=[
        ("Every worker prepares its own batches: multiply by the workers.", lambda b, i, w, p: b * i * p),
        ("Each worker is prefetch batches ahead: multiply by that, too.", lambda b, i, w, p: b * i * w),
        ("Bytes are asked for, not items: multiply by item_bytes.", lambda b, i, w, p: b * w * p),
        ("A batch has many items: multiply by batch.", lambda b, i, w, p: i * w * p),
        ("Each of the workers has prefetch of them: multiply, do not add.", lambda b, i, w, p: b * i * (w + p)),
        ("item_bytes are bytes already: nothing is left to multiply.", lambda b, i, w, p: 4 * b * i * w * p),
        ("Only the batches ahead are counted: prefetch for each worker.", lambda b, i, w, p: b * i * w * (p + 1)),
    ],
    also_right=[lambda b, i, w, p: sum(b * i for _ in range(w * p)), lambda b, i, w, p: (b * i) * (p * w)],
    general_hint="How many batches are under way at most, and how many bytes has each?",
)

EXERCISES = (WAITING_BY_HAND, WAITING_SHARE, WORKERS_NEEDED, SHM_BYTES)
