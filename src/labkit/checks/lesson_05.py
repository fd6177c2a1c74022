"""The exercises of lesson 05: names without wrappers, what a pickle asks for, equal answers, the slow ones."""

from __future__ import annotations

import collections
import datetime
import math
import pickle
import pickletools
import re
from collections.abc import Sequence
from typing import Any

from labkit.checks import lesson_05_serving
from labkit.checks.exercises import Exercise

# --- names without wrappers ----------------------------------------------------------------------------------------

SEGMENTS = ("module", "_orig_mod")


def _bare_name(name: str) -> str:
    return ".".join(segment for segment in name.split(".") if segment not in SEGMENTS)


def _without_fronts(name: str) -> str:
    """Take wrappers off the front only, as often as there are some."""
    while name.startswith(("module.", "_orig_mod.")):
        name = name.partition(".")[2]
    return name


BARE_NAME = Exercise(
    name="bare_name",
    task='Return the name without the segments "module" and "_orig_mod", wherever between the dots they stand.',
    reference=_bare_name,
    cases=[
        ("module._orig_mod.module.body.module.weight",),
        ("head.bias",),
        ("_orig_mod.module.fc.bias",),
        ("body.module.0._orig_mod.weight",),
        ("submodule.2.weight",),
        ("module.my_orig_mod.module.bias",),
        ("weight",),
        ("_orig_mod.mod.orig.e.weight",),
    ],
    known_wrong=[
        ('"submodule" and "my_orig_mod" only end like a wrapper: compare whole segments between the dots.',
         lambda name: name.replace("module.", "").replace("_orig_mod.", "")),
        ("Compare whole segments: `in` on a text also finds parts of a word. Compare with each name, or use a tuple.",
         lambda name: ".".join(part for part in name.split(".") if part not in "module._orig_mod")),
        ("strip takes off single letters, not words: split the name at its dots.",
         lambda name: name.strip(SEGMENTS[0] + ".").strip(SEGMENTS[1] + ".")),
        ("One wrapper may stand inside the other: take off both, as often as they come.",
         lambda name: name.removeprefix("module.")),
        ("One wrapper may stand inside the other: take off both, as often as they come.",
         lambda name: name.removeprefix("module.").removeprefix("_orig_mod.")),
        ("A wrapper may also stand in the middle of a name.", _without_fronts),
        ("The path through the net is part of the name: keep all other segments.", lambda name: name.split(".")[-1]),
        ("Put the dots back: a name is one text, not a list.",
         lambda name: [part for part in name.split(".") if part not in SEGMENTS]),
    ],
    also_right=[
        lambda name: re.sub(r"(?<![^.])(module|_orig_mod)\.", "", name),
        lambda name: ".".join(filter(lambda part: part != "module" and part != "_orig_mod", name.split("."))),
    ],
    general_hint='Split the name at its dots, leave two of the words out, and join the rest with "." again.',
)  # fmt: skip

# --- what a pickle asks for ----------------------------------------------------------------------------------------


class _Calls:
    """An object that pickle rebuilds by this call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


def _pickled(value: Any) -> tuple[bytes]:
    return (pickle.dumps(value, protocol=2),)


def _asks_for(data: bytes) -> list[str]:
    return [argument for opcode, argument, _ in pickletools.genops(data) if opcode.name == "GLOBAL"]


def _asks_for_by_loop(data: bytes) -> list[Any]:
    found = []
    for step in pickletools.genops(data):
        if step[0].name.startswith("GLOBAL"):
            found += [str(step[1])]
    return found


ASKS_FOR = Exercise(
    name="asks_for",
    task="Return the list of what the GLOBAL steps of a pickle ask for, in their order, without loading it.",
    reference=_asks_for,
    cases=[
        _pickled([collections.OrderedDict(a=1), datetime.date(2026, 1, 2), _Calls(math.sqrt, 2.0)]),
        _pickled({"epoch": 3, "loss": [0.5, 0.25]}),
        _pickled((_Calls(len, "abc"), "GLOBAL", _Calls(abs, -1))),
    ],
    known_wrong=[
        ("Loading runs it. Read its steps instead: for opcode, argument, _ in pickletools.genops(data).",
         lambda data: pickle.loads(data)),
        ("Those are the arguments of all steps; only the GLOBAL ones ask for something from outside.",
         lambda data: [argument for _, argument, _ in pickletools.genops(data)]),
        ("Those are the names of the steps; wanted are the arguments of the GLOBAL ones.",
         lambda data: [opcode.name for opcode, _, _ in pickletools.genops(data)]),
        ("A pickle may ask for more than one thing: return them all.", lambda data: _asks_for(data)[:1]),
        ("The steps come one by one: collect the arguments in a list, and return that.",
         lambda data: set(_asks_for(data))),
        ("Leave each argument as it stands in the pickle.",
         lambda data: [argument.replace(" ", ".") for argument in _asks_for(data)]),
        ("Keep the order in which it asks.", lambda data: sorted(_asks_for(data), reverse=True)),
        ("The step before the function's name is its module: keep the whole argument.",
         lambda data: [name.split(" ")[-1] for name in _asks_for(data)]),
    ],
    also_right=[_asks_for_by_loop, lambda data: [s[1] for s in pickletools.genops(data) if s[0].code == "c"]],
    general_hint='Keep the argument of each step whose opcode.name is "GLOBAL".',
)  # fmt: skip

# --- equal answers -------------------------------------------------------------------------------------------------


def _as_tensors(scores: list[list[float]], others: list[list[float]]) -> tuple[Any, Any]:
    import torch

    return torch.tensor(scores), torch.tensor(others)


def _same_best(scores: Any, others: Any) -> float:
    return (scores.argmax(1) == others.argmax(1)).double().mean().item()


def _same_best_by_loop(scores: Any, others: Any) -> float:
    pairs = zip(scores.tolist(), others.tolist(), strict=True)
    return sum(a.index(max(a)) == b.index(max(b)) for a, b in pairs) / len(scores)


SAME_BEST = Exercise(
    name="same_best",
    task="Return the share of rows, from 0 to 1, whose largest score stands at the same place in both.",
    reference=_same_best,
    make_arguments=_as_tensors,
    cases=[
        (
            [[1.0, 8.0, 9.0], [6.0, 3.0, 4.0], [8.0, 6.0, 7.0], [6.0, 3.0, 0.0], [0.0, 2.0, 4.0]],
            [[1.0, 5.5, 9.0], [6.0, 3.0, 4.0], [8.0, 4.5, 7.0], [6.5, 3.0, 0.0], [0.0, 8.5, 4.0]],
        ),
        ([[0.1, 0.9]], [[0.2, 0.7]]),
        ([[-3.0, -1.0], [4.0, -2.0], [0.5, 0.25]], [[-1.0, -3.0], [4.0, -2.0], [0.25, 0.5]]),
        ([[5.0, 1.0, 2.0]] * 7, [[5.0, 1.0, 2.0]] * 5 + [[1.0, 5.0, 2.0]] * 2),
    ],
    known_wrong=[
        ("The scores differ a little on every machine; ask only where the largest stands.",
         lambda scores, others: (scores == others).double().mean()),
        ("The scores differ a little on every machine; ask only where the largest stands.",
         lambda scores, others: (scores.max(1).values == others.max(1).values).double().mean()),
        ("That counts the equal ones; a share is divided by how many there are.",
         lambda scores, others: (scores.argmax(1) == others.argmax(1)).sum()),
        ("Each input is a row: look for the largest score along dimension 1.",
         lambda scores, others: (scores.argmax(0) == others.argmax(0)).double().mean()),
        ("One number for all rows: the mean.", lambda scores, others: scores.argmax(1) == others.argmax(1)),
        ("That is the share of rows that differ.", lambda scores, others: 1 - _same_best(scores, others)),
        ("The largest, not the smallest score is the answer.", lambda scores, others: _same_best(-scores, -others)),
        ("A share lies between 0 and 1: no percent.", lambda scores, others: 100 * _same_best(scores, others)),
    ],
    also_right=[
        _same_best_by_loop,
        lambda scores, others: sum(scores.argmax(dim=-1) == others.argmax(dim=-1)) / len(scores),
    ],
    general_hint="argmax(1) gives the place of the largest score in each row; compare the two.",
)  # fmt: skip

# --- the slow ones -------------------------------------------------------------------------------------------------


def _percentile(times_s: Sequence[float], q: float) -> float:
    return sorted(times_s)[math.ceil(q * len(times_s) / 100) - 1]


def _percentile_by_counting(times_s: Sequence[float], q: float) -> float:
    return min(t for t in times_s if 100 * sum(other <= t for other in times_s) >= q * len(times_s))


def _percentile_by_numpy(times_s: Sequence[float], q: float) -> float:
    import numpy as np

    return float(np.percentile(times_s, q, method="inverted_cdf"))


def _percentile_between(times_s: Sequence[float], q: float) -> float:
    import numpy as np

    return float(np.percentile(times_s, q))


PERCENTILE = Exercise(
    name="percentile",
    task="Return the smallest of the times that at least q percent of all the times do not exceed.",
    reference=_percentile,
    cases=[
        ([0.009, 0.001, 0.003, 0.002], 50),
        ([0.004, 0.001, 0.003, 0.002], 95),
        ([0.005], 1),
        ([0.002, 0.001, 0.002, 0.009, 0.002, 0.001, 0.003], 30),
        ([n / 1000 for n in range(20, 0, -1)], 95),
        ([n / 1000 for n in range(1, 22)], 95),
        ([0.3, 0.1, 0.2], 100),
    ],
    known_wrong=[
        ("Sort the times first.", lambda times_s, q: times_s[math.ceil(q * len(times_s) / 100) - 1]),
        ("Rank 1 is the first of the list, and that has the place 0.",
         lambda times_s, q: sorted(times_s)[math.ceil(q * len(times_s) / 100)]),
        ("At least q percent: round the rank up.",
         lambda times_s, q: sorted(times_s)[max(int(q * len(times_s) / 100) - 1, 0)]),
        ("From the small end: q percent are at most as large.",
         lambda times_s, q: _percentile([-t for t in times_s], q)),
        ("The answer is one of the times, not a number in between.", _percentile_between),
        ("q is a percentage: divide by 100.", lambda times_s, q: sorted(times_s)[math.ceil(q * len(times_s)) - 1]),
        ("That is a share of the longest time; q percent of the number of times is meant.",
         lambda times_s, q: q / 100 * max(times_s)),
        ("The mean hides the slow ones: sort, and count.", lambda times_s, q: sum(times_s) / len(times_s)),
    ],
    also_right=[_percentile_by_counting, _percentile_by_numpy],
    general_hint="Sorted, the times have ranks 1 to n. The rank wanted is q percent of n, rounded up.",
)  # fmt: skip

EXERCISES = (BARE_NAME, ASKS_FOR, SAME_BEST, PERCENTILE, *lesson_05_serving.EXERCISES)
