"""Models of several nodes, held against ONNX Runtime: values, shapes, names, and control flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.peers import peer
from tests.support import LONG
from workbench import ModelError, Tensor, explore, load_model
from workbench.models.onnx.table import ROWS

onnx = peer("onnx")
runtime = peer("onnxruntime")
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def parsed(text: str, constants: Mapping[str, Any] = {}) -> Any:
    """Return a model of ONNX's text form, with initializers; its opsets are 17 and Microsoft's."""
    lead = '<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
    model = onnx.parser.parse_model(lead + text)
    for name, values in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))
    return model


def expected(model: Any, *inputs: Any) -> list[Any]:
    """Return what ONNX Runtime computes."""
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    data = model.SerializeToString()
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def check(model: Any, *inputs: Any) -> None:
    got = load_model(model)(*inputs)
    for ours, theirs in zip(
        got if isinstance(got, tuple) else (got,), expected(model, *inputs), strict=True
    ):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


CONVOLUTIONS = parsed(
    """g (float[N, 3, H, W] x) => (float[N, K] y) {
        a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (x, w1, b1)
        b = BatchNormalization (a, scale, shift, mean, var)
        c = HardSigmoid (b)
        d = Mul (b, c)
        e = MaxPool <kernel_shape = [2, 2], ceil_mode = 1, strides = [2, 2]> (d)
        f = Resize <mode = "linear"> (e, , scales)
        size = Shape (f)
        n = Gather (size, zero)
        n1 = Unsqueeze (n, zeros)
        minus = Constant <value_ints = [-1]> ()
        shape = Concat <axis = 0> (n1, minus)
        pooled = GlobalAveragePool (f)
        flat = Reshape (pooled, shape)
        y = Gemm <transB = 1> (flat, w2, b2)
    }""",
    {
        "w1": normal(8, 3, 3, 3),
        "b1": normal(8),
        "scale": normal(8),
        "shift": normal(8),
        "mean": normal(8),
        "var": np.abs(normal(8)) + 1,
        "w2": normal(5, 8),
        "b2": normal(5),
        "scales": np.array([1, 1, 2, 1.5], np.float32),
        "zero": np.array(0),
        "zeros": np.array([0]),
    },
)


@pytest.mark.parametrize("shape", [(1, 3, 16, 12), (2, 3, 9, 11)])
def test_convolutions_with_sizes_of_the_call(shape: tuple[int, ...]) -> None:
    check(CONVOLUTIONS, normal(*shape))


TRANSFORMER = parsed(
    """g (float[B, S, 16] x, int32[B, S] mask) => (float[B, S, 16] y) {
        a = com.microsoft.Attention <num_heads = 4> (x, wqkv, bqkv, mask)
        s, m, i, total = com.microsoft.SkipLayerNormalization <epsilon = 0.00001>
            (x, a, scale, shift, bias)
        h = MatMul (s, w1)
        g = com.microsoft.BiasGelu (h, b1)
        o = com.microsoft.FusedMatMul <alpha = 0.5, transB = 1> (g, w2)
        q = com.microsoft.QuickGelu (o)
        y = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 0.00001> (q, total, scale)
    }""",
    {
        "wqkv": normal(16, 48),
        "bqkv": normal(48),
        "scale": normal(16),
        "shift": normal(16),
        "bias": normal(16),
        "w1": normal(16, 32),
        "b1": normal(32),
        "w2": normal(16, 32),
    },
)


def test_a_transformer_of_fused_operators() -> None:
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
    check(TRANSFORMER, normal(2, 5, 16), mask)


def test_rotary_embeddings_and_fast_gelu() -> None:
    cache = normal(12, 4)
    for interleaved in (0, 1):
        text = f"""g (float[2, 3, 16] x, int64[2, 3] places) => (float[2, 3, 16] y) {{
            r = com.microsoft.RotaryEmbedding <interleaved = {interleaved}> (x, places, c, s)
            y = com.microsoft.FastGelu (r)
        }}"""
        model = parsed(text, {"c": np.cos(cache), "s": np.sin(cache)})
        check(model, normal(2, 3, 16), np.array([[0, 1, 2], [3, 4, 5]]))


GROUPED = """g (float[2, S, 64] q, float[2, S, 32] k, float[2, S, 32] v, float[2, 2, P, 16] a,
    float[2, 2, P, 16] b, int32[2] ends, int32 total) => (float[B, L, H] y) {
    y, present_key, present_value = com.microsoft.GroupQueryAttention
        <num_heads = 4, kv_num_heads = 2, do_rotary = 1 OPTIONS> (q, k, v, a, b, ends, total, c, s)
}"""
"""Four heads of queries for two of keys; Q is the length of what is new, P that of the cache."""


@pytest.mark.parametrize("options", ["", ", rotary_interleaved = 1, local_window_size = 2"])
def test_grouped_queries_with_a_cache(options: str) -> None:
    """A prompt, whose cache is empty, and a token after sequences of several lengths."""
    angles = normal(8, 8)
    text = GROUPED.replace("OPTIONS", options)
    model = parsed(text, {"c": np.cos(angles), "s": np.sin(angles)})
    for length, past, ends in ((4, 0, [3, 3]), (1, 5, [5, 5]), (1, 5, [5, 3])):
        new = normal(2, length, 64), normal(2, length, 32), normal(2, length, 32)
        cache = normal(2, 2, past, 16), normal(2, 2, past, 16)
        check(model, *new, *cache, np.array(ends, np.int32), np.array(length + past, np.int32))


def test_heads_of_attention_in_one_tensor() -> None:
    """ONNX Runtime has them on GPUs alone."""
    query, key, value = (normal(2, 4, 2, 8) for _ in range(3))
    call = "com.microsoft.MultiHeadAttention <num_heads = 2>"
    flat = parsed(
        f"g (float[2, 4, 16] q, float[2, 4, 16] k, float[2, 4, 16] v) => "
        f"(float[2, 4, 16] y) {{ y = {call} (q, k, v) }}"
    )
    want = load_model(flat)(*(t.reshape(2, 4, 16) for t in (query, key, value))).numpy()
    packed = parsed(f"g (float[2, 4, 2, 3, 8] x) => (float[2, 4, 16] y) {{ y = {call} (x) }}")
    got = load_model(packed)(np.stack([query, key, value], 3)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_product_with_integers_of_4_bits() -> None:
    packed = RNG.integers(0, 256, (6, 2, 8), np.uint8)
    scales = np.abs(normal(12))
    text = """g (float[3, 32] x) => (float[3, 6] y) {
        y = com.microsoft.MatMulNBits <K = 32, N = 6, bits = 4, block_size = 16> (x, w, s, z)
    }"""
    zeros = RNG.integers(0, 256, 6, np.uint8)
    check(parsed(text, {"w": packed, "s": scales, "z": zeros}), normal(3, 32))


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
def test_weights_of_4_bits_are_dequantized(kind: str) -> None:
    """In blocks of 16; of a number of elements that is odd, too."""
    for shape, block in (((32, 3), 16), ((3, 3), 0)):
        text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[N, 3] x) => (float[N, 3] y) {{
            w = DequantizeLinear <axis = {0 if block else 1}, block_size = {block}> (q, s, z)
            y = Mul (x, w)
        }}"""
        model = onnx.parser.parse_model(text)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(getattr(onnx.TensorProto, kind))
        low = -8 if kind == "INT4" else 0
        scaled = (2, 3) if block else (3,)
        for name, values in (
            ("q", RNG.integers(low, low + 16, shape).astype(dtype)),
            ("s", np.abs(normal(*scaled))),
            ("z", RNG.integers(low, low + 16, scaled).astype(dtype)),
        ):
            model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
        check(model, normal(*shape))
    model.graph.node[0].op_type = "Identity"
    with pytest.raises(ModelError, match="'[qz]' has integers of 4 bits"):
        load_model(model)


def test_embeddings() -> None:
    ids, mask = RNG.integers(0, 10, (2, 4), np.int32), np.array([[1, 1, 1, 0]] * 2, np.int32)
    text = """g (int32[2, 4] ids, int32[2, 4] kinds, int32[2, 4] mask)
        => (float[2, 4, 8] y, int32[2] n) {
        y, n = com.microsoft.EmbedLayerNormalization
            (ids, kinds, words, places, segments, scale, shift, mask)
    }"""
    weights = {"words": normal(10, 8), "places": normal(6, 8), "segments": normal(2, 8)}
    model = parsed(text, {**weights, "scale": normal(8), "shift": normal(8)})
    check(model, ids, ids % 2, mask)


RECURRENT = [
    (kind, direction)
    for kind in (("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1))
    for direction in ("bidirectional", "reverse", "forward")
]
"""Operators with the numbers of their gates and states, each in each direction."""


@pytest.mark.parametrize(("kind", "direction"), RECURRENT if LONG else RECURRENT[::4])
def test_recurrent_networks_with_lengths(kind: tuple[str, int, int], direction: str) -> None:
    (operator, gates, states), lanes = kind, 2 if direction == "bidirectional" else 1
    names = ["y", "h", "c"][: states + 1]
    outputs = ", ".join(f"float[?, ?, ?{', ?' if n == 'y' else ''}] {n}" for n in names)
    text = f"""g (float[T, B, 3] x, int32[B] lengths) => ({outputs.replace("?", "Q")}) {{
        {", ".join(names)} = {operator} <direction = "{direction}", hidden_size = 4>
            (x, w, r, b, lengths)
    }}"""
    weights = {"w": normal(lanes, gates * 4, 3), "r": normal(lanes, gates * 4, 4)}
    model = parsed(text, {**weights, "b": normal(lanes, gates * 8)})
    for each in model.graph.output:
        each.type.tensor_type.ClearField("shape")
    check(model, normal(3, 2, 3), np.array([3, 2], np.int32))


QUANTIZED = parsed(
    """g (float[1, 2, 6, 6] x) => (float[1, 4, 4, 4] y) {
        q = QuantizeLinear (x, sx, zx)
        c = QLinearConv (q, sx, zx, w, sw, zw, sy, zy, b)
        y = DequantizeLinear (c, sy, zy)
    }""",
    {
        "sx": np.float32(0.05),
        "zx": np.uint8(120),
        "sy": np.float32(0.3),
        "zy": np.uint8(100),
        "w": RNG.integers(-99, 99, (4, 2, 3, 3), np.int8),
        "zw": np.zeros(4, np.int8),
        "sw": np.array([0.01, 0.02, 0.03, 0.005], np.float32),
        "b": RNG.integers(-500, 500, 4, np.int32),
    },
)


def test_quantized_convolutions() -> None:
    got, (want,) = load_model(QUANTIZED)(x := normal(1, 2, 6, 6)), expected(QUANTIZED, x)
    # the runtime rounds products of the scales: a result may be the next integer
    assert np.abs(got.numpy() - want).max() <= 0.301


def test_dynamic_quantization() -> None:
    text = """g (float[4, 6] x) => (int32[4, 3] y, float s) {
        q, s, z = DynamicQuantizeLinear (x)
        y = MatMulInteger (q, w, z)
    }"""
    check(parsed(text, {"w": RNG.integers(-99, 99, (6, 3), np.int8)}), normal(4, 6))


INTEGERS = {
    "DynamicQuantizeMatMul": "(x, w, s, z, c)",
    "QAttention <num_heads = 2>": "(q, w, c, s, s, , a, z)",
    "QLinearAdd": "(q, s, a, p, t, b, u, o)",
    "QLinearMul": "(q, s, a, p, t, b, u, o)",
    "QLinearSigmoid": "(q, s, a, v, o)",
    "QLinearLeakyRelu <alpha = 0.2>": "(q, s, a, u, o)",
    "QLinearConcat <axis = 1>": "(u, o, q, s, a, p, t, b)",
}
"""Operators of ONNX Runtime over integers, with inputs; x is float, q is x in 8 bits."""


@pytest.mark.parametrize("call", INTEGERS)
def test_integers_of_8_bits(call: str) -> None:
    text = f"""g (float[2, 3, 12] x) => (float[A, B, C] y) {{
        q = QuantizeLinear (x, s, a)
        r = com.microsoft.{call} {INTEGERS[call]}
        y = Cast <to = 1> (r)
    }}"""
    weights = {
        "w": RNG.integers(0 if "QAtt" in call else -99, 99, (12, 12), np.int8),
        "c": normal(12),
        "p": RNG.integers(0, 255, (2, 3, 12), np.uint8),
        **{name: np.uint8(n) for name, n in (("a", 120), ("b", 90), ("o", 30))},
        **{name: np.float32(n) for name, n in (("s", 0.02), ("t", 0.05), ("u", 0.1), ("v", 0.01))},
        "z": np.int8(3),
    }
    model = parsed(text, weights)
    got, (want,) = load_model(model)(x := normal(2, 3, 12)), expected(model, x)
    # what lies between two integers may be rounded to either
    atol = 1.001 if "QLinear" in call else 1e-4
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=atol)
    assert (np.abs(got.numpy() - want) > 1e-3).mean() < 0.1


@pytest.mark.parametrize("more", ['"Relu"', '"LeakyRelu", activation_params = [0.3]'])
def test_a_convolution_with_what_follows_it(more: str) -> None:
    text = f"""g (float[1, 2, 5, 5] x, float[1, 3, 3, 3] z) => (float[1, 3, 3, 3] y) {{
        y = com.microsoft.FusedConv <activation = {more}> (x, w, b, z)
    }}"""
    weights = {"w": normal(3, 2, 3, 3), "b": normal(3)}
    check(parsed(text, weights), normal(1, 2, 5, 5), normal(1, 3, 3, 3))


BRANCHES = """g (float[N, 4] x, int64 rate) => (float[?, ?] y) {
    limit = Constant <value_int = 8000> ()
    is_high = Greater (rate, limit)
    y = If (is_high) <
        then_branch = high () => (float[?, ?] h) { h = Add (x, x) },
        else_branch = low () => (float[?, ?] l) { l = Neg (x) }
    >
}""".replace("?", "Q")


def test_a_condition_of_an_input_chooses_a_branch() -> None:
    """The value of such an input is part of the graph: it is read again for another one."""
    model = load_model(parsed(BRANCHES))
    x = normal(2, 4)
    for rate, sign in ((16000, 2), (4000, -1), (16000, 2)):
        np.testing.assert_allclose(model(x, rate).numpy(), sign * x)


def test_a_condition_of_values_is_refused_by_the_name_of_its_node() -> None:
    text = BRANCHES.replace("Greater (rate, limit)", "Greater (most, zero)").replace(
        "is_high =", "most = ReduceMax <keepdims = 0> (x)\n    root = Sqrt (most)\n    is_high ="
    )
    model = parsed(
        text.replace("(most, zero)", "(wave, zero)").replace(
            "    is_high =", "    wave = Sin (root)\n    is_high ="
        ),
        {"zero": np.float32(0)},
    )
    with pytest.raises(ModelError, match="If(.|\n)*its condition must be known(.|\n)*node 'y'"):
        load_model(model, normal(2, 4), 1)


def test_a_loop_is_unrolled_and_sees_the_names_around_it() -> None:
    text = """g (float[3] x, int64 count) => (float[3] last, float[N, 3] each) {
        on = Constant <value = bool {1}> ()
        last, each = Loop (count, on, x) <
            body = step (int64 i, bool c, float[3] v) => (bool d, float[3] w, float[3] s) {
                d = Identity (c)
                f = Cast <to = 1> (i)
                a = Add (v, f)
                w = Mul (a, x)
                s = Neg (w)
            }
        >
    }"""
    for count in (1, 4):
        check(parsed(text), normal(3), np.array(count))


def test_a_scan_is_unrolled() -> None:
    text = """g (float[2] zero, float[5, 2] x) => (float[2] last, float[5, 2] sums) {
        last, sums = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] v)
            => (float[2] t, float[2] o) {
                t = Add (s, v)
                o = Identity (t)
            }> (zero, x)
    }"""
    check(parsed(text), normal(2), normal(5, 2))


def test_a_position_out_of_range_on_any_axis_is_no_other_element() -> None:
    x, places = np.float32(np.arange(12).reshape(3, 4)), np.int64([[0, 5], [1, -5], [2, -1]])
    gather = parsed("g (float[3,4] x, int64[3,2] i) => (float[3] y) { y = GatherND(x, i) }")
    assert load_model(gather)(x, places).numpy().tolist() == [0, 0, 11]
    scatter = parsed(
        "g (float[3,4] x, int64[3,2] i, float[3] u) => (float[3,4] y) { y = ScatterND(x, i, u) }"
    )
    result = load_model(scatter)(x, places, np.float32([7, 8, 9])).numpy()
    assert result[2, 3] == 9
    np.testing.assert_array_equal(result.ravel()[:11], x.ravel()[:11])


def test_functions_of_the_file_are_called_with_their_attributes() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17, "own" : 1]>
    g (float[4] x) => (float[4] y) { y = own.Leaky <slope = 0.3> (x) }
    <opset_import: ["" : 17], domain: "own">
    Leaky <slope> (v) => (w) { w = LeakyRelu <alpha : float = @slope> (v) }"""
    check(onnx.parser.parse_model(text), normal(4))


def test_an_operator_without_a_row_is_computed_by_its_function() -> None:
    text = """<ir_version: 10, opset_import: ["" : 23]>
    g (float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v) => (float[1, 2, 3, 4] y) {
        y = Attention <is_causal = 1> (q, k, v)
    }"""
    inputs = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    check(onnx.parser.parse_model(text), *inputs)


def test_a_model_names_its_inputs_outputs_and_operators() -> None:
    model = load_model(CONVOLUTIONS, normal(1, 3, 16, 12))
    assert [str(port) for port in model.inputs] == ["x: float32[1, 3, 16, 12]"]
    assert [str(port) for port in model.outputs] == ["y: float32[1, 5]"]
    counts = {use.name: use.count for use in model.operators}
    assert counts["Conv"] == 1 and not any(use.refused for use in model.operators)
    assert "w1" in [port.name for port in model.parameters]
    assert "Model of an ONNX model" in repr(model)


def test_inputs_are_taken_by_name_and_checked() -> None:
    model = load_model(parsed(BRANCHES))
    x = np.ones((2, 4), np.float32)
    assert model(rate=9000, x=x).tolist() == (2 * x).tolist()
    assert model(Tensor(x), rate=Tensor(9000, dtype="int64")).tolist() == (2 * x).tolist()
    for arguments, words in (
        ((x,), "'rate' is missing"),
        ((x.astype(np.float64), 1), "dtype float64"),
        ((x[0], 1), r"shape \(4,\)"),
        ((x, 1, 2), "there are 3 inputs"),
        (({}, 1), "'x' is a dict"),
    ):
        with pytest.raises(ModelError, match=f"takes x: float32(.|\n)*{words}"):
            model(*arguments)


def test_parameters_are_read_when_the_model_runs() -> None:
    model = load_model(
        parsed("g (float[2] x) => (float[2] y) { y = Add (x, w) }", {"w": normal(2)})
    )
    model.state_dict()["w"].assign(Tensor([1.0, 2.0])).realize()
    assert model(np.zeros(2, np.float32)).tolist() == [1, 2]


def test_kernels_have_the_name_and_operator_of_their_node() -> None:
    model = parsed("g (float[64] x) => (float[64] y) { y = Softmax (x) }")
    model.graph.node[0].name = "/head/Softmax"
    tensor = load_model(model)(normal(64))
    owner = tensor.derivation.owner()
    assert (owner.path, tensor.derivation.method) == ("/head/Softmax", "Softmax")
    exploration = explore(load_model(model), normal(64))
    assert "/head/Softmax" in str(exploration)


def test_check_names_the_first_node_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(1, 3, 8, 8)
    assert load_model(CONVOLUTIONS).check(x).ok
    (found,) = ROWS["", "HardSigmoid"]
    monkeypatch.setitem(
        ROWS, ("", "HardSigmoid"), [found._replace(function=lambda x, **_: x.sigmoid())]
    )
    check = load_model(CONVOLUTIONS).check(x, bisect=True)
    assert not check.ok and check.first_wrong is not None
    assert check.first_wrong.name == "c" and "node 'c'" in str(check)
