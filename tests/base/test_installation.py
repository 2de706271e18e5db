"""Commands that install extras name the packages themselves."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from tests.support import ROOT
from workbench.backends.device import Device
from workbench.base import installation
from workbench.base.installation import install_command

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(params=["of the distribution", "of the checkout"])
def anywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the metadata of what is installed, and with those of a checkout on the path alone."""
    if request.param == "of the checkout":
        monkeypatch.setattr(installation, "DISTRIBUTION", "no-such-distribution")
    install_command.cache_clear()
    installation.version.cache_clear()
    request.addfinalizer(install_command.cache_clear)
    request.addfinalizer(installation.version.cache_clear)


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"]))
def test_every_extra_has_a_command(anywhere: None, extra: str) -> None:
    command = install_command(extra)
    named = re.findall(r"[\w.-]+", command.lower())
    rows = PROJECT["optional-dependencies"][extra]
    packages = {re.split(r"[^\w.-]", row)[0].lower(): ";" in row for row in rows}
    assert command.startswith("pip install ") and set(named) & set(packages)
    assert {name for name, elsewhere in packages.items() if not elsewhere} <= set(named)
    assert "workbench" not in command and ";" not in command


def test_an_extra_that_there_is_not_is_an_error(anywhere: None) -> None:
    with pytest.raises(KeyError):
        install_command("abacus")


def test_the_version(anywhere: None) -> None:
    assert installation.version() == PROJECT["version"]


def test_devices_name_packages() -> None:
    assert Device["WASM"].how_to_get == install_command("wasm")
    for device in Device:
        assert device.how_to_get
        if device.extra:
            assert device.how_to_get.startswith(install_command(device.extra))


def test_importing_reads_no_metadata() -> None:
    script = "import sys, workbench; assert 'packaging' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
