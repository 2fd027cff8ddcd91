// Makes OUT/page.js and OUT/page.css of src/main.js, with the licences of what is bundled in front.
// usage: node bundle.js MODULES OUT
import { createRequire } from "node:module";
import { readFileSync, writeFileSync, existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [modules, out] = process.argv.slice(2).map(p => resolve(p));
const { buildSync } = createRequire(join(modules, "x.js"))("esbuild");

const result = buildSync({
  entryPoints: [join(here, "src/main.js")],
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome100", "firefox113", "safari16.4"],
  charset: "ascii",
  legalComments: "none",
  nodePaths: [modules],
  alias: { "d3-transition": join(here, "src/instead.js"), "d3-scale": join(here, "src/instead.js") },
  outdir: out,
  write: false,
  metafile: true,
});

// The packages whose files are in it.
const names = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/);
  if (found) names.add(found[1]);
}

// A licence's text stands once, behind all packages that have it, each with its own lines of copyright.
const texts = new Map();
for (const name of [...names].sort()) {
  const { version, license } = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map(f => join(modules, name, f)).find(existsSync);
  const lines = file ? readFileSync(file, "utf8").trim().split("\n") : [], owned = line => /^\s*copyright (\(c\) )?\d/i.test(line);
  const text = lines.filter(line => !owned(line)).join("\n").trim();
  texts.set(text, [...texts.get(text) ?? [], [`${name} ${version} (${license})`, ...lines.filter(owned)].join("\n")]);
}
const licences = [...texts].map(([text, packages]) => [...packages, text].join("\n\n")).join("\n\n----\n\n").replaceAll("*/", "* /").replaceAll("</", "< /");

for (const file of result.outputFiles) {
  const script = file.path.endsWith(".js");
  const text = file.text.replaceAll("</script", "<\\/script").replaceAll("</style", "<\\/style").trim();
  writeFileSync(join(out, script ? "page.js" : "page.css"), script ? `/*!\n${licences}\n*/\n${text}` : text);
}
