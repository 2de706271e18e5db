"""Random programs of copies, views, bitcasts, writes, moves to another device, shared memory and
reads, beside the same in numpy. There is no TinyJit: it is about when what is computed, and where.

    python -m tests.tensor.memory_programs --device LLVM --seeds 0:1000

The shapes are few, so that most kernels were compiled for a program before. Every error is a fault.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tests.tensor.programs import Program, main

SHAPES = [(4,), (2, 4), (2, 2)]
WRITES = ["+= 1", "*= 2", "-= 3", "[:1] = 5", "[..., -1] += 2"]


class MemoryProgram(Program):
    """A program of writes to memory that has several names; arrays of `OTHER` are on another
    device, those of `bits` are read as another dtype, those of `shared` are numpy's, too."""

    shapes_at_first = SHAPES

    def __init__(self, seed: int, device: str):
        self.others: set[int] = set()
        self.bits: set[int] = set()
        self.shared: list[int] = []
        if seed % 3 == 2:  # a float has another node where it is told from its equals
            self.dtype, self.operators = "float32", ("+=", "-=", "*=")
        super().__init__(seed, device)

    def _steps(self) -> list[Any]:
        return [
            self._value, self._view, self._view, self._operator, self._operator, self._assign,
            self._item, self._item, self._realize, self._realize, self._read, self._read_part,
            self._delete, self._copy, self._copy, self._copy, self._replace, self._bitcast,
            self._write_bits, self._move, self._foreign_write, self._rows,
            lambda: self._overwrite(self._pick()),
        ]  # fmt: skip

    def _start(self) -> None:
        """Begin with a tensor, one on memory of numpy or one of empty memory that is written."""
        how = self.random.random()
        if how < 0.15 and self.device != "OPENCL":
            shape = self.random.choice(SHAPES)
            text = f"np.arange({int(np.prod(shape))}, dtype=np.{self.dtype}).reshape({shape})"
            self.shared.append(len(self.arrays))
            self._add(
                f"s.append({text})\nt.append(Tensor.from_numpy(s[-1], share=True))",
                f"a.append({text})",
            )
        elif how < 0.25:
            shape = self.random.choice(SHAPES)
            write = self.random.choice(["[...] = 3", ".assign(3)"])
            self._add(
                f"t.append(Tensor.empty(*{shape}, dtype='{self.dtype}'))\nt[-1]{write}",
                f"a.append(np.full({shape}, 3, np.{self.dtype}))",
            )
        else:
            super()._start()

    def _pick(self) -> int:
        """Return the place of an array of the program's dtype; of a new one, where all are gone."""
        rest = [
            n for n, array in enumerate(self.arrays) if array is not None and n not in self.bits
        ]
        if not rest:
            self._start()
            return len(self.arrays) - 1
        return self.random.choice(rest)

    def _like(self, x: int) -> int | None:
        fits = [
            n
            for n, array in enumerate(self.arrays)
            if array is not None
            and array.shape == self.arrays[x].shape
            and n not in self.bits
            and (n in self.others) == (x in self.others)
        ]
        return self.random.choice(fits) if fits else None

    def _append(self, tensor: str, array: str, x: int) -> None:
        super()._append(tensor, array, x)
        if x in self.others:
            self.others.add(len(self.arrays) - 1)

    def _copy(self) -> None:
        x = self._pick()
        form = self.random.choice(
            [
                "t[{x}].clone()", "copy(t[{x}])", "deepcopy(t[{x}])", "Tensor(t[{x}].uop)",
                "t[{x}].to(OTHER).to(DEVICE)", "t[{x}].contiguous().clone()", "t[{x}] + 0",
                "loads(dumps(t[{x}]))",
            ]
        )  # fmt: skip
        if "OTHER" in form and x in self.others:
            return
        self._append(form.format(x=x), f"a[{x}].copy()", x)
        if self.random.random() < 0.8:  # what copies are made for
            which, other = self.random.sample([x, len(self.arrays) - 1], 2)
            write = self.random.choice(WRITES)
            self._add(f"t[{which}] {write}".replace(" [", "["), f"a[{which}] {write}")
            if self.random.random() < 0.5:
                self._overwrite(other)

    def _overwrite(self, x: int) -> None:
        """Write all elements, without a read of any."""
        array = self.arrays[x]
        text = f"np.arange({array.size}, dtype=np.{self.dtype}).reshape({array.shape})"
        self._add(f"t[{x}].assign(Tensor({text}, device=t[{x}].device))", f"a[{x}][...] = {text}")

    def _replace(self) -> None:
        x = self._pick()
        y = self._like(x)
        if y is not None and y != x and x not in self.shared:
            self._add(f"t[{x}].replace(t[{y}])", f"a[{x}] = a[{y}].copy()")

    def _move(self) -> None:
        x = self._pick()
        where = "DEVICE" if x in self.others else "OTHER"
        self._add(f"t.append(t[{x}].to({where}))", f"a.append(a[{x}].copy())")
        if where == "OTHER":
            self.others.add(len(self.arrays) - 1)

    def _bitcast(self) -> None:
        x = self.random.choice([n for n, a in enumerate(self.arrays) if a is not None])
        dtype = self.random.choice(["uint32", "int16", "uint8", self.dtype])
        if dtype == self.arrays[x].dtype:
            return  # it is the tensor itself
        array = self.arrays[x]
        try:
            view = array.view(dtype)
        except ValueError:
            return  # numpy copies here, where a tensor is a view
        if not view.size:
            return
        self._append(f"t[{x}].bitcast('{dtype}')", f"a[{x}].view('{dtype}')", x)
        if dtype != self.dtype:
            self.bits.add(len(self.arrays) - 1)

    def _write_bits(self) -> None:
        bits = [n for n in self.bits if self.arrays[n] is not None]
        if bits:
            x = self.random.choice(sorted(bits))
            writes = ["[:1] = 3", "[...] = 1", " += 1", " ^= 5"]
            if self.dtype == "float32":  # the sums of other bits depend on the order
                writes = ["[:1] = 0", "[...] = 0"]
            write = self.random.choice(writes)
            self._add(f"t[{x}]{write}", f"a[{x}]{write}")

    def _rows(self) -> None:
        x = self._pick()
        if self.arrays[x].ndim > 1:
            self._add(f"for r in t[{x}]: r += 1", f"for r in a[{x}]: r += 1")

    def _foreign_write(self) -> None:
        """Write to numpy's side of shared memory, when all values are computed."""
        if not self.shared:
            return
        n = self.random.randrange(len(self.shared))
        write = self.random.choice(["[:1] = 9", " += 4"])
        if self.arrays[self.shared[n]] is not None:
            self._add(
                f"[x.realize() for x in t if x is not None]\ns[{n}]{write}",
                f"a[{self.shared[n]}]{write}",
            )
            self._check_shared()

    def _check_shared(self) -> None:
        for n, x in enumerate(self.shared):
            if self.arrays[x] is not None:
                self._add(f"t[{x}].realize()\nassert (s[{n}] == a[{x}]).all(), s", "pass")

    def _read_part(self) -> None:
        x = self._pick()
        index = self.random.choice(["[0]", "[..., 1:]", "[::-1]", ".sum()"])
        self._add(f"same(t[{x}]{index}, a[{x}]{index})", "pass")


if __name__ == "__main__":
    sys.exit(main(MemoryProgram))
