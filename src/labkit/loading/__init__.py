"""The input pipeline: images that cost CPU time to decode, loaders that are planned, and an accelerator to feed.

Datasets used with worker processes live here and not in a notebook's cell: a worker that is not forked imports them.
"""

from labkit.loading.accelerators import Accelerator, StandIn, Step
from labkit.loading.images import JpegImages, Sample
from labkit.loading.pipeline import PipelineRun, run_pipeline
from labkit.loading.planning import LoaderPlan, plan_loader
from labkit.loading.sampling import CropsFromOneGenerator, EpochIndex, EpochSampler
from labkit.loading.shared_memory import free_shared_bytes, sample_bytes
from labkit.loading.workers import batches_of

__all__ = [
    "Accelerator",
    "CropsFromOneGenerator",
    "EpochIndex",
    "EpochSampler",
    "JpegImages",
    "LoaderPlan",
    "PipelineRun",
    "Sample",
    "StandIn",
    "Step",
    "batches_of",
    "free_shared_bytes",
    "plan_loader",
    "run_pipeline",
    "sample_bytes",
]
