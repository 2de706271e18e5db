// The states that a record leaves out for want of room, made in the page: a rewrite replaces one
// node, and everything that reads it is made anew. New nodes go into a table of the page's own,
// behind those of the record; `workbench/viz/record/states.py` says what it must come to.

const NODE_COLUMNS = ["op", "dtype", "shape", "arg", "src", "label", "line", "inner", "made"];

/** Return a table to which nodes can be added; those of the record keep their numbers. */
export function replayTable(nodes) {
  const columns = Object.fromEntries(NODE_COLUMNS.map((name) => [name, nodes[name].slice()]));
  const count = nodes.op.length;
  let places = null; // what a node is -> its number
  const nameOf = (n, src) => `${columns.op[n]} ${columns.dtype[n]} ${src} ${columns.arg[n]}`;
  /** Return the node that is like `n` but for its sources. */
  const rebuild = (n, src) => {
    if (src.every((s, i) => s === columns.src[n][i])) return n;
    places ??= new Map(columns.op.map((_, m) => [nameOf(m, columns.src[m]), m]));
    const name = nameOf(n, src);
    if (places.has(name)) return places.get(name);
    for (const column of NODE_COLUMNS) {
      columns[column].push(column === "src" ? src : column === "made" ? [] : columns[column][n]);
    }
    places.set(name, columns.op.length - 1);
    return columns.op.length - 1;
  };
  return { columns, count, rebuild, isReal: (n) => n < count };
}

/** Return the root after all of `changes` (Map before -> after) are applied below `root`. */
export function replayRoot(table, changes, root) {
  const { src } = table.columns;
  const done = new Map();
  const begun = new Set();
  const stack = [[root, 0, root]];
  while (stack.length) {
    const [n, stage, result] = stack.pop();
    if (done.has(n)) continue;
    if (stage === 0) {
      stack.push([n, 1, n]);
      for (const s of src[n]) if (!done.has(s)) stack.push([s, 0, s]);
    } else if (stage === 2) done.set(n, done.get(result));
    else {
      const made = table.rebuild(n, src[n].map((s) => done.get(s)));
      const after = changes.get(made);
      if (after === undefined || begun.has(made)) done.set(n, done.get(made) ?? made);
      else {
        begun.add(made); // rewrites that go round would not end without it
        stack.push([n, 2, after], [made, 2, after], [after, 0, after]);
      }
    }
  }
  return done.get(root);
}
