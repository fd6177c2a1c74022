"""Where files keep the weights, the optimiser's state and the rest."""

from __future__ import annotations

import pytest
import torch
from small_nets import EXAMPLE, Net, same, trained
from torch import nn

from labkit.checkpoints import load

NAMES = [
    "model",
    "state_dict",
    "model_state_dict",
    "model_state",
    "net",
    "network",
    "weights",
    "params",
    "module",
    "ema",
]


@pytest.mark.parametrize("name", [*NAMES, "my_fancy_weights"])
def test_weights_under_a_usual_name_are_found(written, name: str) -> None:
    net, fresh = trained(), Net()
    loaded = load(written({"epoch": 7, name: net.state_dict(), "loss": torch.tensor(0.5)}), fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())
    assert loaded.metadata == {"epoch": 7, "loss": torch.tensor(0.5)}
    assert f"Weights taken from {name!r}." in loaded.notes


def test_weights_two_floors_down_are_found_and_the_rest_is_kept(written) -> None:
    net = trained()
    loaded = load(written({"run": {"checkpoint": {"model": net.state_dict()}, "seed": 3}, "epoch": 7}), device="cpu")
    assert same(loaded.state, net.state_dict())
    assert loaded.metadata == {"run": {"checkpoint": {}, "seed": 3}, "epoch": 7}


def test_of_several_sets_the_usual_name_wins_and_the_other_is_kept(written) -> None:
    one, two = trained(1), trained(2)
    loaded = load(written({"ema": two.state_dict(), "model": one.state_dict()}), Net(), device="cpu")
    assert same(loaded.state, one.state_dict())
    assert same(loaded.metadata["ema"], two.state_dict())
    assert any("'model'" in note and "'ema'" in note for note in loaded.notes)


def test_of_several_sets_the_one_that_fits_the_model_is_taken(written) -> None:
    net, other = trained(), nn.Linear(3, 2)
    path = written({"D": other.state_dict(), "G": net.state_dict()})
    assert same(load(path, Net(), device="cpu").state, net.state_dict())
    assert same(load(path, nn.Linear(3, 2), device="cpu").state, other.state_dict())
    assert any("'G'" in note and "'D'" in note for note in load(path, device="cpu").notes)


def test_weights_among_their_metadata(written) -> None:
    net, fresh = trained(), Net()
    loaded = load(written(dict(net.state_dict(), epoch=3, name="digits")), fresh, device="cpu")
    assert same(fresh.state_dict(), net.state_dict())
    assert loaded.metadata == {"epoch": 3, "name": "digits"}


@pytest.mark.parametrize("name", ["optimizer", "optimiser", "optimizer_state_dict", "opt", "adam"])
def test_the_optimisers_state_goes_on_where_it_was(tagged, name: str) -> None:
    net, fresh = trained(), Net()
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    net.eval()(EXAMPLE).square().sum().backward()
    optimiser.step()
    path = tagged({"model": net.state_dict(), name: optimiser.state_dict(), "epoch": 1}, "cuda:0", "cuda:1")
    loaded = load(path, fresh, device="cpu")
    assert loaded.metadata == {"epoch": 1}
    goes_on = torch.optim.Adam(fresh.parameters())
    goes_on.load_state_dict(loaded.optimiser)
    for model, steps in ((net, optimiser), (fresh, goes_on)):
        steps.zero_grad()
        model(EXAMPLE).square().sum().backward()
        steps.step()
    assert same(fresh.state_dict(), net.state_dict())


def test_lightnings_list_of_one_optimiser(written) -> None:
    state = torch.optim.SGD(trained().parameters(), lr=0.5, momentum=0.9).state_dict()
    loaded = load(
        written({"state_dict": trained().state_dict(), "optimizer_states": [state], "epoch": 2}), device="cpu"
    )
    assert loaded.optimiser["param_groups"][0]["lr"] == 0.5
    assert loaded.metadata == {"epoch": 2}


def test_a_file_of_weights_alone_has_no_optimiser(written) -> None:
    loaded = load(written(trained().state_dict()), device="cpu")
    assert loaded.optimiser is None and loaded.metadata == {} and loaded.model is None


def test_extra_state_of_a_module_comes_back(written) -> None:
    class Counting(nn.Linear):
        def get_extra_state(self):
            return {"calls": 3}

        def set_extra_state(self, state):
            self.calls = state["calls"]

    fresh = Counting(2, 2)
    load(written(Counting(2, 2).state_dict()), fresh, device="cpu")
    assert fresh.calls == 3
