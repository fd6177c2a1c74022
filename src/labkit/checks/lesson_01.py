"""The exercises of lesson 01: an honest timer, bandwidth, Amdahl's law, and when a transfer pays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from labkit.checks.exercises import Exercise


class ScriptedGpu:
    """A GPU whose time is scripted: launch() returns at once, and the job is paid for at synchronize().

    The first job takes first_s, each later one job_s; waiting_s of older work is in the queue at the start. It cannot
    be too slow or too noisy, so a timer is right or wrong on any machine.
    """

    def __init__(self, job_s: float, first_s: float, waiting_s: float = 0.0) -> None:
        self.job_s, self.first_s = job_s, first_s
        self._now_s, self._queued_s, self._jobs = 0.0, waiting_s, 0

    def __repr__(self) -> str:
        return f"a GPU with jobs of {self.job_s} s, the first {self.first_s} s"

    def clock(self) -> float:
        """Return the host's clock in seconds."""
        return self._now_s

    def launch(self) -> None:
        """Put one job into the queue; returns after 10 µs, long before the job is done."""
        self._now_s += 1e-5
        self._queued_s += self.first_s if self._jobs == 0 else self.job_s
        self._jobs += 1

    def synchronize(self) -> None:
        """Wait until the queue is empty."""
        self._now_s += self._queued_s
        self._queued_s = 0.0


def _timer(warm_up: bool, before: bool, after: bool, runs: int = 1) -> Callable[[Any], float]:
    """Return a timer that does or leaves out each of the steps of an honest one."""

    def time_job(gpu: Any) -> float:
        if warm_up:
            gpu.launch()
        if before:
            gpu.synchronize()
        start_s = gpu.clock()
        for _ in range(runs):
            gpu.launch()
        if after:
            gpu.synchronize()
        return (gpu.clock() - start_s) / runs

    return time_job


HONEST_TIME = Exercise(
    name="honest_time",
    task="Return the seconds that one job takes on this GPU once it is warm, waiting included.",
    reference=_timer(warm_up=True, before=True, after=True),
    cases=[
        (ScriptedGpu(job_s=0.02, first_s=0.3),),
        (ScriptedGpu(job_s=0.5, first_s=0.5, waiting_s=3.0),),
        (ScriptedGpu(job_s=0.007, first_s=2.0, waiting_s=0.01),),
    ],
    known_wrong=[
        (
            "You timed the launch: wait with gpu.synchronize() before you read the clock again.",
            _timer(True, True, False),
        ),
        ("Older work was still in the queue: synchronise before you start the clock, too.", _timer(True, False, True)),
        ("The first job is slow on every GPU: run one job before you start the clock.", _timer(False, True, True)),
        (
            "You timed the launch: wait with gpu.synchronize() before you read the clock again.",
            _timer(False, False, False),
        ),
        ("The first job is slow on every GPU: run one job before you start the clock.", _timer(False, False, True)),
    ],
    also_right=[_timer(True, True, True, runs=5), _timer(True, True, True, runs=100)],
    general_hint="Return seconds for one job: the difference of two gpu.clock() readings, divided by the jobs.",
    tolerance=1e-2,  # launches cost 10 µs each, which an honest timer may count or share among many jobs
)


def _copy_bandwidth(n: int, itemsize_bytes: int, seconds: float) -> float:
    return 2 * n * itemsize_bytes / seconds


COPY_BANDWIDTH = Exercise(
    name="copy_bandwidth",
    task="Return the bytes per second of copying n elements: every byte is read once and written once.",
    reference=_copy_bandwidth,
    cases=[(1, 4, 1.0), (1000, 8, 1e-6), (999_983, 2, 3.7e-4), (2**20, 1, 0.5)],
    known_wrong=[
        ("A copy reads and writes: two bytes cross the bus for each byte copied.", lambda n, size, s: n * size / s),
        ("Elements are not bytes: multiply by itemsize_bytes.", lambda n, size, s: 2 * n / s),
        ("Bytes per second: divide by the seconds.", lambda n, size, s: 2 * n * size * s),
        ("Bytes, not bits.", lambda n, size, s: 16 * n * size / s),
        ("Bytes per second, not GB per second.", lambda n, size, s: 2 * n * size / s / 1e9),
    ],
    also_right=[
        lambda n, size, s: (n * size + n * size) / s,
        lambda n, size, s: sum(n * size for _ in ("read", "write")) / s,
    ],
)


def _speedup_on(threads: int, serial: float) -> float:
    return 1 / (serial + (1 - serial) / threads)


SPEEDUP_ON = Exercise(
    name="speedup_on",
    task="Return how many times faster the work is on this many threads if the share `serial` of it cannot be divided.",
    reference=_speedup_on,
    cases=[(1, 0.3), (2, 0.0), (7, 0.05), (1000, 0.1), (4, 1.0)],
    known_wrong=[
        ("The serial share does not become faster with more threads.", lambda threads, serial: float(threads)),
        (
            "That is the share of the time that is left; the speedup is 1 over it.",
            lambda threads, serial: serial + (1 - serial) / threads,
        ),
        ("The parallel share is 1 - serial.", lambda threads, serial: 1 / (serial + 1 / threads)),
        ("Times add up, speedups do not.", lambda threads, serial: serial + (1 - serial) * threads),
        (
            "It is the parallel share that is divided by the threads.",
            lambda threads, serial: 1 / (serial / threads + 1 - serial),
        ),
    ],
    also_right=[
        lambda threads, serial: threads / (serial * threads + 1 - serial),
        lambda threads, serial: 1.0 / (1.0 - (1.0 - serial) * (1.0 - 1.0 / threads)),
    ],
    general_hint="Call the time on one thread 1. How much of it is left on all threads?",
)


def _passes_to_pay(transfer_s: float, cpu_s: float, gpu_s: float) -> float:
    return math.ceil(transfer_s / (cpu_s - gpu_s)) if gpu_s < cpu_s else math.inf


def _passes_by_loop(transfer_s: float, cpu_s: float, gpu_s: float) -> float:
    if gpu_s >= cpu_s:
        return math.inf
    passes = 0
    while transfer_s + passes * gpu_s > passes * cpu_s:
        passes += 1
    return passes


PASSES_TO_PAY = Exercise(
    name="passes_to_pay",
    task="Return the fewest passes over the data after which the GPU, transfer included, is no slower; else math.inf.",
    reference=_passes_to_pay,
    cases=[
        (1.0, 0.5, 0.25),
        (3.0, 2.0, 1.0),
        (1.0, 0.3125, 0.25),
        (2.0, 0.75, 0.375),
        (0.1, 5.0, 1.0),
        (1.0, 0.2, 0.2),
        (1.0, 0.1, 0.4),
    ],
    known_wrong=[
        ("The GPU needs time for each pass as well: what is saved is cpu_s - gpu_s.", lambda t, c, g: math.ceil(t / c)),
        ("A part of a pass pays for nothing: round up.", lambda t, c, g: t / (c - g) if g < c else math.inf),
        (
            "Where the GPU is not faster, nothing is ever saved: return math.inf.",
            lambda t, c, g: math.ceil(t / (c - g)) if g != c else 0,
        ),
        (
            "Rounding down leaves a rest of the transfer unpaid.",
            lambda t, c, g: t // (c - g) if g < c else math.inf,
        ),
        ("Each pass saves the difference, not the ratio.", lambda t, c, g: math.ceil(t * g / c)),
    ],
    also_right=[_passes_by_loop, lambda t, c, g: math.inf if c <= g else -(-t // (c - g))],
    general_hint="After p passes the CPU has spent p · cpu_s, the GPU transfer_s + p · gpu_s.",
)

EXERCISES = (HONEST_TIME, COPY_BANDWIDTH, SPEEDUP_ON, PASSES_TO_PAY)
