"""Seconds, bytes and FLOP as people read and write them: three significant digits and a unit."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, NamedTuple

from .errors import InputError, check_positive


class _Unit(NamedTuple):
    symbol: str
    size: Decimal
    starts_at: Decimal  # the smallest value that is written in this unit


_SMALL = {"p": "1e-12", "n": "1e-9", "µ": "1e-6", "m": "1e-3"}
_LARGE = {"": "1", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "P": "1e15", "E": "1e18"}
_BINARY = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}


def _scale(symbol: str, prefixes: dict[str, Any]) -> list[_Unit]:
    return [_Unit(prefix + symbol, Decimal(size), Decimal(size)) for prefix, size in prefixes.items()]


def _from_two(symbol: str, size_s: int) -> _Unit:
    """Return a unit that takes over at two of it: '90 s' reads better than '1.5 min'."""
    return _Unit(symbol, Decimal(size_s), Decimal(2 * size_s))


_TIME = _scale("s", _SMALL | {"": "1"}) + [_from_two("min", 60), _from_two("h", 3600), _from_two("days", 86400)]
_BYTES = _scale("B", _LARGE)
_BYTES_BINARY = _scale("B", _BINARY)
_BYTES_PER_S = _scale("B/s", _LARGE)
_BYTES_PER_S_BINARY = _scale("B/s", _BINARY)
_FLOP = _scale("FLOP", _LARGE)
_FLOP_PER_S = _scale("FLOP/s", _LARGE)
_JOULES = _scale("J", _SMALL | _LARGE)
_HERTZ = _scale("Hz", _LARGE)
_COUNTS = _scale("", {"million": "1e6", "billion": "1e9", "trillion": "1e12"})

_THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)


def _exact(value: Any) -> Decimal:
    """Return the decimal number that the repr of value shows: binary 999.5 µs may lie on either side of its edge."""
    return abs(Decimal(value) if isinstance(value, int) else Decimal(repr(float(value))))


def _digits(value: Decimal) -> str:
    rounded = _THREE_DIGITS.plus(value)
    return f"{rounded.normalize():,f}" if rounded else "0"


def _format(name: str, value: Any, units: list[_Unit]) -> str:
    exact = _exact(check_positive(name, value, zero_ok=True))
    chosen = units[0] if exact else next(unit for unit in units if unit.size == 1)
    for unit in units[1:]:
        rounded = (_THREE_DIGITS.plus(exact / size) * size for size in (chosen.size, unit.size))
        if max(exact, *rounded) < unit.starts_at:
            break
        exact = max(exact, unit.starts_at)  # what rounds up to the next unit becomes one of it: never '1000 µs'
        chosen = unit
    return f"{_digits(exact / chosen.size)} {chosen.symbol}"


def format_s(seconds: float) -> str:
    """Return a duration in seconds as text; raise InputError if it is negative or not finite.

    >>> format_s(3.2e-6), format_s(0.00099995), format_s(90), format_s(7200)
    ('3.2 µs', '1 ms', '90 s', '2 h')
    """
    return _format("seconds", seconds, _TIME)


def format_bytes(n_bytes: float, *, binary: bool = False) -> str:
    """Return a number of bytes as text: GB = 10⁹ bytes, or with binary=True GiB = 2³⁰ bytes; InputError as format_s.

    >>> format_bytes(16e9), format_bytes(2**34, binary=True)
    ('16 GB', '16 GiB')
    """
    return _format("n_bytes", n_bytes, _BYTES_BINARY if binary else _BYTES)


def format_memory(n_bytes: float) -> str:
    """Return a capacity in powers of two, as memory comes: a card of "16 GB" has 16 GiB.

    >>> format_memory(2**34)
    '16 GiB'
    """
    return format_bytes(n_bytes, binary=True)


def format_j(joules: float) -> str:
    """Return an energy in joules as text; InputError as format_s.

    >>> format_j(1350), format_j(0.02)
    ('1.35 kJ', '20 mJ')
    """
    return _format("joules", joules, _JOULES)


def format_flop(flop: float) -> str:
    """Return an amount of floating-point work as text; InputError as format_s.

    >>> format_flop(2 * 1000**3)
    '2 GFLOP'
    """
    return _format("flop", flop, _FLOP)


def format_flop_per_s(flop_per_s: float) -> str:
    """Return a rate of floating-point work as text; InputError as format_s.

    >>> format_flop_per_s(177.2e9)
    '177 GFLOP/s'
    """
    return _format("flop_per_s", flop_per_s, _FLOP_PER_S)


def format_bytes_per_s(bytes_per_s: float) -> str:
    """Return a bandwidth as text, in powers of ten as datasheets do; InputError as format_s.

    >>> format_bytes_per_s(12.34e9)
    '12.3 GB/s'
    """
    return _format("bytes_per_s", bytes_per_s, _BYTES_PER_S)


def format_hz(hertz: float) -> str:
    """Return a clock frequency as text; InputError as format_s.

    >>> format_hz(1590e6)
    '1.59 GHz'
    """
    return _format("hertz", hertz, _HERTZ)


def format_count(count: float) -> str:
    """Return a count as text: whole with separators below a million, then three digits and a word; errors as format_s.

    >>> format_count(262_144), format_count(1_000_000), format_count(16_777_216)
    ('262,144', '1 million', '16.8 million')
    """
    exact = _exact(check_positive("count", count, zero_ok=True))
    if exact < 1000:
        return _digits(exact)
    whole = exact.to_integral_value(ROUND_HALF_UP)
    return f"{whole:,f}" if whole < _COUNTS[0].starts_at else _format("count", count, _COUNTS)


def format_images_per_s(images_per_s: float) -> str:
    """Return a rate of images as text; errors as format_s.

    >>> format_images_per_s(12.34), format_images_per_s(5_432.1)
    ('12.3 images/s', '5,432 images/s')
    """
    return f"{format_count(images_per_s)} images/s"


def format_ratio(ratio: float) -> str:
    """Return a speedup or another ratio as text; raise InputError if it is zero, negative or not finite.

    >>> format_ratio(3.1), format_ratio(1234)
    ('3.1×', '1,230×')
    """
    return f"{_digits(_exact(check_positive('ratio', ratio)))}×"


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> count_of(1, "tensor"), count_of(3, "tensor")
    ('1 tensor', '3 tensors')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def parse_s(text: str) -> float:
    """Return the seconds that a text such as '3 ms' means; raise InputError if it is no duration.

    >>> parse_s("3 ms"), parse_s("2.5 h")
    (0.003, 9000.0)
    """
    return float(_parse(text, _TIME_WORDS, "3 ms"))


def parse_bytes(text: str) -> int:
    """Return the whole bytes that a text such as '16 GiB' (2³⁰) or '16 GB' (10⁹) means; InputError if it is no size.

    >>> parse_bytes("16 GiB"), parse_bytes("16 GB")
    (17179869184, 16000000000)
    """
    return int(_parse(text, _BYTES_WORDS, "16 GiB").to_integral_value(ROUND_HALF_UP))


def parse_bytes_per_s(text: str) -> float:
    """Return the bytes per second that a text such as '12.3 GB/s' means; raise InputError if it is no bandwidth.

    >>> parse_bytes_per_s("12.3 GB/s")
    12300000000.0
    """
    return float(_parse(text, _BYTES_PER_S_WORDS, "12.3 GB/s"))


def parse_hz(text: str) -> float:
    """Return the hertz that a text such as '1590 MHz' means; raise InputError if it is no frequency.

    >>> parse_hz("1590 MHz")
    1590000000.0
    """
    return float(_parse(text, _HERTZ_WORDS, "1590 MHz"))


def parse_flop_per_s(text: str) -> float:
    """Return the FLOP/s that a text such as '177 GFLOP/s' or '8.1 TFLOPS' means; raise InputError if it is no rate.

    >>> parse_flop_per_s("177 GFLOP/s"), parse_flop_per_s("8.1 TFLOPS")
    (177000000000.0, 8100000000000.0)
    """
    return float(_parse(text, _FLOP_PER_S_WORDS, "177 GFLOP/s"))


def _words(*scales: list[_Unit], **aliases: str) -> dict[str, Decimal]:
    """Return size by symbol for every unit of the scales, and for each alias of one of the symbols."""
    sizes = {unit.symbol: unit.size for scale in scales for unit in scale}
    return sizes | {alias: sizes[symbol] for alias, symbol in aliases.items()}


_TIME_WORDS = _words(_TIME, us="µs", sec="s", second="s", seconds="s", minute="min", minutes="min")
_TIME_WORDS |= _words(_TIME, hour="h", hours="h", day="days", d="days")
_BYTES_WORDS = _words(_BYTES, _BYTES_BINARY, KB="kB", byte="B", bytes="B")
_BYTES_PER_S_WORDS = {f"{word}/s": size for word, size in _BYTES_WORDS.items()}
_HERTZ_WORDS = _words(_HERTZ)
_FLOP_PER_S_WORDS = _words(_FLOP_PER_S, _scale("FLOPS", _LARGE))

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+"
_QUANTITY = re.compile(rf"(?P<number>(?:{_NUMBER})(?:[eE][+-]?\d{{1,3}})?)\s*(?P<unit>[^\W\d].*)")


def _parse(text: str, sizes: dict[str, Decimal], example: str) -> Decimal:
    advice = f"Write a number and a unit, such as {example!r}."
    if not isinstance(text, str):
        raise InputError(repr(text), "this is not a text with a number and a unit", advice)
    # Keyboards offer two characters for micro that look the same: the Greek mu and the micro sign.
    match = _QUANTITY.fullmatch(text.strip().replace("\N{GREEK SMALL LETTER MU}", "\N{MICRO SIGN}"))
    if match is None:
        raise InputError(repr(text), "this does not read as a positive number and a unit", advice)
    if match["unit"] not in sizes:
        raise InputError(repr(text), f"{match['unit']!r} is not a unit known here", f"Use one of {', '.join(sizes)}.")
    value = Decimal(match["number"].replace(",", "")) * sizes[match["unit"]]
    if not math.isfinite(float(value)):
        raise InputError(repr(text), "this is too large to be a number", advice)
    return value
