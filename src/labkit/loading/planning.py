"""plan_loader(): the settings of a data loader, checked against this machine before a worker process is started."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit import devices
from labkit.errors import InputError, check_choice, check_count, check_positive, check_seed
from labkit.html import Html, html_of, table
from labkit.loading.sampling import EpochSampler, carried_generators, handing_epochs_on, seed_each_worker
from labkit.loading.shared_memory import free_shared_bytes, sample_bytes
from labkit.loading.workers import no_word_about_cpus
from labkit.units import format_bytes

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

TIMEOUT_S = 120.0  # for one batch: a worker that hangs must not hang the notebook


@dataclass(frozen=True, kw_only=True, repr=False)
class LoaderPlan:
    """The settings of a loader that this machine can run, and in changes what was changed to get there, and why.

    shared_bytes is the shared memory that the batches under way take, free_shared_bytes what there is (None: no limit).
    """

    dataset: Any
    batch: int
    workers: int
    prefetch: int
    pin_memory: bool
    persistent: bool
    start_method: str
    shuffle: bool
    drop_last: bool
    seed: int
    shared_bytes: int
    free_shared_bytes: int | None
    changes: tuple[str, ...] = ()

    def loader(self) -> DataLoader:
        """Return the torch DataLoader with these settings; the same seed gives the same batches in every epoch."""
        import torch
        from torch.utils.data import DataLoader

        options: dict[str, Any] = {}
        if self.workers:
            options = {
                "prefetch_factor": self.prefetch,
                "persistent_workers": self.persistent,
                "multiprocessing_context": self.start_method,
                "worker_init_fn": seed_each_worker,
                "timeout": TIMEOUT_S,
            }
        with no_word_about_cpus():
            return DataLoader(
                handing_epochs_on(self.dataset),
                batch_size=self.batch,
                sampler=EpochSampler(len(self.dataset), shuffle=self.shuffle, seed=self.seed),
                num_workers=self.workers,
                pin_memory=self.pin_memory,
                drop_last=self.drop_last,
                generator=torch.Generator().manual_seed(self.seed),
                **options,
            )

    def _rows(self) -> list[tuple[str, str]]:
        workers = f"{self.workers}, started by {self.start_method}" if self.workers else "0: the main process loads"
        free = "no limit here" if self.free_shared_bytes is None else f"{format_bytes(self.free_shared_bytes)} free"
        return [
            ("batch", str(self.batch)),
            ("worker processes", workers),
            ("batches under way", str(self.workers * self.prefetch)),
            ("shared memory", f"{format_bytes(self.shared_bytes)} needed, {free}"),
            ("pinned memory", "yes" if self.pin_memory else "no"),
            ("changed", " ".join(self.changes) or "nothing"),
        ]

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return html_of(self._table())

    def _table(self) -> Html:
        return table(self._rows(), head=("setting", "planned"))


def plan_loader(
    dataset: Any,
    *,
    batch: int = 32,
    workers: int | str = "auto",
    prefetch: int = 2,
    device: Any = "auto",
    pin_memory: bool | None = None,
    persistent: bool = True,
    start_method: str | None = None,
    shuffle: bool = True,
    drop_last: bool = True,
    seed: int = 0,
    more_than_cpus: bool = False,
) -> LoaderPlan:
    """Plan a loader for a dataset with len() and [index]; what cannot work here is changed, and changes says so.

    workers "auto" takes the usable CPUs (0 where there is only one); more are cut to them unless more_than_cpus.
    prefetch is the number of batches that each worker prepares ahead. pin_memory None follows the device: pinned memory
    speeds the way to an NVIDIA GPU and is refused elsewhere. start_method is the system's own unless named: "fork",
    "forkserver" or "spawn". Raises InputError for nonsense, DeviceError for a device that is not there.

    >>> import torch
    >>> plan = plan_loader(torch.utils.data.TensorDataset(torch.zeros(64, 8)), batch=16, workers=0, device="cpu")
    >>> plan.workers, plan.pin_memory, len(plan.loader())
    (0, False, 4)
    """
    count = _count_of(dataset)
    batch = check_count("batch", batch)
    if drop_last and batch > count:
        problem = f"the data set has {count} items, so not one batch is full"
        raise InputError(f"batch={batch}", problem, f"Try batch={count}, or drop_last=False.")
    prefetch = check_count("prefetch", prefetch)
    methods = multiprocessing.get_all_start_methods()
    default = multiprocessing.get_start_method(allow_none=True) or methods[0]
    start_method = default if start_method is None else check_choice("start_method", start_method, methods)
    for name, value in (("persistent", persistent), ("shuffle", shuffle), ("drop_last", drop_last)):
        check_choice(name, value, (True, False))
    changes: list[str] = []
    workers = _within_cpus(_worker_count(workers), more_than_cpus, changes)
    workers = _where_importable(workers, dataset, start_method, changes)
    batch_bytes = batch * sample_bytes(dataset[0])
    workers = _within_shared_memory(workers, batch_bytes, prefetch, changes)
    _note_generators(workers, dataset, changes)
    return LoaderPlan(
        dataset=dataset,
        batch=batch,
        workers=workers,
        prefetch=prefetch,
        pin_memory=_pinning(pin_memory, devices.pick(device), changes),
        persistent=persistent and workers > 0,  # torch raises ValueError for persistent workers where there are none
        start_method=start_method,
        shuffle=shuffle,
        drop_last=drop_last,
        seed=check_seed(seed),
        shared_bytes=batch_bytes * workers * prefetch,
        free_shared_bytes=free_shared_bytes(),
        changes=tuple(changes),
    )


def _count_of(dataset: Any) -> int:
    from torch.utils.data import IterableDataset

    if isinstance(dataset, IterableDataset) or not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise InputError(f"dataset={dataset!r:.80}", "a data set here has a length and gives item i for dataset[i]")
    if len(dataset) == 0:
        raise InputError(f"dataset={dataset!r:.80}", "the data set is empty")
    return len(dataset)


def _worker_count(workers: int | str) -> int:
    if isinstance(workers, str) and workers == "auto":
        usable = devices.usable_cpus()
        return usable if usable > 1 else 0
    number = check_positive("workers", workers, zero_ok=True)
    if not isinstance(number, int):
        raise InputError(f"workers={workers!r}", "workers are whole processes", 'Try workers=2, or "auto".')
    return number


def _within_cpus(workers: int, more_than_cpus: bool, changes: list[str]) -> int:
    usable = devices.usable_cpus()
    if workers <= usable:
        return workers
    cpus = f"{usable} CPU{'' if usable == 1 else 's'}"
    if check_choice("more_than_cpus", more_than_cpus, (True, False)):
        changes.append(f"Kept, though there are more workers ({workers}) than {cpus} to run them.")
        return workers
    changes.append(f"{usable} instead of {workers} workers: this process may use {cpus}.")
    return usable


def _where_importable(workers: int, dataset: Any, start_method: str, changes: list[str]) -> int:
    """Return 0 workers where they could not import the dataset's class, or get the dataset itself."""
    if not workers or start_method == "fork":
        return workers
    try:
        packed = pickle.dumps(dataset)
    except Exception as problem:  # whatever the objects in it raise
        reason = f"the data set cannot be sent to another process ({type(problem).__name__}: {problem})"
    else:
        in_a_cell = b"__main__" in packed and not hasattr(sys.modules["__main__"], "__file__")
        if not in_a_cell:
            return workers
        reason = "the data set uses a class or function of this notebook, which another process cannot import"
    changes.append(f"0 instead of {workers} workers: {reason}. Put it into a file of its own, and import it.")
    return 0


def _within_shared_memory(workers: int, batch_bytes: int, prefetch: int, changes: list[str]) -> int:
    free_bytes, needed_bytes = free_shared_bytes(), batch_bytes * workers * prefetch
    if free_bytes is None or needed_bytes <= free_bytes:
        return workers
    changes.append(
        f"0 instead of {workers} workers: {workers} × {prefetch} batches of {format_bytes(batch_bytes)} need "
        f"{format_bytes(needed_bytes)} of shared memory, {format_bytes(free_bytes)} are free. "
        "In Docker, start the container with --shm-size=2g."
    )
    return 0


def _note_generators(workers: int, dataset: Any, changes: list[str]) -> None:
    carried = carried_generators(dataset)
    if workers and carried:
        names = ", ".join(carried)
        changes.append(f"Each worker gets a seed of its own for {names}: copies would all draw the same numbers.")


def _pinning(pin_memory: bool | None, device: devices.Device, changes: list[str]) -> bool:
    if pin_memory is None:
        return device.kind == "cuda"
    wanted = check_choice("pin_memory", pin_memory, (True, False))
    if wanted and device.kind != "cuda":
        changes.append(f"No pinned memory: there is no NVIDIA GPU to carry batches to, the device is {device.name}.")
        return False
    return wanted
