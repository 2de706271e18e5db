"""Links: what passes made from what, kept by the records and for nobody else."""

from __future__ import annotations

from contextlib import suppress

from workbench.base.trace import (
    MOST_MERGED,
    Match,
    PassRecord,
    ProvenanceEdge,
    created,
    derived_from,
    merged,
    observe,
    recording,
    tentative,
)


def note(changes: dict[str, str]) -> None:
    """Make the values of `changes`, each of its key."""
    for source, node in changes.items():
        with derived_from(source):
            created(node)


def test_the_innermost_scope_says_what_a_node_comes_of() -> None:
    with observe() as watching, recording("pass", "", 1):
        created("of nothing")
        with derived_from("a", "b"):
            created("c")
            with derived_from("d"):
                created("e")
            with recording("inner", "", 2):
                created("its own affair")
            created("f")
    assert [tuple(edge) for edge in watching.records[0].edges] == [
        ("c", "a"), ("c", "b"), ("e", "d"), ("f", "a"), ("f", "b"),
    ]  # fmt: skip
    assert watching.records[1].edges == ()


def test_edges_belong_to_the_pass_they_were_made_in_or_that_came_next() -> None:
    with observe() as watching:
        note({"a": "b", "same": "same"})
        with recording("first", "", "b") as first:
            note({"b": "c"})
            first.after = "c"
        with recording("second", "", "c"):
            pass
        note({"c": "d"})
    first_record, second_record = watching.records
    assert first_record.edges == (ProvenanceEdge("b", "a"), ProvenanceEdge("c", "b"))
    assert second_record.edges == (ProvenanceEdge("d", "c"),)


def test_a_part_of_a_pass_is_an_edge_and_its_passes_are_inside() -> None:
    with observe() as watching, recording("pass", "", 1) as outer:
        with tentative("before") as part:
            note({"x": "y"})
            with recording("inner", "", "y") as inner:
                inner.after = "z"
            part.after = "z"
        outer.after = 2
    outer_record, inner_record = watching.records
    (part_record,) = outer_record.edges
    assert isinstance(part_record, PassRecord)
    assert (part_record.before, part_record.after) == ("before", "z")
    assert (inner_record.name, inner_record.parent) == ("inner", "pass")
    assert inner_record.edges == (ProvenanceEdge("y", "x"),)


def test_a_part_that_came_to_nothing_leaves_no_trace() -> None:
    before = object()
    with observe() as watching, recording("pass", "", 1):
        with tentative(before):
            note({"x": "y"})
        with tentative(before) as part:
            part.after = before
    assert len(watching.records) == 1 and watching.records[0].edges == ()


def small(before: str, after: str, *rules: str) -> None:
    """Run a small pass in which each rule changes `before`."""
    with recording("small", "", before) as record:
        note({before: after})
        if record.matches is not None:
            record.matches += [Match(rule, f"{rule} {before}", after) for rule in rules]
        record.after = after


def joined(*states: str) -> str:
    return ",".join(states)


def test_pieces_are_one_record_of_what_changed() -> None:
    with observe() as watching, recording("large", "", 1), merged("small", joined):
        small("a", "b", "r", "s")
        with recording("other", "", 2):
            pass
        small("same", "same")
        small("c", "d", "r")
        small("a", "b", "r", "s")
        with suppress(ValueError), recording("small", "", "e"):
            raise ValueError("no")
    large, other, failed, pieces = watching.records
    assert [other.name, failed.name, str(failed.error)] == ["other", "small", "no"]
    assert (pieces.name, pieces.parent) == ("small", "large")
    assert (pieces.before, pieces.after) == ("a,c", "b,d")
    assert [m.before for m in pieces.matches] == ["r a", "s a", "r c"]
    assert pieces.dropped == 0 and pieces.seconds > 0
    assert set(pieces.edges) == {ProvenanceEdge("b", "a"), ProvenanceEdge("d", "c")}


def test_of_very_many_pieces_the_first_are_kept() -> None:
    with observe() as watching, recording("large", "", 1), merged("small", joined):
        for number in range(MOST_MERGED + 7):
            small(f"x{number}", f"y{number}", "r")
    pieces = watching.records[1]
    assert len(pieces.matches) == MOST_MERGED and pieces.dropped == 7
    assert pieces.before.split(",")[-1] == f"x{MOST_MERGED - 1}"


def test_pieces_that_changed_nothing_are_no_record() -> None:
    with observe() as watching, recording("large", "", 1), merged("small", joined):
        small("a", "a")
    assert [r.name for r in watching.records] == ["large"]


def test_nothing_is_noted_when_nobody_watches() -> None:
    note({"a": "b"})
    with tentative("before") as part:
        part.after = "after"
    with merged("small", joined):
        small("a", "b", "r")
    with observe() as watching, recording("pass", "", 1):
        pass
    assert watching.records[0].edges == ()
