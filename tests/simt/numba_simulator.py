"""Run cases of the corpus in Numba's CUDA simulator and print their arrays as JSON; needs NUMBA_ENABLE_CUDASIM=1."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import numpy as np
from numba import cuda as numba_cuda

from .corpus import CASES


def for_simulator(function: Any) -> Any:
    """Rebuild a function so that its `cuda` is Numba's and its device functions are, too."""
    names = function.__code__.co_names
    used = {name: _translate(name, value) for name, value in function.__globals__.items() if name in names}
    return types.FunctionType(function.__code__, used, function.__name__, function.__defaults__, function.__closure__)


def _translate(name: str, value: Any) -> Any:
    if name == "cuda":
        return numba_cuda
    return numba_cuda.jit(device=True)(for_simulator(value.py_func)) if hasattr(value, "py_func") else value


def main(names: list[str]) -> None:
    """Launch each named case and print what its arrays hold afterwards."""
    results = {}
    with np.errstate(all="ignore"):
        for name in names:
            case, arguments = CASES[name], CASES[name].arguments()
            numba_cuda.jit(for_simulator(case.kernel))[case.grid, case.block, 0, case.shared_bytes](*arguments)
            results[name] = [argument.tolist() for argument in arguments if isinstance(argument, np.ndarray)]
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])
