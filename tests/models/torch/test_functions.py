"""Functions of PyTorch's tensors as models: views, writes in place, indexes, scans; read by
load_model and by torch.compile, with gradients, and held against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.models.torch.test_modules import leaves, normal
from tests.peers import torch
from tests.support import LONG
from workbench import load_model
from workbench.models.torch.values import from_torch, to_torch

F = torch.nn.functional


def written_in_place(x: Any) -> Any:
    y = x.clone()
    y[1:] *= 2
    y[:, 0] = x[:, 1]
    y.add_(1).relu_()
    return y


def written_through_a_view(x: Any) -> Any:
    y = x.clone()
    y.view(-1)[::2].mul_(3)
    return y.t()


def layer_of_attention(x: Any) -> Any:
    heads = x.reshape(2, 3, 2, 4).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads, is_causal=True).transpose(1, 2)


def masked(x: Any) -> Any:
    mask = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool).tril()
    return (x.transpose(-1, -2) @ x).masked_fill(~mask, float("-inf")).softmax(-1)


def dropped(x: Any) -> Any:
    mask = torch.arange(x.numel()).reshape(x.shape) % 3 != 0
    return x * mask / (2 / 3)


def without_gradients(x: Any) -> Any:
    with torch.no_grad():
        y = x.sin()
    return x * x.detach().exp() * y


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "views": (lambda x: x.view(4, 3).t().unsqueeze(1).expand(3, 2, 4)[..., ::2], ((3, 4),)),
    "in place": (written_in_place, ((3, 4),)),
    "through a view": (written_through_a_view, ((3, 4),)),
    "cat": (lambda x, y: torch.cat([x, y.exp()], 1), ((3, 4), (3, 2))),
    "stack": (lambda x, y: torch.stack([x, x * y], -1), ((3, 4), (3, 4))),
    "split": (lambda x: x.split([1, 3], 1)[1] * x.split(2, 1)[0][:, :1], ((3, 4),)),
    "chunk": (lambda x: torch.mul(*x.chunk(2, -1)), ((3, 4),)),
    "gather": (lambda x: x.gather(1, torch.tensor([[0, 3], [1, 1], [2, 0]])), ((3, 4),)),
    "scatter": (
        lambda x: torch.zeros(3, 5).scatter(1, torch.tensor([[4], [0], [2]]), x),
        ((3, 1),),
    ),
    "scatter_add": (
        lambda x: torch.zeros(2, 4).scatter_add(0, torch.tensor([[0, 1, 0, 1]] * 3), x),
        ((3, 4),),
    ),
    "index": (lambda x: x[torch.tensor([2, 0, 2]), 1:], ((3, 4),)),
    "index_add": (lambda x: torch.zeros(4, 4).index_add(0, torch.tensor([3, 1, 3]), x), ((3, 4),)),
    "put": (lambda x, y: x.put(torch.tensor([1, -1, 1]), y, accumulate=True), ((3, 4), (3,))),
    "angle": (lambda x: x.angle() * x, ((3, 4),)),
    "index_put": (
        lambda x: torch.zeros(4, 4).index_put((torch.tensor([3, 1, 3]),), x, accumulate=True),
        ((3, 4),),
    ),
    "index_reduce": (
        lambda x, y: x.index_reduce(1, torch.tensor([3, 1, 3]), y, "prod"),
        ((2, 4), (2, 3)),
    ),
    "masked_fill": (masked, ((4, 3),)),
    "where": (lambda x, y: torch.where(x > 0, x, y.exp()), ((3, 4), (4,))),
    "attention": (layer_of_attention, ((2, 3, 8),)),
    "einsum": (lambda x, y: torch.einsum("bij,bjk->bk", x, y), ((2, 3, 4), (2, 4, 5))),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), ((1, 2, 3, 4),)),
    "bilinear": (
        lambda x: F.interpolate(x, size=(5, 3), mode="bilinear", align_corners=False),
        ((1, 2, 3, 4),),
    ),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"), ((1, 1, 4, 5),)),
    "grid_sample": (
        lambda x, grid: F.grid_sample(x, grid.tanh(), align_corners=False),
        ((1, 2, 4, 5), (1, 3, 3, 2)),
    ),
    "grid_sample cubic": (
        lambda x, grid: F.grid_sample(
            x, grid, mode="bicubic", padding_mode="reflection", align_corners=True
        ),
        ((1, 1, 5, 6), (1, 2, 3, 2)),
    ),
    "topk": (lambda x: x.topk(2, 1)[0], ((3, 5),)),
    "sort": (lambda x: x.sort(1, descending=True)[0], ((3, 5),)),
    "cumsum": (lambda x: x.cumsum(1) + x.cumprod(0), ((3, 4),)),
    "dropout": (dropped, ((3, 4),)),
    "norms": (lambda x: x.norm(dim=1) + x.norm(1, dim=1) + x.norm(float("inf"), dim=1), ((3, 4),)),
    "variances": (lambda x: x.var(1) + x.std(1, correction=0), ((3, 4),)),
    "logsumexp": (lambda x: x.logsumexp(1) + F.log_softmax(x, 1).sum(1), ((3, 4),)),
    "roll and flip": (lambda x: x.roll((1, 2), (0, 1)) * x.flip(1), ((3, 4),)),
    "pad": (lambda x: F.pad(x, (1, 2), value=0.5) + F.pad(x, (2, 1), "reflect"), ((1, 3, 4),)),
    "unfold": (lambda x: x.unfold(1, 3, 2).sum(-1), ((3, 7),)),
    "tril": (lambda x: x.tril(-1) + x.triu(1) + x.diagonal().sum(), ((4, 4),)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5) + x.clamp_min(0) * x.abs(), ((3, 4),)),
    "powers": (lambda x: x.pow(2) + x.abs().pow(0.5) + 2**x, ((3, 4),)),
    "products": (lambda x, y: torch.baddbmm(x, y, y.mT, beta=0.5), ((2, 3, 3), (2, 3, 4))),
    "argmax": (lambda x: x.argmax(1) + (x > 0).sum(1), ((3, 4),)),
    "cross entropy": (lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1])), ((3, 4),)),
    "cast": (lambda x: (x * 10).int().float() + x.bfloat16().float(), ((3, 4),)),
    "remainders": (lambda x, y: x % y.abs().add(1) + torch.fmod(x, 0.7), ((3, 4), (3, 4))),
    "repeat": (lambda x: x.repeat(2, 1).repeat_interleave(2, 1), ((3, 4),)),
    "no gradients": (without_gradients, ((3, 4),)),
    "expm1 at 0": (lambda x: x.relu().expm1() + x.relu().log1p() + F.selu(x.relu()), ((3, 4),)),
    "log1p below -1": (lambda x: (3 * x).log1p().nan_to_num(), ((3, 4),)),
    "no images": (lambda x, w: F.conv_transpose2d(x, w, padding=1), ((0, 2, 3, 3), (2, 3, 2, 2))),
    "padded rows": (
        lambda w: F.embedding(torch.tensor([1, 2, 2, 0]), w, 2, scale_grad_by_freq=True),
        ((3, 4),),
    ),
    "outer": (lambda x, y: torch.outer(x, y).tanh() @ y, ((3,), (4,))),
}


class Applied(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def gradients(values: Any, inputs: list[Any], seeds: list[Any]) -> list[Any]:
    listed = [(v, s) for v, s in zip(leaves(values), seeds, strict=True) if v.requires_grad]
    if not listed:
        return [None] * len(inputs)
    outputs, weights = zip(*listed, strict=True)
    return list(torch.autograd.grad(outputs, inputs, weights, allow_unused=True))


EDGES = ["no gradients", "log1p below -1", "no images", "padded rows"]


@pytest.mark.filterwarnings("ignore:index_reduce")  # its interface may change
@pytest.mark.parametrize("name", FUNCTIONS if LONG else [*[*FUNCTIONS][::14], *EDGES])
def test_a_function_gives_what_pytorch_gives(name: str) -> None:
    """Through torch.compile with gradients, and through load_model with ours."""
    torch._dynamo.reset()
    torch.manual_seed(len(name))
    function, shapes = FUNCTIONS[name]
    inputs = [normal(*shape).requires_grad_() for shape in shapes]
    expected = function(*inputs)
    seeds = [torch.randn_like(v) if v.is_floating_point() else v for v in leaves(expected)]
    wanted = gradients(expected, inputs, seeds)

    values = torch.compile(function, backend="workbench")(*inputs)
    close(leaves(values), leaves(expected))
    close(gradients(values, inputs, seeds), wanted)

    tensors = [from_torch(x.detach().clone()).requires_grad_() for x in inputs]
    model = load_model(Applied(function))
    (ours,) = leaves(model(*tensors))
    close([to_torch(ours.detach())], leaves(expected))
    if ours.dtype.is_float and any(each is not None for each in wanted):
        found = ours.gradient(*tensors, gradient=from_torch(seeds[0]))
        close([to_torch(each.contiguous()) for each in found], wanted)


def close(values: list[Any], expected: list[Any]) -> None:
    for ours, theirs in zip(values, expected, strict=True):
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
