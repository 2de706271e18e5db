"""ONNX files that anybody may have written: what breaks the format's rules is refused, and nothing
outside of a file's folder is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peers import peer
from workbench import ModelError, load_model
from workbench.models.onnx import file as onnx_file

onnx = peer("onnx")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
X = helper.make_tensor_value_info("x", FLOAT, [2])
Y = helper.make_tensor_value_info("y", FLOAT, [2])


def model(nodes: list[Any], constants: list[Any] = (), inputs: list[Any] = (X,)) -> Any:  # type: ignore[assignment]
    graph = helper.make_graph(nodes, "g", list(inputs), [Y], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def node(operator: str, inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(
        operator, inputs.split(), [output], name=f"the {operator}", **attributes
    )


def external(location: str, offset: int | None = 0, length: int | None = 8, n: int = 2) -> Any:
    """Return a model that adds n floats of another file."""
    tensor = onnx.TensorProto(name="w", dims=[n], data_type=FLOAT)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return model([node("Add", "x w")], [tensor])


def refused(source: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        load_model(source)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of weights, and one beside the folder that must not be read."""
    (tmp_path / "secret").write_bytes(b"01234567")
    inner = tmp_path / "models"
    inner.mkdir()
    (inner / "weights").write_bytes(np.arange(1, 7, dtype=np.float32).tobytes())
    return inner


def saved(folder: Path, source: Any) -> str:
    path = folder / "m.onnx"
    path.write_bytes(source.SerializeToString())
    return str(path)


def test_a_model_is_read_from_a_path_bytes_and_a_proto(folder: Path) -> None:
    source = model([node("Relu", "x")])
    path = saved(folder, source)
    for each in (path, Path(path), source.SerializeToString(), source):
        assert load_model(each)(np.array([-1, 2], np.float32)).tolist() == [0, 2]


ZEROS = np.zeros(2, np.float32)


def test_external_data_is_read_below_the_folder(folder: Path) -> None:
    loaded = load_model(saved(folder, external("weights", offset=8)))
    os.truncate(folder / "weights", 0)  # a mapped file would stop the process
    assert loaded(ZEROS).tolist() == [3, 4]
    assert loaded.state_dict()["w"].tolist() == [3, 4]


def test_large_external_data_is_mapped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.models.onnx.data.MOST_READ_BYTES", 8)
    loaded = load_model(saved(folder, external("weights", offset=8)))
    assert loaded(ZEROS).tolist() == [3, 4]
    os.truncate(folder / "weights", 0)
    with pytest.raises(ModelError, match="'weights' was written after"):
        loaded(ZEROS)


def test_tensors_of_nodes_are_parameters() -> None:
    weights = onnx.numpy_helper.from_array(np.float32([3, 4]), "own name")
    constant = helper.make_node("Constant", [], ["w"], value=weights)
    places = onnx.numpy_helper.from_array(np.int64([1, 0]), "places")
    quantized = onnx.numpy_helper.from_array(np.int8([1, 0]), "q")
    loaded = load_model(model([constant, node("Add", "x w")], [places, quantized]))
    assert [str(port) for port in loaded.parameters] == ["q: int8[2]", "w: float32[2]"]
    assert loaded(ZEROS).tolist() == [3, 4] and loaded.check(ZEROS).ok


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "sub/../../secret", "", "."])
def test_a_path_that_leads_out_is_refused(folder: Path, location: str) -> None:
    refused(saved(folder, external(location)), "leads out of the folder|there is no file")


def test_a_link_that_leads_out_is_refused(folder: Path) -> None:
    os.symlink(folder.parent / "secret", folder / "link")
    os.symlink(folder.parent, folder / "up")
    for location in ("link", "up/secret"):
        refused(saved(folder, external(location)), "leads out of the folder")


@pytest.mark.parametrize(
    ("offset", "length", "n"),
    [(20, 8, 2), (-4, 8, 2), (0, 4, 2), (0, None, 1 << 40), (1 << 62, None, 2)],
)
def test_external_sizes_that_lie_are_refused(
    folder: Path, offset: int, length: int | None, n: int
) -> None:
    refused(saved(folder, external("weights", offset, length, n)), "the size of initializer 'w'")


def test_external_data_without_a_folder_is_refused() -> None:
    refused(external("weights"), "the model has no folder")


@pytest.mark.parametrize("shape", [[3], [1 << 40, 1 << 40], [-2], [0]])
def test_sizes_that_lie_are_refused(shape: list[int]) -> None:
    for field in ("raw_data", "float_data"):
        tensor = onnx.TensorProto(name="w", dims=shape, data_type=FLOAT)
        data = b"\0" * 8 if field == "raw_data" else [0.0, 0.0]
        tensor.raw_data = data if field == "raw_data" else b""
        if field == "float_data":
            tensor.ClearField("raw_data")
            tensor.float_data.extend(data)
        refused(model([node("Add", "x w")], [tensor]), "size of initializer 'w'|negative size")


def test_a_cycle_is_refused() -> None:
    refused(model([node("Add", "x z"), node("Relu", "y", "z")]), "the Add.*reads 'z'")


def test_names_defined_twice_are_refused() -> None:
    refused(model([node("Relu", "x"), node("Neg", "x")]), "'y' is defined twice")
    tensor = onnx.numpy_helper.from_array(np.zeros(2, np.float32), "w")
    refused(model([node("Add", "x w")], [tensor, tensor]), "'w' is defined twice")
    refused(model([node("Relu", "x", "x"), node("Neg", "x")]), "'x' is defined twice")


def test_an_output_that_nothing_computes_is_refused() -> None:
    refused(model([node("Relu", "x", "z")]), "the output 'y' is defined nowhere")


def test_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "MOST_NODES", 100)
    names = ["x", *map(str, range(100)), "y"]
    pairs = zip(names, names[1:], strict=False)
    refused(model([node("Relu", a, b) for a, b in pairs]), "more than 100 nodes")


def test_bytes_of_another_kind_are_refused() -> None:
    for data in (b"", b"\xff" * 40, model([node("Relu", "x")]).SerializeToString()[:20]):
        refused(data, "cannot read an ONNX model")


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    refused(str(tmp_path / "m.onnx"), "No such file")
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(ModelError) as error:
        load_model(str(tmp_path / "modl.onnx"))
    assert error.value.hint == repr(str(tmp_path / "model.onnx"))


def test_a_loop_that_does_not_end_is_refused() -> None:
    """Without a number of repetitions its condition ends it, and that is always true."""
    body = helper.make_graph(
        [node("Identity", "c", "d"), node("Relu", "v", "w")],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("d", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", FLOAT, [2]),
        ],
    )
    loop = helper.make_node("Loop", ["", "", "x"], ["y"], name="the Loop", body=body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workbench.models.onnx.visits.MOST_VALUES", 2000)
        with pytest.raises(ModelError, match="too many nodes"):
            load_model(model([loop]), np.zeros(2, np.float32))


def test_a_function_that_calls_itself_is_refused() -> None:
    call = helper.make_node("F", ["a"], ["b"], domain="own")
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "F", ["a"], ["b"], [call], opsets)
    first = helper.make_node("F", ["x"], ["y"], domain="own")
    graph = helper.make_graph([first], "g", [X], [Y])
    source = helper.make_model(graph, functions=[function], opset_imports=opsets)
    with pytest.raises(ModelError, match="calls itself"):
        load_model(source, np.zeros(2, np.float32))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (onnx.TypeProto(sequence_type=onnx.TypeProto.Sequence()), "'x' is a sequence"),
        (onnx.TypeProto(map_type=onnx.TypeProto.Map()), "'x' is a map"),
        (helper.make_tensor_type_proto(onnx.TensorProto.STRING, [2]), "'x' .*dtype string"),
        (helper.make_tensor_type_proto(onnx.TensorProto.INT4, [2]), "'x' .*dtype int4"),
    ],
)
def test_inputs_of_other_kinds_are_refused_by_name(kind: Any, words: str) -> None:
    refused(model([node("Relu", "x")], inputs=[onnx.ValueInfoProto(name="x", type=kind)]), words)


def test_sparse_initializers_are_refused_by_name() -> None:
    source = model([node("Add", "x w")])
    values = onnx.numpy_helper.from_array(np.ones(1, np.float32), "w")
    places = onnx.numpy_helper.from_array(np.zeros(1, np.int64), "p")
    source.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2]))
    refused(source, "'w' is sparse")


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ("SequenceConstruct", "sequences"),
        ("NonZero", "depends on values"),
        ("Unknown", "has no function"),
    ],
)
def test_an_operator_without_a_row_is_refused_by_the_name_of_its_node(
    operator: str, words: str
) -> None:
    with pytest.raises(ModelError, match=rf"{operator}(.|\n)*{words}(.|\n)*the {operator}"):
        load_model(model([node(operator, "x")]), np.ones(2, np.float32))


def test_what_a_shape_depends_on_is_named() -> None:
    source = model([node("Cast", "x", "s", to=7), node("Abs", "s", "t"), node("Reshape", "x t")])
    source.graph.node[1].op_type = "Sin"  # of integers, and not one of the arithmetic of shapes
    with pytest.raises(ModelError, match="its input 't' must be known"):
        load_model(source, np.ones(2, np.float32))
