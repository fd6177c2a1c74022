"""Where a GPU can be used `cuda` is Numba's, elsewhere the stand-in; which one is decided once, when first needed.

Each case is a Python process of its own that finds a made-up `numba` first on its path. FAKE_GPU says what it is like:
"usable" runs kernels (thread by thread, in Python), "old_driver" raises what Colab raises, "no_driver" what a laptop
does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAKE_NUMBA_CUDA = """
import os, sys, types
import numpy as np

MODE = os.environ["FAKE_GPU"]
LOG = []

class CudaSupportError(RuntimeError): ...
class LinkerError(RuntimeError): ...

def _check():
    if MODE == "no_driver":
        raise CudaSupportError("Error at driver init: CUDA driver library cannot be found.")

def is_available():
    return MODE != "no_driver"

class _Index:
    x = y = z = 0
threadIdx, blockIdx, blockDim, gridDim = _Index(), _Index(), _Index(), _Index()

def grid(n):
    assert n == 1
    return blockIdx.x * blockDim.x + threadIdx.x

def syncthreads(): ...

class FakeDeviceArray:
    def __init__(self, array): self.array, self.shape, self.dtype = array.copy(), array.shape, array.dtype
    def copy_to_host(self, out=None):
        if out is None: return self.array.copy()
        out[...] = self.array

def to_device(array, *a, **k):
    _check(); return FakeDeviceArray(np.asarray(array))
def device_array(shape, dtype=np.float64, *a, **k):
    _check(); return FakeDeviceArray(np.zeros(shape, dtype))
def synchronize(): _check()
def stream(): _check(); return 0
def list_devices(): _check(); return ["fake"]
def detect(): _check(); return True
class _Device:
    name = b"Fake GPU"; compute_capability = (7, 5)
def get_current_device(): _check(); return _Device()

class FakeKernel:
    def __init__(self, py_func): self.py_func = py_func; self.__name__ = py_func.__name__
    def __getitem__(self, configuration):
        def launch(*args):
            _check()
            if MODE == "old_driver":
                raise LinkerError("[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION: "
                                  "ptxas application ptx input, line 9; fatal : Unsupported .version 8.5; "
                                  "current version is '8.4'")
            LOG.append(self.__name__)
            size = lambda n: n if isinstance(n, int) else int(np.prod(n))
            blockDim.x, gridDim.x = size(configuration[1]), size(configuration[0])
            plain = [a.array if isinstance(a, FakeDeviceArray) else a for a in args]
            for b in range(gridDim.x):
                for t in range(blockDim.x):
                    blockIdx.x, threadIdx.x = b, t
                    self.py_func(*plain)
        return launch

def jit(function=None, *a, **options):
    wrap = lambda f: f if options.get("device") else FakeKernel(f)
    return wrap(function) if callable(function) else wrap
"""

STUDENT = """
import warnings
warnings.simplefilter("always")
import numpy as np
from labkit.simt import cuda, trace

@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * 2

@cuda.jit
def triple(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * 3

x = np.arange(10.0)
device = cuda.to_device(x)
double[2, 8](device)
triple[2, 8](device)
cuda.synchronize()
assert (device.copy_to_host() == x * 6).all(), device.copy_to_host()
host = np.arange(10.0)
double[2, 8](host)
assert (host == x * 2).all(), host
result = trace(double, 2, 8, np.arange(10.0))
assert result.counters["global_load_requests"] == 2 and result.hazards == ()
import numba.cuda
print("LAUNCHED", [name for name in numba.cuda.LOG if name in ("double", "triple")])
print("DEVICE", type(device).__module__)
"""


@pytest.fixture
def run(tmp_path):
    package = tmp_path / "numba" / "cuda"
    package.mkdir(parents=True)
    (tmp_path / "numba" / "__init__.py").write_text("__version__ = '0.0'\n")
    (package / "__init__.py").write_text(FAKE_NUMBA_CUDA)

    def run(mode, source=STUDENT, **environment):
        student = tmp_path / "student.py"
        student.write_text(textwrap.dedent(source))
        paths = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
        variables = {k: v for k, v in os.environ.items() if k not in ("LABKIT_SIMT", "NUMBA_ENABLE_CUDASIM")}
        variables |= {"PYTHONPATH": paths, "FAKE_GPU": mode, **environment}
        done = subprocess.run([sys.executable, str(student)], env=variables, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_usable_gpu_gets_the_launches(run):
    said = run("usable")
    assert "LAUNCHED ['double', 'triple', 'double']" in said
    assert "DEVICE numba.cuda" in said


def test_forced_to_the_cpu(run):
    said = run("usable", LABKIT_SIMT="cpu")
    assert "LAUNCHED []" in said
    assert "DEVICE labkit.simt" in said


# C07-07
def test_driver_too_old_is_said_once_and_the_cpu_goes_on(run):
    said = run("old_driver")
    assert "LAUNCHED []" in said and "DEVICE labkit.simt" in said
    complaints = [line for line in said.splitlines() if "UNSUPPORTED_PTX_VERSION" in line]
    assert len(complaints) == 1, said
    assert "driver" in said.lower()


def test_no_driver_is_no_reason_to_talk(run):
    said = run("no_driver")
    assert "LAUNCHED []" in said and "DEVICE labkit.simt" in said
    assert "Warning" not in said and "Error" not in said, said


def test_nothing_is_tried_before_it_is_needed(run):
    source = """
    import sys
    from labkit.simt import cuda, trace
    @cuda.jit
    def kernel(x):
        x[cuda.grid(1)] = 1
    assert "numba" not in sys.modules, "decorating a kernel must not look for a GPU"
    """
    run("usable", source)


def test_labkit_simt_needs_numpy_only(tmp_path):
    source = """
    import sys
    import numpy as np
    for name in ("torch", "numba", "matplotlib", "ipywidgets", "multiprocessing"):
        sys.modules[name] = None
    from labkit.simt import cuda, trace
    @cuda.jit
    def kernel(x):
        x[cuda.grid(1)] = 1
    x = np.zeros(8)
    kernel[1, 8](x)
    assert (x == 1).all()
    assert trace(kernel, 1, 8, x).hazards == ()
    import threading
    assert threading.active_count() == 1
    """
    script = tmp_path / "alone.py"
    script.write_text(textwrap.dedent(source))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_numbas_own_simulator_is_no_gpu():
    """NUMBA_ENABLE_CUDASIM=1 makes numba.cuda look available; kernels still run in the stand-in."""
    pytest.importorskip("numba")
    source = """
import numpy as np
from labkit.simt import cuda
print("DEVICE", type(cuda.to_device(np.zeros(3))).__module__)
"""
    environment = {k: v for k, v in os.environ.items() if k != "LABKIT_SIMT"}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=60)
    assert "DEVICE labkit.simt" in done.stdout, done.stdout + done.stderr
