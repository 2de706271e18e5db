"""`workbench doctor`: installed libraries, speeds of the machine, usable devices, settings."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator

from workbench.backends.native.machine import CPU_WITHOUT
from workbench.base.context import settings_table
from workbench.base.errors import WorkbenchError
from workbench.base.installation import library, version
from workbench.base.terminal import say

LIBRARIES = ("numpy", "llvmlite", "mini-racer", "jupyterlab", "ipywidgets", "anywidget")
VECTOR_FEATURE = re.compile(r"(avx|fma|sse4\.2|f16c|amx|neon|sve|v$)")


def doctor(options: argparse.Namespace) -> int:
    """Print the findings, one a line, also for what is missing or broken; return 0."""
    for line in _findings():
        say(line)
    return 0


def _findings() -> Iterator[str]:
    yield f"workbench   {version()}"
    yield (
        f"python      {platform.python_version()} ({platform.python_implementation()},"
        f" {platform.system()} {platform.machine()})"
    )
    for name in LIBRARIES:
        yield f"{name:11} {_version(name)}"
    yield f"cpu         {_cpu()}"
    yield from _speeds()
    yield from _devices()
    yield f"cache       {_cache()}"
    yield "settings    of the environment, and of `with Context(DEBUG=2):`"
    yield settings_table()


def _speeds() -> Iterator[str]:
    """Measure the machine again: another program may have disturbed the last measurement."""
    try:
        from workbench.measure.speeds import measured

        machine_speeds = measured()
    except (ImportError, WorkbenchError) as error:
        yield f"speeds      cannot be measured: {error}"
        return
    for kind, rate in machine_speeds.peak.items():
        speed = f"{rate.one / 1e9:.3g} GFLOP/s on one thread, {rate.all / 1e9:.3g} on all"
        yield f"peak {kind:6} {speed}"
    for level, read in machine_speeds.read.items():
        copy = machine_speeds.copy[level]
        yield (
            f"{level:11} read {read.one / 1e9:.3g} GB/s on one thread, {read.all / 1e9:.3g} on"
            f" all; copy {copy.one / 1e9:.3g}, {copy.all / 1e9:.3g}"
        )


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return f"not installed: pip install {distribution}"


def _cpu() -> str:
    cores = f"{os.cpu_count()} cores"
    try:
        llvm = library("llvmlite.binding")
        features = llvm.get_host_cpu_features()
    except (WorkbenchError, RuntimeError) as error:
        return f"{cores} ({error})"
    vector = sorted(name for name, on in features.items() if on and _is_vector(name))
    without = os.environ.get(CPU_WITHOUT, "")
    left_out = f"; CPU_WITHOUT={without}" if without else ""
    return f"{llvm.get_host_cpu_name()}, {cores}, {' '.join(vector)}{left_out}"


def _is_vector(feature: str) -> bool:
    return VECTOR_FEATURE.match(feature) is not None


def _devices() -> Iterator[str]:
    try:
        from workbench import Device
    except ImportError as error:
        yield f"devices     cannot be listed: {error}"
        return
    for device in Device:
        state = "available" if device.is_available else "not available here"
        if device.only_compiles:
            state = device.about
        elif not device.is_available:
            state += f": {device.how_to_get}"
        yield f"device      {device.name}: {state}"
    yield f"machines    elsewhere, emulated: {', '.join(Device.machine_names())}"


def _cache() -> str:
    try:
        from workbench.base.cache import cache_folder
    except ImportError as error:
        return f"cannot be found: {error}"
    return str(cache_folder())
