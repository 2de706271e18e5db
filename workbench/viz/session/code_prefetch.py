"""Code for a machine that is not here, before a page asks for it: its compilers are slow to start.

First comes the source of each kernel, which a page opens with; then machine code, of the plain
kernels and of those with the default opts. It is compiled without the session's lock, for the cache
of machine code: what adds it to the record then finds it there, and a page that asks for something
meanwhile does not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from workbench.backends.device import Device
from workbench.base.trace import unobserved
from workbench.kernel.kernel import Kernel
from workbench.viz.record.record import MOST_KERNELS
from workbench.viz.session.live_record import LiveRecord


def prefetch_code(session: LiveRecord) -> Iterator[None]:
    """Add the source of the first kernels, and compile them; nothing on a device that is here."""
    device = Device[session.device]
    if not device.is_elsewhere:
        return
    roots = [kernel.root for kernel in session.record.kernels[:MOST_KERNELS]]
    for work in (_add_source, _add_compiled, _compile_auto):
        for root in roots:
            if session.device != device.name:
                return
            work(session, root)
            yield


def _add_source(session: LiveRecord, variant: int) -> None:
    with session.lock:
        device = Device[session.device]
        language = device.languages[0]
        if not any(c.language == language.name for c in session.row(variant).code):
            session.recorder.code.add_readable_or_error(variant, device, language)
            session.tell_changes()


def _add_compiled(session: LiveRecord, variant: int) -> None:
    kernel = session.kernels[variant]
    _compile(lambda: kernel)
    with session.lock:
        row = session.row(variant)
        if session.kernels[variant] is kernel and not row.passes and row.error is None:
            session.recorder.add_compiled(variant)
            session.tell_changes()


def _compile_auto(session: LiveRecord, variant: int) -> None:
    _compile(session.kernels[variant].optimized)


def _compile(make: Callable[[], Kernel]) -> None:
    """Compile a kernel, its machine code too; an error comes again where it is shown."""
    with suppress(Exception), unobserved():
        kernel = make()
        _ = kernel.compile(kernel.device).machine_code
