"""Every pass over relu(a @ b + c), 64 x 64: its text before and after, and what fired in it.
Few rules do there, so a padded softmax follows.

    python bench/passes.py             a line per pass and per match
    python bench/passes.py --text      with the states as text

Ends with an error unless the last replayed state of each pass is its result, and a compile
that is watched gives the same program as one that is not.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from workbench import Context, Kernel, Opt, OptOps, Tensor, explore
from workbench.base.trace import PassRecord, unobserved
from workbench.pipeline import build
from workbench.viz.model.rewrites import difference, is_replayable, state, text

N = 64
OPTS = (
    Opt(OptOps.UPCAST, "g1", 16),
    Opt(OptOps.UPCAST, "g0", 4),
    Opt(OptOps.LOCAL, "g0", 4),
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Show every pass of one compile.")
    parser.add_argument("--text", action="store_true", help="print the states as well")
    options = parser.parse_args()

    ex = explore(expression())
    kernel = ex.kernels[0].apply(*OPTS)
    compiled = kernel.compile("LLVM")
    records = (*ex.passes, *compiled.passes)
    softmax = explore(padded_softmax())
    records += (*softmax.passes, *softmax.kernels[-1].compile("LLVM").passes)
    for record in records:
        show(record, options.text)

    wrong = [r.name for r in records if not replays(r)]
    replayed = sum(is_replayable(r) for r in records)
    print(
        f"\n{replayed} passes with rewrites; last replayed state is not the result in: {wrong}"
    )
    same = identical(kernel, compiled.source)
    print(f"watched and not watched give the identical program: {same}")
    return int(bool(wrong) or not same)


def expression() -> Tensor:
    a, b = (Tensor(np.ones((N, N), np.float32)) for _ in range(2))
    return (a @ b + Tensor(np.ones(N, np.float32))).relu()


def padded_softmax() -> Tensor:
    x = Tensor(np.ones((N, N), np.float32)).pad(((0, 0), (1, 2))) / 4
    e = (x - x.max(axis=1, keepdim=True)).exp2()
    return e / e.sum(axis=1, keepdim=True)


def show(record: PassRecord, with_text: bool) -> None:
    indent = "  " if record.parent else ""
    took = f"{1e6 * record.seconds:.0f} µs"
    print(
        f"\n{indent}{record.name}: {record.doc} ({len(record.matches)} matches, {took})"
    )
    for number, match in enumerate(record.matches, start=1):
        reason = getattr(match.rule, "reason", match.rule)
        print(f"{indent}  {number}. {match.rule!r}: {reason}")
        if is_replayable(record):
            print(shifted(difference(text(match.before), text(match.after)), indent))
    if with_text:
        for name, value in (("before", record.before), ("after", record.after)):
            print(f"{indent}  {name}\n{shifted(text(value), indent)}")


def shifted(words: str, indent: str) -> str:
    return "\n".join(f"{indent}      {line}" for line in words.splitlines())


def replays(record: PassRecord) -> bool:
    """Whether the state after all matches is the pass's result."""
    if not is_replayable(record):
        return True
    return state(record, len(record.matches)) is record.after


def identical(kernel: Kernel, source: str) -> bool:
    """Whether the expression, compiled with nobody watching, is the same program."""
    with unobserved(), Context(DEV="LLVM"):
        items = expression().schedule()
        graph = next(i.kernel for i in items if i.kernel is not None)
        again = Kernel(graph, graph, kernel.data, kernel.shape).apply(*OPTS)
        bare = build(again.ast, "LLVM")
    watched = kernel.compile("LLVM").built
    equal = bare.lowered is watched.lowered and bare.linear == watched.linear
    return equal and again.ast is kernel.ast and bare.source.text == source


if __name__ == "__main__":
    sys.exit(main())
