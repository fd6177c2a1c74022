"""What every test run shares; it stands here so that `pytest --nbmake notebooks` gets it as well."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

pytest_plugins = ["notebook_run"]


def pytest_configure(config: pytest.Config) -> None:
    """Keep what lessons write out of the checkout, and run them with sizes made for checks."""
    os.environ.setdefault("LABKIT_PROFILE", "quick")
    os.environ["LABKIT_RESULTS"] = tempfile.mkdtemp(prefix="labkit-results-")
    config.add_cleanup(lambda: shutil.rmtree(os.environ["LABKIT_RESULTS"], ignore_errors=True))
