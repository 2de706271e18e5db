// The types of messages between Python and the page. scripts/page_types.py writes this file from
// workbench/viz/schema; change them in that folder.


/**
 * Numbers as a list: their kind ("f4" and "f8": floats of 4 and 8 bytes, "i4": integers of
 * 4), and their base64, little-endian.
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
 * A product by the tensor core at place `core`: `registers` are the names of those that hold
 * A, B, C and the result.
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
 * whose number is its own xor `distance`; elsewhere `distance` is 0. `number` is that of the
 * line in an edited text, from 1 (null: the program is not of such a text).
 */
export interface GpuLine {
  text: string;
  number: number | null;
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
 * The values that work-items hold under a name, from each of `steps` on: one value for all
 * work-items or one for each; a value has `lanes` lanes. `unwritten` has, by step, a bit for
 * each value: whether it depends on unwritten memory.
 */
export interface RegisterRow {
  name: string;
  lanes: number;
  steps: Array<number>;
  values: Array<NumberArray>;
  unwritten: Record<string, string>;
}

/**
 * A defect or an inefficiency, in words, with its lines, its group, and its steps if the
 * trace has those of that group. `items` are its work-items by number, which access
 * `element` of `memory` (null: of none).
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
 * An error: what failed, why, and what to `try`; `line` and `column` are the place in the
 * code, from 1, at which its compiler stopped (null: none).
 */
export interface ErrorWords {
  what: string;
  because: string;
  try: string;
  line?: number | null;
  column?: number | null;
}

/**
 * A number with its name, as a list.
 */
export type NamedNumber = [name: string, value: number];

/**
 * A step of the default opts: what it applied, why, and the counts behind it in words.
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
 * How a loop uses a buffer: the `stride` of its accesses in elements ("varies": no single
 * one), and the bytes of the elements that it touches, in words and as `n`; the cache
 * `level` can hold their cache lines (null: no level is known). `cell` has bytes and level
 * in a few letters. Where the elements lie apart, `lines` has the bytes of their cache lines
 * in words, and `held` the bytes of the cache that these occupy.
 */
export interface UseRow {
  stride: string;
  bytes: string;
  n: number;
  level: string | null;
  cell: Array<string>;
  lines?: string;
  held?: number;
}

/**
 * A loop, a lane axis or a statement of a nest, `depth` loops deep; `around` has the kinds
 * of the axes around it.
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
 * The origin of a line of code: axes by name, nodes and the user's lines by place, and for
 * an instruction the numbers of the source lines that it was compiled from. `statement` is
 * the line, from 1, that computes the same in the language that all kernels are read in; of
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
 * A pass of a compiler that changed a program; `lines` are the program after it, by places
 * in the table of lines.
 */
export interface CompilerPass {
  name: string;
  title: string;
  lines: Array<number>;
}

/**
 * The source of a program, as the first row, and the passes of a compiler that changed it,
 * in execution order; `lines` has every line of all states once.
 */
export interface CompilerPasses {
  lines: Array<string>;
  passes: Array<CompilerPass>;
}

/**
 * The launch of a program by a page: its entry point, the work-groups along x, y and z, and
 * the slots of its bindings in order. `module` is a WebAssembly module in base64, whose
 * memory has `stack_bytes` for the stack and the kernel's `scratch_bytes`; "" where the page
 * compiles the text.
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
 * A program in one language, with a link or null for each of its lines; or the error of its
 * renderer. Of machine code, `help` explains each mnemonic; `costs` has the cost of each
 * line by a tool for a processor (`costs_by`), if there is one; `made_by` has the passes of
 * the compiler, once they were requested. Of a machine that is not here, `note` says in
 * words what the code takes of the machine, and `live` has the number of registers in use at
 * each line. A program that a page can run has a `launch`.
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
 * A legal opt, or several that gain together. `predicted` and `measured` are speed-ups over
 * the variant that it is offered to, measured in turns with that. `spread` is half the
 * interval of the measured speed-up, as a share of it (null: too few rounds to tell);
 * `differs`: the speed-up is beyond the noise. `counts` says how the accesses of work-groups
 * change, before -> after ("": not known). `busy`: other programs had the cores in every
 * sample, so nothing was measured. Units: `seconds` of one run.
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
  busy?: boolean;
}

/**
 * An opt that is not legal, and the reason.
 */
export interface RefusedRow {
  opt: string;
  why: string;
}

/**
 * The cost of a run by the kernel's loop nest, on as many parallel parts of the machine as
 * `threads` (`of`: "thread", "unit"); `notes` are lines about it. Units: bytes from each
 * level, seconds that each part takes alone, roofs in operations a second.
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
 * A share of a peak: of the whole machine ("peak"), or of the threads of a kernel that
 * leaves cores to others ("one thread's peak").
 */
export interface ShareRow {
  fraction: number;
  of: string;
}

/**
 * A timing. Units: `spread` and `cold_spread` are shares of the median, `samples` are
 * seconds; the speeds are in 1e9 operations and 1e9 bytes a second. `run` names the
 * measurement, `machine` another machine than this one ("": it was this one).
 * `random_inputs`: the expression's own inputs were not available. `moved_bytes` are loaded
 * and stored in one run (null: as the variant's counts say). `share` is the share of the
 * peak as it is now known (null: it does not apply). `busy` is the time of a loop of known
 * length beside the timing, in units of its time at rest (null: unknown). `medians` are
 * those of earlier measurements in this session; `doubts` say why the timing is not certain.
 * `had`: other programs had the kernel's cores for a part of all samples but one; the time
 * is for how long it had them, and this is its share of them (null: two samples are
 * undisturbed). `later`: a later, less certain time, in words ("": none).
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
  had?: number | null;
  later?: string;
}

/**
 * The verdict on a result, and its words; `ok` is null where only a part was compared, and
 * that has no fault.
 */
export interface CheckRow {
  ok: boolean | null;
  text: string;
}

/**
 * A candidate of a search, as a list; `parent` is the number of the candidate that it was
 * made from. Units: seconds of one run (null: not timed); `spread` of its runs is a share of
 * their median (null: too few to tell).
 */
export type CandidateRow = [number: number, parent: number | null, how: string, seconds: number | null, note: string, spread: number | null];

/**
 * The candidates of a search; `best` is the number of one. `predicted`: their times are of a
 * model, for a machine that is not here. Units: `seconds` that the search took, and the
 * seconds that it was given (null: not known); `when` it ended, in seconds of the epoch (0:
 * not known).
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
  budget_s?: number | null;
  when?: number;
}

/**
 * A kernel with opts, and what is known of it on the session's device. `python` stands by
 * itself; `recipe` binds `kernel` after the lines of the expression. `opts` are Python, and
 * `opt_rows` the same opts in words. A deleted variant keeps its place, and is not shown.
 * `elsewhere` has the timings on other devices than the session's; `code_elsewhere` has
 * machine code and statement trees for other devices, as far as they were requested. `gpu`
 * is its run on the emulator, if there was one with steps. `default_of` is the device whose
 * default opts the variant has, or was made from ("": none). `searches` are those that found
 * it. Units: `when` it was made, in seconds of the epoch; 0 for a variant that every record
 * has.
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
  searches: Array<SearchRow>;
  rules_off: Array<string>;
  code_elsewhere?: Array<CodeRow>;
  gpu?: GpuTrace | null;
  default_of?: string;
}

/**
 * A box of the picture: `x` and `y` are its left upper corner, `n` its node in the record.
 * `patch` is the ground behind it, as an SVG path ("": it is in no kernel). `step` is the
 * number of decisions after which its kernels are known.
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
 * the ground along it as an SVG path, if one kernel has both nodes.
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
 * several kernels stands on the ground of the first.
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
 * Why a value is stored or fused. `estimates` are the numbers that decided, by name;
 * `choices` are the ways that were compared, and `costs` says the same in sentences.
 * `tradeoff`: the value is fused although that costs something. `rank` is its place, from 0,
 * among the decisions that explain best why there are not more kernels (None: it is not one
 * of them). `value` is the value in words; `name` is that, too, or the title of the kernel
 * that ends with it, after the user's name. `is_requested`: it is a result, or asked to be
 * stored. `is_copy`: it is only copied to a device. `python` prints the decision, after the
 * lines of the expression. `rewrites` are the steps, from 1, of the pass `rewritten_by`
 * (null: none) that make kernels of the value.
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
  rewritten_by: number | null;
  rewrites: Array<number>;
}

/**
 * A choice by hand in words: the node that it is about (null: it is not in the record), and
 * its kind, as in the request that undoes it.
 */
export interface HandChoiceRow {
  node: number | null;
  kind: "before" | "changes" | "in_place" | "recompute" | "split";
  text: string;
}

/**
 * This plan beside the one before it; `kernels` and `seconds` are those of the earlier one
 * and of this one. `change` is the place of the decision that was forced, `moved` are the
 * places of others that changed. `speed` says which plan is faster, `verdict` says it as a
 * sentence. On a busy machine neither has `seconds`: `busy_s` are estimates, from which no
 * ratio follows. `predicted_s` is the predicted time of the earlier plan (null: not known),
 * `bytes` the most that each holds at once, `operations` those of all its kernels. `number`
 * is that of this plan; `kernels_now` and `variants_now` have the places that the kernels
 * and variants of the earlier plan have in this record (null: none).
 */
export interface ComparedPlans {
  kernels: [number, number];
  change: number | null;
  moved: Array<number>;
  seconds: [number, number] | null;
  speed: string;
  verdict: string;
  predicted_s: number | null;
  bytes: [number, number];
  operations: [number, number];
  number?: number;
  kernels_now?: Array<number | null>;
  variants_now?: Array<number | null>;
  busy_s?: [number, number] | null;
}

/**
 * A fold: `size` kernels from kernel `first` on, repeated `times` times one after the other.
 * `title` names the kernels of one time, without those that only draw random numbers, unless
 * all do. `module` is the path of the user's module that all belong to ("": none); a module
 * that is folded comes once, and so do the kernels that draw weights.
 */
export interface PlanRepeat {
  first: number;
  size: number;
  times: number;
  title: string;
  module: string;
}

/**
 * A value that a kernel reads from memory, as a list: the earlier kernel that stored it
 * (`source`), the reader, its node in the record, its bytes.
 */
export type PlanRead = [source: number, reader: number, node: number, bytes: number];

/**
 * A run of a kernel with the default opts and warm caches. `like` is the first kernel that
 * is equal; a kernel without times of its own has those of that one. `spread` is a share of
 * the median. `busy_s` is the time of a run in which other programs had the cores in every
 * sample, which is no measured time. `is_certain`: nothing speaks against the measured time.
 * Units: seconds, null where the time is not known.
 */
export interface PlanRun {
  like: number;
  predicted_s: number | null;
  measured_s: number | null;
  spread: number | null;
  busy_s?: number | null;
  is_certain?: boolean;
}

/**
 * A value that a schedule computes: its node in the record, its name, its bytes, and whether
 * it is a result, which stays, or is on the way to one.
 */
export interface MemoryValue {
  node: number;
  name: string;
  bytes: number;
  is_result: boolean;
}

/**
 * The memory while a kernel runs (null: a copy to a device): the live values, as places in
 * the list of values, their bytes, and the bytes that are allocated for such values.
 */
export interface MemoryStep {
  kernel: number | null;
  bytes: number;
  allocated: number;
  values: Array<number>;
}

/**
 * The memory of a schedule, step by step, if only its results are read later. `peak` is the
 * place of the first step with most live bytes (None: there are no steps); `words` describe
 * it. `budget` says what a budget of memory did to the plan ("": it has none).
 */
export interface MemoryChart {
  values: Array<MemoryValue>;
  steps: Array<MemoryStep>;
  peak: number | null;
  words: string;
  budget?: string;
}

/**
 * A phase of kernels: its letter, and the colours that its kernels have in turn.
 */
export interface PhaseRow {
  name: string;
  letter: string;
  colours: Array<string>;
}

/**
 * A value that a kernel of the forward stores and kernels of the backward read: its node in
 * the record, its name, the module and the line that made it, its kernel, its readers, its
 * bytes.
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
 * `repeats` are in the order of their kernels, outer ones before inner ones; `runs` has a
 * row for each kernel. `phases` are those of the kernels ([]: nothing is trained, and no
 * weights are drawn), `activations` begin with the largest. `hint` says what would make a
 * simpler plan ("": nothing is known). `check` is the verdict on all kernels and results
 * (null: not checked). `by_hand` are the reader's choices.
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
  by_hand: Array<HandChoiceRow>;
  hint?: string;
  check?: CheckRow | null;
}

/**
 * The buffer of a slot of a kernel. `data` has its elements, little-endian, in base64. If it
 * is `written`, they are the right result, and an element may be off by at most `tolerance`;
 * otherwise they are what the kernel reads ("": it never touches the slot).
 */
export interface PageBuffer {
  dtype: string;
  size: number;
  written: boolean;
  data: string;
  tolerance: number;
}

/**
 * The buffers of a kernel, and in words the reference of its right results (`against`); or
 * the `error` that says why there are none.
 */
export interface PageData {
  buffers: Array<PageBuffer>;
  error?: ErrorWords | null;
  against?: string;
}

/**
 * A part of the record that is hidden until the reader guesses. Its `path` leads to `value`
 * instead; with `only`, the table there has only the rows with these fields. A step of a
 * path is a field, or "*" for every row.
 */
export interface HiddenPart {
  path: Array<string>;
  value?: unknown;
  only?: Record<string, unknown> | null;
}

/**
 * A question about the record. Its answer is the first value that one of the paths in
 * `answers` leads to (of a list its length); a step of such a path may also be the fields
 * that a row must have. A guess is judged by its distance ("number"), by whether it is
 * within the `factor` ("factor"), whether it is the same ("choice"), or part by part
 * ("set"). Numbers are guessed in a `unit`, which is `scale` of the record's unit. `choices`
 * are the possible guesses ([]: any number).
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
 * The words of one subject.
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
 * The gap for the words of a source, as a list: a Slot of workbench/ir/text/phrases.py.
 */
export type SlotRow = [source: number, tight: number, signed: boolean];

/**
 * The phrase and the box of nodes that differ only in their sources.  Words, as in
 * workbench/ir/text/phrases.py: parts are text and slots. `name` is the node's own name ("":
 * the page makes one that begins with `letter`); `typed` is its dtype and shape, for graphs
 * with a node that `is_tensor`; leaves are named first, by `rank`; `box` has the parts in a
 * box of a graph ([]: the same parts).  In a graph: `family` is a letter in the record's
 * `families`. Arithmetic of indexes (`is_index`) may stand in the words of its readers. The
 * role: a "constant" always stands in them; a "join" has nothing of its own; a "loop" can be
 * closed; an "axis" has `size` steps; an "access" reads or writes at its first source; a
 * "place" has the memory as its first source, then indexes; what is "due" will be made of
 * its sources by a rule, and is explained by their names.  `values`: "" where Python can
 * compute the node's values; "lowered" where they are in registers of the lowered program;
 * "none" where the node has none.
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
 * Python code that a page copies. `plan` prints the plan, after the lines of the expression;
 * `opts` are examples of opts, `baseline` adds a function to compare with, `add` adds a
 * variant; `without` is the text before and after the name of a rule that is to be off;
 * `replan` makes the choices by hand again ("": there are none); `script` writes all kernels
 * as a script.
 */
export interface PageRecipes {
  plan: string;
  opts: string;
  baseline: string;
  add: string;
  without: Array<string>;
  replan: string;
  script: string;
}

/**
 * Python code for a pass, after the lines of the expression and of the variant: `outcome`
 * prints its result, `match` is the text before and after the number of one of its matches.
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
 * A device, with the names of its languages. `how_to_get` says what to install, or what the
 * device is if it is `available`. `elsewhere`: it is a machine that is not here. `groups`:
 * it has work-groups, as a GPU has. `machine_code`: there is machine code to read.
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
 * A language that code is shown in, and the `device` that runs it ("": none). `is_emulated`:
 * edited text runs on the emulator where that device is not here. Code of the role
 * "machine", "statements" or "text" differs from device to device; edited, a "text" (the IR)
 * runs on each. Regular expressions: `comment`, `word` (shown in bold), and `head`, of the
 * line where the kernel begins.
 */
export interface LanguageRow {
  name: string;
  title: string;
  comment: string;
  word: string;
  head: string;
  device: string;
  role?: "machine" | "program" | "statements" | "text";
  is_emulated?: boolean;
}

/**
 * The rules that are off, and in words what differs without them.
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
 * This machine, or one that is not here, by its published figures, with their `sources`.
 * `kind` says what its `cores` are ("core", or "unit" of a GPU). Units: bytes of each cache,
 * peak in operations a second, bandwidth and copy in bytes a second; null where no speed is
 * known.
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
 * The effect of a kind of opt, in words: `here`, on a processor, and on a GPU.
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
 * The cause of a node, one step back, as a list: a pass, the number of its rewrite from 1
 * (0: the whole pass), and the node that it was before.
 */
export type CauseRow = [place: number, number: number, node: number];

/**
 * Every node, a list for each field, sources before users. `dtype` is "" for void; `reading`
 * is a place in the record's `readings`. `lines` are the user's lines that made the node,
 * the one to show first; each is a list of places: its own, then those of the lines in
 * functions that it called. `causes` say where the node comes from.
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
 * A rule, an opt or a step that fired, with the file and the line of its source, and its
 * table (`set`). One that `is_fixed` cannot be switched off.
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
 * The outcome of a pass, and how often each rule fired in it, the most frequent first.
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
 * after it (-1: not recorded). `about` is the subject in words, such as the value that is
 * read ("": none).
 */
export type RewriteRow = [rule: number, before: number, after: number, root: number, about: string];

/**
 * A pass with its states and rewrites. `before` and `after` are the roots of the states,
 * their texts are places in `texts`. Of many matches only the first ones have rewrites.
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
 * A kernel of the plan. `root` is its un-optimised variant; `opens` is the variant that a
 * page opens with, if that is another. `data` has its buffers, for a page that runs it.
 * `modules` are the user's modules that made what it computes, each with the method that was
 * called; `module` is the path of the first, and `fused` names the others in few words.
 * `phases` are its phases: "weights" for a kernel that draws them, those of training, or []
 * where nothing is trained. `opts_in_code` says which opts the user's code asks for, or why
 * they are refused. `draws_numbers`: it only draws random numbers, as kernels of weights do.
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
  fused: string;
  phases: Array<string>;
  data?: PageData | null;
  opens?: number | null;
  opts_in_code?: string;
  draws_numbers?: boolean;
}

/**
 * The time of a run in a module, without those that it calls. Units: seconds.
 */
export interface ModuleTime {
  path: string;
  seconds: number;
}

/**
 * A function to compare with: its timing, or its `error`; both are null before it is timed.
 * `about` says how it runs, and `modules` are those of a model. `is_ours`: it is the run of
 * all kernels with the default opts.
 */
export interface BaselineRow {
  name: string;
  timing: TimingRow | null;
  error: string | null;
  about?: string;
  modules?: Array<ModuleTime>;
  is_ours?: boolean;
}

/**
 * The section of one panel: `data` of a type of its own, or the `error` of building it.
 */
export interface PanelSection {
  data: unknown;
  error: ErrorWords | null;
}

/**
 * How many saved variants are restored, of all that are.
 */
export interface RestoringRow {
  done: number;
  total: number;
}

/**
 * A plan that an earlier session of the notebook saved: its name, and the number of its
 * choices by hand. Units: `when` the last one was made, in seconds of the epoch.
 */
export interface SavedPlanRow {
  id: string;
  choices: number;
  when: number;
}

/**
 * Everything that a page shows. `panels` has the section of each panel by its name (null:
 * not built yet). `n` counts the patches of a session, and is missing without one. `origin`
 * says which file the record was loaded from. `saved` counts the variants of the expression
 * that other notebooks saved, and that are not shown; `saved_edits` are words, each on
 * edited texts that are not shown because they failed, or because other rules were off;
 * `restoring` counts those that are being restored (null: none); `unsaved` are words on what
 * a limit leaves out of what is saved. `saved_plans` can be made again. `runs` are the last
 * two runs of the kernels, the latest last. `ask` is the question that waits for a guess;
 * `left_out` says in words what a saved copy lacks.
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
  saved_edits: Array<string>;
  restoring: RestoringRow | null;
  unsaved: Array<string>;
  saved_plans: Array<SavedPlanRow>;
  baselines: Array<BaselineRow>;
  panels: Record<string, PanelSection | null>;
  n?: number;
  origin?: string;
  runs?: Array<RunRecord>;
  ask?: QuestionRow | null;
  left_out?: string;
}

/**
 * No result: what changed comes as a patch.
 */
export interface NoResult {
}

/**
 * What the search of all kernels has found, in lines.
 */
export interface SearchedReply {
  said: string;
}

/**
 * The variant that a request made, or led to; `said` is what a reader must know of it ("":
 * nothing).
 */
export interface VariantReply {
  variant: number;
  said?: string;
}

/**
 * An opt of a list, as Python (`text`) and in words (`row`). If it is not legal after the
 * opts before it, `because` says why, and `try` what to do; both are "" if it is legal.
 */
export interface OptVerdict {
  text: string;
  row: OptRow;
  because: string;
  try: string;
}

/**
 * A list of opts, each with its verdict, and the list as Python (`text`); `amounts` are the
 * legal amounts of the opt at the place that was named.
 */
export interface OptsReply {
  opts: Array<OptVerdict>;
  amounts: Array<number>;
  text: string;
}

/**
 * Source that is being edited, compiled: `code` has the source and its machine code, or
 * nothing if there is an error.
 */
export interface EditedCode {
  code: Array<CodeRow>;
  error: ErrorWords | null;
}

/**
 * The trial of a typed rule in words, whether the first of them say that the rule is wrong,
 * and the variant with the rule (null: it is wrong, and was not applied).
 */
export interface RuleTrialReply {
  words: Array<string>;
  is_wrong: boolean;
  variant: number | null;
}

/**
 * The variant without a rule; or the number of patches `n`, where the record began anew.
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
 * The number of patches so far, with which the record began anew.
 */
export interface PatchCount {
  n: number;
}

/**
 * The number of jobs that were dropped.
 */
export interface StoppedJobs {
  stopped: number;
}

/**
 * The number of patches so far, and the packed record (null: the page did not need it).
 */
export interface WholeRecord {
  n: number;
  record: string | null;
}

/**
 * The value of a node at a position, or the first of several; the least and the greatest of
 * all its values, their number of NaNs, and their shape.
 */
export interface NodeValue {
  value: boolean | number | string | Array<boolean | number | string>;
  min: boolean | number | string | null;
  max: boolean | number | string | null;
  nan: number;
  shape: Array<number>;
}

/**
 * An axis of a node's values: of a tensor the number of its dimension, of a kernel its name.
 */
export interface ValueAxis {
  name: string;
  size: number;
}

/**
 * Numbers of values, and of those that are NaN, infinite or zero; extremes and mean of the
 * finite values (null: there is none). Bin i of their histogram goes from edge i to edge i +
 * 1, or is the whole number at edge i (`is_whole`).
 */
export interface ValueSummary {
  size: number;
  nan: number;
  infinite: number;
  zeros: number;
  min: boolean | number | string | null;
  max: boolean | number | string | null;
  mean: number | null;
  edges: Array<number>;
  counts: Array<number>;
  is_whole: boolean;
}

/**
 * A matrix of `height` by `width` values in blocks of `block` rows and columns: the mean of
 * the finite values of each (null: it has none), and its marks, a sum: 1 some NaN, 2
 * infinity, 4 minus infinity, 8 the least, 16 the greatest value of the matrix.
 */
export interface ValuePicture {
  height: number;
  width: number;
  block: [number, number];
  columns: number;
  means: Array<number | null>;
  marks: Array<number>;
}

/**
 * The values of a part of the matrix, row by row: the part begins at row and column `first`,
 * and has `columns` columns. Whole numbers that JavaScript rounds are texts.
 */
export interface ValueWindow {
  first: [number, number];
  columns: number;
  values: Array<boolean | number | string>;
}

/**
 * The values of a node along two of its `axes`, `rows` and `columns` ("": it has fewer), at
 * the positions `at` of its other ones. `kernel` is the kernel whose data they are of (null:
 * of a tensor). `part`: axes that stand still in the summary, too, because all values would
 * be too many.
 */
export interface ValueTable {
  text: string;
  dtype: string;
  kernel: number | null;
  axes: Array<ValueAxis>;
  rows: string;
  columns: string;
  at: Record<string, number>;
  part: Array<string>;
  summary: ValueSummary;
  picture: ValuePicture;
  window: ValueWindow;
}

/**
 * The comparison of all values with numpy's in words (`text`), and the first wrong value:
 * its node (null: there is none), and the place of its greatest error.
 */
export interface NodeChecksReply {
  text: string;
  node: number | null;
  at: Array<number>;
}

/**
 * The accesses of a buffer by steps of an axis or by instructions of a warp, in order: the
 * `step` of each, the number of its `element`, whether it is written, and its statement or
 * lane. `unknown` counts the places in the program whose index depends on memory, which are
 * not listed. Units: bytes of an element, and of a cache line.
 */
export interface AccessedBuffer {
  name: string;
  user: string;
  dtype: string;
  element_bytes: number;
  line_bytes: number;
  shape: Array<number>;
  space: string;
  steps: Array<number>;
  elements: Array<number>;
  writes: Array<boolean>;
  statements: Array<number>;
  lanes: Array<number>;
  unknown: number;
}

/**
 * A statement that accesses memory, as text and as a node of the record.
 */
export interface AccessStatement {
  text: string;
  node: number;
}

/**
 * The accesses of `count` steps of an axis from `first` on, or of the instructions of the
 * warp `axis` "", number `first` of `warps`, whose names are `names`. `axes` are those of
 * the loop nest, loops first; `around` those that stand still, and `at` has positions of
 * these.
 */
export interface AccessesReply {
  axes: Array<AxisRow>;
  axis: string;
  first: number;
  count: number;
  warps: number;
  names: Array<string>;
  around: Array<AxisRow>;
  at: Record<string, number>;
  statements: Array<AccessStatement>;
  buffers: Array<AccessedBuffer>;
}

/**
 * One fact about the compared variants, as a list: its label, a text for each ("": it lacks
 * it), whether they differ, and what a reader may look at: a pass and a rule, or an axis.
 */
export type ComparedRow = [label: string, cells: Array<string>, differs: boolean, about: Array<string>];

/**
 * Rows about one subject; `text` is a difference line by line ("": none).
 */
export interface ComparedSection {
  title: string;
  rows: Array<ComparedRow>;
  text: string;
}

/**
 * A plan that can stand beside the present one, as a list: its name in requests, its title,
 * and what it is: a plan of these tensors, another exploration of the notebook, or that of a
 * file.
 */
export type OtherPlan = [name: string, title: string, kind: "exploration" | "file" | "plan"];

/**
 * A variant of another exploration, as a list: its place there, its name.
 */
export type OwnVariant = [place: number, name: string];

/**
 * The first column, where it is of another device, plan or set of rules: its number in
 * requests, and its record, packed, with its kernel and its variant (null: no kernel there).
 */
export interface OtherSide {
  number: number;
  record: string;
  kernel: number | null;
  variant: number | null;
}

/**
 * The differences of variants, in columns with these names. `plans` can be asked for instead
 * of the present one, and `own` are the variants of the one that was asked for; `side` is
 * the first column (null: it is of this record), `values` are the values of both plans
 * (null: they are one plan, or very large).
 */
export interface CompareReply {
  names: Array<string>;
  sections: Array<ComparedSection>;
  plans: Array<OtherPlan>;
  own: Array<OwnVariant>;
  side: OtherSide | null;
  values: PairsReply | null;
}

/**
 * A node of the first graph, and its partner in the second, as a list of their places.
 */
export type NodePair = [before: number, now: number];

/**
 * The nodes of two graphs: the pairs that are the same, those that are not, the nodes that
 * only the first has, and those that only the second has.
 */
export interface PairsReply {
  same: Array<NodePair>;
  changed: Array<NodePair>;
  removed: Array<number>;
  added: Array<number>;
}

/**
 * What is predicted of a plan: its kernels, the sum of their times with the default opts
 * (null: not known), and the most bytes that are held at once.
 */
export interface PlanForecast {
  kernels: number;
  seconds: number | null;
  bytes: number;
}

/**
 * A choice by hand, with the fields of its request, and what the plan would be with it
 * (null: it is `refused`, for this reason).
 */
export interface ChoiceOffer {
  kind: "before" | "changes" | "in_place" | "recompute" | "split";
  title: string;
  node: number;
  store: boolean | null;
  others: Array<number>;
  parts: number;
  undo: boolean;
  refused: string;
  forecast: PlanForecast | null;
}

/**
 * The choices about a value, the plan `now`, and the most partial results that the value can
 * have (0: it is no reduction).
 */
export interface OfferedChoices {
  offers: Array<ChoiceOffer>;
  now: PlanForecast;
  most_parts: number;
}

/**
 * Why a rule does not fire: the part of its text that failed begins and ends at the carets.
 */
export interface WhyNotReply {
  text: string;
  caret_start: number;
  caret_end: number;
  because: string;
}

/**
 * Lines of source text, with what they are (`title`), their file as rows name it and its
 * `path` on the machine of Python (both "" for a cell), and the first line's number; `more`
 * lines after them are left out.
 */
export interface CodePart {
  title: string;
  file: string;
  path: string;
  line: number;
  text: string;
  more: number;
}

/**
 * The code of a rule or a step: its row in the table, then the functions that the row names.
 */
export interface RuleCode {
  parts: Array<CodePart>;
}

/**
 * A program that was made of a state in the middle of a pass, and what it is, in words.
 */
export interface LoweredReply {
  code: CodeRow;
  words: string;
}

/**
 * The first wrong rewrite in words, with its step and its pass (null: there is none, or the
 * record lacks it).
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
 * The changes of a record: first rows are appended, then values are set, each at a path of
 * names and places.
 */
export interface RecordPatch {
  append: AppendedRows;
  set: Array<[Array<string | number>, unknown]>;
}

/**
 * The reply to the request of the same `id`; `result` is of the request's `reply` type, null
 * where there is an error. `record` is the number of the record that it is about, where that
 * stands beside the page's own.
 */
export interface ReplyMessage {
  id: number | null;
  ok: boolean;
  error: ErrorWords | null;
  result: unknown;
  patch?: RecordPatch | null;
  record?: number;
}

/**
 * The task under way (null: none), and how much of it is done.
 */
export interface ProgressRow {
  task: string | null;
  done: number;
  total: number;
  text: string;
}

/**
 * A message about the task under way.
 */
export interface StatusMessage {
  status: ProgressRow;
}

/**
 * A text that the page shows for a while.
 */
export interface NoticeMessage {
  notice: string;
}

/**
 * A patch that belongs to no reply; `record` as in a reply.
 */
export interface PatchMessage {
  patch: RecordPatch;
  record?: number;
}

/**
 * The whole record, which began anew.
 */
export interface RenewedMessage {
  result: WholeRecord;
}

/**
 * The selection of a page; nodes, lines, kernels and variants are places; `only` is the one
 * pane that is shown. What is not set does not change.
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
 * Apply an opt, or several, to a variant.
 */
export interface ApplyRequest {
  do: "apply";
  variant: number;
  opt: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Say of each opt of a list whether it is legal after those before it, on the un-optimised
 * kernel of a variant. Of the opt at `place` the reply has the legal amounts, too; with
 * `amount` that opt gets this amount first.
 */
export interface OptsRequest {
  do: "opts";
  variant: number;
  opts: Array<string>;
  place?: number | null;
  amount?: number | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Apply a list of opts to the un-optimised kernel of a variant. `name` is for the variant
 * with them ("": it keeps its name).
 */
export interface PasteRequest {
  do: "paste";
  variant: number;
  text: string;
  name?: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Apply the default opts to a kernel.
 */
export interface AutoRequest {
  do: "auto";
  kernel: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Render a variant in a language, for a device (null: the session's).
 */
export interface CodeRequest {
  do: "code";
  variant: number;
  language: string;
  device?: string | null;
  id?: number | null;
  record?: number | null;
}

/**
 * List the next opts of a variant.
 */
export interface OffersRequest {
  do: "offers";
  variant: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Compile a variant, so that the record gets its passes.
 */
export interface PassesRequest {
  do: "passes";
  variant: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Add the buffers of a kernel, with which the page runs it.
 */
export interface DataRequest {
  do: "data";
  kernel: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Pin a variant; null: pin none.
 */
export interface PinRequest {
  do: "pin";
  variant: number | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Name a variant; "": after its opts.
 */
export interface NameRequest {
  do: "name";
  variant: number;
  text: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Delete variants, or bring them `back`.
 */
export interface DeleteRequest {
  do: "delete";
  variants: Array<number>;
  back?: boolean;
  id?: number | null;
  record?: number | null;
}

/**
 * Show the variants that other notebooks saved of the expression; or the saved edits that
 * the record counts in the words `edits`; or make a saved `plan` by hand again.
 */
export interface SavedRequest {
  do: "saved";
  edits?: string;
  plan?: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Delete from disk the variants of the expression that other notebooks saved, and that are
 * not shown; or a saved `plan` by hand.
 */
export interface ForgetRequest {
  do: "forget";
  plan?: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Set the note of a variant.
 */
export interface NoteRequest {
  do: "note";
  variant: number;
  text: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Switch the session to another device.
 */
export interface DeviceRequest {
  do: "device";
  name: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Time variants in turns, also with cold caches if `cold`.
 */
export interface MeasureRequest {
  do: "measure";
  variants: Array<number>;
  cold?: boolean | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Compare the result of a variant with the reference.
 */
export interface CheckRequest {
  do: "check";
  variant: number;
  id?: number | null;
  record?: number | null;
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
  record?: number | null;
}

/**
 * Compile source that is being edited, without running it; `text` null: the source that the
 * variant was edited to before.
 */
export interface CompileRequest {
  do: "compile";
  variant: number;
  language: string;
  text: string | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Add the costs of a variant's instructions on a device (null: the session's), if a tool
 * here knows them.
 */
export interface CostsRequest {
  do: "costs";
  variant: number;
  device?: string | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Add the passes of the compiler that made the machine code of a variant.
 */
export interface CompilerPassesRequest {
  do: "compiler_passes";
  variant: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Time the baselines in turns with the pinned variant and `variants`.
 */
export interface BaselineRequest {
  do: "baseline";
  variants?: Array<number> | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Compute the value of a node of a pass at positions of its axes.
 */
export interface ValuesRequest {
  do: "values";
  variant: number | null;
  pass: number;
  node: number;
  at: Record<string, number>;
  id?: number | null;
  record?: number | null;
}

/**
 * Compute the values of a node (null: the result of the variant's kernel) along two of its
 * axes ("": the last ones), at the positions `at` of the others; the numbers that are sent
 * begin at row and column `first`. A node of several kernels is that of the variant's
 * kernel.
 */
export interface TableRequest {
  do: "table";
  variant: number | null;
  node: number | null;
  rows: string;
  columns: string;
  at: Record<string, number>;
  first: Array<number>;
  id?: number | null;
  record?: number | null;
}

/**
 * Find the first value of the expression that differs from numpy's.
 */
export interface CheckNodesRequest {
  do: "check_nodes";
  id?: number | null;
  record?: number | null;
}

/**
 * List the accesses of at most `steps` steps of an axis of a variant ("": its innermost
 * loop), from step `first` on, with the axes around it at the positions `at`; or those of
 * the loads and stores of the `warp` of this number.
 */
export interface AccessesRequest {
  do: "accesses";
  variant: number;
  axis: string;
  at: Record<string, number>;
  first: number;
  steps: number;
  warp?: number | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Compare variants in columns. The first may be of another `device`, without the rules
 * `without`, and in another `plan` ("": this one); `plans` of a reply has the names of
 * plans, and "file PATH" is one, too. `own`: that other exploration's own variant (null: the
 * opts of the first variant there). `device` null: this record's, or that of `own`.
 */
export interface CompareRequest {
  do: "compare";
  variants: Array<number>;
  device?: string | null;
  without?: Array<string>;
  plan?: string;
  own?: number | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Pair the nodes below roots of a graph of the first column with those below roots of one in
 * this record. `side` is the number of the first column's record (null: this record).
 */
export interface PairsRequest {
  do: "pairs";
  side: number | null;
  before: Array<number>;
  now: Array<number>;
  id?: number | null;
  record?: number | null;
}

/**
 * Time a variant of the first column's record and one of this record in turns, also with
 * cold caches if `cold`. `side` is the number of the first column's record.
 */
export interface MeasureBesideRequest {
  do: "measure_beside";
  side: number;
  before: number;
  now: number;
  cold?: boolean | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Make the program that a variant would be if a pass stopped after `step` rewrites, in a
 * language of the session's device (another one: in the language that the device runs).
 */
export interface LowerOnRequest {
  do: "lower_on";
  variant: number;
  pass: number;
  step: number;
  language: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Say why a rule does not fire at a node.
 */
export interface WhyNotRequest {
  do: "why_not";
  pass: number;
  node: number;
  rule: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Send the source text of a rule or a step.
 */
export interface RuleCodeRequest {
  do: "rule_code";
  rule: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Switch a rule (a place or a name) off, or `on` again: in the expression if scheduling uses
 * the rule, else in the variant `of` of a kernel (null: the un-optimised one).
 */
export interface RuleOffRequest {
  do: "rule_off";
  kernel: number | null;
  rule: number | string;
  on: boolean | null;
  of?: number | null;
  id?: number | null;
  record?: number | null;
}

/**
 * Test a rule that the reader typed on values; unless it is wrong, add the variant with it.
 * The reply has the lines of a language that the rule changes.
 */
export interface TryRuleRequest {
  do: "try_rule";
  variant: number;
  text: string;
  language: string;
  id?: number | null;
  record?: number | null;
}

/**
 * Find the first rewrite after which a variant is wrong.
 */
export interface BisectRequest {
  do: "bisect";
  variant: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Plan again with a choice by hand about a value. Of "changes": it is stored, fused, or left
 * to the scheduler (null). Of others, unless they `undo` one: the readers that compute it
 * again, the number of partial results, the value of the kernel after its own, the value
 * that it is written over (none: over no other). Without a node all choices are undone.
 */
export interface ReplanRequest {
  do: "replan";
  node: number | null;
  store?: boolean | null;
  kind?: "before" | "changes" | "in_place" | "recompute" | "split";
  others?: Array<number>;
  parts?: number;
  undo?: boolean;
  id?: number | null;
  record?: number | null;
}

/**
 * List the choices by hand about a value, with what the plan would be with each; with
 * `parts` (not 0) that many partial results alone.
 */
export interface ChoicesRequest {
  do: "choices";
  node: number;
  parts?: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Time this plan and the one before it.
 */
export interface PlansRequest {
  do: "plans";
  id?: number | null;
  record?: number | null;
}

/**
 * Compare all kernels and all results with the reference.
 */
export interface CheckAllRequest {
  do: "check_all";
  id?: number | null;
  record?: number | null;
}

/**
 * Time the kernels that have no time yet, with the default opts.
 */
export interface KernelsRequest {
  do: "kernels";
  id?: number | null;
  record?: number | null;
}

/**
 * Run all kernels `repeat` times, as they were chosen.
 */
export interface RunRequest {
  do: "run";
  repeat: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Search for faster opts of all kernels, for `budget_s` seconds, and write them to the
 * tuning file.
 */
export interface SearchAllRequest {
  do: "search_all";
  budget_s: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Search for faster opts, for `budget_s` seconds.
 */
export interface SearchRequest {
  do: "search";
  variant: number;
  budget_s: number;
  id?: number | null;
  record?: number | null;
}

/**
 * Run a variant on the emulator, and record each step of a work-group, by its numbers along
 * x, y and z (null: the group of the first finding, or else the first group). `without` is
 * the number of a barrier that is removed from the program. `unasked`: the page sent the
 * request by itself; a run that takes long is then left out.
 */
export interface EmulateRequest {
  do: "emulate";
  variant: number;
  group?: Array<number> | null;
  without?: number | null;
  unasked?: boolean;
  id?: number | null;
  record?: number | null;
}

/**
 * Drop the jobs that are under way.
 */
export interface StopJobs {
  do: "stop";
  id?: number | null;
  record?: number | null;
}

/**
 * Send the number of patches, and the whole record if the page has another number (`have`;
 * null: never send the record).
 */
export interface PingRequest {
  do: "ping";
  have?: number | null;
  id?: number | null;
  record?: number | null;
}

/**
 * A kernel of a run, whose `launches` are spans; equal launches are one row. `key` is a
 * digest of the kernel before opts, by which two runs are compared. `module`, `line` and
 * `phase` are "" where unknown; `place` is its position in the exploration (null: it is of
 * none). `flops` and `bytes` are those of the algorithm, a launch. `bound` is what it waits
 * for by the model, `why` the numbers, `predicted_ns` its time by the model (null: not
 * known), and `ratio` measured by predicted. `total_ns` is the time of all launches, `share`
 * of the time in kernels; `low_ns` and `high_ns` are the ends of the middle half of the
 * launches.
 */
export interface RunKernel {
  key: string;
  name: string;
  title: string;
  kind: string;
  device: string;
  opts: string;
  module: string;
  line: string;
  phase: string;
  place: number | null;
  flops: number;
  bytes: number;
  predicted_ns: number | null;
  bound: string;
  why: string;
  launches?: number;
  total_ns?: number;
  least_ns?: number;
  median_ns?: number;
  low_ns?: number;
  high_ns?: number;
  share?: number;
  ratio?: number | null;
}

/**
 * A lane of the timeline. A "python" lane has nested spans of the work around kernels; a
 * "device" lane the kernels that a thread launched on a `device`; a "worker" lane the parts
 * of kernels that a thread of the pool ran.
 */
export interface RunLane {
  name: string;
  kind: "device" | "python" | "worker";
  device: string;
  thread: number;
}

/**
 * The spans in order of their start, as columns. `kind` is a place in the run's `kinds`;
 * `subject` of a kernel or of its part is a place in `kernels`, else in `names` (-1: none).
 * `depth` is 0 but for nested spans of Python lanes.
 */
export interface RunSpans {
  start_ns: Array<number>;
  length_ns: Array<number>;
  lane: Array<number>;
  depth: Array<number>;
  kind: Array<number>;
  subject: Array<number>;
}

/**
 * The time of device lanes without a kernel, as columns: each gap is cut where the work that
 * the thread did in it changes. `cause` is a place in the run's `causes`.
 */
export interface RunGaps {
  start_ns: Array<number>;
  length_ns: Array<number>;
  lane: Array<number>;
  cause: Array<number>;
}

/**
 * Blocks of memory as columns: the block `bytes` large was in use from `start_ns` to
 * `end_ns` (-1: to the end of the run and after), in `memories[memory]`; `label` is a place
 * in the run's `names`, of what wrote it first (-1: unknown). `before_bytes` were in use
 * when the run began, in each memory. `peak_bytes` is the most at once, at `peak_ns`.
 * `is_planned`: the blocks are those of the plan, placed where its kernels ran.
 */
export interface RunMemory {
  memories: Array<string>;
  before_bytes: Array<number>;
  start_ns: Array<number>;
  end_ns: Array<number>;
  bytes: Array<number>;
  memory: Array<number>;
  label: Array<number>;
  peak_bytes: number;
  peak_ns: number;
  is_planned?: boolean;
}

/**
 * The time of a part of a run: of the kernels of a phase, a module or a kind, or of a cause
 * of gaps. `share` is of all these parts together.
 */
export interface RunShare {
  name: string;
  ns: number;
  share: number;
  count: number;
}

/**
 * The error that ended a span, by its place.
 */
export interface RunError {
  span: number;
  text: string;
}

/**
 * A change that would save `saves_ns` of the whole run: the kernel in `kernels` with `opts`.
 * It takes `to_ns` a launch instead of `from_ns`: as measured, or by the model's ratio.
 */
export interface RunHelp {
  kernel: number;
  opts: string;
  saves_ns: number;
  from_ns: number;
  to_ns: number;
  is_measured: boolean;
}

/**
 * A run. `rounds` are the starts of the repetitions of `ex.run` ([]: it is a profile of
 * code). `phases` says where the time of the launching threads went. `error` is the error
 * that ended the run ("": it ended), `notices` what is missing or strange in it.
 */
export interface RunRecord {
  title: string;
  machine: string;
  length_ns: number;
  rounds: Array<number>;
  kinds: Array<string>;
  causes: Array<string>;
  names: Array<string>;
  kernels: Array<RunKernel>;
  lanes: Array<RunLane>;
  spans: RunSpans;
  gaps: RunGaps;
  memory: RunMemory;
  phases: Array<RunShare>;
  modules: Array<RunShare>;
  by_kind: Array<RunShare>;
  help: Array<RunHelp>;
  errors: Array<RunError>;
  error: string;
  notices: Array<string>;
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
  | TableRequest
  | CheckNodesRequest
  | AccessesRequest
  | CompareRequest
  | PairsRequest
  | MeasureBesideRequest
  | LowerOnRequest
  | WhyNotRequest
  | RuleCodeRequest
  | RuleOffRequest
  | TryRuleRequest
  | BisectRequest
  | ReplanRequest
  | ChoicesRequest
  | PlansRequest
  | CheckAllRequest
  | KernelsRequest
  | RunRequest
  | SearchAllRequest
  | SearchRequest
  | EmulateRequest
  | StopJobs
  | PingRequest;

/** A message of Python. */
export type Message =
  | ReplyMessage
  | StatusMessage
  | NoticeMessage
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
  table: ValueTable;
  check_nodes: NodeChecksReply;
  accesses: AccessesReply;
  compare: CompareReply;
  pairs: PairsReply;
  measure_beside: NoResult;
  lower_on: LoweredReply;
  why_not: WhyNotReply;
  rule_code: RuleCode;
  rule_off: RuleReply;
  try_rule: RuleTrialReply;
  bisect: BisectReply;
  replan: PatchCount;
  choices: OfferedChoices;
  plans: NoResult;
  check_all: NoResult;
  kernels: NoResult;
  run: NoResult;
  search_all: SearchedReply;
  search: VariantReply;
  emulate: NoResult;
  stop: StoppedJobs;
  ping: WholeRecord;
}
