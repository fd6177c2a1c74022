"""Synthetic evidence for the rules of claims: measurements and sweeps with round numbers, and their verdict."""

from __future__ import annotations

from typing import Any

from labkit.claims import Verdict, find_claim
from labkit.measurement import Measurement, Point, Sweep, Task


def took(time_s: float, *, spread: float = 0.0, source: str = "measured", **task: Any) -> Measurement:
    """Return a measurement whose quartiles lie spread × time_s below and above its median."""
    low, high = time_s * (1 - spread), time_s * (1 + spread)
    return Measurement(
        task=Task(label=task.pop("label", "work"), **task),
        times_s=(low, low, time_s, high, high),
        source=source,
        provenance="a model" if source != "measured" else "",
    )


def swept(times_s: dict[float, float], *, parameter: str = "n", **options: Any) -> Sweep:
    """Return a sweep of such measurements."""
    points = [Point(value=value, measurement=took(time_s, **options)) for value, time_s in times_s.items()]
    return Sweep(label="work", parameter=parameter, points=points)


def decide(claim_id: str, **evidence: Any) -> Verdict:
    """Return the verdict on a claim."""
    return find_claim(claim_id).decide(**evidence)
