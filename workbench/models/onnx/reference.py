"""What ONNX Runtime computes for each value of a file, without its own rewriting of the graph."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.base.errors import ModelError
from workbench.models.onnx.file import ModelFile, package
from workbench.models.onnx.protos import model_proto
from workbench.models.onnx.values import Array


def reference_values(file: ModelFile, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the values of the outputs of all nodes, by name.

    Errors: ModelError where ONNX Runtime is not installed, or does not take the file.
    """
    what = f"cannot compare {file.name} with ONNX Runtime"
    try:
        import onnxruntime as runtime
    except ImportError:
        because = "the package onnxruntime is not installed"
        raise ModelError(what, because, "pip install onnxruntime") from None
    proto = model_proto(file)
    shown = {each.name for each in proto.graph.output}
    names = (name for node in file.body.nodes for name in node.outputs)
    more = [name for name in dict.fromkeys(names) if name and name not in shown]
    proto.graph.output.extend(package().ValueInfoProto(name=name) for name in more)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data, providers = proto.SerializeToString(), ["CPUExecutionProvider"]
    try:
        session = runtime.InferenceSession(data, options, providers=providers)
        wanted = [each.name for each in session.get_outputs()]
        return dict(zip(wanted, session.run(wanted, dict(inputs)), strict=True))
    except Exception as error:  # of several classes of its own
        raise ModelError(what, str(error)) from error
