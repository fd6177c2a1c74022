"""What is installed, on which terms, and that the places which say so agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from lessons import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())
# PyTorch's CUDA build for Linux pins these itself, each to one version; other names come on other systems alone.
PINNED_BY_TORCH = re.compile(r"nvidia-|cuda-|triton$")
OTHER_SYSTEMS = {"appnope", "colorama", "pywinpty", "pywin32", "tomli", "exceptiongroup", "importlib-metadata"}


def pins() -> dict[str, str]:
    """Return what constraints.txt pins, by canonical name."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    versions = {canonicalize_name(pin.name): str(pin.specifier) for pin in pinned}
    assert len(versions) == len(pinned), "constraints.txt names a package twice"
    return versions


def needs_of(lines: list[str], extra: str) -> list[tuple[str, str]]:
    """Return (name, extra) of the requirements among lines that hold here."""
    needed = [Requirement(line) for line in lines]
    here = [need for need in needed if need.marker is None or need.marker.evaluate({"extra": extra})]
    return [(canonicalize_name(need.name), wanted) for need in here for wanted in {"", *need.extras}]


def all_that_make_installs() -> set[str]:
    """Return the names of labkit's requirements with the extras lab and test, of theirs, and so on."""
    seen: set[tuple[str, str]] = set()
    todo = needs_of([*PROJECT["dependencies"], *EXTRAS["lab"], *EXTRAS["test"]], "")
    while todo:
        name, extra = todo.pop()
        if (name, extra) not in seen:
            seen.add((name, extra))
            todo += needs_of(metadata.requires(name) or [], extra)
    return {name for name, _ in seen}


# --- constraints.txt ---------------------------------------------------------------------------------------------


def test_every_pin_names_one_version() -> None:
    loose = {name: version for name, version in pins().items() if not re.fullmatch(r"==[\w.]+", version)}
    assert not loose


def test_torch_is_pinned_without_a_local_label() -> None:
    assert pins()["torch"] == "==2.13.0"


def test_all_that_make_installs_is_pinned() -> None:
    needed = {name for name in all_that_make_installs() if not PINNED_BY_TORCH.match(name)}
    assert len(needed) > 100
    assert needed - OTHER_SYSTEMS <= pins().keys()


def test_pins_are_within_the_ranges_of_the_project() -> None:
    for line in [*PROJECT["dependencies"], *EXTRAS["lab"], *EXTRAS["test"]]:
        needed = Requirement(line)
        version = pins()[canonicalize_name(needed.name)].removeprefix("==")
        assert needed.specifier.contains(version), line


# C08-01
def test_ranges_leave_a_colab_machine_as_it_is() -> None:
    colab = {"torch": "2.11.0", "numpy": "2.1.3", "matplotlib": "3.10.0", "ipywidgets": "7.7.1", "tqdm": "4.67.3"}
    ranges = {needed.name: needed.specifier for needed in map(Requirement, PROJECT["dependencies"])}
    assert {name: version for name, version in colab.items() if not ranges[name].contains(version)} == {}


# --- environment.yml ---------------------------------------------------------------------------------------------


def conda_pip_lines() -> list[str]:
    """Return the lines that environment.yml hands to pip."""
    (section,) = (entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict))
    assert section.keys() == {"pip"}
    return section["pip"]


# C11-01
def test_conda_uses_no_channel_that_has_ended() -> None:
    assert ENVIRONMENT["channels"] == ["conda-forge"]


# C11-01
def test_conda_brings_python_and_pip_alone() -> None:
    plain = [entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, str)]
    assert plain == [f"python{PROJECT['requires-python']}", "pip"]


def test_conda_takes_everything_else_from_this_package() -> None:
    constraint, editable = conda_pip_lines()
    assert constraint == "--constraint constraints.txt"
    extras = re.fullmatch(r"--editable \.\[([\w,-]+)\]", editable).group(1).split(",")
    assert {"lab", "test"} <= set(extras) <= EXTRAS.keys()


# --- the extras for a GPU ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("extra", "major"), [("gpu", "cu13"), ("gpu-cu12", "cu12")])
def test_gpu_extras_name_one_cuda_major_and_the_right_nvml(extra: str, major: str) -> None:
    needed = {requirement.name: requirement for requirement in map(Requirement, EXTRAS[extra])}
    assert needed.keys() == {"numba-cuda", "nvidia-ml-py"}
    assert needed["numba-cuda"].extras == {major}


def test_deprecated_pynvml_is_required_nowhere() -> None:
    texts = [(ROOT / name).read_text() for name in ("constraints.txt", "environment.yml", "pyproject.toml")]
    assert not any(re.search(r"\bpynvml\b", text) for text in texts)


# --- an installed environment ------------------------------------------------------------------------------------


# C11-03
def test_torch_and_numpy_fit_each_other_in_silence() -> None:
    program = """
import numpy, torch, torch.cuda, matplotlib, ipywidgets
array = numpy.arange(3, dtype=numpy.float32)
assert torch.equal(torch.from_numpy(array), torch.arange(3.0))
assert (torch.arange(3.0).numpy() == array).all()
"""
    done = subprocess.run([sys.executable, "-W", "default", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# --- the wheel ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.glob("labkit-*.whl")
    return zipfile.ZipFile(path)


def test_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    package = ROOT / "src" / "labkit"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {f"labkit/{path.relative_to(package).as_posix()}" for path in files} <= set(wheel.namelist())


def test_wheel_holds_nothing_but_the_package(wheel: zipfile.ZipFile) -> None:
    assert {Path(name).parts[0].split("-")[0] for name in wheel.namelist()} == {"labkit"}


def test_wheel_carries_both_licences(wheel: zipfile.ZipFile) -> None:
    licences = {Path(name).name for name in wheel.namelist() if "licenses" in name}
    assert licences == {"LICENSE", "LICENSE-LESSONS"}


# --- what names which package ------------------------------------------------------------------------------------


# C12-05
def test_the_gpu_counters_come_from_the_package_that_is_kept_up() -> None:
    lines = [line for extra in EXTRAS.values() for line in extra] + PROJECT["dependencies"]
    asked = {canonicalize_name(Requirement(line).name) for line in lines}
    assert "nvidia-ml-py" in asked
    assert "pynvml" not in asked | pins().keys()


# C12-05
def test_looking_for_a_gpu_warns_of_no_package() -> None:
    program = "import torch.cuda, labkit; from labkit import devices; devices.find(); devices.report()"
    subprocess.run([sys.executable, "-W", "error::FutureWarning", "-c", program], check=True)
