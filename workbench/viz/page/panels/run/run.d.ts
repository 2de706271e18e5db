// A run as the page has it: Python leaves out no field of a kernel.

import type { RunKernel, RunRecord } from "../../record.d.ts";

export type Kernel = Required<RunKernel>;
export type Run = Omit<RunRecord, "kernels"> & { kernels: Kernel[] };
