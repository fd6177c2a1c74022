"""The lessons as tests see them: found by walking the folder, never listed by hand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"


def lesson_paths() -> list[Path]:
    """Return every notebook under notebooks/, in the order of the course."""
    found = sorted(NOTEBOOKS.rglob("*.ipynb"))
    return [path for path in found if ".ipynb_checkpoints" not in path.parts]
