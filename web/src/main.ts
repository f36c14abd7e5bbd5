// The report page: reads the runs in it, builds its parts and keeps them in step with what the reader chooses.

import "uplot/dist/uPlot.min.css";
import "./style.css";

import { Chart, type Axis, type ChartSpec, type Range } from "./chart";
import { evaluationCurves, fullRange, noisyCurves, plainCurves, X_KINDS, xAxis, type View } from "./curves";
import { readRuns, type Run } from "./data";
import { choice, element } from "./dom";
import { grouped, percent, rate, trimmed } from "./format";
import { flattened, keyValueSection } from "./key_values";
import { swatch, theme } from "./style_of_run";
import { notes, summaryTable } from "./summary";
import { timeSection } from "./time_bars";

const WINDOWS = [1, 5, 10, 20, 50, 100, 200, 500];
const PRINT_WIDTH = 660;

type Id = "loss" | "val_bpb" | "rates" | "throughput" | "mfu";

const SPECS: (ChartSpec & { id: Id })[] = [
  { id: "loss", title: "Training loss", empty: "No steps yet.", fromZero: false, cutsStart: true, dots: false, height: 320 },
  { id: "val_bpb", title: "Validation", empty: "Not evaluated yet.", fromZero: false, cutsStart: true, dots: true, height: 320 },
  { id: "rates", title: "Learning rate", empty: "None recorded.", fromZero: true, cutsStart: false, dots: false, height: 220 },
  { id: "throughput", title: "Throughput", empty: "None recorded.", fromZero: true, cutsStart: false, dots: false, height: 220 },
  { id: "mfu", title: "MFU", empty: "None recorded.", fromZero: true, cutsStart: false, dots: false, height: 220 },
];

class Page {
  private readonly view: View;
  private readonly visible: boolean[];
  private readonly charts = new Map<Id, Chart>();
  private readonly reset = element("button", { type: "button", class: "reset", title: "Or double-click a chart" },
                                   "Reset zoom");
  private readonly legend: HTMLElement;
  private zoom: Range | null = null;
  private readonly rates: string[];  // what the learning rate chart can show
  private rateOf: string;
  private printing = false;
  private times: HTMLElement;

  constructor(private readonly runs: Run[], root: HTMLElement) {
    const steps = Math.max(...runs.map((run) => run.figures.steps));
    const window = WINDOWS.filter((size) => size <= Math.max(1, Math.min(50, steps / 50))).pop()!;
    this.view = { x: "tokens", log: { x: false, y: false }, window };
    this.visible = runs.map(() => true);

    const groups = [...new Set(runs.flatMap((run) => Object.keys(run.points.lr)))];
    const momentum = runs.some((run) => run.points.momentum.some((value) => value != null));
    this.rateOf = groups[0] ?? "momentum";

    for (const spec of SPECS) this.charts.set(spec.id, new Chart(spec, (range) => this.setZoom(range)));
    this.rates = [...groups, ...(momentum ? ["momentum"] : [])];
    if (this.rates.length > 1) {
      const select = element("select", { "aria-label": "Parameter group", id: "rate-of" },
                             ...this.rates.map((name) => element("option", { value: name }, name)));
      select.addEventListener("change", () => {
        this.rateOf = select.value;
        this.draw("rates");
      });
      this.charts.get("rates")!.head.append(select);
    }

    this.legend = this.buildLegend();
    this.times = timeSection(runs, this.visible);
    const names = runs.length <= 4 ? runs.map((run) => run.name).join(" · ") : `${runs.length} runs`;
    document.title = `${names} – Headway`;
    root.replaceChildren(
      element("header", { class: "title" },
        element("p", { class: "brand" }, "Headway"),
        element("h1", {}, names)),
      ...[notes(runs)].filter((part) => part !== null),
      summaryTable(runs),
      this.buildToolbar(),
      element("div", { class: "grid charts" }, ...[...this.charts.values()].map((chart) => chart.card)),
      this.times,
      keyValueSection(runs.length > 1 ? "Recipe differences" : "Recipe", "recipes", "recipes", runs, runs.map((run) => run.recipe)),
      keyValueSection("Where and when", "environments", "environments", runs, runs.map((run) => flattened(run.environment))),
    );
    this.drawAll();
    this.follow();
  }

  private buildToolbar(): HTMLElement {
    const usable = X_KINDS.filter(({ value }) =>
      value === "step" || this.runs.some((run) => run.points[value].some((x) => x != null && x > 0)));
    if (!usable.some(({ value }) => value === this.view.x)) this.view.x = "step";
    const scales = [{ value: "linear", text: "Linear" }, { value: "log", text: "Log" }] as const;
    const label = element("output", { for: "smoothing" });
    const slider = element("input", { type: "range", id: "smoothing", min: "0", max: String(WINDOWS.length - 1),
                                      value: String(WINDOWS.indexOf(this.view.window)) });
    const say = () => {
      label.textContent = this.view.window === 1 ? "off" : `mean of ${this.view.window} steps`;
    };
    say();
    let waiting = false;
    slider.addEventListener("input", () => {
      this.view.window = WINDOWS[Number(slider.value)]!;
      say();
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        for (const id of ["loss", "throughput", "mfu"] as const) this.draw(id);
      });
    });
    this.reset.hidden = true;
    this.reset.addEventListener("click", () => this.setZoom(null));
    const field = (name: string, ...controls: HTMLElement[]) =>
      element("div", { class: "field" }, element("span", { class: "field-name" }, name), ...controls);
    return element("div", { class: "toolbar" },
      element("div", { class: "controls" },
        field("Over", choice("x axis", usable, this.view.x, (value) => {
          this.view.x = value;
          this.zoom = null;
          this.drawAll();
        })),
        field("x", choice("x scale", scales, "linear", (value) => {
          this.view.log.x = value === "log";
          this.zoom = null;
          this.drawAll();
        })),
        field("y", choice("y scale", scales, "linear", (value) => {
          this.view.log.y = value === "log";
          for (const id of ["loss", "val_bpb", "rates"] as const) this.draw(id);
        })),
        element("label", { class: "field smoothing" }, element("span", { class: "field-name" }, "Smoothing"), slider, label),
        this.reset),
      this.legend);
  }

  private buildLegend(): HTMLElement {
    const buttons = this.runs.map((run, r) => {
      const button = element("button", { type: "button", class: "run", "aria-pressed": "true",
                                         title: "Click to hide or show, double-click to show alone" },
                             swatch(r), element("span", {}, run.name));
      button.addEventListener("click", () => this.setVisible(r, !this.visible[r]));
      button.addEventListener("dblclick", () => this.runs.forEach((_, other) => this.setVisible(other, other === r)));
      return button;
    });
    const all = element("button", { type: "button", class: "all" }, "Show all");
    all.addEventListener("click", () => this.runs.forEach((_, r) => this.setVisible(r, true)));
    return element("div", { class: "legend", role: "group", "aria-label": "Runs" }, ...buttons,
                   this.runs.length > 2 ? all : null);
  }

  private setVisible(run: number, visible: boolean): void {
    if (this.visible[run] === visible) return;
    this.visible[run] = visible;
    this.legend.children[run]!.setAttribute("aria-pressed", String(visible));
    for (const chart of this.charts.values()) chart.setVisible(run, visible);
    const times = timeSection(this.runs, this.visible);
    this.times.replaceWith(times);
    this.times = times;
  }

  private setZoom(range: Range | null): void {
    this.zoom = range;
    this.reset.hidden = range === null;
    for (const chart of this.charts.values()) chart.zoom(range ?? fullRange(this.runs, this.view));
  }

  private drawAll(): void {
    this.reset.hidden = this.zoom === null;
    for (const id of this.charts.keys()) this.draw(id);
  }

  private draw(id: Id): void {
    const { runs, view } = this;
    const xOnly = { x: view.log.x, y: false };
    const tick = (value: number) => String(Number(value.toPrecision(6)));
    const rateTick = (value: number) => value !== 0 && value < 1e-3 ? rate(value) : tick(value);
    const smoothing = view.window > 1 ? `, mean of ${view.window} steps` : "";
    const y = (label: string, exact: Axis["exact"], tick: Axis["tick"], log = false): Axis => ({ label, log, exact, tick });
    const [curves, axis] = (() => {
      switch (id) {
        case "loss":
          return [noisyCurves(runs, view, view.log, (run) => run.points.loss, (run) => run.points.loss_mean),
                  y(`nats a token${smoothing}`, (v) => v.toFixed(4), tick, view.log.y)] as const;
        case "val_bpb":
          return [evaluationCurves(runs, view), y("bits per byte", (v) => v.toFixed(4), tick, view.log.y)] as const;
        case "rates": {
          const of = this.rateOf;
          return [plainCurves(runs, view, view.log, (run) => of === "momentum" ? run.points.momentum : run.points.lr[of] ?? []),
                  y(this.rates.length > 1 ? "" : of, rate, rateTick, view.log.y)] as const;
        }
        case "throughput":
          return [noisyCurves(runs, view, xOnly, (run) => run.points.tokens_per_second),
                  y(`tokens/s${smoothing}`, (v) => `${grouped(v)} tokens/s`, (v) => v >= 1e4 ? `${trimmed(v / 1e3)}k` : grouped(v))] as const;
        case "mfu":
          return [noisyCurves(runs, view, xOnly, (run) => run.points.mfu),
                  y(`of the host’s peak${smoothing}`, percent, (v) => `${trimmed(100 * v)} %`)] as const;
      }
    })();
    this.charts.get(id)!.draw(curves, xAxis(view.x, view.log.x), axis, this.zoom ?? fullRange(runs, view), this.visible,
                              theme(this.printing), this.printing ? PRINT_WIDTH : undefined);
  }

  // Theme, window size and paper may change under the page.
  private follow(): void {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawAll());
    let width = innerWidth;
    addEventListener("resize", () => {
      if (this.printing || innerWidth === width) return;
      width = innerWidth;
      for (const chart of this.charts.values()) chart.resize();
    });
    addEventListener("beforeprint", () => {
      this.printing = true;
      this.drawAll();
    });
    addEventListener("afterprint", () => {
      this.printing = false;
      this.drawAll();
    });
  }
}

const root = document.getElementById("page")!;
try {
  const runs = readRuns();
  new Page(runs, root);
} catch (error) {
  root.replaceChildren(element("p", { class: "failure" }, error instanceof Error ? error.message : String(error)));
  throw error;
}
