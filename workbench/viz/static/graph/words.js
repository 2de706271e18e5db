// Words on a drawing: the bytes on a line that is cut, the title of a kernel. They stand where
// nothing covers them, on a ground of their own, and do not shrink with the picture.
// A word is {text, kind: "bytes" | "title", spots: [[x, y]..], edge, region}; placing it adds
// {x, y, w, h}, the middle and the size.

const WORD_HEIGHT = 16;
const WORDS_FROM = 0.75; // the scale below which words stay as large as they are
const WORDS_GROW = 2.2; // and how much larger than the picture they become at most

/** How many times as large as the picture words are drawn. */
export const wordsScale = (scale) => Math.min(WORDS_GROW, Math.max(1, WORDS_FROM / scale));

/** Return the words that have a place, the first of their spots that is free; bytes are never
 * left out, a title is. */
export function placedWords(nodes, wanted) {
  const placed = [];
  for (const word of wanted) {
    const size = { w: textWidth(word.text, 11, "bold") + 12, h: WORD_HEIGHT };
    const free = word.spots.find(([x, y]) =>
      ![...placed, ...nodes].some((box) => overlaps(box, { x, y, ...size }))
    );
    const [x, y] = free || word.spots[0];
    if (free || word.kind === "bytes") placed.push({ ...word, ...size, x, y });
  }
  return placed;
}

const overlaps = (a, b) =>
  Math.abs(a.x - b.x) < (a.w + b.w) / 2 + 1 && Math.abs(a.y - b.y) < (a.h + b.h) / 2 + 1;

/** The places for words on a line: in the gaps after its source and before its reader, then along it. */
export function lineSpots(points) {
  const middles = points.slice(1).map((
    [x, y],
    i,
  ) => [(x + points[i][0]) / 2, (y + points[i][1]) / 2]);
  const shifted = [0.3, 0.7].map((t) => points[0].map((v, i) => v + (points[1][i] - v) * t));
  return [middles[0], middles.at(-1), ...middles.slice(1, -1), ...shifted];
}

const MEASURING = new Map(); // font -> a context that has it, as setting a font takes its time

/** How wide a text is, in pixels. */
export function textWidth(text, size, weight = "") {
  const font =
    `${weight} ${size}px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif`;
  if (!MEASURING.has(font)) {
    MEASURING.set(font, Object.assign(document.createElement("canvas").getContext("2d"), { font }));
  }
  return MEASURING.get(font).measureText(text).width;
}
