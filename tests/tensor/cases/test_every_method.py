"""Every public method of Tensor has a row that is compared with torch's, or a reason here."""

from __future__ import annotations

from tests.tensor.cases.table import cases
from workbench import Tensor

# fmt: off
REASONS = {
    "it makes a tensor of numbers or draws": """
        const dropout empty empty_like glorot_uniform invalids kaiming_normal kaiming_uniform
        manual_seed multinomial normal ones rand rand_like randint randn randn_like randperm
        scaled_uniform uniform zeros""",
    "its result has no floats, and so no gradient": """
        all any bitcast bool eq ge gt hash idiv int keccak le logical_not long lt ne""",
    "it is about the tensor, not its value": """
        data element_size from_blob from_dlpack from_numpy is_floating_point is_param_ item
        max_numel nbytes numel numpy realize replace
        requires_grad_ schedule size to to_ to_device tolist ufix""",
    "it writes": "assign",
    "the kernel is the user's": "custom_kernel",
    "it is about gradients": """
        backward contiguous_backward custom_gradient detach enable_grad gradient no_grad train""",
    "tests of low-precision types have it": "bfloat16",
}
# fmt: on


def test_every_method_has_a_row_or_a_reason() -> None:
    public = {
        name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name))
    }
    rows = {case.name for _, case in cases()}
    others = {name for names in REASONS.values() for name in names.split()}
    assert public - rows - others == set()
    assert others <= public
