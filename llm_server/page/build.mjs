// Bundles src/ and the libraries into dist/, which the server reads.
import { readFile, readdir, rm, writeFile, copyFile, mkdir } from "node:fs/promises";
import path from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const dist = path.join(here, "dist");

// Every browser that runs the page reads woff2.
const onlyWoff2 = {
  name: "only-woff2",
  setup({ onLoad }) {
    onLoad({ filter: /katex\.css$/ }, async ({ path: file }) => ({
      contents: (await readFile(file, "utf8")).replace(/,\s*url\([^)]+\.(woff|ttf)\)\s*format\([^)]+\)/g, ""),
      loader: "css",
    }));
  },
};

// The licences of what is bundled ask for their text to go with it.
async function licences(inputs) {
  const packages = new Set(
    Object.keys(inputs)
      .map((input) => input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1])
      .filter(Boolean),
  );
  const texts = [];
  for (const name of [...packages].sort()) {
    const folder = path.join(here, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? await readFile(path.join(folder, file), "utf8") : `Licence: ${license}\n`;
    texts.push(`${name} ${version}\n\n${text.trim()}\n`);
  }
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

await rm(dist, { recursive: true, force: true });
await mkdir(dist);
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.js", theme: "src/theme.js", math: "katex/dist/katex.css" },
  outdir: dist,
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["chrome123", "firefox120", "safari17.5"],
  minify: true,
  metafile: true,
  legalComments: "none",
  loader: { ".woff2": "file" },
  assetNames: "[name]",
  chunkNames: "[name]-[hash]",
  plugins: [onlyWoff2],
});
await copyFile(path.join(here, "src/index.html"), path.join(dist, "index.html"));
await writeFile(path.join(dist, "licences.txt"), await licences(metafile.inputs));

const sizes = Object.entries(metafile.outputs).map(([name, { bytes }]) => [path.basename(name), bytes]);
const total = (isCounted) => sizes.reduce((sum, [name, bytes]) => sum + (isCounted(name) ? bytes : 0), 0);
const isFont = (name) => name.endsWith(".woff2");
console.log(`page: ${total((name) => !isFont(name)) >> 10} kB, fonts ${total(isFont) >> 10} kB`);
for (const [name, bytes] of sizes.filter(([name]) => !isFont(name))) console.log(`  ${name} ${bytes >> 10} kB`);
