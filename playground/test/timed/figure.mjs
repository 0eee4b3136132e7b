/** Figures of tests that measure in real time, for `scripts/measure.py`. */
import { appendFileSync } from "node:fs";

/** Keeps a figure, if `make measure` runs the test; `better` is "more" or "less". */
export function figure(name, value, unit, better) {
  const file = process.env.EXPLICATE_FIGURES;
  if (file) appendFileSync(file, `${JSON.stringify({ name, value, unit, better })}\n`);
}
