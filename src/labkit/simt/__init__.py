"""A laboratory for GPU kernels that runs on any CPU and sees what hardware profilers see.

`cuda` has Numba's spelling. Where a GPU and numba-cuda work, it is numba.cuda; elsewhere its kernels are compiled to
NumPy code that runs all threads at once under masks, as a SIMT machine does. LABKIT_SIMT=cpu forces the latter.
`trace` always simulates: it counts (definitions in labkit.simt.counters) and finds hazards (labkit.simt.hazards). A
launch on a GPU finds none, so trace a kernel first and launch it when it is clean.

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

What kernels may contain
- arithmetic, comparison, bit and boolean operators; conditional expressions; if, while, for over range, break,
  continue, return, pass, assert; assignment to names, tuples and elements; types follow Numba's compiler
- arrays of 1 to 4 dimensions: a[i, j], a[i][j], .shape, .size, .ndim, len; NumPy arrays from outside, as constants
- math.*, abs, min, max, pow, round, int, float, bool, NumPy's scalar types as casts, print
- cuda.threadIdx, blockIdx, blockDim, gridDim, laneid, warpsize, grid, gridsize; shared.array, local.array,
  const.array_like; syncthreads, syncthreads_count, _and, _or, syncwarp; atomic.add, sub, max, min, and_, or_, xor,
  exch, cas, inc, dec; shfl_sync, shfl_up_sync, shfl_down_sync, shfl_xor_sync, ballot_sync, all_sync, any_sync;
  activemask, popc, clz, ffs, brev, fma, selp
- functions decorated with @cuda.jit(device=True); globals and closure variables, as constants

Anything else is refused at the first launch or trace, with the line and what to write instead.

How it works, in reading order: proxy.py (`cuda`), launch.py (kernels and launches), source.py and types.py, compiler.py
with control.py, expressions.py, calls.py and intrinsics.py (kernel to NumPy code), machine.py (batches, schedules,
barriers), batch.py, lanes.py, memory.py, atomics.py and warps.py (what compiled kernels call), watch.py and observer.py
(who is told), recording.py, counters.py, hazards.py, trace.py, predict.py.
"""

from labkit.errors import KernelError
from labkit.simt.hazards import Hazard
from labkit.simt.predict import KernelPrediction, predict
from labkit.simt.proxy import cuda
from labkit.simt.recording import Access, WarpEvent
from labkit.simt.trace import Note, Trace, trace

__all__ = [
    "Access",
    "Hazard",
    "KernelError",
    "Note",
    "KernelPrediction",
    "Trace",
    "WarpEvent",
    "cuda",
    "predict",
    "trace",
]
