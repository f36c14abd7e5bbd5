// Fails when a committed page of dist/ isn't what the sources build.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";

const folder = mkdtempSync(join(tmpdir(), "headway-bundle-"));
try {
  for (const page of ["report", "profile"]) {
    await build({ mode: page, logLevel: "warn", build: { outDir: folder } });
    const fresh = readFileSync(join(folder, `${page}.html`));
    const committed = readFileSync(new URL(`dist/${page}.html`, import.meta.url));
    if (!fresh.equals(committed)) {
      console.error(`dist/${page}.html differs from a fresh build: run \`npm run build\` and commit it`);
      process.exitCode = 1;
    } else {
      console.log(`dist/${page}.html is up to date (${committed.length} bytes)`);
    }
  }
} finally {
  rmSync(folder, { recursive: true });
}
