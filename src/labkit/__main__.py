"""The command line: python -m labkit solutions | colab | report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from labkit.colab import write_colab
from labkit.errors import LabkitError
from labkit.notebooks import course_folder, write_solved


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status; a LabkitError becomes one line on standard error and status 2."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except LabkitError as problem:
        print("labkit:", *str(problem).split(), file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m labkit", description="Tools of the course for its authors and instructors."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    solutions = commands.add_parser("solutions", help="write the solved notebooks")
    solutions.add_argument("--to", type=Path, default=Path("build/solutions"), help="folder (default: %(default)s)")
    solutions.set_defaults(run=_solutions)
    colab = commands.add_parser("colab", help="write the notebooks for Google Colab")
    colab.add_argument("--to", type=Path, default=Path("build/colab"), help="folder (default: %(default)s)")
    colab.add_argument(
        "--repo", metavar="OWNER/NAME", help="install labkit from this repository, not from the notebook"
    )
    colab.set_defaults(run=_colab)
    report = commands.add_parser("report", help="show the records of a class on one page")
    report.add_argument("files", nargs="+", type=Path, help="record files, or folders that hold some")
    report.add_argument("--to", type=Path, default=Path("build/report.html"), help="file (default: %(default)s)")
    report.add_argument("--names", action="store_true", help="call each record by its file, not by its machine")
    report.set_defaults(run=_report)
    return parser


def _solutions(options: argparse.Namespace) -> int:
    for path in write_solved(course_folder(), options.to):
        print(path)
    return 0


def _colab(options: argparse.Namespace) -> int:
    for path in write_colab(course_folder(), options.to, options.repo):
        print(path)
    return 0


def _report(options: argparse.Namespace) -> int:
    from labkit.report import collect, write_report

    results = collect(options.files, names=options.names)
    for left_out in results.left_out:
        print(f"left out {left_out.path}: {left_out.problem}", file=sys.stderr)
    print(write_report(results, options.to))
    return 0


if __name__ == "__main__":
    sys.exit(main())
