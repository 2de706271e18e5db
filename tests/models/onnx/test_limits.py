"""What a hostile file may cost: data that lies, graphs that are longer than their file, and files
with random changes. Each is refused in words of ours, or computed right."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.onnx.test_file import FLOAT, X, external, model, node, refused, saved
from tests.models.onnx.test_models import BRANCHES, QUANTIZED, parsed
from tests.peers import peer
from tests.support import by_rows, count
from workbench import ModelError, Tensor, load_model
from workbench.models.onnx.data import opened_below
from workbench.models.onnx.file import MOST_BYTES
from workbench.models.onnx.wire import excess_of

onnx = peer("onnx")
helper, KINDS = onnx.helper, onnx.TensorProto
OWN = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
ONES = np.ones(2, np.float32)


def tensor(shape: list[int], kind: int = FLOAT, name: str = "w", **fields: Any) -> Any:
    proto = onnx.TensorProto(name=name, dims=shape, data_type=kind)
    for field, value in fields.items():
        if isinstance(value, bytes):
            setattr(proto, field, value)
        else:
            getattr(proto, field).extend(value)
    return proto


@by_rows(
    "proto, words",
    [
        (tensor([0, 1 << 62], raw_data=b""), "no array has the shape"),
        (tensor([1] * 70, raw_data=bytes(4)), "70 axes"),
        (tensor([1 << 62] * 1_000_000, raw_data=b""), "1,000,000 axes"),
        (tensor([2], raw_data=bytes(8), float_data=[1, 2]), "several places: float_data, raw_data"),
        (tensor([2], KINDS.INT64, float_data=[1, 2]), "must be in int64_data"),
        (tensor([2], KINDS.STRING, string_data=[b"a", b"b"]), "no dtype string"),
        (tensor([2], 99, raw_data=b"ab"), "no dtype 99"),
        (tensor([2], name="", raw_data=bytes(8)), "has no name"),
        (onnx.TensorProto(name="w", dims=[1], data_type=1, segment={"begin": 0}), "a segment"),
    ],
)
def test_a_tensor_that_is_none_is_refused(proto: Any, words: str) -> None:
    refused(model([node("Add", "x w")], [proto]), words)


def test_a_bool_is_one_byte_of_0_or_1() -> None:
    flags = tensor([2], KINDS.BOOL, raw_data=b"\2\0")
    got = load_model(model([node("Where", "w x x", "z"), node("Cast", "w", to=1)], [flags]))(ONES)
    assert got.tolist() == [1, 0]


def test_a_result_without_a_name_is_no_input_without_one() -> None:
    """Both names are empty; an input that is left out is none."""
    split = helper.make_node("Split", ["x"], ["", "b"], num_outputs=2)
    high = onnx.numpy_helper.from_array(np.float32(5), "w")
    clip = helper.make_node("Clip", ["x", "", "w"], ["y"])
    x = np.array([3, -3], np.float32)
    assert load_model(model([split, clip], [high]))(x).tolist() == [3, -3]


def test_names_that_are_not_text_are_refused() -> None:
    data = model([node("Relu", "x")]).SerializeToString()
    refused(data.replace(b"Relu", b"\xff\xfe\xfdu"), "not UTF-8")
    refused(model([node("Re\x1b[2Jlu", "x")]), "the name of an operator")
    tensor_of = onnx.numpy_helper.from_array(ONES, "wwww")
    named = model([node("Add", "x wwww")], [tensor_of]).SerializeToString()
    refused(named.replace(b"wwww", b"\xff\xfe\xfd\xfc"), "not UTF-8")


@by_rows("opset", [-5, 0, 1 << 40])
def test_opsets_that_are_none_are_refused(opset: int) -> None:
    source = model([node("Relu", "x")])
    source.opset_import[0].version = opset
    refused(source, "it is of opset")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe would be waited for, a device has no end."""
    os.mkfifo(tmp_path / "pipe")
    refused(saved(tmp_path, external("pipe")), "there is no file 'pipe'")
    os.mkfifo(tmp_path / "pipe.onnx")
    os.symlink("/dev/zero", tmp_path / "zero.onnx")
    for name in ("pipe.onnx", "zero.onnx"):
        refused(str(tmp_path / name), "no file of data")
    with open(tmp_path / "m.onnx", "wb") as file:
        file.truncate(MOST_BYTES + 1)
    refused(str(tmp_path / "m.onnx"), "a protocol buffer at most")


def test_fields_are_counted_as_the_parser_counts_them() -> None:
    """Of each message that is in use; what the bytes of weights look like is not one."""
    tensor_of = onnx.numpy_helper.from_array(np.frombuffer(b"\x0a\0" * 500, np.uint8), "w")
    source = model([node("Relu", "x"), node("LeakyRelu", "y", "z", alpha=0.5)], [tensor_of])

    def fields(message: Any) -> int:
        total = 0
        for field, value in message.ListFields():
            listed = value if isinstance(value, Sequence) else [value]
            total += 1 if isinstance(value, str | bytes) or field.is_packed else len(listed)
            total += sum(fields(each) for each in listed) if field.message_type else 0
        return total

    data, count = source.SerializeToString(), fields(source)
    kind = onnx.ModelProto.DESCRIPTOR
    assert not excess_of(data, kind, count, 0)
    assert "fields" in excess_of(data, kind, count - 1, 0)
    packed = model([node("Add", "x w")], [tensor([99], KINDS.INT64, int64_data=range(99))])
    assert not excess_of(packed.SerializeToString(), kind, count, 99)
    assert "98 bytes of packed" in excess_of(packed.SerializeToString(), kind, count, 98)


def test_a_file_of_many_empty_messages_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes of it are a hundred in memory."""
    monkeypatch.setattr("workbench.models.onnx.file.MOST_FIELDS", 1000)
    nodes = b"\x0a\0" * 2000
    refused(b"\x3a\xa0\x1f" + nodes, "more than 1,000 fields")


def test_a_link_that_appears_after_the_check_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"01234567")
    folder = tmp_path / "models"
    folder.mkdir()
    os.symlink("../secret", folder / "w")
    os.symlink("..", folder / "up")
    for parts in (("w",), ("up", "secret")):
        with pytest.raises(OSError):
            opened_below(folder, parts)


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    refused(saved(tmp_path, external("a")), "there is no file 'a'")


def test_data_in_a_file_may_begin_at_any_byte(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"abc" + np.array([3, 4], np.float32).tobytes())
    assert load_model(saved(tmp_path, external("w", offset=3)))(ONES).tolist() == [4, 5]


def test_an_attribute_has_its_data_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder of the model, not where Python runs: also what the onnx package computes."""
    value = onnx.TensorProto(name="v", dims=[1], data_type=FLOAT, data_location=1)
    value.external_data.add(key="location", value="v")
    fill = node("ConstantOfShape", "n", "z", value=value)
    source = model([fill, node("Add", "x z")], [tensor([1], KINDS.INT64, "n", int64_data=[2])])
    elsewhere, folder = tmp_path / "a", tmp_path / "b"
    elsewhere.mkdir()
    folder.mkdir()
    (elsewhere / "v").write_bytes(np.float32(7).tobytes())
    monkeypatch.chdir(elsewhere)
    path = saved(folder, source)
    refused(path, "there is no file 'v'")
    (folder / "v").write_bytes(np.float32(1).tobytes())
    loaded = load_model(path)
    assert loaded(ONES).tolist() == [2, 2]
    assert loaded.check(ONES).ok


def calling(depth: int, nodes: Any, inputs: str = "a") -> Any:
    """Return a model whose functions F0, F1, ... have the nodes that `nodes` makes of a number."""
    functions = [
        helper.make_function("own", f"F{n}", inputs.split(), ["y"], nodes(n), OWN)
        for n in range(depth)
    ]
    call = helper.make_node(f"F{depth - 1}", ["x"] * len(inputs.split()), ["y"], domain="own")
    graph = helper.make_graph([call], "g", [X], [helper.make_tensor_value_info("y", FLOAT, None)])
    return helper.make_model(graph, functions=functions, opset_imports=OWN)


def twice(n: int) -> list[Any]:
    if not n:
        return [helper.make_node("Neg", ["a"], ["y"])]
    call = f"F{n - 1}"
    return [
        helper.make_node(call, ["a"], ["b"], domain="own"),
        helper.make_node(call, ["b"], ["y"], domain="own"),
    ]


def test_functions_that_call_each_other_twice_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_model(calling(5, twice))(ONES).tolist() == [1, 1]
    monkeypatch.setattr("workbench.models.onnx.visits.MOST_VALUES", 2000)
    with pytest.raises(ModelError, match="too many nodes"):
        load_model(calling(30, twice), ONES)


def test_graphs_in_functions_are_not_nested_deeply() -> None:
    def nested(n: int) -> list[Any]:
        inner = [helper.make_node("Neg", ["a"], ["r"])]
        if n:
            inner = [helper.make_node(f"F{n - 1}", ["a", "c"], ["r"], domain="own")]
        for _ in range(6):
            branch = helper.make_graph(inner, "g", [], [onnx.ValueInfoProto(name="r")])
            inner = [helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)]
        return [*inner, helper.make_node("Identity", ["r"], ["y"])]

    with pytest.raises(ModelError, match="nested more than 32 times"):
        load_model(calling(25, nested, "a c"))


def test_a_scan_of_many_steps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.models.onnx.visits.MOST_VALUES", 2000)
    infos = [onnx.ValueInfoProto(name=name) for name in "sv"]
    body = helper.make_graph([], "body", infos, infos)
    scan = helper.make_node("Scan", ["x", "z"], ["y", "o"], body=body, num_scan_inputs=1)
    sizes = tensor([2], KINDS.INT64, "n", int64_data=[1 << 40, 2])
    with pytest.raises(ModelError, match="too many nodes"):
        load_model(model([node("ConstantOfShape", "n", "z"), scan], [sizes]), ONES)


def test_what_is_folded_is_bounded() -> None:
    """Each of 3,000 nodes is 4 MB when it is computed."""
    sizes = tensor([1], KINDS.INT64, "n", int64_data=[1 << 20])
    fills = [node("ConstantOfShape", "n", f"z{n}") for n in range(3000)]
    evaluation: Any = load_model(model([*fills, node("Relu", "x")], [sizes]), ONES)._latest
    assert evaluation._evaluation._folding._elements < 1 << 25


@by_rows(
    "operator, sizes, options",
    [
        ("Pad", [1 << 36, 1 << 36], {"mode": "reflect"}),
        ("Tile", [-3], {}),
        ("Expand", [1 << 62, 1, 1 << 62], {}),
        ("TopK", [1 << 40], {}),
        ("Reshape", [-1, -1], {}),
        ("Reshape", [3, -1], {}),
    ],
)
def test_sizes_that_no_result_has_are_refused(
    operator: str, sizes: list[int], options: dict[str, Any]
) -> None:
    sized = tensor([len(sizes)], KINDS.INT64, int64_data=sizes)
    with pytest.raises(ModelError, match=f"cannot compute {operator}"):
        load_model(model([node(operator, "x w", **options)], [sized]), ONES)


FILES = {
    "branches": (parsed(BRANCHES), (np.ones((2, 4), np.float32), np.array(9000))),
    "quantized": (QUANTIZED, (np.ones((1, 2, 6, 6), np.float32),)),
    "functions": (calling(3, twice), (ONES,)),
}


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes of a file with a few changed, inserted or missing, or without its end."""
    if rng.random() < 0.1:
        return data[: rng.randrange(len(data))]
    edited = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place, other = rng.randrange(len(edited)), rng.randrange(len(edited))
        match rng.randrange(4):
            case 0:
                edited[place] ^= 1 << rng.randrange(8)
            case 1:
                del edited[place : place + rng.randrange(1, 9)]
            case 2:
                edited[place:place] = edited[other : other + rng.randrange(1, 30)]
            case 3:  # the length, or the number, 2**64 - 1
                edited[place : place + 1] = b"\xff" * 9 + b"\1"
    return bytes(edited)


def test_a_file_with_random_changes_is_refused_or_computed() -> None:
    for seed in range(count(3000, 20)):
        rng = random.Random(seed)
        name = rng.choice(sorted(FILES))
        source, inputs = FILES[name]
        data = changed(source.SerializeToString(), rng)
        try:
            results = load_model(data)(*inputs)
            listed = results if isinstance(results, tuple) else (results,)
            assert all(isinstance(each, Tensor) and each.tolist() is not None for each in listed)
        except ModelError as error:
            assert error.because, f"seed {seed}: {error}"
        except Exception as error:
            reproducer = f"changed(FILES[{name!r}][0].SerializeToString(), random.Random({seed}))"
            raise AssertionError(f"load_model({reproducer}): {error!r}") from error
