// What the timeline shows of its profiles, from top to bottom.

import { Steps } from "./counter";
import { engineName, type Profile } from "./profile";
import { rowsOf, union, type Row } from "./row";
import type { Hue } from "./theme";

const MOST_LANES = 24;
const ENGINES = ["tensor", "vector", "scalar", "gpsimd", "sync", "dma"];  // from top to bottom

export interface Track {
  kind: "heading" | "engine" | "queue" | "counter";
  label: string;
  hue: Hue;
  profile: number;
  core: number;
  height: number;
  rows: Row[];
  busy: Row | null;  // when any of them is
  marked: Row[];  // of the emphasised items: lane by lane as `rows`, where there are any
  steps: Steps | null;
}

export function tracksOf(profiles: Profile[]): Track[] {
  const tracks: Track[] = [];
  profiles.forEach((profile, p) => {
    const { saved } = profile;
    const engines = saved.engines.map(() => [] as number[][]);
    const queues = saved.queues.map(() => [] as number[][]);
    for (let item = 0; item < profile.items; item++) {
      const transfer = profile.transfer(item);
      const lists = transfer < 0 ? engines[saved.events.engine[item]!]! : queues[saved.transfers.queue[transfer]!]!;
      (lists[profile.core[item]!] ??= []).push(item);
    }
    const counters = saved.counters.filter(({ time }) => time.length > 0).map((counter) => new Steps(counter));
    const cores = Math.max(1, saved.core_from.length - 1);
    for (let core = 0; core < cores; core++) {
      const heading = [profiles.length > 1 ? `${"AB"[p]} · ${saved.kernel}` : "", cores > 1 ? `Core ${core}` : ""]
        .filter((text) => text !== "").join(" · ");
      const track = (kind: Track["kind"], label: string, hue: Hue, height: number, rows: Row[] = [],
                     steps: Steps | null = null) =>
        tracks.push({ kind, label, hue, profile: p, core, height, rows, busy: union(rows), marked: [], steps });
      if (heading !== "") track("heading", heading, "sync", 24);
      const order = (engine: string) => ENGINES.indexOf(engine) < 0 ? ENGINES.length : ENGINES.indexOf(engine);
      [...saved.engines].sort((a, b) => order(a) - order(b)).forEach((engine) => {
        const items = engines[saved.engines.indexOf(engine)]![core];
        if (items === undefined) return;
        const rows = rowsOf(items, profile.start, profile.busyEnd, MOST_LANES);
        track("engine", engineName(engine), ENGINES.includes(engine) ? engine as Hue : "sync", Math.max(24, Math.min(75, 16 * rows.length)), rows);
      });
      saved.queues.forEach((queue, index) => {
        const items = queues[index]![core];
        if (items === undefined) return;
        const rows = rowsOf(items, profile.start, profile.busyEnd, MOST_LANES);
        track("queue", queue, "dma", Math.min(72, Math.max(20, 8 * rows.length)), rows);
      });
      for (const steps of counters) {
        if (steps.core === core && steps.peak > 0) {
          track("counter", steps.name.charAt(0).toUpperCase() + steps.name.slice(1), "counter", 34, [], steps);
        }
      }
    }
  });
  return tracks;
}

// Emphasises items of each profile (or nothing): fills `marked`.
export function mark(tracks: Track[], items: (Uint32Array | null)[]): void {
  const sets = items.map((list) => list === null ? null : new Set(list));
  for (const track of tracks) {
    const set = sets[track.profile];
    track.marked = set == null ? [] : track.rows.map((row) => row.only((item) => set.has(item)));
  }
}

// The track and lane of an item.
export function find(tracks: Track[], profile: Profile, p: number, item: number): { track: number; lane: number } | null {
  for (let t = 0; t < tracks.length; t++) {
    const track = tracks[t]!;
    if (track.profile !== p || track.core !== profile.core[item]) continue;
    for (let lane = 0; lane < track.rows.length; lane++) {
      const row = track.rows[lane]!;
      // Of several that end together, the one asked for.
      for (let i = row.after(profile.start[item]! - 0.5); i < row.length && row.start[i]! <= profile.busyEnd[item]!; i++) {
        if (row.item[i] === item) return { track: t, lane };
      }
    }
  }
  return null;
}
