"""HIP -> the code of a GPU, by hipRTC; in the process of compilers."""

from __future__ import annotations

import re

from workbench.backends.hip.driver import call, part
from workbench.base.errors import CompileError

_ERROR = re.compile(r":(\d+):\d+: (?:fatal )?error: (.*)")


def compile_text(text: str, arch: str) -> bytes:
    """Return the code of a text for an architecture such as "gfx942".

    Errors: CompileError with the line that hipRTC refuses.
    """
    rtc = part("hiprtc")
    program = call(
        "CreateProgram", text.encode(), b"kernel.hip", 0, None, None, module="hiprtc"
    )
    options = [f"--offload-arch={arch}".encode(), b"-O3"]
    try:
        (status,) = rtc.hiprtcCompileProgram(program, len(options), options)
        if int(status):
            raise _refusal(_log(program), text)
        code = bytearray(call("GetCodeSize", program, module="hiprtc"))
        call("GetCode", program, code, module="hiprtc")
        return bytes(code)
    finally:
        call("DestroyProgram", program.createRef(), module="hiprtc")


def _log(program: object) -> str:
    log = bytearray(call("GetProgramLogSize", program, module="hiprtc"))
    if log:
        call("GetProgramLog", program, log, module="hiprtc")
    return log.rstrip(b"\0").decode(errors="replace")


def _refusal(log: str, text: str) -> CompileError:
    match = _ERROR.search(log)
    if match is None:
        return CompileError("hiprtc", " ".join(log.split())[-400:], last_good=text)
    return CompileError("hiprtc", match[2], last_good=text, line=int(match[1]))
