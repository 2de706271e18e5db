"""Axes put in another order, shape or place."""

from __future__ import annotations

from tests.tensor.cases.case import ALL, case

CASES = [
    *(
        case("reshape", lambda x, s=shape: x.reshape(s), (2, 3, 4))
        for shape in ((24,), (4, -1), (2, 1, 12), (1, 2, 3, 4))
    ),
    *(
        case("permute", lambda x, o=order: x.permute(o), (2, 3, 4), dtypes=ALL)
        for order in ((0, 1, 2), (2, 0, 1), (-1, 1, 0))
    ),
    *(
        case("transpose", lambda x, d=dims: x.transpose(*d), (2, 3, 4))
        for dims in ((0, 1), (-1, 0), (1, 1))
    ),
    *(
        case("flip", lambda x, d=dims: x.flip(d), (2, 3, 4), dtypes=ALL)
        for dims in ((0,), (1, 2), (-1,))
    ),
    case("expand", lambda x: x.expand(4, 2, 3), (2, 1)),
    case("expand", lambda x: x.expand(-1, 3), (2, 1)),
    case("squeeze", lambda x: x.squeeze(), (1, 3, 1)),
    case("squeeze", lambda x: x.squeeze(1), (1, 3, 1)),
    case("squeeze", lambda x: x.squeeze(-1), (1, 3, 1)),
    case("unsqueeze", lambda x: x.unsqueeze(-1), (2, 3)),
    case("unsqueeze", lambda x: x.unsqueeze(1), (2, 3)),
    case("flatten", lambda x: x.flatten(), (2, 3, 4)),
    case("flatten", lambda x: x.flatten(1), (2, 3, 4)),
    case("flatten", lambda x: x.flatten(0, 1), (2, 3, 4)),
    case("unflatten", lambda x: x.unflatten(1, (2, -1)), (3, 6)),
    case("unflatten", lambda x: x.unflatten(-1, (1, 6)), (3, 6)),
]
