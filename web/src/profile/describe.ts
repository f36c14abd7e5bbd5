// An item in words: for the readout beside the mouse and for the panel of the pinned one.

import { element } from "../dom";
import type { Profile } from "./profile";
import type { Hit, Place } from "./timeline";
import { moment, quantity, size, time } from "./units";

// What a cause says to the reader, given the name of the item waited for.
const CAUSES: Record<string, string> = {
  nothing: "nothing", engine: "its engine was busy with", operand: "reads what was written by",
  overwrite: "writes what was used by", memory: "its memory was in use by", table: "a table of functions was loaded after",
  queue: "its queue was full of", meeting: "another core, at", edge: "the kernel’s own order, after", trigger: "triggered by",
};

function wait(name: string): string {
  return CAUSES[name] ?? name;
}

export function short(profile: Profile, item: number): string {
  const moved = profile.transfer(item);
  const source = profile.source(item);
  const what = moved < 0 ? `${profile.opcode(item)} on ${profile.place(item)}`
                         : `${size(profile.saved.transfers.bytes[moved]!)} on ${profile.place(item)}`;
  return source === "" ? what : `${what}, ${source}`;
}

// [name, value] of everything there is to say.
export function facts(profile: Profile, item: number): [string, string][] {
  const { saved } = profile;
  const start = profile.start[item]!;
  const busy = profile.busyEnd[item]! - start;
  const latency = profile.end[item]! - profile.busyEnd[item]!;
  const rows: [string, string][] = [["start", moment(start)], ["duration", time(busy)]];
  const moved = profile.transfer(item);
  if (moved < 0) {
    if (latency > 0) rows.push(["result after", time(busy + latency)]);
    const flops = profile.flops(item);
    if (flops > 0 && busy > 0) rows.push(["FLOPs", `${quantity(flops, "")} (${quantity(1e9 * flops / busy, "FLOP/s")})`]);
  } else {
    const { transfers } = saved;
    const bytes = transfers.bytes[moved]!;
    rows.push(["moves", `${size(bytes)}, ${saved.memories[transfers.from[moved]!]} → ${saved.memories[transfers.to[moved]!]}`]);
    if (busy > 0) rows.push(["rate", quantity(1e9 * bytes / busy, "B/s")]);
    rows.push(["descriptors", `${transfers.descriptors[moved]!.toLocaleString("en-US")} of ${size(transfers.descriptor_bytes[moved]!)}, ` +
                              `${saved.modes[transfers.mode[moved]!]}, on ${transfers.engines[moved]} DMA engines`]);
    if (latency > 0) rows.push(["known after", time(busy + latency)]);
  }
  return rows;
}

// The readout beside the mouse.
export function readout(profiles: Profile[], hit: Hit): HTMLElement | null {
  const { track, place } = hit;
  if (track.steps !== null) {
    return element("div", {}, element("strong", {}, track.label), element("div", { class: "soft" }, `at ${moment(hit.at)}`),
                   element("div", {}, quantity(track.steps.at(hit.at), track.steps.unit) +
                                      (track.steps.unit === "1" ? "" : ` of ${quantity(track.steps.limit, track.steps.unit)}`)));
  }
  if (place === null) return null;
  const profile = profiles[place.profile]!;
  const { item } = place;
  const cause = profile.cause(item);
  return element("div", {},
    element("strong", {}, profile.opcode(item)),
    element("div", { class: "operands" }, profile.operands(item)),
    element("table", {}, ...facts(profile, item).map(([name, value]) =>
      element("tr", {}, element("td", { class: "soft" }, name), element("td", {}, value)))),
    cause === null ? null : element("div", { class: "cause" }, element("span", { class: "soft" }, `waited: ${wait(cause.name)} `),
                                    cause.item < 0 ? "" : short(profile, cause.item)),
    profile.source(item) === "" ? null : element("div", { class: "source" }, profile.source(item)));
}

// The panel of the pinned item; `go` is called with another one that the reader wants to see.
export function panel(profiles: Profile[], place: Place, go: (place: Place) => void, onSource: (source: string) => void): HTMLElement {
  const profile = profiles[place.profile]!;
  const { item } = place;
  const link = (other: number) => {
    const button = element("button", { type: "button", class: "link" }, short(profile, other));
    button.addEventListener("click", () => go({ profile: place.profile, item: other }));
    return button;
  };
  const cause = profile.cause(item);
  const effects = profile.effects(item);
  const moved = profile.transfer(item);
  const source = profile.source(item);
  const rows: [string, Node | string][] = facts(profile, item);
  if (cause !== null) {
    const gap = cause.item < 0 ? 0 : profile.start[item]! - profile.end[cause.item]!;
    rows.push(["waited for", element("span", {}, `${wait(cause.name)} `, cause.item < 0 ? "" : link(cause.item),
                                     gap > 0 ? element("span", { class: "soft" }, ` (+${time(gap)})`) : null)]);
  }
  if (effects.length > 0) {
    const list = element("span", {}, ...effects.slice(0, 4).flatMap((other, i) => [i > 0 ? " · " : "", link(other)]),
                         effects.length > 4 ? ` and ${effects.length - 4} more` : "");
    rows.push(["kept waiting", list]);
  }
  if (source !== "") {
    const button = element("button", { type: "button", class: "link", title: "Highlight all of this line" }, source);
    button.addEventListener("click", () => onSource(source));
    rows.push(["source", button]);
  }
  const calibrated = moved >= 0 || profile.saved.events.calibrated[item] === 1;
  return element("section", { class: "card detail", "aria-live": "polite", "aria-label": "Pinned instruction" },
    element("header", {}, element("h3", {}, profile.opcode(item), element("span", { class: "unit" }, profile.place(item)),
                                  calibrated ? null : element("span", { class: "badge" }, "shape outside what was measured")),
            element("span", { class: "soft" }, moved < 0 ? `instruction ${item.toLocaleString("en-US")}` : `transfer ${moved.toLocaleString("en-US")}`)),
    element("p", { class: "operands" }, profile.operands(item)),
    element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])));
}
