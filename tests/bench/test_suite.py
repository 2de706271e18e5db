"""The benchmark set: our answers are numpy's, and a wrong one would be seen."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.bench.peers import KERNELS_ALONE, OURS, PEERS
from workbench.bench.suite import ENTRIES, Entry, fault


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_our_answer_is_numpys(entry: Entry) -> None:
    arrays = entry.arrays(smoke=True)
    expected = entry.expected(arrays)
    run, fetch = OURS.prepare(entry, arrays)
    run()
    first = fetch()
    assert fault(first, expected) is None
    run()  # a replay leaves the same answer
    assert np.array_equal(fetch(), first)


def test_the_replay_computes() -> None:
    """Kernels alone do the work: with the result wiped, a run brings it back."""
    from workbench.execution import buffers

    entry = next(e for e in ENTRIES if e.name == "softmax of rows")
    arrays = entry.arrays(smoke=True)
    run, fetch = PEERS[KERNELS_ALONE].prepare(entry, arrays)
    run()
    reference = fetch()
    for memory in list(buffers._memory.values()):
        if memory.size == reference.size and not np.array_equal(memory.array, arrays[0].ravel()):
            memory.array[:] = np.nan
    assert np.isnan(fetch()).all()
    run()
    assert np.array_equal(fetch(), reference)


def test_inputs_are_the_same_in_every_process() -> None:
    entry = ENTRIES[0]
    first, again = entry.arrays(smoke=True), entry.arrays(smoke=True)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize(
    ("outcome", "expected", "message"),
    [
        ([1.0, 2.0], [1.0, 2.00001], None),
        ([1.0, 2.0], [1.0, 2.1], "1 of 2 elements, the first at [1]: 2, not 2.1"),
        ([np.nan, 2.0], [1.0, 2.0], "1 of 2 elements, the first at [0]: nan, not 1"),
        ([1.0], [1.0, 2.0], "shape (1,), not (2,)"),
        ([1, 2], [1, 3], "1 of 2 elements, the first at [1]: 2, not 3"),
    ],
)
def test_a_fault_is_told(outcome: list[float], expected: list[float], message: str | None) -> None:
    answer = np.array(outcome)
    if answer.dtype.kind == "f":
        answer = answer.astype(np.float32)  # as answers are; expected is of numpy's float64
    assert fault(answer, np.array(expected)) == message


def test_bytes_are_those_that_are_touched() -> None:
    """Of the table of an embedding only the rows that are looked up."""
    entry = next(e for e in ENTRIES if e.name == "embedding")
    table, index = entry.arrays(smoke=False)
    result = entry.array(np, table, index)
    rows = np.unique(index).size
    assert rows < len(table)
    bytes_ = entry.bytes((table, index), result)
    assert bytes_ == 4 * (rows * table.shape[1] + index.size + result.size)
    (add,) = [e for e in ENTRIES if e.name == "add"]
    arrays = add.arrays(smoke=True)
    assert add.bytes(arrays, arrays[0]) == 3 * arrays[0].nbytes
