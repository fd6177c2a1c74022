import math
import random

import pytest

from labkit import units
from labkit.errors import InputError

FORMATTERS = [
    units.format_s,
    units.format_bytes,
    units.format_flop,
    units.format_flop_per_s,
    units.format_bytes_per_s,
    units.format_hz,
    units.format_j,
    units.format_count,
    units.format_ratio,
]
PAIRS = [
    (units.format_s, units.parse_s, (-12, 7.9)),
    (units.format_bytes, units.parse_bytes, (0, 20.9)),
    (lambda n: units.format_bytes(n, binary=True), units.parse_bytes, (0, 20.9)),
    (units.format_flop_per_s, units.parse_flop_per_s, (0, 20.9)),
    (units.format_bytes_per_s, units.parse_bytes_per_s, (0, 20.9)),
    (units.format_hz, units.parse_hz, (0, 20.9)),
]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-0.0, "0 s"),
        (3.2e-6, "3.2 µs"),
        (1e-9, "1 ns"),
        (1.234e-9, "1.23 ns"),
        (0.63e-9, "630 ps"),
        (0.001, "1 ms"),
        (0.12345, "123 ms"),
        (1, "1 s"),
        (59.94, "59.9 s"),
        (90, "90 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (3600, "60 min"),
        (2.5 * 3600, "2.5 h"),
        (36 * 3600, "36 h"),
        (3 * 86400, "3 days"),
        (365 * 86400, "365 days"),
    ],
)
def test_seconds_are_written_as_people_read_them(seconds, text):
    assert units.format_s(seconds) == text


@pytest.mark.parametrize("unit_s, symbol, larger", [(1e-12, "ps", "ns"), (1e-9, "ns", "µs"), (1e-6, "µs", "ms")])
def test_what_rounds_up_to_the_next_unit_is_written_in_it(unit_s, symbol, larger):
    assert units.format_s(float(f"{999.4 * unit_s:.6g}")) == f"999 {symbol}"
    assert units.format_s(float(f"{999.5 * unit_s:.6g}")) == f"1 {larger}"
    assert units.format_s(float(f"{999.95 * unit_s:.6g}")) == f"1 {larger}"
    assert units.format_s(float(f"{1000 * unit_s:.6g}")) == f"1 {larger}"


def test_rounding_edges_above_a_second():
    assert units.format_s(0.9996) == "1 s"
    assert units.format_s(119.6) == "2 min"  # 120 s would be the same time in another unit
    assert units.format_s(119.6 * 60) == "2 h"
    assert units.format_s(47.96 * 3600) == "2 days"


@pytest.mark.parametrize(
    ("n_bytes", "decimal", "binary"),
    [
        (0, "0 B", "0 B"),
        (1, "1 B", "1 B"),
        (999, "999 B", "999 B"),
        (1024, "1.02 kB", "1 KiB"),
        (2**20 - 1, "1.05 MB", "1 MiB"),  # 1023.999 KiB: three digits cannot tell it from 1 MiB...
        (1023 * 2**10, "1.05 MB", "1,020 KiB"),  # ... and 1020 is 1023 in three digits
        (80e9, "80 GB", "74.5 GiB"),
        (16 * 2**30, "17.2 GB", "16 GiB"),
    ],
)
def test_bytes_in_powers_of_ten_and_of_two(n_bytes, decimal, binary):
    assert units.format_bytes(n_bytes) == decimal
    assert units.format_bytes(n_bytes, binary=True) == binary


def test_rates_and_work():
    assert units.format_flop(2 * 1024**3) == "2.15 GFLOP"
    assert units.format_flop_per_s(177e9) == "177 GFLOP/s"
    assert units.format_flop_per_s(989.4e12) == "989 TFLOP/s"
    assert units.format_bytes_per_s(12.34e9) == "12.3 GB/s"
    assert units.format_bytes_per_s(3.35e12) == "3.35 TB/s"
    assert units.format_hz(1590e6) == "1.59 GHz"
    assert units.format_images_per_s(1_250_000) == "1.25 million images/s"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (1, "1"),
        (2.5, "2.5"),
        (999.4, "999"),
        (999.6, "1,000"),
        (65_536, "65,536"),
        (123_456.7, "123,457"),
        (999_999, "999,999"),
        (999_999.7, "1 million"),
        (1_000_000, "1 million"),
        (1_048_576, "1.05 million"),
        (999_600_000, "1 billion"),
        (7 * 10**12, "7 trillion"),
    ],
)
def test_counts(count, text):
    assert units.format_count(count) == text


def test_ratios():
    assert [units.format_ratio(r) for r in (0.5, 1, 3.1, 3.14159, 99.96, 1234)] == [
        *("0.5×", "1×", "3.1×", "3.14×", "100×", "1,230×")
    ]


def test_numbers_of_numpy_are_numbers():
    np = pytest.importorskip("numpy")
    assert units.format_s(np.float64(3.2e-6)) == "3.2 µs"
    assert units.format_s(np.float32(3.2e-6)) == "3.2 µs"
    assert units.format_bytes(np.int64(80_000_000_000)) == "80 GB"
    assert units.format_count(np.int32(65_536)) == "65,536"


@pytest.mark.parametrize("formatter", FORMATTERS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1, "3", None, True])
def test_formatters_refuse_what_is_no_amount_and_repeat_it(formatter, bad):
    with pytest.raises(InputError) as caught:
        formatter(bad)
    assert repr(bad) in str(caught.value)


def test_a_ratio_of_zero_is_refused():
    with pytest.raises(InputError, match="ratio=0"):
        units.format_ratio(0)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_s, "3 ms", 0.003),
        (units.parse_s, "3ms", 0.003),
        (units.parse_s, " 0.5  s ", 0.5),
        (units.parse_s, "5 us", 5e-6),
        (units.parse_s, "5 \N{MICRO SIGN}s", 5e-6),
        (units.parse_s, "5 \N{GREEK SMALL LETTER MU}s", 5e-6),
        (units.parse_s, "1e-3 s", 0.001),
        (units.parse_s, "2 min", 120),
        (units.parse_s, "1 hour", 3600),
        (units.parse_s, "1 day", 86400),
        (units.parse_s, "0 s", 0),
        (units.parse_s, "1,500 ms", 1.5),
        (units.parse_s, ".5 s", 0.5),
        (units.parse_bytes, "16 GiB", 17_179_869_184),
        (units.parse_bytes, "16 GB", 16_000_000_000),
        (units.parse_bytes, "48 KiB", 49_152),
        (units.parse_bytes, "64 KB", 64_000),
        (units.parse_bytes, "1 byte", 1),
        (units.parse_bytes, "1.3 KiB", 1331),  # 1331.2: there is no fifth of a byte
        (units.parse_bytes_per_s, "320 GB/s", 320e9),
        (units.parse_bytes_per_s, "1 GiB/s", 2.0**30),
        (units.parse_flop_per_s, "8.1 TFLOP/s", 8.1e12),
        (units.parse_flop_per_s, "8.1 TFLOPS", 8.1e12),
        (units.parse_flop_per_s, "2 FLOP/s", 2),
    ],
)
def test_parsers_read_what_people_write(parse, text, value):
    assert parse(text) == value
    assert type(parse(text)) is (int if parse is units.parse_bytes else float)


PARSERS = [parse for _, parse, _ in PAIRS]


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "bad",
    [
        "",
        " ",
        "3",
        "ms",
        "-3 ms",
        "nan s",
        "inf s",
        "3 parsecs",
        "1,5 s",
        "1,00 B",
        "1 000 B",
        "1.2.3 s",
        3,
        None,
        b"3 s",
    ],
)
def test_parsers_refuse_the_rest_and_repeat_it(parse, bad):
    with pytest.raises(InputError) as caught:
        parse(bad)
    assert repr(bad) in str(caught.value)
    assert caught.value.advice


def test_parsers_refuse_another_quantity_s_unit():
    for parse, text in [
        (units.parse_s, "3 MS"),  # case matters: m is milli, M is mega
        (units.parse_bytes, "16 Gb"),  # bits
        (units.parse_bytes, "16 GB/s"),
        (units.parse_bytes_per_s, "16 GB"),
        (units.parse_flop_per_s, "2 GFLOP"),
    ]:
        with pytest.raises(InputError, match="unit"):
            parse(text)
    with pytest.raises(InputError, match="too large"):
        units.parse_s("1e400 s")


@pytest.mark.parametrize(("form", "parse", "exponents"), PAIRS)
def test_round_trip_keeps_three_digits(form, parse, exponents):
    draw = random.Random(20)
    for _ in range(2000):
        value = 10 ** draw.uniform(*exponents)
        text = form(value)
        # Half of the third digit is at most 0.5 %; whole bytes add half a byte.
        slack = 0.5 if parse is units.parse_bytes else 0
        assert abs(parse(text) - value) <= 0.00501 * value + slack, text
        if value >= 100:
            assert form(parse(text)) == text


@pytest.mark.parametrize(("form", "parse", "exponents"), PAIRS)
def test_never_more_than_three_digits_before_a_larger_unit(form, parse, exponents):
    draw = random.Random(21)
    for _ in range(2000):
        number = form(10 ** draw.uniform(*exponents)).split()[0].replace(",", "")
        significant = number.replace(".", "").strip("0")
        assert len(significant) <= 3
        assert float(number) < 1024
