// The data of the page as `headway report` writes it: docs/formats.md, "Report pages".

export type Column = (number | null)[];

export interface Position {
  step: Column;
  tokens: Column;
  charged_seconds: Column;
  host_seconds: Column;
}

export interface Points extends Position {
  loss: Column;
  loss_mean: Column;
  tokens_per_second: Column;
  mfu: Column;
  momentum: Column;
  lr: Record<string, Column>;
}

export interface Evaluations extends Position {
  val_bpb: Column;
}

export interface Figures {
  val_bpb: number | null;
  val_bpb_step: number;
  corpus_hash: string | null;
  steps: number;
  tokens: number;
  tokens_per_second: number | null;
  mfu: number | null;
  charged_seconds: number | null;
  host_seconds: number | null;
  parameters: number | null;
  flops_per_token: number | null;
}

export interface Time {
  scope?: string;
  kernel?: string;
  seconds?: number;
  flops?: number;
  calls?: number;
}

export interface Phase {
  name?: string;
  seconds?: number;
}

export interface Run {
  name: string;
  state: "finished" | "unfinished" | "void";
  void_reason: string;
  torn_lines: number;
  environment: Record<string, unknown>;
  figures: Figures;
  recipe: Record<string, string>;
  price: { step_seconds?: number; basis?: string };
  times: Time[];
  phases: Phase[];
  memory: { planned_bytes?: number; peak_bytes?: number };
  points: Points;
  evaluations: Evaluations;
}

// Throws with a message for the reader when the page holds no data it understands.
export function readRuns(): Run[] {
  const text = document.getElementById("headway-data")?.textContent?.trim() ?? "";
  if (text === "") throw new Error("This page holds no runs. `headway report RUN` writes one that does.");
  const data = JSON.parse(text) as { format: number; runs: Run[] };
  if (data.format !== 1) throw new Error(`This page reads format 1, and its data has format ${data.format}.`);
  return data.runs;
}
