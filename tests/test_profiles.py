import itertools

import pytest

from labkit.errors import InputError
from labkit.profiles import PROFILES, current_profile

NAMES = ("quick", "normal", "thorough")


def test_each_profile_takes_more_time_than_the_one_before():
    assert tuple(PROFILES) == NAMES
    for less, more in itertools.pairwise(PROFILES.values()):
        assert 0 < less.min_time_s < more.min_time_s
        assert less.max_time_s < more.max_time_s
    for name, profile in PROFILES.items():
        assert profile.name == name
        assert profile.min_time_s <= profile.max_time_s


@pytest.mark.parametrize("name", NAMES)
def test_the_variable_names_the_profile(monkeypatch, name):
    monkeypatch.setenv("LABKIT_PROFILE", name)
    assert current_profile() is PROFILES[name]


def test_without_the_variable_it_is_normal(monkeypatch):
    monkeypatch.delenv("LABKIT_PROFILE", raising=False)
    assert current_profile().name == "normal"
    monkeypatch.setenv("LABKIT_PROFILE", "")
    assert current_profile().name == "normal"


@pytest.mark.parametrize("name", ["fast", "QUICK", "quick ", "1"])
def test_an_unknown_profile_is_refused_and_repeated(monkeypatch, name):
    monkeypatch.setenv("LABKIT_PROFILE", name)
    with pytest.raises(InputError) as caught:
        current_profile()
    assert f"LABKIT_PROFILE={name!r}" in str(caught.value)
    assert all(repr(known) in str(caught.value) for known in NAMES)


def test_a_size_is_chosen_by_the_profile():
    sizes = {"quick": 64, "normal": 512, "thorough": 2048}
    assert [PROFILES[name].choose(**sizes) for name in NAMES] == [64, 512, 2048]
    assert PROFILES["thorough"].choose(quick=64, normal=512) == 512
    assert PROFILES["thorough"].choose(quick=64, normal=512, thorough=0) == 0
    assert PROFILES["quick"].choose(quick=[], normal=[1]) == []
