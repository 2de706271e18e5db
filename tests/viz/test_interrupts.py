"""Ctrl-C anywhere in what a notebook's cell may do: it can be done again, and files are whole."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support import LONG, count
from tests.tools.interrupts import is_interrupted, places
from workbench import Device, Tensor, explore, pipeline
from workbench.base.context import SETTINGS
from workbench.base.trace import observer
from workbench.execution.capture import is_capturing
from workbench.ir.rewriting.rewrite import rules_off
from workbench.ir.schedule.by_hand import NOTHING_BY_HAND
from workbench.nn.state import load_state_dict, safe_load, safe_save
from workbench.tensor.autograd.leaves import gradients_flow
from workbench.worker.client import Worker


def state() -> tuple[Any, ...]:
    """Return what an interrupt must not leave set."""
    settings = [setting.value for setting in SETTINGS.values()]
    modes = gradients_flow(), is_capturing(), observer(), rules_off(), gc.isenabled()
    return signal.getsignal(signal.SIGINT), settings, modes


def matrix() -> Tensor:
    return Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()


class Subject:
    """What is interrupted: `run`, and a look that what it changes is old or new."""

    def __init__(self, folder: Path):
        self.folder, self.runs = folder, 0

    def run(self) -> None:
        raise NotImplementedError

    def look(self) -> None:
        assert not [path for path in self.folder.iterdir() if path.name[0] == "."]

    def close(self) -> None:
        """End what it started."""


class Exploring(Subject):
    def run(self) -> None:
        pipeline._programs.entries.clear()
        a = matrix()
        ex = explore((a @ a.transpose(0, 1)).relu().sum(0))
        assert "2 kernels" in str(ex) or "1 kernel" in str(ex)


class Replanning(Subject):
    def __init__(self, folder: Path):
        super().__init__(folder)
        self.inner = (matrix() + 1).exp()
        self.ex = explore((self.inner.sum(1, keepdim=True) * self.inner).relu())

    def run(self) -> None:
        cut = self.ex.replan({self.inner: True})
        fused = cut.replan({self.inner: None}).replan({self.inner: False})
        off = fused.planned_again(NOTHING_BY_HAND, ("mul-one",)).planned_again(NOTHING_BY_HAND, ())
        assert len(cut.kernels) > len(fused.kernels)
        assert len(off.kernels) == len(self.ex.kernels)


class Variants(Subject):
    def __init__(self, folder: Path):
        super().__init__(folder)
        a = Tensor(np.ones((8, 8), np.float32)).realize()
        self.ex = explore(a @ a)
        self.opts = self.ex.kernels[0].legal_opts()

    def run(self) -> None:
        self.runs += 1
        opt = self.opts[self.runs % len(self.opts)]
        variant = self.ex.add(self.ex.kernels[0].apply(opt))
        self.ex.rename(variant, f"number {self.runs}")
        self.ex.delete(variant)

    def look(self) -> None:
        names = [variant.name for variant in self.ex.variants]
        assert len({*names}) == len(names) and "plain" in names
        assert "plain" in str(self.ex.variants)


class Saving(Subject):
    """Explorations and tensors are saved over those before."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.explorations = [explore(matrix() + 1), explore(matrix().exp().sum())]
        self.tensors = [{"a": Tensor([n] * 50).realize()} for n in (1, 2)]
        self.run()

    def run(self) -> None:
        self.runs += 1
        self.explorations[self.runs % 2].save(self.folder / "ex")
        safe_save(self.tensors[self.runs % 2], self.folder / "tensors")

    def look(self) -> None:
        super().look()
        text = (self.folder / "ex").read_text()
        assert text.startswith("{") and text.rstrip().endswith("}")
        values = safe_load(self.folder / "tensors")["a"].tolist()
        assert values in ([1] * 50, [2] * 50)


class Exporting(Subject):
    def __init__(self, folder: Path):
        super().__init__(folder)
        self.ex, self.path = explore(matrix() + 1), folder / "page.html"
        self.run()

    def run(self) -> None:
        self.ex.to_html(self.path)

    def look(self) -> None:
        super().look()
        assert self.path.read_text().rstrip().endswith("</html>")


class Loading(Subject):
    def __init__(self, folder: Path):
        super().__init__(folder)
        self.model = {"w": Tensor.zeros(3, 4), "l": [Tensor.zeros(4), Tensor.zeros(2)]}
        for n in (1, 2):
            tensors = {
                "w": Tensor.full((3, 4), float(n)),
                "l.0": Tensor.full((4,), float(n)),
                "l.1": Tensor.full((2,), float(n)),
            }
            safe_save(tensors, folder / f"{n}")
        self.run()

    def run(self) -> None:
        self.runs += 1
        path = self.folder / f"{1 + self.runs % 2}"
        load_state_dict(self.model, safe_load(path), verbose=False)

    def look(self) -> None:
        for tensor in (self.model["w"], *self.model["l"]):
            assert {*tensor.numpy().ravel().tolist()} in ({1.0}, {2.0})


class Checking(Subject):
    def __init__(self, folder: Path):
        super().__init__(folder)
        self.ex = explore((matrix() * 2 + 1).relu())

    def run(self) -> None:
        pipeline._programs.entries.clear()
        kernel = self.ex.kernels[0]
        assert self.ex.check() and kernel.check().ok
        assert kernel.bisect() is None and kernel.cost and kernel.bound()


class Asking(Subject):
    """A worker is asked one thing after the other: each answer is that of its question."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.worker = Worker(nice=0)
        self.kernels = [explore(matrix() * n).kernels[0] for n in (2, 3, 4)]

    def run(self) -> None:
        self.runs += 1
        kernel, worker = self.kernels[self.runs % 3], self.worker
        buffers = kernel.data.buffers(kernel.original, "LLVM")
        written = kernel.original.outputs
        worker.hold("data", lambda: [(b, n in written) for n, b in enumerate(buffers)])
        row = {"ast": kernel.to_text(), "device": "LLVM", "source": None, "rules_off": []}
        answer = worker.ask(
            {
                "do": "run", "kernel": row, "data": "data", "outputs": [*written], "times": 1,
                "names": [str(n) for n in range(len(buffers))], "silent_s": 30.0,
            }
        )  # fmt: skip
        worker.drop("data")
        values = np.frombuffer(answer["blobs"][0], np.float32)
        expected = np.arange(12) * (2 + self.runs % 3)
        np.testing.assert_array_equal(values, expected)

    def close(self) -> None:
        self.worker.close()


class Computing(Subject):
    """A kernel of each device is compiled and run, and memory is written."""

    def __init__(self, folder: Path, device: str):
        super().__init__(folder)
        self.tensor = Tensor(np.zeros(8, np.int32), device=device).realize()

    def run(self) -> None:
        self.runs += 1
        pipeline._programs.entries.clear()
        self.tensor.assign(self.tensor * 0 + self.runs)
        assert self.tensor.tolist() == [self.runs] * 8

    def look(self) -> None:
        assert len({*self.tensor.tolist()}) == 1


SUBJECTS: dict[str, tuple[Callable[[Path], Subject], int]] = {
    "explore": (Exploring, 150),
    "replan": (Replanning, 150),
    "variants": (Variants, 150),
    "save": (Saving, 400),
    "to_html": (Exporting, 30),
    "load": (Loading, 400),
    "check": (Checking, 70),
    "worker": (Asking, 400),
    "LLVM": (lambda folder: Computing(folder, "LLVM"), 100),
    "PYTHON": (lambda folder: Computing(folder, "PYTHON"), 100),
    "C": (lambda folder: Computing(folder, "C"), 50),
}


# A file that was just opened is closed, with a warning; so is a signal that comes in `__del__`.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", SUBJECTS)
def test_what_was_interrupted_can_be_done_again(name: str, tmp_path: Path) -> None:
    if name == "C" and not Device.available("C"):
        pytest.skip("no C compiler")
    make, most_trials = SUBJECTS[name]
    trials = most_trials if LONG else count(most_trials // 2)
    subject, random = make(tmp_path), Random(name)
    subject.run()
    before, most, interrupted = state(), places(subject.run), 0
    for _ in range(trials):
        place = random.randint(1, most)
        interrupted += is_interrupted(subject.run, place)
        assert state() == before, place
        subject.look()
        subject.run()
        subject.look()
    assert interrupted >= trials // 3, interrupted
    subject.close()
