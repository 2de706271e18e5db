// Loop limits in edited programs, since an endless loop on the GPU can freeze the page. So a text
// first runs with a limit in each loop. A WGSL program cannot run for ever in another way: its
// functions cannot be recursive.

/** How often the loops of all work-items may go around together: twice what a page has kernels for. */
const MOST_STEPS = 1 << 25;
const LEAST_STEPS = 1 << 12;
const SIZE = /@\s*workgroup_size\s*\(([^)]*)\)/;

const WORD = /\b(?:fn|for|while|loop)\b/g;

/** How often a loop may go around in a work-item.
 * @param {string} text
 * @param {number[]} grid */
export function mostSteps(text, grid) {
  const sizes = SIZE.exec(withoutComments(text))?.[1].split(",").map(parseFloat) ?? [];
  const items = [...grid, ...sizes].reduce((product, size) => product * (size || 1), 1);
  return Math.max(LEAST_STEPS, Math.floor(MOST_STEPS / items));
}

/** Return a text of WGSL whose loops end: where one goes around too often, it is left, and the buffer
 * of the second group is set. Lines stay where they are.
 * @param {string} text
 * @param {number} most */
export function bounded(text, most) {
  const code = withoutComments(text);
  /** @type {{at: number, words: string}[]} */
  const insertions = [];
  let [body, count] = [0, 0];
  for (const { 0: word, index } of code.matchAll(WORD)) {
    const at = code.indexOf("{", index) + 1;
    if (!at) break;
    if (word === "fn") {
      body = at;
      continue;
    }
    const name = `steps_of_loop_${count++}`;
    const say = `if (${name} == ${most + 1}u) { atomicStore(&is_endless, 1u); }`; // once
    insertions.push({ at: body, words: ` var ${name} = 0u;` });
    insertions.push({
      at,
      words: ` ${name} += 1u; if (${name} > ${most}u) { ${say} break; }`,
    });
  }
  insertions.sort((a, b) => b.at - a.at);
  const all = insertions.reduce(
    (so, { at, words }) => so.slice(0, at) + words + so.slice(at),
    text,
  );
  return `${all}\n@group(1) @binding(0) var<storage, read_write> is_endless: atomic<u32>;\n`;
}

/** Return a text with spaces in the place of comments, which may be in each other.
 * @param {string} text */
export function withoutComments(text) {
  let [out, depth] = ["", 0];
  for (let i = 0; i < text.length; i++) {
    const two = text.slice(i, i + 2);
    if (two === "/*" || (two === "*/" && depth)) {
      depth += two === "/*" ? 1 : -1;
      out += "  ";
      i++;
    } else if (two === "//" && !depth) {
      const end = text.indexOf("\n", i);
      const length = (end < 0 ? text.length : end) - i;
      out += " ".repeat(length);
      i += length - 1;
    } else {
      out += depth && text[i] !== "\n" ? " " : text[i];
    }
  }
  return out;
}
