// Words on a drawing: the bytes on a line that is cut, the title of a kernel. They stand where
// nothing covers them, on a ground of their own, and do not shrink with the picture.
// A word is {text, kind: "bytes" | "title", spots: [[x, y]..], edge, region}; placing it adds
// {x, y, w, h}, the middle and the size.

const WORD_HEIGHT = 16;
const WORDS_FROM = 0.75; // the scale below which words stay as large as they are
const WORDS_GROW = 2.2; // and how much larger than the picture they become at most

/** How many times as large as the picture words are drawn. */
const words_scale = (scale) => Math.min(WORDS_GROW, Math.max(1, WORDS_FROM / scale));

/** Return the words that have a place, the first of their spots that is free; bytes are never
 * left out, a title is. */
function placed_words(nodes, wanted) {
  const placed = [];
  for (const word of wanted) {
    const size = { w: text_width(word.text, 11, "bold") + 12, h: WORD_HEIGHT };
    const free = word.spots.find(([x, y]) => ![...placed, ...nodes].some((box) => overlaps(box, { x, y, ...size })));
    const [x, y] = free || word.spots[0];
    if (free || word.kind === "bytes") placed.push({ ...word, ...size, x, y });
  }
  return placed;
}

const overlaps = (a, b) => Math.abs(a.x - b.x) < (a.w + b.w) / 2 + 1 && Math.abs(a.y - b.y) < (a.h + b.h) / 2 + 1;

/** The places for words on a line: in the gaps after its source and before its reader, then along it. */
function line_spots(points) {
  const middles = points.slice(1).map(([x, y], i) => [(x + points[i][0]) / 2, (y + points[i][1]) / 2]);
  const shifted = [0.3, 0.7].map((t) => points[0].map((v, i) => v + (points[1][i] - v) * t));
  return [middles[0], middles.at(-1), ...middles.slice(1, -1), ...shifted];
}

const MEASURING = new Map(); // font -> a context that has it, as setting a font takes its time

/** How wide a text is, in pixels. */
function text_width(text, size, weight = "") {
  const font = `${weight} ${size}px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif`;
  if (!MEASURING.has(font)) MEASURING.set(font, Object.assign(document.createElement("canvas").getContext("2d"), { font }));
  return MEASURING.get(font).measureText(text).width;
}

function svg_word(word) {
  const { text, kind, w, h: height } = word;
  return svg("g", { class: `wb-g-words wb-g-words-${kind}` },
    svg("rect", { x: -w / 2, y: -height / 2, width: w, height, rx: height / 2 }),
    svg("text", { y: 4 }, text));
}

function canvas_word(context, word, grow, colours) {
  context.save();
  context.translate(word.x, word.y);
  context.scale(grow, grow);
  context.beginPath();
  context.roundRect(-word.w / 2, -word.h / 2, word.w, word.h, word.h / 2);
  context.fillStyle = colours.ground;
  context.fill();
  context.lineWidth = 1.4;
  context.strokeStyle = colours.text;
  if (word.kind === "bytes") context.stroke();
  context.textAlign = "center";
  context.font = `bold ${colours.font(11)}`;
  context.fillStyle = colours.text;
  context.fillText(word.text, 0, 4);
  context.restore();
}

// what lies at a point

let HITTING = null; // a context: it knows what is in a path

/** Return a function (x, y, scale) -> {node}, {edge}, {region} or {} of a drawing: what of it is
 * there. Lines count if there are words on them. */
function graph_hits({ nodes, edges, words = [], regions = [] }) {
  HITTING ??= Object.assign(document.createElement("canvas").getContext("2d"), { lineWidth: 12 });
  const lines = edges.filter((edge) => edge.state === "cut").map((edge) => [edge, new Path2D(line_path(edge.points))]);
  const grounds = regions.map((region) => [region, new Path2D(region.path)]);
  return (x, y, scale) => {
    const node = nodes.findLast((n) => Math.abs(n.x - x) <= n.w / 2 && Math.abs(n.y - y) <= n.h / 2);
    if (node) return { node };
    const grow = words_scale(scale) / 2;
    const word = words.find((w) => Math.abs(w.x - x) <= w.w * grow && Math.abs(w.y - y) <= w.h * grow);
    if (word) return { edge: word.edge, region: word.region };
    const line = lines.find(([, path]) => HITTING.isPointInStroke(path, x, y));
    if (line) return { edge: line[0] };
    const ground = grounds.find(([, path]) => HITTING.isPointInPath(path, x, y));
    return ground ? { region: ground[0] } : {};
  };
}
