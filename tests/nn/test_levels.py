"""The level loop against plain autograd, and what it keeps in memory."""

from __future__ import annotations

import weakref
from itertools import pairwise
from random import Random
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from laconic.nn.composers import COMPOSERS, compose_with_own, make_composer
from laconic.nn.levels import compose_levels, compose_levels_plainly

SIZE = 6


def forest(seed: int, depth: int, width: int, letters: int) -> tuple[Tensor, list[int]]:
    """Random levels: each node has one operand on the level below it."""
    random = Random(seed)
    children: list[list[int]] = []
    offsets, below = [0], range(letters)
    for _ in range(depth):
        for _ in range(random.randint(1, width)):
            pair = [random.choice(below), random.randrange(letters + offsets[-1])]
            random.shuffle(pair)
            children.append(pair)
        below = range(letters + offsets[-1], letters + len(children))
        offsets.append(len(children))
    return torch.tensor(children, dtype=torch.int32).reshape(-1, 2), offsets


def gradients(
    how: str,
    composer: nn.Module,
    leaves: Tensor,
    children: Tensor,
    offsets: list[int],
    own: Tensor | None = None,
) -> tuple[Tensor, list[Tensor | None]]:
    """States, and gradients of a weighted sum of them, by the loop or by its oracle."""
    parameters = list(composer.parameters())
    inputs = [each.detach().requires_grad_() for each in (leaves, own) if each is not None]
    compose: Any = composer.compose if own is None else compose_with_own(cast(Any, composer))
    leaves, *more = composer.leaf(inputs[0]), *inputs[1:]  # type: ignore[operator]
    if how == "loop":
        states = compose_levels(compose, parameters, leaves, children, offsets, *more)
    else:
        states = compose_levels_plainly(compose, leaves, children, offsets, *more)
    weights = torch.cos(torch.arange(states.numel(), dtype=states.dtype)).view_as(states)
    found = torch.autograd.grad((states * weights).sum(), [*inputs, *parameters], allow_unused=True)
    return states.detach(), list(found)


def close(a: Tensor | None, b: Tensor | None) -> bool:
    # The oracle gives no gradient where the loop may give zeros, and the other way round.
    if a is None or b is None:
        return all(x is None or not x.any() for x in (a, b))
    return torch.allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", sorted(COMPOSERS))
@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(0, 40),
    st.integers(1, 12),
    st.integers(1, 5),
    st.booleans(),
)
def test_the_loop_equals_plain_autograd(
    name: str, seed: int, depth: int, width: int, letters: int, owns: bool
) -> None:
    torch.manual_seed(seed % 1000)
    composer = make_composer(name, SIZE).double()
    children, offsets = forest(seed, depth, width, letters)
    leaves = torch.randn(letters, SIZE, dtype=torch.float64)
    size = cast(Any, composer).state_size
    owns = owns and name != "linear_recurrence"  # its states are maps, which would explode
    own = torch.randn(len(children), size, dtype=torch.float64) if owns else None
    states, found = gradients("loop", composer, leaves, children, offsets, own)
    wanted_states, wanted = gradients("plain", composer, leaves, children, offsets, own)
    assert torch.allclose(states, wanted_states, rtol=1e-12, atol=1e-12)
    assert all(close(a, b) for a, b in zip(found, wanted, strict=True))


def test_gradients_are_those_of_finite_differences() -> None:
    torch.manual_seed(0)
    composer: Any = make_composer("grc", 4).double()
    children, offsets = forest(1, 3, 2, 2)
    parameters = list(composer.parameters())

    def total(leaves: Tensor, *_: Tensor) -> Tensor:
        return compose_levels(composer.compose, parameters, leaves, children, offsets)

    leaves = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(total, (leaves, *parameters))


def test_frozen_parameters_and_leaves_get_no_gradient() -> None:
    composer: Any = make_composer("dual_gru", SIZE)
    children, offsets = forest(3, 5, 4, 3)
    frozen = composer.candidate.weight.requires_grad_(False)
    parameters = list(composer.parameters())
    states = compose_levels(composer.compose, parameters, torch.randn(3, SIZE), children, offsets)
    states.sum().backward()
    assert frozen.grad is None
    assert all(p.grad is not None for p in parameters if p is not frozen)


def test_only_the_leaves_need_gradients() -> None:
    composer: Any = make_composer("mlp", SIZE).requires_grad_(False)
    children, offsets = forest(3, 5, 4, 3)
    leaves = torch.randn(3, SIZE, requires_grad=True)
    args = list(composer.parameters()), leaves, children, offsets
    found = torch.autograd.grad(compose_levels(composer.compose, *args).sum(), leaves)
    wanted = torch.autograd.grad(
        compose_levels_plainly(composer.compose, leaves, children, offsets).sum(), leaves
    )
    assert torch.allclose(found[0], wanted[0], atol=1e-5)


@pytest.mark.parametrize("inside", [False, True], ids=["backward outside", "backward inside"])
def test_bf16_autocast_is_entered_again_on_the_way_back(inside: bool) -> None:
    torch.manual_seed(0)
    composer: Any = make_composer("grc", 16)
    children, offsets = forest(5, 6, 8, 4)
    leaves = torch.randn(4, 16)
    parameters = list(composer.parameters())
    seen: list[torch.dtype] = []
    composer.gates.register_forward_hook(lambda _module, _inputs, output: seen.append(output.dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states = compose_levels(composer.compose, parameters, leaves, children, offsets)
        if inside:
            states.sum().backward()
    if not inside:
        states.sum().backward()
    assert states.dtype == torch.float32
    assert set(seen) == {torch.bfloat16}
    assert len(seen) > len(offsets) - 1
    exact = compose_levels(composer.compose, parameters, leaves, children, offsets)
    assert torch.allclose(states, exact, atol=0.1)
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in parameters)


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of storages made inside it that are still alive, and the most there were."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, Tensor):
                self.add(tensor.untyped_storage())
        return result

    def add(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self.known or not storage.nbytes():
            return
        size = storage.nbytes()
        self.known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self.drop, key, size)

    def drop(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.live -= size


def kept(make: Any) -> int:
    """Bytes of distinct storages that autograd keeps for the way back."""
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        make()
    return sum(sizes.values())


@pytest.mark.parametrize("name", ["grc", "dual_gru", "mlp", "tree_lstm"])
def test_states_are_all_that_is_kept_for_the_way_back(name: str) -> None:
    composer: Any = make_composer(name, 64)
    children, offsets = forest(7, 20, 60, 30)
    leaves = torch.randn(30, composer.state_size, requires_grad=True)
    parameters = list(composer.parameters())
    states = (30 + len(children)) * composer.state_size * 4
    given_anyway = sum(p.numel() * p.element_size() for p in parameters) + children.numel() * 4
    loop = kept(lambda: compose_levels(composer.compose, parameters, leaves, children, offsets))
    plain = kept(lambda: compose_levels_plainly(composer.compose, leaves, children, offsets))
    assert loop <= states + given_anyway
    assert plain - given_anyway > 3 * (loop - given_anyway)


def live_bytes(make: Any) -> tuple[int, int]:
    """The most bytes alive at once while `make` runs, and then while its sum's way back runs."""
    with LiveBytes() as there:
        made = make()
        forward = there.peak
        made.sum().backward()
    return forward, there.peak


@pytest.mark.parametrize("name", ["grc", "dual_gru", "mlp", "tree_lstm"])
def test_peak_memory_is_the_states_and_one_level(name: str) -> None:
    composer: Any = make_composer(name, 64)
    children, offsets = forest(7, 20, 600, 30)
    leaves = torch.randn(30, composer.state_size, requires_grad=True)
    parameters = list(composer.parameters())
    states = (30 + len(children)) * composer.state_size * 4
    largest = max(end - begin for begin, end in pairwise(offsets))
    rows = children[:largest].long()

    def one_level() -> Tensor:
        pair = torch.randn(30, composer.state_size)[rows % 30].requires_grad_()
        return cast(Tensor, composer.compose(pair[:, 0], pair[:, 1]))

    def loop() -> Tensor:
        return compose_levels(composer.compose, parameters, leaves, children, offsets)

    def plain() -> Tensor:
        return compose_levels_plainly(composer.compose, leaves, children, offsets)

    level_forward, level_back = live_bytes(one_level)
    forward, back = live_bytes(loop)
    slack = 1.1 * sum(p.numel() * p.element_size() for p in parameters)  # their gradients
    assert forward <= states + level_forward
    # On the way back there are also the gradients of the states: those that come in, and their sum.
    assert back <= 3 * states + level_back + slack
    plain_forward, plain_back = live_bytes(plain)
    assert plain_forward > 3 * forward
    assert plain_back > 2 * back


def test_children_gradients_add_up_when_operands_are_equal() -> None:
    children = torch.tensor([[0, 0]], dtype=torch.int32)
    leaves = torch.ones(1, 2, requires_grad=True)
    compose_levels(lambda left, right: 2 * left + 3 * right, [], leaves, children, [0, 1])[
        1
    ].sum().backward()
    assert leaves.grad is not None
    assert leaves.grad.tolist() == [[5, 5]]
