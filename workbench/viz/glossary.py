"""The glossary: its own words, and the words of other tables.

Sections: The terms of the glossary, one row each; The glossary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from html import escape

from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord
from workbench.ir.node.ops import OPS
from workbench.ir.opt.opt import OptOps
from workbench.viz.model.graph import kind_rows
from workbench.viz.schema.record import TermGroup, TermRow

# --------------------------------------------------------------------------------------------------
# The terms of the glossary, one row each: a word of the page, and its meaning.
#
# The page shows a meaning where its word stands (an element says so with `data-term`) and all of
# them below `?`; the course prints them. Words of other tables are not repeated here: kinds of
# axes, kinds of opts, ops and passes; the functions below add them.

# fmt: off
TERMS: Mapping[str, Mapping[str, str]] = {
    "page": {
        "Board": "The graph, the passes, the opts and the source together: one selection runs"
            " through all of them.",
        "Schedule": "From tensors to kernels: the plan, its reasons, its passes, its memory.",
        "Trace a line": "A line of yours in the graph, the loops, the source and the rules that"
            " made it.",
        "Teach": "One rewrite after the other: the graph, the rule, and what becomes of it.",
        "compare": "Variants in columns. A row is one fact, such as a loop, a rule that fired or an"
            " instruction; it stands there if the variants differ in it. A click on its name shows"
            " it in the other panes.",
        "Compare plans": "Two plans, pane by pane: their graphs, their memory, their decisions.",
        "beside": "The first column: a variant, on any device, in any plan, without a rule, or of"
            " another exploration or file. Panes with this word show it beside the selected"
            " variant; what is selected on one side is selected on the other. In a graph + and −"
            " are nodes of one side alone; ≠ differs: a node, or a pass in which another rule"
            " fired.",
        "blue bar at the left": "In Compare: this loop, opt, decision, step or value differs from"
            " the one on the other side, or that side has none.",
        "accesses": "The elements of each buffer that a step of a loop touches, in order. A step is"
            " one iteration of the loop, with the loops inside of it; the loops around it stand"
            " still.",
        "values": "The values of the picked node on the data of your tensors, computed by the"
            " reference interpreter: numbers, a histogram, and a picture of two of its axes. Of a"
            " large matrix a cell is the mean of a block. \"Compare with numpy\" computes each"
            " value of the expression by kernels, in order, up to the first that differs from"
            " numpy's.",
        "step of a loop": "One iteration of a loop, with all iterations of the loops inside of it.",
        "layout": "An arrangement of panes with a name. What you make of it stays so for this"
            " notebook and this width, under that name; Reset shows it as it was at first. A"
            " page opens with the layout that its expression had last.",
        "pane": "A part of the page: its bar has the choice of another pane, and splits, enlarges"
            " or closes it. A border is dragged, or moved with arrow keys.",
        "Tune": "The loops of a kernel, the opts that change them, its times and its code.",
        "Rewrites": "What each pass did to the program, step by step, as a picture and in words.",
        "Plan": "Why there are these kernels: the expression as a graph, and each decision.",
        "Side by side": "Two programs with linked lines: two languages, variants or devices.",
        "Rules": "Every rule and step, with its pattern and example: where it fired, and a switch.",
        "GPU": "The kernel on an emulated GPU, step by step: its work-items, memories and code,"
            " with races, bank conflicts and scattered accesses.",
        "export": "Exports: the page as one file, pictures, Markdown, Python, a link.",
        "whole page": "The page as one file: it opens without Python and without a network.",
        "picture": "What is in sight, as a picture: SVG is sharp at any size, PNG can be pasted"
            " everywhere.",
        "Markdown": "This variant beside the pinned one, as a text for a report: opts, times,"
            " counts and code.",
        "as Python": "A program that makes this again, in a notebook or elsewhere.",
        "link": "An address that opens an exported page at what is shown now.",
        "progress": "What Python is doing. Stop ends it; what is known by then stays.",
        "%%kernel, %timekernel": "Commands of cells, after %load_ext workbench: %%kernel runs its"
            " cell and shows the page of the last value; %timekernel (a @ b).relu() prints the"
            " times of its kernels. %%kernel? lists the options.",
        "saved variants": "What you made of this expression before the cell ran again: it is listed"
        " again, each with its times, and nothing of it runs.",
        "error": "What went wrong, because of what, and what to try.",
        "guess": "Your guess beside the answer: ✓ is right, ✗ is not.",
        "device": "What runs the kernels. A missing one says how to get it.",
        "LLVM": "A compiler, and the device that compiles with it and runs on this machine's own"
            " processor. Its language, LLVM IR, is a text between C and machine code.",
        "NULL": "A device that compiles kernels and runs none: Python has it, the page's list"
            " of devices does not.",
        "by LLVM": "The machine code that LLVM makes of this program, for this processor.",
        "selected: plain": "In Side by side: this half follows the variant that is selected, here"
            " plain. Any other choice stays.",
    },
    "kernels": {
        "kernels": "A kernel is one program that the device runs in one go; an expression becomes"
            " one or several. A line for each: what it computes, your line, its time, its share of"
            " the whole time, and the bytes that it reads and writes.",
        "number": "The number of a kernel, in the order in which they run, on the colour that it"
            " has in Plan.",
        "lines": "The lines of your code that the expression comes from. A click lights up what"
            " was made of one, in every pane.",
        "variant": "A kernel with a list of opts, or with edited code. It computes the same, in"
            " another way.",
        "results": "The variants of the kernel that is shown, with their times. Each stands below"
            " the one that it was made from.",
        "plain": "The kernel without opts: as it came from the scheduler.",
        "auto": "The kernel with the default opts, which realize() runs.",
        "search": "The fastest kernel that a search found: it tries lists of opts, and measures.",
        "the time was over": "The search ended because the time that it had, 10 seconds for the"
            " button, was over: other lists of opts were not tried.",
        "edited": "A variant whose code was written by hand, so that it has no loops of its own.",
        "1x": "The pinned variant itself, to which the other ratios refer.",
        "!": "Something went wrong with this variant: the reason stands with it.",
        "pinned": "◆: ratios and diffs refer to this variant, the first one unless you pin another"
            " (p).",
        "baseline": "A function of your own that computes the same, timed for comparison.",
        "tried": "The lists of opts that the search tried, each below the one that it extends.",
        "kernel file": "Kernels that ran, a line of JSON each, with their opts, their device and"
            " their IR before opts: `workbench kernels` captures them, compiles and checks them"
            " again, and says how two files differ.",
        "tuning file": "The opts that searches found, a line of JSON for each kernel and machine:"
            " kernels run with them.",
        "on a device": "The time of the same kernel on another device.",
        "other devices": "Times of these variants on devices that are not shown now, and variants"
            " with the default opts of such a device.",
        "in this browser": "The kernel runs in the browser that shows the page, on its GPU through"
            " WebGPU or as WebAssembly, and its answer is compared with the reference's. It needs"
            " no Python.",
        "no kernel": "No kernel computes this value.",
        "note": "What you write about a variant; it is saved with it.",
        "EMULATOR": "This device runs kernels step by step in numpy, with checks: its times say"
            " nothing about the speed of a kernel.",
    },
    "figures": {
        "±": "How much the samples of a time differ: half the distance between their quartiles, as"
            " a share of the median; or between several measurements, where those differ more.",
        "1 run": "Timed once, because a run is slow, or Stop ended it: nothing is known of the"
            " spread.",
        "busy": "Other programs had the kernel's cores for a part of all runs, or of all but one,"
            " so its time is not known: what stands here is for how long it had them itself. Such"
            " times are not compared; time it again when less else runs.",
        "uncertain": "Of a time, marked ? or busy: other programs disturbed it, or its samples lie"
            " far apart. Such times and their ratios are not bold; the sign of a row says how"
            " much.",
        "~": "Predicted by the performance model, not measured; of a sum or a share: a part of it"
            " is.",
        "*": "Timed in another run than the pinned variant, or in an earlier session: the machine"
            " may have been slower or faster then.",
        "≈": "No measurable difference: the samples overlap.",
        "apart": "No ratio: this time and that of the pinned variant were measured at different"
            " times, when the machine may have been busier. t times both in turns.",
        "beside the first": "How many times as fast as the variant of the first column.",
        "equal rows too": "Shows the facts in which the variants do not differ, too.",
        "x": "How many times as fast: x2 takes half the time.",
        "µs": "A millionth of a second; ms: a thousandth, ns: a thousandth of a µs.",
        "warm": "The caches are as the run before left them; cold: they are flushed before each"
            " run.",
        "read": "Bytes read a second, by all threads together.",
        "copy": "Bytes copied a second, by all threads together; each counts twice.",
        "read, one": "Bytes read a second, by one thread.",
        "copy, one": "Bytes copied a second, by one thread; each counts twice.",
        "peak": "The most operations a second that this machine was seen to do, in a loop of"
            " multiply-adds on as many threads.",
        "check": "Compares the answer with that of a reference interpreter, element by element.",
        "bottleneck": "What a run waits for most, as the loops, the machine code and the estimate"
            " say.",
        "unexplained": "The time is at least 1.6 times the predicted one, or at most 0.4 times:"
            " what the model takes for the bottleneck cannot be the reason.",
        "estimate": "The time that the performance model predicts from the loops, before anything"
            " runs, and what limits it.",
        "core": "The time for the arithmetic, loads and stores alone, if all data were in the first"
            " cache.",
        "in core": "Loads and stores that the first cache answers are part of the core's time.",
        "fewer operations": "The variant is above the roof: the compiler left out work that is"
            " counted.",
        "fewer bytes": "The variant is above the roof: fewer bytes came from this memory than"
            " predicted.",
        "L1": "The cache nearest to a core: the smallest and fastest.",
        "L2": "The second cache, larger and slower than L1.",
        "L3": "The third cache, which cores share.",
        "memory": "The main memory: what does not fit into the caches comes from there.",
        "bytes": "Bytes that go through this level of memory in one run.",
        "time": "How long this part of a run would take alone.",
        "roofline": "What this machine can do at most. Across: operations for each byte loaded or"
            " stored; up: operations a second. A slope is a level of memory, the ceiling the"
            " arithmetic; a dot is a measured variant, a filled one is shown, ◆ is the pinned"
            " one.",
        "measured, and operations per byte": "The dots of the roofline in figures: operations a"
            " second, and operations for each byte loaded or stored.",
        "roof": "What a level of memory, or the arithmetic, lets a variant do at most.",
        "arithmetic": "The ceiling of the roofline: the peak for as many threads.",
        "GFLOP/s": "A thousand million floating-point operations a second.",
        "GB/s": "A thousand million bytes a second.",
        "counts": "What the program does in one run, counted in its code: exact, and the same on"
            " every run.",
        "loads": "Reads of memory, a vector counted once.",
        "stores": "Writes to memory, a vector counted once.",
        "fmas": "Multiply-adds: a * b + c. On CPUs a vector counts once, on GPUs by its elements.",
        "other": "All other arithmetic. On CPUs a vector counts once, on GPUs by its elements.",
        "bytes loaded": "Bytes that the loads read.",
        "bytes stored": "Bytes that the stores write.",
        "launch": "To start the kernel: calling it, and handing its work over to threads.",
        "hand-over to threads": "Waking the threads that share the work, and waiting for the last"
            " of them.",
        "of one thread's peak": "The share of the most operations a second that one thread was seen"
            " to do; with several threads, of the peak of as many.",
        "FMA latency": "A multiply-add that needs the result of the one before waits some cycles"
            " for it; independent ones fill the time. Add latency is the same of sums.",
        "values at once": "Values that a loop holds in registers at the same time; what does not"
            " fit goes to memory and back.",
        "tolerance": "The greatest error that rounding explains: it grows with the number of terms"
            " in a sum. A greater one is a wrong answer.",
        "KiB": "1,024 bytes; MiB: 1,024 of those.",
        "barriers": "Places where the work-items of a group wait for each other, counted for all"
            " groups.",
    },
    "loops": {
        "loops": "The loops of the kernel, outer ones first, as its program runs them; below them"
            " the statements. Opts change this picture.",
        "loop": "The kind of the axis as a letter on its colour, and its name. Bars to the left are"
            " the loops around it, in their colours.",
        "axis": "A dimension that a kernel walks along. Its name stays when an opt splits it: the"
            " outer part keeps it, the inner part gets a new one.",
        "steps": "How many times the loop runs its body.",
        "stride": "How many elements further the buffer is read or written at the next step of the"
            " loop: 1 is the neighbour, 0 the same element, varies: no single number.",
        "vec": "Neighbours in memory, moved as one vector.",
        "cache line, page": "A cache line is what a cache gets from memory at once, 64 bytes on"
            " most machines, with all its elements; new: no earlier step touched it. A page is"
            " 4 KiB of addresses: for each one the processor looks up where it lies, and it"
            " remembers few.",
        "touched": "Bytes of the buffer that one whole run of the loop touches, each element"
            " counted once; ≤ where only a bound is known.",
        "level": "The smallest cache that holds these bytes, with the whole cache lines that they"
            " lie in; the bar says how much of it these fill.",
        "sets of a cache": "A cache line may lie only in one set of places, chosen by its address."
            " Lines whose addresses are a power of 2 apart share a few sets, and push each other"
            " out while the rest of the cache is empty.",
        "axis bars": "Every axis of the kernel without opts is one bar; the parts into which opts"
            " split it are cells of that bar.",
        "statement": "What is computed in the loops around it, once for each of their steps.",
        "p0, p1": "The memory that the kernel gets: p0 is where the result goes, the others are"
            " read. Your name of an array stands beside it.",
        "acc0": "An accumulator: where a reduction collects its sum or maximum.",
        "group0": "An array in shared memory, numbered: through it the work-items of a group hand"
            " each other their parts of a reduction.",
        "names of axes": "A letter of the kind and a number: g0, u1, and x0 for GR. Those that fill"
            " a tile begin with its letter: a_l0. One loop over several axes has all their names:"
            " a_l0_a_u0.",
        "r0_first": "The first copies of a loop r0 that copies ahead: they are under way before r0"
            " begins.",
        "row0": "A row of values in scratch memory, numbered: computed once, read by more than one"
            " loop.",
        "As, Bs": "A tile of the first, second input, which STAGE copies to scratch memory. Axes"
            " that fill it begin with a_, b_.",
        "1 vec": "As a stride: the next step is the neighbour, and all move as one vector.",
        "chunked": "A loop that a launch may run in pieces, one after the other.",
        "lanes": "Steps that are computed together, as one vector or as copies of a statement.",
    },
    "opts": {
        "opts to try": "The legal opts of the variant that is shown, best first, as far as that is"
            " known. Enter marks one, a applies it.",
        "opts": "The opts of this variant, applied one after the other to the kernel without opts."
            " An opt changes how a kernel runs, never what it computes.",
        "opt": "UPCAST(\"g1\", 4): a kind of opt, the axis that it changes, and an amount; 0 is"
            " the whole axis.",
        "why": "What the opt improves in the loops, with the figures before -> after.",
        "predicted": "How many times as fast the kernel becomes, by the performance model.",
        "measured": "How many times as fast the kernel became, timed in turns with this variant; ≈:"
            " no measurable difference; green: the best that is more than noise.",
        "few runs": "The kernel is slow, or other programs had its cores in most runs, so that"
            " only a few count: nothing is known of the spread.",
        "too few rounds": "Two variants were timed in turns, but fewer than six rounds count: a run"
            " is slow, or other programs had the cores. Nothing is said of which is faster.",
        "in-register-transpose": "A step of auto: square blocks are loaded as vectors, transposed"
            " in registers, and stored as vectors; else one side would go through memory in long"
            " strides.",
        "reduction-lanes": "A step of auto: neighbours of a sum are added in the lanes of a"
            " vector, and the lanes with each other at its end.",
        "register-tile": "A step of auto: a small block of results stays in registers, so that"
            " each value that is loaded serves several of them.",
        "dot-tile": "A step of auto: a register tile whose vectors lie along the sum, where both"
            " operands have neighbours.",
        "vector-lanes": "A step of auto: neighbouring results are computed as one vector.",
        "row-lanes": "A step of auto: a row that is kept inside the kernel is filled by vectors.",
        "pack-operand": "A step of auto: a tile that is read again and again is copied first, in"
            " the order of its reads.",
        "sum-blocks": "A step of auto: a long sum is added up in blocks, so that what a block"
            " reads stays in the cache.",
        "short-sums": "A step of auto: sums of a few terms are written out without a loop.",
        "known-masks": "A step of auto: the steps of a short running sum are written out, so that"
            " which lanes count is known.",
        "reduce-outside": "A step of auto: the loop of a sum goes outside of that of the results,"
            " so that memory is read in order.",
        "not legal": "Opts that cannot be applied here, each with the reason.",
        "elements per instruction": "How many neighbours one vector instruction computes.",
        "independent accumulators": "Sums that do not wait for each other: a multiply-add takes"
            " several cycles, so a core needs several of them at a time.",
        "work-group": "Work-items that share memory and can wait for each other. On a processor"
            " they are an inner loop.",
    },
    "plan": {
        "plan": "The expression as a graph of values, from the inputs at the top to the result. The"
            " coloured ground of a kernel lies under all values that it computes.",
        "kernels?": "Why there are so many kernels, and no more or fewer: reasons that the"
            " scheduler recorded.",
        "kernel": "Why this kernel begins and ends where it does, and what is fused in it.",
        "equal kernels": "3 of 3 equal kernels: kernels that compute the same on other arrays, as"
            " equal layers of a model do; this is the third of them. They share one program.",
        "r_32_40_48": "The name of a kernel: r reduces, e computes every element by itself; then"
            " the sizes of its loops without opts. e_32_64 has loops of 32 and 64 steps.",
        "decisions": "For every value: was it stored to memory, or fused into its readers, and"
            " why?",
        "stored": "The value goes to memory, and its readers read it back: a kernel ends here.",
        "fused": "The value is computed where it is needed, and never goes to memory.",
        "stored only": "Hides the decisions about values that are fused.",
        "input": "An array that existed before the expression.",
        "forced": "You decided this, not the scheduler.",
        "by hand": "Choices that you make instead of the scheduler: what is stored or computed"
            " again, partial results of a reduction, the order of kernels, what is written over"
            " what. Each can be undone; the call below makes them all again.",
        "predicted plan": "The kernels of a plan, the sum of their times as the cost model"
            " predicts them with the default opts, and the most memory that values hold at once.",
        "colours of kernels": "What colours the boxes: each kernel's own colour, or a figure on a"
            " scale of five steps: the more blue, the more. By share of peak: of the peak of this"
            " machine, by measured times.",
        "cut": "A line that goes through memory, from one kernel to another, with its bytes. A"
            " click says why.",
        "before, now": "The plan before your last change beside the present one: kernels, their"
            " time with the default opts, and other values that were stored before and are fused"
            " now, or the reverse.",
        "film": "The decisions of the scheduler one after the other, from the result to the"
            " inputs: what is not decided yet is faint.",
        "copies": "1 copy, 3 copies: arrays of yours, and other values, that are only copied to"
            " the device. No kernel computes them.",
        "scheduling": "From the expression to kernels: what is stored, what is fused, and in which"
            " order kernels run. Beside a use of a rule: it fired there, before the kernel had"
            " variants.",
        "reads, evaluations, elements": "Figures of a decision: how many readers the value has,"
            " how many times they would compute an element of it if it were fused, and how many"
            " elements it has. The costs below them are times, as that of so many operations: so"
            " what memory takes can be compared with arithmetic.",
        "estimated cost": "What each way to compute the value takes beyond computing each element"
            " once, as the time of so many operations, reads and writes included; the shortest bar"
            " was chosen unless the reason says otherwise.",
        "forward": "F: kernels that compute the value itself. A kernel of several phases has the"
            " letters of all, and the colour of the forward, or else of the last.",
        "weights": "W: kernels that draw the random numbers that variables or objects of your code"
            " hold, such as the first weights of a model. They run once, before the others;"
            " realize() of these tensors runs them now.",
        "backward": "B: kernels that compute gradients, from the result back to the parameters.",
        "optimiser": "O: kernels that compute the new parameters from gradients.",
        "stored for the backward": "Activations: values that a kernel of the forward stores and a"
            " kernel of the backward reads. They stay in memory until then. On hover their lines"
            " are marked in the graph.",
        "memory of the plan": "The bytes of the values that live while each kernel runs, if"
            " nothing else is read later: grey for results, above it intermediate values, which"
            " share memory as far as their lives do not overlap. The highest bar is marked; on"
            " hover a bar lists the values that live.",
    },
    "run": {
        "run": "All kernels of the expression, run in their order, warm, as they were chosen: what"
            " ran when, on which thread, the gaps between, and the memory. w s zoom, a d move.",
        "timeline": "A row for each thread of Python, with the work around kernels, and one for"
            " each device, with the kernels that a thread launched on it; time runs to the right.",
        "gap": "Time of a device without a kernel, by what the thread did: launch, schedule,"
            " compile, copy, memory, Python (your code), waiting for other threads, or outside:"
            " nothing of this process was recorded.",
        "where the time went": "The time of the threads that launch kernels: in kernels, by phase,"
            " and in gaps, by their cause.",
        "what would help": "The changes that would save most of this run: a kernel with other opts"
            " that were measured, or that the cost model predicts to be faster.",
        "against the run before": "Kernels whose times differ by more than the noise: the middle"
            " halves of their launches have nothing in common. A round runs all kernels once.",
        "share of the run": "Of the time in kernels, all launches together.",
        "launches": "How often the kernel ran.",
        "median": "The middle one of the times of all launches.",
        "spread": "Half of what lies between the ends of the middle half of the launches, as a"
            " share of the median.",
        "predicted time": "The time of a launch by the cost model. What is off by more than 1.5 is"
            " marked with ≠: a wrong model says something, too.",
        "ratio": "Measured time by predicted time, a launch.",
        "bound of a kernel": "What limits the kernel by the cost model.",
        "module of a kernel": "The module of your model that made what the kernel computes.",
        "kind of kernel": "What the kernel computes, in a word.",
        "phase of a kernel": "The phase of training: forward, backward, optimiser; or weights.",
        "time in the run": "The time of all launches together.",
        "operations of a launch": "Operations that the kernel must make by its algorithm, a"
            " launch; of a group those of all launches.",
        "bytes of a launch": "Bytes that the kernel must read and write, a launch; of a group"
            " those of all launches.",
        "saved in a round": "The time that a round saves against the run before; − is a loss.",
        "time before": "The median time of a launch in the run before.",
        "time now": "The median time of a launch in this run.",
    },
    "passes": {
        "typed rule": "A rule of your own, for this kernel: a pattern, ->, and what it becomes. x"
            " is any value, x:float one of that kind, c or c1 a constant; max(x, y) and other ops"
            " are called by name.",
        "passes": "What was done to the program one after the other, from the expression to machine"
            " code. A block is a pass: blue for rewrites, green for decisions, orange for opts,"
            " grey for other steps; the higher, the more of them; by time: the wider, the longer"
            " it took. A click opens it in Rewrites.",
        "rewrites": "A rule found a part of the graph and put another in its place.",
        "before the first": "The program as this pass got it; the next step is its first rewrite.",
        "more just as near": "Nodes that are as far from the change as the last visible ones:"
            " `wider` and `whole graph` show more.",
        "compiler's passes": "What the compiler itself did to the program, after our passes.",
        "rewrite": "One rule put one part of the graph in the place of another.",
        "steps of a pass": "What a pass that is not a table of rules did, one after the other.",
        "opts of a pass": "The opts that were applied.",
        "rule": "A pattern, and what takes its place. It fires wherever the pattern fits.",
        "code of a rule": "Its row in the table of rules, and the functions that the row names, as"
            " they stand in the file. A link opens the file in VS Code.",
        "rules": "The rules and steps of all passes: how often each fired here, and where.",
        "passes of a rule": "The passes that have this rule in their table.",
        "fired": "The passes in which the rule fired, with how often, and the kernel and variant.",
        "use": "A place where the rule fired: use 1 of 3 is the first of three, in all passes,"
            " kernels and variants.",
        "examples": "What the rule makes of a graph, before and after; the tests check them.",
        "without": "Rules that are switched off here, what that changed, and the way back.",
        "unchanged": "Also show the passes that changed nothing.",
        "differences": "+ is new, − is gone, ⋯ stands for lines that are the same on both sides.",
        "v0": "A value that is used again: v and a number where you gave it no name.",
        "_0_1": "_0_0, _0_1: the position along the first, second axis of the value of kernel 0.",
        "bisect": "Runs the program after each rewrite, to find the first one that changes the"
            " answer.",
        "values at a position": "Computes the picked node at a position that you choose, in"
            " Python.",
    },
    "graphs": {
        "·": "An operand that is drawn as a box of its own.",
        "+ on a box": "New in this step.",
        "− on a box": "Removed in this step: it belongs to the state before.",
        "≠ on a box": "It stays, with other operands; beside another graph: it differs there.",
        "box": "A node: its op, and below it its shape and dtype. Colour, shape and letter say of"
            " which family the op is; point at it for what the op does.",
        "picked box": "Its operands, and the lines from them, are amber; its readers, and the lines"
            " to them, are violet and dashed. A box that a step changed keeps its own frame.",
        "badge": "The number of the kernel that stores this value.",
        "fold indexes": "Writes index arithmetic into the boxes that use it, instead of boxes of"
            " its own.",
        "fold loops": "Hides what stands in loops; a double click on a box hides or shows the boxes"
            " that only it uses.",
        "map": "The whole graph; the frame is what you see. Drag it.",
    },
    "gpu": {
        "gpu": "A kernel as a device with work-groups runs it, on an emulator: all work-items take"
            " each step together, every access is counted and checked.",
        "common GPU": "No real machine: what most GPUs have in common, 32 lanes to a warp. Kernels"
            " of a device without work-groups are emulated on it.",
        "work-groups": "What a launch runs: groups of work-items, each group for itself.",
        "program": "What each work-item executes, a line a step: the program from which source is"
            " written, after all lowering. A click goes to the next step at a line.",
        "step": "One executed line. The next step of a loop is its next round; each read in a line"
            " is a step of its own.",
        "sectors": "Transactions: pieces of 32 bytes that are moved from or to global memory. A"
            " piece that several work-items of a warp access in one step is moved once.",
        "used": "Bytes that work-items access, as a share of the bytes that were moved; more than"
            " 100% where several of a warp access the same ones.",
        "passes over the banks": "In a pass each bank of shared memory gives one word. A warp that"
            " accesses several words of one bank takes several. Passes of the compiler are others.",
        "conflicts": "Passes over the banks of shared memory beyond the first: words in one bank"
            " that a warp accesses in one step are moved one after the other.",
        "work-items": "The work-items of the group, a row for each warp, which takes each step"
            " together. Hatched: inactive, because of an if.",
        "warp": "Neighbouring work-items of a group that take each step together: 32 of them, on"
            " some machines 64. Each is a lane of its warp.",
        "barrier": "A line at which each work-item waits until all of its group are there: what was"
            " written to shared memory before can be read after it.",
        "occupancy": "The warps that a unit of the GPU holds at once, of the most that it could:"
            " while some wait for memory, others go on. Registers, shared memory and the greatest"
            " numbers of work-items and groups of a unit limit it.",
        "access": "What the warp of the chosen work-item reads or writes in this step.",
        "history": "All steps of one work-group, with what each wrote: any of them can be shown"
            " again, backward, too. emulate(kernel, history=True) records it.",
        "tensor core": "A product of two tiles by a whole warp: each element of A, B and C is in a"
            " register of one lane (of several, where they hold copies).",
        "bank": "Shared memory has 32 banks of 4 bytes; each gives one word in a pass.",
        "shared memory": "Memory of the group, a cell for each element.",
        "unwritten": "It depends on memory that was not written.",
        "findings": "What is wrong with this program, at its first occurrence.",
        "race": "Two work-items use one cell, one of them writes, and no barrier stands between.",
        "unfinished copy": "A work-item uses a cell that a copy may still fill: a copy goes on"
            " while the program does, and no barrier since has waited for it.",
        "out of bounds": "An index beyond the memory.",
        "misaligned": "Several elements are accessed at once, at an address that is no multiple of"
            " their size: a GPU faults.",
        "division by 0": "A division of whole numbers by 0: C and its kin give it no value.",
        "wrong value": "An element of the result that is not what it should be.",
        "uncoalesced": "Work-items of a warp access elements that lie far apart: more sectors are"
            " moved than the elements would fill.",
        "bank conflict": "Work-items of a warp access several words of one bank in one step.",
        "divergent branch": "An if at which some work-items of a warp go on, and others wait.",
        "shuffle": "The lanes of a warp exchange values from register to register: without memory,"
            " and without a barrier. Dashed: the work-item whose value the chosen one takes.",
        "partial warp": "A shuffle, or a product of tiles, that only some work-items of a warp come"
            " to.",
        "inactive lane": "A shuffle that takes the value of an inactive lane, or of one that does"
            " not exist.",
        "divergent barrier": "A barrier that not all work-items of a group come to.",
    },
    "code": {
        "code": "The program of the variant. A click on a line lights up its loop, what it was made"
            " from, and your line. p0, p1 are the kernel's memory, acc0 is an accumulator, v0 a"
            " value, _14 a value without a name, As a copy of a tile of the first input.",
        "args, lo, hi": "What a C kernel is called with: args has the addresses of p0, p1, ..;"
            " lo and hi are the part of its chunked loop that this call runs, from lo up to hi"
            " without hi. thread is the number of the thread that runs it.",
        "statement number": "The line of C that computes the same: equal numbers, equal colours.",
        "made by": "The rewrite that made the value of this line; a click shows it.",
        "heat": "How much of a run an instruction is: an estimate, not a measurement.",
        "fma(a, b, -0.0)": "A product that a sum will round: to add -0.0 changes no value, not even"
            " the sign of a zero. The pass linearize puts the sum in its place: fma(a, b, acc0)"
            " adds to acc0 and rounds once.",
        "IR": "The program before it is written in a language, as text: a statement tree (loops and"
            " what stands in them), or a linear program (a list of steps). Both can be edited.",
        "v3 = LOAD.float32 v2": "A line of IR: a name, an op with its dtype, and the values that it"
            " works on. In braces stands what else the op needs: {\"r0\", REDUCE} is the name and"
            " the kind of a loop. Constants stand where they are used.",
        "{1, 1536}": "After PARAM: the place of the array among the kernel's arguments, from 0, and"
            " the number of its elements. {0, ..} is p0, where the result goes.",
        "nsz": "In LLVM's text: no signed zeros. An operation with it may give 0.0 for -0.0; NaN"
            " and infinity stay as they are.",
        "fmuladd": "In LLVM's text: llvm.fmuladd(a, b, c) is a * b + c, rounded once where the"
            " machine has an instruction for that, else twice.",
        "poison": "In LLVM's text: a value that nobody may use. A vector begins as poison, and then"
            " gets its elements one by one.",
        "LINEAR": "The first line of a linear program, whose lines run one after the other.",
        "let": "In a linear program: a node that steps use and that is no step, such as an argument"
            " of the kernel.",
        "float32x4": "A vector of four float32. A number without x and a count is one value.",
        ".index": "The dtype of positions in memory and in loops: an integer.",
        "{ADD, \"u0\"}": "After ACCUMULATE: how the value is combined with the one that is there,"
            " and the loop whose steps are lanes of one vector (None: there is none).",
        "thread": "After LOOP, or behind a loop's length: threads share its steps.",
        "grid, item": "After SPECIAL: the range counts the work-groups of a launch (grid), or the"
            " work-items of a group (item), along x, y or z: 0, 1 or 2.",
        "KernelInfo": "The name of the kernel, and the names of its loops, outermost first.",
        "Storage": "The name of an array or a register of the kernel, its dimensions (none: one"
            " value), and where it is: register, scratch (of one work-item or thread) or"
            " shared (by a work-group).",
        "order": "The loops of the kernel by name, outermost first.",
    },
}
# fmt: on
"""Meanings by word, in groups; a word stands in one group."""


# --------------------------------------------------------------------------------------------------
# The glossary.

OP_GROUP = "ops"
"""The group of the names of ops."""


@cache
def glossary_rows() -> tuple[TermGroup, ...]:
    """Return the words that the other tables of a page's record lack: the terms, and ops."""
    groups = {**TERMS, OP_GROUP: {op.name: info.doc for op, info in OPS.items()}}
    return tuple(_group(name, words) for name, words in groups.items())


class Glossary(dict[str, dict[str, str]]):
    """Meanings by word, in groups; it prints as text, and in a notebook as groups to unfold."""

    def __str__(self) -> str:
        return "\n\n".join(f"{name}\n{_lines(self[name])}" for name in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "\n".join(_folded(name, words) for name, words in self.items())


def glossary(about: str | Iterable[PassRecord] = ()) -> Glossary:
    """Return the meaning of every word, in groups, as the page shows them below `?`, with kinds of
    axes, kinds of opts, and the given passes. `glossary("warp")` returns the words that contain
    "warp", or if there are none, the words whose meanings do.

    Errors: WorkbenchError for a word that is found nowhere, and for a value that is neither a word
    nor passes.
    """
    if isinstance(about, str):
        return _entries_for(about)
    try:
        passes = [*about]
    except TypeError:
        passes = [about]  # type: ignore[list-item] # it is refused below
    for other in passes:
        if not isinstance(other, PassRecord):
            because = f"{type(other).__name__} is neither a word nor a pass"
            hint = 'glossary("warp"), or glossary(ex.passes)'
            raise WorkbenchError(f"cannot explain {other!r:.40}", because, hint)
    words = Glossary(
        (group.name, {t.word: t.meaning for t in group.terms}) for group in glossary_rows()
    )
    kinds = {row.letter: f"{row.name}: {row.caption}" for row in kind_rows().values()}
    opts = {k.name: f"on a processor: {k.here}; on a GPU: {k.on_a_gpu}" for k in OptOps}
    words["loops"] |= kinds
    words["opts"] |= opts
    words["passes"] |= {record.name: record.doc for record in passes if record.doc}
    return words


def _entries_for(word: str) -> Glossary:
    """Return the glossary's words that contain a word, or else those whose meanings do."""
    every, part = glossary(), word.strip().lower()
    by_word = _where(every, lambda name, _: part in name.lower())
    parts = by_word or _where(every, lambda _, meaning: part in meaning.lower())
    parts = parts or _where(every, lambda name, _: _numbered(part) in _numbered(name.lower()))
    if parts and part:
        return parts
    names = [name for words in every.values() for name in words]
    near = get_close_matches(word, names, 1) or ["warp"]
    because = "no word and no meaning has it"
    hint = f'glossary("{near[0]}"), or glossary() for all words'
    raise WorkbenchError(f"there is no word {word!r:.40}", because, hint)


def _numbered(name: str) -> str:
    """Return a name with the same numbers as any other: the glossary has r_32_40_48 and acc0."""
    return re.sub(r"\d+(_\d+)*", "0", name)


def _where(every: Glossary, fits: Callable[[str, str], bool]) -> Glossary:
    """Return the words that fit, without empty groups."""
    groups = {
        name: {word: text for word, text in words.items() if fits(word, text)}
        for name, words in every.items()
    }
    return Glossary((name, words) for name, words in groups.items() if words)


def _lines(words: Mapping[str, str]) -> str:
    return "\n".join(f"  {word}: {meaning}" for word, meaning in words.items())


def _folded(name: str, words: Mapping[str, str]) -> str:
    rows = "".join(
        f"<dt><b>{escape(word)}</b></dt><dd>{escape(meaning)}</dd>"
        for word, meaning in words.items()
    )
    head = f"<summary>{escape(name)}: {len(words)} words</summary>"
    return f"<details>{head}<dl>{rows}</dl></details>"


def _group(name: str, words: Mapping[str, str]) -> TermGroup:
    return TermGroup(name, [TermRow(word, meaning) for word, meaning in words.items()])
