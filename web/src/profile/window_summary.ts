// What happened in a selected stretch of time.

import { element } from "../dom";
import { metric } from "../format";
import type { Profile } from "./profile";
import type { Row } from "./row";
import { huePair } from "./theme";
import type { Track } from "./tracks";
import { moment, quantity, share, size, time } from "./units";

interface Sums {
  count: number;
  flops: number;
  bytes: number;
  byOpcode: Map<string, number>;
}

// Items that lie across an edge count by the share that lies inside.
function add(sums: Sums, profile: Profile, row: Row, from: number, to: number): void {
  for (let i = row.after(from); i < row.length && row.start[i]! < to; i++) {
    const item = row.item[i]!;
    const length = row.end[i]! - row.start[i]!;
    const inside = Math.min(to, row.end[i]!) - Math.max(from, row.start[i]!);
    const part = length > 0 ? inside / length : 1;
    sums.count++;
    sums.flops += part * profile.flops(item);
    const moved = profile.transfer(item);
    if (moved >= 0) sums.bytes += part * profile.saved.transfers.bytes[moved]!;
    else sums.byOpcode.set(profile.opcode(item), (sums.byOpcode.get(profile.opcode(item)) ?? 0) + inside);
  }
}

export function windowSummary(profiles: Profile[], tracks: Track[], from: number, to: number, close: () => void,
                              zoom: () => void): HTMLElement {
  const length = to - from;
  const parts = profiles.map((profile, p) => {
    const all: Sums = { count: 0, flops: 0, bytes: 0, byOpcode: new Map() };
    const lines = tracks.filter((track) => track.profile === p && track.kind !== "heading").map((track) => {
      if (track.steps !== null) {
        const { steps } = track;
        return [track, null, "", `mean ${quantity(steps.mean(from, to), steps.unit)}, peak ${quantity(steps.max(from, to), steps.unit)}`] as const;
      }
      const sums: Sums = { count: 0, flops: 0, bytes: 0, byOpcode: all.byOpcode };
      for (const row of track.rows) add(sums, profile, row, from, to);
      all.count += track.kind === "engine" ? sums.count : 0;
      all.flops += sums.flops;
      all.bytes += sums.bytes;
      const busy = track.busy?.busy(from, to) ?? 0;
      return [track, busy, track.kind === "engine" ? `${sums.count.toLocaleString("en-US")} instructions` : size(sums.bytes),
              `${time(busy)}, ${share(busy / length)}`] as const;
    });
    const peak = profile.saved.roofline?.mfu_peak;
    const headline = [
      `${all.count.toLocaleString("en-US")} instructions`,
      `${size(all.bytes)} by DMA (${metric(1e9 * all.bytes / length, "B/s")})`,
      peak === undefined || all.flops === 0 ? "" : `MFU ${share(1e9 * all.flops / length / peak)}`,
    ].filter((text) => text !== "").join(" · ");
    const top = [...all.byOpcode].filter(([, busy]) => busy > 0).sort((a, b) => b[1] - a[1]).slice(0, 6);
    return element("div", { class: "window-part" },
      profiles.length > 1 ? element("h4", {}, `${"AB"[p]} · ${profile.saved.kernel}`) : null,
      element("p", { "data-window": "headline" }, headline),
      element("table", { class: "window-tracks" }, ...lines.map(([track, busy, what, text]) => {
        const bar = element("span", { class: "meter" }, element("span", {}));
        const fill = bar.firstChild as HTMLElement;
        const [light, dark] = huePair(track.hue);
        fill.style.setProperty("--light", light);
        fill.style.setProperty("--dark", dark);
        if (busy !== null) fill.style.width = `${100 * busy / length}%`;
        return element("tr", { "data-track": track.label },
          element("th", { scope: "row" }, profile.saved.core_from.length > 2 ? `${track.label} (core ${track.core})` : track.label),
          element("td", {}, busy === null ? "" : bar), element("td", { class: "number" }, text), element("td", { class: "soft" }, what));
      })),
      top.length === 0 ? null : element("p", { class: "soft" }, `Most engine time: ${top.map(([name, busy]) => `${name} ${time(busy)}`).join(", ")}`));
  });
  const closing = element("button", { type: "button", "aria-label": "Close the selection" }, "Clear");
  closing.addEventListener("click", close);
  const zooming = element("button", { type: "button" }, "Zoom in");
  zooming.addEventListener("click", zoom);
  return element("section", { class: "card window", "aria-live": "polite", "aria-label": "Selected stretch" },
    element("header", {}, element("h3", {}, `Selected ${time(length)}`, element("span", { class: "unit" }, `${moment(from)} to ${moment(to)}`)),
            element("span", { class: "buttons" }, zooming, closing)),
    ...parts);
}
