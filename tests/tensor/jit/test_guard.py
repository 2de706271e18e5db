"""Names that stand for other memory at a later call: a replay gives what the function gives."""

from __future__ import annotations

import copy
import functools
import itertools
import threading
import weakref
from collections import ChainMap, deque
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.jit.support import held
from workbench import GlobalCounters, Tensor, TinyJit, dtypes
from workbench.base.errors import JitError


def vector(*values: float) -> Tensor:
    return held(np.float32(values))


class Program(NamedTuple):
    """A program: `setup`, a function `f(x)` of a `body`, whose last line is its result, and nine
    calls; before call number n, `changes[n]` runs, and after it all of `reads` is read."""

    setup: str
    body: str
    changes: dict[int, str]
    reads: str = ""

    def text(self) -> str:
        *lines, result = self.body.split("; ")
        calls = "\n".join(
            f"{self.changes.get(n, 'pass')}\nr = call(v({n}, 1))\n"
            f"seen.append([np.asarray(t.tolist()).tolist() for t in (r, {self.reads})])"
            for n in range(9)
        )
        names = "m" if "m = " in self.setup else "_"
        inner = "\n    ".join([f"global {names}", *lines, f"return {result}"])
        function = "m" if self.body == "m(x)" else "f"
        return f"{self.setup}\ndef f(x):\n    {inner}\ncall = jit({function})\n{calls}"


CALL = "    def __call__(self, x): return self.other(x)\n    def other(self, x): return x * "
CLASS = f"class C:\n    w = v(1, 2)\n{CALL}self.w"
# fmt: off
PROGRAMS: dict[str, Program] = {
    "a constant": Program("m = N(h=v(1, 1))", "m.h + x", {
        2: "m.h = Tensor.zeros(2)", 5: "m.h = Tensor.ones(2)", 7: "m.h = Tensor.full((2,), 7)"}),
    "a constant that is a factor": Program(
        "m = N(h=Tensor.zeros(2), z=Tensor.zeros(2))", "m.h * x + m.z", {
        3: "m.h = Tensor.ones(2)", 5: "m.z = Tensor.ones(2)", 6: "m.h += 1", 7: "m.z += 1"}),
    "a constant, accumulated": Program("m = N(h=v(1, 1))", "m.h.assign(m.h + x) * 1", {
        3: "m.h = Tensor.zeros(2)", 6: "m.h = Tensor.zeros(2)", 7: "m.h = v(5, 5) * 2"}, "m.h,"),
    "a hidden state": Program("m = N(h=Tensor.zeros(2))", "m.h = m.h * 2 + x; m.h + 1", {
        4: "m.h = Tensor.zeros(2)", 5: "m.h = Tensor.zeros(2)", 7: "m.h = v(1, 2)"}, "m.h,"),
    "an expression": Program("a = v(1, 2); m = N(w=a * 2)", "x * m.w", {
        3: "m.w = a * 3", 4: "a += 1", 5: "m.w = a * 3", 6: "m.w += 1", 7: "m.w.realize()"}),
    "a target": Program("m = N(on=v(1, 2), to=v(0, 0)); old = m.to", "m.to.assign(m.on); x * 2", {
        3: "old = m.to; m.to = v(9, 9)", 4: "m.on += 1", 5: "old = m.to; m.to.replace(v(7, 7))",
        6: "m.on += 1", 7: "m.to = m.to.clone(); m.on += 1"},
        "m.to, m.on, old"),
    "a view": Program("base = v(1, 2, 3, 4); m = N(w=base[1:3])", "x * m.w", {
        3: "base = 0; m.w += 1", 4: "m.w += 1", 5: "m.w += 1; m.w.realize()", 7: "m.w += 1"},
        "m.w,"),
    "a view that is written": Program(
        "base = v(1, 2, 3, 4); m = N(w=base[1:3])", "m.w.assign(m.w + x); x * 2", {
        3: "base = 0", 5: "m.w.realize()"}, "m.w,"),
    "two that are swapped": Program("m = N(a=v(1, 2), b=v(3, 4))", "m.a.assign(m.a + x); m.b * 1",
        dict.fromkeys((3, 4, 6), "m.a, m.b = m.b, m.a"), "m.a, m.b"),
    "two that become one": Program("m = N(a=v(1, 2), b=v(3, 4))", "m.a += x; m.a * m.b", {
        3: "m.b = m.a", 5: "m.b = v(5, 5)", 7: "m.b = m.a.reshape(2)"}, "m.a, m.b"),
    "a written one, bound": Program(
        "m = N(w=v(1, 2), h=v(3, 4))", "m.w += x; m.h = m.h * 2; m.h + m.w", {
        4: "m.h = m.w", 6: "m.h = m.w.reshape(1, 2).reshape(2)"}, "m.w, m.h"),
    "two bound, which become one": Program(
        "m = N(a=v(1, 2), b=v(3, 4))", "m.a = m.a + x; m.b = m.b * 2; m.a + m.b", {
        4: "m.b = m.a", 6: "m.a = m.b[:]", 7: "m.a += 1"}, "m.a, m.b"),
    "an argument, bound": Program(
        "m = N(h=v(3, 4)); y = v(1, 1)", "x += 1; m.h = m.h * 2; m.h + x", {
        4: "m.h = v(4, 1)", 6: "m.h = y"}, "m.h, y"),
    "a class": Program(f"{CLASS}\nm = C()", "m(x)", {
        3: "C.w = v(3, 3)", 5: "C.w = Tensor.ones(2)", 6: "m.w = v(1, 1)", 7: "del m.w"}),
    "a class by its name": Program(CLASS, "x * C.w", {3: "C.w = v(3, 3)", 5: "C.w = v(5, 5)"}),
    "a module": Program(
        "s = M('s'); s.w = v(1, 2)", "x * s.w", {3: "s.w = v(3, 3)", 5: "s.w = v(5, 5)"}),
    "a global of a method": Program(
        f"W = v(1, 2)\nclass C:\n{CALL}W\nm = C()",
        "m(x)", {3: "W = v(3, 3)", 5: "W = v(5, 5)"}),
    "slots": Program(
        f"class C:\n    __slots__ = ('w', '__weakref__')\n{CALL}self.w\nm = C(); m.w = v(1, 2)",
        "m(x)", {
        3: "setattr(m, 'w', v(3, 3))", 5: "del m.w; m.w = Tensor.ones(2)", 7: "m.w = v(7, 7)"}),
    "a longer list": Program("ws = [v(1, 2)]", "[x := x * w for w in ws]; x * 2", {
        3: "ws.append(v(3, 3))", 5: "ws.append(v(5, 5))", 7: "ws.pop()", 8: "ws[:] = [v(2, 2)]"}),
    "a longer dict": Program("ws = {1: v(1, 2)}", "[x := x * w for w in ws.values()]; x * 2", {
        3: "ws[3] = v(3, 3)", 5: "ws[5] = v(5, 5)", 7: "del ws[3]", 8: "ws[1] = ws.pop(5)"}),
    "a queue": Program("ws = deque([v(1, 2)])", "x * ws[0]", {
        3: "ws[0] = v(3, 3)", 5: "ws.appendleft(Tensor.zeros(2))", 7: "ws.popleft()"}),
    "a list that the function reads and extends": Program(
        "h = [v(0, 0)]", "h.append(h[-1] + x); h[-1] * 2", {}, "*h,"),
    "a state that is made at first": Program(
        "m = N(h=None)", "m.h = x * 0 if m.h is None else m.h; m.h = m.h + x; m.h * 2", {
        4: "m.h = None", 7: "m.h = None"}, "m.h,"),
    "a list that is filled at first": Program(
        "m = []", "m.extend([Tensor.zeros(2)] * (not m)); m[0] = m[0] + x; m[0] * 2", {
        4: "m.clear()", 7: "m.clear()"}, "*m,"),
    "a number": Program(
        "m = N(s=2.0, h=v(1, 1))",
        "x * m.s + m.h", {3: "m.s = 3.0", 5: "m.s = v(7, 7)", 7: "m.s = 1"}),
    "a number of the module": Program("w = 2.0", "x * w", {
        3: "w = v(3, 3)", 5: "w = Tensor.zeros(2)", 7: "w = 1.0", 8: "w = Tensor.ones(2)"}),
    "copies": Program(
        "m = D(v(1, 2), [v(3, 4)])", "m.w.assign(m.w * 2 + x); m.l[0] * m.w", {
        3: "m.w = copy.deepcopy(m.w)", 4: "m.l = copy.deepcopy(m.l)", 5: "m.l[0] += 1",
        6: "m.w = copy.copy(m.w); m.w += 1", 7: "m.w = m.w.clone()", 8: "m = copy.deepcopy(m)"},
        "m.w,"),
    "another shape, dtype, device": Program("m = N(w=v(1, 2))", "(m.w * 2).sum().to('LLVM') * x", {
        3: "m.w = v(1, 2, 3)", 5: "m.w = m.w.cast('int32').realize()",
        6: "m.w = m.w.to('PYTHON').realize()",
        7: "m.w.to_('LLVM')"}),
    "a shape alone": Program(
        "m = N(w=v(1, 2))", "x + m.w.zeros_like().sum() + m.w.shape[0]", {4: "m.w = v(1, 2, 3)"}),
    "a result that is state": Program(
        "m = N(w=v(1, 2)); s = [m.w]",
        "s[:] = [m.w]; x * 2", {3: "m.w = v(3, 3)", 6: "m.w = v(6, 6)"}, "*s,"),
    "state that is bound to state": Program("m = N(w=v(1, 2), h=v(0, 0))", "m.h = m.w; x * 2", {
        3: "m.w = v(3, 3)", 4: "m.h = m.h + 1", 6: "m.w = v(6, 6)"}, "m.h, m.w"),
    "a gradient from outside": Program(
        "m = Tensor([1.0, 2.0], requires_grad=True)",
        "m.assign((m - m.grad * 0.5).detach()); m * x", {
        n: f"m.grad = None; (m * m * {n}).sum().backward()" for n in range(9)}, "m,"),
    "defaults": Program(
        "def g(x, w=v(1, 2)): return x * w",
        "g(x)", {3: "g.__defaults__ = (v(3, 3),)", 5: "g.__defaults__ = (Tensor.ones(2),)"}),
    "a partial function": Program(
        "o = N(w=v(1, 2)); m = functools.partial(lambda o, x: x * o.w, o)",
        "m(x)", {3: "o.w = v(3, 3)", 5: "o.w = Tensor.ones(2)"}),
    "training": Program(
        "",
        "x * (2 if Tensor.training else 3)",
        {4: "Tensor.training = True", 6: "Tensor.training = False"}),
    "the environment": Program(
        "import os; from os import environ as e, getenv as g; e['SCALE'] = '2'; e['WORD'] = 'b'",
        "x * float(e.get('SCALE', 1)) + len(os.getenv('WORD', '')) * int(g('ADDED', '3'))", {
        4: "e['SCALE'] = '5'", 5: "e['WORD'] = 'words'", 6: "del e['SCALE']",
        7: "e['ADDED'] = '7'", 8: "del e['ADDED'], e['WORD']"}),
    "the environment as bytes": Program(
        "import os; os.environ['SCALE'] = '2'",
        "x * float(os.environb.get(b'SCALE', 1)) + float(os.getenvb(b'ADDED', b'1'))", {
        4: "os.environ['SCALE'] = '5'", 6: "del os.environ['SCALE']",
        7: "os.environ['ADDED'] = '7'", 8: "del os.environ['ADDED']"}),
    # what is no tensor: numbers, texts, lengths, functions, dtypes, arrays
    "items": Program(
        "m = [2.0]; d = {'lr': 0.5}; o = N(t=(1, 2.5)); q = deque([3])",
        "x * m[0] * d['lr'] * o.t[1] * q[0]", {
        3: "m[0] = 5.0", 4: "d['lr'] = -0.0", 5: "o.t = (3, 4.5)", 6: "d.update(lr=2)",
        7: "q[0] = 4"}),
    "lengths": Program(
        "m = [1, 2]; s = {1}; d = {}", "x * (len(m) + 10 * len(s) + 100 * len(d))", {
        3: "m.append(3)", 4: "s.add(2)", 5: "d[3] = 3", 6: "m.pop()", 7: "d.clear()",
        8: "s.clear()"}),
    "functions": Program("m = [lambda x: x * 2]; h = {'f': abs}", "h['f'](m[0](x))", {
        3: "m[0] = lambda x: x * 7", 5: "h['f'] = lambda x: x - 1", 7: "h['f'] = abs"}),
    "dtypes, slices, classes": Program(
        "class C: k = 2\nclass E: k = 3\nm = N(d=dtypes.float32, s=slice(0, 1), c=C)",
        "(x * 3.5 * m.c.k).cast(m.d)[m.s]", {
        3: "m.d = dtypes.int32", 5: "m.s = slice(0, 2)", 6: "m.c = E", 7: "m.d = dtypes.float64"}),
    "arrays": Program(
        "m = N(a=np.float32([1, 2])); big = np.ones((300, 2)); old = m.a", "x * m.a + big[7, 1]", {
        3: "m.a = np.float32([3, 4])", 4: "m.a[1] = 9", 5: "big[7, 1] = 2", 6: "old[0] = 100",
        7: "m.a = old", 8: "m.a.shape = (2, 1)"}),
    "other holders": Program(
        "o = D(v(1, 2), []); d = {'n': 3}; w = d.values(); m = [weakref.ref(o), 0, 0,"
        " ContextVar('c'), bytearray(b'ab'), threading.local()];"
        " p = MappingProxyType(d); m[3].set(v(1, 1)); m[5].k = 2",
        "x * m[0]().w * p['n'] + sum(w) + m[3].get() + m[4][0] + m[5].k", {
        2: "o.w = v(5, 5)", 3: "d['n'] = 4", 4: "m[3].set(v(7, 7))", 5: "m[4][0] = 1",
        6: "m[5].k = 9", 7: "o.w = Tensor.ones(2)"}),
    "names that hide others": Program(
        "class A:\n    k = 2.0\n    def act(self, x): return x * 2\nclass B(A): pass\nm = B()",
        "m.act(x) * m.k + (m.late if hasattr(m, 'late') else 0) + len([1, 2])", {
        2: "m.k = 7.0", 3: "B.act = lambda self, x: x * 5", 4: "m.act = lambda x: -x",
        5: "m.late = 3", 6: "len = lambda items: 9", 7: "del m.k", 8: "B.k = 4.0"}),
    "functions under names": Program(
        "import operator\nop = operator.add\nact = Tensor.relu\ng = lambda x: x + 1\n"
        "def h(x): return x * 3", "h(g(act(op(x, -2))))", {
        2: "op = operator.mul", 3: "act = Tensor.abs", 4: "g = lambda x: x + 6",
        5: "h.__code__ = (lambda x: x * 4).__code__",
        6: "def h(x): return x", 7: "op = operator.sub"}),
    "names in texts": Program(
        "m = N(k=2.0); k = 3.0; name = 'k'", "x * getattr(m, name) + globals()['k']", {
        3: "m.k = 7.0", 5: "k = 4.0", 7: "name = 'z'; m.z = 1.0"}),
    "variables of a module that is looked up": Program(
        "import sys; sys.modules['program'] = N(); sys.modules['program'].__dict__.update(k=2.0)\n"
        "k = 2.0; t = v(1, 1); look = globals\ndef own(): return look()",
        "x * own()['k'] + (lambda n: own()[n])('t')", {
        3: "k = 7.0", 5: "t = v(5, 2)", 7: "t = Tensor.ones(2)"}),
    "variables that inner code reads": Program(
        "a = b = c = d = e = 1.0; t = v(1, 1)\n"
        "def h(x):\n    class K:\n        z = d\n    return x * K.z + (y := e)",
        "n = [a * i for i in (1, 2)]; n = [*n, *(b + i for i in n)]; g = lambda a: a * c + t; "
        "h(x) * sum(n) + g(x)", {
        2: "a = 2.0", 3: "b = 3.0", 4: "c = 5.0", 5: "d = 7.0", 6: "e = 9.0", 7: "t = v(2, 3)"}),
    "attributes that a match reads": Program(
        "class P:\n    __match_args__ = ('k',)\n    def __init__(self): self.k, self.z = 1.0, 2.0\n"
        "p = P()\ndef g(x):\n    match p:\n        case P(a, z=b): return x * a + b", "g(x)", {
        3: "p.k = 5.0", 5: "p.z = 7.0"}),
    "numbers of libraries": Program(
        "o = N(f=Fraction(1, 2)); d = ChainMap({}, {'k': 2.0})", "x * float(o.f) + d['k']", {
        3: "o.f = Fraction(7)", 5: "d['k'] = 9.0"}),
    "a leaf": Program(
        "w = v(2, 2)", "(w * x).sum().gradient(w)[0] if w.requires_grad else x * 9", {
        3: "w.requires_grad_()", 6: "w.requires_grad_(False)"}),
    "what special methods read": Program(
        "m = [2.0]\nclass G:\n    def __getattr__(self, name): return m[0]\ng = G()",
        "x * g.any", {4: "m[0] = 5.0"}),
    "a default that is a list": Program("m = 0\ndef g(x, k=[2]): return x * k[0]", "g(x)", {
        4: "g.__defaults__[0][0] = 5", 6: "g.__kwdefaults__ = {}"}),
    "a number that only counts": Program("m = N(n=0)", "m.n += 1; x * 2", {4: "m.n = 7"}),
}
# fmt: on


@dataclass
class Pair:
    w: Tensor
    l: list[Tensor]  # noqa: E741


@by_rows("name", PROGRAMS)
def test_a_replay_reads_what_a_name_stands_for(name: str) -> None:
    text, outcomes = PROGRAMS[name].text(), []
    for jit in (TinyJit, lambda function: function):
        seen: list[Any] = []
        names = {
            "__name__": "program", "N": SimpleNamespace, "M": ModuleType, "D": Pair,
            "v": vector, "np": np, "copy": copy, "dtypes": dtypes,
            "Fraction": Fraction, "ChainMap": ChainMap, "weakref": weakref,
            "threading": threading, "ContextVar": ContextVar, "MappingProxyType": MappingProxyType,
            "Tensor": Tensor, "functools": functools, "deque": deque, "jit": jit, "seen": seen,
        }  # fmt: skip
        exec(text, names)
        outcomes.append(seen)
    assert outcomes[0] == outcomes[1], text


def test_what_is_reached_and_not_used_may_change() -> None:
    model, runs = SimpleNamespace(w=vector(1, 2), last=None, log=[vector(0, 0)]), []

    def step(x: Tensor) -> Tensor:
        runs.append(1)
        return x * model.w

    call = TinyJit(step)
    for n in range(9):
        result = call(vector(n, 1))
        model.last = result * 2 if n % 2 else result.realize()
        model.log.append(result)
    assert len(runs) <= 4, "most calls are replays"


LOCALS = {
    "a variable": "t = x * 2; return t",
    "an argument": "return (lambda t, *u, v=1, **w: t * v)(x, 2)",
    "a loop": "for t in (1, 2): x = x * t\n    return x",
    "a list": "return sum([t * x for t in (1, 2)])",
    "a generator": "return sum(t * u for t in (x, x) for u in (1, 2) if u)",
    "a dict and a set": "return sum({t: x * t for t in {u for u in (1, 2)}}.values())",
    "a walrus": "return [(t := x * u) for u in (1, 2)][-1] + t",
    "an inner function": "def u(t):\n        return (lambda: t)()\n    return u(x)",
    "a free variable": "t = x\n    def u():\n        nonlocal t; t = t * 2\n    u(); return t",
    "a class": "class C: t = 3; u = 4\n    return x * C.t * C.u",
    "a key": "return dict(t=x, u=x)['t'] * {'u': x}['u']",
    "an attribute": "return x * m.t",
    "a match": "match x:\n        case t: return t * 2",
    "an exception": "try: raise ValueError\n    except ValueError as t: return x * len(t.args)",
}
"""Bodies of functions in which `t` to `w` are no variables of the module."""


@by_rows("name", LOCALS)
def test_a_variable_of_the_module_with_the_name_of_a_local_one_may_change(name: str) -> None:
    names: dict[str, Any] = {"__name__": "program", "runs": [], "m": SimpleNamespace(t=5)}
    exec(f"def f(x):\n    runs.append(1)\n    {LOCALS[name]}", names)
    call = TinyJit(names["f"])
    for n in range(6):
        names |= {each: vector(n, n) if n % 2 else n / 4 for each in "tuvw"}
        result = call(vector(n, 2)).tolist()
        assert result == names["f"](vector(n, 2)).tolist()
        names["runs"].pop()
    assert len(names["runs"]) == 2, "all other calls are replays"


@pytest.mark.parametrize("number", ["m.n", "m.l[0]", "m.d['n']"], ids=["attribute", "list", "dict"])
def test_a_number_that_the_function_changes_is_no_constant(number: str) -> None:
    names: dict[str, Any] = {"m": SimpleNamespace(n=0, l=[0], d={"n": 0}), "runs": []}
    exec(f"def f(x):\n    {number} += 1; runs.append(1)\n    return x * {number}", names)
    call, want = TinyJit(names["f"]), [[float(n), n] for n in range(1, 8)]
    with pytest.warns(RuntimeWarning, match="its kernels depend on that") as warned:
        assert [call(vector(1, 1)).tolist() for n in want] == [[n, n] for n, _ in want]
    assert len(warned) == 1 and len(names["runs"]) == len(want)

    exec(f"def f(x):\n    {number} += 1; runs.append(1)\n    return x * 3", names)
    call = TinyJit(names["f"])
    names["runs"].clear()
    assert {tuple(call(vector(1, 2)).tolist()) for _ in range(8)} == {(3, 6)}
    assert len(names["runs"]) == 3, "a number that counts alone is left alone"


def test_an_iterator_is_refused() -> None:
    numbers = itertools.count()
    call = TinyJit(lambda x: x * next(numbers))
    call(vector(1, 1))
    with pytest.raises(JitError, match="reaches the iterator"):
        call(vector(1, 1))


def test_a_constant_that_is_gone_is_not_taken_for_another() -> None:
    """Another one may get its identity."""
    m = SimpleNamespace(part=slice(0, 1))
    call = TinyJit(lambda x: x[m.part] * 2)
    for n in range(40):
        m.part = slice(0, 1) if n % 3 else slice(1, 2)
        assert call(vector(1, 5)).tolist() == [2 if n % 3 else 10]


def test_keyword_arguments_come_in_any_order() -> None:
    call = TinyJit(lambda x, a, b: x * a - b)
    every = TinyJit(lambda x, **names: sum(n * t for n, t in enumerate(names.values())))
    for n in range(6):
        a, b = vector(n, 2), vector(3, n)
        names = {"a": a, "b": b} if n % 2 else {"b": b, "a": a}
        before = GlobalCounters.kernel_count
        assert call(a, **names).tolist() == (a * a - b).tolist()
        assert call.count == (n > 0) and GlobalCounters.kernel_count > before
        assert every(a, **names).tolist() == (b if n % 2 else a).tolist()
