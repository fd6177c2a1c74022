"""Stand-ins for a torch with GPUs, so that no test needs one."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from labkit.devices import dtypes, facts

GIB = 2**30


class FakeTensor:
    """A tensor of 0, 1, 2, 3 whose sum comes out as a GPU that works, or does not, would have it."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.values = [0, 1, 2, 3]

    def __mul__(self, factor):
        self.values = [value * factor for value in self.values]
        return self

    def __add__(self, summand):
        self.values = [value + summand for value in self.values]
        return self

    def sum(self):
        return self

    def item(self):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return sum(self.values) if self.outcome is None else self.outcome


class FakeTorch(SimpleNamespace):
    """A torch with the given GPUs: (name, capability, outcome), outcome None for one that works."""

    def __init__(
        self, *, cuda=None, gpus=(), init_error=None, arch_list=(), mps_built=False, mps=None, version="2.13.0"
    ):
        outcomes = {f"cuda:{index}": gpu[2] for index, gpu in enumerate(gpus)} | ({"mps": mps[0]} if mps else {})
        self.log = []
        self.outcomes = outcomes
        super().__init__(
            __version__=version,
            version=SimpleNamespace(cuda=cuda, hip=None),
            float32="float32",
            cuda=SimpleNamespace(
                is_available=lambda: bool(gpus),
                device_count=lambda: len(gpus),
                get_device_properties=lambda i: SimpleNamespace(
                    name=gpus[i][0], total_memory=16 * GIB, major=gpus[i][1][0], minor=gpus[i][1][1]
                ),
                get_arch_list=lambda: list(arch_list),
                init=lambda: self._init(init_error),
                synchronize=lambda index=None: self.log.append(("cuda", index)),
                mem_get_info=lambda index: (10 * GIB, 16 * GIB),
                memory_reserved=lambda index: 3 * GIB,
                memory_allocated=lambda index: 1 * GIB,
            ),
            backends=SimpleNamespace(
                mps=SimpleNamespace(
                    is_built=lambda: mps_built or mps is not None, is_available=lambda: mps is not None
                ),
                cpu=SimpleNamespace(get_cpu_capability=lambda: "AVX2"),
            ),
            mps=SimpleNamespace(
                synchronize=lambda: self.log.append(("mps",)),
                recommended_max_memory=lambda: 12 * GIB,
                driver_allocated_memory=lambda: 2 * GIB,
            ),
            get_num_threads=lambda: 2,
        )

    def arange(self, n, *, dtype, device):
        if device not in self.outcomes:
            raise RuntimeError(f"no {device} in this build")
        return FakeTensor(self.outcomes[device])

    @staticmethod
    def _init(error):
        if error is not None:
            raise error


@pytest.fixture(autouse=True)
def _forget_the_machine():
    """Let no test see the snapshot of another."""
    facts.snapshot.cache_clear()
    dtypes._has.cache_clear()
    yield
    facts.snapshot.cache_clear()
    dtypes._has.cache_clear()


@pytest.fixture
def with_torch(monkeypatch):
    """Return a function that puts a FakeTorch in the place of torch."""

    def install(**options):
        fake = FakeTorch(**options)
        monkeypatch.setitem(sys.modules, "torch", fake)
        facts.snapshot.cache_clear()
        return fake

    return install


@pytest.fixture
def t4(with_torch):
    """A machine with one T4 that works."""
    return with_torch(cuda="12.6", gpus=[("Tesla T4", (7, 5), None)], arch_list=("sm_75", "sm_80"))


@pytest.fixture
def linux_root(tmp_path):
    """Return a function that writes files below a folder that stands for /, and returns that folder."""

    def write(files):
        for path, text in files.items():
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        return tmp_path

    return write
