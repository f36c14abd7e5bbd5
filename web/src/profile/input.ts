// Mouse and keys on the timeline.
//
// Drag pans, the wheel zooms around the mouse, Shift and drag selects a stretch, a click pins what is
// under the mouse. Keys: w s zoom, a d or arrows pan, + - zoom, 0 all, f the pinned one, Enter its cause, n p its
// neighbours, Escape lets go.

import type { Hit, Timeline } from "./timeline";

export interface Reactions {
  hover(hit: Hit | null, event: PointerEvent | null): void;
  click(hit: Hit | null): void;
  select(range: { from: number; to: number } | null): void;
  step(direction: 1 | -1): void;  // along the track of the pinned one
  toCause(): void;
  release(): void;
}

const CLICK = 4;  // pixels that a click may move

export function follow(timeline: Timeline, reactions: Reactions): void {
  const { surface, view } = timeline;
  let drag: { x: number; from: number; to: number; at: number; selects: boolean; moved: boolean } | null = null;
  let lastX = 0.5;  // of the width: where keys zoom
  const place = (event: MouseEvent) => {
    const box = surface.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, width: box.width };
  };

  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { x } = place(event);
    surface.setPointerCapture(event.pointerId);
    drag = { x, from: view.from, to: view.to, at: timeline.timeAt(x), selects: event.shiftKey, moved: false };
    reactions.hover(null, null);
  });
  surface.addEventListener("pointermove", (event) => {
    const { x, y, width } = place(event);
    lastX = x / width;
    if (drag === null) {
      reactions.hover(timeline.hit(x, y), event);
      return;
    }
    if (!drag.moved && Math.abs(x - drag.x) < CLICK) return;
    drag.moved = true;
    if (drag.selects) {
      const at = timeline.timeAt(Math.max(0, Math.min(width, x)));
      timeline.selection = { from: Math.min(drag.at, at), to: Math.max(drag.at, at) };
      timeline.redraw("overlay");
    } else {
      surface.classList.add("dragging");
      const shift = (drag.x - x) * (drag.to - drag.from) / width;
      view.set(drag.from + shift, drag.to + shift);
    }
  });
  const end = (event: PointerEvent) => {
    surface.classList.remove("dragging");
    const done = drag;
    drag = null;
    if (done === null || event.type === "pointercancel") return;
    const { x, y } = place(event);
    if (!done.moved) reactions.click(timeline.hit(x, y));
    else if (done.selects) reactions.select(timeline.selection);
  };
  surface.addEventListener("pointerup", end);
  surface.addEventListener("pointercancel", end);
  surface.addEventListener("pointerleave", () => reactions.hover(null, null));

  surface.addEventListener("wheel", (event) => {
    event.preventDefault();
    reactions.hover(null, null);
    const { x } = place(event);
    // Lines and pages in pixels.
    const unit = event.deltaMode === 0 ? 1 : event.deltaMode === 1 ? 24 : 400;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      view.pan((event.deltaX || event.deltaY) * unit * timeline.nsPerPixel());
    } else {
      const notch = Math.max(-240, Math.min(240, event.deltaY * unit));
      view.zoom(timeline.timeAt(x), Math.exp(notch / 400));
    }
  }, { passive: false });
  surface.addEventListener("dblclick", () => view.all());

  surface.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = view.from + lastX * view.length;
    const keys: Record<string, () => void> = {
      w: () => view.zoom(at, 0.8), s: () => view.zoom(at, 1.25), "+": () => view.zoom(at, 0.8), "=": () => view.zoom(at, 0.8),
      "-": () => view.zoom(at, 1.25), a: () => view.pan(-0.12 * view.length), d: () => view.pan(0.12 * view.length),
      ArrowLeft: () => view.pan(-0.12 * view.length), ArrowRight: () => view.pan(0.12 * view.length),
      ArrowUp: () => view.zoom(at, 0.8), ArrowDown: () => view.zoom(at, 1.25), "0": () => view.all(), Home: () => view.all(),
      f: () => timeline.pin(timeline.pinned, true), n: () => reactions.step(1), p: () => reactions.step(-1),
      Enter: () => reactions.toCause(), Escape: () => reactions.release(),
    };
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  });
}
