"""The exercises of lesson 05 about answering many requests: the load of a server, and where a GPU pays."""

from __future__ import annotations

import itertools
import math

from labkit.checks.exercises import Exercise


def _load(rate_per_s: float, call_s: float, batch: int) -> float:
    return rate_per_s * call_s / batch


LOAD = Exercise(
    name="load",
    task="Return the load: the seconds of work that arrive in a second, if a call of call_s answers batch requests.",
    reference=_load,
    cases=[(50, 0.010, 1), (100, 0.004, 4), (7, 0.25, 1), (1000, 0.064, 64), (0, 0.5, 2), (30, 0.5, 3)],
    known_wrong=[
        ("One call answers the whole batch: divide by batch.", lambda rate, call_s, batch: rate * call_s),
        ("A larger batch needs fewer calls: divide by batch.", lambda rate, call_s, batch: rate * call_s * batch),
        (
            "That is how many requests a second the server can answer; compare it with those that arrive.",
            lambda rate, call_s, batch: batch / call_s,
        ),
        (
            "Requests per second times seconds per request: the longer a call, the higher the load.",
            lambda rate, call_s, batch: rate / call_s / batch,
        ),
        ("A load above 1 is no mistake: it says that the queue grows.", lambda *work: min(_load(*work), 1)),
        ("That is the time which is left over; asked for is the time at work.", lambda *work: 1 - _load(*work)),
        (
            "On average: three calls and a half in a second are 3.5, so do not round.",
            lambda rate, call_s, batch: math.ceil(rate / batch) * call_s,
        ),
        (
            "On average: three calls and a half in a second are 3.5, so do not round.",
            lambda rate, call_s, batch: rate // batch * call_s,
        ),
        ("A share of 1, not percent.", lambda *work: 100 * _load(*work)),
    ],
    also_right=[
        lambda rate, call_s, batch: (rate / batch) * call_s,
        lambda rate, call_s, batch: rate / (batch / call_s),
    ],
    general_hint="How many calls does a second bring, and how long does each of them take?",
)


def _break_even_batch(cpu_us: int, launch_us: int, gpu_us: int) -> float:
    return launch_us // (cpu_us - gpu_us) + 1 if gpu_us < cpu_us else math.inf


def _break_even_by_search(cpu_us: int, launch_us: int, gpu_us: int) -> float:
    if gpu_us >= cpu_us:
        return math.inf
    return next(batch for batch in itertools.count(1) if launch_us + batch * gpu_us < batch * cpu_us)


def _without_never(cpu_us: int, launch_us: int, gpu_us: int) -> float:
    return launch_us // (cpu_us - gpu_us) + 1


BREAK_EVEN_BATCH = Exercise(
    name="break_even_batch",
    task=(
        "Return the smallest batch that a GPU answers sooner, or math.inf: the CPU takes cpu_us per image, the GPU "
        "gpu_us per image and launch_us per call."
    ),
    reference=_break_even_batch,
    cases=[
        (100, 1000, 20),
        (100, 900, 25),  # at 12 both take 1200: from 13 on
        (1000, 100, 10),
        (3, 1000, 1),
        (50, 400, 50),
        (20, 10, 30),
        (7, 0, 3),
    ],
    known_wrong=[
        ("The images on the GPU take time as well: what is saved for each is cpu_us - gpu_us.",
         lambda cpu_us, launch_us, gpu_us: launch_us // cpu_us + 1),
        ("Where both take equally long, the GPU is not sooner yet: the next batch is.",
         lambda cpu_us, launch_us, gpu_us: math.ceil(launch_us / (cpu_us - gpu_us)) if gpu_us < cpu_us else math.inf),
        ("A batch is a whole number: the next one above.",
         lambda cpu_us, launch_us, gpu_us: launch_us / (cpu_us - gpu_us) if gpu_us < cpu_us else math.inf),
        ("Rounded down, the CPU is still ahead: take the next batch.",
         lambda cpu_us, launch_us, gpu_us: launch_us // (cpu_us - gpu_us) if gpu_us < cpu_us else math.inf),
        ("Where an image takes the GPU as long as the CPU or longer, no batch pays for the launch: math.inf.",
         _without_never),
        ("One launch serves the whole batch: it is not paid for each image.",
         lambda cpu_us, launch_us, gpu_us: 1 if launch_us + gpu_us < cpu_us else math.inf),
        ("A GPU has the advantage in the large batches, not in the small ones.",
         lambda cpu_us, launch_us, gpu_us: 1),
    ],
    also_right=[
        _break_even_by_search,
        lambda cpu_us, launch_us, gpu_us: math.inf if cpu_us <= gpu_us else int(launch_us / (cpu_us - gpu_us) + 1),
    ],
    general_hint="A batch of b takes b · cpu_us, or launch_us + b · gpu_us. From which b on is the second less?",
)  # fmt: skip

EXERCISES = (LOAD, BREAK_EVEN_BATCH)
