"""Every puzzle accepts right answers of different style, and rejects wrong ones with the kind of hint they deserve."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from labkit import checks
from labkit.checks import NOT_ATTEMPTED, NOT_YET, RIGHT, CheckResult, Launch, Puzzle
from labkit.checks.lesson_04_puzzles import PUZZLES
from labkit.simt import cuda

from .answers import maps, tiles, together  # their import fills the register
from .answers.register import ANSWERS, Answer

BY_NAME = {puzzle.name: puzzle for puzzle in PUZZLES}
RIGHT_ONES = [answer for answer in ANSWERS if not answer.kind]
WRONG_ONES = [answer for answer in ANSWERS if answer.kind]
every_puzzle = pytest.mark.parametrize("puzzle", PUZZLES, ids=lambda puzzle: puzzle.name)


def names(answers: list[Answer]) -> list[str]:
    return [f"{answer.puzzle}-{answer.kernel.__name__}" for answer in answers]


def kind_of(result: CheckResult) -> str:
    """Tell from the result's shape what was found wrong."""
    if result.expected.startswith("at most "):
        return "budget"
    if result.expected == "no hazard":
        return "hazard"
    return "values" if result.expected else "refused"


def test_there_are_eight_puzzles_with_enough_answers_each() -> None:
    assert len(PUZZLES) >= 8
    for puzzle in PUZZLES:
        assert sum(answer.puzzle == puzzle.name for answer in RIGHT_ONES) >= 3
        wrong = [answer for answer in WRONG_ONES if answer.puzzle == puzzle.name]
        assert len(wrong) >= 6
        assert {"values", "budget", "hazard"} <= {answer.kind for answer in wrong}


@pytest.mark.parametrize("answer", RIGHT_ONES, ids=names(RIGHT_ONES))
def test_right_answers_of_any_style_are_accepted(answer: Answer) -> None:
    assert BY_NAME[answer.puzzle].check(cuda.jit(answer.kernel)) == CheckResult(answer.puzzle, RIGHT)


# C07-04: a barrier that not all threads reach is found without a GPU.
@pytest.mark.parametrize("answer", WRONG_ONES, ids=names(WRONG_ONES))
def test_wrong_answers_are_rejected_with_the_hint_they_deserve(answer: Answer) -> None:
    result = BY_NAME[answer.puzzle].check(cuda.jit(answer.kernel))
    assert (result.status, kind_of(result)) == (NOT_YET, answer.kind), result
    assert answer.says in f"{result.got}\n{result.hint}", result
    assert result.hint


@every_puzzle
def test_an_answer_fitted_to_one_launch_is_rejected(puzzle: Puzzle) -> None:
    for launch in puzzle.launches:
        result = puzzle.check(kernel_fitted_to(puzzle.expected(launch), launch))
        assert (result.status, kind_of(result)) == (NOT_YET, "values"), result


def kernel_fitted_to(values: np.ndarray, launch: Launch) -> Any:
    """A kernel that stores these values, whatever it is given."""
    fitted, n = values.ravel(), values.size

    def vector(x, out):
        if cuda.grid(1) == 0 and x.size >= 0:
            for i in range(min(n, out.size)):
                out[i] = fitted[i]

    def plane(a, out):
        x, y = cuda.grid(2)
        if x == 0 and y == 0:
            for i in range(min(n, out.size)):
                out[i // out.shape[1], i % out.shape[1]] = fitted[i]

    def product(a, b, out):
        x, y = cuda.grid(2)
        if x == 0 and y == 0:
            for i in range(min(n, out.size)):
                out[i // out.shape[1], i % out.shape[1]] = fitted[i]

    return product if len(launch.arguments) == 3 else plane if len(launch.grid) == 2 else vector


# --- the launches: awkward, and what the references say by other means ------------------------------------------------


@every_puzzle
def test_launches_are_awkward_and_the_same_every_time(puzzle: Puzzle) -> None:
    sizes = {tuple(value.shape for value in launch.arguments.values()) for launch in puzzle.launches}
    assert len(sizes) == len(puzzle.launches) >= 5
    assert any(all(n == 1 for n in next(iter(launch.arguments.values())).shape) for launch in puzzle.launches)
    covered = [np.prod(launch.grid) * np.prod(launch.block) for launch in puzzle.launches]
    outputs = [launch.arguments[puzzle.parameters[-1]].size for launch in puzzle.launches]
    assert sum(threads != size for threads, size in zip(covered, outputs, strict=True)) >= 3


def test_references_agree_with_plain_loops() -> None:
    by_hand: dict[str, Any] = {
        "guarded_map": lambda x: [v + 10 for v in x],
        "map_2d": lambda a: [[a[r, c] + 100 * r + c for c in range(a.shape[1])] for r in range(a.shape[0])],
        "stride_fix": lambda x: [v + v for v in x],
        "stencil": lambda x: [sum(x[j] for j in (i - 1, i, i + 1) if 0 <= j < len(x)) for i in range(len(x))],
        "tiled_matmul": lambda a, b: [
            [sum(a[r, k] * b[k, c] for k in range(len(b))) for c in range(b.shape[1])] for r in range(len(a))
        ],
        "conflict_free_transpose": lambda a: [[a[r, c] for r in range(a.shape[0])] for c in range(a.shape[1])],
        "block_sum": lambda x: [sum(x[i : i + 128]) for i in range(0, len(x), 128)],
        "histogram": lambda x: [Counter(x.tolist())[value] for value in range(16)],
    }
    assert by_hand.keys() == BY_NAME.keys()
    for puzzle in PUZZLES:
        for launch in puzzle.launches:
            *inputs, _ = launch.copies().values()
            np.testing.assert_array_equal(puzzle.expected(launch), by_hand[puzzle.name](*inputs))


# --- what is no answer ------------------------------------------------------------------------------------------------


def skeleton_with_ellipsis(x, out):
    s = cuda.shared.array(8, np.float32)  # noqa: F841
    ...


def skeleton_with_pass(x, out):
    """A text says what to do."""
    pass


@pytest.mark.parametrize("answer", [None, ..., skeleton_with_ellipsis, skeleton_with_pass])
def test_skeletons_are_not_attempted(answer: Any) -> None:
    for given in (answer, cuda.jit(answer)) if callable(answer) else (answer,):
        result = BY_NAME["guarded_map"].check(given)
        assert result.status == NOT_ATTEMPTED
        assert result.hint.startswith(BY_NAME["guarded_map"].task)
        assert result.hint.endswith("Budget: 1 load and 1 store per output, no hazard.")


def too_many_parameters(x, y, out):
    out[0] = x[0] + y[0]


def takes_a_huge_tile(x, out):
    s = cuda.shared.array(100_000, np.float32)
    s[0] = x[0]
    out[0] = s[0]


def prints(x, out):
    i = cuda.grid(1)
    print(i)
    if i < out.size:
        out[i] = x[i] + 10


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (7, "Define it with @cuda.jit"),
        ("text", "Define it with @cuda.jit"),
        (max, "Define it with @cuda.jit"),
        (too_many_parameters, "Keep the parameters of the skeleton"),
        (takes_a_huge_tile, "Make the block's arrays smaller"),
        (eval("lambda x, out: 1"), "Define it in a notebook cell"),
    ],
)
def test_what_is_no_kernel_is_said_without_raising(answer: Any, says: str) -> None:
    result = BY_NAME["guarded_map"].check(answer)
    assert result.status == NOT_YET
    assert says in result.hint


def test_what_a_kernel_prints_does_not_bury_the_result(capsys: pytest.CaptureFixture) -> None:
    assert BY_NAME["guarded_map"].check(prints).right
    assert capsys.readouterr().out == ""


def test_a_failure_inside_the_check_is_shown_and_not_raised() -> None:
    def fails(x: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("division by zero")

    broken = dataclasses.replace(BY_NAME["guarded_map"], reference=fails)
    result = broken.check(maps.map_with_guard)
    assert (result.status, result.got) == (NOT_YET, "ZeroDivisionError: division by zero")


# --- the order of the answers -----------------------------------------------------------------------------------------


def wrong_in_three_ways(x, out):
    i = cuda.grid(1)
    if i <= out.size:
        out[i] = x[i] + x[i]


def over_budget_and_unguarded(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + 5 + (x[i] - x[i]) + 5


def test_values_come_before_budget_and_budget_before_hazards() -> None:
    puzzle = BY_NAME["guarded_map"]
    assert kind_of(puzzle.check(wrong_in_three_ways)) == "values"
    assert kind_of(puzzle.check(over_budget_and_unguarded)) == "budget"
    assert kind_of(puzzle.check(maps.map_without_guard)) == "hazard"


def test_a_wrong_value_names_the_element_and_both_values() -> None:
    result = BY_NAME["guarded_map"].check(maps.map_constant)
    x = BY_NAME["guarded_map"].launches[0].arguments["x"]
    place = next(i for i, value in enumerate(x) if value + 10 != 12)
    assert result.expected == f"out[{place}] = {x[place] + 10}"
    assert result.got == f"out[{place}] = 12.0"  # and not "as before the launch"
    assert result.given.startswith("x of shape (100,), out of shape (100,); grid (4,), block (32,)")


def test_an_exceeded_budget_names_the_line() -> None:
    result = BY_NAME["stencil"].check(tiles.stencil_from_global_memory)
    # 200 elements, each loaded by itself and by up to two neighbours: 3 * 200 - 2.
    assert (result.expected, result.got) == (
        "at most 208 values loaded from global memory",
        "598 values loaded from global memory",
    )
    first = tiles.stencil_from_global_memory.__code__.co_firstlineno
    assert f"line {first + 4}, `total = x[i]`" in result.hint


def test_a_race_names_both_threads_and_lines() -> None:
    result = BY_NAME["histogram"].check(together.count_without_second_barrier)
    first = together.count_without_second_barrier.__code__.co_firstlineno
    assert f"in line {first + 8}" in result.got
    assert f"in line {first + 10}" in result.got
    assert result.got.count("thread") >= 2


# C07-11
def test_padding_with_the_old_stride_is_told() -> None:
    puzzle = BY_NAME["conflict_free_transpose"]
    padded = puzzle.check(together.turn_padded_with_the_old_stride)
    unpadded = puzzle.check(next(a.kernel for a in WRONG_ONES if a.says.startswith("a column lies")))
    assert padded.got == unpadded.got  # not one conflict less
    assert "Use 33, in the index, too" in padded.hint


# --- on a GPU ---------------------------------------------------------------------------------------------------------


class FakeGpu:
    """Stands for `cuda` on a machine with a GPU: launches run in the simulator and are counted."""

    def __init__(self, spoil: float = 0.0) -> None:
        self.launches = 0
        self.spoil = spoil

    def is_available(self) -> bool:
        return True

    def to_device(self, array: np.ndarray) -> Any:
        return cuda.to_device(array + array.dtype.type(self.spoil))

    def jit(self, function: Any) -> Any:
        fake = self

        class Counted:
            def __getitem__(self, configuration: Any) -> Any:
                fake.launches += 1
                return cuda.jit(function)[configuration]

        return Counted()


# C07-04
@pytest.mark.parametrize("answer", WRONG_ONES, ids=names(WRONG_ONES))
def test_no_unclean_answer_reaches_a_gpu(answer: Answer) -> None:
    gpu = FakeGpu()
    dataclasses.replace(BY_NAME[answer.puzzle], on=gpu).check(answer.kernel)
    assert gpu.launches == 0


def test_a_clean_answer_is_launched_on_the_gpu_and_compared() -> None:
    gpu, puzzle = FakeGpu(), BY_NAME["guarded_map"]
    assert dataclasses.replace(puzzle, on=gpu).check(maps.map_with_guard).right
    assert gpu.launches == len(puzzle.launches)


def test_other_values_on_the_gpu_are_told() -> None:
    result = dataclasses.replace(BY_NAME["guarded_map"], on=FakeGpu(spoil=1.0)).check(maps.map_with_guard)
    assert result.status == NOT_YET
    assert result.given.endswith("on the GPU")
    assert "your GPU does not" in result.hint


def test_a_launch_leaves_its_arguments_alone() -> None:
    launch = BY_NAME["guarded_map"].launches[0]
    assert isinstance(launch, Launch)
    launch.copies()["x"][:] = 0
    assert launch.arguments["x"].any()


def sized_by_argument(x, out):
    n = x.size
    s = cuda.shared.array(n, np.float32)
    i = cuda.grid(1)
    if i < out.size:
        s[i] = x[i]
        out[i] = s[i] + 10


# C07-01
def test_a_shared_shape_from_an_argument_is_refused_with_the_reason() -> None:
    result = BY_NAME["guarded_map"].check(sized_by_argument)
    assert (result.status, kind_of(result)) == (NOT_YET, "refused")
    assert "line" in result.got and "constant" in f"{result.got} {result.hint}"


def test_every_puzzle_stands_in_its_lesson() -> None:
    assert {puzzle.name for puzzle in PUZZLES} < {exercise.name for exercise in checks.EXERCISES["04"]}
