"""The machine of a record, with speeds where they are known."""

from __future__ import annotations

from msgspec import to_builtins

from workbench.backends.device import Device
from workbench.measure.speeds import Rate, Speeds
from workbench.viz.record.about import device_rows, machine_row, speed_rows


def test_this_machine_has_a_name_and_cores() -> None:
    info = to_builtins(machine_row())
    assert info["cpu"] and info["cores"] >= 1
    assert [name for name, _ in info["caches"]] == sorted(n for n, _ in info["caches"])


def test_speeds_are_those_of_all_cores() -> None:
    rates = {"L1": Rate(2e11, 4e11), "L2": Rate(1e11, 5e8), "memory": Rate(1e10, 1.5e10)}
    peaks = {"f32": Rate(1e11, 2e11), "f64": Rate(5e10, 1e11)}
    copies = {level: Rate(rate.one / 2, rate.all / 2) for level, rate in rates.items()}
    rows = to_builtins(speed_rows(Speeds(peaks, rates, copies, 1e-9, 1e-10, 1e-6, 5e-6))._asdict())
    assert rows["peak"] == {"f32": 2e11, "f64": 1e11}
    assert rows["bandwidth"] == [["L1", 4e11], ["L2", 1e11], ["memory", 1.5e10]]
    assert [rate for _, rate in rows["one_thread"]["bandwidth"]] == [2e11, 1e11, 1e10]
    assert rows["copy"] == [["L1", 2e11], ["L2", 5e10], ["memory", 7.5e9]]
    assert [rate for _, rate in rows["one_thread"]["copy"]] == [1e11, 5e10, 5e9]
    unknown = speed_rows(None)._asdict()
    assert set(unknown.values()) == {None} and set(unknown) == set(rows)


def test_devices_that_can_be_chosen_come_first_and_say_what_they_are() -> None:
    here = [row for row in device_rows() if not row.elsewhere]
    assert here == sorted(here, key=lambda row: not row.available)
    assert not any(Device[row.name].only_compiles for row in here)
    for row in here:
        info = Device[row.name]
        assert row.how_to_get == (info.about if row.available else info.how_to_get)
        assert "always there" not in row.how_to_get
