"""Training small nets on any device: the nets, the loop, what it reports, and one step of it to be measured."""

from labkit.training.determinism import fix_workspace
from labkit.training.evaluation import evaluate
from labkit.training.history import Epoch, History
from labkit.training.loop import train
from labkit.training.models import ImageClassifier, parameter_count, residual_net, small_cnn
from labkit.training.step import training_step, training_work
from labkit.training.watch import PHASES

__all__ = [
    "PHASES",
    "Epoch",
    "History",
    "ImageClassifier",
    "evaluate",
    "fix_workspace",
    "parameter_count",
    "residual_net",
    "small_cnn",
    "train",
    "training_step",
    "training_work",
]
