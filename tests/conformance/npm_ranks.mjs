// Writes the ranks of public encodings, as the npm package tiktoken ships them, in the tiktoken text format:
//   npm install --prefix FOLDER tiktoken@1.0.22 && node tests/conformance/npm_ranks.mjs FOLDER OUT
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder, out] = process.argv.slice(2);
if (!out) {
  console.error("usage: node npm_ranks.mjs FOLDER_WITH_node_modules OUT");
  process.exit(2);
}
mkdirSync(out, { recursive: true });
for (const name of ["gpt2", "cl100k_base", "o200k_base"]) {
  const path = join(folder, "node_modules", "tiktoken", "encoders", `${name}.json`);
  // Lines of "! first-rank token token ...".
  const { bpe_ranks } = JSON.parse(readFileSync(path, "utf8"));
  const lines = [];
  for (const line of bpe_ranks.split("\n").filter(Boolean)) {
    const [, first, ...tokens] = line.split(" ");
    tokens.forEach((token, i) => lines.push(`${token} ${Number(first) + i}`));
  }
  writeFileSync(join(out, `${name}.tiktoken`), lines.join("\n") + "\n");
  console.log(`${name}: ${lines.length} tokens`);
}
