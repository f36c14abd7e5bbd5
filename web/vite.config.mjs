// Builds report.html into one file: script and style inside it, nothing loaded from anywhere.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The chart library's licence asks to travel with every copy of it.
const licence = readFileSync(new URL("node_modules/uplot/LICENSE", import.meta.url), "utf8").trim();

function oneFile() {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["report.html"];
      let html = page.source;
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const text = file.type === "chunk" ? file.code : file.source;
        const tag = file.type === "chunk"
          ? new RegExp(`<script[^>]*src="[^"]*${name}"[^>]*></script>`)
          : new RegExp(`<link[^>]*href="[^"]*${name}"[^>]*>`);
        if (!tag.test(html)) throw new Error(`${name} has no place in report.html`);
        // A replacement text would give "$&" and the like in the code a meaning.
        html = html.replace(tag, () => file.type === "chunk"
          ? `<script type="module">${text.replaceAll("</script", "<\\/script").trim()}</script>`
          : `<style>${text.trim()}</style>`);
        delete bundle[name];
      }
      page.source = html.replace("</head>", () => `<!-- Contains uPlot:\n${licence}\n-->\n</head>`);
    },
  };
}

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    rollupOptions: { input: "report.html" },
  },
  plugins: [oneFile()],
});
