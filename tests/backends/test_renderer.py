"""A renderer by itself: its text is read beside that of devices, and nothing runs it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.backends.shader import a_renderer, fails, shader
from tests.viz.record.support import plain
from tests.viz.session.support import ask, done, session_of
from workbench import Device, Renderer, Tensor, explore, register, unregister
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.target import Target
from workbench.viz.record.record import build


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    if "SHADER" in Device.names():
        unregister("SHADER")


def test_the_text_of_a_renderer_is_beside_that_of_devices() -> None:
    register(a_renderer(shader))
    record = plain(build(explore(Tensor([1.0, 2.0]) * 3)))
    row = next(row for row in record["devices"] if row["name"] == "SHADER")
    assert not row["available"] and "can be read" in row["how_to_get"]
    assert "Shader" in [row["name"] for row in record["languages"]]
    code = {row["language"]: row for row in record["variants"][0]["code"]}
    assert code["Shader"]["lines"][0] == "shader 16" and "store" in code["Shader"]["lines"]
    store = code["Shader"]["lines"].index("store")
    assert code["Shader"]["links"][0] is None
    assert code["Shader"]["links"][store]["nodes"] and code["Shader"]["links"][store]["lines"]
    assert code["C"]["lines"] and record["variants"][0]["error"] is None


def test_what_a_renderer_raises_stands_where_its_code_would() -> None:
    """The page had left the language out without a word."""
    register(a_renderer(fails))
    record = plain(build(explore(Tensor([1.0, 2.0]) * 3)))
    code = {row["language"]: row for row in record["variants"][0]["code"]}
    assert "no such op" in str(code["Shader"]["error"])
    assert code["Shader"]["lines"] == [] and "error" not in code["C"]
    assert code["C"]["lines"] and record["variants"][0]["error"] is None


def test_a_page_asks_a_renderer_for_any_variant() -> None:
    register(a_renderer(shader))
    with session_of(explore(Tensor(np.ones(64, np.float32)) * 3)) as session:
        reply = done(session, "apply", variant=0, opt='UPCAST("g0", 4)')
        done(session, "code", variant=reply["variant"], language="Shader")
        rows = plain(session.record)["variants"][reply["variant"]]["code"]
        assert [row["language"] for row in rows].count("Shader") == 1
        assert ask(session, "device", name="SHADER")["error"]["because"]
        # another one of that name, which fails: the page says so, and the rest stays
        register(a_renderer(fails))
        done(session, "apply", variant=0, opt='UPCAST("g0", 8)')
        reply = ask(session, "code", variant=2, language="Shader")
        assert not reply["ok"] and "no such op" in str(reply["error"])
        assert plain(session.record)["variants"][2]["error"] is None
        done(session, "check", variant=2)


def test_a_renderer_of_a_lower_rank_does_not_replace_the_reader() -> None:
    """All kernels had been read in its language, and it was not among the renderers."""
    reader, default, others = Device.reader, Device.DEFAULT, Device.renderers
    renderer = a_renderer(shader)
    renderer.rank = 5
    register(renderer)
    assert Device.reader is reader and Device.renderers == [renderer, *others]
    assert Device.DEFAULT == default and next(iter(Device)) is renderer
    record = plain(build(explore(Tensor([1.0, 2.0]) * 3)))
    languages = [row["name"] for row in record["languages"]]
    assert languages[0] == "C" and "Shader" in languages
    code = {row["language"]: row for row in record["variants"][0]["code"]}
    assert code["C"]["device"] == reader.name and code["C"]["lines"]
    assert code["Shader"]["lines"][0] == "shader 16"


def test_a_renderer_of_the_readers_language_does_not_replace_what_runs_it() -> None:
    assert Device.reader.language is not None
    renderer = Renderer("SHADER", Device.reader.language, Target(""), shader)
    renderer.rank = 5
    register(renderer)
    assert Device.for_language("C") is Device.reader


def test_a_renderer_runs_nothing() -> None:
    register(a_renderer(shader))
    with pytest.raises(DeviceError, match="not available|runs no kernels"):
        Tensor([1.0, 2.0], device="SHADER").numpy()
    with pytest.raises(WorkbenchError, match="not available|runs no kernels"):
        explore(Tensor([1.0, 2.0]) * 2).kernels[0].run("SHADER")
    unregister("SHADER")
    assert "SHADER" not in Device.names()
