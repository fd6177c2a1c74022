"""A laboratory for GPU kernels that runs on any CPU and sees what hardware profilers see.

>>> from labkit.simt import cuda, trace
>>> import numpy as np
>>> @cuda.jit
... def add(a, b, c):
...     i = cuda.grid(1)
...     if i < c.size:
...         c[i] = a[i] + b[i]
>>> a = np.arange(100, dtype=np.float32)
>>> c = np.zeros_like(a)
>>> add[4, 32](a, a, c)
>>> trace(add, 4, 32, a, a, c).counters["global_load_sectors"]
26
"""

from labkit.errors import KernelError
from labkit.simt.hazards import Hazard
from labkit.simt.predict import Prediction, predict
from labkit.simt.proxy import cuda
from labkit.simt.trace import Access, Note, Trace, trace

__all__ = ["Access", "Hazard", "KernelError", "Note", "Prediction", "Trace", "cuda", "predict", "trace"]
