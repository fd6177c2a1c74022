"""The catalogue of GPUs and the constants of the prediction model, every number with its source (hardware.toml)."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .errors import DeviceError, InputError, check_choice
from .units import parse_bytes, parse_bytes_per_s, parse_flop_per_s, parse_hz, parse_s

NOT_PUBLISHED = "not published"
DTYPES = ("float64", "float64_plain", "float32", "tf32", "bfloat16", "float16", "int8")
REFERENCE_GPU = "T4"  # what Google Colab lends for nothing

# PCI Express Base Specification: transfers/s of one lane, one bit each; from generation 3 on, 128 of 130 bits are data.
_PCIE_TRANSFERS_PER_S = {3: 8e9, 4: 16e9, 5: 32e9}
_PCIE_DATA_SHARE = 128 / 130

# Which parser reads a field's text is told by the unit in its name; the longer endings come first.
_PARSERS = {"_bytes_per_s": parse_bytes_per_s, "_flop_per_s": parse_flop_per_s, "_bytes": parse_bytes, "_hz": parse_hz}
_PARSERS |= {"_s": parse_s}


@dataclass(frozen=True)
class HostLink:
    """The way between host memory and GPU memory.

    >>> str(HostLink(3, 16)), round(HostLink(3, 16).bytes_per_s / 1e9, 2)
    ('PCIe 3.0 x16', 15.75)
    """

    generation: int
    lanes: int

    @property
    def bytes_per_s(self) -> float:
        """Theoretical bytes/s in one direction."""
        return _PCIE_TRANSFERS_PER_S[self.generation] * _PCIE_DATA_SHARE * self.lanes / 8

    def __str__(self) -> str:
        return f"PCIe {self.generation}.0 x{self.lanes}"


@dataclass(frozen=True)
class Gpu:
    """A GPU as its maker describes it. What no document gives is None, and its source says "not published".

    sources maps each field, and each "peak_flop_per_s.<dtype>", to the document that the number was read from.
    """

    key: str
    name: str
    device_names: tuple[str, ...]
    architecture: str
    compute_capability: str
    sms: int
    fp32_lanes: int
    boost_clock_hz: float
    peak_flop_per_s: Mapping[str, float] = field(hash=False)
    bandwidth_bytes_per_s: float
    memory_bytes: int
    memory_bus_bits: int | None
    memory_transfers_hz: float | None
    l2_bytes: int | None
    shared_per_sm_bytes: int
    shared_per_block_bytes: int
    shared_reserved_per_block_bytes: int
    shared_allocation_unit_bytes: int
    registers_per_sm: int
    max_registers_per_thread: int
    register_allocation_unit: int
    sub_partitions_per_sm: int
    max_threads_per_sm: int
    max_threads_per_block: int
    max_blocks_per_sm: int
    warp_size: int
    pcie_generation: int | None
    pcie_lanes: int | None
    power_w: float
    sources: Mapping[str, str] = field(hash=False, repr=False)

    @property
    def host_link(self) -> HostLink | None:
        """The link to the host, or None where it is not published."""
        if self.pcie_generation is None or self.pcie_lanes is None:
            return None
        return HostLink(self.pcie_generation, self.pcie_lanes)

    @property
    def max_warps_per_sm(self) -> int:
        """The most warps that one SM can hold."""
        return self.max_threads_per_sm // self.warp_size

    def peak(self, dtype: Any) -> float:
        """Return the stated peak in FLOP/s for a dtype (a name or a torch.dtype); DeviceError if the GPU lacks it.

        >>> gpu("T4").peak("float32")
        8100000000000.0
        """
        dtype = check_choice("dtype", str(dtype).removeprefix("torch."), DTYPES)
        if dtype not in self.peak_flop_per_s:
            raise DeviceError(
                f"dtype={dtype!r} on {self.key}",
                f"the {self.name} has no hardware for {dtype}",
                f"Choose one of {', '.join(self.peak_flop_per_s)}.",
            )
        return self.peak_flop_per_s[dtype]


@dataclass(frozen=True)
class Estimate:
    """A constant of the prediction model: what is expected, the range, and where they come from."""

    value: float
    low: float
    high: float
    source: str

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.value <= self.high:
            raise InputError(repr(self), "an estimate must be positive and lie within its range")


@dataclass(frozen=True)
class PredictionModel:
    """What a prediction assumes beside the datasheet; each constant's source says what it is and who measured it.

    launch_s: host time to enqueue one operation. round_trip_s: one tiny operation or copy and the wait for it.
    The fractions are shares of a stated figure: of memory bandwidth, of peak FLOP/s, of the PCIe link. cpu_tdp_w: the
    power that the maker of a CPU states, where it is not known which CPU it is.
    """

    launch_s: Estimate
    round_trip_s: Estimate
    bandwidth_fraction: Estimate
    peak_fraction: Estimate
    pinned_fraction: Estimate
    pageable_fraction: Estimate
    cpu_tdp_w: Estimate


def gpu(key: str) -> Gpu:
    """Return the GPU of that key (upper and lower case alike); DeviceError lists the known ones and the nearest.

    >>> gpu("T4").name, str(gpu("T4").host_link)
    ('NVIDIA T4', 'PCIe 3.0 x16')
    """
    catalogue = _catalogue()
    known = {name.casefold(): name for name in catalogue}
    wanted = key.strip().casefold() if isinstance(key, str) else ""
    if wanted in known:
        return catalogue[known[wanted]]
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
    hint = f"Did you mean {known[near[0]]!r}? " if near else ""
    raise DeviceError(repr(key), "no GPU of that name is in the catalogue", f"{hint}Known: {', '.join(catalogue)}.")


def gpus() -> tuple[Gpu, ...]:
    """Return all GPUs of the catalogue, in its order.

    >>> gpus()[0].key
    'T4'
    """
    return tuple(_catalogue().values())


def reference_gpu() -> Gpu:
    """Return the GPU that predictions are made for where no other is named.

    >>> reference_gpu().key
    'T4'
    """
    return gpu(REFERENCE_GPU)


def match(device_name: str) -> Gpu | None:
    """Return the GPU that CUDA calls device_name, or None; a slice (MIG) or a variant of a card is not the card.

    >>> match("NVIDIA A100-SXM4-80GB").key, match("NVIDIA L40S")
    ('A100', None)
    """
    if not isinstance(device_name, str) or not device_name.strip():
        raise InputError(f"device_name={device_name!r}", "a device name is a text such as 'Tesla T4'")
    words = device_name.casefold().split()
    plain = " ".join(word for word in words if word not in ("nvidia", "tesla"))
    return next((g for g in gpus() if plain in (name.casefold() for name in g.device_names)), None)


def prediction_model() -> PredictionModel:
    """Return the constants that predictions rest on.

    >>> prediction_model().launch_s.value
    5e-06
    """
    return _read_model(_table()["model"])


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("hardware.toml").read_text(encoding="utf-8"))


@cache
def _catalogue() -> dict[str, Gpu]:
    table = _table()
    return {key: _read_gpu(key, table) for key in table["gpu"]}


def _read_gpu(key: str, table: Mapping[str, Any]) -> Gpu:
    entry = dict(table["gpu"][key])
    if "like" in entry:
        entry = table["gpu"][entry.pop("like")] | entry
    entry = table["sm"][entry["compute_capability"]] | entry
    peaks = entry.pop("peak_flop_per_s")
    plain = {name: entry.pop(name) for name in ("name", "architecture", "compute_capability")}
    device_names = tuple(entry.pop("device_names"))
    numbers = {name: _read(name, cell, table["documents"]) for name, cell in entry.items()}
    peak_numbers = {dtype: _read("_flop_per_s", cell, table["documents"]) for dtype, cell in peaks.items()}
    sources = {name: source for name, (_, source) in numbers.items()}
    sources |= {f"peak_flop_per_s.{dtype}": source for dtype, (_, source) in peak_numbers.items()}
    return Gpu(
        key=key,
        device_names=device_names,
        peak_flop_per_s=MappingProxyType({dtype: value for dtype, (value, _) in peak_numbers.items()}),
        sources=MappingProxyType(sources),
        **plain,
        **{name: value for name, (value, _) in numbers.items()},
    )


def _read(name: str, cell: Any, documents: Mapping[str, str]) -> tuple[Any, str]:
    """Return (value, full source) of a cell: [value, "document: where; document"] or "not published"."""
    if cell == NOT_PUBLISHED:
        return None, NOT_PUBLISHED
    if not isinstance(cell, list) or len(cell) != 2 or not str(cell[1]).strip():
        raise InputError(f"{name} = {cell!r}", "a number of the catalogue stands beside its source", "[value, source]")
    value, source = cell
    return _number(name, value), "; ".join(_full_title(part, documents) for part in source.split("; "))


def _full_title(part: str, documents: Mapping[str, str]) -> str:
    document, _, place = part.partition(": ")
    check_choice("source", document, documents)
    return f"{documents[document]}: {place}" if place else documents[document]


def _number(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parse = next(parse for ending, parse in _PARSERS.items() if name.endswith(ending))
    return parse(value)


def _read_model(cells: Mapping[str, list[Any]]) -> PredictionModel:
    names = [entry.name for entry in fields(PredictionModel)]
    estimates = {
        name: Estimate(*(_number(name, value) for value in cells[name][:3]), " ".join(cells[name][3].split()))
        for name in names
    }
    return PredictionModel(**estimates)
