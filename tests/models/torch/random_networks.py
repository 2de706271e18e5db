"""Random networks held against PyTorch: outputs, gradients, and buffers that training writes.

    python -m tests.models.torch.random_networks LLVM 0 5000    # device, first seed, how many

Of two seeds one is read by torch.compile and one by load_model. What differs more than roundings
explain is printed with its seed and a script to paste. The exit status is 1 where something was
wrong. Two sound computations differ by their roundings: where they do, PyTorch computes the network
again in float64, and with the result of each operator off by some units in the last place; where
that moves a value, ours may be as far away. Where `torch.compile` fails with the operators of
PyTorch (backend "aot_eager"), or computes what we compute, the network counts as refused.
"""

from __future__ import annotations

import copy
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.models.torch.network_growth import Network
from tests.models.torch.network_lines import network
from tests.peers import torch
from workbench import Context, load_model
from workbench.base.errors import ModelError
from workbench.models.torch.values import from_torch, to_torch

Values = dict[str, Any]
UNITS, RUNS, FACTOR = 4.0, 6, 8.0
"""How far the result of an operator is moved, how often, and how much further ours may be away."""


@dataclass
class Outcome:
    """What became of a network: what is wrong with it, or why it is refused; "" for neither."""

    network: Network
    route: str
    wrong: str = ""
    refusal: str = ""

    def __str__(self) -> str:
        text = self.network.text
        call = {
            "compile": 'net = torch.compile(net, backend="workbench")',
            "load": "from workbench import load_model\nnet = load_model(net)",
        }[self.route]
        return f"# seed {self.network.seed}, {self.route}\n{text}\n{call}\n# {self.wrong}\n"


def outcome(seed: int, device: str, route: str = "") -> Outcome:
    """Compare the network of a seed on a device."""
    drawn = network(seed)
    route = route or ("compile", "load")[seed % 2]
    with warnings.catch_warnings(), Context(DEV=device):
        warnings.simplefilter("ignore")
        module, inputs = drawn.build()
        calls = 4 if route == "compile" and seed % 8 == 0 else 1
        try:
            expected = of_pytorch(copy.deepcopy(module), inputs, calls)
        except RuntimeError:  # adaptive_avg_pool2d has no gradient of no elements
            return Outcome(drawn, route, refusal="PyTorch itself refuses")
        if not all(x.numel() for x in inputs):  # PyTorch divides by the size of an empty group
            expected = {n: v for n, v in expected.items() if v is None or not bool(v.isnan().any())}
        try:
            ours = ROUTES[route](copy.deepcopy(module), inputs, calls, expected)
        except ModelError as error:
            return Outcome(drawn, route, refusal=f"{error.what}, {error.because}".splitlines()[0])
        except Exception:
            if route == "compile" and by_pytorch(module, inputs, calls) is None:
                return Outcome(drawn, route, refusal="torch.compile fails with its own backend")
            return Outcome(drawn, route, wrong=traceback.format_exc(limit=-8))
        wrong = differences(ours, expected)
        if wrong:
            furthest = deviations(drawn, calls, expected)
            wrong = differences(ours, expected, furthest)
        if wrong and route == "compile":
            own = by_pytorch(module, inputs, calls)
            if own is not None and not differences(ours, own, furthest):
                return Outcome(drawn, route, refusal="torch.compile is wrong with its own backend")
        return Outcome(drawn, route, "; ".join(wrong))


# --------------------------------------------------------------------------------------------------
# Calls: each returns outputs, gradients and buffers by name.


def of_pytorch(module: Any, inputs: list[Any], calls: int, function: Any = None) -> Values:
    """Return what a module computes; of several calls the last, with all that they wrote."""
    function = module if function is None else function
    for _ in range(calls):
        module.zero_grad()
        given = [x.clone() for x in inputs]
        given = [x.requires_grad_() if x.is_floating_point() else x for x in given]
        results = leaves(function(*given))
        listed = [r for r in results if r.requires_grad]
        if listed:
            torch.autograd.backward(listed, [seed_of(r) for r in listed])
    found = {f"output {n}": r.detach() for n, r in enumerate(results)}
    found |= {f"gradient of x{n}": x.grad for n, x in enumerate(given)}
    found |= {f"gradient of {name}": p.grad for name, p in module.named_parameters()}
    return found | {name: b.clone() for name, b in module.named_buffers()}


def compiled(module: Any, inputs: list[Any], calls: int, expected: Values) -> Values:
    torch._dynamo.reset()
    return of_pytorch(module, inputs, calls, torch.compile(module, backend="workbench"))


def by_pytorch(module: Any, inputs: list[Any], calls: int) -> Values | None:
    """Return the values of `torch.compile` with PyTorch's own operators; None if that fails."""
    torch._dynamo.reset()
    own = copy.deepcopy(module)
    try:
        return of_pytorch(own, inputs, calls, torch.compile(own, backend="aot_eager"))
    except Exception:
        return None


def loaded(module: Any, inputs: list[Any], calls: int, expected: Values) -> Values:
    """Return the values of `load_model`, with gradients by ours."""
    model = load_model(module)
    tensors = [from_torch(x.clone()) for x in inputs]
    given = [t.requires_grad_() if t.dtype.is_float else t for t in tensors]
    parameters = {n: model.state_dict()[n].requires_grad_() for n, _ in module.named_parameters()}
    results = leaves(model(*given))
    found = {f"output {n}": to_torch(r.detach()) for n, r in enumerate(results)}
    total = None
    for n, result in enumerate(results):
        if result.dtype.is_float and result.requires_grad:
            part = (result * from_torch(seed_of(found[f"output {n}"]))).sum()
            total = part if total is None else total + part
    named = {f"gradient of x{n}": t for n, t in enumerate(given)}
    named |= {f"gradient of {n}": t for n, t in parameters.items()}
    wanted = {n: t for n, t in named.items() if expected.get(n) is not None}
    if total is not None and wanted:
        total.backward()
        found |= {n: to_torch(t.grad.contiguous()) for n, t in wanted.items() if t.grad is not None}
    return found | {name: b.clone() for name, b in module.named_buffers()}


ROUTES: dict[str, Callable[..., Values]] = {"compile": compiled, "load": loaded}


def seed_of(result: Any) -> Any:
    """Return the gradient that goes into a result: equal for equal shapes."""
    places = torch.arange(result.numel(), dtype=torch.float64).reshape(result.shape)
    return (places * 0.7 + 0.3).sin().to(result.dtype)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    return [] if value is None else [value]


# --------------------------------------------------------------------------------------------------
# What roundings explain.


class Perturbed(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
    """PyTorch whose operators are off by some units in the last place, backwards too."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if any(
            each.alias_info is not None and not each.alias_info.is_write
            for each in func._schema.returns
        ):
            return result
        if func in EXACT:
            return result
        for each in leaves(result):
            if isinstance(each, torch.Tensor) and each.is_floating_point() and each.numel():
                share = (torch.rand(each.shape, dtype=torch.float64) * 2 - 1) * UNITS
                each.copy_(each.double() * (1 + share * torch.finfo(each.dtype).eps))
        return result


aten = torch.ops.aten
EXACT = {
    aten.clone.default, aten.copy_.default, aten.cat.default, aten.stack.default,
    aten.empty.memory_format, aten.zeros.default, aten.relu.default, aten.detach.default,
    aten.fill_.Scalar, aten.zero_.default, aten.empty_like.default, aten.new_zeros.default,
    aten.zeros_like.default, aten.ones_like.default, aten.arange.default, aten.full.default,
}  # fmt: skip
"""Operators whose results have no rounding."""


def deviations(drawn: Network, calls: int, expected: Values) -> Values:
    """Return how far roundings move each element: those of operators that are off, and PyTorch's
    own, as the network in float64 shows them. It is infinity where one of them is not finite."""
    module, inputs = drawn.build()
    wide = drawn.build("float64")[0]
    wide.load_state_dict(module.state_dict())
    wider = [x.double() if x.is_floating_point() else x for x in inputs]
    runs = [of_pytorch(wide, wider, calls)]
    torch.manual_seed(0)
    for _ in range(RUNS):
        with Perturbed():
            runs.append(of_pytorch(copy.deepcopy(module), inputs, calls))
    furthest: Values = {}
    for run in runs:
        for name, value in run.items():
            want = expected[name]
            if value is not None and want is not None and value.is_floating_point():
                apart = distance(value, want)
                furthest[name] = torch.maximum(furthest.get(name, apart), apart)
    return furthest


def distance(value: Any, expected: Any) -> Any:
    """Return how far elements are apart; equal infinities and NaN are not."""
    one, other = value.double(), expected.double()
    same = (one == other) | (one.isnan() & other.isnan())
    return torch.where(same, 0.0, (one - other).abs().nan_to_num(nan=torch.inf))


def differences(ours: Values, expected: Values, furthest: Values | None = None) -> list[str]:
    """Return what differs, in words."""
    wrong = []
    for name, want in expected.items():
        got = ours.get(name)
        if got is None or want is None:
            missing = want if got is None else got
            if missing is not None and bool(missing.double().ne(0).any()):
                wrong.append(f"{name}: {'none' if got is None else 'there is one'}")
            continue
        if got.dtype != want.dtype or got.shape != want.shape:
            wrong.append(
                f"{name}: {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
            )
            continue
        apart = distance(got, want)
        limit = torch.zeros_like(apart)
        if want.is_floating_point():
            finite = want.double().abs().nan_to_num(0.0, 0.0, 0.0)
            greatest = float(finite.max()) if want.numel() else 0.0
            limit += 16 * torch.finfo(want.dtype).eps * greatest
            if furthest is not None and name in furthest:
                limit += FACTOR * furthest[name]
        over = apart > limit
        if bool(over.any()):
            place = tuple(int(n) for n in over.nonzero()[0])
            count = int(over.sum())
            wrong.append(
                f"{name}: {count} of {got.numel()} differ, at {place} {float(got[place]):.7g}, "
                f"not {float(want[place]):.7g} (limit {float(limit[place]):.2g})"
            )
    return wrong


# --------------------------------------------------------------------------------------------------


def tried(device: str, seeds: Iterable[int]) -> tuple[list[Outcome], Counter[str]]:
    """Return the outcomes that are wrong, and the reasons of those that are refused."""
    wrong, refused = [], Counter[str]()
    for seed in seeds:
        each = outcome(seed, device)
        if each.wrong:
            wrong.append(each)
            print(each, flush=True)
        if each.refusal:
            refused[each.refusal] += 1
    return wrong, refused


def main() -> int:
    device, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    start = time.process_time()
    wrong, refused = tried(device, range(first, first + count))
    print(f"{count:,} networks on {device}: {len(wrong)} wrong, {refused.total()} refused")
    print(f"{(time.process_time() - start) / count:.2f} s of processor time each")
    for reason, n in refused.most_common():
        print(f"  {n:5} {reason}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
