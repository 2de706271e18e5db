"""Why a function of numpy's has no row: what it needs, or returns, that no expression has."""

from __future__ import annotations

VALUES = "the values decide the shape of its result"
PYTHON = "its result is a Python value, which code may branch on"
COMPLEX = "its result is complex, and no Tensor has complex numbers"
TEXT = "it writes text or a file, or reads one"
WRITES = "it writes to its argument, and a Tensor's expression is not written into"
DATES = "it is for dates"
RECORDS = "it is for records"
STRINGS = "it is for arrays of text"
LAPACK = (
    "LAPACK computes it, by steps that depend on the values, such as which row comes next or when"
    " to stop"
)
CALLS = "it calls a Python function with arrays"
MEMORY = "it asks for the memory of arrays"
UNWRITTEN = "no expression for it has been written"
NUMBERS = "its arguments are positions or sizes, which Python needs as numbers"

_GROUPS: dict[str, tuple[str, ...]] = {
    VALUES: (
        *("argwhere", "bincount", "compress", "extract", "flatnonzero", "intersect1d", "nonzero"),
        *("setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique", "unique_all"),
        *("unique_counts", "unique_inverse", "unique_values", "histogram", "histogram2d"),
        *("histogramdd", "histogram_bin_edges"),
    ),
    PYTHON: ("allclose", "array_equal", "array_equiv", "linalg.matrix_rank"),
    COMPLEX: ("roots", "sort_complex", "linalg.eig", "linalg.eigvals"),
    TEXT: (
        *("array2string", "array_repr", "array_str", "fromfile", "fromstring", "frombuffer"),
        *("fromiter", "genfromtxt", "loadtxt", "save", "savetxt", "savez", "savez_compressed"),
    ),
    WRITES: ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"),
    DATES: ("busday_count", "busday_offset", "datetime_as_string", "is_busday"),
    LAPACK: (
        *("linalg.cholesky", "linalg.cond", "linalg.det", "linalg.eigh", "linalg.eigvalsh"),
        *("linalg.inv", "linalg.lstsq", "linalg.pinv", "linalg.qr", "linalg.slogdet"),
        *("linalg.solve", "linalg.svd", "linalg.svdvals", "linalg.tensorinv"),
        *("linalg.tensorsolve", "polyfit"),
    ),
    CALLS: ("apply_along_axis", "apply_over_axes", "fromfunction", "piecewise"),
    MEMORY: ("may_share_memory", "shares_memory"),
    NUMBERS: (
        *("diag_indices_from", "einsum_path", "tril_indices_from", "triu_indices_from"),
        *("ravel_multi_index", "unravel_index"),
    ),
    UNWRITTEN: (
        *("argpartition", "choose", "geomspace", "i0", "insert", "lexsort"),
        *("logspace", "nanargmax", "nanargmin", "nanmedian", "nanpercentile", "nanquantile"),
        *("packbits", "partition", "poly", "polyadd", "polyder", "polydiv", "polyint", "polymul"),
        *("polysub", "unpackbits", "unwrap"),
    ),
}
REASONS: dict[str, str] = {name: reason for reason, names in _GROUPS.items() for name in names}
"""Why a function has no row, by its name in numpy."""
_MODULES = {
    "fft.": COMPLEX,
    "lib.recfunctions.": RECORDS,
    "lib.scimath.": COMPLEX,
    "char.": STRINGS,
    "strings.": STRINGS,
}
"""Why no function of a module has a row."""
_OF_MASKS = frozenset({"argwhere", "compress", "extract", "flatnonzero", "nonzero"})
_BY_MASK = "np.where(mask, x, 0) or np.sum(x, where=mask), whose shapes are known"
REFUSED = frozenset(_GROUPS[WRITES])
"""Functions that are refused; the others without a row compute their Tensors."""


def reason_of(name: str) -> str:
    """Return why a function has no row."""
    for module, reason in _MODULES.items():
        if name.startswith(module):
            return reason
    return REASONS.get(name, UNWRITTEN)


def hint_of(name: str) -> str:
    """Return what to do in place of a function without a row, where nothing is computed."""
    result = ".real and .imag of its result" if name.startswith("fft.") else "its result"
    before = f"np.{name} before the call, and {result} as an argument"
    return f"{_BY_MASK}, or {before}" if name in _OF_MASKS else before


def has_reason(name: str) -> bool:
    """Whether a reason is stated for a function."""
    return name in REASONS or name.startswith(tuple(_MODULES))
