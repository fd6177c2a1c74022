"""The exercises of lesson 02: the triple loop, its work, and the roofline."""

from __future__ import annotations

import numpy as np

from labkit.checks.exercises import Exercise

Matrix = list[list[float]]


def _matrix(rows: int, columns: int, seed: int) -> Matrix:
    return np.random.default_rng(seed).integers(-9, 10, (rows, columns)).astype(float).tolist()


def _matmul(a: Matrix, b: Matrix) -> Matrix:
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]


def _matmul_by_loops(a: Matrix, b: Matrix) -> Matrix:
    c = [[0.0] * len(b[0]) for _ in a]
    for i in range(len(a)):
        for p in range(len(b)):
            for j in range(len(b[0])):
                c[i][j] += a[i][p] * b[p][j]
    return c


def _matmul_square(a: Matrix, b: Matrix) -> Matrix:
    """Multiply as if every matrix were as wide as a is high: right for square matrices alone."""
    n = len(a)
    return [[sum(a[i][p] * b[p][j] for p in range(n)) for j in range(n)] for i in range(n)]


def _matmul_shared_rows(a: Matrix, b: Matrix) -> Matrix:
    """Multiply into rows that are all the same list, the trap of [[0] * n] * m."""
    c = [[0.0] * len(b[0])] * len(a)
    for i in range(len(a)):
        for j in range(len(b[0])):
            c[i][j] = sum(a[i][p] * b[p][j] for p in range(len(b)))
    return c


MATMUL = Exercise(
    name="matmul",
    task="Return the product of two matrices given as lists of rows: (m, k) times (k, n) gives (m, n).",
    reference=_matmul,
    cases=[
        (_matrix(2, 2, 1), _matrix(2, 2, 2)),
        (_matrix(1, 1, 3), _matrix(1, 1, 4)),
        (_matrix(3, 5, 5), _matrix(5, 2, 6)),
        (_matrix(1, 7, 7), _matrix(7, 1, 8)),
        (_matrix(7, 1, 9), _matrix(1, 4, 10)),
    ],
    known_wrong=[
        ("Your product is b times a: the rows of a meet the columns of b.", lambda a, b: _matmul(b, a)),
        ("The shapes differ: rows from a, columns from b, and the inner loop over the rows of b.", _matmul_square),
        (
            "All rows are one and the same list: build each row anew, [[0.0] * n for _ in range(m)].",
            _matmul_shared_rows,
        ),
        (
            "That multiplies element by element; a product sums over a row and a column.",
            lambda a, b: [[x * y for x, y in zip(r, s, strict=False)] for r, s in zip(a, b, strict=False)],
        ),
        (
            "Row by row: b must be read along its columns.",
            lambda a, b: [[sum(x * y for x, y in zip(r, s, strict=False)) for s in b] for r in a],
        ),
        (
            "Add up, do not overwrite: c[i][j] += …",
            lambda a, b: [[row[-1] * b[-1][j] for j in range(len(b[0]))] for row in a],
        ),
    ],
    also_right=[
        _matmul_by_loops,
        lambda a, b: (np.array(a) @ np.array(b)).tolist(),
        lambda a, b: np.array(a) @ np.array(b),
    ],
    general_hint="c[i][j] is the sum over p of a[i][p] * b[p][j].",
)

MATMUL_FLOP = Exercise(
    name="matmul_flop",
    task="Return the FLOP of (m, k) times (k, n): one multiplication and one addition for each term.",
    reference=lambda m, k, n: 2 * m * k * n,
    cases=[(1, 1, 1), (2, 3, 5), (1000, 1000, 1000), (1, 4096, 7), (13, 1, 17)],
    known_wrong=[
        ("Each term is a multiplication and an addition: two FLOP.", lambda m, k, n: m * k * n),
        ("Every one of the m·n results needs k terms.", lambda m, k, n: 2 * m * n),
        ("The matrices need not be square: use all three sizes.", lambda m, k, n: 2 * m**3),
        ("Sizes multiply, they do not add.", lambda m, k, n: 2 * (m + k + n)),
    ],
    also_right=[lambda m, k, n: m * n * (k + k), lambda m, k, n: sum(2 * k for _ in range(m)) * n],
    general_hint="How many results are there, and how many FLOP does each need?",
)


def _intensity(m: int, k: int, n: int, itemsize_bytes: int) -> float:
    return 2 * m * k * n / ((m * k + k * n + m * n) * itemsize_bytes)


INTENSITY = Exercise(
    name="intensity",
    task="Return the arithmetic intensity of (m, k) times (k, n) in FLOP per byte, each matrix moved once.",
    reference=_intensity,
    cases=[(1, 1, 1, 4), (2, 3, 5, 8), (1024, 1024, 1024, 4), (1, 4096, 4096, 2), (17, 5, 1, 4)],
    known_wrong=[
        (
            "Elements are not bytes: multiply by itemsize_bytes.",
            lambda m, k, n, size: 2 * m * k * n / (m * k + k * n + m * n),
        ),
        (
            "The result must be written, too: three matrices move.",
            lambda m, k, n, size: 2 * m * k * n / ((m * k + k * n) * size),
        ),
        ("Two FLOP for each term.", lambda m, k, n, size: m * k * n / ((m * k + k * n + m * n) * size)),
        ("FLOP per byte, not bytes per FLOP.", lambda m, k, n, size: 1 / _intensity(m, k, n, size)),
        ("The matrices need not be square.", lambda m, k, n, size: m / (1.5 * size)),
    ],
    also_right=[
        lambda m, k, n, size: 2 / (size * (1 / n + 1 / m + 1 / k)),
        lambda m, k, n, size: (2 * m * k * n / size) / (m * k + k * n + m * n),
    ],
    general_hint="FLOP over bytes: 2·m·k·n over the bytes of a, b and c.",
)


def _attainable(intensity: float, peak: float, bandwidth: float) -> float:
    return min(peak, intensity * bandwidth)


def _attainable_by_branch(intensity: float, peak: float, bandwidth: float) -> float:
    ridge = peak / bandwidth
    return peak if intensity >= ridge else bandwidth * intensity


ATTAINABLE = Exercise(
    name="attainable",
    task="Return the most FLOP/s that work of this intensity can reach: the roofline.",
    reference=_attainable,
    cases=[(0.25, 100e9, 20e9), (5, 100e9, 20e9), (4.999, 100e9, 20e9), (1000, 8e12, 320e9), (25.0, 8e12, 320e9)],
    known_wrong=[
        ("Right of the ridge point the peak is the limit: take the smaller of the two.", lambda i, peak, bw: i * bw),
        ("Left of the ridge point the memory is the limit: take the smaller of the two.", lambda i, peak, bw: peak),
        (
            "Left of the ridge point the memory is the limit: take the smaller of the two.",
            lambda i, peak, bw: max(peak, i * bw),
        ),
        (
            "FLOP/s = FLOP/byte · byte/s: multiply the bandwidth by the intensity.",
            lambda i, peak, bw: min(peak, bw / i),
        ),
        (
            "Bandwidth is bytes per second: times the intensity it becomes FLOP/s.",
            lambda i, peak, bw: min(peak, bw),
        ),
        ("That is the ridge point; the question is what is reached there.", lambda i, peak, bw: peak / bw),
    ],
    also_right=[_attainable_by_branch, lambda i, peak, bw: sorted([peak, i * bw])[0]],
)

EXERCISES = (MATMUL, MATMUL_FLOP, INTENSITY, ATTAINABLE)
