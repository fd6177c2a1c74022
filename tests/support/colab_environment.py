"""An environment like Google Colab's: ipywidgets 7.7.1, no labkit, and all the rest as in the environment of the tests.

All the rest is a folder of links to the packages of the tests, so that PyTorch is not downloaded a second time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IPYWIDGETS = "7.7.1"
OWN = ("labkit", "ipywidgets", "widgetsnbextension", "jupyterlab_widgets")
LIST_PACKAGES = """\
import importlib.metadata, json
found = {}
for package in importlib.metadata.distributions():
    found.setdefault(package.metadata["Name"].lower(), [package.version, str(package.locate_file(""))])
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and what tests do with it."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where its own packages are."""
        return next(self.folder.glob("lib/python*/site-packages"))

    def run(self, *arguments: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its Python, free of what this process was told about labkit, and return what it printed."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LABKIT_", "PYTHON"))}
        command = [str(self.python), *map(str, arguments)]
        return subprocess.run(command, cwd=cwd, env=kept | variables, capture_output=True, text=True, check=False)

    def packages(self) -> dict[str, tuple[str, Path]]:
        """Return the version and the folder of each package that a program here would get."""
        done = self.run("-c", LIST_PACKAGES, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return {name: (version, Path(place)) for name, (version, place) in json.loads(done.stdout).items()}

    def remove_labkit(self) -> None:
        """Make labkit missing again."""
        for path in self.site_packages.glob("labkit*"):
            shutil.rmtree(path)


def make_environment(folder: Path) -> Environment:
    """Return the environment in folder, made anew only where the packages of the tests have changed since."""
    made_for = folder / "made-for"
    packages = list(shared_packages())
    wanted = "\n".join([IPYWIDGETS, sys.version, *map(str, packages)])
    if not made_for.is_file() or made_for.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)  # pip is shared, too
        environment = Environment(folder)
        shared = folder / "shared"
        shared.mkdir()
        for path in packages:
            (shared / path.name).symlink_to(path)
        (environment.site_packages / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"ipywidgets=={IPYWIDGETS}"]
        done = environment.run(*pip, cwd=folder)
        assert done.returncode == 0, done.stderr
        made_for.write_text(wanted, encoding="utf-8")
    return Environment(folder)


def shared_packages() -> Iterator[Path]:
    """Yield what lies in the site-packages of the tests and is the same on Colab."""
    for path in sorted(Path(sysconfig.get_path("purelib")).iterdir()):
        name = path.name.lower().replace("-", "_")
        if path.suffix not in (".pth", ".virtualenv") and not any(
            name == own or name.startswith((f"{own}_", f"{own}.")) for own in OWN
        ):
            yield path
