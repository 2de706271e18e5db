"""Which names the calling code has for values, and that nothing of the user's runs to find them."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from workbench.base.variables import DEEPEST, variables


class Item:
    """What is looked for."""

    def __init__(self, label: str = "") -> None:
        self.label = label


of_module = Item("of the module")


def named(label: str) -> list[str]:
    """Return the names that the caller has for the item of a label, the first one first."""
    return [name for name, item in variables(Item) if item.label == label]


def test_variables_of_the_function_stand_before_those_of_its_caller() -> None:
    first = second = Item("it")
    assert named("it") == ["first", "second"] and first is second

    def inner(x: Item) -> list[str]:
        return named("it")

    assert inner(second) == ["x", "first", "second"]
    assert named("of the module") == ["of_module"]


def test_a_name_means_what_it_means_nearest() -> None:
    hidden, near = Item("outer"), Item("near")

    def inner(hidden: Any, of_module: Item) -> list[list[str]]:
        return [named(label) for label in ("outer", "near", "of the module", "")]

    assert inner(3, Item()) == [[], ["near"], [], ["of_module"]]
    assert hidden is not near


class Net:
    def __init__(self) -> None:
        self.weight, self._hidden = Item("weight"), Item("hidden")

    @property
    def bias(self) -> Item:
        raise AssertionError("a property ran")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("__getattr__ ran")


def test_inside_of_lists_objects_and_modules() -> None:
    layers = [Net(), {"q": Item("q"), 3: (Item("pair"),)}]
    config = SimpleNamespace(scale=Item("scale"))
    module = ModuleType("theirs")
    module.__file__ = __file__
    module.__dict__["table"] = Item("table")
    assert named("weight") == ["layers[0].weight"]
    assert named("q") == ["layers[1]['q']"]
    assert named("pair") == ["layers[1][3][0]"]
    assert named("scale") == ["config.scale"]
    assert named("table") == ["module.table"]
    assert named("hidden") == []
    weight = layers[0]
    assert named("weight")[0] == "weight.weight", "a shorter way stands first"
    assert weight is layers[0] and config is not None


def test_library_modules_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest, "an_item", Item("of pytest"), raising=False)
    assert named("of pytest") == []


def test_what_refers_to_itself_or_is_deep_ends() -> None:
    ring: list[Any] = [Item()]
    ring.append(ring)
    deep: Any = Item()
    for _ in range(DEEPEST + 3):
        deep = [deep]
    many = [[i] for i in range(100_000)]
    found = [name for name, _ in variables(Item)]
    assert "ring[0]" in found and not any(name.startswith("deep") for name in found)
    assert len(many) == 100_000
