// The roofline: what the chip allows at each arithmetic intensity, and where the kernels are.

import { element } from "../dom";
import { metric, trimmed } from "../format";
import type { Profile } from "./profile";

const WIDTH = 560;
const HEIGHT = 330;
const LEFT = 62;
const RIGHT = 22;
const TOP = 14;
const BOTTOM = 44;

interface Point {
  label: string;
  intensity: number;  // FLOP a byte of HBM
  rate: number;       // FLOP/s
}

function svg(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.textContent = text;
  return node;
}

function pointOf(profile: Profile, label: string): Point | null {
  const { figures } = profile.saved;
  const bytes = (figures.hbm_read_bytes ?? 0) + (figures.hbm_write_bytes ?? 0);
  const flops = (figures.hardware_flops ?? 0) - (figures.transpose_flops ?? 0);
  const seconds = figures.total_time ?? 0;
  return bytes > 0 && flops > 0 && seconds > 0 ? { label, intensity: flops / bytes, rate: flops / seconds } : null;
}

// The chip's limits; of profiles that don't list them, what their figures imply.
function roofOf({ saved }: Profile): NonNullable<Profile["saved"]["roofline"]> | null {
  if (saved.roofline !== undefined) return saved.roofline;
  const bandwidth = saved.counters.find(({ name }) => name === "HBM read")?.limit ?? 0;
  const flops = (saved.figures.peak_flops_bandwidth_ratio ?? 0) * bandwidth;
  return flops > 0 ? { bandwidth, mfu_peak: flops, dtype: "peak", peaks: [{ dtype: "peak", flops }] } : null;
}

export function roofline(profiles: Profile[]): HTMLElement | null {
  const chip = roofOf(profiles[0]!);
  if (chip === null) return null;
  const points = profiles.map((profile, p) => pointOf(profile, profiles.length > 1 ? "AB"[p]! : profile.saved.kernel))
    .filter((point) => point !== null);
  const peaks = [...chip.peaks].sort((a, b) => b.flops - a.flops);
  const ridges = peaks.map(({ flops }) => flops / chip.bandwidth);
  const floor = (value: number) => 10 ** Math.floor(Math.log10(value));
  const xs = [...ridges, ...points.map(({ intensity }) => intensity)];
  const x0 = floor(Math.min(...xs) / 3);
  const x1 = 10 * floor(Math.max(...xs) * 3);
  const y0 = floor(Math.min(...points.map(({ rate }) => rate), peaks[peaks.length - 1]!.flops, chip.bandwidth * x0) / 1.5);
  const y1 = peaks[0]!.flops * 2.5;
  const x = (value: number) => LEFT + (WIDTH - LEFT - RIGHT) * Math.log(value / x0) / Math.log(x1 / x0);
  const y = (value: number) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * Math.log(value / y0) / Math.log(y1 / y0);

  const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "roofline", role: "img",
    "aria-label": points.map((p) => `${p.label}: ${trimmed(p.intensity)} FLOP a byte, ${metric(p.rate, "FLOP/s")}`).join("; ") });
  for (let tick = x0; tick <= x1 * 1.001; tick *= 10) {
    chart.append(svg("line", { x1: x(tick), x2: x(tick), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid-line" }),
                 svg("text", { x: x(tick), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, String(Number(tick.toPrecision(1)))));
  }
  for (let tick = y0; tick <= y1; tick *= 10) {
    chart.append(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick), class: "grid-line" }),
                 svg("text", { x: LEFT - 7, y: y(tick) + 4, "text-anchor": "end" }, metric(tick).replace(/\.0+ /, " ")));
  }
  chart.append(svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle", class: "axis-name" }, "FLOP a byte of HBM"),
               svg("text", { x: 12, y: HEIGHT / 2 - 14, "text-anchor": "middle", class: "axis-name",
                             transform: `rotate(-90 12 ${HEIGHT / 2 - 14})` }, "FLOP/s"));
  const slope = Math.min(x1, ridges[0]!);
  const from = Math.max(x0, y0 / chip.bandwidth);
  chart.append(svg("path", { d: `M${x(from)},${y(chip.bandwidth * from)}L${x(slope)},${y(chip.bandwidth * slope)}`, class: "roof" }));
  const middle = Math.sqrt(from * Math.min(slope, ridges[ridges.length - 1]!));
  const angle = Math.atan2(y(chip.bandwidth * slope) - y(chip.bandwidth * from), x(slope) - x(from)) * 180 / Math.PI;
  chart.append(svg("text", { x: x(middle), y: y(chip.bandwidth * middle) - 7, "text-anchor": "middle", class: "roof-name",
                             transform: `rotate(${angle} ${x(middle)} ${y(chip.bandwidth * middle)})` }, `HBM ${metric(chip.bandwidth, "B/s")}`));
  let above = -Infinity;
  peaks.forEach(({ dtype, flops }, i) => {
    if (ridges[i]! > x1) return;
    chart.append(svg("path", { d: `M${x(ridges[i]!)},${y(flops)}L${WIDTH - RIGHT},${y(flops)}`, class: dtype === chip.dtype ? "roof" : "roof other" }));
    // Lines that lie together get their names beside each other.
    if (y(flops) - above < 13) return;
    const names = peaks.filter((peak) => Math.abs(y(peak.flops) - y(flops)) < 13).map((peak) => peak.dtype).join(", ");
    chart.append(svg("text", { x: WIDTH - RIGHT, y: y(flops) - 5, "text-anchor": "end", class: "roof-name" },
                     `${names} ${metric(flops, "FLOP/s")}`));
    above = y(flops);
  });
  const words: HTMLElement[] = [];
  for (const point of points) {
    const px = x(point.intensity);
    const roof = Math.min(chip.bandwidth * point.intensity, (chip.peaks.find(({ dtype }) => dtype === chip.dtype) ?? peaks[0]!).flops);
    chart.append(svg("line", { x1: px, x2: px, y1: y(point.rate), y2: y(roof), class: "headroom" }),
                 svg("circle", { cx: px, cy: y(point.rate), r: 5.5, class: "kernel" }));
    if (points.length > 1) {
      chart.append(svg("text", { x: px + (point === points[0] ? -9 : 9), y: y(point.rate) + 4, "text-anchor": point === points[0] ? "end" : "start", class: "kernel-name" }, point.label));
    }
    words.push(element("p", { class: "soft" }, element("strong", {}, point.label),
      `: ${trimmed(point.intensity)} FLOP a byte, ${metric(point.rate, "FLOP/s")}, ${trimmed(100 * point.rate / roof)} % of what the roof allows`));
  }
  return element("section", { class: "card" }, element("header", {}, element("h3", {}, "Roofline")), chart as unknown as Node, ...words);
}
