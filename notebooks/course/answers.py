"""The answers to the chapters' predictions. They are here and not in the cells, where one would
read them before guessing; each is computed from what the cell hands over.

A key is the chapter and a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """`of` makes the answer from what the cell hands over; `why` explains it."""

    of: Callable[..., Any]
    why: str


def _itself(value: Any) -> Any:
    return value


def _gradients(ex: Any, path: str) -> int:
    """Return how many kernels reduce products for gradients through a convolution."""
    call = f"{path}: gradient of conv2d"
    kernels = [k for k in ex.kernels if k.modules and str(k.modules[0]) == call]
    return sum(
        kernel.title.removeprefix("backward: ").startswith(("conv", "matmul")) for kernel in kernels
    )


ANSWERS = {
    "1-evaluations": Answer(
        lambda figures: int(figures["evaluations"] // figures["elements"]),
        "Each read would be another evaluation.",
    ),
    "1-loads": Answer(
        lambda plain, tile: round(plain.loads / tile.loads),
        "A load takes a whole vector, and serves four rows. The time is below.",
    ),
    "2-nodes": Answer(len, "Each sum is one node that reads one node twice."),
    "2-add-zero": Answer(
        lambda: "mul-zero made the 0 that add-zero needs",
        "The driver went bottom-up: when it came to the sum, its right source was a 0.",
    ),
    "2-left": Answer(
        _itself,
        "Only mul-one fired. mul-zero asks for an exact type: 0 * nan is nan, and 0 * inf is, too.",
    ),
    "2-third": Answer(
        lambda told: "yes" if told.fires else "no",
        "Its condition looks at the constant: 1/3 is not a float, and rounding it changes results.",
    ),
    "2-degree": Answer(
        len, "With degree 5 too few bits are right, and degree 7 costs one more step."
    ),
    "2-fmas": Answer(
        lambda counts, elements: counts.fmas // elements, "One for each step of the polynomial."
    ),
    "3-chain": Answer(
        lambda ex: len(ex.kernels),
        "Each element of each step is needed once, by the next step: storing it gains nothing.",
    ),
    "3-sums": Answer(
        lambda by_row, by_column: (len(by_row.kernels), len(by_column.kernels)),
        "Inside the loop over rows, a row's sum is computed once and serves the whole row. A "
        "column's sum is needed again in every row.",
    ),
    "3-least": Answer(
        lambda is_stored: next(count for count in range(1, 50) if is_stored(count)),
        "Each further row costs another 64,000 exp2; at some point storing them is cheaper.",
    ),
    "3-softmax": Answer(lambda ex: len(ex.kernels), "One row at a time, everything is at hand."),
    "3-total": Answer(
        lambda ex: len(ex.kernels),
        "256 sums of 4096 each, which can be shared out among cores, and then their sum.",
    ),
    "4-order": Answer(
        lambda inside, outside: "more" if outside.loads > inside.loads else "fewer",
        "The sums are an array in scratch now, loaded and stored at every step.",
    ),
    "4-stores": Answer(lambda counts: counts.stores, "One for each vector."),
    "4-tile": Answer(
        lambda counts: 4 * counts.loads // counts.fmas,
        "One vector of the second matrix for all four rows, and an element of each row.",
    ),
    "4-blocks": Answer(lambda: 4096 // 16, "The stride of x0 in p1, below. With GROUP it is 1."),
    "4-staged": Answer(
        lambda: 16 * 16 * 4, "A tile of 16 rows and 16 columns, of four bytes each."
    ),
    "5-part": Answer(
        lambda width, in_flight: width * in_flight,
        "One lane of each vector, and one of the multiply-adds that could be in flight. It is a "
        "bound for one sum at a time: a core may begin the next sums before one is done.",
    ),
    "5-loads": Answer(
        lambda counts: 8 * counts.loads // counts.fmas,
        "Two vectors of B, and one element of each row of A.",
    ),
    "5-large": Answer(
        lambda spilled: "spills" if spilled else "fits",
        "R sums, and the operands need registers, too: some sums go to the stack and back at "
        "every step.",
    ),
    "6-numbers": Answer(
        lambda parameters: sum(parameter.numel() for parameter in parameters),
        "1*16*9 + 16, then 16*32*9 + 32, then 128*10 + 10.",
    ),
    "6-second": Answer(
        lambda ex: _gradients(ex, "net.c2"),
        "One for its weight, and one for its input, which the layer before needs. A third kernel "
        "of this layer pads what the second one reads.",
    ),
    "6-first": Answer(
        lambda ex: _gradients(ex, "net.c1"), "Nobody asked for the gradient of the images."
    ),
    "6-moved": Answer(
        len,
        "6 parameters (a weight and a bias of each of the three layers), 12 running means, and two "
        "powers.",
    ),
    "5-sets": Answer(
        _itself,
        "Every row begins at a multiple of 2,048 = 32 * 64: at every 32nd set only, and 512 rows "
        "share these.",
    ),
    "7-row": Answer(_itself, "32 neighbours of 4 bytes are 128 bytes: four pieces of 32."),
    "7-column": Answer(
        _itself,
        "Every element is in a row of its own, and a sector is the least that moves: 32 bytes for "
        "each 4.",
    ),
    "7-reads": Answer(
        lambda trace: sum(
            count.transactions
            for count in trace.accesses.values()
            if count.space == "global" and not count.is_store
        ),
        "16 groups read 4 tiles of each matrix, and a tile is 16 * 16 * 4 / 32 sectors.",
    ),
    "7-barriers": Answer(
        lambda trace, groups: sum(trace.barriers.values()) // groups,
        "For each of the 4 tiles one after it is filled, and one before it is filled again.",
    ),
    "7-products": Answer(
        _itself, "2 * 4 tiles of the result, and for each of them 2 times 16 steps of the sums."
    ),
    "7-fragment": Answer(
        lambda core: core.a.per_lane, "The tile has 16 * 16 elements, and there are 32 lanes."
    ),
    "8-kernels": Answer(
        lambda ex: len(ex.kernels),
        "Four of each block, and one at the end. Each product has a kernel, and so has the norm. "
        "The gate is one, too: the product after it would compute it again for each column.",
    ),
    "8-branch": Answer(
        lambda shown: "none" if isinstance(shown, str) else shown,
        "Its kernels would depend on values, and nothing is computed: it is refused, by its line.",
    ),
}
