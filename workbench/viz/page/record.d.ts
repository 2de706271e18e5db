// The types of messages between Python and the page. scripts/page_types.py writes this file from
// workbench/viz/schema; change them in that folder.


/**
 * Numbers as a list: their kind ("f4": floats of 4 bytes, "i4": integers), and their base64,
 * little-endian.
 */
export type NumberArray = [kind: "f4" | "f8" | "i4", data: string];

/**
 * The costs of a load or store of a line (`node`), of all work-groups together: transactions
 * are sectors of global memory, or passes over the banks of shared memory; conflicts are
 * passes beyond those that the width needs.
 */
export interface AccessCosts {
  node: number;
  memory: number;
  is_store: boolean;
  transactions: number;
  conflicts: number;
  bytes_wanted: number;
  bytes_moved: number;
}

/**
 * A tile of a tensor core. Each lane of a warp holds `each` elements of it: `places` has, by
 * lane and element, the place in the tile, row by row.
 */
export interface TensorTile {
  name: string;
  rows: number;
  columns: number;
  each: number;
  places: NumberArray;
}

/**
 * A tensor core, in words, with its tiles A, B and C.
 */
export interface TensorCoreRow {
  text: string;
  lanes: number;
  tiles: Array<TensorTile>;
}

/**
 * A product by the tensor core at place `core`: the names of what holds A, B, C and the
 * result.
 */
export interface TileProduct {
  core: number;
  registers: Array<string>;
}

/**
 * A line of the program, `depth` loops deep, with its nodes and the user's lines. `executed`
 * counts work-items, `divergent` warps, `barriers` groups that waited, `shuffles` warps
 * whose lanes exchanged values. `barrier` is the number of the line's barrier, `product`
 * what a tensor core does (null: none). In a shuffle a work-item takes the value of the one
 * whose number is its own xor `distance`; elsewhere `distance` is 0.
 */
export interface GpuLine {
  text: string;
  barrier: number | null;
  depth: number;
  nodes: Array<number>;
  lines: Array<number>;
  accesses: Array<AccessCosts>;
  executed: number;
  divergent: number;
  barriers: number;
  shuffles: number;
  distance: number;
  product: TileProduct | null;
}

/**
 * Memory that the program reads or writes; `user` is the user's name for it ("": none).
 */
export interface GpuMemory {
  name: string;
  user: string;
  space: "global" | "private" | "shared";
  dtype: string;
  shape: Array<number>;
  itemsize: number;
}

/**
 * The access of a step, as a list: each work-item accesses `lanes` elements from its `first`
 * on. `active` has a bit for each work-item and lane, base64; `values` a number for each.
 */
export type AccessStep = [step: number, memory: number, is_store: boolean, lanes: number, first: NumberArray, active: string, values: NumberArray, transactions: number, conflicts: number, bytes_wanted: number, bytes_moved: number];

/**
 * The values that work-items hold under a name, from each of `steps` on: one for all of the
 * work-items or one for each, of `lanes` lanes. `unwritten` has, by step, a bit for each
 * value: whether it depends on unwritten memory.
 */
export interface RegisterRow {
  name: string;
  lanes: number;
  steps: Array<number>;
  values: Array<NumberArray>;
  unwritten: Record<string, string>;
}

/**
 * A defect, or what is right and slow, in words, with its lines, its group, and its steps,
 * where the trace has those of that group. `items` are its work-items by number, which
 * access `element` of `memory` (null: of none).
 */
export interface GpuFinding {
  kind: string;
  is_defect: boolean;
  words: string;
  lines: Array<number>;
  group: Array<number>;
  steps: Array<number>;
  items: Array<number>;
  memory: number | null;
  element: number;
}

/**
 * A run of a kernel as a device with work-groups runs it, and each step of one group. Unless
 * the run `is_whole`, only that group ran, and counts are of it alone. `without` is the
 * number of a barrier that was removed from the program (null: none).  `grid`, `items` and
 * `group` are along x, y and z. By step: `line`; `mask`, a place in `masks` (bits, base64);
 * `rounds` of loops by name (-1: not in it). `cut` says why the steps end before the program
 * does ("": they do not). Units: sector_bytes, bank_bytes are those of a sector of global
 * memory and of a word of a bank.
 */
export interface GpuTrace {
  device: string;
  grid: Array<number>;
  items: Array<number>;
  group: Array<number>;
  warp_lanes: number;
  sector_bytes: number;
  banks: number;
  bank_bytes: number;
  lines: Array<GpuLine>;
  memories: Array<GpuMemory>;
  line: Array<number>;
  rounds: Record<string, Array<number>>;
  masks: Array<string>;
  mask: Array<number>;
  accesses: Array<AccessStep>;
  registers: Array<RegisterRow>;
  cores: Array<TensorCoreRow>;
  findings: Array<GpuFinding>;
  is_whole: boolean;
  without: number | null;
  cut: string;
}

/**
 * An error: what failed, because of what, and what to try; `line` is that of the code, from
 * 1, at which its compiler stopped.
 */
export interface ErrorWords {
  what: string;
  because: string;
  try: string;
  line?: number | null;
}

/**
 * A number with its name, as a list.
 */
export type NamedNumber = [name: string, value: number];

/**
 * A step of the default opts: what it applied, why, and in words the counts that made it.
 */
export interface StepRow {
  name: string;
  opts: Array<string>;
  why: string;
  counts: string;
}

/**
 * An opt in `words`, its kind, its first axis ("" for none), and the amount that may be
 * changed (null: it has none).
 */
export interface OptRow {
  words: string;
  op: string;
  axis: string;
  amount: number | null;
}

/**
 * An axis of a kernel; `kind` is a name in the record's `kinds`.
 */
export interface AxisRow {
  name: string;
  kind: string;
  size: number;
}

/**
 * A buffer of a kernel: its name in the kernel, and the `user`'s ("": none); `size` counts
 * elements.
 */
export interface BufferRow {
  name: string;
  user: string;
  dtype: string;
  size: number;
  role: string;
}

/**
 * How a loop uses a buffer: `n` bytes, which the cache `level` holds (null: none is known).
 * `cell` has the bytes and the level where there is room for a few letters.
 */
export interface UseRow {
  stride: string;
  bytes: string;
  n: number;
  level: string | null;
  cell: Array<string>;
}

/**
 * A loop, a lane or a statement of a nest, `depth` loops deep.
 */
export interface NestRow {
  kind: "lanes" | "loop" | "statement";
  depth: number;
  around: Array<string>;
  axis: string;
  axis_kind: string;
  size: number;
  vector: boolean;
  text: string;
  uses: Record<string, UseRow>;
  nodes: Array<number>;
  lines: Array<number>;
}

/**
 * The loop nest of a kernel.
 */
export interface Nest {
  buffers: Array<BufferRow>;
  rows: Array<NestRow>;
}

/**
 * Where a line of code comes from: axes by name, nodes and the user's lines by their places,
 * the lines of source that an instruction was compiled from by number. `statement` is the
 * line, from 1, of the language that all kernels are read in that computes the same; of
 * edited code, a line of its own text.
 */
export interface CodeLink {
  axes: Array<string>;
  nodes: Array<number>;
  lines: Array<number>;
  source: Array<number>;
  statement: number | null;
}

/**
 * What an instruction costs, as a list. Units: cycles until its result is there, cycles
 * between two such instructions at best, and cycles for which it occupies each port of the
 * core.
 */
export type InstructionCost = [latency: number, throughput: number, ports: Record<string, number>];

/**
 * A pass of a compiler that changed a program; `lines` are places in the table of lines.
 */
export interface CompilerPass {
  name: string;
  title: string;
  lines: Array<number>;
}

/**
 * The passes of a compiler that changed a program, in their order; `lines` has every line of
 * all states once.
 */
export interface CompilerPasses {
  lines: Array<string>;
  passes: Array<CompilerPass>;
}

/**
 * How a page launches a program: its entry point, the work-groups along x, y and z, and the
 * slots of its bindings in their order. Of one in WebAssembly `module` are its bytes in
 * base64, which it has beside its memory's `stack_bytes` and the kernel's `scratch_bytes`;
 * "" where the page compiles the text.
 */
export interface PageLaunch {
  entry: string;
  grid: Array<number>;
  slots: Array<number>;
  module: string;
  stack_bytes: number;
  scratch_bytes: number;
}

/**
 * A program in one language, a link or null for each of its lines; or the error that its
 * renderer ends with. Machine code has what its instructions do, by mnemonic, and where a
 * tool knows them the cost of each line; `costs_by` is that tool, with its processor.
 * `made_by` are the passes of the compiler, once they were requested. That for another
 * machine has what it takes of it, as `note`, and the number of registers in use at each
 * line, as `live`. A program that a page can run has a `launch`.
 */
export interface CodeRow {
  language: string;
  device: string;
  lines: Array<string>;
  links: Array<CodeLink | null>;
  error?: ErrorWords | null;
  help?: Record<string, string>;
  costs?: Array<InstructionCost | null>;
  costs_by?: string;
  made_by?: CompilerPasses | null;
  note?: string;
  live?: Array<number | null>;
  launch?: PageLaunch | null;
}

/**
 * An opt that is possible. `predicted` and `measured` are speed-ups over the variant that it
 * is offered to, measured in turns with that. `spread` is half of the interval of the
 * measured one, as a share of it (null: too few rounds to tell), and `differs` whether it is
 * beyond the noise. `counts` says what it does to the accesses of work-groups, before ->
 * after ("": not known). Units: `seconds` of one run.
 */
export interface OfferRow {
  opt: string;
  op: string;
  axes: Array<string>;
  does: string;
  on_gpu: string;
  predicted: number | null;
  why: string;
  measured: number | null;
  spread: number | null;
  differs: boolean;
  seconds: number | null;
  counts?: string;
}

/**
 * An opt that is not possible, and the reason.
 */
export interface RefusedRow {
  opt: string;
  why: string;
}

/**
 * What a run costs by the form of the kernel, on `threads` threads, or what else runs at
 * once (`of`: "thread", "unit"); `notes` are lines about it. Units: bytes from each level,
 * seconds that each part takes alone, roofs in operations a second.
 */
export interface CostRow {
  kind: string | null;
  threads: number;
  flops: number;
  bytes: Record<string, number>;
  seconds: Record<string, number>;
  roofs: Record<string, number>;
  limit: string;
  predicted_s: number;
  launch_s: number;
  of: string;
  notes: Array<string>;
}

/**
 * A share of the machine's peak: of "peak", or of "one thread's peak" where a kernel leaves
 * cores to others.
 */
export interface ShareRow {
  fraction: number;
  of: string;
}

/**
 * A timing. Units: `spread` and `cold_spread` are shares of the median, `samples` are
 * seconds; the speeds are in 1e9 operations and 1e9 bytes a second. `run` names the
 * measurement; `machine` is another one than this ("": it was this one); `random_inputs`:
 * the expression's own were not there; `moved_bytes` are loaded and stored in one run (null:
 * as the variant's counts say); `share` is that of the peak as it is now, null where it says
 * nothing; `busy`: how many times as long a loop of known length took beside it as at rest
 * (null: unknown). `medians` are those of earlier measurements in this session; `doubts` say
 * why it is not certain.
 */
export interface TimingRow {
  median_s: number;
  min_s: number;
  spread: number;
  samples: Array<number>;
  cold_s: number | null;
  gflops: number;
  gbytes: number;
  kind: string | null;
  threads: number;
  device: string;
  emulator: boolean;
  run: string;
  earlier: boolean;
  random_inputs?: boolean;
  machine?: string;
  cold_spread?: number | null;
  moved_bytes?: number | null;
  share?: ShareRow | null;
  busy?: number | null;
  medians?: Array<number>;
  doubts?: Array<string>;
}

/**
 * Whether a result is right, in words.
 */
export interface CheckRow {
  ok: boolean;
  text: string;
}

/**
 * A candidate of a search, as a list; `parent` is the number of the candidate it was made
 * from. Units: seconds of one run, null where it was not timed; `spread` is that of its
 * runs, as a share of their median (null: too few to tell).
 */
export type CandidateRow = [number: number, parent: number | null, how: string, seconds: number | null, note: string, spread: number | null];

/**
 * What a search tried; `best` is the number of a candidate; `predicted`: times are those of
 * a model, of a machine that is not here. Units: seconds that it took.
 */
export interface SearchRow {
  tried: number;
  timed: number;
  best: number;
  speedup: number | null;
  seconds: number;
  ended: string;
  device: string;
  candidates: Array<CandidateRow>;
  predicted?: boolean;
}

/**
 * A kernel with opts, and what is known of it on the session's device. `python` stands by
 * itself; `recipe` binds `kernel` after the lines of the expression. `opts` are Python, and
 * `opt_rows` the same opts for people. A deleted variant keeps its place, and is not shown.
 * `elsewhere` has the timings on other devices than the session's, `code_elsewhere` what
 * other devices make of it: machine code and statement trees, as far as they were requested;
 * `gpu` is its run on the emulator, where it was stepped. `default_of` is the device whose
 * default opts it has, or came from; "" where it came from none. Units: `when` it was made,
 * in seconds of the epoch; 0 for those that every record has.
 */
export interface VariantRow {
  kernel: number;
  parent: number | null;
  name: string;
  when: number;
  deleted: boolean;
  opts: Array<string>;
  opt_rows: Array<OptRow>;
  recipe: string;
  steps: Array<StepRow>;
  axes: Array<AxisRow>;
  bars: Array<Array<number>>;
  python: string;
  loops: Nest | null;
  code: Array<CodeRow>;
  counts: Record<string, number> | null;
  passes: Array<number>;
  offers: Array<OfferRow>;
  refused: Array<RefusedRow>;
  check: CheckRow | null;
  timing: TimingRow | null;
  elsewhere: Array<TimingRow>;
  bound: string | null;
  cost: CostRow | null;
  error: ErrorWords | null;
  note: string;
  edited: boolean;
  search: SearchRow | null;
  rules_off: Array<string>;
  code_elsewhere?: Array<CodeRow>;
  gpu?: GpuTrace | null;
  default_of?: string;
}

/**
 * A box of the picture: `x` and `y` are its left upper corner, `n` its node in the record.
 * `patch` is the ground behind it, as an SVG path; "" outside of all kernels. `step` is the
 * number of decisions after which it is known in which kernels it is.
 */
export interface PlanNode {
  n: number;
  label: string;
  x: number;
  y: number;
  w: number;
  h: number;
  kernels: Array<number>;
  stored_by: number | null;
  role: string;
  bytes: number;
  line: number;
  output: boolean;
  patch: string;
  step: number;
}

/**
 * A point of an edge, as a list.
 */
export type RoutePoint = [x: number, y: number];

/**
 * An edge of the picture: `a` and `b` are places in the list of the plan's nodes. `band` is
 * the ground along it, where both are in one kernel, as an SVG path.
 */
export interface PlanEdge {
  a: number;
  b: number;
  route: Array<RoutePoint>;
  cut: boolean;
  bytes: number;
  band: string;
}

/**
 * The area of a kernel, whose ground is the patches and bands of what it computes; a node of
 * several kernels stands on that of the first.
 */
export interface PlanRegion {
  kernel: number;
  title: string;
  colour: string;
}

/**
 * One of the ways to compute a value that a decision compared: what is done, and its
 * estimated cost in operations, beyond computing each element once.
 */
export interface CostChoice {
  text: string;
  cost: number;
  wins: boolean;
}

/**
 * Why a value is stored or fused; `estimates` are those that decided, by name, `choices`
 * what was compared, and `costs` what they say, as sentences. `tradeoff`: it is fused
 * although that costs something. `rank`: its place among the decisions that explain why
 * there are not more kernels, from 0, the most interesting first; None: it explains nothing.
 * `value` says what it is, `name` does too, but where a kernel ends with it: there it is
 * what that computes. `is_requested`: a result, or asked to be stored. `is_copy`: it is only
 * copied to a device. `python` prints it, after the lines of the expression.
 */
export interface DecisionRow {
  node: number;
  name: string;
  value: string;
  stored: boolean;
  reason: string;
  estimates: Array<NamedNumber>;
  choices: Array<CostChoice>;
  tradeoff: boolean;
  rank: number | null;
  costs: string;
  kernel: number | null;
  forced: boolean;
  is_requested: boolean;
  is_copy: boolean;
  python: string;
}

/**
 * This plan beside the one before it: kernels and seconds are those of both. `change` and
 * `moved` are places in the list of decisions, `speed` says which is the faster, and
 * `verdict` says it as a sentence. `number` is this plan's own; `kernels_now` and
 * `variants_now` have the places here of the kernels and variants of the plan before, null
 * where there is none.
 */
export interface ComparedPlans {
  kernels: [number, number];
  change: number | null;
  moved: Array<number>;
  seconds: [number, number] | null;
  speed: string;
  verdict: string;
  number?: number;
  kernels_now?: Array<number | null>;
  variants_now?: Array<number | null>;
}

/**
 * `size` kernels from kernel `first` on, that come `times` times, one after the other;
 * `title` names those of one time, without those that only draw random numbers, unless all
 * do. `module` is the path of the user's module that they are all of, "" where there is
 * none; a module that is folded comes once.
 */
export interface PlanRepeat {
  first: number;
  size: number;
  times: number;
  title: string;
  module: string;
}

/**
 * A value that a kernel reads from memory, where an earlier one stored it, as a list: both
 * kernels, its node in the record, its bytes.
 */
export type PlanRead = [source: number, reader: number, node: number, bytes: number];

/**
 * A run of a kernel with the default opts, warm. `like` is the first kernel that is equal:
 * its times are those of all of them that have none of their own. `spread` is a share of the
 * median. Units: seconds, null where none is known.
 */
export interface PlanRun {
  like: number;
  predicted_s: number | null;
  measured_s: number | null;
  spread: number | null;
}

/**
 * A value that a schedule computes: its node in the record, what it is called, its bytes,
 * and whether it is a result, which stays, or is on the way to one.
 */
export interface MemoryValue {
  node: number;
  name: string;
  bytes: number;
  is_result: boolean;
}

/**
 * The memory while a kernel runs (null: a copy to a device): the values that live then, as
 * places in the list of values, their bytes, and all that is allocated for such values.
 */
export interface MemoryStep {
  kernel: number | null;
  bytes: number;
  allocated: number;
  values: Array<number>;
}

/**
 * The memory of a schedule, step by step, were nothing else to be read later. `peak` is the
 * place of the first step at which most bytes live, None without steps; `words` say it as
 * sentences.
 */
export interface MemoryChart {
  values: Array<MemoryValue>;
  steps: Array<MemoryStep>;
  peak: number | null;
  words: string;
}

/**
 * A phase of training: its letter, and the colours that its kernels have in turn.
 */
export interface PhaseRow {
  name: string;
  letter: string;
  colours: Array<string>;
}

/**
 * A value that a kernel of the forward stores and kernels of the backward read: its node in
 * the record, what it is called, where it was made in the user's model and code, its bytes.
 */
export interface ActivationRow {
  node: number;
  name: string;
  module: string;
  line: number | null;
  kernel: number;
  readers: Array<number>;
  bytes: number;
}

/**
 * The tensor graph, drawn and cut into kernels; without nodes where it is too large.
 * `repeats` are in the order of their kernels, outer ones before those in them; `runs` has a
 * row for each kernel. `phases` are those that kernels belong to, `activations` the largest
 * first; none where nothing is trained. `hint` says what would make a simpler plan, "" where
 * nothing is known. `check` is the verdict on all kernels and results (null: not checked).
 */
export interface PlanPicture {
  width: number;
  height: number;
  nodes: Array<PlanNode>;
  edges: Array<PlanEdge>;
  regions: Array<PlanRegion>;
  decisions: Array<DecisionRow>;
  compared: ComparedPlans | null;
  repeats: Array<PlanRepeat>;
  reads: Array<PlanRead>;
  runs: Array<PlanRun>;
  phases: Array<PhaseRow>;
  activations: Array<ActivationRow>;
  hint?: string;
  check?: CheckRow | null;
}

/**
 * A buffer of a kernel, by slot. `data` are its bytes, little-endian, in base64: of an input
 * what the kernel reads, of one that is `written` the right answer, which no element may
 * miss by more than `tolerance`; "" for a slot that the kernel never touches.
 */
export interface PageBuffer {
  dtype: string;
  size: number;
  written: boolean;
  data: string;
  tolerance: number;
}

/**
 * The buffers of a kernel, and what the right answers are those of (`against`); or the
 * `error` that says why they are not here.
 */
export interface PageData {
  buffers: Array<PageBuffer>;
  error?: ErrorWords | null;
  against?: string;
}

/**
 * What stands at a path into the record until the reader guesses: `value`; or of a table the
 * rows that have the fields `only`. A step of a path is a field, or "*" for every row.
 */
export interface HiddenPart {
  path: Array<string>;
  value?: unknown;
  only?: Record<string, unknown> | null;
}

/**
 * A question. The first of `answers`, paths into the record, that leads to a value is its
 * answer; a step there may be fields that a row must have, and a list counts. `judgement`
 * says how a guess is judged: by how far off it is, within a `factor`, whether it is the
 * same, which parts are. An answer is shown in `unit`s, of which each is `scale`. `choices`
 * are what one may guess ([]: a number).
 */
export interface QuestionRow {
  name: string;
  text: string;
  judgement: "choice" | "factor" | "number" | "set";
  answers: Array<Array<unknown>>;
  hides: Array<HiddenPart>;
  unit: string;
  scale: number;
  factor: number;
  choices: Array<string>;
}

/**
 * A word, letter or sign, and what it means in a sentence or two, as a list.
 */
export type TermRow = [word: string, meaning: string];

/**
 * Words that are met together.
 */
export interface TermGroup {
  name: string;
  terms: Array<TermRow>;
}

/**
 * A family of ops: its name, and the shape of its boxes.
 */
export interface FamilyRow {
  name: string;
  shape: "box" | "cut" | "pill" | "round" | "six" | "slant";
}

/**
 * Room for the words of a source, as a list; a Slot of workbench/ir/text/phrases.py.
 */
export type SlotRow = [source: number, tight: number, signed: boolean];

/**
 * What nodes have in common that differ in their sources only.  Words, as in
 * workbench/ir/text/phrases.py: parts are text and slots. `name` is the node's own ("": it
 * gets one of `letter`); `typed` is its dtype and shape, for graphs with a node that
 * `is_tensor`; leaves have their names first, by `rank`; `box` are the parts in a box of a
 * graph, where they are others.  In a graph: `family` is a letter in the record's
 * `families`. `is_index`: arithmetic of indexes, which may stand in the words of its
 * readers. The role: a "constant" always does; a "join" has nothing of its own; a "loop" can
 * be closed; an "axis" has `size` steps; an "access" reads or writes at its first source; a
 * "place" is memory and then indexes; what is "due" stands for what a rule will make of its
 * sources, and is explained by their names.  `values`: "" where Python can compute the
 * node's values; "lowered" where they are in registers of the lowered program; "none" where
 * it has none.
 */
export interface Reading {
  family: string;
  parts: Array<string | SlotRow>;
  binds: number;
  line: "always" | "never" | "shared" | "shared and long";
  negated?: Array<string | SlotRow>;
  root?: Array<string | SlotRow>;
  statement?: Array<string | SlotRow>;
  box?: Array<string | SlotRow>;
  body?: number | null;
  is_leaf?: boolean;
  rank?: number;
  name?: string;
  letter?: string;
  typed?: string;
  is_tensor?: boolean;
  is_index?: boolean;
  values?: "" | "lowered" | "none";
  role?: "" | "access" | "axis" | "constant" | "due" | "join" | "loop" | "place";
  size?: number | null;
}

/**
 * Python code for the view of a page. `plan` follows the lines of the expression; `opts` is
 * what can be pasted, `baseline` how to compare with something else, `add` how a cell shows
 * a variant; `without` is the text around the name of a rule, to do without it.
 */
export interface PageRecipes {
  plan: string;
  opts: string;
  baseline: string;
  add: string;
  without: Array<string>;
}

/**
 * Python code for a pass: `outcome` prints what it made, `match` is the text around the
 * place of one of its matches. It follows the lines of the expression and of the variant.
 */
export interface PassRecipe {
  outcome: string;
  match: Array<string>;
}

/**
 * The user's expression, and Python that explores it again.
 */
export interface ExpressionRow {
  text: string;
  line: number | null;
  python: string;
}

/**
 * A device that there is, with the names of its languages. Where it is available,
 * `how_to_get` says what it is. `elsewhere` is a machine that is not here, `groups` says
 * that it has work-groups, as a GPU has, and `machine_code` that there is some to read.
 */
export interface DeviceRow {
  name: string;
  available: boolean;
  how_to_get: string;
  emulator: boolean;
  elsewhere?: boolean;
  languages?: Array<string>;
  groups?: boolean;
  machine_code?: boolean;
}

/**
 * A language that code is shown in, and which `device` runs it ("": none). It may be what
 * each device makes another one of: machine code, or statements. `comment`, `word` and
 * `head` are regular expressions.
 */
export interface LanguageRow {
  name: string;
  title: string;
  comment: string;
  word: string;
  head: string;
  device: string;
  role?: "machine" | "program" | "statements";
}

/**
 * The rules that are off, and in words what that changes.
 */
export interface WithoutRow {
  rules: Array<string>;
  differs: string;
}

/**
 * A cache and its bytes, as a list.
 */
export type CacheSize = [level: string, size_bytes: number];

/**
 * A cache, or "memory", and its bytes a second, as a list.
 */
export type LevelSpeed = [level: string, speed: number];

/**
 * The speeds of one thread; units as in MachineRow.
 */
export interface OneThread {
  peak: Record<string, number>;
  bandwidth: Array<LevelSpeed>;
  copy: Array<LevelSpeed>;
}

/**
 * This machine, or one that is not here, by its published figures: its `cores` are then of a
 * `kind`. Units: bytes of each cache, peak in operations a second, bandwidth and copy in
 * bytes a second; null where no speed is known.
 */
export interface MachineRow {
  cpu: string;
  cores: number;
  caches: Array<CacheSize>;
  peak: Record<string, number> | null;
  bandwidth: Array<LevelSpeed> | null;
  copy: Array<LevelSpeed> | null;
  one_thread: OneThread | null;
  kind?: string;
  sources?: Array<string>;
}

/**
 * A kind of axis, in words.
 */
export interface KindRow {
  letter: string;
  name: string;
  caption: string;
}

/**
 * What a kind of opt does: `here`, on a processor, and on a GPU.
 */
export interface OptKindRow {
  here: string;
  on_gpu: string;
}

/**
 * A line of the user's code.
 */
export interface LineRow {
  where: string;
  text: string;
}

/**
 * Why a node is there, one step back, as a list: a pass, the number of its rewrite from 1
 * (0: none), and the node that it was.
 */
export type CauseRow = [place: number, number: number, node: number];

/**
 * Every node, a list for each field, sources before users. `causes` say why it is there;
 * `dtype` is "" for none; `reading` is a place in the record's `readings`; `lines` are the
 * user's that made it, the one to show first: of each its place, and those of the lines in
 * functions that it called.
 */
export interface NodeColumns {
  op: Array<string>;
  dtype: Array<string>;
  shape: Array<string>;
  arg: Array<string>;
  src: Array<Array<number>>;
  label: Array<string>;
  reading: Array<number>;
  lines: Array<Array<Array<number>>>;
  causes: Array<Array<CauseRow>>;
}

/**
 * A rule, an opt or a step that fired, and where it stands. One that `is_fixed` cannot be
 * switched off.
 */
export interface RuleRow {
  name: string;
  text: string;
  doc: string;
  file: string;
  line: number;
  set: string;
  is_fixed?: boolean;
}

/**
 * A pass alone: how often rules fired in it, the busiest first.
 */
export interface PassRow {
  name: string;
  doc: string;
  depth: number;
  unit: string;
  seconds: number;
  changed: boolean;
  error: string | null;
  matches: number;
  dropped: number;
  rules: Array<NamedNumber>;
}

/**
 * A rewrite, as a list: a rule (-1: none), the node before, the node after, and the root
 * then (-1: not recorded). `about`: what a step of a function is about, in words.
 */
export type RewriteRow = [rule: number, before: number, after: number, root: number, about: string];

/**
 * A pass. `before` and `after` are its roots, the texts are places; there may be more
 * matches than rewrites that are listed.
 */
export interface RecordedPass {
  name: string;
  doc: string;
  depth: number;
  unit: string;
  seconds: number;
  changed: boolean;
  error: string | null;
  matches: number;
  dropped: number;
  before: Array<number>;
  after: Array<number>;
  text_before: number | null;
  text_after: number | null;
  rewrites: Array<RewriteRow>;
  kernel: number | null;
  variant: number | null;
  device: string | null;
  python: PassRecipe;
}

/**
 * A kernel of the plan; `root` is its un-optimised variant, and `opens` the one that a page
 * opens with, where that is another; `data` are its buffers, for a page that runs it.
 * `modules` are the user's that made what it computes, each with the method that it called;
 * `module` is the path of the first. `phases` are those of training that it belongs to; none
 * where nothing is trained. `opts_in_code` says which opts the user's code asks for, or why
 * they are refused. `draws_numbers`: it only draws random numbers, as the first weights of a
 * model are.
 */
export interface KernelRow {
  title: string;
  name: string;
  decoded: string;
  line: number | null;
  inner: Array<number>;
  flops: number;
  bytes: number;
  decision: number | null;
  root: number;
  module: string;
  modules: Array<string>;
  phases: Array<string>;
  data?: PageData | null;
  opens?: number | null;
  opts_in_code?: string;
  draws_numbers?: boolean;
}

/**
 * Something to compare with.
 */
export interface BaselineRow {
  name: string;
  timing: TimingRow | null;
  error: string | null;
}

/**
 * What one panel alone needs: `data` is of a type of its own, or there is an `error`.
 */
export interface PanelSection {
  data: unknown;
  error: ErrorWords | null;
}

/**
 * Everything that a page shows. `panels` has the sections of panels, by their names; null
 * where one is not built yet. `n` counts the patches of a session; a record that no session
 * has made has none. `origin` says which file it was loaded from. `saved` counts the
 * variants that other notebooks saved of the expression, and that are not shown. `ask` is
 * the question that waits for a guess; `left_out` says in words what a saved copy lacks.
 */
export interface PageRecord {
  v: number;
  key: string;
  expr: ExpressionRow;
  device: string;
  elsewhere: string;
  devices: Array<DeviceRow>;
  languages: Array<LanguageRow>;
  headline: string;
  nothing: string;
  without: WithoutRow;
  recipes: PageRecipes;
  machine: MachineRow;
  kinds: Record<string, KindRow>;
  opt_kinds: Record<string, OptKindRow>;
  glossary: Array<TermGroup>;
  lines: Array<LineRow>;
  nodes: NodeColumns;
  readings: Array<Reading>;
  families: Record<string, FamilyRow>;
  texts: Array<string>;
  rules: Array<RuleRow>;
  passes: Array<RecordedPass>;
  plan: PlanPicture;
  kernels: Array<KernelRow>;
  variants: Array<VariantRow>;
  pinned: number | null;
  saved: number;
  baselines: Array<BaselineRow>;
  panels: Record<string, PanelSection | null>;
  n?: number;
  origin?: string;
  ask?: QuestionRow | null;
  left_out?: string;
}

/**
 * Nothing: what changed comes as a patch.
 */
export interface NoResult {
}

/**
 * The variant that a request made, or led to.
 */
export interface VariantReply {
  variant: number;
}

/**
 * An opt of a list: as Python, for people, and, where it is not legal after those before it,
 * why, and what to try ("" and "": it is legal).
 */
export interface OptVerdict {
  text: string;
  row: OptRow;
  because: string;
  try: string;
}

/**
 * A list of opts, each with its verdict, and as Python; `amounts` are the legal ones of the
 * opt that was named.
 */
export interface OptsReply {
  opts: Array<OptVerdict>;
  amounts: Array<number>;
  text: string;
}

/**
 * Source that is being edited, compiled: the source itself and its machine code; none where
 * there is an error.
 */
export interface EditedCode {
  code: Array<CodeRow>;
  error: ErrorWords | null;
}

/**
 * The variant without a rule; where everything began anew, the number of patches.
 */
export interface RuleReply {
  variant?: number | null;
  n?: number | null;
}

/**
 * The variants that were timed on request.
 */
export interface TimedVariants {
  variants: Array<number>;
}

/**
 * Everything began anew: the number of patches.
 */
export interface PatchCount {
  n: number;
}

/**
 * How many jobs were dropped.
 */
export interface StoppedJobs {
  stopped: number;
}

/**
 * The number of patches that there were, and the packed record (null: the page has it).
 */
export interface WholeRecord {
  n: number;
  record: string | null;
}

/**
 * The value of a node at a position, or the first of several, and what all are like.
 */
export interface NodeValue {
  value: boolean | number | string | Array<boolean | number | string>;
  min: boolean | number | string | null;
  max: boolean | number | string | null;
  nan: number;
  shape: Array<number>;
}

/**
 * Why a rule does not fire: the places in its text where the part begins and ends that
 * failed.
 */
export interface WhyNotReply {
  text: string;
  caret_start: number;
  caret_end: number;
  because: string;
}

/**
 * The first wrong rewrite in words, and where it stands; no pass where there is none.
 */
export interface BisectReply {
  text: string;
  pass: number | null;
  step: number;
}

/**
 * The new rows of the tables that grew; of `nodes` the new part of every column.
 */
export interface AppendedRows {
  nodes?: NodeColumns | null;
  readings?: Array<Reading>;
  texts?: Array<string>;
  rules?: Array<RuleRow>;
  passes?: Array<RecordedPass>;
  lines?: Array<LineRow>;
  variants?: Array<VariantRow>;
}

/**
 * What changed in a record: first rows are appended, then values are set, each at a path of
 * names and places.
 */
export interface RecordPatch {
  append: AppendedRows;
  set: Array<[Array<string | number>, unknown]>;
}

/**
 * The reply to the request of the same `id`; `result` is of the type that the request says,
 * null where there is an error.
 */
export interface ReplyMessage {
  id: number | null;
  ok: boolean;
  error: ErrorWords | null;
  result: unknown;
  patch?: RecordPatch | null;
}

/**
 * What is under way; null: nothing.
 */
export interface ProgressRow {
  task: string | null;
  done: number;
  total: number;
  text: string;
}

/**
 * Progress.
 */
export interface StatusMessage {
  status: ProgressRow;
}

/**
 * A patch without a request.
 */
export interface PatchMessage {
  patch: RecordPatch;
}

/**
 * All began anew: the record as it is now.
 */
export interface RenewedMessage {
  result: WholeRecord;
}

/**
 * The selection of a page; nodes, lines, kernels and variants are places; `only` is the one
 * pane that is shown. What is not set stays as it is.
 */
export interface ViewState {
  mode?: string;
  kernel?: number;
  variant?: number | null;
  node?: number | null;
  line?: number | null;
  axis?: string | null;
  language?: string;
  only?: string;
  guess?: string | null;
}

/**
 * Apply an opt to a variant.
 */
export interface ApplyRequest {
  do: "apply";
  variant: number;
  opt: string;
  id?: number | null;
}

/**
 * Say of each opt of a list whether it is legal after those before it, on the un-optimised
 * kernel of a variant; of the one at `place` also the legal amounts. With `amount` that one
 * gets another amount first.
 */
export interface OptsRequest {
  do: "opts";
  variant: number;
  opts: Array<string>;
  place?: number | null;
  amount?: number | null;
  id?: number | null;
}

/**
 * Apply a list of opts to the un-optimised kernel of a variant, and `name` what that is; ""
 * leaves its name.
 */
export interface PasteRequest {
  do: "paste";
  variant: number;
  text: string;
  name?: string;
  id?: number | null;
}

/**
 * Apply the default opts to a kernel.
 */
export interface AutoRequest {
  do: "auto";
  kernel: number;
  id?: number | null;
}

/**
 * Write a variant in a language, as it is for a device (null: the session's).
 */
export interface CodeRequest {
  do: "code";
  variant: number;
  language: string;
  device?: string | null;
  id?: number | null;
}

/**
 * Say what can be done next to a variant.
 */
export interface OffersRequest {
  do: "offers";
  variant: number;
  id?: number | null;
}

/**
 * Compile a variant, so that its passes are there.
 */
export interface PassesRequest {
  do: "passes";
  variant: number;
  id?: number | null;
}

/**
 * Add the buffers of a kernel, with which the page runs it.
 */
export interface DataRequest {
  do: "data";
  kernel: number;
  id?: number | null;
}

/**
 * Pin a variant; null: none.
 */
export interface PinRequest {
  do: "pin";
  variant: number | null;
  id?: number | null;
}

/**
 * Name a variant; "": by its opts.
 */
export interface NameRequest {
  do: "name";
  variant: number;
  text: string;
  id?: number | null;
}

/**
 * Delete variants, or bring them `back`.
 */
export interface DeleteRequest {
  do: "delete";
  variants: Array<number>;
  back?: boolean;
  id?: number | null;
}

/**
 * Show the variants that other notebooks saved of the expression.
 */
export interface SavedRequest {
  do: "saved";
  id?: number | null;
}

/**
 * Delete from disk the variants of the expression that other notebooks saved, and that are
 * not shown.
 */
export interface ForgetRequest {
  do: "forget";
  id?: number | null;
}

/**
 * Set the note of a variant.
 */
export interface NoteRequest {
  do: "note";
  variant: number;
  text: string;
  id?: number | null;
}

/**
 * Go on with another device.
 */
export interface DeviceRequest {
  do: "device";
  name: string;
  id?: number | null;
}

/**
 * Time variants in turns, with cold caches where that is asked.
 */
export interface MeasureRequest {
  do: "measure";
  variants: Array<number>;
  cold?: boolean | null;
  id?: number | null;
}

/**
 * Hold the result of a variant against the reference.
 */
export interface CheckRequest {
  do: "check";
  variant: number;
  id?: number | null;
}

/**
 * Run source that was edited by hand.
 */
export interface EditRequest {
  do: "edit";
  variant: number;
  language: string;
  text: string;
  id?: number | null;
}

/**
 * Compile source that is being edited, without running it; null: that of the variant itself,
 * edited before.
 */
export interface CompileRequest {
  do: "compile";
  variant: number;
  language: string;
  text: string | null;
  id?: number | null;
}

/**
 * Say what the instructions of a variant cost, where a tool here knows it; those that a
 * device runs (null: the session's).
 */
export interface CostsRequest {
  do: "costs";
  variant: number;
  device?: string | null;
  id?: number | null;
}

/**
 * Say which passes of the compiler made the machine code of a variant.
 */
export interface CompilerPassesRequest {
  do: "compiler_passes";
  variant: number;
  id?: number | null;
}

/**
 * Time the baselines.
 */
export interface BaselineRequest {
  do: "baseline";
  id?: number | null;
}

/**
 * Compute the value of a node at positions of its axes, at a step of a pass.
 */
export interface ValuesRequest {
  do: "values";
  variant: number | null;
  pass: number;
  step: number;
  node: number;
  at: Record<string, number>;
  id?: number | null;
}

/**
 * Say why a rule does not fire at a node.
 */
export interface WhyNotRequest {
  do: "why_not";
  pass: number;
  step: number;
  node: number;
  rule: number;
  id?: number | null;
}

/**
 * Switch a rule off, or on again, for a variant `of` a kernel; by place, or by name.
 */
export interface RuleOffRequest {
  do: "rule_off";
  kernel: number | null;
  rule: number | string;
  on: boolean | null;
  of?: number | null;
  id?: number | null;
}

/**
 * Find the first rewrite after which a variant is wrong.
 */
export interface BisectRequest {
  do: "bisect";
  variant: number;
  id?: number | null;
}

/**
 * Plan again with a value stored, fused, or left to the scheduler (null).
 */
export interface ReplanRequest {
  do: "replan";
  node: number;
  store: boolean | null;
  id?: number | null;
}

/**
 * Time this plan beside the one before it.
 */
export interface PlansRequest {
  do: "plans";
  id?: number | null;
}

/**
 * Hold all kernels and all results against the reference.
 */
export interface CheckAllRequest {
  do: "check_all";
  id?: number | null;
}

/**
 * Time the kernels that have no time yet, with the default opts.
 */
export interface KernelsRequest {
  do: "kernels";
  id?: number | null;
}

/**
 * Search for faster opts for that number of seconds.
 */
export interface SearchRequest {
  do: "search";
  variant: number;
  budget_s: number;
  id?: number | null;
}

/**
 * Run a variant on the emulator, and note each step of a work-group, by its numbers along x,
 * y and z (null: that of the first finding, else the first one); `without` a barrier of the
 * program, by its number; `unasked`: the page sent it by itself, so one that takes long is
 * left out.
 */
export interface EmulateRequest {
  do: "emulate";
  variant: number;
  group?: Array<number> | null;
  without?: number | null;
  unasked?: boolean;
  id?: number | null;
}

/**
 * Drop what is under way.
 */
export interface StopJobs {
  do: "stop";
  id?: number | null;
}

/**
 * Say how many patches there were; the whole record where the page does not `have` all.
 */
export interface PingRequest {
  do: "ping";
  have?: number | null;
  id?: number | null;
}

/** A request of a page. */
export type AnyRequest =
  | ApplyRequest
  | OptsRequest
  | PasteRequest
  | AutoRequest
  | CodeRequest
  | OffersRequest
  | PassesRequest
  | DataRequest
  | PinRequest
  | NameRequest
  | DeleteRequest
  | SavedRequest
  | ForgetRequest
  | NoteRequest
  | DeviceRequest
  | MeasureRequest
  | CheckRequest
  | EditRequest
  | CompileRequest
  | CostsRequest
  | CompilerPassesRequest
  | BaselineRequest
  | ValuesRequest
  | WhyNotRequest
  | RuleOffRequest
  | BisectRequest
  | ReplanRequest
  | PlansRequest
  | CheckAllRequest
  | KernelsRequest
  | SearchRequest
  | EmulateRequest
  | StopJobs
  | PingRequest;

/** A message of Python. */
export type Message =
  | ReplyMessage
  | StatusMessage
  | PatchMessage
  | RenewedMessage;

/** The result of a request, by its name. */
export interface Results {
  apply: VariantReply;
  opts: OptsReply;
  paste: VariantReply;
  auto: VariantReply;
  code: VariantReply;
  offers: NoResult;
  passes: NoResult;
  data: NoResult;
  pin: NoResult;
  name: NoResult;
  delete: NoResult;
  saved: NoResult;
  forget: NoResult;
  note: NoResult;
  device: NoResult;
  measure: TimedVariants;
  check: NoResult;
  edit: VariantReply;
  compile: EditedCode;
  costs: NoResult;
  compiler_passes: NoResult;
  baseline: NoResult;
  values: NodeValue;
  why_not: WhyNotReply;
  rule_off: RuleReply;
  bisect: BisectReply;
  replan: PatchCount;
  plans: NoResult;
  check_all: NoResult;
  kernels: NoResult;
  search: VariantReply;
  emulate: NoResult;
  stop: StoppedJobs;
  ping: WholeRecord;
}
