"""A module of PyTorch's as a program of ATen operators, or why it cannot be exported, in words."""

from __future__ import annotations

import io
import logging
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from inspect import Signature, signature
from typing import Any

from workbench.base.errors import ModelError

COMPILE = 'torch.compile(module, backend="workbench"), where PyTorch runs what has no row here'

NEEDS_VALUES = "DataDependentOutputException", "PendingUnbackedSymbolNotFound"
"""PyTorch's errors for code that needs values, whose text does not say so."""


def exported(module: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return the torch.export.ExportedProgram of a module for inputs like these.

    Errors: ModelError for inputs that its `forward` does not take, and where PyTorch cannot export
    it, with the module and the line.
    """
    import torch

    _check_inputs(module, arguments, options)
    try:
        with _quiet(), _whole_stacks():
            return torch.export.export(module, tuple(arguments), dict(options), strict=False)
    except Exception as error:
        raise _refused(module, error) from error


def decomposed(program: Any, table: Mapping[Any, Any]) -> Any:
    """Return an ExportedProgram in operators that are not in `table`, which decomposes the others.

    Errors: ModelError where a decomposition of PyTorch's fails, such as that of a view of memory in
    another order than PyTorch expects there.
    """
    try:
        with _quiet():
            return program.run_decompositions(table)
    except Exception as error:
        text = str(error).strip().partition("\n\n")[0] or type(error).__name__
        hint = f"x.reshape(..) for x.view(..) where a view is named, or {COMPILE}"
        raise ModelError("torch.export cannot decompose the module", text, hint) from error


def _check_inputs(module: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
    forward = signature(module.forward)
    try:
        forward.bind(*arguments, **options)
    except TypeError as error:
        name = type(module).__name__
        takes = forward.replace(return_annotation=Signature.empty)
        what = f"{name} does not take these inputs"
        if not arguments and not options:
            what = f"{name} needs its inputs"
        hint = f"inputs after the module, as in a call of it: {name}{takes}"
        raise ModelError(what, f"{error}", hint) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what PyTorch prints of an export that fails, as the error says it: its warnings,
    lines of its log, and the graph so far."""
    printed = io.StringIO()
    handlers = [
        handler
        for name, logger in list(logging.root.manager.loggerDict.items())
        if name.partition(".")[0] == "torch"
        for handler in getattr(logger, "handlers", ())
    ]
    for handler in handlers:
        handler.addFilter(_is_asked_for)
    try:
        with redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are about PyTorch's own code
            yield
        sys.stderr.write(printed.getvalue())  # by the module's own code
    finally:
        for handler in handlers:
            handler.removeFilter(_is_asked_for)


def _is_asked_for(record: logging.LogRecord) -> bool:
    """Whether a line is in the log because of TORCH_LOGS."""
    return record.levelno < logging.WARNING


@contextmanager
def _whole_stacks() -> Iterator[None]:
    """Let nodes have the lines of functions that a `forward` calls: by itself PyTorch keeps those
    of methods of that name alone."""
    from torch.fx.experimental.proxy_tensor import PythonKeyTracer

    tracer: Any = PythonKeyTracer
    tracer._record_forward_stack_traces_only = property(lambda _: False, lambda _, value: None)
    try:
        yield
    finally:
        if "_record_forward_stack_traces_only" in vars(tracer):  # once if two threads export
            del tracer._record_forward_stack_traces_only


def _refused(module: Any, error: Exception) -> ModelError:
    """Return what PyTorch says, in words, with the module and the line of its code."""
    name, text = type(module).__name__, str(error).strip()
    what, where = f"torch.export cannot export {name}", _where(module, error)
    unknown = re.search(r"Found <class '(.*?)'> in (\w+), which is not a known type", text)
    if unknown is not None:
        kind, side = unknown[1].rpartition(".")[2], unknown[2]
        because = f"{'an input' if side == 'input' else 'its result'} is or holds a {kind}"
        hint = "tensors, numbers, and tuples, lists and dicts of them"
        if hasattr(getattr(module, "config", None), "use_cache"):
            hint = "module.config.use_cache = False, for a network that returns no cache"
        return ModelError(what, because, hint, where)
    if "data-dependent" in text or type(error).__name__ in NEEDS_VALUES:
        because = "its code needs the value of a tensor: to decide, or for a size"
        return ModelError(what, because, f"torch.where(condition, a, b), or {COMPILE}", where)
    return ModelError(what, text.partition("\n\n")[0] or type(error).__name__, "", where)


def _where(module: Any, error: Exception) -> str:
    """Return the innermost module that was called, and the innermost line of modules that are not
    PyTorch's own."""
    import torch

    own = torch.__file__.rpartition("__init__")[0]
    paths = {id(each): path for path, each in module.named_modules()}
    path = line = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        owner, file = trace.tb_frame.f_locals.get("".join(code.co_varnames[:1])), code.co_filename
        if isinstance(owner, torch.nn.Module):
            path = paths.get(id(owner), path)
            line = line if file.startswith(own) else f"{file}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return ": ".join(filter(None, (path, line)))
