"""What a control offers, told without ipywidgets: its values, how each is written, and where it starts.

A slider is a row of positions, each with a text ("4 KiB", "1.2 ms"). The browser shows the text of the position that
the handle is on while it is still being dragged, which a plain number slider of ipywidgets cannot do with units.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

from labkit.errors import InputError, check_positive, check_text, listed

FLOAT_MAX = sys.float_info.max
MOST_POSITIONS = 1000  # a slider of 300 pixels cannot be set more finely, and the browser gets every text
USUAL_POSITIONS = 200  # where the step is left to us
ROUND_NUMBERS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # about equal factors, as on a list of preferred numbers

Unit = Callable[[Any], str] | str | None


@dataclass(frozen=True)
class Control:
    """The values that a control offers, the text of each, and the position it starts at, None for none.

    kind is "slider", "choice" (a list that drops down), "radio" (all options in view) or "toggle".
    """

    kind: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    start: int | None = 0
    label: str = ""
    description: str = ""

    def position_of(self, name: str, value: Any) -> int:
        """Return the position that holds value; raise InputError that names the nearest one if none does."""
        for position, offered in enumerate(self.values):
            if offered is value or _same(offered, value):
                return position
        if self.kind == "slider" and _is_real(value):
            nearest = min(self.values, key=lambda offered: abs(offered - value))
            advice = f"The nearest one is {nearest!r}."
        else:
            advice = f"It offers {', '.join(self.texts[:20])}."
        raise InputError(f"{name}={value!r}", f"the control {name} does not offer this value", advice)


def slider(
    lo: float,
    hi: float,
    step: float | None = None,
    *,
    value: float | None = None,
    label: str = "",
    unit: Unit = None,
    description: str = "",
) -> Control:
    """Return a slider from lo to hi, both included, in equal steps.

    Whole numbers give whole numbers; without a step a round one is chosen. value is where it starts (lo unless told),
    label stands above the slider (the name of draw's argument unless told), description below it in small print. unit
    is a function that writes a value, such as labkit.units.format_s, or a text such as "threads" that is put behind
    it. Raises InputError for a range that is empty or has over 1000 steps, or a value outside of it.

    >>> slider(0, 1, 0.25, unit="s").texts
    ('0 s', '0.25 s', '0.5 s', '0.75 s', '1 s')
    """
    lo, hi = _check_range(lo, hi)
    step = _round_step(lo, hi) if step is None else check_positive("step", step)
    # Decimal numbers add up to 0.3 where binary ones give 0.30000000000000004.
    first, last, stride = (Decimal(repr(number)) for number in (lo, hi, step))
    count = int((last - first) / stride) + 1
    if count > MOST_POSITIONS:
        problem = f"this slider would have {count:,} positions, {MOST_POSITIONS:,} is the most"
        raise InputError(f"({lo!r}, {hi!r}, {step!r})", problem, "Choose a larger step, or log_slider.")
    whole = all(isinstance(number, int) for number in (lo, hi, step))
    grid = [(int if whole else float)(first + position * stride) for position in range(count)]
    return _row(grid, lo, hi, lo if value is None else value, label, unit, description)


def log_slider(
    lo: float,
    hi: float,
    *,
    factor: float | None = None,
    value: float | None = None,
    label: str = "",
    unit: Unit = None,
    description: str = "",
) -> Control:
    """Return a slider from lo to hi, both included, in equal factors.

    Without a factor it doubles where hi is lo times a power of two, and else goes through round numbers, ten for each
    power of ten. Whole lo and hi give whole numbers. It starts at value, which becomes a position if it is none (the
    middle unless told). The rest is as for slider. Raises InputError unless 0 < lo < hi and factor > 1.

    >>> log_slider(256, 4096).values
    (256, 512, 1024, 2048, 4096)
    >>> log_slider(1e-3, 1e-2, unit="s").values
    (0.001, 0.0012, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01)
    """
    lo, hi = _check_range(check_positive("lo", lo), hi)
    if factor is None and math.log2(hi / lo).is_integer():
        factor = 2
    if factor is None:
        grid = _round_numbers(lo, hi)
    elif (factor := check_positive("factor", factor)) <= 1:
        raise InputError(f"factor={factor!r}", "each step must be larger than the last", "Try factor=2.")
    else:
        count = int(math.log(hi / lo) / math.log(factor) + 1e-9) + 1
        if count > MOST_POSITIONS:
            problem = f"this slider would have {count:,} positions, {MOST_POSITIONS:,} is the most"
            raise InputError(f"factor={factor!r}", problem, "Choose a larger factor.")
        grid = [lo * factor**position for position in range(count)]
    if isinstance(lo, int) and isinstance(hi, int):
        grid = [round(number) for number in grid]
    middle = math.sqrt(lo) * math.sqrt(hi)
    start = min({lo, hi, *grid}, key=lambda number: abs(math.log(number / middle))) if value is None else value
    return _row(grid, lo, hi, start, label, unit, description)


def steps(
    values: Iterable[Any], *, value: Any = None, label: str = "", unit: Unit = None, description: str = ""
) -> Control:
    """Return a slider that goes through values in the order given, and starts at value (the first unless told).

    Raises InputError if there are fewer than two values, or value is none of them.

    >>> steps([16, 100, 1000], value=100).start
    1
    """
    return _offer("slider", _label_values(values, unit), value, label, description, at_least=2)


def choice(
    options: Iterable[Any] | Mapping[str, Any],
    *,
    value: Any = None,
    label: str = "",
    unit: Unit = None,
    description: str = "",
) -> Control:
    """Return a list to choose from: values, or a dict from the text shown to the value; starts at value or the first.

    Raises InputError if there is nothing to choose from, a text comes twice, or value is none of the options.

    >>> choice({"single": "float32", "double": "float64"}, value="float64").start
    1
    """
    if isinstance(options, Mapping):
        pairs = [(str(text), offered) for text, offered in options.items()]
    else:
        pairs = _label_values(options, unit)
    return _offer("choice", pairs, value, label, description, at_least=1)


def toggle(value: bool = False, *, label: str = "", description: str = "") -> Control:
    """Return a box to tick; value tells whether it is ticked at the start.

    >>> toggle(True).start
    1
    """
    if not isinstance(value, bool):
        raise InputError(f"value={value!r}", "a toggle is True or False at the start")
    return Control("toggle", (False, True), ("no", "yes"), int(value), _plain(label), description)


def as_control(name: str, spec: Any) -> Control:
    """Return the control that spec stands for: a Control, (lo, hi), (lo, hi, step), a list, a dict, or True or False.

    Raises InputError if it is none of them.

    >>> as_control("n", (1, 4)).values, as_control("fast", False).kind
    ((1, 2, 3, 4), 'toggle')
    """
    if isinstance(spec, Control):
        return spec
    if isinstance(spec, bool):
        return toggle(spec)
    if isinstance(spec, tuple) and len(spec) in (2, 3) and all(_is_real(part) for part in spec):
        return slider(*spec)
    if isinstance(spec, (list, Mapping, range)):
        return choice(spec)
    advice = "Give (lo, hi), (lo, hi, step), a list, a dict, True or False, or what log_slider and its like return."
    raise InputError(f"{name}={spec!r}", "this does not describe a control", advice)


def _row(grid: list[Any], lo: float, hi: float, start: float, label: str, unit: Unit, description: str) -> Control:
    """Return a slider over the numbers of grid, its two ends and its start, in order and none twice."""
    if not _is_real(start) or not lo <= start <= hi:
        raise InputError(f"value={start!r}", f"the slider goes from {lo!r} to {hi!r}", "Start it between the two.")
    numbers = [lo, hi, start, *grid]
    kind = int if all(hasattr(number, "__index__") for number in numbers) else float
    ordered: list[Any] = []
    for number in sorted(map(kind, numbers)):
        if not ordered or not _same(ordered[-1], number):
            ordered.append(number)
    return _offer("slider", _label_values(ordered, unit), start, label, description, at_least=2)


def _offer(
    kind: str, pairs: list[tuple[str, Any]], value: Any, label: str, description: str, *, at_least: int
) -> Control:
    texts = tuple(text for text, _ in pairs)
    if len(pairs) < at_least:
        raise InputError(f"{list(texts)!r}", f"a {kind} needs at least {at_least} values to offer")
    if kind == "choice" and len(set(texts)) < len(texts):
        raise InputError(
            f"{list(texts)!r}", "two options have the same text", "Name them with a dict: {'text': value}."
        )
    control = Control(kind, tuple(value for _, value in pairs), texts, 0, _plain(label), description)
    start = 0 if value is None else control.position_of("value", value)
    return Control(kind, control.values, texts, start, control.label, description)


def _label_values(values: Iterable[Any], unit: Unit) -> list[tuple[str, Any]]:
    if unit is not None and not callable(unit):
        check_text("unit", unit, empty_ok=True)
    return [(_text(value, unit), value) for value in listed("values", values)]


def _text(value: Any, unit: Unit) -> str:
    if callable(unit):
        return unit(value)
    if isinstance(value, bool) or not _is_real(value):
        text = str(value)
    else:
        text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    return f"{text} {unit}" if unit else text


def _plain(label: str) -> str:
    # ipywidgets 7 takes a label for HTML and 8 for text: only what both show alike may stand in it.
    if not isinstance(label, str) or any(mark in label for mark in "<>&$"):
        raise InputError(f"label={label!r}", "a label is plain text without < > & $", "Put these into the description.")
    return label


def _check_range(lo: float, hi: float) -> tuple[float, float]:
    if not (_is_real(lo) and _is_real(hi) and lo < hi):
        raise InputError(f"({lo!r}, {hi!r})", "a slider goes from a number to a larger one", "Try (1, 100).")
    return tuple(int(number) if hasattr(number, "__index__") else float(number) for number in (lo, hi))


def _round_step(lo: float, hi: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that gives no more than the usual number of positions."""
    width = hi - lo
    whole = isinstance(lo, int) and isinstance(hi, int)
    exponent = math.floor(math.log10(width / USUAL_POSITIONS))
    candidates = (digit * Decimal(10) ** (exponent + more) for more in (0, 1) for digit in (1, 2, 5))
    step = next(step for step in candidates if Decimal(repr(width)) / step <= USUAL_POSITIONS)
    return max(1, int(step)) if whole else float(step)


def _round_numbers(lo: float, hi: float) -> list[float]:
    exponents = range(math.floor(math.log10(lo)), math.ceil(math.log10(hi)) + 1)
    numbers = (float(f"{digits}e{exponent}") for exponent in exponents for digits in ROUND_NUMBERS)
    return [number for number in numbers if lo <= number <= hi]


def _is_real(value: Any) -> bool:
    """Say whether value is a real number, and no whole number that is too large to compare with a float."""
    return isinstance(value, Real) and not isinstance(value, bool) and -FLOAT_MAX <= value <= FLOAT_MAX


def _same(one: Any, other: Any) -> bool:
    if _is_real(one) and _is_real(other):
        return math.isclose(one, other, rel_tol=1e-9)
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # an array has no single answer; then only the very same object counts
        return False
