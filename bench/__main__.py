"""Run every benchmark in this folder, each in a process of its own, and print one table."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

MET, MISSED, NOT_HERE = 0, 1, 2
HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Print the table and a last line that sums it up; return 1 if a target was missed or a benchmark failed."""
    known = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"which ones: {', '.join(known)} (default: all)")
    names = parser.parse_args(arguments).names or known
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"there is no benchmark called {', '.join(unknown)}; there are {', '.join(known)}")
    status = {name: run(name) for name in names}
    print("\n--- in short")
    for name, code in status.items():
        said = {
            MET: "all targets met",
            MISSED: "a target is MISSED, or it stopped with an error",
            NOT_HERE: "not run: it cannot run on this machine",
        }
        print(f"{name}: {said.get(code, f'FAILED with exit status {code}')}")
    return 0 if set(status.values()) <= {MET, NOT_HERE} else 1


def benchmarks() -> list[str]:
    """Return the names of the benchmarks, found by looking into the folder."""
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def run(name: str) -> int:
    """Run one benchmark under its name and return its exit status."""
    print(f"\n--- {name}", flush=True)
    return subprocess.run([sys.executable, "-m", f"bench.{name}"], cwd=HERE.parent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
