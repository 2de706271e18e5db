// The types of programs that run in this browser.

import type { ErrorWords, PageLaunch } from "../record.d.ts";

declare global {
  /** Flags of the standard that the checker's types lack. */
  const GPUBufferUsage: Record<
    "MAP_READ" | "COPY_SRC" | "COPY_DST" | "STORAGE" | "QUERY_RESOLVE",
    number
  >;
  const GPUMapMode: { READ: number };
  const GPUShaderStage: { COMPUTE: number };
}

/** An error in words; `line` is that of the program. */
export type ProgramError = ErrorWords & { line?: number | null };

/** The GPU of the browser; `lost` raises when it is lost. */
export interface Gpu {
  device: GPUDevice;
  name: string;
  hasClock: boolean;
  lost: Promise<never>;
}

/** A text with its launch; one that the reader edited may not end. */
export interface Runnable {
  text: string;
  isEdited?: boolean;
  launch: PageLaunch;
}

/** The outcome of a run of the program of `text`. Units: seconds of one run. */
export interface Run {
  isBusy: boolean;
  text?: string;
  error?: Partial<ProgramError>;
  gpu?: string;
  check?: { ok: boolean; wrong: number; total: number; worst: number; tolerance: number };
  timing?: { samples: number[]; runs: number; isGpuClock: boolean } | null;
}
