// Fails when the committed dist/report.html isn't what the sources build.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";

const folder = mkdtempSync(join(tmpdir(), "headway-bundle-"));
try {
  await build({ logLevel: "warn", build: { outDir: folder, emptyOutDir: true } });
  const fresh = readFileSync(join(folder, "report.html"));
  const committed = readFileSync(new URL("dist/report.html", import.meta.url));
  if (!fresh.equals(committed)) {
    console.error("dist/report.html differs from a fresh build: run `npm run build` and commit it");
    process.exitCode = 1;
  } else {
    console.log(`dist/report.html is up to date (${committed.length} bytes)`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
