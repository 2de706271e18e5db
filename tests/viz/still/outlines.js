// Writes the outlines of boxes as the page draws them: {shape: path} of boxes of 96 by 34.

import { outlinePath } from "../../../workbench/viz/page/graph/paths.js";

const paths = Object.fromEntries(Deno.args.map((shape) => [shape, outlinePath(shape, 96, 34)]));
console.log(JSON.stringify(paths));
