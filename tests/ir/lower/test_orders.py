"""Every loop order and every list of splits computes the same.

Random forms of hand-built kernels run on both devices and on the reference interpreter, with
the output full of NaN before, and every level verified on the way. A failure prints Python
that builds the kernel again.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tests.kernels import (
    EXAMPLES,
    LLVM,
    Example,
    Form,
    interpreted,
    random_form,
    reordered,
    run,
)
from tests.support import count
from workbench.errors import WorkbenchError

FORMS = max(1, count(2000) // len(EXAMPLES))
MOST_OPTS = 4


def check(example: Example, form: Form, seed: int) -> None:
    arrays = example.arrays(seed)
    wanted = example.wanted(arrays)
    for device in ("reference interpreter", "PYTHON", "LLVM"):
        try:
            if device == "reference interpreter":
                got = interpreted(form.graph, arrays)
            else:
                got = run(form.graph, device, arrays)
        except WorkbenchError as error:
            pytest.fail(f"{device}: {error}\n{form.reproducer(seed)}")
        error = np.abs(got - wanted)
        if not np.allclose(
            got, wanted, rtol=1e-5, atol=1e-5
        ):  # NaN left over is a failure
            pytest.fail(f"{device} is off by {error.max()}\n{form.reproducer(seed)}")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_loop_order_gives_the_same_answer(name: str) -> None:
    example = EXAMPLES[name]
    for seed in range(FORMS):
        check(example, random_form(example, seed, 0), seed)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_list_of_splits_in_any_order_gives_the_same_answer(name: str) -> None:
    example = EXAMPLES[name]
    for seed in range(FORMS):
        check(example, random_form(example, 10_000 + seed, MOST_OPTS), seed)


def test_all_orders_of_a_matmul() -> None:
    example = EXAMPLES["matmul_bias_relu"]
    for order in permutations(example.graph.arg.order):
        check(example, Form(example, (), reordered(example.graph, order)), 0)


def test_the_examples_are_many_enough() -> None:
    assert len(EXAMPLES) >= 5 and FORMS * len(EXAMPLES) >= 190


def test_a_form_is_the_same_every_time_and_forms_differ() -> None:
    example = EXAMPLES["matmul_bias_relu"]
    forms = [random_form(example, seed, MOST_OPTS, LLVM).graph for seed in range(30)]
    again = [random_form(example, seed, MOST_OPTS, LLVM).graph for seed in range(30)]
    assert all(a is b for a, b in zip(forms, again, strict=True))
    assert len(set(forms)) > 20


def test_the_reproducer_builds_the_form() -> None:
    form = random_form(EXAMPLES["softmax"], 3, MOST_OPTS)
    scope: dict[str, object] = {}
    exec(form.reproducer(3).replace("print(kernel.check())", ""), scope)
    assert scope["kernel"].ast is form.graph  # type: ignore[attr-defined]
    assert scope["opts"] == list(form.opts)
