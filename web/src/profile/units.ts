// Times, sizes and rates of the chip as people read them.

import { metric, trimmed } from "../format";

// "640 ns", "12.3 µs", "4.56 ms".
export function time(ns: number): string {
  const size = Math.abs(ns);
  if (size < 999.5) return `${size < 10 && ns !== Math.round(ns) ? ns.toFixed(1) : Math.round(ns)} ns`;
  if (size < 999_500) return `${(ns / 1e3).toPrecision(4)} µs`;
  if (size < 999_500_000) return `${(ns / 1e6).toPrecision(4)} ms`;
  return `${(ns / 1e9).toPrecision(4)} s`;
}

// A moment, to the ns however long the whole is: "12,345.678 µs".
export function moment(ns: number): string {
  return `${(ns / 1e3).toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 })} µs`;
}

// "512 B", "48 KiB", "3.2 MiB".
export function size(bytes: number): string {
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  if (bytes < 1024 ** 2) return `${trimmed(bytes / 1024)} KiB`;
  if (bytes < 1024 ** 3) return `${trimmed(bytes / 1024 ** 2)} MiB`;
  return `${trimmed(bytes / 1024 ** 3)} GiB`;
}

export function share(value: number): string {
  return `${(100 * value).toFixed(value !== 0 && Math.abs(value) < 0.0995 ? 1 : 0)} %`;
}

export function quantity(value: number, unit: string): string {
  if (unit === "B") return size(value);
  if (unit === "1") return share(value);
  return unit === "" || unit === "count" ? metric(value) : metric(value, unit);
}
