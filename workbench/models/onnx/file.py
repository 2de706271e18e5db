"""ONNX files: parsed by the onnx package, checked, and read into nodes and arrays.

A file may be anybody's. Nothing in it is executed; data outside of it is read only from files below
its own folder, as far as they are; each name has one value, which is made before it is read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from workbench.base.errors import DTypeError, ModelError, kind_of
from workbench.base.installation import install_command
from workbench.models.onnx.values import Array, dtype_of

MOST_NODES = 100_000
"""The maximal number of nodes of a file; those of large language models have some 10,000."""
MOST_DEPTH = 32
"""The maximal depth of graphs within graphs."""
Outer = tuple[set[str], ...]
"""The names that a graph sees: a set for each graph around it."""
EXTERNAL = 1
"""ONNX's mark of a tensor whose data is in another file."""


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
        return f"node {self.name!r}"

    @property
    def full_name(self) -> str:
        """The name of its operator, with a domain that is not ONNX's."""
        return f"{self.domain}.{self.operator}" if self.domain else self.operator


@dataclass(frozen=True, eq=False, slots=True)
class Body:
    """A graph: the model's, or one in an attribute, which sees the names around it."""

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
        try:
            source = path.read_bytes()
        except OSError as error:
            because = f"{error.strerror or error} in {folder.absolute()}"
            raise ModelError(f"cannot read {str(path)!r}", because, _found(folder, name)) from None
    if isinstance(source, bytes):
        model = onnx.ModelProto()
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
    function = reader.function(proto, {"": opset, **_opsets(proto.opset_import)}, is_whole=False)
    body = function.body
    names = {*body.inputs, *(name for node in body.nodes for name in node.outputs)}
    outputs = tuple(name if name in names else "" for name in body.outputs)
    return Function(Body(body.nodes, body.inputs, outputs, {}), function.defaults)


class _Reader:
    """Reads protocol buffers into nodes, and checks them. `count` is the number of nodes read."""

    def __init__(self, name: str, folder: Path | None, model: Any):
        self.name, self.folder, self.model = name, folder, model
        self.count = 0

    def model_file(self) -> ModelFile:
        model = self.model
        opsets = _opsets(model.opset_import)
        functions = {
            (_domain(each.domain), each.name): self.function(each, _opsets(each.opset_import))
            for each in model.functions
        }
        self.check_calls(functions)
        body = self.body(model.graph, opsets, (), 0)
        inputs = [
            self.declared(each) for each in model.graph.input if each.name not in body.constants
        ]
        return ModelFile(self.name, model, body, tuple(inputs), functions)

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
            raise self.error(f"its input {proto.name!r} has another dtype", str(error)) from None
        return Declared(proto.name, tensor.elem_type, shape)

    def function(self, proto: Any, opsets: Mapping[str, int], is_whole: bool = True) -> Function:
        inputs, outputs = tuple(proto.input), tuple(proto.output)
        defined = set(inputs)
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
        constants: dict[str, Array] = {}
        for tensor in proto.initializer:
            if tensor.name in constants:
                raise self.error(f"the name {tensor.name!r} is defined twice")
            constants[tensor.name] = self.array(tensor, f"initializer {tensor.name!r}")
        inputs = [each.name for each in proto.input]
        if len({*inputs}) < len(inputs):
            raise self.error("the name of an input is defined twice")
        defined = {*inputs, *constants}
        nodes = self.nodes(proto.node, opsets, defined, depth, outer)
        outputs = tuple(each.name for each in proto.output)
        self.check_outputs(outputs, (defined, *outer))
        return Body(nodes, tuple(inputs), outputs, constants)

    def nodes(
        self,
        protos: Iterable[Any],
        opsets: Mapping[str, int],
        defined: set[str],
        depth: int,
        outer: Outer = (),
    ) -> tuple[OnnxNode, ...]:
        """Return nodes in order; `defined` gets the names of their outputs."""
        nodes = []
        for proto in protos:
            self.count += 1
            if self.count > MOST_NODES:
                raise self.error(f"it has more than {MOST_NODES:,} nodes")
            node = self.node(proto, opsets, defined, outer, depth)
            for name in filter(None, node.inputs):
                if not any(name in each for each in (defined, *outer)):
                    because = f"{node.where} reads {name!r}, and no input or earlier node has it"
                    raise self.error("nodes are not in order, or in a cycle", because)
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
        attributes, references = {}, {}
        inner = (*outer, defined)
        for each in proto.attribute:
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
                return tuple(proto.floats)
            case kinds.INTS:
                return tuple(proto.ints)
            case kinds.STRINGS:
                return tuple(each.decode("utf-8", "replace") for each in proto.strings)
            case kinds.TENSOR:
                return self.array(proto.t, where)
            case kinds.GRAPH:
                return self.body(proto.g, opsets, outer, depth + 1)
        kind = kinds.AttributeType.Name(proto.type).lower().replace("_", " ")
        raise self.error(f"{where} is a {kind}", "it must be numbers, text, a tensor or a graph")

    def array(self, tensor: Any, where: str) -> Array:
        """Return the array of a TensorProto: on the memory of its bytes or file where possible.

        Errors: ModelError for sizes that its data does not have.
        """
        shape = tuple(tensor.dims)
        if any(n < 0 for n in shape):
            raise self.error(f"{where} has a negative size", f"its shape is {shape}")
        try:
            dtype = dtype_of(tensor.data_type)
        except DTypeError as error:
            raise self.error(f"{where} has another dtype", str(error)) from None
        nbytes = math.prod(shape) * dtype.itemsize
        if tensor.data_location == EXTERNAL:
            return self.external(tensor, where, nbytes).view(dtype.numpy).reshape(shape)
        if tensor.HasField("raw_data"):
            raw = tensor.raw_data
            if len(raw) != nbytes:
                because = f"its shape {shape} takes {nbytes:,} bytes of {dtype}, and it has"
                raise self.error(f"the size of {where} is wrong", f"{because} {len(raw):,}")
            return np.frombuffer(raw, dtype.numpy).reshape(shape)
        from onnx import numpy_helper

        longest = max(
            *(len(tensor.float_data), len(tensor.int32_data), len(tensor.int64_data)),
            *(len(tensor.double_data), len(tensor.uint64_data)),
        )
        if longest != math.prod(shape):
            because = f"its shape is {shape}, and it has {longest:,} elements"
            raise self.error(f"the size of {where} is wrong", because)
        return np.asarray(numpy_helper.to_array(tensor)).astype(dtype.numpy, copy=False)

    def external(self, tensor: Any, where: str, nbytes: int) -> Array:
        """Return bytes of a file below the model's folder, mapped."""
        entries = {each.key: each.value for each in tensor.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            because = f"its data is in the file {location!r}, and the model has no folder"
            raise self.error(f"cannot read {where}", because, "the path of the model")
        path = self.below_folder(location, where)
        try:
            offset = int(entries.get("offset") or 0)
            length = int(entries.get("length") or nbytes)
        except ValueError:
            raise self.error(f"cannot read {where}", "its offset is not a number") from None
        size = path.stat().st_size
        if length != nbytes or offset < 0 or offset + nbytes > size:
            because = f"it takes {nbytes:,} bytes: {length:,} from {offset:,} on of {size:,} bytes"
            raise self.error(f"the size of {where} is wrong", because)
        if not nbytes:
            return np.empty(0, np.uint8)
        return np.memmap(path, np.uint8, "r", offset, (nbytes,))

    def below_folder(self, location: str, where: str) -> Path:
        """Return the path of a file below the folder. Errors: ModelError if a path leads out."""
        assert self.folder is not None
        parts = Path(location).parts
        is_inside = bool(parts) and not Path(location).is_absolute() and ".." not in parts
        if is_inside and "\\" not in location and "\0" not in location:
            path, folder = (self.folder / location).resolve(), self.folder.resolve()
            if path.is_relative_to(folder):
                if path.is_file():
                    return path
                raise self.error(f"cannot read {where}", f"there is no file {location!r}")
        because = f"the path {location!r} leads out of the folder of the model"
        raise self.error(f"cannot read {where}", because)

    def check_calls(self, functions: Mapping[tuple[str, str], Function]) -> None:
        """Errors: ModelError for a function that calls itself, or calls nested too deeply."""
        heights: dict[tuple[str, str], int] = {}
        while len(heights) < len(functions):
            ready = {
                key: 1 + max((heights[c] for c in calls), default=0)
                for key, calls in (
                    (k, _calls(f.body) & functions.keys()) for k, f in functions.items()
                )
                if key not in heights and heights.keys() >= calls
            }
            if not ready:
                name = next(name for _, name in functions.keys() - heights.keys())
                raise self.error(f"the function {name!r} calls itself")
            heights.update(ready)
            if max(ready.values()) > MOST_DEPTH:
                raise self.error(f"functions are nested more than {MOST_DEPTH} times")

    def check_outputs(self, outputs: Iterable[str], defined: Outer) -> None:
        for name in outputs:
            if not any(name in each for each in defined):
                raise self.error(f"the output {name!r} is defined nowhere")

    def error(self, because: str, more: str = "", hint: str = "") -> ModelError:
        reason = f"{because}: {more}" if more else because
        return ModelError(f"cannot read {self.name}", reason, hint)


def _calls(body: Body) -> set[tuple[str, str]]:
    """Return the operators that a graph calls, also in graphs within it."""
    calls = {(node.domain, node.operator) for node in body.nodes}
    return calls.union(*(_calls(inner) for node in body.nodes for inner in inner_bodies(node)))


def cannot_compute(node: OnnxNode, because: str, hint: str = "") -> ModelError:
    """Return the error for a node that cannot be computed."""
    return ModelError(f"cannot compute {node.full_name}", because, hint, node.where)


def inner_bodies(node: OnnxNode) -> Iterator[Body]:
    """Yield the graphs in the attributes of a node."""
    for value in node.attributes.values():
        if isinstance(value, Body):
            yield value


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _opsets(protos: Iterable[Any]) -> dict[str, int]:
    return {_domain(each.domain): each.version for each in protos}
