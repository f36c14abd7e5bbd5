// The profile page: reads the profiles in it, builds its parts and keeps them in step.

import "../style.css";
import "./style.css";

import { element } from "../dom";
import { readSaved } from "./data";
import { panel, readout } from "./describe";
import { matching, ofAdvice, ofCriticalPath, ofSource } from "./find";
import { adviceList, header } from "./header";
import { follow } from "./input";
import { Profile } from "./profile";
import { roofline } from "./roofline";
import { differenceTables, sourceTable, summaryTable } from "./tables";
import { Timeline, type Hit, type Place } from "./timeline";
import { time } from "./units";
import { View } from "./view";
import { windowSummary } from "./window_summary";

const HELP: [string, string][] = [
  ["drag", "pan"], ["wheel", "zoom"], ["Shift + drag", "select a stretch"], ["click", "pin an instruction"],
  ["w s", "zoom"], ["a d", "pan"], ["0", "all"], ["n p", "next, previous on the track"], ["Enter", "what it waited for"],
  ["f", "show the pinned one"], ["Esc", "let go"],
];

class Page {
  private readonly view: View;
  private readonly timeline: Timeline;
  private readonly tip = element("div", { class: "readout", hidden: "" });
  private readonly detail = element("div", { class: "detail-place" });
  private readonly chosen = element("div", { class: "window-place" });
  private readonly range = element("output", { class: "range", "aria-label": "Stretch on screen" });
  private readonly search = element("input", { type: "search", placeholder: "Search: opcode, tensor, file:line, engine",
                                               "aria-label": "Search instructions", spellcheck: "false" });
  private readonly path = element("button", { type: "button", class: "toggle", "aria-pressed": "false" }, "Critical path");
  private readonly emphasis = element("div", { class: "emphasis", role: "status", hidden: "" });
  private found: Place[] = [];
  private at = -1;

  constructor(private readonly profiles: Profile[], root: HTMLElement) {
    this.view = new View(Math.max(...profiles.map(({ total }) => total), 1));
    this.timeline = new Timeline(profiles, this.view);
    this.timeline.element.append(this.tip);
    const letter = (p: number) => profiles.length > 1 ? "AB"[p]! : "";
    document.title = `${profiles.map(({ saved }) => saved.kernel).join(" · ")} – Headway profile`;
    const roof = roofline(profiles);
    const tables = profiles.map((profile, p) => sourceTable(profile, letter(p), (source) => this.showSource(source)));
    root.replaceChildren(
      element("div", { class: profiles.length > 1 ? "pair" : "" }, ...profiles.map((profile, p) => header(profile, letter(p)))),
      element("div", { class: profiles.length > 1 ? "pair" : "" }, ...profiles.map((profile, p) =>
        adviceList(profile, letter(p), (advice) => {
          if (advice === null) return this.emphasise("", null);
          this.emphasise(advice.title, profiles.map((other, o) => o === p ? ofAdvice(other, advice) : new Uint32Array()));
          this.timeline.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
        }))),
      element("h2", {}, "Timeline"),
      this.toolbar(),
      element("div", { class: "card timeline-card" }, this.timeline.element),
      element("p", { class: "help", id: "timeline-help" }, ...HELP.flatMap(([key, what]) => [element("kbd", {}, key), ` ${what}  `])),
      this.chosen, this.detail,
      ...(profiles.length === 2 ? [element("h2", {}, "Differences"), differenceTables(profiles as [Profile, Profile])] : []),
      element("h2", {}, "Where the time goes"),
      element("div", { class: roof === null || profiles.length > 1 ? "stack" : "beside" }, roof, ...tables),
      element("h2", {}, "All figures"),
      element("div", { class: profiles.length > 1 ? "pair" : "" }, ...profiles.map((profile, p) => summaryTable(profile, letter(p)))),
    );
    follow(this.timeline, {
      hover: (hit, event) => this.hover(hit, event),
      click: (hit) => this.pin(hit?.place ?? null, false),
      select: (range) => this.select(range),
      step: (direction) => this.step(direction),
      toCause: () => this.toCause(),
      release: () => this.release(),
    });
    this.view.follow(() => this.sayRange());
    this.sayRange();
  }

  private toolbar(): HTMLElement {
    const button = (text: string, title: string, act: () => void) => {
      const node = element("button", { type: "button", title, "aria-label": title }, text);
      node.addEventListener("click", act);
      return node;
    };
    let waiting = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = window.setTimeout(() => this.seek(), 120);
    });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        clearTimeout(waiting);
        if (this.search.value !== this.sought) this.seek();
        this.nextFound(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        this.search.value = "";
        this.seek();
      }
    });
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      this.search.focus();
    });
    this.path.addEventListener("click", () => {
      if (this.path.getAttribute("aria-pressed") === "true") return this.emphasise("", null);
      this.emphasise("Critical path", this.profiles.map(ofCriticalPath));
      this.path.setAttribute("aria-pressed", "true");
    });
    return element("div", { class: "timeline-bar" }, this.search, this.path, this.emphasis, element("span", { class: "space" }), this.range,
      element("span", { class: "buttons" },
        button("−", "Zoom out", () => this.view.zoom((this.view.from + this.view.to) / 2, 2)),
        button("+", "Zoom in", () => this.view.zoom((this.view.from + this.view.to) / 2, 0.5)),
        button("All", "Show all of it", () => this.view.all())));
  }

  private sayRange(): void {
    this.range.textContent = `${time(this.view.length)} of ${time(this.view.total)}`;
    this.tip.hidden = true;
  }

  // Emphasises items of each profile, under a name; null ends it.
  private emphasise(name: string, items: Uint32Array[] | null): void {
    this.path.setAttribute("aria-pressed", "false");
    for (const button of document.querySelectorAll(".advice")) button.setAttribute("aria-pressed", "false");
    this.timeline.emphasise(items);
    this.found = items === null ? []
      : items.flatMap((list, profile) => Array.from(list, (item) => ({ profile, item })));
    this.found.sort((a, b) => a.profile - b.profile || this.startOf(a) - this.startOf(b));
    this.at = -1;
    this.emphasis.hidden = items === null;
    if (items === null) return;
    const count = element("span", { class: "count" }, this.found.length === 0 ? "nothing" : `${this.found.length.toLocaleString("en-US")} items`);
    const button = (text: string, label: string, act: () => void) => {
      const node = element("button", { type: "button", "aria-label": label, title: label }, text);
      node.addEventListener("click", act);
      return node;
    };
    this.emphasis.replaceChildren(element("span", { class: "name" }, name), count,
      button("‹", "Previous", () => this.nextFound(-1)), button("›", "Next", () => this.nextFound(1)),
      button("×", "Stop highlighting", () => {
        this.search.value = "";
        this.emphasise("", null);
      }));
  }

  private startOf({ profile, item }: Place): number {
    return this.profiles[profile]!.start[item]!;
  }

  private sought = "";

  private seek(): void {
    this.sought = this.search.value;
    if (this.sought.trim() === "") this.emphasise("", null);
    else this.emphasise(`“${this.sought.trim()}”`, this.profiles.map((profile) => matching(profile, this.sought)));
  }

  private nextFound(direction: 1 | -1): void {
    if (this.found.length === 0) return;
    // The first step goes to the first one on screen or after it.
    if (this.at < 0) {
      const first = this.found.findIndex((place) => this.startOf(place) >= this.view.from);
      this.at = (first < 0 ? 0 : first) - (direction > 0 ? 1 : 0);
    }
    this.at = (this.at + direction + this.found.length) % this.found.length;
    const count = this.emphasis.querySelector(".count");
    if (count !== null) count.textContent = `${(this.at + 1).toLocaleString("en-US")} of ${this.found.length.toLocaleString("en-US")}`;
    this.pin(this.found[this.at]!, true);
  }

  private showSource(source: string): void {
    this.emphasise(source || "unknown source", this.profiles.map((profile) => ofSource(profile, [source])));
    this.timeline.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  private hover(hit: Hit | null, event: PointerEvent | null): void {
    const { timeline } = this;
    const before = timeline.hovered;
    timeline.hovered = hit?.place ?? null;
    if (before?.item !== timeline.hovered?.item || before?.profile !== timeline.hovered?.profile) timeline.redraw("overlay");
    const text = hit === null || event === null ? null : readout(this.profiles, hit);
    this.tip.hidden = text === null;
    if (text === null || event === null) return;
    this.tip.replaceChildren(text);
    const box = timeline.element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const { offsetWidth: w, offsetHeight: h } = this.tip;
    this.tip.style.left = `${x + 18 + w < box.width ? x + 18 : Math.max(0, x - w - 14)}px`;
    // Inside the window, whatever the scroll position.
    const lowest = innerHeight - box.top - h - 8;
    this.tip.style.top = `${Math.max(-box.top + 4, Math.min(y + 16, lowest))}px`;
  }

  private pin(place: Place | null, show: boolean): void {
    this.timeline.pin(place, show);
    this.tip.hidden = true;
    this.detail.replaceChildren(...place === null ? []
      : [panel(this.profiles, place, (other) => this.pin(other, true), (source) => this.showSource(source))]);
  }

  private step(direction: 1 | -1): void {
    const { pinned } = this.timeline;
    if (pinned === null) {
      // From the keyboard alone: begin with the first one on screen.
      const track = this.timeline.tracks.find(({ rows }) => rows.length > 0);
      const first = track?.rows[0]!.after(this.view.from) ?? 0;
      if (track !== undefined && first < track.rows[0]!.length) this.pin({ profile: track.profile, item: track.rows[0]!.item[first]! }, true);
      return;
    }
    const row = this.timeline.rowOf(pinned);
    if (row === null) return;
    const index = row.item.indexOf(pinned.item) + direction;
    if (index >= 0 && index < row.length) this.pin({ profile: pinned.profile, item: row.item[index]! }, true);
  }

  private toCause(): void {
    const { pinned } = this.timeline;
    if (pinned === null) return;
    const cause = this.profiles[pinned.profile]!.cause(pinned.item);
    if (cause !== null && cause.item >= 0) this.pin({ profile: pinned.profile, item: cause.item }, true);
  }

  private select(range: { from: number; to: number } | null): void {
    this.timeline.selection = range;
    this.timeline.redraw("overlay");
    this.chosen.replaceChildren(...range === null ? []
      : [windowSummary(this.profiles, this.timeline.tracks, range.from, range.to, () => this.select(null),
                       () => this.view.set(range.from, range.to))]);
  }

  private release(): void {
    if (this.timeline.selection !== null) this.select(null);
    else if (this.timeline.pinned !== null) this.pin(null, false);
    else this.emphasise("", null);
  }
}

const root = document.getElementById("page")!;
try {
  new Page(readSaved().map((saved) => new Profile(saved)), root);
} catch (error) {
  root.replaceChildren(element("p", { class: "failure" }, error instanceof Error ? error.message : String(error)));
  throw error;
}
