"""ONNX files: parsed by the onnx package, checked, and read into nodes and arrays.

A file may be anybody's. Nothing in it is executed; data outside of it is read only from files below
its own folder, as far as they are; each name has one value, which is made before it is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from workbench.base.errors import DTypeError, ModelError, cut, kind_of
from workbench.base.installation import install_command
from workbench.models.onnx.data import MOST_LETTERS, NARROW, MappedFile, TensorReader
from workbench.models.onnx.values import Array, dtype_of
from workbench.models.onnx.wire import excess_of

INT32_MAX = (1 << 31) - 1

MOST_FIELDS = 2_000_000
"""The maximal number of fields of a file, counted before it is parsed: 100,000 nodes that have no
attributes are a million of them."""
MOST_PACKED_BYTES = 1 << 28
"""The maximal number of bytes of integers that are written at variable length, counted before they
are parsed: one byte may be an integer, of eight bytes in memory."""
MOST_NODES = 100_000
"""The maximal number of nodes of a file; those of large language models have some 10,000."""
MOST_PARTS = 1_000_000
"""The maximal number of inputs, outputs and attributes of all nodes, and of tensors, of a file."""
MOST_DEPTH = 32
"""The maximal depth of graphs and functions within each other."""
Outer = tuple[set[str], ...]
"""The names that a graph sees: a set for each graph around it."""
MOST_BYTES = INT32_MAX
"""The maximal size of a file: that of protocol buffers."""


@dataclass(frozen=True, eq=False, slots=True)
class OnnxNode:
    """A call of an operator. `references` are attributes that are those of the calling function."""

    name: str
    operator: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    references: Mapping[str, str]
    proto: Any

    @property
    def where(self) -> str:
        """The node, in words."""
        return f"node {cut(repr(self.name), MOST_LETTERS)}"

    @property
    def full_name(self) -> str:
        """The name of its operator, with a domain that is not ONNX's."""
        return f"{self.domain}.{self.operator}" if self.domain else self.operator


@dataclass(frozen=True, eq=False, slots=True)
class Body:
    """A graph: the model's, or one in an attribute, which sees the names around it. `constants` are
    its initializers, and the tensors of its nodes Constant."""

    nodes: tuple[OnnxNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """An operator that is defined by nodes."""

    body: Body
    defaults: Mapping[str, Any]


@dataclass(frozen=True, eq=False, slots=True)
class Declared:
    """An input as the file declares it; an axis is its size, or a name of one."""

    name: str
    number: int
    shape: tuple[int | str, ...] | None


@dataclass(frozen=True, eq=False, slots=True)
class ModelFile:
    """A file that has been checked, and its protocol buffer."""

    name: str
    proto: Any
    body: Body
    inputs: tuple[Declared, ...]
    functions: Mapping[tuple[str, str], Function]
    mapped: tuple[MappedFile, ...]


def read(source: Any) -> ModelFile:
    """Return the model of a path, of the bytes of a file, or of an onnx.ModelProto.

    Errors: ModelError for a file that cannot be parsed, breaks a rule of the format, or has what
    there is not here.
    """
    onnx = package()
    folder = None
    name = "an ONNX model"
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        folder, name = path.parent, path.name
        source = _bytes_of(path)
    if isinstance(source, bytes):
        model = onnx.ModelProto()
        if excess := excess_of(source, model.DESCRIPTOR, MOST_FIELDS, MOST_PACKED_BYTES):
            raise ModelError(f"cannot read {name}", f"it has {excess}")
        try:
            model.ParseFromString(source)
        except Exception as error:  # protobuf's classes of errors differ by its implementation
            because = f"it is not a model of ONNX: {error}"
            hint = "a file that torch.onnx.export has written"
            raise ModelError(f"cannot read {name}", because, hint) from None
        source = model
    elif not isinstance(source, onnx.ModelProto):
        raise ModelError(f"cannot read {kind_of(source)} as an ONNX model")
    if not source.HasField("graph"):
        raise ModelError(f"cannot read {name}", "it has no graph")
    return _Reader(name, folder, source).model_file()


def _bytes_of(path: Path) -> bytes:
    what, folder = f"cannot read {str(path)!r}", path.parent
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(what, f"it is no file of data in {folder.absolute()}")
        if status.st_size > MOST_BYTES:
            because = f"it has {status.st_size:,} bytes, and a protocol buffer at most"
            hint = "a model whose weights are in files beside it"
            raise ModelError(what, f"{because} {MOST_BYTES:,}", hint)
        return path.read_bytes()
    except OSError as error:
        because = f"{error.strerror or error} in {folder.absolute()}"
        raise ModelError(what, because, _found(folder, path.name)) from None


def _found(folder: Path, name: str) -> str:
    """Return the models of a folder, those of a name like `name` alone if there are any."""
    names = sorted(each.name for each in folder.glob("*.onnx"))
    near = get_close_matches(name, names) or names[:3]
    return " or ".join(repr(str(folder / each)) for each in near) or "the whole path of the file"


def package() -> Any:
    """Return the onnx package. Errors: ModelError if it is not installed."""
    try:
        import onnx
    except ImportError:
        because = "the onnx package, which parses it, is not installed"
        raise ModelError("cannot read an ONNX model", because, install_command("onnx")) from None
    return onnx


def function_of(proto: Any, opset: int) -> Function:
    """Return the function of a FunctionProto that the onnx package has for an operator. Outputs
    that it leaves out, since a call does not ask for them, are ""."""
    reader = _Reader(proto.name, None, None)
    function = reader.function(
        proto, {"": opset, **reader.opsets(proto.opset_import)}, is_whole=False
    )
    body = function.body
    names = {*body.inputs, *(name for node in body.nodes for name in node.outputs)}
    outputs = tuple(name if name in names else "" for name in body.outputs)
    return Function(Body(body.nodes, body.inputs, outputs, {}), function.defaults)


class _Reader(TensorReader):
    """Reads protocol buffers into nodes, and checks them. `count` is the number of nodes read,
    `parts` that of what they consist of; `narrow` are initializers of 4 bits."""

    def __init__(self, name: str, folder: Path | None, model: Any):
        super().__init__(name, folder)
        self.model = model
        self.count = self.parts = 0
        self.narrow: set[str] = set()

    def model_file(self) -> ModelFile:
        model = self.model
        opsets = self.opsets(model.opset_import)
        functions: dict[tuple[str, str], Function] = {}
        for each in model.functions:
            key = _domain(each.domain), each.name
            if key in functions:
                raise self.error(f"the function {each.name!r} is defined twice")
            functions[key] = self.function(each, self.opsets(each.opset_import))
        body = self.body(model.graph, opsets, (), 0)
        inputs = [
            self.declared(each) for each in model.graph.input if each.name not in body.constants
        ]
        mapped = tuple(self.mapped.values())
        return ModelFile(self.name, model, body, tuple(inputs), functions, mapped)

    def opsets(self, protos: Sequence[Any]) -> dict[str, int]:
        """Return the versions of operators by their domains."""
        opsets = {_domain(each.domain): each.version for each in protos}
        latest = package().defs.onnx_opset_version()
        for domain, version in opsets.items():
            least, most = (0, INT32_MAX) if domain else (1, latest)
            if not least <= version <= most:
                because = f"it is of opset {version} of {domain or 'ai.onnx'}"
                more = "" if domain else f"the onnx package that is installed has 1 to {latest}"
                raise self.error(because, more)
        return opsets

    def count_parts(self, *parts: Sequence[Any]) -> None:
        """Errors: ModelError for a file of too many parts."""
        self.parts += sum(map(len, parts))
        if self.parts > MOST_PARTS:
            raise self.error(f"it has more than {MOST_PARTS:,} tensors, attributes and values")

    def declared(self, proto: Any) -> Declared:
        kind = proto.type.WhichOneof("value")
        if kind != "tensor_type":
            what = (kind or "value without a type").removesuffix("_type").replace("_", " ")
            raise self.error(f"its input {proto.name!r} is a {what}", "inputs must be tensors")
        tensor = proto.type.tensor_type
        shape = None
        if tensor.HasField("shape"):
            shape = tuple(
                axis.dim_value if axis.dim_value > 0 else axis.dim_param
                for axis in tensor.shape.dim
            )
        try:
            dtype_of(tensor.elem_type)
        except DTypeError as error:
            raise self.error(f"its input {proto.name!r} has another dtype", error.what) from None
        return Declared(proto.name, tensor.elem_type, shape)

    def function(self, proto: Any, opsets: Mapping[str, int], is_whole: bool = True) -> Function:
        self.count_parts([proto], proto.input, proto.output, proto.attribute_proto)
        inputs, outputs = tuple(proto.input), tuple(proto.output)
        defined = self.input_names(inputs)
        nodes = self.nodes(proto.node, opsets, defined, 1)
        if is_whole:
            self.check_outputs(outputs, (defined,))
        defaults = {
            each.name: self.attribute(each, f"attribute {each.name!r}", opsets, (), 1)
            for each in proto.attribute_proto
        }
        return Function(Body(nodes, inputs, outputs, {}), defaults)

    def body(self, proto: Any, opsets: Mapping[str, int], outer: Outer, depth: int) -> Body:
        """Return a graph that sees the names `outer`."""
        if depth > MOST_DEPTH:
            raise self.error("graphs are nested too deeply", f"{MOST_DEPTH} levels are read")
        if proto.sparse_initializer:
            name = proto.sparse_initializer[0].values.name
            raise self.error(f"its initializer {name!r} is sparse", "tensors are dense here")
        self.count_parts(proto.initializer, proto.input, proto.output)
        constants: dict[str, Array] = {}
        for tensor in proto.initializer:
            self.check_text(tensor.name)
            if not tensor.name:
                raise self.error("an initializer has no name")
            if tensor.name in constants:
                raise self.error(f"the name {tensor.name!r} is defined twice")
            constants[tensor.name] = self.array(tensor, f"initializer {tensor.name!r}", True)
            if tensor.data_type in NARROW:
                self.narrow.add(tensor.name)
        inputs = [each.name for each in proto.input]
        defined = self.input_names(inputs) | constants.keys()
        nodes = self.nodes(proto.node, opsets, defined, depth, outer)
        outputs = tuple(each.name for each in proto.output)
        self.check_outputs(outputs, (defined, *outer))
        constants |= {n.outputs[0]: n.attributes["value"] for n in nodes if _is_constant(n)}
        nodes = tuple(node for node in nodes if not _is_constant(node))
        return Body(nodes, tuple(inputs), outputs, constants)

    def input_names(self, names: Sequence[str]) -> set[str]:
        self.check_text(*names)
        if "" in names or len({*names}) < len(names):
            raise self.error("an input has no name, or that of another one")
        return set(names)

    def nodes(
        self,
        protos: Sequence[Any],
        opsets: Mapping[str, int],
        defined: set[str],
        depth: int,
        outer: Outer = (),
    ) -> tuple[OnnxNode, ...]:
        """Return nodes in order; `defined` gets the names of their outputs."""
        self.count += len(protos)
        if self.count > MOST_NODES:
            raise self.error(f"it has more than {MOST_NODES:,} nodes")
        nodes = []
        for proto in protos:
            self.count_parts(proto.input, proto.output, proto.attribute)
            node = self.node(proto, opsets, defined, outer, depth)
            for name in filter(None, node.inputs):
                if not any(name in each for each in (defined, *outer)):
                    because = f"{node.where} reads {name!r}, and no input or earlier node has it"
                    raise self.error("nodes are not in order, or in a cycle", because)
            narrow = self.narrow.intersection(node.inputs)
            if narrow and node.full_name != "DequantizeLinear":
                because = f"initializer {min(narrow)!r} has integers of 4 bits"
                raise self.error(because, f"{node.where} is not a DequantizeLinear")
            for name in filter(None, node.outputs):
                if name in defined:
                    raise self.error(f"the name {name!r} is defined twice", f"by {node.where}")
                defined.add(name)
            nodes.append(node)
        return tuple(nodes)

    def node(
        self, proto: Any, opsets: Mapping[str, int], defined: set[str], outer: Outer, depth: int
    ) -> OnnxNode:
        outputs = tuple(proto.output)
        name = proto.name or next(filter(None, outputs), proto.op_type)
        domain = _domain(proto.domain)
        self.check_text(proto.op_type, domain, name, *proto.input, *outputs)
        if not (proto.op_type.isprintable() and domain.isprintable()):
            raise self.error(f"the name of an operator is {proto.op_type!r}")
        if len(proto.op_type) + len(domain) > MOST_LETTERS:
            raise self.error(f"the name of an operator has more than {MOST_LETTERS:,} letters")
        attributes, references = {}, {}
        inner = (*outer, defined)
        for each in proto.attribute:
            if each.name in attributes or each.name in references:
                raise self.error(f"attribute {each.name!r} of node {name!r} is given twice")
            if each.ref_attr_name:
                references[each.name] = each.ref_attr_name
            else:
                where = f"attribute {each.name!r} of node {name!r}"
                attributes[each.name] = self.attribute(each, where, opsets, inner, depth)
        return OnnxNode(
            name,
            proto.op_type,
            domain,
            opsets.get(domain, 1),
            tuple(proto.input),
            outputs,
            attributes,
            references,
            proto,
        )

    def attribute(
        self, proto: Any, where: str, opsets: Mapping[str, int], outer: Outer, depth: int
    ) -> Any:
        """Return an attribute's value: numbers, text, an array, or a Body."""
        onnx = package()
        kinds = onnx.AttributeProto
        match proto.type:
            case kinds.FLOAT:
                return proto.f
            case kinds.INT:
                return proto.i
            case kinds.STRING:
                return proto.s.decode("utf-8", "replace")
            case kinds.FLOATS:
                self.count_parts(proto.floats)
                return tuple(proto.floats)
            case kinds.INTS:
                self.count_parts(proto.ints)
                return tuple(proto.ints)
            case kinds.STRINGS:
                return tuple(each.decode("utf-8", "replace") for each in proto.strings)
            case kinds.TENSOR:
                return self.array(proto.t, where)
            case kinds.GRAPH:
                return self.body(proto.g, opsets, outer, depth + 1)
        kind = kinds.AttributeType.Name(proto.type).lower().replace("_", " ")
        raise self.error(f"{where} is a {kind}", "it must be numbers, text, a tensor or a graph")

    def check_outputs(self, outputs: Iterable[str], defined: Outer) -> None:
        for name in outputs:
            if not any(name in each for each in defined):
                raise self.error(f"the output {name!r} is defined nowhere")


def cannot_compute(node: OnnxNode, because: str, hint: str = "") -> ModelError:
    """Return the error for a node that cannot be computed."""
    because = cut(because, MOST_LETTERS)
    return ModelError(f"cannot compute {node.full_name}", because, hint, node.where)


def inner_bodies(node: OnnxNode) -> Iterator[Body]:
    """Yield the graphs in the attributes of a node."""
    for value in node.attributes.values():
        if isinstance(value, Body):
            yield value


def _is_constant(node: OnnxNode) -> bool:
    """Whether a node is a tensor by a name, as an initializer is."""
    is_one = node.full_name == "Constant" and len(node.outputs) == 1 and not node.inputs
    return is_one and [*node.attributes] == ["value"] and not node.references


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain
