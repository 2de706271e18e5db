"""What the tests of live sessions share: a page that keeps its own copy of the record."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import msgspec

from tests.support import PATIENCE_S
from tests.viz.record.support import patched, plain
from tests.viz.schema import decoded
from workbench.viz import Exploration
from workbench.viz.schema.record import PageRecord
from workbench.viz.session.constants import constants
from workbench.viz.session.requests import PREFETCH, Jobs
from workbench.viz.session.session import Session

LAST = 9
"""A priority after that of every job."""


class Page:
    """Hears messages as a browser does, and applies patches to its own copy."""

    def __init__(self, session: Session):
        self.record = unpacked(session.packed())
        self.messages: list[Any] = []
        self.renewed: list[str] = []
        session.listen(self)

    def receive(self, message: Any) -> None:
        message = plain(message)
        decoded.message(message)
        self.messages.append(message)
        if "record" in message:  # about one that stands beside it
            return
        patch, whole = message.get("patch"), (message.get("result") or {}).get("record")
        if whole:
            self.record = unpacked(whole)
        if patch is not None:
            assert patch["set"][-1] == [["n"], self.record["n"] + 1], "in order"
            self.record = patched(self.record, patch)

    def is_record_of(self, session: Session) -> bool:
        """Whether its copy is the session's record, while no job changes that."""
        with session.lock:
            return bool(self.record == whole(session))

    def renew(self, record: str) -> None:
        self.renewed.append(record)

    def select(self, view: Any) -> None:
        self.messages.append({"view": plain(view)})


def whole(session: Session) -> Any:
    """The record as a page has it: with constant sections, also before Python has built them for
    this record."""
    record = plain(session.record)
    for name, section in constants().sections.items():
        record["panels"][name] = record["panels"][name] or section
    return record


def unpacked(record: str) -> Any:
    """The record as a page reads it, with the parts that are the same in all; fails where it is not
    of its type."""
    own = json.loads(zlib.decompress(base64.b64decode(record)))
    same = constants()
    whole_record = {**same.fields, **own, "panels": {**same.sections, **own["panels"]}}
    msgspec.convert(whole_record, PageRecord)
    return whole_record


@contextmanager
def session_of(ex: Exploration, **options: Any) -> Iterator[Session]:
    """A session with a queue and a worker of its own, which end with it."""
    queue = Jobs()
    try:
        yield Session(ex, queue, **options)
    finally:
        queue.close()


def ask(session: Session, do: str, **fields: Any) -> Any:
    reply = plain(session.handle({"id": 7, "do": do, **fields}))
    assert set(reply) - {"record"} == {"id", "ok", "error", "result", "patch"}
    assert reply.get("record") == fields.get("record")
    if reply["ok"]:
        decoded.result(do, reply["result"])
    assert reply["id"] == 7 and reply["ok"] is (reply["error"] is None)
    return reply


def done(session: Session, do: str, **fields: Any) -> Any:
    reply = ask(session, do, **fields)
    assert reply["ok"], reply["error"]
    return reply["result"]


def finish_jobs(queue: Jobs) -> None:
    """Wait until nothing is left to do: a job behind all others is over."""
    assert queue.submit(None, iter(()), LAST).wait(PATIENCE_S)


def prefetch_all(session: Session, measures: bool = True) -> None:
    """Do what is done in the background of a page, to its end."""
    steps = chain(session._restore(), session._prefetch(measures))
    assert session.jobs.submit(session, steps, PREFETCH).wait(PATIENCE_S)
