// Recipes and environments side by side: a row a key, a column a run.

import type { Run } from "./data";
import { element } from "./dom";
import { swatch } from "./style_of_run";

export type Values = Record<string, string>;

// Nested objects with dotted keys, as in recipes.
export function flattened(object: Record<string, unknown>, prefix = ""): Values {
  const out: Values = {};
  for (const [key, value] of Object.entries(object)) {
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      Object.assign(out, flattened(value as Record<string, unknown>, `${prefix}${key}.`));
    } else {
      out[prefix + key] = typeof value === "string" ? value : JSON.stringify(value);
    }
  }
  return out;
}

function keysOf(columns: Values[]): string[] {
  return [...new Set(columns.flatMap((values) => Object.keys(values)))].sort();
}

function differs(columns: Values[], key: string): boolean {
  return columns.some((values) => values[key] !== columns[0]![key]);
}

function table(runs: Run[], columns: Values[], keys: string[], mark: boolean): HTMLElement {
  return element("div", { class: "scroll" }, element("table", { class: "keys" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "key"),
      ...runs.map((run, r) => element("th", { scope: "col" }, swatch(r), " ", run.name)))),
    element("tbody", {}, ...keys.map((key) => element("tr", mark && differs(columns, key) ? { class: "differs" } : {},
      element("th", { scope: "row" }, key),
      ...columns.map((values) => element("td", {}, values[key] ?? "–")))))));
}

// The keys in which the runs differ, and all of them on demand. `what` is plural: "recipes".
export function keyValueSection(title: string, id: string, what: string, runs: Run[], columns: Values[]): HTMLElement {
  const keys = keysOf(columns);
  const different = keys.filter((key) => differs(columns, key));
  const parts: (HTMLElement | null)[] = [element("h2", {}, title)];
  if (runs.length > 1) {
    parts.push(different.length === 0
      ? element("p", { class: "lead" }, `The ${what} are the same in all ${keys.length} keys.`)
      : element("p", { class: "lead" }, `${different.length} of ${keys.length} keys differ.`));
    if (different.length > 0) parts.push(element("div", { class: "card" }, table(runs, columns, different, false)));
  }
  if (keys.length > 0) {
    const all = element("details", runs.length === 1 ? { open: "" } : {}, element("summary", {}, `All ${keys.length} keys`),
                        element("div", { class: "card" }, table(runs, columns, keys, runs.length > 1)));
    parts.push(all);
  }
  return element("section", { id }, ...parts);
}
