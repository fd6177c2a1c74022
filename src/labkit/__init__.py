"""CPU or GPU: the helper package of the course. Importing it loads nothing heavy: each name loads when first used."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "checkpoints": ("load", "make_gpu_tagged", "save", "sha256_of"),
    "comparison": ("crossover", "fit_amdahl", "fit_power_law", "rank", "shared_values", "speedup"),
    "datasets": ("Images", "cifar10", "digits", "synthetic_images"),
    "energy": ("energy_meter",),
    "errors": ("LabkitError",),
    "inference": (
        "best_throughput",
        "by_batch",
        "compare_variants",
        "inference_call",
        "inference_work",
        "latency",
        "mean_wait_s",
        "offered_load",
        "percentile",
        "percentiles",
        "predict_load",
        "throughput",
        "under_load",
        "variants",
    ),
    "lesson": ("start",),
    "loading": (
        "Accelerator",
        "CropsFromOneGenerator",
        "JpegImages",
        "StandIn",
        "batches_of",
        "plan_loader",
        "run_pipeline",
    ),
    "measurement": ("Measurement", "Point", "Sweep", "Task"),
    "plotting": ("show",),
    "precision": ("relative_error", "round_to", "tf32_settings", "tolerance"),
    "prediction": ("extrapolate",),
    "roofline": ("Roof", "matmul_work"),
    "sand": ("Team", "fit_team", "largest_miss", "overtakes_at"),
    "timing": ("compare", "measure", "sustain", "sweep"),
    "training": (
        "History",
        "evaluate",
        "parameter_count",
        "residual_net",
        "small_cnn",
        "train",
        "training_step",
        "training_work",
    ),
    "units": (
        "format_bytes",
        "format_bytes_per_s",
        "format_count",
        "format_flop",
        "format_flop_per_s",
        "format_images_per_s",
        "format_j",
        "format_memory",
        "format_ratio",
        "format_s",
    ),
    "widgets": ("choice", "explore", "live", "log_slider", "slider", "steps", "toggle"),
    "workload": ("count_work",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name.startswith("plot_"):
        return getattr(importlib.import_module("labkit.plotting"), name)
    if name in _HOME:
        return getattr(importlib.import_module(f"labkit.{_HOME[name]}"), name)
    raise AttributeError(f"module 'labkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
