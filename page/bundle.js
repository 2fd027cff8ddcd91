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

function licence(name) {
  const { version, license } = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map(f => join(modules, name, f)).find(existsSync);
  return `${name} ${version} (${license})\n\n${file ? readFileSync(file, "utf8").trim() : ""}`;
}

const licences = [...names].sort().map(licence).join("\n\n----\n\n").replaceAll("*/", "* /").replaceAll("</", "< /");
for (const file of result.outputFiles) {
  const script = file.path.endsWith(".js");
  const text = file.text.replaceAll("</script", "<\\/script").replaceAll("</style", "<\\/style").trim();
  writeFileSync(join(out, script ? "page.js" : "page.css"), script ? `/*!\n${licences}\n*/\n${text}` : text);
}
