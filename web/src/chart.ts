// One chart card: curves of several runs over a shared x axis, with hover readout and zoom by drag.

import uPlot from "uplot";
import { element } from "./dom";
import { colour, dash, swatch, type Theme } from "./style_of_run";

export interface Curve {
  run: number;
  name: string;
  xs: number[]; // strictly ascending
  ys: (number | null)[]; // null breaks the line
  faint: boolean; // behind the others and absent from readouts
}

export interface Axis {
  label: string;
  log: boolean;
  tick: (value: number) => string;
  exact: (value: number) => string; // for the readout
  steps?: number[]; // between ticks, where decimal ones read badly
}

export interface Range {
  min: number;
  max: number;
  whole?: boolean; // all there is, not a part the reader chose
}

export interface ChartSpec {
  id: string;
  title: string;
  empty: string; // shown when there is nothing to draw
  fromZero: boolean; // where the height itself means something
  cutsStart: boolean; // starts so high that the rest would look flat: the whole view leaves that out
  dots: boolean; // few points: mark each
  height: number;
}

const MOST_ROWS = 12;
const START = 0.03; // the share of the x axis that is left out for cutsStart
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

// Ticks of a logarithmic axis: 1, 2, 5 of each decade, or evenly spaced ones when less than a decade is shown.
function logTicks(min: number, max: number): number[] {
  if (max / min < 8) {
    const raw = (max - min) / 5;
    const size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * size).find((s) => s >= raw)!;
    const ticks: number[] = [];
    for (let n = Math.ceil(min / step); n * step <= max; ++n) ticks.push(Number((n * step).toPrecision(12)));
    return ticks;
  }
  const parts = max / min > 1e4 ? [1] : [1, 2, 5];
  const ticks: number[] = [];
  for (let e = Math.floor(Math.log10(min)); e <= Math.log10(max); ++e) {
    for (const part of parts) {
      const tick = Number(`${part}e${e}`);
      if (tick >= min && tick <= max) ticks.push(tick);
    }
  }
  return ticks;
}

// Index of the value of the ascending `xs` that is nearest to x.
function nearest(xs: number[], x: number): number {
  let low = 0;
  let high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle]! <= x) low = middle;
    else high = middle;
  }
  return x - xs[low]! <= xs[high]! - x ? low : high;
}

export class Chart {
  readonly card: HTMLElement;
  readonly head: HTMLElement;
  private readonly plotBox = element("div", { class: "plot" });
  private readonly subtitle = element("span", { class: "unit" });
  private readonly cut = element("span", { class: "unit", title: "Zoom in, or choose a logarithmic axis, to see it" },
                                 "· start above the frame");
  private readonly readout = element("div", { class: "readout", role: "status" });
  private plot: uPlot | null = null;
  private curves: Curve[] = [];
  private y: Axis | null = null;
  private x: Axis | null = null;
  private range: Range = { min: 0, max: 1 };

  constructor(private readonly spec: ChartSpec, private readonly zoomed: (range: Range | null) => void) {
    this.head = element("header", {}, element("h3", {}, spec.title, " ", this.subtitle, this.cut));
    this.card = element("section", { class: "card chart", id: `chart-${spec.id}` }, this.head, this.plotBox);
  }

  // Draws everything anew. `range` is what the x axis shows; `width` overrides that of the card.
  draw(curves: Curve[], x: Axis, y: Axis, range: Range, visible: boolean[], look: Theme, width?: number): void {
    this.plot?.destroy();
    this.plot = null;
    this.curves = curves;
    this.x = x;
    this.y = y;
    this.range = range;
    this.subtitle.textContent = y.label;
    this.plotBox.replaceChildren();
    this.cut.hidden = true;
    if (!curves.some((curve) => curve.ys.some((value) => value != null))) {
      this.plotBox.append(element("p", { class: "empty" }, this.spec.empty));
      return;
    }

    // The chart library wants one x column for all curves.
    const xs = [...new Set(curves.flatMap((curve) => curve.xs))].sort((a, b) => a - b);
    const row = new Map(xs.map((value, index) => [value, index]));
    const rows = curves.map((curve) => curve.xs.map((value) => row.get(value)!));
    const columns = curves.map((curve, c) => {
      const column: (number | null | undefined)[] = new Array(xs.length).fill(undefined);
      curve.ys.forEach((value, i) => (column[rows[c]![i]!] = value));
      return column;
    });

    const axis = (of: Axis): uPlot.Axis => ({
      stroke: look.ink,
      font: FONT,
      labelFont: FONT,
      grid: { stroke: look.grid, width: 1 },
      ticks: { stroke: look.grid, width: 1, size: 4 },
      values: (_u, splits) => splits.map((value) => of.tick(value)),
      ...(of.log
        ? { splits: (u: uPlot, i: number) => {
              const scale = u.scales[i === 0 ? "x" : "y"]!;
              return logTicks(scale.min!, scale.max!);
            }, filter: (_u: uPlot, splits: number[]) => splits }
        : {}),
      ...(of.steps ? { incrs: of.steps } : {}),
    });
    const yRange = (u: uPlot, min: number | null, max: number | null): uPlot.Range.MinMax => {
      if (min == null || max == null) return y.log ? [1, 10] : [0, 1];
      const top = this.spec.cutsStart && this.range.whole && !x.log && !y.log ? this.highestAfterStart(u, max) : max;
      this.cut.hidden = top === max;
      max = top;
      if (y.log) return min === max ? [min / 1.1, max * 1.1] : [min / (max / min) ** 0.04, max * (max / min) ** 0.04];
      if (this.spec.fromZero) return [0, max > 0 ? max * 1.08 : 1];
      const margin = min === max ? Math.abs(min) * 0.1 || 1 : (max - min) * 0.05;
      return [min - margin, max + margin];
    };

    this.readout.hidden = true;
    this.plot = new uPlot(
      {
        width: width ?? this.plotBox.clientWidth,
        height: this.spec.height,
        padding: [10, 14, 0, 4],
        legend: { show: false },
        scales: {
          x: { time: false, distr: x.log ? 3 : 1, range: () => [this.range.min, this.range.max] },
          y: { distr: y.log ? 3 : 1, range: yRange },
        },
        axes: [
          { ...axis(x), size: 30, label: x.label, labelSize: 18, labelGap: 0, space: 64 },
          { ...axis(y), size: 52, space: 34 },
        ],
        series: [
          {},
          ...curves.map((curve): uPlot.Series => ({
            show: visible[curve.run]!,
            stroke: colour(curve.run, look.dark),
            alpha: curve.faint ? 0.22 : 1,
            width: curve.faint ? 1 : 1.75,
            dash: dash(curve.run),
            points: this.spec.dots && !curve.faint
              ? { show: true, size: 5, width: 1, fill: colour(curve.run, look.dark) }
              : { show: false },
          })),
        ],
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: false, dist: 4 },
          sync: {
            key: "headway",
            scales: ["x", null],
            setSeries: false,
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
          },
          dataIdx: (u, series, _closest, value) => this.rowToShow(u, series, value, rows),
          points: {
            show: (u, series) => {
              const point = element("div", { class: "u-cursor-pt" });
              if (curves[series - 1]!.faint) point.style.display = "none";
              void u;
              return point;
            },
            size: 8,
            fill: (_u, series) => colour(curves[series - 1]!.run, look.dark),
          },
          bind: { dblclick: () => () => (this.zoomed(null), null) },
        },
        hooks: {
          setCursor: [(u) => this.showReadout(u)],
          setSelect: [
            (u) => {
              if (u.select.width < 4) return;
              const min = u.posToVal(u.select.left, "x");
              const max = u.posToVal(u.select.left + u.select.width, "x");
              u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              this.zoomed({ min, max });
            },
          ],
        },
      },
      [xs, ...columns] as uPlot.AlignedData,
      this.plotBox,
    );
    const canvas = this.plot.ctx.canvas;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${this.spec.title} over ${x.label}`);
    this.plot.over.append(this.readout);
    this.plot.over.addEventListener("mouseleave", () => (this.readout.hidden = true));
  }

  // Shows or hides a run without drawing the others' curves anew.
  setVisible(run: number, visible: boolean): void {
    this.plot?.batch(() => {
      this.curves.forEach((curve, c) => {
        if (curve.run === run) this.plot!.setSeries(c + 1, { show: visible }, false);
      });
    });
  }

  zoom(range: Range): void {
    this.range = range;
    this.plot?.setScale("x", range);
  }

  resize(): void {
    this.plot?.setSize({ width: this.plotBox.clientWidth, height: this.spec.height });
  }

  private highestAfterStart(u: uPlot, highest: number): number {
    const xs = u.data[0];
    const start = this.range.min + START * (this.range.max - this.range.min);
    let max = -Infinity;
    for (let c = 1; c < u.data.length; ++c) {
      if (!u.series[c]!.show) continue;
      const column = u.data[c]!;
      for (let i = xs.length - 1; i >= 0 && xs[i]! >= start; --i) max = Math.max(max, column[i] ?? -Infinity);
    }
    return max === -Infinity ? highest : max;
  }

  // A run has no value far beyond its own ends: nothing is read out there.
  private rowToShow(u: uPlot, series: number, x: number, rows: number[][]): number | null {
    if (series === 0) return u.cursor.idx ?? null;
    const curve = this.curves[series - 1]!;
    if (curve.xs.length === 0) return null;
    const i = nearest(curve.xs, x);
    const outside = x < curve.xs[0]! || x > curve.xs[curve.xs.length - 1]!;
    if (outside && Math.abs(u.valToPos(curve.xs[i]!, "x") - u.valToPos(x, "x")) > 12) return null;
    return rows[series - 1]![i]!;
  }

  private showReadout(u: uPlot): void {
    const { left, top, idxs } = u.cursor;
    const here = u.over.matches(":hover");
    if (!here || left == null || top == null || left < 0 || idxs == null) {
      this.readout.hidden = true;
      return;
    }
    const rows = this.curves.flatMap((curve, c) => {
      const index = idxs[c + 1];
      const value = index == null ? null : u.data[c + 1]![index];
      if (curve.faint || !u.series[c + 1]!.show || value == null) return [];
      return [{ curve, x: u.data[0]![index!]!, value, distance: Math.abs(u.valToPos(value, "y") - top) }];
    });
    if (rows.length === 0) {
      this.readout.hidden = true;
      return;
    }
    const closest = [...rows].sort((a, b) => a.distance - b.distance)[0]!;
    const shown = [...rows].sort((a, b) => a.distance - b.distance).slice(0, MOST_ROWS);
    shown.sort((a, b) => b.value - a.value);
    const hidden = rows.length - shown.length;
    this.readout.replaceChildren(
      element("div", { class: "at" }, this.x!.exact(closest.x)),
      element("table", {}, ...shown.map(({ curve, value }) => element("tr", {},
        element("td", {}, swatch(curve.run)),
        element("td", { class: "name" }, curve.name),
        element("td", { class: "value" }, this.y!.exact(value))))),
      hidden > 0 ? element("div", { class: "more" }, `and ${hidden} more further away`) : "",
    );
    this.readout.hidden = false;
    const width = this.readout.offsetWidth;
    const height = this.readout.offsetHeight;
    const x = left > u.over.clientWidth / 2 ? left - width - 14 : left + 14;
    const y = Math.min(Math.max(0, top - height / 2), Math.max(0, u.over.clientHeight - height));
    // On a phone neither side may have room.
    const rightmost = u.over.clientWidth - width;
    this.readout.style.transform = `translate(${Math.max(Math.min(x, rightmost), -40)}px, ${y}px)`;
  }
}
