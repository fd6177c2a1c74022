"""What may be drawn: the checks that every figure makes before its first line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from labkit.errors import InputError, check_choice, check_positive
from labkit.measurement import SOURCES, Measurement, Sweep
from labkit.plotting.ticks import Formatter
from labkit.units import format_bytes_per_s, format_count, format_flop_per_s, format_images_per_s

T = TypeVar("T")

RATES: dict[str, tuple[str, Formatter]] = {
    "flop_per_s": ("FLOP per second", format_flop_per_s),
    "bytes_per_s": ("bytes moved per second", format_bytes_per_s),
    "images_per_s": ("images per second", format_images_per_s),
}
RATE_TICKS = {"images_per_s": format_count}  # with the unit, ticks would be too long to stand side by side


def all_of(kind: type[T], given: Iterable[Any], advice: str) -> tuple[T, ...]:
    """Return given as a tuple if it holds at least one thing and nothing but kind, else raise InputError."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InputError(repr(given), f"this is not a list of {kind.__name__}s", advice)
    items = tuple(given)
    if not items:
        raise InputError("nothing", f"a figure needs at least one {kind.__name__}", advice)
    for item in items:
        if not isinstance(item, kind):
            raise InputError(_short(item), f"this is not a {kind.__name__}", advice)
    return items


def sweeps_of(given: Iterable[Any]) -> tuple[Sweep, ...]:
    """Return the sweeps if all go over one parameter, else raise InputError."""
    sweeps = all_of(Sweep, given, "Pass one or more results of sweep(…).")
    parameters = list(dict.fromkeys(sweep.parameter for sweep in sweeps))
    if len(parameters) > 1:
        raise InputError(
            f"sweeps over {' and '.join(parameters)}",
            "one axis cannot show two parameters",
            "Draw them in two figures.",
        )
    return sweeps


def measurements_of(given: Iterable[Any]) -> tuple[Measurement, ...]:
    """Return the measurements, else raise InputError: nothing, or something else, was given."""
    return all_of(Measurement, given, "Pass one or more results of measure(…).")


def spread_in_words(kind: str, sources: Iterable[str]) -> str:
    """Return what a band or whisker reaches over: samples have a middle half, a prediction has a range.

    >>> spread_in_words("band", ["measured", "predicted"])
    '(band: middle half; predicted: range)'
    """
    found = set(sources)
    parts = [f"{kind}: middle half"] if found != {"predicted"} else []
    if "predicted" in found:
        parts.append("predicted: range" if parts else f"{kind}: range of the prediction")
    return f"({'; '.join(parts)})"


def rate_of(measurement: Measurement, quantity: str) -> float | None:
    """Return the rate in quantity's unit per second, or None where the time is implausible.

    Raises InputError if the work of a call is not known.
    """
    work_of(measurement, quantity)
    return getattr(measurement, quantity)


def work_of(measurement: Measurement, quantity: str) -> float:
    """Return the work of one call in quantity's unit: FLOP, bytes or images. Raises InputError if it is not known."""
    task = measurement.task
    name, work, how = {
        "flop_per_s": ("flop", task.flop, "flop=…"),
        "bytes_per_s": ("bytes_moved", task.bytes_moved, "bytes_moved=…"),
        "images_per_s": ("batch", task.parameters.get("batch"), 'parameters={"batch": …}'),
    }[check_choice("quantity", quantity, RATES)]
    if not work or isinstance(work, str | bool):
        advice = f"Say how much one call does when you time it: {how}"
        raise InputError(str(task), f"its throughput is unknown, because its {name} is", advice)
    return work


def listed_rows(name: str, given: Any, example: str) -> tuple[Any, ...]:
    """Return the rows in given as they are. Raises InputError, with an example of a row, if it is no list of rows."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InputError(f"{name}={given!r}", f"{name} is a list of rows", f"Try {name}=[{example}].")
    return tuple(given)


def labelled_rows(name: str, given: Iterable[Any], example: str, *, source: str | None) -> tuple[tuple[Any, ...], ...]:
    """Return rows (label, number, source) from pairs or triples; source fills up the pairs. Raises InputError."""
    rows = []
    for row in listed_rows(name, given, example):
        if (
            not isinstance(row, Sequence)
            or isinstance(row, str)
            or len(row) not in (2, 3)
            or not isinstance(row[0], str)
        ):
            raise InputError(
                f"{name} has {_short(row)}", "a row is a label, a number and its source", f"Try {example}."
            )
        label, value, row_source = *row[:2], row[2] if len(row) == 3 else source
        rows.append((label, value if value is None else check_positive(label, value, zero_ok=True), row_source))
        if row_source is not None:
            check_choice(f"source of {label!r}", row_source, SOURCES)
    return tuple(rows)


def _short(thing: Any) -> str:
    text = repr(thing)
    return text if len(text) <= 80 else f"{text[:77]}..."
