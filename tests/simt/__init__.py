"""The proof of labkit.simt: a corpus, a fuzzer, and an independent scalar reference."""

import sys
from pathlib import Path

SUPPORT = str(Path(__file__).resolve().parents[1] / "support")
if SUPPORT not in sys.path:  # pytest puts it there; `python -m tests.simt.fuzz` and the benchmarks come without pytest
    sys.path.append(SUPPORT)
