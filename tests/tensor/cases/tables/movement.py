"""Axes put in another order, shape or place."""

from __future__ import annotations

from tests.peers import torch
from tests.tensor.cases.case import ALL, FLOATS, case, mask
from workbench.tensor import Tensor

functional = torch.nn.functional
SHAPE = (2, 3, 4)

CASES = [
    *(
        case("reshape", lambda x, s=shape: x.reshape(s), SHAPE)
        for shape in ((24,), (4, -1), (2, 1, 12), (1, 2, 3, 4))
    ),
    case("view", lambda x: x.view(6, 4), SHAPE),
    case("view_as", lambda x, y: x.view_as(y), (2, 6), (3, 4)),
    case("reshape_as", lambda x, y: x.reshape_as(y), (2, 6), (4, 3)),
    *(
        case("permute", lambda x, o=order: x.permute(o), SHAPE, dtypes=ALL)
        for order in ((0, 1, 2), (2, 0, 1), (-1, 1, 0))
    ),
    *(
        case("transpose", lambda x, d=dims: x.transpose(*d), SHAPE)
        for dims in ((0, 1), (-1, 0), (1, 1))
    ),
    case("T", lambda x: x.T, (3, 4)),
    case("mT", lambda x: x.mT, SHAPE),
    *(
        case("flip", lambda x, d=dims: x.flip(d), SHAPE, dtypes=ALL)
        for dims in ((0,), (1, 2), (-1,))
    ),
    case("expand", lambda x: x.expand(4, 2, 3), (2, 1)),
    case("expand", lambda x: x.expand(-1, 3), (2, 1)),
    case("expand_as", lambda x, y: x.expand_as(y), (2, 1), (4, 2, 3)),
    case("squeeze", lambda x: x.squeeze(), (1, 3, 1)),
    case("squeeze", lambda x: x.squeeze(1), (1, 3, 1)),
    case("squeeze", lambda x: x.squeeze(-1), (1, 3, 1)),
    case("unsqueeze", lambda x: x.unsqueeze(-1), (2, 3)),
    case("unsqueeze", lambda x: x.unsqueeze(1), (2, 3)),
    case("flatten", lambda x: x.flatten(), SHAPE),
    case("flatten", lambda x: x.flatten(1), SHAPE),
    case("flatten", lambda x: x.flatten(0, 1), SHAPE),
    case("unflatten", lambda x: x.unflatten(1, (2, -1)), (3, 6)),
    case("unflatten", lambda x: x.unflatten(-1, (1, 6)), (3, 6)),
    # places that change
    *(
        case("roll", lambda x, a=arguments: x.roll(*a), SHAPE, dtypes=ALL)
        for arguments in (
            (1,),
            (-30,),
            (0, 1),
            (2, 0),
            (5, -1),
            ((1, -2), (0, 2)),
            ((3, 3), (1, 1)),
        )
    ),
    case("roll", lambda x: x.roll(1), ()),
    case("roll", lambda x: x.roll(3, 1), (2, 0)),
    *(
        case("diagonal", lambda x, a=arguments: x.diagonal(*a), (3, 4, 5), dtypes=ALL)
        for arguments in ((), (1,), (-2,), (0, 1, 2), (1, -1, 0), (9,), (-9,), (3, 2, 1))
    ),
    case("diagonal", lambda x: x.diagonal(), (5, 2)),
    *(case("diag", lambda x: x.diag(), (n,), dtypes=ALL) for n in (0, 1, 5)),
    *(
        case("tril", lambda x, d=diagonal: x.tril(d), shape, dtypes=ALL)
        for diagonal in (-7, -1, 0, 2)
        for shape in ((4, 6), (2, 5, 3))
    ),
    *(
        case("triu", lambda x, d=diagonal: x.triu(d), shape, dtypes=ALL)
        for diagonal in (-7, -1, 0, 2)
        for shape in ((4, 6), (2, 5, 3))
    ),
    *(
        case("unfold", lambda x, a=arguments: x.unfold(*a), shape, dtypes=ALL)
        for shape, arguments in (
            ((8,), (0, 2, 2)),
            ((8,), (0, 3, 1)),
            ((8,), (-1, 8, 3)),
            ((9, 4), (0, 4, 2)),
            ((3, 7), (1, 1, 3)),
            ((2, 5, 3), (1, 2, 1)),
        )
    ),
    case("unfold", lambda x: x.unfold(0, 1, 1), ()),
    # more than once
    *(
        case("repeat", lambda x, a=times: x.repeat(*a), (2, 3))
        for times in ((2, 3), (1, 1), (2, 1, 2), (0, 2))
    ),
    *(
        case(
            "repeat_interleave", lambda x, a=arguments: x.repeat_interleave(*a), (2, 3), dtypes=ALL
        )
        for arguments in ((2,), (3, 0), (2, -1), (0, 1), (1, 0))
    ),
    *(
        case(
            "meshgrid",
            lambda x, y, z, i=indexing: x.meshgrid(y, z, indexing=i),
            (3,),
            (4,),
            (2,),
            torch=lambda x, y, z, i=indexing: torch.meshgrid(x, y, z, indexing=i),
        )
        for indexing in ("ij", "xy")
    ),
    case(
        "meshgrid",
        lambda x, y: x.meshgrid(y),
        (),
        (4,),
        torch=lambda x, y: torch.meshgrid(x, y, indexing="ij"),
    ),
    # pieces and wholes
    *(
        case(
            "cat",
            lambda x, y, d=dim: x.cat(y, dim=d),
            SHAPE,
            SHAPE,
            dtypes=ALL,
            torch=lambda x, y, d=dim: torch.cat([x, y], d),
        )
        for dim in (0, 1, -1)
    ),
    case(
        "cat",
        lambda x, y, z: x.cat(y, z, dim=1),
        (2, 3),
        (2, 1),
        (2, 0),
        torch=lambda x, y, z: torch.cat([x, y, z], 1),
    ),
    *(
        case(
            "stack",
            lambda x, y, z, d=dim: x.stack(y, z, dim=d),
            (2, 3),
            (2, 3),
            (2, 3),
            dtypes=ALL,
            torch=lambda x, y, z, d=dim: torch.stack([x, y, z], d),
        )
        for dim in (0, 1, -1)
    ),
    *(
        case("split", lambda x, a=arguments: x.split(*a), (5, 4))
        for arguments in ((2,), ([1, 4],), (3, 1), ([2, 0, 2], -1))
    ),
    *(
        case("chunk", lambda x, a=arguments: x.chunk(*a), (7, 4))
        for arguments in ((3,), (2, 1), (9,), (3, -1))
    ),
    # padding
    *(
        case(
            "pad",
            lambda x, p=padding: x.pad(p),
            SHAPE,
            torch=lambda x, p=padding: functional.pad(x, p),
            dtypes=ALL[:-1],
        )
        for padding in ((1, 2), (0, 1, 2, 0), (1, -1), (-2, 3, -1, -1, 1, 0), (0, 0))
    ),
    case(
        "pad",
        lambda x: x.pad((1, 2), value=-3.5),
        (2, 3),
        torch=lambda x: functional.pad(x, (1, 2), value=-3.5),
    ),
    case(
        "pad",
        lambda x: x.pad(((1, 0), None)),
        (2, 3),
        torch=lambda x: functional.pad(x, (0, 0, 1, 0)),
    ),
    *(
        case(
            "pad",
            lambda x, p=padding, m=mode: x.pad(p, mode=m),
            (1, 2, 5, 4),
            dtypes=FLOATS,
            torch=lambda x, p=padding, m=mode: functional.pad(x, p, mode=m),
        )
        for mode in ("reflect", "replicate", "circular")
        for padding in ((1, 2, 0, 0), (0, 3, 4, 1), (3, 3, 2, 2), (0, 0, 0, 2))
    ),
    *(
        case(
            "pad",
            lambda x, p=padding, m=mode: x.pad(p, mode=m),
            (2, 5),
            torch=lambda x, p=padding, m=mode: functional.pad(x, p, mode=m),
        )
        for mode in ("reflect", "replicate", "circular")
        for padding in ((-1, 2), (3, -2), (-1, -1))
    ),
    case(
        "pad_to",
        lambda x: x.pad_to(4, None),
        (2, 3),
        torch=lambda x: functional.pad(x, (0, 0, 0, 2)),
    ),
    case(
        "pad_to",
        lambda x: x.pad_to((4, 5), value=2),
        (2, 3),
        torch=lambda x: functional.pad(x, (0, 2, 0, 2), value=2),
    ),
    case("shrink_to", lambda x: x.shrink_to(2, None), (3, 4), torch=lambda x: x[:2]),
    case("shrink", lambda x: x.shrink(((1, 3), None)), (3, 4), torch=lambda x: x[1:3]),
    # formulas
    *(
        case(
            "rearrange",
            lambda x, f=formula, s=sizes: x.rearrange(f, **s),
            SHAPE,
            torch=lambda x, t=theirs: t(x),
        )
        for formula, sizes, theirs in (
            ("a b c -> c a b", {}, lambda x: x.permute(2, 0, 1)),
            ("a b c -> (a b) c", {}, lambda x: x.reshape(6, 4)),
            (
                "a b (c d) -> d (b a) c",
                {"c": 2},
                lambda x: x.reshape(2, 3, 2, 2).permute(3, 1, 0, 2).reshape(2, 6, 2),
            ),
            ("... c -> c ...", {}, lambda x: x.permute(2, 0, 1)),
            ("a ... -> a (...)", {}, lambda x: x.reshape(2, 12)),
            ("a b c -> a 1 b c 1", {}, lambda x: x.reshape(2, 1, 3, 4, 1)),
            (
                "(a1 a2) b c -> a2 a1 (b c)",
                {"a1": 2},
                lambda x: x.reshape(2, 1, 12).permute(1, 0, 2),
            ),
        )
    ),
    case(
        "rearrange",
        lambda x: x.rearrange("a 1 b -> (b a)"),
        (2, 1, 3),
        torch=lambda x: x[:, 0].T.reshape(6),
    ),
    case("rearrange", lambda x: x.rearrange("->"), (), torch=lambda x: x),
    # masks
    case("masked_fill", lambda x, m: x.masked_fill(m, -2.5), (3, 4), mask((3, 4)), dtypes=FLOATS),
    case("masked_fill", lambda x, m: x.masked_fill(m, 7), (3, 4), mask((4,)), dtypes=ALL[:-1]),
    case("masked_fill", lambda x, m, y: x.masked_fill(m, y), (3, 4), mask((3, 1)), ()),
    case("tril", lambda x: Tensor.tril(x), (3, 3), torch=torch.tril),
]
