"""Percentiles by hand and by NumPy; latencies on a scripted clock."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scripted import ScriptedClock

from labkit.errors import DeviceError, InputError
from labkit.inference import latency, percentile, percentiles
from labkit.measurement import Measurement, Task


def took(times_s: list[float], **fields: Any) -> Measurement:
    return Measurement(task=Task(label="net"), times_s=times_s, **fields)


@pytest.mark.parametrize(
    ("times_s", "q", "expected"),
    [
        ([15, 20, 35, 40, 50], 30, 20),  # rank ceil(0.3 · 5) = 2
        ([15, 20, 35, 40, 50], 40, 20),  # rank 2 exactly
        ([15, 20, 35, 40, 50], 40.0001, 35),
        ([15, 20, 35, 40, 50], 50, 35),
        ([15, 20, 35, 40, 50], 100, 50),
        ([50, 15, 40, 20, 35], 100, 50),  # the order does not matter
        ([7], 0.001, 7),
        (list(range(1, 101)), 99, 99),
        (list(range(1, 101)), 7, 7),  # 0.07 · 100 is 7.000000000000001 in binary
        (list(range(1, 1001)), 99.9, 999),
    ],
)
def test_nearest_rank_by_hand(times_s: list[float], q: float, expected: float) -> None:
    assert percentile(times_s, q) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 10, 97, 200])
def test_nearest_rank_equals_numpys_inverted_distribution(count: int) -> None:
    times_s = np.random.default_rng(count).exponential(size=count)
    for q in (1, 25, 50, 90, 95, 99, 100):
        assert percentile(times_s, q) == np.percentile(times_s, q, method="inverted_cdf")


def test_three_percentiles_and_what_few_calls_mean() -> None:
    found = percentiles(took([0.001] * 94 + [0.002, 0.003, 0.004, 0.005, 0.006, 0.007]))
    assert (found.p50_s, found.p95_s, found.p99_s, found.count) == (0.001, 0.002, 0.006, 100)
    assert "slowest" not in str(found)
    assert str(percentiles([0.001, 0.002])).endswith("(of 2; with fewer than 100, p99 is the slowest of all)")


def test_latency_times_single_calls_of_one_item_without_the_first() -> None:
    clock = ScriptedClock()
    durations = iter([5.0] + [0.010] * 10_000)
    seen = []

    def model(batch: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(batch.shape))
        clock.work(next(durations))
        return batch

    found = latency(model, torch.ones(7, 3), calls=50, clock=clock, label="net")
    assert set(seen) == {(1, 3)}
    assert len(found.times_s) == 50 and found.calls_per_sample == 1 and found.first_s == 5.0
    assert found.times_s == pytest.approx([0.010] * len(found.times_s))
    assert str(found.task) == "net batch=1 float32"
    assert found.images_per_s == pytest.approx(100)


def test_a_slow_model_ends_after_five_budgets(monkeypatch) -> None:
    """The quick profile gives a timing 0.15 s at most, so 0.75 s must do: 8 calls of 0.1 s."""
    monkeypatch.setenv("LABKIT_PROFILE", "quick")
    clock = ScriptedClock()
    found = latency(lambda batch: clock.work(0.1), torch.ones(1, 3), clock=clock)
    assert len(found.times_s) == 8


def test_the_slow_calls_are_seen(monkeypatch) -> None:
    """3 of 100 calls are held up: the median does not know, p95 neither, p99 does."""
    monkeypatch.setenv("LABKIT_PROFILE", "thorough")
    clock, number = ScriptedClock(), iter(range(10**6))

    def model(batch: torch.Tensor) -> torch.Tensor:
        clock.work(0.100 if next(number) % 33 == 32 else 0.010)
        return batch

    found = percentiles(latency(model, torch.ones(1, 3), calls=500, clock=clock))
    assert found.count >= 300
    assert (found.p50_s, found.p95_s, found.p99_s) == pytest.approx((0.010, 0.010, 0.100))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: percentile([], 50), "without a time"),
        (lambda: percentile([1.0], 0), "q must be a positive number"),
        (lambda: percentile([1.0], 101), "at most 100"),
        (lambda: percentile([1.0, math.nan], 50), "times_s"),
        (lambda: percentile([-1.0], 50), "times_s"),
        (lambda: percentile(1.0, 50), "list or tuple"),
        (lambda: percentiles(took([1.0], calls_per_sample=10)), "mean of 10 calls"),
        (lambda: percentiles(took([1.0], source="predicted", provenance="a model")), "no single calls"),
        (lambda: latency(3, torch.ones(1, 3)), "answers when it is called"),
        (lambda: latency(lambda x: x, [1.0]), "no batch"),
        (lambda: latency(lambda x: x, torch.ones(0, 3)), "no batch"),
        (lambda: latency(lambda x: x, torch.tensor(1.0)), "no batch"),
        (lambda: latency(lambda x: x, torch.ones(1), calls=0), "calls"),
    ],
)
def test_nonsense_is_refused(call: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


def test_an_absent_device_is_named() -> None:
    with pytest.raises(DeviceError, match="cuda:7"):
        latency(lambda x: x, torch.ones(1), device="cuda:7")
