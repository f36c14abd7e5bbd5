// The table on top: what each run came to.

import type { Run } from "./data";
import { element } from "./dom";
import { bytes, duration, fixed, grouped, metric, percent } from "./format";
import { swatch } from "./style_of_run";

interface Figure {
  key: string;
  head: string;
  hint: string;
  cell: (run: Run) => string;
  has: (run: Run) => boolean;
}

const always = () => true;

const FIGURES: Figure[] = [
  { key: "val_bpb", head: "val_bpb", hint: "bits per byte on the validation text: lower is better",
    cell: (run) => fixed(run.figures.val_bpb, 4), has: always },
  { key: "steps", head: "steps", hint: "optimizer steps", cell: (run) => grouped(run.figures.steps), has: always },
  { key: "tokens", head: "tokens", hint: "tokens trained on", cell: (run) => grouped(run.figures.tokens), has: always },
  { key: "tokens_per_second", head: "tokens/s", hint: "on the host",
    cell: (run) => grouped(run.figures.tokens_per_second), has: always },
  { key: "mfu", head: "MFU", hint: "model FLOPs over the host processor's peak",
    cell: (run) => percent(run.figures.mfu), has: always },
  { key: "charged_seconds", head: "charged s", hint: "chip seconds on the charged clock",
    cell: (run) => grouped(run.figures.charged_seconds), has: always },
  { key: "step_seconds", head: "step on chip", hint: "priced seconds of one step on the chip",
    cell: (run) => run.price.step_seconds == null ? "–" : `${run.price.step_seconds.toPrecision(4)} s`,
    has: (run) => run.price.step_seconds != null },
  { key: "host_seconds", head: "host time", hint: "on this computer",
    cell: (run) => duration(run.figures.host_seconds), has: always },
  { key: "parameters", head: "parameters", hint: "trained numbers in the model",
    cell: (run) => grouped(run.figures.parameters), has: always },
  { key: "flops_per_token", head: "FLOPs/token", hint: "forward and backward",
    cell: (run) => metric(run.figures.flops_per_token), has: (run) => run.figures.flops_per_token != null },
  { key: "peak_bytes", head: "peak memory", hint: "of the training process",
    cell: (run) => bytes(run.memory.peak_bytes), has: (run) => run.memory.peak_bytes != null },
  { key: "corpus_hash", head: "corpus", hint: "hash of the text: only equal ones can be ranked",
    cell: (run) => run.figures.corpus_hash?.slice(0, 8) ?? "–", has: always },
];

function corpora(runs: Run[]): Set<string> {
  return new Set(runs.map((run) => run.figures.corpus_hash).filter((hash) => hash !== null));
}

// Runs whose val_bpb may be ranked: finished and not void, and none when the runs saw different corpora.
function rankable(runs: Run[]): Run[] {
  return corpora(runs).size === 1
    ? runs.filter((run) => run.state === "finished" && run.figures.val_bpb != null && run.figures.corpus_hash != null)
    : [];
}

export function summaryTable(runs: Run[]): HTMLElement {
  const figures = FIGURES.filter((figure) => runs.some(figure.has));
  const ranked = rankable(runs);
  const best = ranked.length > 1 ? Math.min(...ranked.map((run) => run.figures.val_bpb!)) : null;
  const rows = runs.map((run, r) => element("tr", { class: run.state },
    element("th", { scope: "row" }, swatch(r), " ", run.name,
            run.state === "finished" ? null : element("span", { class: `badge ${run.state}` }, run.state)),
    ...figures.map((figure) => {
      const isBest = figure.key === "val_bpb" && best !== null && ranked.includes(run) && run.figures.val_bpb === best;
      const cell = element("td", { "data-figure": figure.key }, figure.cell(run));
      if (isBest) {
        cell.classList.add("best");
        cell.title = "the lowest of these runs";
      }
      if (figure.key === "corpus_hash" && run.figures.corpus_hash) cell.title = run.figures.corpus_hash;
      return cell;
    })));
  return element("div", { class: "scroll" }, element("table", { class: "summary", id: "summary" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "run"),
      ...figures.map((figure) => element("th", { scope: "col", title: figure.hint }, figure.head)))),
    element("tbody", {}, ...rows)));
}

// What a reader must know before believing the numbers.
export function notes(runs: Run[]): HTMLElement | null {
  const lines: string[] = [];
  for (const run of runs) {
    if (run.state === "void") lines.push(`${run.name} is void, its val_bpb doesn't count: ${run.void_reason}`);
    if (run.state === "unfinished") {
      const at = run.figures.val_bpb == null ? "" : `; val_bpb is that of step ${grouped(run.figures.val_bpb_step)}`;
      lines.push(`${run.name} is unfinished: figures up to step ${grouped(run.figures.steps)}${at}`);
    }
    if (run.torn_lines > 0) {
      lines.push(`${run.name} was interrupted while it wrote: ${run.torn_lines} torn ` +
                 `${run.torn_lines === 1 ? "line" : "lines"} left out`);
    }
  }
  if (corpora(runs).size > 1) lines.push("These runs saw different corpora: their val_bpb can't be compared.");
  return lines.length === 0 ? null
    : element("ul", { class: "notes" }, ...lines.map((line) => element("li", {}, line)));
}
