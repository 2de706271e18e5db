"""Random networks of torch.nn: the network of a seed, and the kinds of lines that it grows by.

A kind is a function that returns the text of a value, with statements before it, if there are any.
Its arguments are drawn without regard to what PyTorch computes: what it refuses is left out.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable

from tests.models.torch.network_growth import (
    MOST_ELEMENTS,
    SIZES,
    SPACE,
    Growth,
    Network,
    NoOperand,
)
from tests.peers import torch

FLOATS = ("float32",) * 12 + ("float64", "float16", "bfloat16")


def network(seed: int, lines: int = 9) -> Network:
    """Return the network of a seed."""
    dice = random.Random(seed)
    torch.manual_seed(seed)
    dtype = dice.choice(FLOATS)
    grown = Growth(dice, dtype, dice.random() < 0.5, owner=torch.nn.Module())
    inputs = []
    for place in range(dice.choice((1, 1, 2))):
        inputs.append(_input(dice, dtype))
        grown.names[f"x{place}"] = eval(inputs[-1], SPACE)
    if dice.random() < 0.3:
        shape = tuple(dice.choice(SIZES[:5]) for _ in range(dice.choice((1, 2, 2))))
        inputs.append(f"torch.randint(0, 7, {shape})")
        grown.names[f"x{len(inputs) - 1}"] = eval(inputs[-1], SPACE)
    wanted = dice.randint(2, lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(40 * lines):
            if grown.grow(dice.choices(LINES, WEIGHTS)[0]) and grown.count >= wanted:
                break
    made = [n for n in grown.names if n.startswith("v")]
    results = made[-dice.choice((1, 1, 2, 3)) :] or ["x0 * 2"]
    return Network(
        seed, grown.init, grown.forward, inputs, results, dtype, grown.is_training, grown.count
    )


def _input(dice: random.Random, dtype: str) -> str:
    rank = dice.choice((2, 2, 3, 3, 4, 4, 4, 5))
    batch = dice.choice((1, 2, 2, 3, 3, 5) + (0,) * (dice.random() < 0.2))
    most = {2: 11, 3: 11, 4: 9, 5: 5}[rank]
    shape = [batch] + [dice.choice([n for n in SIZES if n <= most]) for _ in range(rank - 1)]
    while math.prod(shape) > MOST_ELEMENTS // 2:
        shape[dice.randrange(1, rank)] = 2
    return f"torch.randn({tuple(shape)}, dtype=torch.{dtype})"


def _activation(g: Growth) -> str:
    return g.pick(
        "nn.ReLU()",
        "nn.GELU()",
        "nn.GELU('tanh')",
        "nn.SiLU()",
        "nn.Tanh()",
        "nn.Sigmoid()",
        "nn.ELU()",
        "nn.LeakyReLU(0.2)",
        "nn.Softplus()",
        "nn.Hardswish()",
        "nn.Mish()",
        "nn.ReLU6()",
        "nn.PReLU()",
        "nn.SELU()",
        "nn.Softsign()",
        "nn.LogSigmoid()",
        "nn.Hardtanh(-0.5, 1)",
        "nn.Tanhshrink()",
        "nn.Softshrink(0.3)",
        "nn.Hardsigmoid()",
        "nn.CELU(1.5)",
        "nn.Identity()",
        "nn.Dropout(0.0)",
        "nn.ReLU(inplace=True)",
        "nn.Softmax(-1)",
        "nn.LogSoftmax(-1)",
    )


def activation(g: Growth) -> str:
    x, text = g.value(), _activation(g)
    return f"{g.module(text)}({x}{'.clone()' if 'inplace' in text else ''})"


def linear(g: Growth) -> str:
    x = g.value(lambda v: v.ndim > 0)
    width, bias = g.names[x].shape[-1], g.pick("", "", ", bias=False")
    return f"{g.module(f'nn.Linear({width}, {g.pick(*SIZES)}{bias})')}({x})"


def sequential(g: Growth) -> str:
    """Layers on the last axis, and what they are added to where shapes allow."""
    x = g.value(lambda v: v.ndim > 1)
    width = start = g.names[x].shape[-1]
    parts = []
    for _ in range(g.dice.randint(1, 3)):
        following = start if g.dice.random() < 0.5 else g.pick(*SIZES)
        parts.append(f"nn.Linear({width}, {following})")
        parts.append(g.pick(_activation(g), f"nn.LayerNorm({following})", "nn.Dropout(0.0)"))
        width = following
    layers = ", ".join(parts)
    call = f"{g.module(f'nn.Sequential({layers})')}({x})"
    return f"{x} + {call}" if width == start else call


def convolution(g: Growth) -> str:
    x = g.value(lambda v: v.ndim in (3, 4, 5))
    shape, axes = g.names[x].shape, g.names[x].ndim - 2
    channels = shape[1]
    groups = g.pick(*[n for n in range(1, channels + 1) if channels % n == 0][:4], 1)
    out = groups * g.pick(1, 2, 3)
    each = [g.pick(1, 2, 3, *([tuple(g.pick(1, 2, 3) for _ in range(axes))])) for _ in range(2)]
    options = f"stride={each[1]}, dilation={g.pick(1, 1, 2)}, groups={groups}"
    options += f", bias={g.pick(True, True, False)}"
    if g.dice.random() < 0.25:
        more = f"padding={g.pick(0, 1)}, output_padding={g.pick(0, 0, 1)}"
        text = f"nn.ConvTranspose{axes}d({channels}, {out}, {each[0]}, {options}, {more})"
    else:
        mode = g.pick("zeros", "zeros", "zeros", "reflect", "replicate", "circular")
        padding = g.pick(0, 1, 2, "'same'", "'valid'")
        options += f", padding={padding}, padding_mode={mode!r}"
        text = f"nn.Conv{axes}d({channels}, {out}, {each[0]}, {options})"
    return f"{g.module(text)}({x})"


def pool(g: Growth) -> str:
    x = g.value(lambda v: v.ndim in (3, 4, 5))
    axes = g.names[x].ndim - 2
    window, stride = g.pick(1, 2, 3), g.pick(None, 1, 2)
    padding, ceil = g.pick(0, 0, 1), g.pick(False, False, True)
    common = f"{window}, stride={stride}, padding={padding}, ceil_mode={ceil}"
    size = g.pick(1, 2, 3, tuple(g.pick(1, 2, 3) for _ in range(axes)))
    text = g.pick(
        f"nn.MaxPool{axes}d({common}, dilation={g.pick(1, 1, 2)})",
        f"nn.AvgPool{axes}d({common}, count_include_pad={g.pick(True, False)})",
        f"nn.AdaptiveAvgPool{axes}d({size})",
        f"nn.AdaptiveMaxPool{axes}d({size})",
        f"nn.LPPool{min(axes, 2)}d(2, {window})",
    )
    return f"{g.module(text)}({x})"


def normalization(g: Growth) -> str:
    x = g.value(lambda v: v.ndim > 1)
    shape = g.names[x].shape
    axes, channels, width = len(shape) - 2, shape[1], shape[-1]
    affine = g.pick(True, True, False)
    rest = f"affine={affine}, track_running_stats={g.pick(True, False)}"
    groups = g.pick(*[n for n in range(1, channels + 1) if channels % n == 0], 1)
    choices = [
        f"nn.LayerNorm({width}, elementwise_affine={affine})",
        f"nn.RMSNorm({width})",
        f"nn.LayerNorm({tuple(shape[1:])})",
        f"nn.BatchNorm{max(1, axes)}d({channels}, momentum={g.pick(0.1, 0.3, None)}, {rest})",
        f"nn.BatchNorm{max(1, axes)}d({channels}, {rest})",
        f"nn.GroupNorm({groups}, {channels}, affine={affine})",
        "nn.LocalResponseNorm(2)",
    ]
    if axes > 0:
        choices.append(f"nn.InstanceNorm{axes}d({channels}, {rest})")
    if axes > 3:
        choices = [choice for choice in choices if "d(" not in choice]
    return f"{g.module(g.pick(*choices))}({x})"


def attention(g: Growth) -> str:
    x = g.value(lambda v: v.ndim == 3)
    width = g.names[x].shape[-1]
    heads = g.pick(*[n for n in range(1, width + 1) if width % n == 0])
    first = g.pick(True, False)
    kind = g.pick("MHA", "sdpa", "layer", "heads")
    if kind == "MHA":
        text = f"nn.MultiheadAttention({width}, {heads}, batch_first={first})"
        weights = g.pick("", ", need_weights=False")
        return f"{g.module(text)}({x}, {x}, {x}{weights})[0]"
    if kind == "layer":
        rest = f"dropout=0.0, norm_first={g.pick(True, False)}, batch_first={first}"
        text = f"nn.TransformerEncoderLayer({width}, {heads}, {g.pick(3, 5, 8)}, {rest})"
        return f"{g.module(text)}({x})"
    options = g.pick("", ", is_causal=True", ", scale=0.3")
    if kind == "sdpa":
        return f"F.scaled_dot_product_attention({x}, {x}.tanh(), {x}{options})"
    split = f"{x}.unflatten(-1, ({heads}, -1)).transpose(1, 2)"
    call = f"F.scaled_dot_product_attention({split}, {split}.sin(), {split}{options})"
    return f"{call}.transpose(1, 2).flatten(2)"


def recurrent(g: Growth) -> str:
    x = g.value(lambda v: v.ndim in (2, 3))
    width, hidden = g.names[x].shape[-1], g.pick(1, 2, 3, 5)
    kind = g.pick("LSTM", "GRU", "RNN")
    rest = f"num_layers={g.pick(1, 1, 2)}, bidirectional={g.pick(False, False, True)}"
    rest += f", bias={g.pick(True, True, False)}, batch_first={g.pick(True, False)}"
    return f"{g.module(f'nn.{kind}({width}, {hidden}, {rest})')}({x})[0]"


def embedding(g: Growth) -> str:
    found = [n for n, v in g.names.items() if not v.is_floating_point() and v.dtype != torch.bool]
    if not found:
        raise NoOperand
    ids, rest = g.pick(*found), g.pick("", ", padding_idx=1", ", scale_grad_by_freq=True")
    if g.names[ids].ndim == 2 and g.dice.random() < 0.3:
        mode = g.pick("sum", "mean", "max")
        return f"{g.module(f'nn.EmbeddingBag(12, {g.pick(1, 3, 4)}, mode={mode!r})')}({ids})"
    return f"{g.module(f'nn.Embedding(12, {g.pick(1, 3, 4)}{rest})')}({ids})"


def picture(g: Growth) -> str:
    """Modules that move or resample the axes of a picture."""
    x = g.value(lambda v: v.ndim in (3, 4))
    axes = g.names[x].ndim - 2
    pads = tuple(g.pick(0, 1, 2, -1) for _ in range(2 * axes))
    mode = g.pick("nearest", "linear" if axes == 1 else "bilinear", "nearest-exact", "bicubic")
    corners = f", align_corners={g.pick(True, False)}" if "linear" in mode or "cub" in mode else ""
    size = g.pick(f"scale_factor={g.pick(2, 1.5, 0.7)}", f"size={g.pick(1, 3, 5)}")
    text = g.pick(
        f"nn.Upsample({size}, mode={mode!r}{corners})",
        f"nn.{g.pick('Reflection', 'Replication', 'Circular', 'Zero')}Pad{axes}d({pads})",
        f"nn.ConstantPad{axes}d({pads}, 0.5)",
        "nn.PixelShuffle(2)",
        "nn.PixelUnshuffle(2)",
        "nn.ChannelShuffle(2)",
        f"nn.Unfold({g.pick(1, 2, 3)}, padding={g.pick(0, 1)}, stride={g.pick(1, 2)})",
    )
    return f"{g.module(text)}({x})"


def _axis(g: Growth, x: str) -> int:
    rank = g.names[x].ndim
    return g.dice.randrange(-rank, rank)


def shaped(g: Growth) -> str:
    x = g.value(lambda v: v.ndim > 0)
    shape, rank = list(g.names[x].shape), g.names[x].ndim
    order = g.dice.sample(range(rank), rank)
    d, e = _axis(g, x), _axis(g, x)
    cut = g.dice.randint(1, max(1, rank - 1))
    merged = [*shape[: cut - 1], -1, *shape[cut + 1 :]]
    factors = [n for n in range(1, shape[d] + 1) if shape[d] % n == 0] or [1]
    size, step = g.dice.randint(1, max(1, shape[d])), g.pick(1, 2)
    return g.pick(
        f"{x}.permute({tuple(order)})",
        f"{x}.transpose({d}, {e})",
        f"{x}.flatten({cut - 1})",
        f"{x}.reshape({tuple(merged)})",
        f"{x}.unsqueeze({d})",
        f"{x}.squeeze()",
        f"{x}.unflatten({d}, ({g.pick(*factors)}, -1))",
        f"{x}.reshape(-1)",
        f"{x}.flip({d})",
        f"{x}.roll({g.pick(1, 2, -1)}, {d})",
        f"{x}.swapaxes({d}, {e}).contiguous()",
        f"{x}.narrow({d}, {g.pick(0, 1)}, {size})",
        f"{x}.select({d}, {g.pick(0, -1)})",
        f"{x}.unfold({d}, {size}, {step})",
        f"{x}.repeat_interleave(2, {d})",
        f"{x}.expand({g.pick(2, 3)}, *{x}.shape)",
        f"{x}[{g.pick('1:', '::2', ':-1', '...,:2')}]",
        f"{x}.movedim({d}, {e})",
        f"{x}.chunk(2, {d})[{g.pick(0, -1)}]",
        f"{x}.split({g.pick(1, 2)}, {d})[-1]",
        f"{x}.tile((2,) + (1,) * {rank - 1})",
        f"{x}.diagonal(0, {d}, {e})",
        f"{x}.tril()",
        f"{x}.triu(1)",
        f"{x}.unbind({d})[0]",
        f"F.pad({x}, ({g.pick(0, 1, -1)}, {g.pick(0, 2)}), value={g.pick(0, 0.5)})",
    )


def joined(g: Growth) -> str:
    x = g.value(lambda v: v.ndim > 0)
    shape, d = g.names[x].shape, _axis(g, x)
    fits = [
        n
        for n, v in g.names.items()
        if v.is_floating_point()
        and v.ndim == len(shape)
        and all(
            a == b
            for k, (a, b) in enumerate(zip(v.shape, shape, strict=True))
            if k != d % len(shape)
        )
    ]
    y = g.pick(*fits)
    same = [n for n in fits if g.names[n].shape == shape]
    z = g.pick(*same)
    return g.pick(
        f"torch.cat([{x}, {y}], {d})",
        f"torch.cat([{x}, {y}, {x}.cos()], {d})",
        f"torch.stack([{x}, {z}], {d})",
        f"{x} + {z}",
        f"{x} * {z}.tanh()",
    )


def arithmetic(g: Growth) -> str:
    x, y = g.value(), g.value()
    return g.pick(
        f"{x} + {y}",
        f"{x} * {y}",
        f"{x} - 0.5 * {y}",
        f"{x} / ({y}.abs() + 1)",
        f"torch.where({x} > 0.1, {x}, {y} * 2)",
        f"torch.maximum({x}, {y})",
        f"torch.minimum({x}, {y} * 0.7)",
        f"({x} * 0.3).exp()",
        f"{x}.abs().add(0.1).log()",
        f"{x}.sin() * {x}.cos()",
        f"({x}.square() + 0.5).sqrt()",
        f"{x}.clamp(-0.7, 0.9)",
        f"{x}.erf()",
        f"{x}.pow(3) * 0.1",
        f"{x}.abs().add(1).rsqrt()",
        f"{x}.sign() * {x}.abs()",
        f"{x}.atan2({y} + 3)",
        f"torch.lerp({x}, {y}, 0.3)",
        f"{x}.addcmul({x}, {y}, value=0.2)",
        f"torch.hypot({x}, {y} + 2)",
        f"{x}.log1p().nan_to_num()",
        f"{x}.expm1() * 0.1",
        f"torch.addcdiv({x}, {y}, {y}.abs() + 1)",
        f"{x}.sinh() * 0.01",
        f"{x} % 2.5",
        f"{x}.masked_fill({y} < 0, 0.25)",
        f"{x}.copysign({y})",
        f"torch.logaddexp({x}, {y})",
        f"{x}.softmax({g.pick(0, -1)})",
        f"{x}.detach() * {y}",
        f"{x}.floor() + {x}",
        f"F.normalize({x}, dim=-1)",
    )


def reduction(g: Growth) -> str:
    x = g.value(lambda v: v.ndim > 0)
    d, keep = _axis(g, x), g.pick(True, False)
    two = g.pick((d,), (d, _axis(g, x)))
    return g.pick(
        f"{x}.sum({d}, keepdim={keep})",
        f"{x}.mean({two}, keepdim={keep})",
        f"{x}.amax({d}, {keep})",
        f"{x}.max({d}, {keep})[0]",
        f"{x}.min({d}, {keep})[0]",
        f"{x}.var({d}, keepdim={keep})",
        f"({x}.std({two}, correction=0) + 1)",
        f"{x}.logsumexp({d}, {keep})",
        f"{x}.cumsum({d})",
        f"{x}.norm(dim={d}, keepdim={keep})",
        f"(0.5 * {x}).prod({d})",
        f"{x}.sum()",
        f"{x}.mean()",
        f"{x}.softmax({d})",
        f"{x}.log_softmax({d})",
        f"{x}.sort({d})[0]",
        f"{x}.amin({two})",
        f"{x}.topk({g.pick(1, 2)}, {d}, largest={keep})[0]",
        f"{x}.argmax({d})",
        f"{x}.max()",
        f"{x}.median({d})[0]",
        f"{x}.cumprod({d})",
        f"{x}.argsort(dim={d}, stable=True)",
        f"{x}.cummax({d})[0]",
        f"({x} > 0).sum({d})",
        f"{x}.flip({d}).cumsum({d}) * 0.5",
        f"{x}.kthvalue(1, {d})[0]",
        f"{x}.logcumsumexp({d})",
        f"{x}.diff(dim={d})",
        f"F.glu({x}, {d})",
    )


def product(g: Growth) -> str:
    x = g.value(lambda v: v.ndim > 1)
    y = g.value(lambda v: v.ndim > 0)
    return g.pick(
        f"{x} @ {x}.mT * 0.3",
        f"torch.matmul({x}, {y})",
        f"torch.matmul({x}.mT, {y})",
        f"torch.einsum('...i,...j->...ij', {x}, {x}).sum(-2)",
        f"{x}.flatten(1) @ {x}.flatten(1).T",
        f"torch.einsum('...ij,...kj->...ik', {x}, {x}) * 0.2",
        f"torch.cdist({x}, {x} + 1)",
        f"torch.outer({y}.reshape(-1)[:4], {x}.reshape(-1)[:5])",
        f"F.cosine_similarity({x}, {x}.roll(1, 0), dim=-1)",
        f"torch.baddbmm({x}, {x}, {x}.mT @ {x}, beta=0.5, alpha=0.1)",
    )


def indexed(g: Growth) -> str:
    x = g.value(lambda v: v.ndim > 0 and v.numel() > 0)
    shape, d = g.names[x].shape, _axis(g, x)
    size = shape[d]
    index = [g.dice.randrange(size) for _ in range(g.dice.randint(1, 4))]
    first = [g.dice.randrange(shape[0]) for _ in range(3)]
    picked, rows = f"torch.tensor({index})", f"torch.tensor({first})"
    grid = f"torch.arange({x}.numel()).reshape({x}.shape) % {size}"
    return g.pick(
        f"{x}.index_select({d}, {picked})",
        f"{x}[torch.tensor({first})]",
        f"{x}.gather({d}, {grid})",
        f"torch.zeros_like({x}).scatter({d}, {x}.argsort(dim={d}, stable=True), {x})",
        f"torch.zeros_like({x}).scatter_add({d}, {grid}, {x})",
        f"{x}.take_along_dim({x}.argsort(dim={d}, stable=True), {d})",
        f"{x}.index_add({d}, {picked}, {x}.index_select({d}, {picked}), alpha=0.5)",
        f"{x}.index_fill({d}, {picked}, 0.5)",
        f"{x}.index_copy({d}, {picked}[:1], {x}.narrow({d}, 0, 1))",
        f"{x}.index_put(({rows},), {x}[{rows}] * 0.5, accumulate=True)",
        f"{x}.scatter_reduce({d}, {grid}, {x}.cos(), 'amax')",
        f"{x}.select_scatter({x}.select({d}, 0) * 2, {d}, -1)",
        f"{x}.slice_scatter({x}.narrow({d}, 0, 1).exp(), {d}, 0, 1)",
        f"{x}.masked_scatter({x} > 0, {x}.flip(0))",
        f"{x}.diag_embed().sum(-1)",
        f"{x}.index_reduce({d}, {picked}, {x}.index_select({d}, {picked}), 'mean')",
    )


def written(g: Growth) -> str:
    """Statements that write to a copy, through views of it, or to a buffer."""
    x = g.value(lambda v: v.ndim > 0)
    shape, w = g.names[x].shape, f"w{g.count}"
    kind = g.pick("part", "view", "mask", "buffer", "scale", "column")
    if kind == "buffer":
        name = g.buffer(tuple(shape[1:]))
        write = g.pick(
            f"{name}.mul_(0.9).add_({x}.detach().mean(0))",
            f"{name}.copy_({x}.detach()[0])",
            f"{name}.add_(1)",
        )
        return f"{write}\n{x} * {name}.clone()"
    line = {
        "part": f"{w}[{g.pick('1:', '::2', '0')}] *= {g.pick(2, 0.5)}",
        "view": f"{w}.view(-1)[::2].mul_(3)",
        "mask": f"{w}[{w} > 0] = {g.pick(0.5, -1)}",
        "scale": f"{w}.add_({x}.mean(), alpha=0.5).relu_()",
        "column": f"{w}[..., 0] = {x}[..., -1]",
    }[kind]
    return f"{w} = {x}.clone()\n{line}\n{w}{g.pick('', '', '.t()', '.view(-1)')}"


def cast(g: Growth) -> str:
    x = g.value()
    back = f"torch.{g.dtype}"
    return g.pick(
        f"{x}.double().sin().to({back})",
        f"{x}.bfloat16().to({back}) + {x}",
        f"({x} * 3).int().to({back}) * {x}",
        f"{x}.half().to({back}) * 0.5",
        f"({x} > 0).to({back}) * {x}",
        f"{x}.float().mean().to({back}) + {x}",
        f"({x} * 4).long() % 7",
        f"{x}.round().to(torch.int64).clamp(0, 11)",
    )


def loss(g: Growth) -> str:
    x = g.value(lambda v: v.ndim == 2 and v.numel() > 0)
    n, classes = g.names[x].shape
    labels, kind = [g.dice.randrange(classes) for _ in range(n)], g.pick("sum", "none", "mean")
    return g.pick(
        f"F.cross_entropy({x}, torch.tensor({labels}), label_smoothing={g.pick(0, 0.1)})",
        f"F.nll_loss({x}.log_softmax(1), torch.tensor({labels}), reduction={kind!r})",
        f"F.mse_loss({x}, {x}.detach().flip(0))",
        f"F.smooth_l1_loss({x}, {x}.detach() * 0.3, beta=0.4)",
        f"F.binary_cross_entropy_with_logits({x}, ({x}.detach() > 0).to({x}.dtype))",
        f"F.kl_div({x}.log_softmax(1), {x}.detach().softmax(1), reduction='batchmean')",
        f"F.huber_loss({x}, {x}.detach().roll(1, 0))",
        f"F.l1_loss({x}, {x}.detach().roll(1, 0))",
        f"F.multi_margin_loss({x}, torch.tensor({labels}))",
        f"F.hinge_embedding_loss({x}, {x}.detach().sign())",
    )


TABLE: dict[Callable[[Growth], str], int] = {
    activation: 10,
    linear: 8,
    sequential: 6,
    convolution: 14,
    pool: 7,
    normalization: 10,
    attention: 7,
    recurrent: 3,
    embedding: 6,
    picture: 6,
    shaped: 16,
    joined: 8,
    arithmetic: 10,
    reduction: 9,
    product: 5,
    indexed: 6,
    written: 6,
    cast: 3,
    loss: 2,
}
"""How often each kind of line is drawn."""
LINES, WEIGHTS = [*TABLE], [*TABLE.values()]
