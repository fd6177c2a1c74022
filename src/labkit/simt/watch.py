"""Who is told what happens in a kernel. This one, for launches, only stops the kernel where a GPU would fail."""

from __future__ import annotations

import numpy as np

from labkit.errors import KernelError
from labkit.simt.hazards import Element, Who
from labkit.simt.lanes import Lanes, Mask, Value, coordinates
from labkit.simt.memory import Address, DeviceMemory
from labkit.simt.program import Program

PRINTED_LINES = 100


class Watch:
    """Told of every access, branch and barrier; the base class ignores what does not stop a launch."""

    tracing = False

    def __init__(self, program: Program, grid_dim: tuple[int, int, int], block_dim: tuple[int, int, int]) -> None:
        self.program = program
        self.grid_dim = grid_dim
        self.block_dim = block_dim
        self.block_size = block_dim[0] * block_dim[1] * block_dim[2]
        self.printed = 0

    # ---- what a launch does not look at ----

    def load(self, site: int, array: DeviceMemory, at: Address) -> None:
        """Each active lane is about to read a cell."""

    def store(self, site: int, array: DeviceMemory, at: Address, value: Value) -> None:
        """Each active lane is about to write its value to a cell."""

    def atomic(self, site: int, array: DeviceMemory, at: Address) -> None:
        """Each active lane is about to update a cell atomically."""

    def count(self, site: int, mask: Mask) -> None:
        """A statement is executed."""

    def count_operand(self, site: int, mask: Mask) -> None:
        """A guarded operand of a statement is evaluated."""

    def branch(self, site: int, mask: Mask, taken: Mask) -> None:
        """A condition has been evaluated."""

    def barrier(self, site: int, lanes: Lanes, blocks: np.ndarray) -> None:
        """These blocks (booleans, by place in the batch) have passed a barrier."""

    def syncwarp(self, site: int, mask: Mask) -> None:
        """These lanes have synchronised within their warps."""

    def warp_function(self, site: int, mask: Mask, kind: str) -> None:
        """A shuffle or a vote is executed."""

    def note(self, site: int, what: str) -> None:
        """Something legal happened that is worth knowing."""

    def negative_index(self, site: int, array: DeviceMemory) -> None:
        """Some lanes use a negative index, which counts from the end."""

    def new_array(self, array: DeviceMemory) -> None:
        """A shared or local array has been made."""

    def new_view(self, array: DeviceMemory, views: list[DeviceMemory]) -> None:
        """The dynamic shared memory is used under one more type; `views` are all of them."""

    # ---- what stops a launch ----

    def out_of_bounds(
        self, site: int, array: DeviceMemory, mask: Mask, bad: np.ndarray, index: tuple[Value, ...]
    ) -> None:
        """Some lanes use an index that the array does not have."""
        lane = int(bad.argmax())
        self.stop(site, self.who(mask.lanes, lane), describe_out_of_bounds(array, index, lane))

    def divergent_barrier(self, site: int, lanes: Lanes, waiting: np.ndarray, missing: np.ndarray, why: str) -> None:
        """Some threads wait at a barrier that others of their block do not reach."""
        self.stop(site, self.who(lanes, int(waiting.argmax())), f"it waits at a barrier, but {why}")

    def failed_assertion(self, site: int, mask: Mask, message: str) -> None:
        """Some lanes fail an assert."""
        who = self.who(mask.lanes, int(mask.active.argmax()))
        self.stop(site, who, f"its assertion fails{f': {message}' if message else ''}")

    def stop(self, site: int, who: Who, problem: str) -> None:
        """Raise KernelError with the line and the thread."""
        place = self.program.sites[site]
        given = f"{place.function}, line {place.line}: `{place.text}`"
        advice = "Use simt.trace(kernel, grid, block, …) to see every such place."
        raise KernelError(given, f"in {who} {problem}", advice)

    # ---- helpers ----

    def who(self, lanes: Lanes, lane: int) -> Who:
        """Return which thread a lane is."""
        return self.who_in_grid(lanes.first_thread_in_grid + lane)

    def who_in_grid(self, thread_in_grid: int) -> Who:
        """Return which thread has this number over the grid."""
        block, thread = divmod(int(thread_in_grid), self.block_size)
        return Who(coordinates(thread, self.block_dim), coordinates(block, self.grid_dim))

    def say(self, text: str) -> None:
        """Print a line of the kernel's own output, up to a limit."""
        self.printed += 1
        if self.printed <= PRINTED_LINES:
            print(text)
        elif self.printed == PRINTED_LINES + 1:
            print(f"… the kernel prints more than {PRINTED_LINES} lines; the rest is not shown")


def describe_index(index: tuple[Value, ...], lane: int) -> tuple[int, ...]:
    """Return one lane's index as Python integers."""
    return tuple(int(i[lane]) if isinstance(i, np.ndarray) else int(i) for i in index)


def describe_out_of_bounds(array: DeviceMemory, index: tuple[Value, ...], lane: int) -> str:
    """Say which element one lane asks for and what the array has."""
    element = Element(array.name, describe_index(index, lane))
    shape = ", ".join(str(int(n)) for n in array.shape)
    return f"{element} is out of bounds: {array.name} has shape ({shape}{',' * (len(array.shape) == 1)})"
