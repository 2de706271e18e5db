"""What ONNX says of an operator: the dtypes of its results, and its function if it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.models.onnx.file import Function, OnnxNode, cannot_compute, function_of
from workbench.models.onnx.protos import node_proto
from workbench.models.onnx.values import Value, number_of


def schema_of(node: OnnxNode) -> Any:
    """Return the definition of an operator in the opset of a node; None if there is none."""
    from onnx import defs

    try:
        return defs.get_schema(node.operator, node.opset, node.domain)
    except defs.SchemaError:
        return None


def is_function(node: OnnxNode) -> bool:
    """Whether ONNX defines an operator by others."""
    schema = schema_of(node)
    if schema is None:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def plain_function(node: OnnxNode) -> Function | None:
    """Return the function that defines an operator, if it is the same for inputs of all types."""
    schema = schema_of(node)
    if schema is None or not schema.has_function:
        return None
    key = node.domain, node.operator, node.opset
    if key not in _PLAIN:
        _PLAIN[key] = schema_function(node, {}, ())
    return _PLAIN[key]


_PLAIN: dict[tuple[str, str, int], Function] = {}
"""The functions of operators, by domain, name and opset."""


def schema_defaults(node: OnnxNode) -> dict[str, Any]:
    """Return the attributes that an operator has where a node has none."""
    from onnx import helper

    schema = schema_of(node)
    values = {}
    for name, attribute in schema.attributes.items():
        if attribute.default_value.type:
            value = helper.get_attribute_value(attribute.default_value)
            values[name] = value.decode() if isinstance(value, bytes) else value
    return values


def declared_dtypes(node: OnnxNode, inputs: Sequence[Value | None]) -> list[DType | None]:
    """Return the dtypes that ONNX declares for the outputs of a node with these inputs; None where
    attributes say it."""
    schema = schema_of(node)
    if schema is None:
        return []
    bound: dict[str, DType] = {}
    formal = list(schema.inputs)
    for place, value in enumerate(inputs):
        if value is not None and formal:
            bound.setdefault(formal[min(place, len(formal) - 1)].type_str, value.dtype)
    return [bound.get(each.type_str) or _FIXED.get(each.type_str) for each in schema.outputs]


_FIXED = {
    "tensor(bool)": dtypes.bool,
    "tensor(float)": dtypes.float32,
    "tensor(int64)": dtypes.int64,
}


def schema_function(
    node: OnnxNode,
    attributes: Mapping[str, Any],
    types: Sequence[tuple[DType, tuple[int, ...]] | None],
) -> Function:
    """Return the function that defines an operator in ONNX, for inputs of these types."""
    from onnx import FunctionProto, TypeProto, defs, helper

    schema = schema_of(node)
    proto = FunctionProto()
    if schema.has_function:
        version = _latest(schema.function_opset_versions, node.opset)
        data = schema.get_function_with_opset_version(version)
    else:
        version = _latest(schema.context_dependent_function_opset_versions, node.opset)
        call = node_proto(node)
        if node.references:
            del call.attribute[:]
            call.attribute.extend(helper.make_attribute(n, v) for n, v in attributes.items())
        protos = [
            TypeProto() if t is None else helper.make_tensor_type_proto(number_of(t[0]), t[1])
            for t in types
        ]
        listed = [each.SerializeToString() for each in protos]
        data = schema.get_context_dependent_function_with_opset_version(
            version, call.SerializeToString(), listed
        )
    if not data:
        raise cannot_compute(node, "ONNX has no function for it with inputs of these types")
    proto.ParseFromString(data)
    # A function of another domain is written in the latest opset, unless it says another one.
    return function_of(proto, node.opset if not node.domain else defs.onnx_opset_version())


def _latest(versions: Sequence[int], opset: int) -> int:
    return max((v for v in versions if v <= opset), default=min(versions))
