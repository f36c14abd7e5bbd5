// Where the time went: horizontal bars by kernel, by part of the model and by phase.

import type { Run, Time } from "./data";
import { element } from "./dom";
import { duration, metric, percent } from "./format";
import { colour, swatch } from "./style_of_run";

const MOST_RUNS = 6;
const MOST_BARS = 12;

const PARTS: Record<string, string> = {
  attn: "attention", attention: "attention", mlp: "MLP", ffn: "MLP",
  wte: "token embedding", embed: "token embedding", embedding: "token embedding",
  lm_head: "output head", head: "output head", loss: "loss", optim: "optimizer", update: "optimizer", clip: "optimizer",
  norm: "norms", ln: "norms",
};

// "h.3.attn.query" -> "attention": all layers of the same part together.
export function modelPart(scope: string): string {
  const part = scope.replace(/^.*?\b(?:h|layers?|blocks?)\.\d+\.?/, "").split(/[./]/)[0]!;
  if (part === "") return scope === "" ? "other" : "layer";
  return PARTS[part] ?? part;
}

interface Sum {
  seconds: number;
  flops: number;
}

type Sums = Map<string, Sum>;

function sums(times: Time[], name: (time: Time) => string): Sums {
  const out: Sums = new Map();
  for (const time of times) {
    const key = name(time);
    const sum = out.get(key) ?? { seconds: 0, flops: 0 };
    sum.seconds += time.seconds ?? 0;
    sum.flops += time.flops ?? 0;
    out.set(key, sum);
  }
  return out;
}

function bars(title: string, id: string, shown: { run: Run; index: number; sums: Sums }[]): HTMLElement | null {
  const most = new Map<string, number>();
  for (const { sums } of shown) {
    for (const [key, sum] of sums) most.set(key, Math.max(most.get(key) ?? 0, sum.seconds));
  }
  const keys = [...most.keys()].sort((a, b) => most.get(b)! - most.get(a)!);
  const scale = Math.max(...most.values());
  if (keys.length === 0 || !(scale > 0)) return null;
  const small = keys.slice(MOST_BARS);
  const totals = shown.map(({ sums }) => [...sums.values()].reduce((total, sum) => total + sum.seconds, 0));

  const group = (label: string, parts: string[]) => element("div", { class: "bar-group" },
    element("div", { class: "bar-label", title: parts.join(", ") }, label),
    element("div", { class: "bar-lines" }, ...shown.map(({ run, index, sums }, s) => {
      const seconds = parts.reduce((total, part) => total + (sums.get(part)?.seconds ?? 0), 0);
      const flops = parts.reduce((total, part) => total + (sums.get(part)?.flops ?? 0), 0);
      const speed = flops > 0 && seconds > 0 ? metric(flops / seconds, "FLOP/s") : "";
      const bar = element("span", { class: "bar" });
      bar.style.setProperty("--light", colour(index, false));
      bar.style.setProperty("--dark", colour(index, true));
      bar.style.width = `${(100 * seconds) / scale}%`;
      return element("div", { class: "bar-line", title: run.name },
        element("span", { class: "bar-track" }, bar),
        element("span", { class: "bar-value" }, duration(seconds)),
        element("span", { class: "bar-share" }, percent(totals[s]! > 0 ? seconds / totals[s]! : null)),
        element("span", { class: "bar-speed" }, speed));
    })));
  return element("section", { class: "card", id }, element("header", {}, element("h3", {}, title)),
    ...keys.slice(0, MOST_BARS).map((key) => group(key, [key])),
    small.length > 0 ? group(`${small.length} others`, small) : null);
}

export function timeSection(runs: Run[], visible: boolean[]): HTMLElement {
  const timed = runs.map((run, index) => ({ run, index }))
    .filter(({ run, index }) => visible[index] && (run.times.length > 0 || run.phases.length > 0));
  const shown = timed.slice(0, MOST_RUNS);
  const part = (times: (run: Run) => Time[], name: (time: Time) => string) =>
    shown.map(({ run, index }) => ({ run, index, sums: sums(times(run), name) }));
  const cards = [
    bars("By kernel", "time-kernels", part((run) => run.times, (time) => time.kernel || "other")),
    bars("By part of the model", "time-parts", part((run) => run.times, (time) => modelPart(time.scope ?? ""))),
    bars("By phase", "time-phases", part((run) => run.phases.map((phase) => ({ kernel: phase.name ?? "", seconds: phase.seconds ?? 0 })),
                                          (time) => time.kernel || "other")),
  ].filter((card) => card !== null);
  return element("section", { class: "times", id: "times" },
    element("h2", {}, "Where the time went"),
    element("p", { class: "lead" }, cards.length === 0
      ? "Times are known once a run has finished."
      : "Seconds on the host, summed over the run, with their share of the run’s total."),
    timed.length > shown.length
      ? element("p", { class: "lead" }, `The first ${MOST_RUNS} of ${timed.length} visible runs; hide some to see the others.`)
      : null,
    cards.length > 0 && runs.length > 1
      ? element("p", { class: "key" }, ...shown.map(({ run, index }) => element("span", {}, swatch(index), " ", run.name)))
      : null,
    element("div", { class: "grid" }, ...cards));
}
