"""Random words of 32 bits: a stream for each device, from which each draw takes the next ones.

A draw of n words has a key: threefry of its place in the stream, under the seed. Let h be half of
n, rounded up. Word i of the draw is the first word of threefry of the counter (i, i + h), and word
h + i the second one. With the same seed these are the bits of tinygrad 0.14.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from workbench.base.dtypes import dtypes
from workbench.base.forking import free_lock
from workbench.ir.node.uop import UOp
from workbench.tensor.creation.threefry import Block, threefry2x32, threefry2x32_of_integers
from workbench.tensor.movement.movement import shrunk
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.operands.numbered import numbered

LONGEST = 0xFFFFFFFF
"""The most words of one key; a longer draw has several."""


@dataclass(slots=True)
class _Place:
    """Where the stream of one device stands: what its keys begin with, and words taken."""

    prefix: int
    position: int = 0


class Stream:
    """The seed, and for each device the words taken since it was set.

    Devices count in the order in which they draw, and draw different words: the stream of the first
    one does not depend on its name.
    """

    def __init__(self) -> None:
        self.lock = free_lock()
        self.restart(0)

    def restart(self, seed: int) -> None:
        """Begin anew. Of `seed` the low 32 bits count."""
        with self.lock:
            self.seed = seed & 0xFFFFFFFF
            self._places: dict[str, _Place] = {}

    @property
    def position(self) -> int:
        """The words taken on all devices since the seed was set."""
        return sum(place.position for place in self._places.values())

    def take(self, device: str, count: int) -> list[Block[int]]:
        """Take `count` words of the stream of `device`; return their keys."""
        with self.lock:
            if device not in self._places:
                self._places[device] = _Place(_prefix(len(self._places)))
            place, seed = self._places[device], self.seed
            first = place.position
            place.position += count
        return [
            threefry2x32_of_integers(
                (start & 0xFFFFFFFF, start >> 32 & 0xFFFFFFFF), (place.prefix, seed)
            )
            for start in range(first, first + max(1, count), LONGEST)
        ]


def words_at(keys: UOp, place: UOp, count: int) -> UOp:
    """Return the words at `place` of a draw of `count` words.

    Shapes: `place` has one axis; `keys` is flat, two words for each key. Dtypes: `place` is as
    `places` returns it; keys and words are uint32.
    """
    words = _of_key(keys, 0, place, min(count, LONGEST))
    for first in range(LONGEST, count, LONGEST):
        size = min(count - first, LONGEST)
        later = _of_key(keys, 2 * (first // LONGEST), place - first, size)
        words = (place < first).where(words, later)
    return words


def places(count: int, words: int) -> UOp:
    """Return 0, 1, .. count - 1, in a type that counts `words`."""
    return numbered(count, dtypes.uint32 if words <= LONGEST else dtypes.int64)


def _of_key(keys: UOp, first: int, place: UOp, count: int) -> UOp:
    half = (count + 1) // 2
    is_second = place >= half
    low = is_second.where(place - half, place).cast(dtypes.uint32)
    key = [expanded(shrunk(keys, ((i, i + 1),)), place.shape) for i in (first, first + 1)]
    a, b = threefry2x32((low, low + half), (key[0], key[1]))
    return is_second.where(b, a)


def _prefix(number: int) -> int:
    """Return the first word of the keys of the device that was number `number` to draw."""
    digest = hashlib.sha256(number.to_bytes(4, "big")).digest()
    return int.from_bytes(digest[-4:], "big")
