// Builds a page into one file: script and style inside it, nothing loaded from anywhere. The mode names the page:
// `vite build --mode report` builds report.html.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The chart library's licence asks to travel with every copy of it.
const licence = readFileSync(new URL("node_modules/uplot/LICENSE", import.meta.url), "utf8").trim();

function oneFile(name) {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle[name];
      let html = page.source;
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const text = file.type === "chunk" ? file.code : file.source;
        const tag = file.type === "chunk"
          ? new RegExp(`<script[^>]*src="[^"]*${name}"[^>]*></script>`)
          : new RegExp(`<link[^>]*href="[^"]*${name}"[^>]*>`);
        if (!tag.test(html)) throw new Error(`${name} has no place in ${page.fileName}`);
        // A replacement text would give "$&" and the like in the code a meaning.
        html = html.replace(tag, () => file.type === "chunk"
          ? `<script type="module">${text.replaceAll("</script", "<\\/script").trim()}</script>`
          : `<style>${text.trim()}</style>`);
        if (file.type === "chunk" && Object.keys(file.modules).some((module) => module.includes("/uplot/"))) {
          html = html.replace("</head>", () => `<!-- Contains uPlot:\n${licence}\n-->\n</head>`);
        }
        delete bundle[name];
      }
      page.source = html;
    },
  };
}

export default defineConfig(({ mode }) => ({
  base: "./",
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    emptyOutDir: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    rollupOptions: { input: `${mode}.html` },
  },
  plugins: [oneFile(`${mode}.html`)],
}));
