"""Each notebook against each rule of a lesson; the rules, tags and counts are described in support/notebook_style.py.

The rules themselves are tested in test_notebook_rules.py, on notebooks that break them one at a time.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lessons import NOTEBOOKS, lesson_paths
from notebook_style import RULES, Notebook, Rule, claims_called, set_up_without_number

from labkit.claims import all_claims


def test_there_are_notebooks() -> None:
    assert lesson_paths(), f"no notebook found under {NOTEBOOKS}"


# C08-05, C09-02, C09-06
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", lesson_paths(), ids=lambda path: path.stem)
def test_notebook_keeps(path: Path, rule: Rule) -> None:
    broken = list(rule(Notebook.read(path)))
    if broken:
        pytest.fail("\n".join([str(rule.__doc__), *broken]), pytrace=False)


@pytest.mark.parametrize("path", lesson_paths(), ids=lambda path: path.stem)
def test_set_up_cell_is_the_same_everywhere(path: Path) -> None:
    first = lesson_paths()[0]
    assert set_up_without_number(Notebook.read(path)) == set_up_without_number(Notebook.read(first)), (
        f"the set-up cells of {path.name} and {first.name} differ in more than the lesson's number"
    )


@pytest.mark.parametrize("path", lesson_paths(), ids=lambda path: path.stem)
def test_every_claim_on_trial_is_known_predicted_and_then_decided(path: Path) -> None:
    notebook = Notebook.read(path)
    on_trial = {claim.id for claim in all_claims() if notebook.number in claim.lessons}
    calls = [call for cell in notebook.cells("code") for call in claims_called(cell)]
    assert {claim for _, claim in calls} == on_trial
    for claim in {claim for _, claim in calls}:
        assert [verb for verb, called in calls if called == claim] == ["predict", "verdict"], claim
