"""Protocol buffers for other libraries, with the data of all tensors in them: those would look for
other files in the directory that they run in."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.models.onnx.file import Body, ModelFile, OnnxNode, package


def model_proto(file: ModelFile) -> Any:
    """Return an onnx.ModelProto of a file."""
    proto = package().ModelProto()
    proto.CopyFrom(file.proto)
    _fill_graph(proto.graph, file.body)
    for each, function in zip(proto.functions, file.functions.values(), strict=True):
        _fill_nodes(each.node, function.body)
    return proto


def node_proto(node: OnnxNode) -> Any:
    """Return an onnx.NodeProto of a node."""
    proto = package().NodeProto()
    proto.CopyFrom(node.proto)
    _fill_attributes(proto, node)
    return proto


def _fill_graph(graph: Any, body: Body) -> None:
    del graph.initializer[:]
    from_array = package().numpy_helper.from_array
    for name, array in body.constants.items():
        graph.initializer.append(from_array(array, name))
    nodes = [each for each in graph.node if body.constants.keys().isdisjoint(each.output)]
    del graph.node[:]
    graph.node.extend(nodes)
    _fill_nodes(graph.node, body)


def _fill_nodes(protos: Any, body: Body) -> None:
    for proto, node in zip(protos, body.nodes, strict=True):
        _fill_attributes(proto, node)


def _fill_attributes(proto: Any, node: OnnxNode) -> None:
    for each in proto.attribute:
        value = node.attributes.get(each.name)
        if isinstance(value, Body):
            _fill_graph(each.g, value)
        elif isinstance(value, np.ndarray):
            each.t.CopyFrom(package().numpy_helper.from_array(value))
