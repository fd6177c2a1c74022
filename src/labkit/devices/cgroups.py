"""What a container may use: CPU quotas and memory limits that Linux control groups set, in version 1 and version 2.

A quota is not an affinity: a container that may use 2 CPUs' worth of time still sees all CPUs of its host, and so does
`os.cpu_count()`. Groups are nested, and every one on the way up counts. Formats: the kernel's own documentation,
https://docs.kernel.org/admin-guide/cgroup-v2.html and https://docs.kernel.org/scheduler/sched-bwc.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Version 1 writes "no limit" as the largest multiple of a page below 2**63.
_NO_LIMIT_BYTES = 2**60


class CpuQuota(NamedTuple):
    """The CPUs' worth of time that a control group may use, and the file and text that say so."""

    cpus: float
    path: str
    text: str


class MemoryLimit(NamedTuple):
    """What a control group may hold in memory and what it holds now, without file pages that can be dropped."""

    limit_bytes: int
    used_bytes: int


class Mount(NamedTuple):
    """Where a hierarchy of control groups is mounted, and which group its top folder shows."""

    folder: str
    group: str


def parse_cpu_max(text: str) -> float | None:
    """Return quota/period of a version 2 `cpu.max`, or None for no limit (or no such text).

    >>> parse_cpu_max("150000 100000"), parse_cpu_max("max 100000")
    (1.5, None)
    """
    words = text.split()
    return parse_cfs(words[0], words[1] if len(words) > 1 else "100000") if words else None


def parse_cfs(quota_us: str, period_us: str) -> float | None:
    """Return quota/period of a version 1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`, or None for no limit (-1).

    >>> parse_cfs("200000", "100000"), parse_cfs("-1", "100000")
    (2.0, None)
    """
    try:
        quota, period = int(quota_us), int(period_us)
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def parse_groups(text: str) -> dict[str, str]:
    """Return the process's group by controller from `/proc/self/cgroup`; version 2 stands under "".

    >>> parse_groups("4:cpu,cpuacct:/job\\n0::/user.slice")
    {'cpu': '/job', 'cpuacct': '/job', '': '/user.slice'}
    """
    groups = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if group.startswith("/"):
            groups |= dict.fromkeys(controllers.split(","), group)
    return groups


def parse_mounts(text: str) -> dict[str, Mount]:
    """Return the mount by controller from `/proc/self/mountinfo`; version 2 stands under "".

    >>> parse_mounts("32 31 0:29 /docker/a /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu")["cpu"]
    Mount(folder='/sys/fs/cgroup/cpu', group='/docker/a')
    """
    mounts: dict[str, Mount] = {}
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        before, after = fields.split(), rest.split()
        if len(before) < 5 or len(after) < 3 or after[0] not in ("cgroup", "cgroup2"):
            continue
        for controller in [""] if after[0] == "cgroup2" else after[2].split(","):
            mounts.setdefault(controller, Mount(before[4], before[3]))
    return mounts


def cpu_quotas(root: Path = Path("/")) -> list[CpuQuota]:
    """Return every CPU quota that holds for this process, its own group first; [] where there is none.

    `root` is the folder that holds `proc` and `sys`: another one in tests.
    """
    found = []
    for folder in _folders(root, ""):
        text = _read(folder / "cpu.max").strip()
        found.append((parse_cpu_max(text), folder / "cpu.max", text))
    for folder in _folders(root, "cpu"):
        quota, period = (_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
        found.append((parse_cfs(quota, period), folder / "cpu.cfs_quota_us", f"{quota} {period}"))
    return [CpuQuota(cpus, str(path), text) for cpus, path, text in found if cpus is not None]


def memory_limits(root: Path = Path("/")) -> list[MemoryLimit]:
    """Return every memory limit that holds for this process, its own group first; [] where there is none."""
    version_2 = [_memory(folder, "max", "current", "inactive_file") for folder in _folders(root, "")]
    version_1 = [
        _memory(folder, "limit_in_bytes", "usage_in_bytes", "total_inactive_file")
        for folder in _folders(root, "memory")
    ]
    return [limit for limit in version_2 + version_1 if limit is not None]


def _memory(folder: Path, limit_name: str, used_name: str, droppable_name: str) -> MemoryLimit | None:
    limit = _whole_number(_read(folder / f"memory.{limit_name}"))
    used = _whole_number(_read(folder / f"memory.{used_name}"))
    if limit is None or used is None or limit >= _NO_LIMIT_BYTES:
        return None
    statistics = dict(line.split(maxsplit=1) for line in _read(folder / "memory.stat").splitlines() if " " in line)
    droppable = _whole_number(statistics.get(droppable_name, "0")) or 0
    return MemoryLimit(limit, max(0, used - droppable))


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of the process's group and of all groups above it, as far up as they can be seen."""
    groups = parse_groups(_read(root / "proc/self/cgroup"))
    mounts = parse_mounts(_read(root / "proc/self/mountinfo"))
    usual = Mount(f"/sys/fs/cgroup/{controller}".rstrip("/"), "/")
    mount = mounts.get(controller, usual)
    group = groups.get(controller, "/")
    if group == mount.group or group.startswith(mount.group.rstrip("/") + "/"):
        group = group[len(mount.group.rstrip("/")) :]
    # A group outside of the container's own namespace is written with "..": its folder cannot be seen from here.
    names = [name for name in group.split("/") if name not in ("", ".", "..")]
    top = root / mount.folder.lstrip("/")
    for depth in range(len(names), -1, -1):
        yield top.joinpath(*names[:depth])


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _whole_number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None
