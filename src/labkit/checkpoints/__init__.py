"""Checkpoints: weights that were trained anywhere, loaded safely on the machine that is here."""

from labkit.checkpoints.digests import sha256_of
from labkit.checkpoints.gpu_tags import make_gpu_tagged
from labkit.checkpoints.loading import Loaded, load
from labkit.checkpoints.saving import save

__all__ = ["Loaded", "load", "make_gpu_tagged", "save", "sha256_of"]
