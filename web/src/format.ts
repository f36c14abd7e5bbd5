// Numbers as people read them.

const NONE = "–";

// 1234567 -> "1,234,567".
export function grouped(value: number | null | undefined): string {
  return value == null ? NONE : Math.round(value).toLocaleString("en-US");
}

export function fixed(value: number | null | undefined, digits: number): string {
  return value == null ? NONE : value.toFixed(digits);
}

export function percent(share: number | null | undefined): string {
  return share == null ? NONE : `${(100 * share).toFixed(1)} %`;
}

// Three significant digits with a metric prefix: 59600000 -> "59.6 M".
export function metric(value: number | null | undefined, unit = ""): string {
  if (value == null) return NONE;
  const prefixes: [number, string][] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, prefix] of prefixes) {
    if (Math.abs(value) >= size * 0.9995) return `${(value / size).toPrecision(3)} ${prefix}${unit}`;
  }
  return `${trimmed(value)}${unit === "" ? "" : ` ${unit}`}`;
}

export function bytes(value: number | null | undefined): string {
  if (value == null) return NONE;
  return value >= 1e9 ? `${(value / 1e9).toFixed(2)} GB` : `${(value / 1e6).toFixed(0)} MB`;
}

// "0.42 s", "42.1 s", "5 min 03 s", "1 h 12 min".
export function duration(seconds: number | null | undefined): string {
  if (seconds == null) return NONE;
  if (seconds < 59.95) return `${seconds === 0 ? "0" : seconds < 10 ? seconds.toFixed(2) : seconds.toFixed(1)} s`;
  const s = Math.round(seconds);
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
}

// A learning rate: "0.025", "3.1e-5".
export function rate(value: number): string {
  if (value === 0) return "0";
  return Math.abs(value) < 1e-3 ? value.toExponential(1).replace(".0e", "e") : trimmed(value);
}

// Three significant digits without trailing zeros.
export function trimmed(value: number): string {
  const text = value.toPrecision(3);
  return text.includes("e") ? String(Number(text)) : text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}
