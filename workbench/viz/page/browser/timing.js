// Timing in a browser, whose clock may be coarse: many runs a timing.

const SAMPLES = 5; // timings, of which the median is shown
const SAMPLE_S = 0.02; // of a timing, at least, as far as a clock of a browser is that coarse
const MOST_S = 1.5; // of all timings together
const MOST_RUNS = 2000; // of one timing

/** Time a program: the seconds of a run, of each timing.
 * @param {(runs: number) => number | Promise<number>} clock returns the seconds of some runs */
export async function timings(clock) {
  let runs = 1;
  let s = await clock(runs);
  while (s < SAMPLE_S && runs < MOST_RUNS) {
    runs = Math.min(
      MOST_RUNS,
      Math.ceil(runs * Math.min(10, (1.2 * SAMPLE_S) / Math.max(s, 1e-6))),
    );
    s = await clock(runs);
  }
  const samples = [s / runs];
  for (let all = s; samples.length < SAMPLES && all < MOST_S; all += s) {
    s = await clock(runs);
    samples.push(s / runs);
  }
  return { samples, runs };
}
