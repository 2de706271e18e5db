"""Asynchronous copies to shared memory: PTX's cp.async, in a function.

    __device__ inline void begin_copy_16(void *to, const void *from, int size) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ..);
    }

Of `size` bytes on there are zeros. What was begun since the last commit is a batch.
Source: PTX ISA 8.5, "Data Movement and Conversion Instructions: cp.async".
"""

from __future__ import annotations

COPY_BYTES = (4, 8, 16)
COMMIT = 'asm volatile("cp.async.commit_group;");'
WAIT = 'asm volatile("cp.async.wait_group %d;" ::: "memory");'


def copy_function(name: str, nbytes: int) -> str:
    """Return the function that begins a copy of `nbytes`; those of 16 bypass the first cache."""
    cache = "cg" if nbytes == max(COPY_BYTES) else "ca"
    return "\n".join(
        [
            f"__device__ inline void {name}(void *to, const void *from, int size) {{",
            f'  asm volatile("cp.async.{cache}.shared.global [%0], [%1], {nbytes}, %2;"',
            '      :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(size)',
            '      : "memory");',
            "}",
        ]
    )
