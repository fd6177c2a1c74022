"""The plan: what cannot work on this machine is changed before a worker is started, and said."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
import warnings
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import IterableDataset, TensorDataset

from labkit import devices
from labkit.errors import DeviceError, InputError
from labkit.loading import JpegImages, batches_of, free_shared_bytes, plan_loader, sample_bytes
from labkit.loading.planning import _pinning

MIB = 2**20
TENSORS = TensorDataset(torch.zeros(64, 3, 8, 8), torch.zeros(64, dtype=torch.int64))
ONE_ITEM_BYTES = 3 * 8 * 8 * 4 + 8
METHODS = ["fork", "forkserver", "spawn"]


class Endless(IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.fixture
def four_cpus(monkeypatch) -> None:
    monkeypatch.setattr(devices, "usable_cpus", lambda: 4)


@pytest.fixture
def shared(monkeypatch):
    """A function that sets the free shared memory in bytes, as the system would report it in blocks of 4096."""

    def set_free(free_bytes: int) -> None:
        of_system = os.statvfs

        def statvfs(path):
            found = SimpleNamespace(f_bavail=free_bytes // 4096, f_frsize=4096)
            return found if path == "/dev/shm" else of_system(path)

        monkeypatch.setattr(os, "statvfs", statvfs)

    return set_free


def plan(dataset=TENSORS, **options):
    return plan_loader(dataset, **({"batch": 16, "device": "cpu", "start_method": "fork"} | options))


# --- workers against CPUs ----------------------------------------------------------------------------------------


def test_as_many_workers_as_usable_cpus_are_left_alone(four_cpus) -> None:
    planned = plan(workers=4)
    assert (planned.workers, planned.changes) == (4, ())


def test_more_workers_than_usable_cpus_are_cut_to_them(four_cpus) -> None:
    planned = plan(workers=9)
    assert planned.workers == 4
    assert planned.changes == ("4 instead of 9 workers: this process may use 4 CPUs.",)


def test_more_workers_than_usable_cpus_are_kept_on_request_and_still_said(four_cpus) -> None:
    planned = plan(workers=9, more_than_cpus=True)
    assert planned.workers == 9
    assert "9" in planned.changes[0] and "4 CPUs" in planned.changes[0]


@pytest.mark.parametrize(("cpus", "workers"), [(1, 0), (2, 2), (8, 8)])
def test_auto_takes_the_usable_cpus_and_none_where_there_is_only_one(monkeypatch, cpus: int, workers: int) -> None:
    monkeypatch.setattr(devices, "usable_cpus", lambda: cpus)
    assert plan(workers="auto").workers == workers


# --- shared memory -----------------------------------------------------------------------------------------------


def test_the_bytes_of_an_item_are_those_of_its_tensors() -> None:
    assert sample_bytes(TENSORS[0]) == ONE_ITEM_BYTES
    assert sample_bytes({"image": torch.zeros(2, dtype=torch.uint8), "name": "x", "weight": 0.5}) == 2 + 8
    assert sample_bytes(JpegImages(1, megapixels=0.01, size=32)[0]) == 3 * 32 * 32 * 4 + 8 + 8


# C05-03
def test_batches_that_do_not_fit_into_shared_memory_give_0_workers_and_a_line_that_names_shm_size(
    four_cpus, shared
) -> None:
    shared(64 * MIB)  # what Docker gives a container
    images = TensorDataset(torch.zeros(16, 3, 512, 512))  # 16 of them: 48 MiB
    planned = plan(images, workers=4, prefetch=2)
    assert planned.workers == 0
    assert "8 batches" not in planned.changes[0] and "4 × 2 batches" in planned.changes[0]
    assert "--shm-size" in planned.changes[0]
    assert "403 MB" in planned.changes[0] and "67.1 MB are free" in planned.changes[0]  # 4·2·48 MiB and 64 MiB
    assert (planned.persistent, planned.loader().num_workers) == (False, 0)
    assert next(iter(planned.loader()))[0].shape == (16, 3, 512, 512)


# C05-03
def test_batches_that_just_fit_are_left_alone(four_cpus, shared) -> None:
    needed = 16 * ONE_ITEM_BYTES * 4 * 2
    shared(-(-needed // 4096) * 4096)
    assert plan(workers=4).workers == 4
    shared(needed // 4096 * 4096 - 4096)
    assert plan(workers=4).workers == 0


def test_a_system_without_that_folder_has_no_limit(monkeypatch) -> None:
    monkeypatch.delattr(os, "statvfs")  # Windows
    assert free_shared_bytes() is None
    assert "no limit here" in repr(plan(workers=0))


# --- pinned memory -----------------------------------------------------------------------------------------------


# C05-07
@pytest.mark.parametrize("pin_memory", [None, True, False])
def test_nothing_is_pinned_on_a_cpu_and_torch_has_nothing_to_warn_of(pin_memory: bool | None) -> None:
    planned = plan(workers=0, pin_memory=pin_memory)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(planned.loader())) == 4
    assert planned.pin_memory is False
    assert ("No pinned memory" in " ".join(planned.changes)) is (pin_memory is True)


# C05-07
def test_pinning_follows_the_device() -> None:
    gpu = devices.Device("cuda", 0, "T4")
    apple = devices.Device("mps", 0, "M2")
    assert (_pinning(None, gpu, []), _pinning(False, gpu, []), _pinning(None, apple, [])) == (True, False, False)


# --- persistent workers, and all the rest of what torch is given ---------------------------------------------------


# C05-05
def test_workers_persist_only_where_there_are_workers(four_cpus) -> None:
    assert plan(workers=0).persistent is False
    assert plan(workers=2).persistent is True
    assert plan(workers=2, persistent=False).persistent is False
    assert plan(workers=0).loader().persistent_workers is False  # torch raises ValueError for True


def test_the_loader_has_the_planned_settings(four_cpus) -> None:
    loader = plan(workers=3, prefetch=5, batch=7).loader()
    assert (loader.batch_size, loader.num_workers, loader.prefetch_factor) == (7, 3, 5)
    assert loader.multiprocessing_context.get_start_method() == "fork"
    assert len(loader) == 9  # 64 // 7: the last, smaller batch is dropped


def test_a_plan_tells_its_settings_and_changes(four_cpus) -> None:
    shown = repr(plan(workers=9))
    for part in ("4, started by fork", "batches under way", "4 instead of 9 workers"):
        assert part in shown
    assert "nothing" in plan(workers=0)._repr_html_()


@pytest.mark.parametrize(
    "wrong",
    [
        {"dataset": 7},
        {"dataset": []},
        {"dataset": Endless()},
        {"batch": 0},
        {"batch": 65},
        {"workers": -1},
        {"workers": 1.5},
        {"workers": "many"},
        {"prefetch": 0},
        {"pin_memory": "yes"},
        {"start_method": "thread"},
        {"shuffle": None},
        {"persistent": "no"},
        {"drop_last": 2},
        {"more_than_cpus": "x", "workers": 10**6},
        {"seed": "now"},
    ],
)
def test_nonsense_is_refused(wrong: dict) -> None:
    with pytest.raises(InputError):
        plan(**wrong)


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(DeviceError):
        plan(device="tpu")


# --- the same batches, however they are loaded -------------------------------------------------------------------


def batches(workers: int, start_method: str) -> list[torch.Tensor]:
    """Return the images and labels of two epochs of two batches."""
    photos = JpegImages(8, megapixels=0.01, size=16, distinct=4)
    planned = plan(photos, batch=4, workers=workers, start_method=start_method, more_than_cpus=True)
    assert planned.workers == workers
    with batches_of(planned.loader()) as stream:
        taken = [next(stream) for _ in range(4)]
    return [part for batch in taken for part in (batch.image, batch.label)]


# C05-01
@pytest.mark.parametrize("start_method", METHODS)
def test_two_workers_give_the_batches_that_none_gives(start_method: str) -> None:
    if start_method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"not run: this system has no {start_method}")
    none, two = batches(0, start_method), batches(2, start_method)
    assert len(none) == 8
    assert all(torch.equal(a, b) for a, b in zip(none, two, strict=True))
    assert not torch.equal(none[0], none[4])  # the second epoch is another
    assert multiprocessing.active_children() == []


IN_A_CELL = """
    import torch
    from labkit.loading import plan_loader

    class DS(torch.utils.data.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            return torch.tensor(index)

    for method in ("fork", "spawn", "forkserver"):
        plan = plan_loader(torch.utils.data.Subset(DS(), range(8)), batch=4, workers=1, device="cpu",
                           start_method=method, shuffle=False)
        print(method, plan.workers, [batch.tolist() for batch in plan.loader()], *plan.changes)
"""


# C05-01
def test_a_class_from_a_notebook_gets_no_workers_that_could_not_import_it() -> None:
    """As in a kernel, the code has no file: python -c is the same."""
    command = [sys.executable, "-c", textwrap.dedent(IN_A_CELL)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert run.stderr == ""
    fork, spawn, forkserver = run.stdout.splitlines()
    assert fork == "fork 1 [[0, 1, 2, 3], [4, 5, 6, 7]]"
    for line, method in ((spawn, "spawn"), (forkserver, "forkserver")):
        assert line.startswith(f"{method} 0 [[0, 1, 2, 3], [4, 5, 6, 7]] 0 instead of 1 workers")
        assert "a class or function of this notebook" in line


def test_what_cannot_be_sent_to_a_worker_gets_none(four_cpus) -> None:
    dataset = TensorDataset(torch.zeros(64, 1))
    dataset.transform = lambda x: x
    planned = plan(dataset, workers=2, start_method="spawn")
    assert planned.workers == 0
    assert "cannot be sent to another process" in planned.changes[0]
    assert plan(dataset, workers=2, start_method="fork").workers == 2
