"""Network simplex: layers for which the weighted length of all edges is least.

The sum of weight * (layer of the target - layer of the source) over the edges is a sum over
the nodes of layer * pull, where `pull` is the weight of a node's edges in less that out. So
all that a step must know of a set of nodes that moves together is the sum of its pulls.
A spanning tree of edges without slack gives such sets: cut one of its edges, and what hangs
below may move, until another edge has no slack left, which takes the place of the cut one.

Source: Gansner, Koutsofios, North, Vo 1993, "A technique for drawing directed graphs".
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

WORK_PER_NODE = 150
"""How many nodes may be looked at, per node of the graph; layers are right at any time."""
LOOK = 24
"""Among how many springs that pull the wrong way the strongest is chosen."""


class Spring(NamedTuple):
    """An edge: its target is at least `least` below its source, and pulls with `weight`."""

    source: int
    target: int
    least: int
    weight: int


def shortest(layers: Sequence[int], springs: Sequence[Spring]) -> list[int]:
    """Return layers for which the springs are short, from any that keep their distances.

    The springs connect all the nodes. Layers may come back negative.
    """
    tree = _Tree(layers, springs)
    tree.grow()
    tree.improve(WORK_PER_NODE * len(layers))
    return tree.layers


class _Tree:
    """A spanning tree of springs without slack, hanging from node 0. `link` is the spring
    between a node and its parent, `pull` the sum over the node and all that hangs on it."""

    def __init__(self, layers: Sequence[int], springs: Sequence[Spring]):
        count = len(layers)
        self.layers, self.springs = list(layers), springs
        self.at: list[list[int]] = [[] for _ in range(count)]
        self.children: list[set[int]] = [set() for _ in range(count)]
        self.parent, self.link, self.pull = [-1] * count, [-1] * count, [0] * count
        for number, spring in enumerate(springs):
            self.at[spring.source].append(number)
            self.at[spring.target].append(number)
            self.pull[spring.source] -= spring.weight
            self.pull[spring.target] += spring.weight

    def grow(self) -> None:
        """Join node by node, each time moving the tree onto the spring with least slack.

        The layers of joined nodes do not count what the tree has `moved`, so that slacks
        in the heaps stay comparable; at the end all have joined and it does not matter.
        """
        moved, order, inside = 0, [0], {0}
        below: list[tuple[int, int]] = []  # springs that shrink as the tree moves down
        above: list[tuple[int, int]] = []
        self._reach(0, below, above)
        while below or above:
            is_down = not above or (
                bool(below) and below[0][0] - moved <= above[0][0] + moved
            )
            slack, number = heappop(below if is_down else above)
            source, target, _, _ = self.springs[number]
            parent, child = (source, target) if is_down else (target, source)
            if child in inside:
                continue
            moved = slack if is_down else -slack
            self.layers[child] -= moved
            self._hang(child, parent, number)
            inside.add(child)
            order.append(child)
            self._reach(child, below, above)
        for node in reversed(order[1:]):
            self.pull[self.parent[node]] += self.pull[node]

    def _reach(
        self, node: int, below: list[tuple[int, int]], above: list[tuple[int, int]]
    ) -> None:
        for number in self.at[node]:
            source, target, least, _ = self.springs[number]
            slack = self.layers[target] - self.layers[source] - least
            heappush(below if source == node else above, (slack, number))

    def _hang(self, child: int, parent: int, number: int) -> None:
        self.parent[child], self.link[child] = parent, number
        self.children[parent].add(child)

    def improve(self, work: int) -> None:
        """Exchange springs until none of the tree pulls the wrong way, or `work` is done."""
        wrong = {n for n in range(1, len(self.layers)) if self._is_wrong(n)}
        while wrong and work > 0:
            node = max(islice(wrong, LOOK), key=lambda n: abs(self.pull[n]))
            hanging = self._below(node)
            work -= len(hanging) + LOOK
            for changed in self._exchange(node, hanging):
                if changed and self._is_wrong(changed):
                    wrong.add(changed)
                else:
                    wrong.discard(changed)

    def _is_wrong(self, node: int) -> bool:
        """Whether the cost falls when the node and what hangs on it leave the parent."""
        is_source = self.springs[self.link[node]].source == node
        return self.pull[node] > 0 if is_source else self.pull[node] < 0

    def _below(self, node: int) -> set[int]:
        nodes, stack = {node}, [node]
        while stack:
            children = self.children[stack.pop()]
            nodes |= children
            stack += children
        return nodes

    def _exchange(self, node: int, hanging: set[int]) -> list[int]:
        """Move what hangs on `node` as far as it wants to and can, and hang it there.

        Return the nodes whose pull or link has changed.
        """
        is_up = self.pull[node] > 0
        slack, number, end = self._stop(hanging, is_up)
        for member in hanging if slack else ():
            self.layers[member] += -slack if is_up else slack
        source, target, _, _ = self.springs[number]
        parent = source if target == end else target
        changed = self._add(self.parent[node], -self.pull[node])
        changed += self._add(parent, self.pull[node])
        changed += self._turn(node, end)
        self._hang(end, parent, number)
        return changed

    def _stop(self, hanging: set[int], is_up: bool) -> tuple[int, int, int]:
        """Return (slack, spring, its end inside) of the spring that stops the move first."""
        springs, layers = self.springs, self.layers
        first = (len(layers), -1, -1)
        for member in hanging:
            for number in self.at[member]:
                source, target, least, _ = springs[number]
                outer = source if is_up else target
                if outer == member or outer in hanging:
                    continue
                slack = layers[target] - layers[source] - least
                if slack < first[0]:
                    first = (slack, number, member)
                    if not slack:
                        return first
        return first

    def _add(self, node: int, pull: int) -> list[int]:
        """Add to the pull of a node and of those that it hangs on; return them."""
        changed = []
        while node >= 0:
            self.pull[node] += pull
            changed.append(node)
            node = self.parent[node]
        return changed

    def _turn(self, top: int, end: int) -> list[int]:
        """Take what hangs on `top` off its parent, make `end` its top; return the way."""
        total, below, way = self.pull[top], 0, []
        parent, link, node = -1, -1, end
        while True:
            way.append(node)
            above, above_link = self.parent[node], self.link[node]
            self.children[above].discard(node)
            self.pull[node], below = total - below, self.pull[node]
            self.parent[node], self.link[node] = parent, link
            if parent >= 0:
                self.children[parent].add(node)
            if node == top:
                return way
            parent, link, node = node, above_link, above
