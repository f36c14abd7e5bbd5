// Which curves there are, and over what: from the columns of runs to the charts' curves and axes.

import type { Axis, Curve, Range } from "./chart";
import type { Column, Position, Run } from "./data";
import { duration, grouped, trimmed } from "./format";
import { smoothed } from "./smoothing";

export type XKind = keyof Position;

export const X_KINDS: readonly { value: XKind; text: string }[] = [
  { value: "tokens", text: "Tokens" },
  { value: "step", text: "Steps" },
  { value: "charged_seconds", text: "Charged time" },
  { value: "host_seconds", text: "Host time" },
];

const MINUTE = 60;
const HOUR = 3600;
const SECONDS_BETWEEN_TICKS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
  ...[1, 2, 5, 10, 15, 30].map((m) => m * MINUTE),
  ...[1, 2, 3, 6, 12, 24, 48, 96, 192, 384, 768].map((h) => h * HOUR),
];

function compact(value: number): string {
  for (const [size, suffix] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]] as const) {
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(6))}${suffix}`;
  }
  return String(Number(value.toPrecision(6)));
}

function timeTick(seconds: number): string {
  if (seconds === 0) return "0";
  if (seconds < MINUTE) return `${trimmed(seconds)} s`;
  const minutes = seconds / MINUTE;
  if (seconds < 2 * HOUR) return `${Number(minutes.toFixed(1))} min`;
  return `${Number((seconds / HOUR).toFixed(2))} h`;
}

export function xAxis(kind: XKind, log: boolean): Axis {
  switch (kind) {
    case "step":
      return { label: "optimizer steps", log, tick: compact, exact: (v) => `step ${grouped(v)}` };
    case "tokens":
      return { label: "tokens trained on", log, tick: compact, exact: (v) => `${grouped(v)} tokens` };
    case "charged_seconds":
      return { label: "charged chip time", log, tick: timeTick, steps: SECONDS_BETWEEN_TICKS,
               exact: (v) => `${duration(v)} charged` };
    case "host_seconds":
      return { label: "time on the host", log, tick: timeTick, steps: SECONDS_BETWEEN_TICKS,
               exact: (v) => `${duration(v)} on the host` };
  }
}

// A curve over ascending x. Several steps may share one x (the charged clock stands still in the first steps): the
// last of them counts. A logarithmic axis has no place for what isn't positive.
function curve(run: number, name: string, xs: Column, ys: Column, log: { x: boolean; y: boolean }, faint = false): Curve {
  const out: Curve = { run, name, xs: [], ys: [], faint };
  for (let i = 0; i < xs.length; ++i) {
    const x = xs[i];
    if (x == null || (log.x && x <= 0)) continue;
    const y = ys[i] ?? null;
    const kept = log.y && y != null && y <= 0 ? null : y;
    if (out.xs.length > 0 && out.xs[out.xs.length - 1] === x) {
      out.ys[out.ys.length - 1] = kept;
    } else {
      out.xs.push(x);
      out.ys.push(kept);
    }
  }
  return out;
}

export interface View {
  x: XKind;
  log: { x: boolean; y: boolean };
  window: number; // steps of smoothing; 1: none
}

// A noisy quantity, smoothed, with the raw values behind it while there are few runs.
export function noisyCurves(runs: Run[], view: View, log: View["log"], values: (run: Run) => Column,
                            toSmooth: (run: Run) => Column = values): Curve[] {
  const faint = view.window > 1 && runs.length <= 4
    ? runs.map((run, r) => curve(r, run.name, run.points[view.x], values(run), log, true))
    : [];
  const clear = runs.map((run, r) =>
    curve(r, run.name, run.points[view.x],
          view.window > 1 ? smoothed(run.points.step, toSmooth(run), view.window) : values(run), log));
  return [...faint, ...clear];
}

export function plainCurves(runs: Run[], view: View, log: View["log"], values: (run: Run) => Column): Curve[] {
  return runs.map((run, r) => curve(r, run.name, run.points[view.x], values(run), log));
}

export function evaluationCurves(runs: Run[], view: View): Curve[] {
  return runs.map((run, r) => curve(r, run.name, run.evaluations[view.x], run.evaluations.val_bpb, view.log));
}

// What all runs together span.
export function fullRange(runs: Run[], view: View): Range {
  let min = Infinity;
  let max = 0;
  for (const run of runs) {
    for (const value of run.points[view.x]) {
      if (value == null || (view.log.x && value <= 0)) continue;
      min = Math.min(min, value);
      max = Math.max(max, value);
    }
  }
  if (max === 0) return view.log.x ? { min: 1, max: 10 } : { min: 0, max: 1 };
  if (!view.log.x) return { min: 0, max, whole: true };
  return min < max ? { min, max, whole: true } : { min: min / 2, max: max * 2, whole: true };
}
