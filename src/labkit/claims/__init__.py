"""The claims on trial, and the rules that decide them: pure functions of measurements and predictions."""

from labkit.claims import gpu_models, inference, loading, machine, matmul, shared_memory, speed, training
from labkit.claims.verdicts import (
    DEPENDS,
    NOT_TESTABLE,
    OUTCOMES,
    REFUTED,
    UPHELD,
    Claim,
    Verdict,
    all_claims,
    find_claim,
)

__all__ = [
    "DEPENDS",
    "NOT_TESTABLE",
    "OUTCOMES",
    "REFUTED",
    "UPHELD",
    "Claim",
    "Verdict",
    "all_claims",
    "find_claim",
    "gpu_models",
    "inference",
    "loading",
    "machine",
    "matmul",
    "shared_memory",
    "speed",
    "training",
]
