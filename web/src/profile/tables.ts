// Tables of a profile: time by source line, the summary, what differs from another profile.

import { element } from "../dom";
import { grouped, metric, trimmed } from "../format";
import type { Profile } from "./profile";
import { share, size, time } from "./units";

interface Column<T> {
  name: string;
  title: string;
  value: (row: T) => number | string;
  text: (row: T) => string;
  mark?: (row: T) => string;  // class of the cell
}

const SHOWN = 12;

// A table whose columns sort it. `choose` is called with a row that is pressed.
function sortable<T>(rows: T[], columns: Column<T>[], sortBy: number, choose?: (row: T) => void): HTMLElement {
  const head = element("tr", {});
  const body = element("tbody", {});
  const table = element("table", { class: "sortable" }, element("thead", {}, head), body);
  const more = element("button", { type: "button", class: "more" });
  let by = sortBy;
  let down = true;
  let all = false;
  const draw = () => {
    const { value } = columns[by]!;
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
      return down ? -order : order;
    });
    body.replaceChildren(...sorted.slice(0, all ? undefined : SHOWN).map((row) =>
      element("tr", {}, ...columns.map((column, c) => {
        if (c > 0) return element("td", { class: column.mark?.(row) ?? "" }, column.text(row));
        if (choose === undefined) return element("th", { scope: "row" }, column.text(row));
        const button = element("button", { type: "button", class: "link" }, column.text(row));
        button.addEventListener("click", () => choose(row));
        return element("th", { scope: "row" }, button);
      }))));
    for (const [c, cell] of [...head.children].entries()) {
      cell.setAttribute("aria-sort", c !== by ? "none" : down ? "descending" : "ascending");
    }
    more.textContent = all ? "Show fewer" : `Show all ${rows.length}`;
  };
  columns.forEach((column, c) => {
    const button = element("button", { type: "button", title: column.title }, column.name);
    button.addEventListener("click", () => {
      down = by === c ? !down : c > 0;
      by = c;
      draw();
    });
    head.append(element("th", { scope: "col" }, button));
  });
  more.addEventListener("click", () => {
    all = !all;
    draw();
  });
  draw();
  return element("div", {}, element("div", { class: "scroll" }, table), rows.length > SHOWN ? more : null);
}

interface Line {
  source: string;
  count: number;
  busy: number;
  critical: number;
  bytes: number;
  opcodes: Set<string>;
}

function linesOf(profile: Profile): Line[] {
  const lines = new Map<number, Line>();
  const { source, operation, transfer } = profile.saved.events;
  const line = (event: number) => {
    let found = lines.get(source[event]!);
    if (found === undefined) {
      found = { source: profile.source(event), count: 0, busy: 0, critical: 0, bytes: 0, opcodes: new Set() };
      lines.set(source[event]!, found);
    }
    return found;
  };
  for (let e = 0; e < profile.events; e++) {
    const of = line(e);
    of.count++;
    of.busy += profile.busyEnd[e]! - profile.start[e]!;
    of.opcodes.add(profile.saved.operations[operation[e]!]![0]);
    if (transfer[e]! > 0) of.bytes += profile.saved.transfers.bytes[transfer[e]! - 1]!;
  }
  const critical = new Map(profile.saved.lines.map((one) => [one.source, 1e9 * one.critical]));
  for (const one of lines.values()) one.critical = critical.get(one.source) ?? 0;
  return [...lines.values()];
}

export function sourceTable(profile: Profile, letter: string, choose: (source: string) => void): HTMLElement {
  const ns = (of: (line: Line) => number) => (line: Line) => of(line) === 0 ? "" : time(of(line));
  const columns: Column<Line>[] = [
    { name: "source", title: "Press a line to see its instructions", value: (l) => l.source, text: (l) => l.source || "unknown" },
    { name: "critical", title: "Time on the critical path", value: (l) => l.critical, text: ns((l) => l.critical) },
    { name: "of total", title: "Share of the total", value: (l) => l.critical, text: (l) => l.critical === 0 ? "" : share(l.critical / profile.duration) },
    { name: "engine time", title: "Time that engines were busy with it", value: (l) => l.busy, text: ns((l) => l.busy) },
    { name: "moved", title: "Bytes moved by its DMAs", value: (l) => l.bytes, text: (l) => l.bytes === 0 ? "" : size(l.bytes) },
    { name: "count", title: "Instructions that ran", value: (l) => l.count, text: (l) => l.count.toLocaleString("en-US") },
    { name: "instructions", title: "What they were", value: (l) => [...l.opcodes].join(", "), text: (l) => [...l.opcodes].join(", ") },
  ];
  return element("section", { class: "card source-table" },
    element("header", {}, element("h3", {}, letter === "" ? "Source lines" : `Source lines of ${letter}`)),
    sortable(linesOf(profile), columns, 1, (line) => choose(line.source)));
}

// A figure by its name: seconds, bytes, shares and counts.
export function figure(name: string, value: number | null | undefined): string {
  if (value == null) return "–";
  if (name.endsWith("_percent")) return `${(100 * value).toFixed(1)} %`;
  if (name.endsWith("_time") || name === "latency" || name.endsWith("_latency")) return value === 0 ? "0" : time(1e9 * value);
  if (name.endsWith("_bytes") || name.endsWith("_size")) return size(value);
  if (name.endsWith("_flops")) return metric(value);
  return Number.isInteger(value) ? grouped(value) : trimmed(value);
}

// The figures with Neuron Explorer's names, in columns.
export function summaryTable(profile: Profile, letter: string): HTMLElement {
  const rows = profile.saved.figure_order.map((name) =>
    element("div", { class: "figure-line", "data-figure": name }, element("dt", {}, name), element("dd", {}, figure(name, profile.saved.figures[name]))));
  return element("section", { class: "card summary-card" },
    element("header", {}, element("h3", {}, letter === "" ? "Summary" : `Summary of ${letter}`, element("span", { class: "unit" }, "named as Neuron Explorer names them"))),
    element("dl", { class: "figure-list" }, ...rows));
}

interface Difference {
  name: string;
  a: number;
  b: number;
}

function differences(names: Iterable<string>, value: (p: number, name: string) => number): Difference[] {
  return [...names].map((name) => ({ name, a: value(0, name), b: value(1, name) })).filter(({ a, b }) => a !== b);
}

function change({ a, b }: Difference): number {
  return a === 0 ? (b === 0 ? 0 : Infinity) : b / a - 1;
}

function changeText(difference: Difference): string {
  const part = change(difference);
  if (part === Infinity) return "new";
  if (part === -1) return "gone";
  return part > 3 ? `× ${trimmed(1 + part)}` : `${part > 0 ? "+" : "−"}${trimmed(Math.abs(100 * part))} %`;
}

function differenceTable(title: string, rows: Difference[], text: (name: string, value: number) => string, lessIsBetter: boolean): HTMLElement {
  const columns: Column<Difference>[] = [
    { name: "what", title: "", value: (d) => d.name, text: (d) => d.name },
    { name: "A", title: "The first profile", value: (d) => d.a, text: (d) => text(d.name, d.a) },
    { name: "B", title: "The second profile", value: (d) => d.b, text: (d) => text(d.name, d.b) },
    { name: "B to A", title: "By how much B is more than A", value: (d) => Math.abs(change(d)), text: changeText,
      mark: (d) => !lessIsBetter || d.a === d.b ? "" : d.b < d.a ? "better" : "worse" },
  ];
  return element("section", { class: "card" }, element("header", {}, element("h3", {}, title)),
    rows.length === 0 ? element("p", { class: "soft" }, "No difference.") : sortable(rows, columns, 3));
}

// What differs between two profiles: engine time by instruction, and all figures.
export function differenceTables(profiles: [Profile, Profile]): HTMLElement {
  const busy = profiles.map((profile) => {
    const sums = new Map<string, number>();
    for (let e = 0; e < profile.events; e++) {
      const name = `${profile.opcode(e)}, ${profile.place(e)}`;
      sums.set(name, (sums.get(name) ?? 0) + profile.busyEnd[e]! - profile.start[e]!);
    }
    return sums;
  });
  const names = new Set(busy.flatMap((sums) => [...sums.keys()]));
  const figures = new Set(profiles.flatMap(({ saved }) => saved.figure_order));
  return element("div", { class: "pair" },
    differenceTable("Engine time by instruction", differences(names, (p, name) => busy[p]!.get(name) ?? 0), (_, ns) => time(ns), true),
    differenceTable("Figures that differ", differences(figures, (p, name) => profiles[p]!.saved.figures[name] ?? 0), figure, false));
}
