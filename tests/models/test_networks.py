"""Networks of other packages, held against PyTorch and ONNX Runtime: values, a text, speech, and
the modules of kernels. Weights are random, or in the package; nothing is downloaded.

A package that is missing is named where its test is skipped: `pip install -e '.[networks]'`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.torch.test_functions import FUNCTIONS, Applied
from tests.models.torch.test_modules import ROWS, cases
from tests.peers import peer, torch
from tests.support import LONG
from workbench import Tensor, explore, load_model
from workbench.models.torch.values import to_torch

peer("onnx")
runtime = peer("onnxruntime")
long_profile = pytest.mark.skipif(not LONG, reason="networks take minutes: the long profile")
SAMPLE_RATE_HZ, SAMPLES, CONTEXT = 16000, 512, 64
"""What silero-vad reads at once: samples, after the last ones of the call before."""


def directory_of(package: str) -> Path:
    """Return the directory of a package, which is not imported."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop(f"{package} is not installed: pip install -e '.[networks]'")
    return Path(spec.origin).parent


def vision(name: str, size: int, **options: Any) -> tuple[Any, Any]:
    """Return a network of torchvision with random weights, and pictures of `size` x `size`."""
    directory_of("torchvision")
    from tests.peers import torchvision

    models = torchvision.models
    return getattr(models, name)(weights=None, **options), torch.randn(2, 3, size, size)


def language(kind: str, head: str, **options: Any) -> tuple[Any, Any]:
    """Return a network of transformers with two layers and random weights, and tokens."""
    directory_of("transformers")
    if find_spec("torchvision"):
        from tests.peers import torchvision  # noqa: F401 transformers imports it, too
    transformers = peer("transformers")
    options = {"vocab_size": 100, "bos_token_id": 0, "eos_token_id": 1, **options}
    config = getattr(transformers, f"{kind}Config")(**options)
    return getattr(transformers, f"{kind}{head}")(config), torch.randint(0, 100, (2, 12))


def sizes(width: str, layers: str, heads: str, positions: str) -> dict[str, int]:
    return {width: 64, layers: 2, heads: 4, positions: 32}


NAMES = "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"
NETWORKS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "resnet18": lambda: vision("resnet18", 64),
    "mobilenet": lambda: vision("mobilenet_v3_small", 64),
    "vit": lambda: vision("vit_b_16", 32, image_size=32),
    "convnext": lambda: vision("convnext_tiny", 32),
    "bert": lambda: language("Bert", "Model", **sizes(*NAMES), intermediate_size=96),
    "gpt2": lambda: language(
        "GPT2",
        "LMHeadModel",
        **sizes("n_embd", "n_layer", "n_head", "n_positions"),
        use_cache=False,
    ),
    "llama": lambda: language(
        "Llama",
        "ForCausalLM",
        **sizes(*NAMES),
        num_key_value_heads=2,
        intermediate_size=96,
        use_cache=False,
        pad_token_id=0,
    ),
}
"""Networks in evaluation, with an input."""
MODULES = {
    "resnet18": {"conv1", "layer4.1.conv2", "fc"},
    "mobilenet": {"features.0.0", "features.4.block.2.fc1", "classifier.3"},
    "vit": {"conv_proj", "encoder.layers.encoder_layer_11.mlp.0", "heads.head"},
    "convnext": {"features.0.0", "features.5.8.block.0", "classifier.2"},
    "bert": {"embeddings.LayerNorm", "encoder.layer.1.output.dense", "pooler.dense"},
    "gpt2": {"transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_proj", "lm_head"},
    "llama": {"model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj", "lm_head"},
}
"""Some modules, which a kernel must have."""


def network(name: str) -> tuple[Any, Any]:
    """Return a network and its input. Parameters that are all zeros or ones are moved off them:
    what they multiply would not be seen."""
    torch.manual_seed(len(name))
    module, x = NETWORKS[name]()
    with torch.no_grad():
        for each in module.parameters():
            if bool((each == each.flatten()[0]).all()):
                each += 0.1 * torch.randn_like(each)
    return module.eval(), x


def leaves(value: Any) -> list[Any]:
    """Return the tensors of a result in order, PyTorch's."""
    if isinstance(value, (tuple, list, dict)):
        parts = value.values() if isinstance(value, dict) else value
        return [leaf for part in parts for leaf in leaves(part)]
    if value is None:
        return []
    return [value if isinstance(value, torch.Tensor) else to_torch(value)]


def assert_same(got: Any, want: Any) -> None:
    """Within a rounding error of the largest element."""
    for ours, theirs in zip(leaves(got), leaves(want), strict=True):
        assert ours.dtype == theirs.dtype
        largest = float(theirs.double().abs().max()) if theirs.numel() else 0.0
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-5 * max(1.0, largest))


@long_profile
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_computes_what_torch_computes(name: str) -> None:
    module, x = network(name)
    with torch.no_grad():
        want = module(x)
    model = load_model(module, x)
    assert_same(model(x), want)
    kernels = explore(model, x).kernels
    assert {call.path for kernel in kernels for call in kernel.modules} >= MODULES[name]


@long_profile
@pytest.mark.parametrize("name", NETWORKS)
def test_a_compiled_network_computes_what_torch_computes(name: str) -> None:
    """Node by node, captured, and replayed."""
    module, x = network(name)
    compiled = torch.compile(module, backend="workbench")
    with torch.no_grad():
        want = module(x)
        for _ in range(4):
            assert_same(compiled(x), want)


Gradients = dict[str, Any]


def gradients(function: Any, module: Any, x: Any) -> Gradients:
    """Return PyTorch's gradients of a loss of the first output, by the names of parameters."""
    module.zero_grad()
    leaves(function(x))[0].square().mean().backward()
    return {name: p.grad for name, p in module.named_parameters()}


def assert_same_gradients(got: Gradients, want: Gradients) -> None:
    """Within a rounding error of the tensor's largest element; that of a bias of keys is none but
    such an error, of the other gradients, since softmax does not depend on it."""
    most = max(float(g.abs().max()) for g in want.values() if g is not None)
    for name, theirs in want.items():
        assert (got[name] is None) == (theirs is None), name
        if theirs is not None:
            limit = max(1e-4 * float(theirs.abs().max()), 1e-7 * most)
            torch.testing.assert_close(got[name], theirs, rtol=1e-3, atol=limit)


@long_profile
@pytest.mark.parametrize("name", ["resnet18", "bert", "gpt2", "llama"])
def test_a_network_has_gradients_of_torch(name: str) -> None:
    """A parameter that the loss does not use, as of BERT's pooler, has none."""
    module, x = network(name)
    want = gradients(module, module, x)
    model = load_model(module)
    state = {name: model.state_dict()[name] for name in want}
    for each in state.values():
        each.requires_grad_()
    result = model(x)
    first = next(iter(result.values())) if isinstance(result, dict) else result
    first.square().mean().backward()
    found = {name: each.grad for name, each in state.items()}
    Tensor.realize(*[each for each in found.values() if each is not None])
    own = {name: None if each is None else to_torch(each) for name, each in found.items()}
    assert_same_gradients(own, want)


@long_profile
@pytest.mark.parametrize("name", ["resnet18", "bert", "gpt2", "llama"])
def test_a_compiled_network_has_gradients_of_torch(name: str) -> None:
    """A parameter that the loss does not use has zeros, as in each backend of AOTAutograd."""
    module, x = network(name)
    want = gradients(module, module, x)
    for path, parameter in module.named_parameters():
        if want[path] is None:
            want[path] = torch.zeros_like(parameter)
    compiled = torch.compile(module, backend="workbench")
    for _ in range(3):
        assert_same_gradients(gradients(compiled, module, x), want)


LOST_IN_FILES = {
    ("AvgPool3d", 1): "AveragePool of ONNX has no divisor_override",
    ("CrossEntropyLoss", 1): "SoftmaxCrossEntropyLoss of ONNX has no label_smoothing",
    ("EmbeddingBag", 0): "the exporter writes a loop over sequences of tensors",
    ("EmbeddingBag", 1): "the exporter writes a loop over sequences of tensors",
}
"""Modules whose files compute something else, since the exporter leaves out an option, or have
what is refused."""


def exported(module: Any, arguments: tuple[Any, ...]) -> Any:
    """Return a module as PyTorch writes it to an ONNX file; what its exporter refuses is skipped
    with its words."""
    peer("onnxscript")
    try:
        return torch.onnx.export(module, arguments, dynamo=True, verbose=False).model_proto
    except torch.onnx.errors.OnnxExporterError as error:
        pytest.skip(f"PyTorch does not export it: {str(error).splitlines()[0]}")


def assert_same_in_a_file(module: Any, arguments: tuple[Any, ...]) -> None:
    with torch.no_grad():
        want = module(*[a.clone() for a in arguments])
    model = exported(module, arguments)
    assert_same(load_model(model)(*arguments[: len(model.graph.input)]), want)


@pytest.mark.filterwarnings("ignore")  # they are about the exporter's own code
@pytest.mark.parametrize(("name", "place"), list(cases())[:: 1 if LONG else 11])
def test_a_module_in_an_onnx_file_computes_what_torch_computes(name: str, place: int) -> None:
    if reason := LOST_IN_FILES.get((name, place)):
        pytest.skip(reason)
    torch.manual_seed(len(name) + place)
    make, inputs = ROWS[name][place]
    assert_same_in_a_file(make().eval(), inputs())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*FUNCTIONS][:: 1 if LONG else 10])
def test_a_function_in_an_onnx_file_computes_what_torch_computes(name: str) -> None:
    torch.manual_seed(len(name))
    function, shapes = FUNCTIONS[name]
    assert_same_in_a_file(Applied(function), tuple(torch.randn(*shape) for shape in shapes))


def session(path: Path) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def page() -> Any:
    """Return a picture of two lines of text."""
    image, draw, font = peer("PIL.Image"), peer("PIL.ImageDraw"), peer("PIL.ImageFont")
    picture = image.new("RGB", (320, 96), "white")
    for y, line in ((8, "Hello kernels"), (52, "split 64 by 8")):
        draw.Draw(picture).text((10, y), line, "black", font=font.load_default(28))
    return picture


def colours(picture: Any) -> Any:
    """Return a picture as the networks of rapidocr read it: blue first, from -1 to 1."""
    values = np.asarray(picture, np.float32)[:, :, ::-1].transpose(2, 0, 1)[None]
    return np.ascontiguousarray(values / 127.5 - 1)


def lines_of(found: Any, picture: Any) -> Iterator[Any]:
    """Yield the lines of text, 48 pixels high, by what the detector found of them."""
    is_text = found[0, 0] > 0.3
    edges = np.diff(is_text.any(1).astype(int), prepend=0, append=0)
    for top, bottom in np.flatnonzero(edges).reshape(-1, 2).tolist():
        columns = np.flatnonzero(is_text[top:bottom].any(0)).tolist()
        around = (bottom - top) // 2  # what is found is the middle of letters
        left, right = max(columns[0] - around, 0), columns[-1] + around
        line = picture.crop((left, max(top - around, 0), right, bottom + around))
        yield line.resize((48 * line.width // line.height, 48))


def text_of(scores: Any, letters: list[str]) -> str:
    """Return the most probable letters; equal neighbours are one, 0 stands for none."""
    best = scores[0].argmax(-1)
    is_new = np.diff(best, prepend=0) != 0
    return "".join(letters[k] for k in best[is_new & (best != 0)])


@long_profile
def test_a_page_is_read_as_by_onnx_runtime() -> None:
    """The detector, the classifier of direction and the recogniser of rapidocr."""
    models = directory_of("rapidocr_onnxruntime") / "models"
    detector, classifier, recogniser = (
        next(models.glob(f"*_{part}_infer.onnx")) for part in ("det", "cls", "rec")
    )
    ours = {path: load_model(path) for path in (detector, classifier, recogniser)}
    theirs = {path: session(path) for path in ours}

    def computed(path: Path, x: Any) -> Any:
        want = theirs[path].run(None, {theirs[path].get_inputs()[0].name: x})[0]
        got = ours[path](x).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
        return got

    letters = theirs[recogniser].get_modelmeta().custom_metadata_map["character"].splitlines()
    read = []
    for line in lines_of(computed(detector, colours(page())), page()):
        x = colours(line)
        assert computed(classifier, np.ascontiguousarray(x[..., :192]))[0].argmax() == 0  # upright
        read.append(text_of(computed(recogniser, x), ["", *letters, " "]))
    assert read == ["Hello kernels", "split 64 by 8"]


def sound() -> Any:
    """Return a second of noise, which vowels follow after a half."""
    t = np.arange(SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ
    pulses = sum(
        np.sin(2 * np.pi * 120 * k * t) / (1 + ((120 * k - 650) / 300) ** 2) for k in range(1, 30)
    )
    vowel = 0.2 * pulses * np.sin(2 * np.pi * 3 * t) ** 2 * (t > 0.5)
    return (vowel + np.random.default_rng(0).normal(0, 0.002, t.shape)).astype(np.float32)


def windows() -> Iterator[Any]:
    samples = np.concatenate([np.zeros(CONTEXT, np.float32), sound()])
    for start in range(0, SAMPLE_RATE_HZ - SAMPLES, SAMPLES):
        yield samples[None, start : start + CONTEXT + SAMPLES]


@pytest.mark.parametrize(
    "name",
    [
        "silero_vad_16k_op15",
        *(pytest.param(n, marks=long_profile) for n in ("silero_vad", "silero_vad_op18_ifless")),
    ],
)
def test_speech_is_found_as_by_onnx_runtime(name: str) -> None:
    """silero-vad, window by window with its state, by If's branches and without."""
    path = directory_of("silero_vad") / f"data/{name}.onnx"
    ours, theirs = load_model(path), session(path)
    rate = np.array(SAMPLE_RATE_HZ)
    state = np.zeros((2, 1, 128), np.float32)
    own_state: Any = state
    is_speech = []
    for x in list(windows())[:: 1 if LONG else 10]:
        want, state = theirs.run(None, {"input": x, "state": state, "sr": rate})
        got, own_state = ours(input=x, state=own_state, sr=rate)
        np.testing.assert_allclose(got.numpy(), want, atol=1e-4)
        np.testing.assert_allclose(own_state.numpy(), state, atol=1e-4)
        is_speech.append(got.item() > 0.5)
    assert not LONG or (not any(is_speech[:14]) and any(is_speech[16:]))
