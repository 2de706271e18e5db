"""The table of devices by name: those of the package, and those that users register.

`Device["LLVM"]` is a DeviceInfo. Devices are imported, and the machine is queried, on demand:
`import workbench` must not load llvmlite.
"""

from __future__ import annotations

import os
import pkgutil
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec

from workbench import backends
from workbench.backends.contract import DeviceInfo as DeviceInfo
from workbench.backends.contract import Program as Program
from workbench.backends.elsewhere import Elsewhere
from workbench.backends.memory import memories
from workbench.backends.program.text import Language
from workbench.base.context import DEV
from workbench.base.errors import DeviceError, require
from workbench.base.target import Target


class Devices:
    """The registry. `Device[name]` takes a name or an alias, in any case; `Device["NAME:MACHINE"]`,
    or `Device["MACHINE"]`, is a device on a machine that need not be here.

    `Device.DEFAULT` is the DEV of a `with Context(DEV=...)`, else the name it was set to, else the
    environment's DEV, else the available device of the least rank.
    """

    def __init__(self, devices: Iterable[DeviceInfo]):
        self._devices: dict[str, DeviceInfo] = {}
        for device in devices:
            self._add(device)
        self._own = frozenset(self._devices)
        self._elsewhere: dict[str, DeviceInfo] = {}
        self._default = ""

    def __getitem__(self, name: str) -> DeviceInfo:
        key = self.canonical(name)
        return self._elsewhere[key] if ":" in key else self._devices[key]

    def __iter__(self) -> Iterator[DeviceInfo]:
        return iter(self._devices.values())

    def __repr__(self) -> str:
        return f"<Device: {', '.join(self._devices)}; default {self.DEFAULT}>"

    def register(self, device: DeviceInfo) -> DeviceInfo:
        """Add a device to all lists of devices and languages, and return it. It replaces a device
        that was registered by the same name.

        Errors: DeviceError for a value that is not a DeviceInfo, and for a name or alias that is
        not a word in capitals, or that the package or another device has.
        """
        what = f"cannot register {device!r:.60}"
        if not isinstance(device, DeviceInfo):
            because = f"{type(device).__name__} is not a DeviceInfo"
            raise DeviceError(what, because, "an object of a subclass of DeviceInfo")
        names = (device.name, *device.aliases)
        for name in names:
            if not name.isidentifier() or name != name.upper():
                because = f"{name!r:.40} is not a word in capitals"
                raise DeviceError(what, because, 'a name such as "GPU"')
            if self._name_of(name) not in (None, device.name) or name in self._own:
                because = f"there is a device {name}"
                raise DeviceError(what, because, "another name")
        self._add(device)
        for machine in self._machines_of(device.name):
            del self._elsewhere[machine]
        return device

    def unregister(self, name: str) -> None:
        """Remove a registered device. Errors: DeviceError for one of the package, for a machine of
        a device, and for an unknown name."""
        key = self.canonical(name)
        what, device = f"cannot remove the device {key}", key.partition(":")[0]
        if device in self._own:
            raise DeviceError(
                what, "it is one of the package's own", "the name of one that was registered"
            )
        if device != key:
            raise DeviceError(what, "a machine is removed with its device", device)
        del self._devices[key], memories[key]
        for machine in self._machines_of(key):
            del self._elsewhere[machine], memories[machine]
        if self._default == key:
            self._default = ""

    def canonical(self, name: str) -> str:
        """Return the registry's name of a device.

        Errors: DeviceError for an unknown name, with the list of known ones.
        """
        device, colon, machine = str(name).partition(":")
        key = self._name_of(device.upper())
        if key is not None and colon:
            return self._canonical_machine(key, machine)
        qualified = self._qualified_name(str(name)) if key is None else None
        if qualified is not None:
            return self.canonical(qualified)
        if key is None:
            names = list(self._devices)
            near = get_close_matches(device.upper(), names, 2)
            raise DeviceError(
                f"there is no device {name!r:.60}",
                "the devices are " + ", ".join(names),
                " or ".join(map(repr, near)) or f"one of them, such as {names[0]!r}",
            )
        return key

    def names(self) -> tuple[str, ...]:
        """Return the names of all devices, available or not."""
        return tuple(self._devices)

    def on_machine(self, device: str | None = "", machine: str | Target | None = "") -> str:
        """Return the name of a device on a machine that need not be here. "CUDA" and "H100" give
        "CUDA:H100"; so do "H100" as `machine` alone, "CUDA:H100" as either argument alone, and a
        Target of that machine ("" and None: not given). Without `machine`, a device that is
        available or only compiles gives its own name, any other one its first machine.

        Errors: DeviceError for an unknown name, with the known ones, and for a device that is not
        available and has no machines.
        """
        device = "" if device is None else device
        machine = "" if machine is None else machine
        require(device, str, "on_machine: device", "one of Device.names()")
        require(machine, (str, Target), "on_machine: machine", '"H100"')
        if isinstance(machine, Target):
            of_device, _, alone = machine.device.partition(":")
            device, machine = device or of_device, alone
        if not device:
            named = self._name_of(str(machine).upper())
            return self.on_machine(named) if named else self._device_of(str(machine))
        name = self.canonical(device)
        if machine:
            return self.canonical(f"{name.partition(':')[0]}:{machine}")
        if ":" in name or self.available(name) or self[name].only_compiles:
            return name
        first = next(iter(self[name].machines), None)
        if first is None:
            raise self[name].missing()
        return self.canonical(f"{name}:{first}")

    def machine_names(self) -> list[str]:
        """Return the names of all devices on machines that need not be here."""
        return [f"{d.name}:{m}" for d in self._devices.values() for m in d.machines]

    def runner(self, name: str) -> str:
        """Return the name of the device that computes the inputs of a device's kernels: the device
        itself, or the first available one for a device elsewhere."""
        if not self[name].is_elsewhere:
            return name
        return next(n for n, d in self._devices.items() if d.is_available)

    def is_own(self, name: str) -> bool:
        """Return whether a device is one of the package, which every process has."""
        return self.canonical(name).partition(":")[0] in self._own

    def available(self, name: str) -> bool:
        """Return whether a device can run kernels here."""
        return self[name].is_available

    @property
    def processor(self) -> DeviceInfo:
        """The package's device that runs on this machine's own processor: one that is available, if
        any."""
        devices = [d for d in self._of_package() if d.is_processor]
        return next((d for d in devices if d.is_available), devices[0])

    @property
    def emulator(self) -> DeviceInfo:
        """The package's device that runs the statement tree of any device."""
        return next(d for d in self._of_package() if d.is_emulator)

    @property
    def reader(self) -> DeviceInfo:
        """The package's device whose language has every operation: any kernel can be read in it,
        also where the device cannot run."""
        return next(d for d in self._of_package() if d.renders_anywhere)

    @property
    def renderers(self) -> list[DeviceInfo]:
        """The other devices that cannot run here, but in whose languages kernels can be read."""
        return [
            d
            for d in self._devices.values()
            if d.renders_anywhere and not d.is_available and d is not self.reader
        ]

    def for_language(self, name: str) -> DeviceInfo | None:
        """Return the device that runs text of a language, the package's devices first; None where
        there is none."""
        require(name, str, "for_language: name", '"C"')
        devices = (*self._of_package(), *self._devices.values())
        languages = ((d.language, d) for d in devices)
        return next((d for language, d in languages if language and language.name == name), None)

    def for_text(self, language: str, own: str) -> DeviceInfo | None:
        """Return the device for edited text of a language: `own` if the language is its own, else
        the first that has it, else None. A device that is not available is returned on its first
        machine, if it has machines."""
        first = self[own].language
        is_own = first is not None and first.name == language
        device = self[own] if is_own else self.for_language(language)
        if device is None or device.is_available or device.is_elsewhere:
            return device
        return self[self.on_machine(device.name)] if device.machines else device

    def renderer_of(self, name: str) -> tuple[DeviceInfo, Language] | None:
        """Return a device that renders the language `name`, and the language; None where there is
        none. `renderers` come first, then devices with work-groups on their first machines."""
        require(name, str, "renderer_of: name", '"C"')
        devices = [*self.renderers, *self._first_machines()]
        pairs = ((d, each) for d in devices for each in d.languages)
        return next((pair for pair in pairs if pair[1].name == name), None)

    @property
    def DEFAULT(self) -> str:
        """The device of tensors without a `device` argument."""
        named = DEV.value
        if self._default and named == os.environ.get("DEV", ""):
            return self._default
        if named:
            return self.canonical(named)
        return next(name for name, d in self._devices.items() if d.is_available)

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        self._default = self.canonical(name)

    def _canonical_machine(self, device: str, machine: str) -> str:
        other = self._devices[device].on(machine)
        if other is not None:
            return self._add_machine(other)
        machines = self._devices[device].machines
        name = {_spelling(m): m for m in machines}.get(_spelling(machine))
        if name is None:
            raise self._no_machine(device, machine)
        key = f"{device}:{name}"
        if key in self._elsewhere:
            return key
        return self._add_machine(Elsewhere(self._devices[device], name))

    def _no_machine(self, device: str, machine: str) -> DeviceError:
        what = f"there is no machine {machine!r:.60} of {device}"
        because, hint = "it has none", device
        if machines := list(self._devices[device].machines):
            because = "the machines are " + ", ".join(machines)
            hint = f"{device}:{machines[0]}"
        name = self._qualified_name(machine)
        if name is not None:
            because, hint = f"it is one of {name.partition(':')[0]}", name
        return DeviceError(what, because, hint)

    def _add_machine(self, info: DeviceInfo) -> str:
        """Add a device on a machine, unless its name is there already; return the name."""
        memories.setdefault(info.name, info.memory)
        self._elsewhere.setdefault(info.name, info)
        return info.name

    def _machines_of(self, device: str) -> list[str]:
        """Return the names of a device's machines that have been requested."""
        return [name for name in self._elsewhere if name.startswith(f"{device}:")]

    def _first_machines(self) -> Iterator[DeviceInfo]:
        for device in self._devices.values():
            first = next(iter(device.machines), None)
            if first is not None and device.machines[first].has_groups:
                yield self[f"{device.name}:{first}"]

    def _device_of(self, machine: str) -> str:
        """Return the name of a machine with its device: "CUDA:H100". Errors: DeviceError."""
        if ":" in machine:
            return self.canonical(machine)
        name = self._qualified_name(machine)
        if name is not None:
            return self.canonical(name)
        names = ", ".join(self.machine_names())
        what = f"there is no machine {machine!r:.60}"
        raise DeviceError(what, f"the machines are {names}", "one of them")

    def _qualified_name(self, machine: str) -> str | None:
        """Return the name of a machine with its device, as `machine_names` has it, or None."""
        named = ((n.partition(":")[2], n) for n in self.machine_names())
        spelling = _spelling(machine)
        return next((n for m, n in named if _spelling(m) == spelling), None)

    def _of_package(self) -> list[DeviceInfo]:
        return [d for name, d in self._devices.items() if name in self._own]

    def _add(self, device: DeviceInfo) -> None:
        devices = self._devices | {device.name: device}
        self._devices = dict(sorted(devices.items(), key=lambda row: row[1].rank))
        memories[device.name] = device.memory

    def _name_of(self, key: str) -> str | None:
        if key in self._devices:
            return key
        named = (name for name, d in self._devices.items() if key in d.aliases)
        return next(named, None)


def _spelling(machine: str) -> str:
    """Return the name of a machine for comparisons: capitals without blanks, dashes and `_`."""
    return re.sub(r"[\s_-]", "", machine).upper()


def _package_devices() -> list[DeviceInfo]:
    """Return the `DEVICE` of each module NAME_device in a folder NAME of this package."""
    folders = [m.name for m in pkgutil.iter_modules(backends.__path__) if m.ispkg]
    modules = [f"{backends.__name__}.{name}.{name}_device" for name in folders]
    return [import_module(module).DEVICE for module in modules if find_spec(module) is not None]


Device = Devices(_package_devices())
"""All devices, by name."""
