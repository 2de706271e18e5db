"""Rangeify: reads are replaced by rules, which can be switched off, explained and replayed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ir.rules.meaning import fired
from workbench.base.errors import WorkbenchError
from workbench.base.trace import observe
from workbench.execution.realize import planned
from workbench.ir.meaning.interpret import interpret_kernel, interpret_tensor
from workbench.ir.node.construct import index, is_read, store
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import buffer
from workbench.ir.rewriting.explain import explain
from workbench.ir.rewriting.rewrite import Rule, applied, replay, without
from workbench.ir.schedule import build
from workbench.ir.schedule.access import flatten
from workbench.ir.schedule.build import kernel_of
from workbench.ir.schedule.examples import EXAMPLES
from workbench.ir.schedule.rangeify import RANGEIFY_RULES, load_memory
from workbench.tensor.tensor import Tensor

RULES = {rule.name: rule for rule in RANGEIFY_RULES.rules}
NEEDED = [name for name in RULES if name not in ("open-row", "read-constant")]
VALUES = np.random.default_rng(0).standard_normal((6, 9)).astype(np.float32)


def uses(name: str) -> Tensor:
    """Return an expression that `name` is needed for."""
    x = Tensor(VALUES).realize()
    if name == "push-through-pad":
        return x.pad(((1, 0), (0, 2))) + 1
    if name == "open-reduction":
        return x.sum(1)
    if name == "read-position":
        return Tensor.arange(9) * x
    if name == "push-through-movement":
        return x.T.contiguous()
    return x + 1


@pytest.mark.parametrize("name", RULES)
def test_each_rule_fires_in_its_example(name: str) -> None:
    rule, node = RULES[name], EXAMPLES[name]
    assert name in fired(node, RANGEIFY_RULES)
    assert explain(rule, node, RANGEIFY_RULES).fires


def element(node: UOp, loops: list[UOp], arrays: dict[UOp, Any]) -> Any:
    """Return a read's element in every step of `loops`, by the meaning of the tensor level."""
    value, *indexes = node.src
    array = interpret_tensor(value.src[0] if value.op is Ops.CONTIGUOUS else value, arrays)
    steps = dict(zip(loops, np.ix_(*[np.arange(r.extent) for r in loops]), strict=True))
    at = [steps[i] if i in steps else i.arg for i in indexes]
    return np.broadcast_to(array[tuple(at[: array.ndim])], [r.extent for r in loops])


def run(value: UOp, loops: list[UOp], arrays: dict[UOp, Any]) -> Any:
    """Return `value` in every step of `loops`, by a kernel; reads in it load what they mean."""
    memory: dict[UOp, UOp] = {}
    for node in value.toposort():
        if is_read(node):
            what = node.src[0]
            source = buffer(100 + len(memory), *what.shape, dtype=what.dtype)
            arrays[source] = interpret_tensor(what, arrays)
            memory[node] = load_memory(node.replace(src=(source, *node.src[1:])), source)
    output = buffer(99, *[r.extent for r in loops], dtype=value.dtype)
    place = index(output, flatten(tuple(loops), output.shape))
    kernel, params = kernel_of([store(place, value.substitute(memory))], tuple(loops))
    arrays[output] = np.zeros(output.shape, value.dtype.numpy)
    (result,) = interpret_kernel(kernel, [arrays[p].reshape(-1) for p in params])
    return result.reshape(output.shape)


@pytest.mark.parametrize("name", RULES)
def test_both_sides_of_a_rule_agree(name: str) -> None:
    node = EXAMPLES[name]
    loops = [n for n in node.toposort() if n.op is Ops.RANGE and n in node.src]
    rng = np.random.default_rng(0)
    arrays: dict[UOp, Any] = {
        n: rng.standard_normal(n.shape).astype(np.float32)
        for n in node.toposort()
        if n.op is Ops.BUFFER
    }
    expected = element(node, loops, arrays)
    after = RULES[name].matcher(node)
    assert after is not None
    np.testing.assert_allclose(run(after, loops, arrays), expected, rtol=1e-6)


@pytest.mark.parametrize("name", NEEDED)
def test_without_a_rule_there_is_no_kernel(name: str) -> None:
    """The rules are what runs: no other account of the pass makes the kernel."""
    planned([uses(name).uop])
    with without([name]), pytest.raises(WorkbenchError, match=f"switch {name} on"):
        planned([uses(name).uop])


def test_without_its_rule_a_row_is_computed_where_it_is_read() -> None:
    def softmax() -> Tensor:
        return Tensor(VALUES).realize().softmax(-1)

    def reduced(tensor: Tensor) -> int:
        schedule, _ = planned([tensor.uop])
        kernels = [item.kernel for item in schedule.items if item.kernel is not None]
        return sum(n.op.name == "STAGE" for k in kernels for n in k.toposort())

    exp = np.exp(VALUES - VALUES.max(1, keepdims=True))
    expected = exp / exp.sum(1, keepdims=True)
    assert reduced(softmax()) == 1
    with without(["open-row"]):
        assert reduced(softmax()) == 0
        np.testing.assert_allclose(softmax().numpy(), expected, rtol=1e-5)


def test_its_matches_are_its_work() -> None:
    """Replayed, they end in the kernels; a state between them reads what is left of the graph."""
    x = Tensor(VALUES).realize()
    with observe() as watching:
        planned([(x.pad(((1, 1), (0, 0))) @ x.T).softmax(-1).uop])
    (record,) = [r for r in watching.records if r.name == "rangeify"]
    names = [m.rule.name for m in record.matches]
    assert names[0] == "open-loops" and names[-1] == "name-axes"
    assert all(isinstance(m.rule, Rule) for m in record.matches[1 : names.index("name-axes")])
    kernels = [item.kernel for item in record.after if item.kernel is not None]
    assert replay(record.before, record.matches) is UOp.sink(*kernels)
    counts = [
        sum(map(is_read, replay(record.before, record.matches, n).toposort()))
        for n in range(1, len(names) + 1)
    ]
    assert counts[0] == len(kernels) and counts[-1] == 0 and min(counts[:-10]) > 0


def test_equal_kernels_are_rewritten_once_and_explained_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rules are tried for one of them; the steps of the others are its steps, in their nodes:
    replayed they end in the kernels, and each kernel reads its own memory."""
    rows = [Tensor(VALUES + n).realize() for n in range(4)]
    sums = [(x.pad(((1, 1), (0, 0))) @ x.T).softmax(-1).contiguous() for x in rows]
    rewritten: list[UOp] = []

    def counted(root: UOp, *rest: Any) -> UOp:
        rewritten.append(root)
        return applied(root, *rest)

    monkeypatch.setattr(build, "applied", counted)
    with observe() as watching:
        schedule, _ = planned([s.uop for s in sums])
    assert len(schedule.items) == 4 and len(rewritten) == 1
    (record,) = [r for r in watching.records if r.name == "rangeify"]
    kernels = [item.kernel for item in record.after]
    assert replay(record.before, record.matches) is UOp.sink(*kernels)
    assert len({*record.matches}) == len(record.matches)
    with observe() as alone:
        planned([sums[0].uop])
    (single,) = [r for r in alone.records if r.name == "rangeify"]
    assert len(record.matches) - 1 == 4 * (len(single.matches) - 1)
    for x, result in zip(rows, sums, strict=True):
        padded = np.pad(x.numpy(), ((1, 1), (0, 0))) @ x.numpy().T
        expected = np.exp(padded - padded.max(1, keepdims=True))
        expected /= expected.sum(1, keepdims=True)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4)
