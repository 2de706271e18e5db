"""The process of compilers: it calls one function after another, until its input ends.

python -m workbench.backends.compilers.server     started by `child.CompilerProcess`
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any

from workbench.backends.compilers.child import RECEIPT, receive, send
from workbench.backends.compilers.ending import DOCTOR, MEMORY
from workbench.base.errors import CompileError, DeviceError, WorkbenchError


def main() -> None:
    """Answer requests; what compilers print goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the user's program
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (message := receive(incoming)) is not None:
        send(outgoing, RECEIPT)
        send(outgoing, pickle.dumps(_answer(message)))


def _answer(message: bytes) -> tuple[str, Any]:
    try:
        function, args, kwargs = pickle.loads(message)
        return "value", function(*args, **kwargs)
    except CompileError as error:
        return "compile", (error.stage, error.because, error.hint, error.line)
    except DeviceError as error:
        return "device", (error.what, error.because, error.hint)
    except WorkbenchError as error:
        return "other", (error.what, error.because, error.hint)
    except MemoryError:
        return "compile", ("compiler", "its memory ran out", MEMORY, None)
    except Exception as error:
        because = f"{type(error).__name__}: {error}"
        return "other", ("the compiler's process failed", because, DOCTOR)


if __name__ == "__main__":
    main()
