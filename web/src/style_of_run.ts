// How a run is told apart: seven colours that stay distinct to colour-blind eyes (after Okabe and Ito, darker on light
// paper and lighter on dark), and from the eighth run on the same colours dashed, then dotted.

const LIGHT = ["#0072b2", "#d55e00", "#008f68", "#b8508f", "#b37400", "#2f9bd6", "#555555"];
const DARK = ["#4ba6e0", "#ff8745", "#2fcf9f", "#e69ac8", "#f0b93a", "#a3d8ff", "#c4c4c4"];
const DASHES: number[][] = [[], [8, 4], [2, 3]];

export interface Theme {
  dark: boolean;
  ink: string;
  faint: string;
  grid: string;
}

// The theme of the reader's system; paper is always light.
export function theme(printing: boolean): Theme {
  const dark = !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  return dark
    ? { dark, ink: "#b6bdc9", faint: "#8a93a3", grid: "#2a303b" }
    : { dark, ink: "#4a5260", faint: "#717a89", grid: "#e4e7ec" };
}

export function colour(run: number, dark: boolean): string {
  const colours = dark ? DARK : LIGHT;
  return colours[run % colours.length]!;
}

export function dash(run: number): number[] {
  return DASHES[Math.floor(run / LIGHT.length) % DASHES.length]!;
}

// A short line in the run's colour and dashing, for legends and tables. Styled by CSS variables, so that it follows
// the theme by itself.
export function swatch(run: number): HTMLElement {
  const line = document.createElement("span");
  line.className = "swatch";
  line.style.setProperty("--light", colour(run, false));
  line.style.setProperty("--dark", colour(run, true));
  line.style.borderTopStyle = (["solid", "dashed", "dotted"] as const)[Math.floor(run / LIGHT.length) % 3]!;
  return line;
}
