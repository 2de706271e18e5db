"""Measure the first result of five models in a new process, beside tinygrad and torch.compile.

    python bench/cold_starts.py [--rounds 3]

Each process builds a model of random weights and computes one result, `cold` with empty caches and
`warm` with those that an earlier process has filled. Printed are seconds of the wall clock, medians
over rounds in which all libraries run in turns: from the model to its result, imports done, and of
the whole process. A peer that fails or is
not installed has a dash, and its last line of stderr is printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

TENSORS = """
class Mlp:
    def __init__(self): self.layers = [nn.Linear(256, 256) for _ in range(4)]
    def __call__(self, x):
        for layer in self.layers: x = layer(x).gelu()
        return x
class Convolutions:
    def __init__(self):
        self.layers = [nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)]
        self.norms, self.out = [nn.BatchNorm(16), nn.BatchNorm(32)], nn.Linear(32 * 64, 10)
    def __call__(self, x):
        for layer, norm in zip(self.layers, self.norms): x = norm(layer(x)).relu().max_pool2d()
        return self.out(x.flatten(1))
class Residual:
    def __init__(self): self.layers = [nn.Conv2d(16, 16, 3, padding=1) for _ in range(6)]
    def __call__(self, x):
        for one, two in zip(self.layers[::2], self.layers[1::2]): x = x + two(one(x).relu())
        return x.mean((2, 3))
class Recurrent:
    def __init__(self): self.cell, self.out = nn.LSTMCell(64, 128), nn.Linear(128, 10)
    def __call__(self, x):
        state = None
        for step in range(12): state = self.cell(x[:, step], state)
        return self.out(state[0])
class Block:
    def __init__(self):
        self.one, self.two = nn.LayerNorm(64), nn.LayerNorm(64)
        self.qkv, self.proj = nn.Linear(64, 192), nn.Linear(64, 64)
        self.fc, self.out = nn.Linear(64, 256), nn.Linear(256, 64)
    def __call__(self, x):
        q, k, v = [each.reshape(2, 16, 4, 16).transpose(1, 2)
                   for each in self.qkv(self.one(x)).chunk(3, dim=-1)]
        y = q.scaled_dot_product_attention(k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(2, 16, 64))
        return x + self.out(self.fc(self.two(x)).gelu())
class Transformer:
    def __init__(self): self.layers = [Block() for _ in range(5)]
    def __call__(self, x):
        for layer in self.layers: x = layer(x)
        return x
"""
TORCH = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(self.made())
class Mlp(Net):
    def made(self): return [nn.Linear(256, 256) for _ in range(4)]
    def forward(self, x):
        for layer in self.parts: x = F.gelu(layer(x))
        return x
class Convolutions(Net):
    def made(self):
        return [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16),
                nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.Linear(32 * 64, 10)]
    def forward(self, x):
        for n in (0, 2): x = F.max_pool2d(self.parts[n + 1](self.parts[n](x)).relu(), 2)
        return self.parts[4](x.flatten(1))
class Residual(Net):
    def made(self): return [nn.Conv2d(16, 16, 3, padding=1) for _ in range(6)]
    def forward(self, x):
        for n in range(0, 6, 2): x = x + self.parts[n + 1](self.parts[n](x).relu())
        return x.mean((2, 3))
class Recurrent(Net):
    def made(self): return [nn.LSTMCell(64, 128), nn.Linear(128, 10)]
    def forward(self, x):
        state = None
        for step in range(12): state = self.parts[0](x[:, step], state)
        return self.parts[1](state[0])
class Block(Net):
    def made(self):
        return [nn.LayerNorm(64), nn.LayerNorm(64), nn.Linear(64, 192), nn.Linear(64, 64),
                nn.Linear(64, 256), nn.Linear(256, 64)]
    def forward(self, x):
        one, two, qkv, proj, fc, out = self.parts
        q, k, v = [each.reshape(2, 16, 4, 16).transpose(1, 2)
                   for each in qkv(one(x)).chunk(3, dim=-1)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + proj(y.transpose(1, 2).reshape(2, 16, 64))
        return x + out(F.gelu(fc(two(x))))
class Transformer(Net):
    def made(self): return [Block() for _ in range(5)]
    def forward(self, x):
        for layer in self.parts: x = layer(x)
        return x
"""
SHAPES = {
    "Mlp": (32, 256), "Convolutions": (4, 3, 32, 32), "Residual": (2, 16, 16, 16),
    "Recurrent": (4, 12, 64), "Transformer": (2, 16, 64),
}  # fmt: skip
RUN = """
began = time.perf_counter()
{run}
print(time.perf_counter() - began, time.perf_counter() - started)
"""
START = "import time; started = time.perf_counter()\nimport numpy as np\n"
X = "x = np.random.default_rng(0).standard_normal({shape}).astype(np.float32)"
PROGRAMS = {
    "workbench": START + "from workbench import Tensor, nn\n" + TENSORS
    + RUN.format(run=f"{X}\nresult = {{model}}()(Tensor(x)).numpy()"),
    "tinygrad": START + "from tinygrad import Tensor, nn\n" + TENSORS
    + RUN.format(run=f"{X}\nresult = {{model}}()(Tensor(x)).numpy()"),
    "torch.compile": START + "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
    + "torch.set_num_threads(2)\n" + TORCH
    + RUN.format(
        run=f"{X}\nwith torch.no_grad():\n"
        "    result = torch.compile({model}().eval())(torch.tensor(x)).numpy()"
    ),
}  # fmt: skip


def seconds(library: str, model: str, caches: Path) -> tuple[float, float] | None:
    """Return the seconds to the result and of the process; None where the library fails."""
    program = PROGRAMS[library].replace("{model}", model).replace("{shape}", str(SHAPES[model]))
    own = caches / library / model
    own.mkdir(parents=True, exist_ok=True)
    where = {
        "XDG_CACHE_HOME": own, "TORCHINDUCTOR_CACHE_DIR": own / "inductor",
        "CACHEDB": own / "cache.db", "PYTHONDONTWRITEBYTECODE": "",
        "DEV": "CPU" if library == "tinygrad" else "",
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, **{name: str(value) for name, value in where.items()}},
    )  # fmt: skip
    if ran.returncode:
        print(f"{library}, {model}: {ran.stderr.strip().splitlines()[-1][:200]}", file=sys.stderr)
        return None
    result, process = map(float, ran.stdout.split()[-2:])
    return result, process


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    times = defaultdict[tuple[str, str, str], list[tuple[float, float]]](list)
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for model in SHAPES:
                for kind in ("cold", "warm"):
                    for library in PROGRAMS:
                        taken = seconds(library, model, Path(folder))
                        if taken is not None:
                            times[model, kind, library].append(taken)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    print(f"{'seconds to the result / of the process':40}" + "".join(f"{n:>18}" for n in PROGRAMS))
    for model in SHAPES:
        for kind in ("cold", "warm"):
            cells = [times[model, kind, library] for library in PROGRAMS]
            words = [
                "/".join(f"{median(t):.2f}" for t in zip(*cell, strict=True)) for cell in cells
            ]
            print(f"{model + ', ' + kind:40}" + "".join(f"{word or '-':>18}" for word in words))


if __name__ == "__main__":
    main()
