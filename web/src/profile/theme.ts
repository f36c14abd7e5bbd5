// Colours of the canvas, light and dark. Each engine has a hue; its opcodes are shades of it.

export type Hue = "tensor" | "vector" | "scalar" | "gpsimd" | "sync" | "dma" | "counter" | "mark";

// Hues told apart by the colour-blind too (after Okabe and Ito), as [light theme, dark theme].
const HUES: Record<Hue, [string, string]> = {
  tensor: ["#0a6cb5", "#4fa8e8"],
  vector: ["#c8590a", "#ee8a45"],
  scalar: ["#00835d", "#2fb98e"],
  gpsimd: ["#9a4f86", "#cf86bd"],
  sync: ["#6b7484", "#939dae"],
  dma: ["#007f94", "#36adc3"],
  counter: ["#56657f", "#8796b3"],
  mark: ["#c2185b", "#ff5c93"],
};

export interface Theme {
  card: string;
  ink: string;
  soft: string;
  line: string;
  band: string;
  accent: string;
  onBar: string;  // text on a bar
}

export function isDark(): boolean {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

export function theme(): Theme {
  return isDark()
    ? { card: "#191e27", ink: "#e7ebf2", soft: "#98a2b3", line: "#2b323e", band: "#1e242e", accent: "#6cb2ff", onBar: "#0c1118" }
    : { card: "#ffffff", ink: "#1b2230", soft: "#5b6472", line: "#e1e5ea", band: "#f7f8fa", accent: "#0b6bcb", onBar: "#ffffff" };
}

export function hue(name: Hue): string {
  return HUES[name][isDark() ? 1 : 0];
}

// A hue in the light and in the dark theme.
export function huePair(name: Hue): [string, string] {
  return HUES[name];
}

// The share of `colour` in a mixture with `other`, both #rrggbb.
export function mixed(colour: string, other: string, part: number): string {
  const channel = (text: string, at: number) => parseInt(text.slice(at, at + 2), 16);
  return "#" + [1, 3, 5].map((at) =>
    Math.round(channel(colour, at) * part + channel(other, at) * (1 - part)).toString(16).padStart(2, "0")).join("");
}

// Busy eighths of a pixel, from the paper's colour to the hue: index 0 to 8.
export function strengths(name: Hue, paper: string): string[] {
  return Array.from({ length: 9 }, (_, eighths) => mixed(hue(name), paper, eighths === 0 ? 0 : 0.22 + 0.78 * eighths / 8));
}

// Shades that tell opcodes apart.
export function shades(name: Hue): string[] {
  const dark = isDark();
  const colour = hue(name);
  return [colour, mixed(colour, dark ? "#ffffff" : "#000000", 0.78), mixed(colour, dark ? "#191e27" : "#ffffff", 0.82),
          mixed(colour, dark ? "#ffffff" : "#000000", 0.62)];
}
