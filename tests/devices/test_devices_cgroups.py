"""Quotas and limits of containers: the expected values are worked out by hand from the kernel's documentation."""

from __future__ import annotations

import pytest

from labkit.devices import cgroups

V2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


# C06-01: the strings of the case
@pytest.mark.parametrize(
    ("text", "cpus"),
    [("200000 100000", 2.0), ("150000 100000", 1.5), ("50000 100000", 0.5), ("max 100000", None), ("50000", 0.5)],
)
def test_cpu_max_is_quota_over_period(text, cpus):
    assert cgroups.parse_cpu_max(text + "\n") == cpus


@pytest.mark.parametrize("text", ["", "\n", "two 100000", "200000 0", "-1 100000", "0 100000"])
def test_a_cpu_max_that_sets_no_limit_or_makes_no_sense_is_no_quota(text):
    assert cgroups.parse_cpu_max(text) is None


# C06-01: version 1, -1 = none
@pytest.mark.parametrize(
    ("quota", "period", "cpus"), [("400000", "100000", 4.0), ("-1", "100000", None), ("", "", None), ("5", "0", None)]
)
def test_version_1_quota(quota, period, cpus):
    assert cgroups.parse_cfs(quota, period) == cpus


def test_groups_of_both_versions_are_read():
    text = "12:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x:y\n0::/init.scope\nnonsense\n"
    groups = cgroups.parse_groups(text)
    assert groups["cpu"] == groups["cpuacct"] == groups["memory"] == "/docker/abc"
    assert groups["name=systemd"] == "/x:y"
    assert groups[""] == "/init.scope"


def test_the_mount_options_name_the_controllers_whatever_the_folder_is_called():
    mounts = cgroups.parse_mounts(V1 + "cut short\n")
    assert mounts["cpu"] == mounts["cpuacct"] == cgroups.Mount("/sys/fs/cgroup/cpu,cpuacct", "/")
    assert cgroups.parse_mounts(V2)[""] == cgroups.Mount("/sys/fs/cgroup", "/")


def test_every_quota_up_to_the_root_is_found_in_version_2(linux_root):
    root = linux_root(
        {
            "proc/self/cgroup": "0::/jobs/student/cell\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/jobs/student/cell/cpu.max": "max 100000\n",
            "sys/fs/cgroup/jobs/student/cpu.max": "300000 100000\n",
            "sys/fs/cgroup/jobs/cpu.max": "50000 25000\n",
            "sys/fs/cgroup/other/cpu.max": "1000 100000\n",
        }
    )
    found = cgroups.cpu_quotas(root)
    assert [(quota.cpus, quota.text) for quota in found] == [(3.0, "300000 100000"), (2.0, "50000 25000")]
    assert found[0].path.endswith("sys/fs/cgroup/jobs/student/cpu.max")


def test_a_container_of_version_1_reads_its_own_group_at_the_top_of_the_mount(linux_root):
    mounts = V1.replace("0:29 / ", "0:29 /docker/abc ").replace("0:32 / ", "0:32 /docker/abc ")
    root = linux_root(
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n",
            "proc/self/mountinfo": mounts,
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "800000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "700\n",
            "sys/fs/cgroup/memory/memory.stat": "cache 300\ntotal_inactive_file 200\n",
        }
    )
    assert [quota.cpus for quota in cgroups.cpu_quotas(root)] == [8.0]
    assert cgroups.memory_limits(root) == [cgroups.MemoryLimit(1000, 500)]


def test_a_group_outside_of_the_namespace_does_not_lead_out_of_the_mount(linux_root):
    root = linux_root(
        {
            "proc/self/cgroup": "0::/../../elsewhere\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/cpu.max": "100000 100000",
            "sys/cpu.max": "1 100000",
        }
    )
    assert [quota.cpus for quota in cgroups.cpu_quotas(root)] == [1.0]


def test_without_proc_the_usual_places_are_read(linux_root):
    assert [quota.cpus for quota in cgroups.cpu_quotas(linux_root({"sys/fs/cgroup/cpu.max": "200000 100000"}))] == [2.0]


def test_nothing_there_means_no_limit(tmp_path):  # C06-01: missing file
    assert cgroups.cpu_quotas(tmp_path) == []
    assert cgroups.memory_limits(tmp_path) == []


def test_memory_limits_of_version_2_leave_out_file_pages_that_can_be_dropped(linux_root):
    root = linux_root(
        {
            "proc/self/cgroup": "0::/a/b\n",
            "proc/self/mountinfo": V2,
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/b/memory.current": "100\n",
            "sys/fs/cgroup/a/memory.max": "4096\n",
            "sys/fs/cgroup/a/memory.current": "3000\n",
            "sys/fs/cgroup/a/memory.stat": "anon 1500\ninactive_file 1200\nactive_file 300\n",
        }
    )
    assert cgroups.memory_limits(root) == [cgroups.MemoryLimit(4096, 1800)]


def test_the_huge_number_of_version_1_is_no_limit(linux_root):
    root = linux_root(
        {
            "proc/self/mountinfo": V1,
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "700\n",
        }
    )
    assert cgroups.memory_limits(root) == []
