"""Trace a kernel: run it on the CPU, count what it does, and find what a GPU would not forgive."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from labkit.errors import InputError, KernelError, check_choice, check_positive
from labkit.simt.counters import LineCounts, summarise
from labkit.simt.hazards import Hazard
from labkit.simt.lanes import WARP_SIZE
from labkit.simt.launch import (
    DEFAULT_STEP_LIMIT,
    Arguments,
    Kernel,
    broken_limits,
    check_bytes,
    normalise_dim,
)
from labkit.simt.machine import Run
from labkit.simt.memory import DeviceMemory
from labkit.simt.observer import Observer
from labkit.simt.program import Program
from labkit.simt.races import Shadow
from labkit.simt.recording import Access, Recorder, Step

SCHEDULES = ("lockstep", "interleaved")


@dataclass(frozen=True)
class Note:
    """Something that is legal but worth knowing: what, in which line, and in how many accesses."""

    message: str
    line: int
    count: int

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class Trace:
    """What a kernel did: counters, hazards and notes. The counters are defined in labkit.simt.counters."""

    def __init__(
        self, run: Run, observer: Observer, kernel_name: str, snapshot: Arguments | None, schedule: str, seed: int
    ) -> None:
        self.kernel_name = kernel_name
        self.grid_dim = run.grid_dim
        self.block_dim = run.block_dim
        self.block_size = observer.block_size
        self.dynamic_shared_bytes = run.dynamic_shared_bytes
        self.static_shared_bytes = sum(run.program.shared_bytes.values())
        self.schedule = schedule
        self.seed = seed
        self._sites = run.program.sites
        self._source = run.program.source
        self._tallies = observer.tallies
        self._lines = observer.lines
        self._run = run
        self._snapshot = snapshot  # the arguments as they were; None if the kernel was not run
        run.arguments = ()  # a trace may live long: it keeps no memory that the kernel used
        for tally in self._tallies.values():
            tally.forget()
        self.hazards: tuple[Hazard, ...] = tuple(observer.hazards)
        self.notes: tuple[Note, ...] = tuple(
            Note(message, self._sites[site].line, count) for (site, message), count in observer.notes.items()
        )
        self.counters: Mapping[str, float] = MappingProxyType(self._launch_counters() | self._count())

    def _launch_counters(self) -> dict[str, float]:
        blocks = 0 if self._snapshot is None else math.prod(self.grid_dim)
        return {"blocks": blocks, "threads": blocks * self.block_size, "warps": blocks * self._warps_per_block}

    @property
    def _warps_per_block(self) -> int:
        return -(-self.block_size // WARP_SIZE)

    def _count(self, keep: Callable[[int], bool] = lambda site: True, array: str | None = None) -> dict[str, float]:
        tallies = [t for (site, *_), t in self._tallies.items() if keep(site) and array in (None, t.array)]
        lines: Iterable[tuple[LineCounts, tuple]] = [
            (counts, self._sites[site].flop) for site, counts in self._lines.items() if keep(site) and array is None
        ]
        return summarise(tallies, lines)

    def by_line(self) -> dict[int | str, dict[str, float]]:
        """Return the counters per source line (of a device function in another file: "name:line")."""
        lines: dict[int | str, set[int]] = {}
        for site in sorted({*self._lines, *(key[0] for key in self._tallies)}, key=lambda s: self._sites[s].line):
            lines.setdefault(self._run.program.line_key(site), set()).add(site)
        return {line: self._count(sites.__contains__) for line, sites in lines.items()}

    def by_array(self) -> dict[str, dict[str, float]]:
        """Return the memory counters per array."""
        return {name: self._count(array=name) for name in dict.fromkeys(t.array for t in self._tallies.values())}

    def accesses(self, line: int | str | None = None, warp: int = 0) -> tuple[Access, ...]:
        """Return what a warp (numbered over the grid) touched at each execution of a line, or of all lines.

        The warp's block is simulated anew on a copy of the arguments as they were, in step, without the other blocks.
        """
        steps = self.steps([warp], line=line)[int(warp)]
        return tuple(step for step in steps if isinstance(step, Access))

    def steps(
        self, warps: Iterable[int] = (0,), *, line: int | str | None = None, limit: int | None = None
    ) -> dict[int, tuple[Step, ...]]:
        """Return, for each of these warps, all it did in order: accesses, branches, barriers, indices out of bounds.

        Each block concerned is simulated once more, as for accesses. line: keep the steps of this line only, None for
        all. limit: the most steps to keep of each warp.
        """
        by_block: dict[int, list[int]] = {}
        for warp in warps:
            block, warp_in_block = divmod(self._check_warp(warp), self._warps_per_block)
            by_block.setdefault(block, []).append(warp_in_block)
        steps: dict[int, tuple[Step, ...]] = {}
        for block, places in by_block.items():
            watch = Observer(self._run.program, self.grid_dim, self.block_dim)
            first = block * self._warps_per_block
            watch.recorder = recorder = Recorder(self._run.program, places, first, line=line, limit=limit)
            watch.say = lambda text: None
            again = replace(self._run, watch=watch, arguments=self._snapshot.copy().open(watch)[0])
            again.lockstep(range(block, block + 1))
            steps |= {first + place: tuple(done) for place, done in recorder.steps.items()}
        return steps

    def _check_warp(self, warp: int) -> int:
        count = self.counters["warps"]
        if isinstance(warp, bool) or not isinstance(warp, int | np.integer) or not 0 <= warp < count:
            raise InputError(f"warp={warp!r}", f"the launch has {count:,} warps, numbered from 0")
        return int(warp)

    def source(self) -> dict[int | str, str]:
        """Return the text of the kernel and of the device functions that it calls, by line as in by_line."""
        texts: dict[int | str, str] = {}
        for source in dict.fromkeys((self._source, *self._run.program.sources.values())):
            lines = textwrap.dedent("".join(source.lines)).splitlines()
            for number, text in enumerate(lines, source.first_line):
                texts[self._run.program.line_key_of(source, number)] = text
        return texts

    def __repr__(self) -> str:
        c = self.counters
        lines = [
            f"Trace of {self.kernel_name}[{self.grid_dim}, {self.block_dim}], simulated ({self.schedule}): "
            f"{c['blocks']:,} blocks, {c['warps']:,} warps, {c['threads']:,} threads"
        ]
        for kind in ("load", "store"):
            lines.append(
                f"  global {kind}s: {c[f'global_{kind}_requests']:,} requests, {c[f'global_{kind}_sectors']:,} sectors "
                f"({c[f'global_{kind}_sectors_per_request']:.2f} per request), {c[f'global_{kind}_bytes']:,} bytes"
            )
        for kind in ("load", "store"):
            if c[f"shared_{kind}_requests"]:
                lines.append(
                    f"  shared {kind}s: {c[f'shared_{kind}_requests']:,} requests, "
                    f"{c[f'shared_{kind}_wavefronts']:,} wavefronts, "
                    f"{c[f'shared_{kind}_bank_conflicts']:,} bank conflicts"
                )
        lines.append(
            f"  {c['barriers']:,} barriers, {c['branches']:,} branches ({c['divergent_branches']:,} divergent), "
            f"{c['mean_active_lanes']:.1f} active lanes, {c['flop']:,} FLOP, {c['arithmetic_intensity']:.3g} FLOP/byte"
        )
        lines += [f"  hazard: {hazard}" for hazard in self.hazards] or ["  no hazards"]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def as_kernel(kernel: Any) -> Kernel:
    """Return ours, Numba's or a plain function as a kernel of the simulator."""
    kernel = getattr(kernel, "simulated", kernel)
    if isinstance(kernel, Kernel):
        return kernel
    function = getattr(kernel, "py_func", kernel)
    if not callable(function) or not hasattr(function, "__code__"):
        raise KernelError(f"{kernel!r}", "this is no kernel", "Give trace a function decorated with @cuda.jit.")
    return Kernel(function)


def trace(
    kernel: Any,
    grid: Any,
    block: Any,
    *args: Any,
    shared_bytes: int = 0,
    schedule: str = "lockstep",
    seed: int = 0,
    step_limit: int = DEFAULT_STEP_LIMIT,
) -> Trace:
    """Run a kernel on the CPU as a launch would, changing the arrays, and return what it did.

    kernel: decorated with @cuda.jit (ours or Numba's), or its Python function. grid, block: one to three integers.
    shared_bytes: dynamic shared memory per block. schedule: "lockstep" runs all threads in step; "interleaved" runs the
    warps one after another between barriers in an order drawn from seed, so that a race may show another wrong answer.
    step_limit: loop trips after which a kernel counts as endless (KernelError).

    A hazard is recorded, never raised. Where a GPU would refuse the launch, the kernel is not run. KernelError for code
    that kernels may not contain; InputError for a senseless grid or block.

    >>> from labkit.simt import cuda
    >>> @cuda.jit
    ... def double(x):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         x[i] = x[i] * 2
    >>> x = np.arange(100, dtype=np.float32)
    >>> result = trace(double, 4, 32, x)
    >>> result.counters["global_load_requests"], result.counters["flop"], result.hazards
    (4, 100, ())
    """
    check_choice("schedule", schedule, SCHEDULES)
    check_positive("step_limit", step_limit)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed={seed!r}", "a seed is a whole number, 0 or above")
    grid_dim, block_dim = normalise_dim("grid", grid), normalise_dim("block", block)
    simulated = as_kernel(kernel)
    arguments = simulated.bind(args)
    program = simulated.program(arguments.types)
    arguments.require_writeable(program.stored)
    observer = Observer(program, grid_dim, block_dim)
    run = Run(program, grid_dim, block_dim, (), check_bytes(shared_bytes), observer, int(step_limit))
    problems = broken_limits(grid_dim, block_dim, run.dynamic_shared_bytes, program)
    for problem in problems:
        observer.hazards.add(Hazard("launch_limits", "grid", problem, line=program.source.first_line))
    snapshot = None
    if not problems:
        snapshot = arguments.copy()
        run.arguments, write_back = arguments.open(observer)
        _watch_for_races(program, arguments, run.arguments)
        try:
            run.interleaved(seed) if schedule == "interleaved" else run.lockstep()
        finally:
            write_back()
    return Trace(run, observer, simulated.__name__, snapshot, schedule, seed)


def _watch_for_races(program: Program, arguments: Arguments, opened: list[Any]) -> None:
    """Give a shadow to every array that the kernel may write; arguments that overlap in memory share one."""
    named = zip(arguments.names, opened, strict=True)
    arrays = [(m.cells.ctypes.data, m, name) for name, m in named if isinstance(m, DeviceMemory)]
    arrays.sort(key=lambda entry: entry[0])
    group: list[tuple[int, DeviceMemory, str]] = []
    for entry in [*arrays, None]:
        if entry is not None and (not group or entry[0] < max(start + m.cells.nbytes for start, m, _ in group)):
            group.append(entry)
            continue
        if any(name in program.stored for _, _, name in group):
            _share_shadow(group)
        group = [entry] if entry is not None else []


def _share_shadow(group: list[tuple[int, DeviceMemory, str]]) -> None:
    first = group[0][0]
    end = max(start + memory.cells.nbytes for start, memory, _ in group)
    unit = math.gcd(*(memory.cells.itemsize for _, memory, _ in group), *(start - first for start, _, _ in group))
    shadow = Shadow((end - first) // unit, "global")
    for start, memory, _ in group:
        memory.shadow = shadow
        memory.shadow_offset = (start - first) // unit
        memory.shadow_units = memory.cells.itemsize // unit
