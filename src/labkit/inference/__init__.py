"""Answering with a trained model: latency, throughput, behaviour under load, and the variants that make it faster."""

from labkit.inference.calls import by_batch, inference_call, inference_work
from labkit.inference.comparing import Comparison, Outcome, compare_variants
from labkit.inference.latencies import Percentiles, latency, percentile, percentiles
from labkit.inference.load_runs import LoadRun, Request
from labkit.inference.predicting import predict_load
from labkit.inference.queueing import mean_wait_s, offered_load, poisson_arrivals
from labkit.inference.serving import serve, under_load
from labkit.inference.throughputs import best_throughput, throughput
from labkit.inference.variant import Variant, variants

__all__ = [
    "Comparison",
    "LoadRun",
    "Outcome",
    "Percentiles",
    "Request",
    "Variant",
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
    "poisson_arrivals",
    "predict_load",
    "serve",
    "throughput",
    "under_load",
    "variants",
]
