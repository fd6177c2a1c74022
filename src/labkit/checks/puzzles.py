"""A puzzle: a kernel to write. Its check traces the answer and looks at values, then at the budget, then at hazards."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.checks.results import NOT_ATTEMPTED, NOT_YET, RIGHT, CheckResult
from labkit.errors import KernelError, LabkitError
from labkit.simt import Hazard, Trace, cuda, trace
from labkit.simt.source import KernelSource

STEP_LIMIT = 20_000  # loop trips; the puzzles' answers need a few hundred
FIXES = {
    "race": "Put cuda.syncthreads() between the two, where all threads of the block pass it.",
    "race over rounds": "The later one is in the next round of the loop: end each round with cuda.syncthreads().",
    "race over blocks": "No barrier orders two blocks: give each block its own places, or use cuda.atomic.add.",
    "out_of_bounds": "Let only threads whose index lies inside the array touch it.",
    "divergent_barrier": "All threads of the block must pass the same barrier: move it out of the branch or loop.",
    "uninitialised_shared": "Every place must be written, and a barrier passed, before it is read.",
    "uninitialised_local": "Write every place before it is read.",
    "launch_limits": "Make the block's arrays smaller.",
}
WRAPS = "An index below 0 counts from the end, as in Python: treat the first element apart."


@dataclass(frozen=True)
class Launch:
    """One launch that an answer must pass: grid, block, and the arguments by name, the output last as it is before."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: Mapping[str, np.ndarray]

    def copies(self) -> dict[str, np.ndarray]:
        """Return copies of the arguments, for one run."""
        return {name: value.copy() for name, value in self.arguments.items()}

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} of shape {value.shape}" for name, value in self.arguments.items())
        return f"{shapes}; grid {self.grid}, block {self.block}"


@dataclass(frozen=True)
class Limit:
    """A line of the budget: the counters added up and divided by unit, and the most that a launch may have.

    what names the things counted; array restricts the count to one array; advice is what to do where it is exceeded.
    """

    what: str
    counters: tuple[str, ...]
    most: Callable[[Launch], float]
    advice: str
    unit: int = 1
    array: str | None = None

    def spent(self, traced: Trace) -> float:
        """Return what a traced launch spent of it."""
        counted = traced.counters if self.array is None else traced.by_array().get(self.array, {})
        return self._sum(counted)

    def costliest_line(self, traced: Trace) -> int | str:
        """Return the source line that spends most."""
        lines = traced.by_line()
        return max(reversed(lines), key=lambda line: self._sum(lines[line]))  # of equals the last: it is the surplus

    def _sum(self, counted: Mapping[str, float]) -> float:
        return sum(counted.get(name, 0) for name in self.counters) / self.unit


@dataclass(frozen=True)
class Puzzle:
    """A kernel to write: the task in one sentence, a NumPy reference for its last argument, launches, and a budget.

    symptoms pair a hint with a test (got, expected, arguments) of wrong values that have a well-known cause. on is the
    `cuda` that says whether there is a GPU: there an answer also runs for real, once its traces were found clean.
    """

    name: str
    task: str
    reference: Callable[..., np.ndarray]
    launches: Sequence[Launch]
    budget: str
    limits: Sequence[Limit]
    symptoms: Sequence[tuple[str, Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray]], bool]]] = ()
    general_hint: str = "Work this element out by hand: which thread stores it, and what does it read?"
    on: Any = cuda

    @property
    def parameters(self) -> list[str]:
        """The names of the kernel's parameters."""
        return list(self.launches[0].arguments)

    def check(self, answer: Any) -> CheckResult:
        """Return the first thing that answer does not meet, or "right". Never raises."""
        try:
            return self._unreadable(answer) or self._judge(answer)
        except LabkitError as problem:
            return self._not_yet(
                got=f"{problem.given}: {problem.problem}", hint=problem.advice or "Read the line named."
            )
        except Exception as problem:
            return self._not_yet(got=f"{type(problem).__name__}: {problem}", hint="Read the error, then that line.")

    def _unreadable(self, answer: Any) -> CheckResult | None:
        """Return a result for what cannot be traced: nothing, a skeleton, no kernel, other parameters."""
        function = getattr(answer, "py_func", answer)
        if answer is None or answer is Ellipsis:
            return CheckResult(self.name, NOT_ATTEMPTED, hint=f"{self.task} Budget: {self.budget}.")
        if not inspect.isfunction(function):
            hint = "Define it with @cuda.jit and def, and give the kernel itself, without launching it."
            return self._not_yet(expected="a kernel", got=repr(answer)[:80], hint=hint)
        if is_skeleton(function):
            return CheckResult(self.name, NOT_ATTEMPTED, hint=f"{self.task} Budget: {self.budget}.")
        given = list(inspect.signature(function).parameters)
        if len(given) != len(self.parameters):
            expected, hint = f"def {self.name}({', '.join(self.parameters)})", "Keep the parameters of the skeleton."
            return self._not_yet(expected=expected, got=f"({', '.join(given)})", hint=hint)
        return None

    def _judge(self, answer: Any) -> CheckResult:
        runs = []
        for launch in self.launches:
            arguments = launch.copies()
            with contextlib.redirect_stdout(io.StringIO()):  # what a kernel prints would bury the result
                traced = trace(answer, launch.grid, launch.block, *arguments.values(), step_limit=STEP_LIMIT)
            runs.append((launch, arguments, traced))
            problem = self._refused(launch, traced) or self._wrong_values(launch, arguments, traced)
            if problem is not None:
                return problem
        source = KernelSource(getattr(answer, "py_func", answer))
        for launch, _, traced in runs:
            problem = self._over_budget(launch, traced, source)
            if problem is not None:
                return problem
        for launch, _, traced in runs:
            if traced.hazards:
                return self._hazard(launch, traced.hazards[0])
        return self._on_gpu(answer) or CheckResult(self.name, RIGHT)

    def _refused(self, launch: Launch, traced: Trace) -> CheckResult | None:
        return None if traced.counters["blocks"] else self._hazard(launch, traced.hazards[0])

    def _wrong_values(self, launch: Launch, after: Mapping[str, np.ndarray], traced: Trace) -> CheckResult | None:
        *inputs, output = self.parameters
        for name in inputs:
            if not np.array_equal(after[name], launch.arguments[name]):
                place = _first(after[name] != launch.arguments[name])
                change = f"{_element(name, place)} = {after[name][place]}"
                hint = f"{name} is an input: write to {output} or to shared memory only."
                return self._not_yet(str(launch), f"{name} as it was", change, hint)
        expected = self.expected(launch)
        wrong = ~np.isclose(after[output], expected, rtol=1e-5, atol=1e-6)
        if not wrong.any():
            return None
        place = _first(wrong)
        shown = [f"{_element(output, place)} = {values[place]}" for values in (expected, after[output])]
        if after[output][place] == launch.arguments[output][place]:
            shown[1] += ", as before the launch"
        return self._not_yet(str(launch), *shown, self._why_wrong(launch, after[output], expected, wrong, traced))

    def _why_wrong(
        self, launch: Launch, got: np.ndarray, expected: np.ndarray, wrong: np.ndarray, traced: Trace
    ) -> str:
        """Return the likely cause of wrong values, the most telling one first."""
        output, place = self.parameters[-1], _first(wrong)
        outside = [hazard for hazard in traced.hazards if hazard.kind == "out_of_bounds"]
        if outside and not np.isfinite(got[place]):
            return f"{_sentence(outside[0])} {FIXES['out_of_bounds']}"
        if not traced.counters["global_store_requests"] + traced.by_array().get(output, {}).get("atomics", 0):
            return f"Nothing was stored in {output}."
        early = [hazard for hazard in traced.hazards if hazard.kind.startswith("uninitialised")]
        if early:
            return f"{_sentence(early[0])} {FIXES[early[0].kind]}"
        wrapped = [note for note in traced.notes if "negative index" in note.message]
        if wrapped:
            return f"Line {wrapped[0].line}: {WRAPS}"
        for hint, fits in self.symptoms:
            if fits(got, expected, launch.arguments):
                return hint
        before = launch.arguments[output]
        if np.array_equal(got[wrong], before[wrong]):
            return f"No thread stored {_element(output, place)}, which still holds {before[place]}: whose work is it?"
        return self.general_hint

    def _over_budget(self, launch: Launch, traced: Trace, source: KernelSource) -> CheckResult | None:
        for limit in self.limits:
            spent, most = limit.spent(traced), limit.most(launch)
            if spent > most:
                line = limit.costliest_line(traced)
                text = f", `{source.line_text(line)}`" if isinstance(line, int) else ""
                return self._not_yet(
                    str(launch),
                    f"at most {most:,g} {limit.what}",
                    f"{spent:,g} {limit.what}",
                    f"The values are right. Most of it is in line {line}{text}. {limit.advice}",
                )
        return None

    def _hazard(self, launch: Launch, hazard: Hazard) -> CheckResult:
        name = hazard.kind.replace("_", " ")
        return self._not_yet(str(launch), "no hazard", f"{name}: {hazard.message}", _fix(hazard))

    def _on_gpu(self, answer: Any) -> CheckResult | None:
        """Run an answer whose traces are clean on the GPU, where there is one, and compare once more."""
        if not self.on.is_available():
            return None
        kernel = answer if hasattr(answer, "py_func") else self.on.jit(answer)
        for launch in self.launches:
            arrays = [self.on.to_device(value) for value in launch.copies().values()]
            with warnings.catch_warnings():
                warnings.filterwarnings(
                    "ignore", message="Grid size"
                )  # Numba's advice; these grids are small on purpose
                kernel[launch.grid, launch.block](*arrays)
            got, expected = arrays[-1].copy_to_host(), self.expected(launch)
            wrong = ~np.isclose(got, expected, rtol=1e-5, atol=1e-6)
            if wrong.any():
                place, output = _first(wrong), self.parameters[-1]
                shown = [f"{_element(output, place)} = {values[place]}" for values in (expected, got)]
                hint = "The simulator finds it right, your GPU does not. Does it rely on an order of threads?"
                return self._not_yet(f"{launch}, on the GPU", *shown, hint)
        return None

    def expected(self, launch: Launch) -> np.ndarray:
        """Return what the last argument must hold after the launch."""
        return self.reference(*list(launch.copies().values())[:-1])

    def _not_yet(self, given: str = "", expected: str = "", got: str = "", hint: str = "") -> CheckResult:
        return CheckResult(self.name, NOT_YET, given, expected, got, hint)


def _fix(hazard: Hazard) -> str:
    """Return what to do about a hazard. A race with a later line of the text is one with the loop's last round."""
    if hazard.kind == "race" and hazard.scope == "grid":
        return FIXES["race over blocks"]
    if hazard.kind == "race" and hazard.line <= hazard.other_line:
        return FIXES["race over rounds"]
    return FIXES[hazard.kind]


def is_skeleton(function: Callable[..., Any]) -> bool:
    """Say whether a kernel is still to be written: nothing but pass, or an ellipsis left anywhere."""
    try:
        body = KernelSource(function).tree.body
    except KernelError:
        return False  # the trace will say why it cannot be read
    ellipses = [node for node in ast.walk(ast.Module(body, [])) if isinstance(node, ast.Constant)]
    if any(node.value is Ellipsis for node in ellipses):
        return True
    return all(isinstance(node, ast.Pass) or _is_text(node) for node in body)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _first(where: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(where)[0])


def _element(name: str, place: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, place))}]"


def _sentence(hazard: Hazard) -> str:
    return f"{hazard.message[0].upper()}{hazard.message[1:]}."
