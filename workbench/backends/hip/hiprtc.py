"""hipRTC, the compiler of HIP as a library, in the process of compilers."""

from __future__ import annotations

from workbench.backends.compilers.refusal import refusal
from workbench.backends.hip.driver import call, part


def compile_text(text: str, arch: str) -> bytes:
    """Return the code of a text for an architecture such as "gfx942".

    Errors: CompileError with the line that hipRTC refuses.
    """
    rtc = part("hiprtc")
    program = call("CreateProgram", text.encode(), b"kernel.hip", 0, None, None, module="hiprtc")
    options = [f"--offload-arch={arch}".encode(), b"-O3", b"-ffp-contract=off"]
    try:
        (status,) = rtc.hiprtcCompileProgram(program, len(options), options)
        if int(status):
            raise refusal("hiprtc", _log(program), text)
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
