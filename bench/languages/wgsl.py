"""WGSL by Chromium: `getCompilationInfo` of each shader module, in a page without a GPU."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.util import find_spec

from workbench.base.installation import library

FLAGS = ("--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ORIGIN = "http://localhost/"
SCRIPT = """async (texts) => {
  const adapter = await navigator.gpu.requestAdapter();
  const device = await adapter.requestDevice();
  const errors = [];
  for (const code of texts) {
    const shader = device.createShaderModule({code});
    const {messages} = await shader.getCompilationInfo();
    const first = messages.find(({type}) => type === "error");
    let error = first ? `line ${first.lineNum}: ${first.message}` : "";
    if (!error) {
      device.pushErrorScope("validation");
      await device.createComputePipelineAsync({layout: "auto", compute: {module: shader}})
        .catch((reason) => { error = String(reason.message); });
      await device.popErrorScope();
    }
    errors.push(error);
  }
  return errors;
}"""


def is_chromium_here() -> bool:
    return find_spec("playwright") is not None and any(map(shutil.which, NAMES))


def errors_of(texts: Sequence[str]) -> list[str]:
    """Return what Chromium says against each text; "" where it makes a pipeline of it."""
    playwright = library("playwright.sync_api")
    program = next(path for name in NAMES if (path := shutil.which(name)))
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=list(FLAGS))
        page = browser.new_page()
        page.route("**/*", lambda route: route.fulfill(body="<!doctype html>"))
        page.goto(ORIGIN)
        page.set_default_timeout(600_000)
        errors: list[str] = page.evaluate(SCRIPT, list(texts))
        browser.close()
    return errors
