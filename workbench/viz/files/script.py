"""An exploration as a script: a function of its inputs that runs the kernels in their order.

The script needs this package alone, whatever framework the expression came from. Each kernel is IR
text, with the opts that were chosen by hand, or C, if its source was edited; the arrays that it
reads are in a safetensors file beside it. Names and titles may come from a file of another user:
they reach the script as literals, identifiers or comments of one line.

Sections: The script and its data; Calls of kernels; Variants that were chosen by hand; Texts in
the script.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext
from keyword import iskeyword
from typing import NamedTuple

from workbench.backends.device import Device
from workbench.backends.program.text import slots_of
from workbench.base.errors import WorkbenchError, cut, plural
from workbench.base.files import FileKind
from workbench.base.installation import version
from workbench.base.trace import unobserved
from workbench.edited import edited_ir
from workbench.execution.buffers import read
from workbench.execution.memory_plan import with_computed
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.rewrite import without
from workbench.ir.schedule.plan import ScheduleItem
from workbench.ir.text.printer import to_text
from workbench.kernel.kernel import Kernel, literal
from workbench.pipeline import stages
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.session.handlers.variants import has_default_opts
from workbench.viz.session.live_record import Edited, LiveRecord

# --------------------------------------------------------------------------------------------------
# The script and its data.

SCRIPT_FILE = FileKind("script of an exploration", r'""".*\nMade by workbench')
HEAD = '''"""{about}.

    from {name} import {name}
    {name}({parameters})

{facts}

Made by workbench {version}, which it needs with safetensors; explore({arguments}) shows its
kernels.
"""

from pathlib import Path

from workbench import {imports}
from workbench.nn.state import safe_load

DATA = safe_load(Path(__file__).with_suffix("{suffix}"))
'''
DATA_SUFFIX = ".safetensors"
"""The end of the name of the data's file, beside a script of the same name."""
CHECKED = '''

def checked(name, value, shape, dtype, constant=None):
    """Return an input as a Tensor. Errors: ValueError for another shape, dtype or constant."""
    tensor = value if isinstance(value, Tensor) else Tensor(value)
    if tensor.shape != shape or str(tensor.dtype) != dtype:
        has = f"{tensor.dtype} of shape {tensor.shape}"
        raise ValueError(f"{name} must be {dtype} of shape {shape}, and is {has}")
    if constant is not None and tensor.tolist() != constant.tolist():
        raise ValueError(f"{name} must be {constant.tolist()}, for which the kernels are made")
    return tensor
'''
NAMES = frozenset({"DATA", "Device", "Opt", "OptOps", "Path", "Tensor", "checked", "safe_load"})
"""Names of the script that no input may have."""
MOST_WIDTH = 100
"""Most characters of a call on one line."""
SAME_VALUES = frozenset({Ops.RESHAPE, Ops.COPY, Ops.DETACH, Ops.CONTIGUOUS})
"""Ops through which a tensor has all elements of its memory, in their order."""


class Script(NamedTuple):
    """The text of a script, and the `data` that it reads by name, for the file beside it."""

    text: str
    data: Mapping[str, Tensor]


class _Parameter(NamedTuple):
    """A parameter of the function: its `name` there, the `key` of its example in the data, and the
    node of the input. `is_constant`: the kernels are made for the values of the example."""

    name: str
    key: str
    node: UOp
    is_constant: bool

    @property
    def check(self) -> str:
        """The line that checks it."""
        constant = f", DATA[{self.key!r}]" if self.is_constant else ""
        kind = f"{self.node.shape}, {self.node.dtype.name!r}"
        return f"    {self.name} = checked({self.name!r}, {self.name}, {kind}{constant})"


def script_of(ex: Exploration, stem: str) -> Script:
    """Return the script of an exploration as its page shows it; `stem` names its files.

    Errors: WorkbenchError for tensors without data, for kernels of a machine that is not here, for
    an edit in a language that no script runs, and where scheduling failed.
    """
    session: LiveRecord | None = ex.display.session
    shown = ex if session is None else session.recorder.exploration
    what = "cannot write this exploration as a script"
    if shown.error is not None:
        raise WorkbenchError(what, "scheduling failed: it has no kernels", "print(ex)")
    if not all(run.has_data for run in shown.runs):
        raise WorkbenchError(what, "its tensors were loaded without data", "ex.save(path)")
    if shown.on and Device[shown.on].is_elsewhere:
        because = f"its kernels are for {shown.on}, which is not here"
        raise WorkbenchError(what, because, "explore(..) for a device that is here")
    with unobserved(), nullcontext() if session is None else session.lock:
        return _ScriptWriter(shown, session, stem).script()


class _ScriptWriter:
    """The parts of a script, which it adds in the order of the kernels."""

    def __init__(self, ex: Exploration, session: LiveRecord | None, stem: str):
        self._ex, self._session = ex, session
        self._name = identifier(stem, NAMES) or "program"
        self._data: dict[str, Tensor] = {}
        self._values: dict[UOp, str] = {}
        """Expressions by the BUFFER or the value that they stand for."""
        self._texts: dict[str, str] = {}
        self._imports = {"Tensor"}
        self._lines: list[str] = []
        self._other_inputs: list[str] = []
        self._parameters = list(self._inputs())

    def script(self) -> Script:
        """Return the script."""
        number = 0
        for item in self._ex.items:
            if item.kernel is None:
                value = self._value(item.buffers[1])
                is_own = item.device == self._ex.device
                self._set(item, [value if is_own else f'{value}.to("{item.device}")'])
            else:
                self._add_kernel(item, number)
                number += 1
        results = [self._expression(node) for node in self._ex.outputs]
        signature = ", ".join(f"{p.name}=DATA[{p.key!r}]" for p in self._parameters)
        body = [
            *(["", "", f"{name} = {text}"] for text, name in self._texts.items()),
            [CHECKED.rstrip("\n")] if self._parameters else [],
            ["", "", f"def {self._name}({signature}):", f'    """{self._facts("Return")}"""'],
            [p.check for p in self._parameters],
            self._lines,
            [f"    return {results[0] if len(results) == 1 else _tuple(results)}", "", ""],
            ['if __name__ == "__main__":', *self._main(len(results)), ""],
        ]
        lines = [line for part in body for line in part]
        return Script(self._head() + "\n".join(lines), self._data)

    def _head(self) -> str:
        ex = self._ex
        line = "" if ex.line is None else f" of {ex.line.text} ({ex.line})"
        names = [p.name for p in self._parameters]
        device = "" if ex.device == Device.DEFAULT else f'\nDevice.DEFAULT = "{ex.device}"\n'
        imports = {*self._imports, "Device"} if device else self._imports
        head = HEAD.format(
            about=docstring(plural(len(ex.kernels), "kernel") + line),
            name=self._name,
            parameters=", ".join(names),
            facts=self._facts("It returns"),
            version=version(),
            suffix=DATA_SUFFIX,
            arguments=", ".join([self._name, *names]),
            imports=", ".join(sorted(imports)),
        )
        return head + device

    def _facts(self, returns: str) -> str:
        """Return the inputs and the results of the function in words."""
        outputs = self._ex.outputs
        words = [f"{p.name}: {_kind(p.node)}" for p in self._parameters]
        words += [f"{name} is a part of the kernels" for name in self._other_inputs]
        results = ", ".join(f"{self._ex.lines.name(n)} {_kind(n)}".strip() for n in outputs)
        given = f" for {', '.join(words)}" if words else ""
        return docstring(f"{returns} {results}{given}.")

    def _main(self, count: int) -> Iterator[str]:
        """Yield the lines that print the results for the inputs of the exploration."""
        numpy = [".numpy()" if n.dtype.in_numpy else ".float().numpy()" for n in self._ex.outputs]
        if count == 1:
            yield f"    print({self._name}(){numpy[0]})"
            return
        yield f"    results = {self._name}()"
        yield from (f"    print(results[{place}]{numpy[place]})" for place in range(count))

    def _inputs(self) -> Iterator[_Parameter]:
        """Yield the parameters: the inputs of a model or a function; else the arrays that variables
        of the user name."""
        ex = self._ex
        named = list(ex.viewer.inputs) or list(self._named_arrays())
        nodes = with_computed(UOp.sink(*(n for _, n in named)), ex.expression.computed).src
        for (name, node), value in zip(named, nodes, strict=True):
            memory = value
            while memory.op in SAME_VALUES:
                memory = memory.src[0]
            if memory.op is not Ops.BUFFER or memory in self._values:
                self._other_inputs.append(name)  # it is computed, a view, or another one, too
                continue
            own = identifier(name, {*NAMES, self._name, *self._values.values()}) or "x"
            key = self._add_data(name or own, memory, node.shape)
            self._values[memory] = own
            yield _Parameter(own, key, node, name in ex.viewer.constant)

    def _named_arrays(self) -> Iterator[tuple[str, UOp]]:
        written = {b for item in self._ex.items for b in item.outputs}
        for buffer in dict.fromkeys(b for item in self._ex.items for b in item.inputs):
            name = self._ex.lines.name(buffer)
            if buffer not in written and name.isidentifier():
                yield name, buffer

    def _add_data(self, name: str, buffer: UOp, shape: tuple[int, ...]) -> str:
        """Add the contents of a BUFFER to the data, and return their key."""
        base = name if name and not name.startswith("__") else "data"
        key = next(k for k in _numbered(base) if k not in self._data)
        is_in_memory = buffer.device in Device.names()
        tensor = Tensor._on(buffer, buffer.device) if is_in_memory else Tensor(read(buffer))
        self._data[key] = tensor.reshape(shape)
        return key

    # values

    def _value(self, buffer: UOp) -> str:
        """Return the expression of what is in a BUFFER."""
        if buffer not in self._values:
            key = self._add_data(self._ex.lines.name(buffer), buffer, buffer.buffer_shape)
            self._values[buffer] = f"DATA[{key!r}]"
        return self._values[buffer]

    def _set(self, item: ScheduleItem, names: list[str]) -> None:
        for buffer, node, name in zip(item.outputs, item.nodes, names, strict=True):
            self._values[buffer] = self._values[node] = name

    def _expression(self, node: UOp) -> str:
        """Return the expression of a result, which views what kernels stored."""
        if node in self._values:
            return self._values[node]
        if node.op is Ops.BUFFER:
            return f"{self._value(node)}.reshape({node.shape})"
        if node.op is Ops.CONST:
            return f"Tensor.full((), {node.arg!r}, dtype={node.dtype.name!r})"
        source = self._expression(node.src[0])
        if node.op in (Ops.COPY, Ops.DETACH, Ops.CONTIGUOUS):
            return source
        return f"{source}.{node.op.name.lower()}({node.arg})"

    # Calls of kernels.

    def _add_kernel(self, item: ScheduleItem, number: int) -> None:
        """Add the call of a kernel: of the variant that was chosen by hand, or of the kernel."""
        kernel, place = self._ex.kernels[number], None
        if self._session is not None:
            place = chosen_by_hand(self._session, number)
        edit = None
        words = f"kernel {number + 1}: {kernel.title}"
        words += f", {kernel.modules[0].path}" if kernel.modules and kernel.modules[0].path else ""
        if self._session is not None and place is not None:
            kernel, edit = self._session.kernels[place], self._session.edited.get(place)
            words += f"; {self._session.row(place).name}"
        if kernel.rules_off:
            words += f"; here with {', '.join(kernel.rules_off)}"
        call = _call(kernel, edit, number)
        name = self._texts.setdefault(literal(call.text), f"KERNEL_{number + 1}")
        names = [f"v{number + 1}", *[f"v{number + 1}_{n}" for n in range(2, len(item.slots) + 1)]]
        self._lines += ["", f"    # {comment(words)}"]
        self._lines += self._call_lines(item, call, name, names)
        moved = f'.to("{item.device}")' if call.device else ""
        self._set(item, [f"{each}{moved}" for each in names])

    def _call_lines(
        self, item: ScheduleItem, call: _KernelCall, text: str, names: list[str]
    ) -> Iterator[str]:
        device = call.device or (item.device if item.device != self._ex.device else "")
        on = f', device="{device}"' if device else ""
        empty = dict(zip(item.slots, item.nodes, strict=True))
        arguments = []
        for slot in call.slots:
            if slot in empty:
                node = empty[slot]
                arguments.append(f"Tensor.empty({node.shape}, dtype={node.dtype.name!r}{on})")
            else:
                moved = f'.to("{call.device}")' if call.device else ""
                arguments.append(self._value(item.buffers[slot]) + moved)
        first, *rest = arguments
        rest.append(f"fxn={text}")
        if call.opts is not None:
            self._imports |= {"Opt", "OptOps"} if call.opts else set()
            rest.append(f"opts=[{', '.join(map(repr, call.opts))}]")
        written = call.written or item.slots
        targets = [(name, call.slots.index(s)) for name, s in zip(names, written, strict=True)]
        only = f"[{targets[0][1]}]" if len(targets) == 1 else ""
        to = names[0] if only else "results"
        line = f"    {to} = {first}.custom_kernel({', '.join(rest)}){only}"
        if len(line) <= MOST_WIDTH:
            yield line
        else:
            yield f"    {to} = {first}.custom_kernel("
            yield from (f"        {each}," for each in rest)
            yield f"    ){only}"
        if not only:
            yield from (f"    {name} = results[{place}]" for name, place in targets)


class _KernelCall(NamedTuple):
    """The text of a kernel, the slots that are its arguments, in their order, its opts (None: the
    default ones), and the device that alone takes the text ("": any). `written` are the slots that
    stand for the outputs ((): their own): text of the user's may begin with what is in them."""

    text: str
    slots: tuple[int, ...]
    opts: tuple[Opt, ...] | None = None
    device: str = ""
    written: tuple[int, ...] = ()


def _call(kernel: Kernel, edit: Edited | None, number: int) -> _KernelCall:
    """Return the call of a kernel. Errors: WorkbenchError for an edit that no script runs."""
    graph = kernel.original
    if edit is not None:
        return _edited_call(kernel, edit, number)
    if graph.code is not None:
        arguments, copies = slots_of(graph)
        begins_as = {to: slot for to, slot, _ in copies}
        own = tuple([begins_as.get(slot, slot) for slot in arguments])
        written = tuple([begins_as.get(slot, slot) for slot in graph.outputs])
        return _KernelCall(graph.code.text, own, written=written)
    params = {node.slot: node for node in graph.toposort() if node.op is Ops.PARAM}
    slots = tuple(sorted(params))
    places = {
        params[slot]: construct.param(params[slot].dtype, place, params[slot].length)
        for place, slot in enumerate(slots)
        if slot != place
    }
    opts = kernel.applied_opts
    return _KernelCall(to_text(graph.substitute(places)), slots, opts or None)


def _edited_call(kernel: Kernel, edit: Edited, number: int) -> _KernelCall:
    """Return the call of edited source, or of edited IR, as a function of the language in which
    kernels may be text."""
    info = next((d for d in Device if d.takes_text and d.is_available), None)
    is_text = info is not None and edit.device == info.name
    if info is None or not (edit.level or is_text):
        language = edit.language.name if edit.language else edit.device
        what = f"cannot write the edit of kernel {number + 1} into a script"
        takers = " or ".join(d.name for d in Device if d.takes_text)
        because = f"it is {language}, and a kernel that is text is IR, or runs on {takers}"
        raise WorkbenchError(what, because, "ex.delete(variant) of the edit first")
    with without(kernel.rules_off):
        if edit.level:
            source = edited_ir(kernel.ast, info.name, edit.text).stages.source
        else:
            source = stages(kernel.ast, info.name, upto="source").source.edited(edit.text)
    assert source is not None
    text = info.as_function(source, kernel.original.outputs)
    return _KernelCall(text, tuple(source.slots), device=info.name)


# --------------------------------------------------------------------------------------------------
# Variants that were chosen by hand.


def chosen_by_hand(session: LiveRecord, number: int) -> int | None:
    """Return the variant of a kernel that was added last and is not known to be wrong, without
    those that every kernel has; None if there is none."""
    rows = session.record.variants
    for place in reversed(range(len(rows))):
        row = rows[place]
        is_wrong = row.error is not None or (row.check is not None and not row.check.ok)
        if row.kernel == number and not (row.deleted or has_default_opts(row) or is_wrong):
            return place
    return None


# --------------------------------------------------------------------------------------------------
# Texts in the script.


def identifier(name: str, taken: Collection[str]) -> str:
    """Return a name as an identifier of ASCII that is not `taken`; "" if nothing is left of it."""
    base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:MOST_WIDTH]
    if not base:
        return ""
    base = f"_{base}" if base[0].isdigit() else base
    base = f"{base}_" if iskeyword(base) else base
    return next(each for each in _numbered(base) if each not in taken)


def comment(text: str) -> str:
    """Return text as a part of one line of a comment."""
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return cut(" ".join(printable.split()), 2 * MOST_WIDTH)


def docstring(text: str) -> str:
    """Return text as a part of one line of a docstring."""
    return comment(text).replace("\\", "\\\\").replace('"', r"\"")


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1


def _kind(node: UOp) -> str:
    return f"{node.dtype.name}{list(node.shape)}"


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)})" if parts else "()"
