"""A page before a real session, without Jupyter: what the page asks, the session answers, here and
now; so that a test waits for nothing but the page's own time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.viz.browser.browser import leave, opened, session_page
from tests.viz.record.support import plain
from workbench.viz.session.session import Session


class LivePage:
    """A page of a session; `page` is Playwright's. Leave it with a `with` block."""

    def __init__(self, browser: Any, folder: Path, session: Session, **looks: Any):
        self._browser, self.session = browser, session
        path = folder / "live.html"
        html = session_page(plain(session.record)).replace("view: {}", "view: { mode: 'tune' }")
        path.write_text(html, encoding="utf-8")
        self.page = opened(browser, path, **looks)
        self.page.evaluate("window.mute = true")
        self._heard: list[Any] = []
        session.listen(self)

    def __enter__(self) -> LivePage:
        return self

    def __exit__(self, *_: object) -> None:
        leave(self._browser, self.page)

    def receive(self, message: Any) -> None:
        self._heard.append(plain(message))

    def renew(self, record: str) -> None:
        pass

    def select(self, view: Any) -> None:
        pass

    def answer(self, *names: str) -> list[Any]:
        """Answer what the page asks, until it has asked for each of `names`, and all that it asks
        then; return the requests."""
        requests: list[Any] = []
        while True:
            asked = self.page.evaluate("sent.splice(0)")
            requests += asked
            for request in asked:
                self.session.handle(request, self)
            self.session.send_changes()
            for message in self._heard:
                # as text: Playwright walks through an argument part by part
                self.page.evaluate("(text) => hear(JSON.parse(text))", json.dumps(message))
            self._heard.clear()
            # an answer may have the page ask again, in its own time
            self.page.evaluate("() => new Promise((done) => setTimeout(done, 0))")
            missing = set(names) - {request["do"] for request in requests}
            if missing:
                self.page.wait_for_function("sent.length > 0")
            elif not self.page.evaluate("sent.length"):
                return requests
