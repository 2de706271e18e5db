"""What the tests of records share: walking through a record, applying a patch, an outline."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from msgspec import to_builtins

from workbench.base.typed import typed
from workbench.viz.page.document import export_html
from workbench.viz.schema.record import PageRecord

Record = dict[str, Any]


def plain(value: Any) -> Any:
    """Return a record, or a part of it, as a page gets it; fails on what JSON does not have."""
    return json.loads(json.dumps(to_builtins(value), allow_nan=False))


def exported(page_record: Record) -> str:
    """Return the file that shows the record that a page has."""
    return export_html(typed(page_record, PageRecord))


def timeless(record: Record) -> Record:
    """Return a copy without what differs between two runs: times, and what is predicted of
    them."""
    speeds = dict.fromkeys(("peak", "bandwidth", "copy", "one_thread"))
    runs = [run | {"predicted_s": None} for run in record["plan"]["runs"]]
    return record | {
        "machine": record["machine"] | speeds,
        "passes": [row | {"seconds": 0.0} for row in record["passes"]],
        "plan": record["plan"] | {"runs": runs},
        "variants": [_timeless_variant(row) for row in record["variants"]],
    }


def _timeless_variant(row: Record) -> Record:
    offers = sorted(row["offers"], key=lambda offer: str(offer["opt"]))
    unpredicted = [offer | {"predicted": None, "why": None} for offer in offers]
    return row | {"bound": None, "cost": None, "offers": unpredicted}


def patched(record: Record, patch: Record) -> Record:
    """Return a record with a patch applied, as a page does it. What is the same is shared."""
    result = dict(record)
    for name, rows in patch["append"].items():
        if name == "nodes":
            longer = {column: result[name][column] + rows[column] for column in rows}
            result[name] = result[name] | longer
        else:
            result[name] = result[name] + rows
    for path, value in patch["set"]:
        at = result
        for step in path[:-1]:
            at[step] = copy.copy(at[step])
            at = at[step]
        at[path[-1]] = value
    return result


def references(record: Record) -> Iterator[tuple[str, str, int]]:
    """Yield (where, table, place) of every reference in a record."""
    nodes = record["nodes"]
    for node, sources in enumerate(nodes["src"]):
        yield from (("src", f"nodes<{node}", s) for s in sources)
        for place, number, source in nodes["causes"][node]:
            yield "causes", "passes", place
            yield "causes", "nodes", source
            if number > 0:
                yield "causes", f"rewrites of {place}", number - 1
        for chain in nodes["lines"][node]:
            yield from (("node.lines", "lines", line) for line in chain)
    for row in record["passes"]:
        yield from (("pass", "nodes", n) for n in row["before"] + row["after"])
        texts = (row["text_before"], row["text_after"])
        yield from (("pass.text", "texts", t) for t in texts if t is not None)
        if row["kernel"] is not None:
            yield "pass.kernel", "kernels", row["kernel"]
        for rule, before, after, root, _ in row["rewrites"]:
            if rule != -1:
                yield "rewrite", "rules", rule
            numbers = (before, after) if root == -1 else (before, after, root)
            yield from (("rewrite", "nodes", n) for n in numbers)
    yield from _plan_references(record["plan"])
    for row in record["kernels"]:
        yield "kernel.root", "variants", row["root"]
        if row["line"] is not None:
            yield "kernel.line", "lines", row["line"]
        yield from (("kernel.inner", "lines", line) for line in row["inner"])
        if row["decision"] is not None:
            yield "kernel.decision", "decisions", row["decision"]
    for row in record["variants"]:
        yield from _variant_references(row)


def _plan_references(plan: Record) -> Iterator[tuple[str, str, int]]:
    for node in plan["nodes"]:
        yield "plan.node", "nodes", node["n"]
        yield from (("plan.kernels", "kernels", k) for k in node["kernels"])
        if node["line"] != -1:
            yield "plan.line", "lines", node["line"]
    for edge in plan["edges"]:
        yield from (("edge", "plan.nodes", end) for end in (edge["a"], edge["b"]))
    yield from (("region", "kernels", r["kernel"]) for r in plan["regions"])
    for read in plan["reads"]:
        source, reader, node, _ = read
        yield from (("read", "kernels", k) for k in (source, reader))
        yield "read", "nodes", node
    for repeat in plan["repeats"]:
        last = repeat["first"] + repeat["size"] * repeat["times"] - 1
        yield from (("repeat", "kernels", k) for k in (repeat["first"], last))
    yield from (("run", "kernels", run["like"]) for run in plan["runs"])
    for decision in plan["decisions"]:
        yield "decision", "nodes", decision["node"]
        if decision["kernel"] is not None:
            yield "decision", "kernels", decision["kernel"]


def _variant_references(row: Record) -> Iterator[tuple[str, str, int]]:
    yield "variant", "kernels", row["kernel"]
    if row["parent"] is not None:
        yield "variant.parent", "variants", row["parent"]
    yield from (("variant.passes", "passes", p) for p in row["passes"])
    for line in row["loops"]["rows"] if row["loops"] else ():
        yield from (("row", "nodes", n) for n in line["nodes"])
        yield from (("row", "lines", n) for n in line["lines"])
    for code in (*row["code"], *row["code_elsewhere"]):
        for link in filter(None, code["links"]):
            yield from (("link", "nodes", n) for n in link["nodes"])
            yield from (("link", "lines", n) for n in link["lines"])


def broken(record: Record) -> list[tuple[str, str, int]]:
    """Return the references that lead nowhere; a source must stand before its user."""
    sizes = {name: len(record[name]) for name in ("texts", "rules", "passes", "lines")}
    sizes |= {"kernels": len(record["kernels"]), "variants": len(record["variants"])}
    sizes |= {"nodes": len(record["nodes"]["op"])}
    sizes |= {"plan.nodes": len(record["plan"]["nodes"])}
    sizes |= {"decisions": len(record["plan"]["decisions"])}

    def size(table: str) -> int:
        if table.startswith("rewrites of "):
            return len(record["passes"][int(table[12:])]["rewrites"])
        return int(table[6:]) if table.startswith("nodes<") else sizes[table]

    return [
        reference for reference in references(record) if not 0 <= reference[2] < size(reference[1])
    ]


# outlines


def outline(record: Record) -> str:
    """Return a record for people to read: no times, nothing of the machine."""
    label = record["nodes"]["label"]
    lines = [f"{record['headline']}", "plan"]
    for node in record["plan"]["nodes"]:
        stored = "" if node["stored_by"] is None else f", stored by {node['stored_by']}"
        lines.append(f"  {node['label']}: {node['role']} of {node['kernels']}{stored}")
    for edge in record["plan"]["edges"]:
        names = [record["plan"]["nodes"][edge[end]]["label"] for end in "ab"]
        lines.append(f"  {names[0]} -> {names[1]}{'  cut' if edge['cut'] else ''}")
    lines.append("decisions")
    for d in record["plan"]["decisions"]:
        what = "stored" if d["stored"] else "fused"
        lines.append(f"  {label[d['node']]} {what} in {d['kernel']}: {d['reason']}")
    lines.append("passes")
    for row in record["passes"]:
        lines.append(f"{'  ' * (row['depth'] + 1)}{pass_text(row)}")
        for rule, before, after, *_ in row["rewrites"]:
            if rule != -1:
                name = record["rules"][rule]["name"]
                lines.append(f"    {name}: {label[before]} -> {label[after]}")
    for row in record["variants"]:
        lines += variant_lines(row)
    return "\n".join(lines)


def pass_text(row: Record) -> str:
    kernel = "" if row["kernel"] is None else f" of kernel {row['kernel']}"
    count = len(row["rewrites"])
    state = f"{count} {row['unit']}s" if count else row["unit"]
    return f"{row['name']}{kernel}: {state}{'' if row['changed'] else ', no change'}"


def variant_lines(row: Record) -> list[str]:
    axes = " ".join(f"{a['name']}={a['size']} {a['kind']}" for a in row["axes"])
    lines = [f"variant {row['name']} of kernel {row['kernel']}: {axes}"]
    for line in row["loops"]["rows"]:
        pad = "  " * (line["depth"] + 1)
        if line["kind"] == "statement":
            lines.append(pad + line["text"].split("\n")[-1])
        else:
            uses = [f"{b} {u['stride']}|{u['bytes']}" for b, u in line["uses"].items()]
            lines.append(f"{pad}{line['axis_kind']} {line['axis']}  {', '.join(uses)}")
    for code in row["code"]:
        lines.append(f"  {code['language']}: {code['lines'][0]}")
    return lines
