// The timeline: labels on the left, a canvas with the tracks, over it a second one with what follows the mouse.
//
// Dispatches "frame" on its element after each drawing of the tracks, with {rectangles, milliseconds}.

import { element } from "../dom";
import { LABEL_FONT, Painter } from "./paint";
import type { Profile } from "./profile";
import type { Row } from "./row";
import { hue, huePair, theme } from "./theme";
import { find, mark, tracksOf, type Track } from "./tracks";
import { quantity, share, time } from "./units";
import type { View } from "./view";

export const GUTTER = 164;
const PAD = 3;  // above and below the bars of a track

export interface Place {
  profile: number;
  item: number;
}

export interface Hit {
  track: Track;
  at: number;            // ns
  place: Place | null;   // the item under the mouse
}

export class Timeline {
  readonly element: HTMLElement;
  readonly surface: HTMLCanvasElement;  // takes the mouse and the keys
  readonly tracks: Track[];
  pinned: Place | null = null;
  hovered: Place | null = null;
  selection: { from: number; to: number } | null = null;
  private readonly base: HTMLCanvasElement;
  private readonly overview: HTMLCanvasElement;
  private readonly axis: HTMLCanvasElement;
  private readonly tops: number[] = [];
  private readonly notes: HTMLElement[] = [];  // beside the labels: how busy an engine is in the stretch on screen
  private readonly height: number;
  private width = 0;
  private marked = false;
  private overviewImage: HTMLCanvasElement | null = null;
  private awaiting: "nothing" | "overlay" | "all" = "nothing";

  constructor(readonly profiles: Profile[], readonly view: View) {
    this.tracks = tracksOf(profiles);
    let top = 0;
    for (const track of this.tracks) {
      this.tops.push(top);
      top += track.height + (track.kind === "heading" ? 0 : 2 * PAD);
    }
    this.height = top;
    this.base = element("canvas", { "aria-hidden": "true" });
    this.surface = element("canvas", { class: "surface", tabindex: "0", role: "application", "aria-label": "Timeline",
                                       "aria-describedby": "timeline-help" });
    this.overview = element("canvas", { class: "overview", "aria-hidden": "true" });
    this.axis = element("canvas", { class: "axis", "aria-hidden": "true" });
    const labels = this.tracks.map((track, t) => {
      const label = element("div", { class: `track-label ${track.kind}`, "data-track": track.label, title: track.label },
                            element("span", {}, track.label));
      label.style.top = `${this.tops[t]}px`;
      label.style.height = `${this.tracks[t]!.height + (track.kind === "heading" ? 0 : 2 * PAD)}px`;
      const [light, dark] = huePair(track.hue);
      label.style.setProperty("--light", light);
      label.style.setProperty("--dark", dark);
      const note = element("span", { class: "note" }, track.kind === "counter" ? limitText(track) : "");
      if (track.kind === "counter" || track.kind === "engine") label.append(note);
      this.notes.push(note);
      return label;
    });
    const body = element("div", { class: "tracks" }, element("div", { class: "labels" }, ...labels), this.base, this.surface);
    body.style.height = `${this.height}px`;
    this.element = element("div", { class: "timeline" },
      element("div", { class: "timeline-head" }, element("div", { class: "corner" }), this.overview, this.axis), body);
    view.follow(() => this.redraw());
    new ResizeObserver(() => this.resize()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.overviewImage = null;
      this.redraw();
    });
    this.followOverview();
  }

  // Draws soon: everything, or only what is over the tracks.
  redraw(what: "overlay" | "all" = "all"): void {
    if (this.awaiting === "nothing") {
      requestAnimationFrame(() => {
        const all = this.awaiting === "all";
        this.awaiting = "nothing";
        if (this.width <= 0) return;
        if (all) this.drawTracks();
        this.drawOverlay();
      });
    }
    if (this.awaiting !== "all") this.awaiting = what;
  }

  // Emphasises items of each profile; null stops that.
  emphasise(items: Uint32Array[] | null): void {
    this.marked = items !== null;
    mark(this.tracks, items ?? this.profiles.map(() => null));
    this.redraw();
  }

  pin(place: Place | null, show: boolean): void {
    this.pinned = place;
    if (place !== null && show) {
      const profile = this.profiles[place.profile]!;
      this.view.show(profile.start[place.item]!, profile.busyEnd[place.item]!);
    }
    this.redraw("overlay");
  }

  rowOf(place: Place): Row | null {
    const found = find(this.tracks, this.profiles[place.profile]!, place.profile, place.item);
    return found === null ? null : this.tracks[found.track]!.rows[found.lane]!;
  }

  timeAt(x: number): number {
    return this.view.from + x / this.width * this.view.length;
  }

  nsPerPixel(): number {
    return this.view.length / this.width;
  }

  // What is at a point of the surface.
  hit(x: number, y: number): Hit | null {
    const t = this.trackAt(y);
    if (t < 0) return null;
    const track = this.tracks[t]!;
    const at = this.timeAt(x);
    if (track.rows.length === 0) return { track, at, place: null };
    const lane = Math.min(track.rows.length - 1,
                          Math.max(0, Math.floor((y - this.tops[t]! - PAD) / track.height * track.rows.length)));
    // An emphasised item is what the reader looks for.
    for (const row of [track.marked[lane], track.rows[lane]]) {
      if (row === undefined) continue;
      const index = row.nearest(at, 3 * this.nsPerPixel());
      if (index >= 0) return { track, at, place: { profile: track.profile, item: row.item[index]! } };
    }
    return { track, at, place: null };
  }

  private trackAt(y: number): number {
    let t = this.tops.length - 1;
    while (t >= 0 && this.tops[t]! > y) t--;
    return y < this.height ? t : -1;
  }

  // Where an item is drawn, in pixels of the surface; x may lie outside.
  box(place: Place): { x: number; y: number; w: number; h: number; tail: number } | null {
    const profile = this.profiles[place.profile]!;
    const found = find(this.tracks, profile, place.profile, place.item);
    if (found === null) return null;
    const track = this.tracks[found.track]!;
    const h = track.height / track.rows.length;
    const x = (profile.start[place.item]! - this.view.from) / this.nsPerPixel();
    return { x, y: this.tops[found.track]! + PAD + found.lane * h, h: track.rows.length > 1 ? h - 1 : h,
             w: Math.max(2, (profile.busyEnd[place.item]! - profile.start[place.item]!) / this.nsPerPixel()),
             tail: (profile.end[place.item]! - profile.busyEnd[place.item]!) / this.nsPerPixel() };
  }

  private resize(): void {
    const width = Math.floor(this.element.clientWidth - GUTTER);
    if (width === this.width || width <= 0) return;
    this.width = width;
    this.overviewImage = null;
    const size = (canvas: HTMLCanvasElement, height: number) => {
      canvas.width = Math.round(width * devicePixelRatio);
      canvas.height = Math.round(height * devicePixelRatio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    };
    size(this.base, this.height);
    size(this.surface, this.height);
    size(this.overview, this.overviewHeight());
    size(this.axis, 26);
    // At once: a canvas is empty after its size was set, and the next frame would show that.
    this.drawTracks();
    this.drawOverlay();
  }

  private context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
    const context = canvas.getContext("2d")!;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    return context;
  }

  private drawTracks(): void {
    const begin = performance.now();
    const context = this.context(this.base);
    const painter = new Painter(context, theme(), this.view, this.width);
    let rectangles = 0;
    this.tracks.forEach((track, t) => {
      if (track.kind !== "heading") return;
      context.fillStyle = painter.theme.band;
      context.fillRect(0, this.tops[t]!, this.width, track.height);
    });
    painter.grid(this.height);
    this.tracks.forEach((track, t) => {
      const top = this.tops[t]! + PAD;
      const profile = this.profiles[track.profile]!;
      const lane = track.height / Math.max(1, track.rows.length);
      const thick = track.rows.length > 1 ? lane - 1 : lane;
      track.rows.forEach((row, r) => {
        rectangles += painter.row(row, profile, track.hue, top + r * lane, thick, this.marked);
        const marked = track.marked[r];
        if (marked !== undefined) rectangles += painter.marks(marked, top + r * lane, thick);
      });
      if (track.kind === "engine") {
        const busy = track.busy!.busy(this.view.from, this.view.to) / this.view.length;
        const text = share(busy);
        if (this.notes[t]!.textContent !== text) this.notes[t]!.textContent = text;
      }
      if (track.steps !== null) rectangles += painter.area(track.steps, top, track.height);
      context.fillStyle = painter.theme.line;
      context.fillRect(0, top + track.height + PAD - 1, this.width, 1);
    });
    // Where the last profile ends before the end of the axis.
    this.drawEnds(context, painter);
    painter.axis(this.context(this.axis), 26);
    this.drawOverview();
    this.element.dataset.from = String(this.view.from);
    this.element.dataset.to = String(this.view.to);
    this.element.dispatchEvent(new CustomEvent("frame", { detail: { rectangles, milliseconds: performance.now() - begin } }));
  }

  private drawEnds(context: CanvasRenderingContext2D, painter: Painter): void {
    if (this.profiles.length < 2) return;
    this.profiles.forEach((profile, p) => {
      const x = (profile.duration - this.view.from) / this.nsPerPixel();
      if (x < 0 || x > this.width) return;
      const own = this.tracks.map((_, t) => t).filter((t) => this.tracks[t]!.profile === p);
      if (own.length === 0) return;
      const last = own[own.length - 1]!;
      const top = this.tops[own[0]!]!;
      context.fillStyle = painter.theme.ink;
      context.fillRect(Math.round(x), top, 1, this.tops[last]! + this.tracks[last]!.height + 2 * PAD - top);
      context.font = LABEL_FONT;
      context.textBaseline = "middle";
      const text = `end ${time(profile.duration)}`;
      const wide = context.measureText(text).width;
      context.fillText(text, x + wide + 10 < this.width ? x + 5 : x - wide - 5, top + 12);
    });
  }

  // Everything that ran, small, with the stretch on screen.
  private overviewHeight(): number {
    return 6 + 5 * this.tracks.filter(({ kind }) => kind === "engine" || kind === "queue").length;
  }

  private drawOverview(): void {
    const height = this.overviewHeight();
    const colours = theme();
    if (this.overviewImage === null) {
      this.overviewImage = document.createElement("canvas");
      this.overviewImage.width = this.overview.width;
      this.overviewImage.height = this.overview.height;
      const whole = { from: 0, to: this.view.total, length: this.view.total } as View;
      const context = this.context(this.overviewImage);
      const painter = new Painter(context, colours, whole, this.width);
      let y = 3;
      for (const track of this.tracks) {
        if (track.rows.length === 0) continue;
        for (const row of track.rows) painter.row(row, this.profiles[track.profile]!, track.hue, y, 4, false);
        y += 5;
      }
    }
    const context = this.context(this.overview);
    context.drawImage(this.overviewImage, 0, 0, this.width, height);
    const x0 = this.view.from / this.view.total * this.width;
    const x1 = this.view.to / this.view.total * this.width;
    context.globalAlpha = 0.72;
    context.fillStyle = colours.card;
    context.fillRect(0, 0, x0, height);
    context.fillRect(x1, 0, this.width - x1, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(Math.min(x0, this.width - 3) + 0.75, 0.75, Math.max(2, x1 - x0 - 1.5), height - 1.5);
  }

  private followOverview(): void {
    const move = (event: PointerEvent) => {
      const x = event.clientX - this.overview.getBoundingClientRect().left;
      const at = x / this.width * this.view.total;
      this.view.set(at - this.view.length / 2, at + this.view.length / 2);
    };
    this.overview.addEventListener("pointerdown", (event) => {
      this.overview.setPointerCapture(event.pointerId);
      move(event);
    });
    this.overview.addEventListener("pointermove", (event) => {
      if (event.buttons === 1) move(event);
    });
  }

  private drawOverlay(): void {
    const context = this.context(this.surface);
    const colours = theme();
    if (this.selection !== null) {
      const x0 = (this.selection.from - this.view.from) / this.nsPerPixel();
      const x1 = (this.selection.to - this.view.from) / this.nsPerPixel();
      context.globalAlpha = 0.13;
      context.fillStyle = colours.accent;
      context.fillRect(x0, 0, x1 - x0, this.height);
      context.globalAlpha = 1;
      context.fillRect(x0 - 0.5, 0, 1, this.height);
      context.fillRect(x1 - 0.5, 0, 1, this.height);
    }
    if (this.pinned !== null) {
      const profile = this.profiles[this.pinned.profile]!;
      const cause = profile.cause(this.pinned.item);
      this.frame(context, this.pinned, colours.ink, 2);
      if (cause !== null && cause.item >= 0) {
        this.arrow(context, { profile: this.pinned.profile, item: cause.item }, this.pinned, colours.ink);
      }
    }
    if (this.hovered !== null && this.hovered.item !== this.pinned?.item) this.frame(context, this.hovered, colours.ink, 1);
  }

  private frame(context: CanvasRenderingContext2D, place: Place, colour: string, line: number): void {
    const box = this.box(place);
    if (box === null || box.x > this.width || box.x + box.w + box.tail < 0) return;
    context.strokeStyle = colour;
    context.lineWidth = line;
    const x = Math.max(-4, box.x);
    context.strokeRect(x - 0.5, box.y - 0.5, Math.min(box.x + box.w, this.width + 4) - x + 1, box.h + 1);
    if (box.tail > 1) {
      // Until the result can be read.
      context.fillStyle = colour;
      context.fillRect(box.x + box.w, box.y + box.h / 2 - 0.5, box.tail, 1);
      context.fillRect(box.x + box.w + box.tail - 0.5, box.y + box.h / 2 - 3, 1, 6);
    }
  }

  private arrow(context: CanvasRenderingContext2D, cause: Place, effect: Place, colour: string): void {
    const from = this.box(cause);
    const to = this.box(effect);
    if (from === null || to === null) return;
    this.frame(context, cause, hue("mark"), 2);
    const far = (x: number) => Math.max(-1e4, Math.min(1e4, x));
    const x0 = far(from.x + from.w + Math.max(0, from.tail));
    const x1 = far(to.x);
    const y0 = from.y + from.h / 2;
    const y1 = to.y + to.h / 2;
    const bend = Math.max(18, Math.min(80, Math.abs(x1 - x0) / 2));
    for (const [style, width] of [[theme().card, 4.5], [colour, 1.75]] as const) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 1, y1);
      context.stroke();
    }
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 8, y1 - 4.5);
    context.lineTo(x1 - 8, y1 + 4.5);
    context.fill();
  }
}

function limitText(track: Track): string {
  const steps = track.steps!;
  if (steps.unit === "1") return "";
  const peak = quantity(steps.peak, steps.unit);
  return steps.limit > steps.peak ? `${peak} of ${quantity(steps.limit, steps.unit)}` : `peak ${peak}`;
}
