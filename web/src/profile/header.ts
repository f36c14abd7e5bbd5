// The top of the page: which kernel, how long, how sure, what bounds it, and what to do about it.

import { element } from "../dom";
import type { Advice } from "./data";
import { engineName, type Profile } from "./profile";
import { huePair, type Hue } from "./theme";
import { share, time } from "./units";

const TAGS = ["documented", "measured", "fitted", "assumed"] as const;

function seconds(value: number | null | undefined): string {
  return value == null ? "–" : time(1e9 * value);
}

function meter(part: number, hue: Hue, label: string, text: string): HTMLElement {
  const fill = element("span", {});
  fill.style.width = `${100 * Math.max(0, Math.min(1, part))}%`;
  const [light, dark] = huePair(hue);
  fill.style.setProperty("--light", light);
  fill.style.setProperty("--dark", dark);
  return element("div", { class: "meter-line" }, element("span", { class: "soft", title: label }, label),
                 element("span", { class: "meter" }, fill), element("span", { class: "number" }, text));
}

function total(profile: Profile): HTMLElement {
  const { figures, trust } = profile.saved;
  const basis = element("div", { class: "basis", role: "img",
                                 "aria-label": TAGS.map((tag) => `${tag} ${share(trust[tag])}`).join(", ") },
                        ...TAGS.map((tag) => {
                          const part = element("span", { class: tag });
                          part.style.width = `${100 * trust[tag]}%`;
                          return part;
                        }));
  const launch = figures.launch_time;
  return element("div", { class: "card figure" },
    element("h3", {}, "Time"),
    element("p", { class: "big", "data-figure": "total_time" }, seconds(figures.total_time)),
    trust.high > 0 ? element("p", { class: "soft" }, `${seconds(trust.low)} to ${seconds(trust.high)}, with about 90 % confidence`) : null,
    launch == null || launch === 0 ? null : element("p", { class: "soft" }, `+ ${seconds(launch)} of launch`),
    TAGS.some((tag) => trust[tag] > 0) ? basis : null,
    element("p", { class: "soft tags" }, ...TAGS.filter((tag) => trust[tag] > 0).map((tag) =>
      element("span", { class: `tag ${tag}` }, `${tag} ${share(trust[tag])}`))),
    trust.uncalibrated > 0
      ? element("p", { class: "soft" }, `${trust.uncalibrated.toLocaleString("en-US")} instructions have shapes outside what was measured.`)
      : null);
}

function bound(profile: Profile): HTMLElement {
  const { bound } = profile.saved;
  const hueOf = (by: string): Hue => by in HUE_OF ? HUE_OF[by]! : "counter";
  return element("div", { class: "card figure" },
    element("h3", {}, "Bound by"),
    element("p", { class: "big" }, bound.name.charAt(0).toUpperCase() + bound.name.slice(1)),
    element("p", { class: "reason" }, bound.reason),
    ...bound.limits.slice(0, 6).map((limit) => meter(limit.share, hueOf(limit.by), limit.name, `${seconds(limit.time)}`)));
}

const HUE_OF: Record<string, Hue> = { tensor: "tensor", vector: "vector", scalar: "scalar", gpsimd: "gpsimd", sync: "sync",
                                      dma: "dma", dma_bandwidth: "dma", dma_descriptors: "dma", dma_issue: "dma", hbm: "dma" };

function use(profile: Profile): HTMLElement {
  const { figures } = profile.saved;
  const engines = ["tensor", "vector", "scalar", "gpsimd", "sync"];
  const line = (name: string, label: string, hue: Hue) => {
    const value = figures[name];
    return value == null ? null : meter(value, hue, label, share(value));
  };
  return element("div", { class: "card figure" },
    element("h3", {}, "Busy"),
    ...engines.map((engine) => line(`${engine}_engine_active_time_percent`, engineName(engine), engine as Hue)),
    line("dma_active_time_percent", "DMA", "dma"),
    element("h3", { class: "second" }, "Of the peak"),
    line("mfu_estimated_percent", "MFU", "tensor"), line("mbu_estimated_percent", "HBM", "dma"));
}

function path(profile: Profile): HTMLElement {
  const parts = profile.saved.critical_path;
  return element("div", { class: "card figure path" },
    element("h3", {}, "What the total is made of"),
    element("p", { class: "soft lead" }, "The critical path, by what runs on it and what that waited for."),
    ...parts.slice(0, 8).map(({ what, cause, share: part, time: t }) =>
      meter(part, HUE_OF[what.split(" ")[0]!] ?? "counter",
            `${engineName(what)}${cause === "" || cause === "nothing" ? "" : `, ${cause}`}`, `${seconds(t)} · ${share(part)}`)));
}

function heading(profile: Profile, letter: string): HTMLElement {
  const { saved } = profile;
  return element("header", { class: "title" },
    element("p", { class: "brand" }, letter === "" ? "Headway profile" : `Profile ${letter}`),
    element("h1", {}, saved.kernel, element("span", { class: "chip" },
      `${saved.chip} · ${saved.core}${saved.cores > 1 ? ` · ${saved.cores} cores` : ""}`)),
    saved.arguments.length === 0 ? null
      : element("p", { class: "arguments" }, ...saved.arguments.map((argument) => element("code", {}, argument))));
}

export function header(profile: Profile, letter: string): HTMLElement {
  const { warnings } = profile.saved;
  return element("div", { class: "overview-of-profile" },
    heading(profile, letter),
    warnings.length === 0 ? null : element("ul", { class: "notes" }, ...warnings.map((text) => element("li", {}, text))),
    element("div", { class: "figures" }, total(profile), bound(profile), use(profile), path(profile)));
}

// Ranked advice; `show` highlights what a piece is about and releases all other buttons; null highlights nothing.
export function adviceList(profile: Profile, letter: string, show: (advice: Advice | null) => void): HTMLElement | null {
  const { advice } = profile.saved;
  if (advice.length === 0) return null;
  const buttons = advice.map((one, i) => {
    const button = element("button", { type: "button", class: "advice", "aria-pressed": "false", "data-advice": one.id },
      element("span", { class: "rank" }, String(i + 1)),
      element("span", { class: "words" }, element("strong", {}, one.title), element("span", { class: "soft" }, one.text),
              one.sources.length === 0 ? null : element("span", { class: "sources" }, one.sources.slice(0, 6).join("  "))),
      element("span", { class: "saves" }, element("strong", {}, `−${seconds(one.time)}`), element("span", { class: "soft" }, share(one.share))));
    button.addEventListener("click", () => {
      const press = button.getAttribute("aria-pressed") !== "true";
      show(press ? one : null);
      button.setAttribute("aria-pressed", String(press));
    });
    return button;
  });
  return element("section", { class: "advice-list", "aria-label": `Advice ${letter}` },
    element("h2", {}, letter === "" ? "Advice" : `Advice for ${letter}`),
    element("p", { class: "lead" }, "By the time it could save. Press one to see where in the timeline."), ...buttons);
}
