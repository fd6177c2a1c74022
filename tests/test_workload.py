"""Work counted from a call, against work counted by hand."""

from __future__ import annotations

import pytest
import torch

from labkit.errors import InputError
from labkit.workload import CountedWork, count_work

F32 = 4


def test_a_product_reads_two_matrices_and_writes_one() -> None:
    a, b = torch.ones(3, 5), torch.ones(5, 7)
    assert count_work(lambda: a @ b) == CountedWork(2 * 3 * 5 * 7, F32 * (3 * 5 + 5 * 7 + 3 * 7), 1)


def test_a_chain_of_elementwise_operators_pays_for_every_step() -> None:
    x = torch.ones(1000)
    # 2 + 1, 2 + 1 and 1 + 1 arrays; torch counts no FLOP of these
    assert count_work(lambda: ((x + x) * x).relu()) == CountedWork(0, F32 * 1000 * (3 + 3 + 2), 3)


def test_a_convolution_by_its_formula() -> None:
    x, kernel = torch.ones(2, 3, 8, 8), torch.ones(16, 3, 3, 3)
    found = count_work(lambda: torch.conv2d(x, kernel, padding=1))
    assert found.flop == 2 * (2 * 16 * 8 * 8) * (3 * 3 * 3)  # two FLOP for each weight, at each output
    assert found.bytes_moved == F32 * (2 * 3 * 8 * 8 + 16 * 3 * 3 * 3 + 2 * 16 * 8 * 8)
    assert found.launches == 1


def test_a_training_step_costs_three_forward_passes_of_a_product() -> None:
    x, w = torch.ones(4, 6, requires_grad=True), torch.ones(6, 2, requires_grad=True)
    forward = count_work(lambda: x @ w).flop
    assert forward == 2 * 4 * 6 * 2
    assert count_work(lambda: (x @ w).sum().backward()).flop == 3 * forward


def test_views_and_allocations_start_no_kernel() -> None:
    x = torch.ones(6, 4)
    found = count_work(lambda: x.t().reshape(2, 12).view(24)[3:].add(torch.empty(21)))
    # reshape of the transposed matrix must copy: 24 read, 24 written; the sum reads 21 twice and writes 21.
    assert found == CountedWork(0, F32 * (24 + 24 + 3 * 21), 2)


def test_what_is_changed_in_place_is_read_and_written() -> None:
    x, y = torch.ones(100), torch.ones(100)
    assert count_work(lambda: x.add_(y)) == CountedWork(0, F32 * 3 * 100, 1)
    assert count_work(lambda: torch._foreach_add_([x, x.clone()], [y, y])).launches == 2  # the copy, and one for both


def test_an_expanded_value_is_read_once() -> None:
    x, one = torch.ones(50, 20), torch.ones(1, 1).expand(50, 20)
    assert count_work(lambda: x * one).bytes_moved == F32 * (1000 + 1 + 1000)


def test_half_precision_moves_half_the_bytes() -> None:
    x = torch.ones(64, dtype=torch.bfloat16)
    assert count_work(lambda: x + x).bytes_moved == 2 * 3 * 64


def test_work_too_large_for_this_machine_is_counted_on_meta() -> None:
    a = torch.empty(10**6, 10**6, device="meta")  # 4 TB
    assert count_work(lambda: a @ a) == CountedWork(2 * 10**18, F32 * 3 * 10**12, 1)


def test_the_optimiser_counts_too() -> None:
    weight = torch.nn.Parameter(torch.ones(10))
    weight.grad = torch.ones(10)
    optimiser = torch.optim.SGD([weight], lr=0.1, foreach=False)
    assert count_work(optimiser.step) == CountedWork(0, F32 * 3 * 10, 1)  # weight += -lr * grad


@pytest.mark.parametrize("fn", [None, 3, lambda: 1 + 1])
def test_nonsense_is_refused(fn) -> None:
    with pytest.raises(InputError):
        count_work(fn)


def test_an_error_of_the_work_itself_is_passed_on() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        count_work(lambda: torch.ones(2, 3) @ torch.ones(2, 3))


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_a_sparse_matrix_is_read_as_its_values_and_their_places() -> None:
    identity, x = torch.eye(4), torch.ones(4, 4)
    places = {
        identity.to_sparse(): 2 * 4 * 8,  # a row and a column for each of 4 values
        identity.to_sparse_csr(): (5 + 4) * 8,  # where each of 4 rows begins and the last ends, and 4 columns
    }
    for sparse, places_bytes in places.items():
        assert count_work(lambda sparse=sparse: sparse.neg()).bytes_moved == 2 * (4 * 4 + places_bytes)
        assert count_work(lambda sparse=sparse: sparse @ x).launches >= 1


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_counted() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert count_work(lambda: nested * 2).bytes_moved >= 2 * 5 * 4


def test_attention_has_its_flop_on_a_cpu_too() -> None:
    """Two products of heads · queries · keys · width each, whatever kernel does them."""
    q = torch.ones(2, 4, 8, 16)
    attend = torch.nn.functional.scaled_dot_product_attention
    assert count_work(lambda: attend(q, q, q)).flop == 2 * 2 * (2 * 4) * 8 * 8 * 16
