"""Links: what passes made from what, kept by the records and for nobody else."""

from __future__ import annotations

from workbench.trace import Link, PassRecord, aside, became, observe, recording


def test_links_belong_to_the_pass_they_were_made_in_or_that_came_next() -> None:
    with observe() as watching:
        became({"a": "b", "same": "same"})
        with recording("first", "", "b") as first:
            became({"b": "c"})
            first.after = "c"
        with recording("second", "", "c"):
            pass
        became({"c": "d"})
    first_record, second_record = watching.records
    assert first_record.links == (Link("b", "a"), Link("c", "b"))
    assert second_record.links == (Link("d", "c"),)


def test_a_part_of_a_pass_is_a_link_and_no_record() -> None:
    with observe() as watching, recording("pass", "", 1) as outer:
        with aside("before") as part:
            became({"x": "y"})
            with recording("inner", "", "y") as inner:
                inner.after = "z"
            part.after = "z"
        outer.after = 2
    assert [r.name for r in watching.records] == ["pass"]
    (part_record,) = watching.records[0].links
    assert isinstance(part_record, PassRecord)
    assert (part_record.before, part_record.after) == ("before", "z")
    (inner_record,) = part_record.links
    assert isinstance(inner_record, PassRecord)
    assert inner_record.name == "inner" and inner_record.links == (Link("y", "x"),)


def test_a_part_that_came_to_nothing_leaves_no_trace() -> None:
    before = object()
    with observe() as watching, recording("pass", "", 1):
        with aside(before):
            became({"x": "y"})
        with aside(before) as part:
            part.after = before
    assert watching.records[0].links == ()


def test_nothing_is_noted_when_nobody_watches() -> None:
    became({"a": "b"})
    with aside("before") as part:
        part.after = "after"
    with observe() as watching, recording("pass", "", 1):
        pass
    assert watching.records[0].links == ()
