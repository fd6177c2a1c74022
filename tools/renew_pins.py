"""Renew constraints.txt: install labkit with its lab and test extras into a clean environment and write down what came.

Only the version of PyTorch is given (by default the one pinned so far), since the course names it in its records.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "constraints.txt"
HEADER = """\
# What `make` installs, all of it; written by `make pins`. A name that one system does not need does no harm there.
"""


def pinned_torch() -> str:
    """Return the version of torch that constraints.txt pins now."""
    return re.search(r"^torch==(\S+)$", PINS.read_text(), re.MULTILINE).group(1)


def clean_environment(folder: Path) -> list[str]:
    """Create an empty virtual environment and return the command that starts its pip."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    python = next(path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists())
    return [str(python), "-m", "pip", "--disable-pip-version-check"]


def pins_of(pip: list[str]) -> list[str]:
    """Return `name==version` of all that is installed, without pip, labkit and local labels such as +cpu."""
    frozen = subprocess.run([*pip, "freeze", "--all"], check=True, capture_output=True, text=True).stdout
    names = (line.split("+")[0] for line in frozen.splitlines() if re.match(r"[A-Za-z0-9._-]+==", line))
    return sorted((pin for pin in names if not re.match(r"(pip|wheel|labkit)==", pin)), key=str.lower)


def main() -> None:
    """Install, freeze, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", default=pinned_torch(), help="the version of PyTorch to pin")
    parser.add_argument("--extra-index-url", help="where PyTorch comes from, passed on to pip")
    asked = parser.parse_args()
    pip = clean_environment(ROOT / "build" / "pins")
    index = ["--extra-index-url", asked.extra_index_url] if asked.extra_index_url else []
    subprocess.run(
        [*pip, "install", "--quiet", *index, "--editable", f"{ROOT}[lab,test]", f"torch=={asked.torch}"], check=True
    )
    pins = pins_of(pip)
    PINS.write_text(HEADER + "\n".join(pins) + "\n")
    print(f"constraints.txt: {len(pins)} packages, torch {asked.torch}")


if __name__ == "__main__":
    main()
