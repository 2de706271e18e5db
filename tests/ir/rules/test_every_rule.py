"""No rule set of the package goes without tests that evaluate both sides of its rules."""

from __future__ import annotations

from tests.support import ROOT
from tests.tools.silent_rules import package_rules, rule_sets

# Where both sides of every rule of a set are evaluated: on random inputs, and index rules at
# every point of small ranges. These files go by name through the rules, and fail for one that
# they have no graph for. A set made of these needs no line.
CHECKED = {
    "expand-functions": "tests/ir/functions/test_expand.py::test_a_formula_is_what_the_op_means",
    "simplify-values": "tests/ir/rules/test_values.py::test_both_sides_of_a_rule_agree",
    "index": "tests/ir/rules/test_index_rules.py::test_both_sides_of_a_rule_agree_at_every_point",
    "movement": "tests/ir/rules/test_movement.py::test_one_rule",
    "collapse": "tests/ir/rules/test_collapse.py::test_one_rule",
    "rangeify": "tests/ir/schedule/test_rangeify.py::test_both_sides_of_a_rule_agree",
    "split-reductions": "tests/ir/schedule/test_split.py::test_both_sides_of_a_rule_agree",
    "in-float32": "tests/ir/lower/test_low_precision.py::test_lowered_kernels_mean_the_same",
    "float16-bits": "tests/ir/lower/test_low_precision.py::test_lowered_kernels_mean_the_same",
    "fp8e4m3-bits": "tests/ir/lower/test_low_precision.py::test_lowered_kernels_mean_the_same",
    "fp8e5m2-bits": "tests/ir/lower/test_low_precision.py::test_lowered_kernels_mean_the_same",
    "bfloat16-bits": "tests/ir/lower/test_low_precision.py::test_lowered_kernels_mean_the_same",
    "decompose": "tests/ir/lower/test_decompose.py::test_both_sides_of_a_rule_agree",
}


def test_every_rule_set_is_checked() -> None:
    rules = {r.name for s in rule_sets() if s.name in CHECKED for r in s.rules}
    assert rules == set(package_rules()), "a rule set is missing in CHECKED"


def test_the_checks_are_there() -> None:
    for place in CHECKED.values():
        path, name = place.split("::")
        assert f"def {name}(" in (ROOT / path).read_text()
