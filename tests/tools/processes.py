"""Which processes there are, from /proc: tests look for those that stay behind."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> set[int]:
    """Return the living processes whose parent is `pid`."""
    pids = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            pids.add(int(folder.name))
    return pids


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
