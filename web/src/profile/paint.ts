// Drawing of tracks on a canvas, as many rectangles as pixels at most. Each function returns how many it drew.

import type { Profile } from "./profile";
import type { Row } from "./row";
import type { Steps } from "./counter";
import { hue, mixed, shades, strengths, type Hue, type Theme } from "./theme";
import type { View } from "./view";

const LETTER = 6.1;  // width of a letter of the labels, about
export const LABEL_FONT = '11px ui-monospace, "SF Mono", "Cascadia Mono", Consolas, monospace';

export class Painter {
  private readonly strengths = new Map<string, string[]>();
  private readonly shades = new Map<Hue, string[]>();

  constructor(private readonly context: CanvasRenderingContext2D, readonly theme: Theme, private readonly view: View,
              private readonly width: number) {}

  // `faded`: in the background of emphasised items.
  row(row: Row, profile: Profile, colour: Hue, y: number, height: number, faded: boolean): number {
    const { context, view } = this;
    const paper = this.theme.card;
    const weak = (text: string) => faded ? mixed(text, paper, 0.25) : text;
    const key = `${colour}${faded}`;
    if (!this.strengths.has(key)) this.strengths.set(key, strengths(colour, paper).map(weak));
    if (!this.shades.has(colour)) this.shades.set(colour, shades(colour));
    const thin = this.strengths.get(key)!;
    const wide = this.shades.get(colour)!;
    const scale = this.width / view.length;
    let drawn = 0;
    let used = "";
    const fill = (style: string, x: number, w: number) => {
      if (style !== used) context.fillStyle = used = style;
      context.fillRect(x, y, w, height);
      drawn++;
    };
    const labels: [number, number, number][] = [];
    row.walk(view.from, scale, this.width, (x, w, i) => {
      const item = row.item[i]!;
      const shade = wide[profile.shade(item) % wide.length]!;
      fill(weak(shade), x, w > 4 ? w - 0.75 : w);
      if (w > 24 && height >= 14 && !faded) labels.push([x, w, item]);
    }, (x, w, eighths) => fill(thin[eighths]!, x, w));
    if (labels.length > 0) {
      context.font = LABEL_FONT;
      context.textBaseline = "middle";
      context.fillStyle = this.theme.onBar;
      for (const [x, w, item] of labels) {
        const left = Math.max(x, 0) + 5;
        const letters = Math.floor((Math.min(x + w, this.width) - left - 4) / LETTER);
        const text = profile.opcode(item);
        if (letters < Math.min(text.length, 5)) continue;
        context.fillText(text.length <= letters ? text : `${text.slice(0, letters - 1)}…`, left, y + height / 2 + 0.5);
      }
    }
    return drawn;
  }

  // The emphasised items of a row, over the row.
  marks(row: Row, y: number, height: number): number {
    const colour = hue("mark");
    const thin = strengths("mark", this.theme.card);
    const { context } = this;
    let drawn = 0;
    row.walk(this.view.from, this.width / this.view.length, this.width, (x, w) => {
      context.fillStyle = colour;
      context.fillRect(x, y, w > 4 ? w - 0.75 : w, height);
      drawn++;
    }, (x, w, eighths) => {
      context.fillStyle = thin[Math.max(4, eighths)]!;
      context.fillRect(x, y, w, height);
      drawn++;
    });
    return drawn;
  }

  // An area: strong up to the mean of each pixel, weak up to its peak.
  area(steps: Steps, y: number, height: number): number {
    const { context, view } = this;
    const colour = hue("counter");
    const mean = mixed(colour, this.theme.card, 0.72);
    const peak = mixed(colour, this.theme.card, 0.3);
    const step = view.length / this.width;
    const flat: { x: number; w: number; mean: number; peak: number }[] = [];
    for (let x = 0; x < this.width; x++) {
      const from = view.from + x * step;
      const m = Math.round(height * steps.mean(from, from + step) / steps.top * 4) / 4;
      const p = Math.round(height * steps.max(from, from + step) / steps.top * 4) / 4;
      const last = flat[flat.length - 1];
      if (last !== undefined && last.mean === m && last.peak === p) last.w++;
      else flat.push({ x, w: 1, mean: m, peak: p });
    }
    let drawn = 0;
    context.fillStyle = peak;
    for (const { x, w, mean: m, peak: p } of flat) {
      if (p <= m) continue;
      context.fillRect(x, y + height - p, w, p - m);
      drawn++;
    }
    context.fillStyle = mean;
    for (const { x, w, mean: m } of flat) {
      if (m <= 0) continue;
      context.fillRect(x, y + height - m, w, m);
      drawn++;
    }
    return drawn;
  }

  // Time at the top, and a line down for each tick.
  axis(context: CanvasRenderingContext2D, height: number): void {
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "alphabetic";
    for (const { x, text } of ticks(this.view, this.width)) {
      context.fillStyle = this.theme.line;
      context.fillRect(Math.round(x), height - 5, 1, 5);
      context.fillStyle = this.theme.soft;
      const wide = context.measureText(text).width;
      context.fillText(text, Math.max(0, Math.min(this.width - wide, x - wide / 2)), height - 8);
    }
  }

  grid(height: number): void {
    this.context.fillStyle = mixed(this.theme.line, this.theme.card, 0.6);
    for (const { x } of ticks(this.view, this.width)) this.context.fillRect(Math.round(x), 0, 1, height);
  }
}

// Round moments about 100 pixels apart, in one unit.
export function ticks(view: View, width: number): { x: number; text: string }[] {
  const rough = view.length / Math.max(2, width / 100);
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * ten).find((size) => size >= rough)!;
  const [unit, name] = view.to < 2e3 ? [1, "ns"] : view.to < 2e6 || step < 1e3 ? [1e3, "µs"] : [1e6, "ms"];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  const result = [];
  for (let i = Math.ceil(view.from / step); i * step <= view.to; i++) {
    const at = i * step;
    result.push({ x: (at - view.from) / view.length * width,
                  text: `${(at / unit).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}` });
  }
  return result;
}
