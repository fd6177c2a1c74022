from __future__ import annotations

import os

import pytest
from colab_environment import Environment, make_environment
from lessons import ROOT


@pytest.fixture(scope="session")
def environment() -> Environment:
    """The environment, kept in build/ from one run to the next."""
    if os.name == "nt":
        pytest.skip("Colab runs on Linux; the stand-in for it needs links to folders, which Windows allows to few")
    return make_environment(ROOT / "build" / "colab-environment")


@pytest.fixture
def bare(environment: Environment) -> Environment:
    """The environment with labkit missing."""
    environment.remove_labkit()
    return environment
