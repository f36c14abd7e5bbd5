// Noise taken out of a curve.

import type { Column } from "./data";

// At each step the mean of the values of the last `window` steps, itself included. What isn't finite breaks the curve
// and starts the mean anew.
export function smoothed(steps: Column, values: Column, window: number): Column {
  const out: Column = [];
  let sum = 0;
  let first = 0;
  for (let i = 0; i < values.length; ++i) {
    const value = values[i]!;
    if (value == null) {
      sum = 0;
      first = i + 1;
      out.push(null);
      continue;
    }
    sum += value;
    while (steps[first]! <= steps[i]! - window) sum -= values[first++]!;
    out.push(sum / (i - first + 1));
  }
  return out;
}
