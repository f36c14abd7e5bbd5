// The data of the page as `headway kernel profile` writes it: docs/formats.md, "Profiles". Times of events in ns.

export interface Figure {
  [name: string]: number | null;
}

export interface Advice {
  id: string;
  title: string;
  text: string;
  time: number;
  share: number;
  sources: string[];
  events?: [number, number][];  // runs: first event, how many
}

export interface Counter {
  name: string;
  core: number;
  unit: string;
  limit: number;
  time: number[];  // differences
  value: number[];
}

export interface Saved {
  format: string;
  version: number;
  kernel: string;
  chip: string;
  core: string;
  generation: number;
  cores: number;
  arguments: string[];
  figures: Figure;
  figure_order: string[];
  trust: { low: number; high: number; documented: number; measured: number; fitted: number; assumed: number;
           uncalibrated: number };
  bound: { by: string; name: string; share: number; reason: string;
           limits: { by: string; name: string; time: number; share: number }[] };
  critical_path: { what: string; cause: string; time: number; share: number; count: number }[];
  critical_events: number[];  // differences
  advice: Advice[];
  warnings: string[];
  engines: string[];
  causes: string[];
  operations: [string, string, number?][];  // opcode, operands, FLOPs of one
  sources: string[];
  queues: string[];
  memories: string[];
  modes: string[];
  core_from: number[];
  events: Record<"start" | "busy" | "latency" | "engine" | "operation" | "source" | "cause" | "by" | "transfer" |
                 "calibrated", number[]>;
  transfers: Record<"event" | "queue" | "mode" | "from" | "to" | "descriptors" | "descriptor_bytes" | "bytes" |
                    "start" | "length" | "arrival" | "engines", number[]>;
  counters: Counter[];
  lines: { source: string; operations: string; time: number; critical: number; count: number }[];
  roofline?: { bandwidth: number; mfu_peak: number; dtype: string; peaks: { dtype: string; flops: number }[] };
}

// Throws with a message for the reader when the page holds no data it understands.
export function readSaved(): Saved[] {
  const text = document.getElementById("headway-data")?.textContent?.trim() ?? "";
  if (text === "") throw new Error("This page holds no profile. `headway kernel profile KERNEL --html FILE` writes one that does.");
  const data = JSON.parse(text) as { format: number; profiles: Saved[] };
  if (data.format !== 1) throw new Error(`This page reads format 1, and its data has format ${data.format}.`);
  for (const { format, version } of data.profiles) {
    if (format !== "headway-profile" || version !== 1) {
      throw new Error(`This page reads headway-profile 1, and its data is ${format} ${version}.`);
    }
  }
  return data.profiles;
}
