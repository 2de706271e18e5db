"""IPython magics, after `%load_ext workbench`.

%%kernel -o 'UPCAST("g1", 8)'      run the cell; show the workbench of its last value
%timekernel (a @ b).relu()         time the kernels that compute a value
%%profile run                      run the cell; show where its time went, and call that `run`
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import sys
from types import CodeType, FrameType
from typing import Any

from workbench.backends.device import Device
from workbench.base.context import Context
from workbench.base.errors import WorkbenchError
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.explore import explore
from workbench.viz.page.panel import panes
from workbench.viz.run.run import Run, profile
from workbench.viz.schema.messages import ViewState
from workbench.viz.session.show import session_of


def load(shell: Any) -> None:
    """Register the magics in an IPython shell."""
    shell.register_magic_function(kernel_magic(shell), "cell", "kernel")
    shell.register_magic_function(timekernel_magic(shell), "line", "timekernel")
    shell.register_magic_function(profile_magic(shell), "cell", "profile")


def kernel_magic(shell: Any) -> Any:
    """Return `%%kernel` of a shell."""

    def kernel(line: str, cell: str) -> Exploration | None:
        try:
            options = _options(line)
            name = _device(options)
            is_here = name and not Device[name].is_elsewhere
            with Context(**{"DEV": name} if is_here else {}):
                tensors = _tensors(_run(shell, cell, skipped=1))
                ex = explore(*tensors, show=options.show, device=name)
        except WorkbenchError as error:  # IPython shows all other errors
            print(error)
            return None
        if options.opt and not ex.kernels:
            print(f"there is no kernel to apply opts to\n  because  {ex.nothing_to_do}")
            return ex
        for opts in options.opt:
            reply = session_of(ex).handle({"do": "paste", "variant": 0, "text": opts})
            if reply.error is not None:
                print(reply.error.as_error())
            else:
                ex.display.view = ViewState(variant=reply.result.variant)
        return ex

    kernel.__doc__ = "Run the cell and show the workbench of its last value.\n\n"
    kernel.__doc__ += _parser().format_help()
    return kernel


def timekernel_magic(shell: Any) -> Any:
    """Return `%timekernel` of a shell."""

    def timekernel(line: str) -> None:
        """Time the kernels that compute an expression, with the default opts."""
        try:
            ex = explore(*_tensors(_run(shell, line)))
            timings = [k.optimized().time() for k in ex.kernels]
        except WorkbenchError as error:
            print(error)
            return
        if ex.nothing_to_do:
            print(ex.nothing_to_do)
        for kernel, timing in zip(ex.kernels, timings, strict=True):
            print(f"{kernel.title}: {timing}")

    return timekernel


def profile_magic(shell: Any) -> Any:
    """Return `%%profile` of a shell."""

    def profile_cell(line: str, cell: str) -> Run | None:
        """Run the cell and return its Run: its kernels, when they ran, and why they waited. A name
        on the line gets it as a variable, also if the cell fails: `%%profile run`."""
        name = line.strip()
        if name and not name.isidentifier():
            because = f"{name!r:.40} is not the name of a variable"
            print(WorkbenchError("%%profile cannot read its line", because, "%%profile run"))
            return None
        code = _compiled(shell, cell, skipped=1)
        try:
            with profile() as run:
                exec(code, shell.user_ns)
        except BaseException:
            print(run)  # what was seen until then
            raise
        finally:
            if name:
                shell.user_ns[name] = run
        return run

    return profile_cell


def _compiled(shell: Any, cell: str, skipped: int) -> CodeType:
    """Return the code of a cell, whose lines keep their places in the notebook."""
    above = "\n" * skipped
    name = shell.compile.cache(above + cell, _cell_number(shell))
    return compile(ast.parse(above + shell.transform_cell(cell), name), name, "exec")


def _options(line: str) -> argparse.Namespace:
    try:
        options, rest = _parser().parse_known_args(shlex.split(line))
    except (argparse.ArgumentError, ValueError) as error:
        what = "%%kernel cannot read its options"
        raise WorkbenchError(what, str(error), "%%kernel?") from error
    if rest:
        because = f"there is no option {rest[0]}"
        raise WorkbenchError("%%kernel cannot read its options", because, "%%kernel?")
    return options


def _device(options: argparse.Namespace) -> str:
    """Return the device that kernels are for; "": the device of their tensors."""
    device, target = " ".join(options.device), " ".join(options.target)
    return Device.on_machine(device, target) if device or target else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="%%kernel", add_help=False, exit_on_error=False)
    where = "a device for kernels and, if it is here, for new tensors"
    parser.add_argument("-d", "--device", nargs="+", default=[], help=where)
    target_help = "a machine that need not be here, such as RTX 4090: kernels are for it"
    parser.add_argument("-t", "--target", nargs="+", default=[], help=target_help)
    parser.add_argument(
        "-o", "--opt", action="append", default=[], help="opts for the first kernel"
    )
    parser.add_argument("-s", "--show", default="", choices=["", *panes()], help="one pane")
    return parser


def _run(shell: Any, cell: str, skipped: int = 0) -> Any:
    """Run a cell in the user's namespace; return the value of its last line. `skipped` lines stand
    above it in the notebook. Errors: WorkbenchError if the last line is not an expression."""
    above = "\n" * skipped
    name = shell.compile.cache(above + cell, _cell_number(shell))
    tree = ast.parse(above + shell.transform_cell(cell), name)
    last = tree.body.pop() if tree.body else None
    if not isinstance(last, ast.Expr):
        raise WorkbenchError(
            "there is nothing to explore",
            "the last line of the cell is not an expression",
            "a tensor as the last line",
        )
    names = shell.user_ns
    exec(compile(tree, name, "exec"), names)
    return eval(compile(ast.Expression(last.value), name, "eval"), names)


def _cell_number(shell: Any) -> int:
    """Return the number of the cell that runs. IPython's count comes last: some versions add 1
    before the cell runs, some after."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        label = shell.compile.format_code_name(frame.f_code.co_filename)
        digits = re.search(r"\d+", label[1]) if label else None
        if digits:
            return int(digits[0])
        frame = frame.f_back
    count: int = shell.execution_count
    return count


def _tensors(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
