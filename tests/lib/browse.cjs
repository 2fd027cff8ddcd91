// Opens a page in Chromium and says what it is asked: reads {page, hash, script, modules, javascript, width, height, theme, shot}
// from stdin; `script` is the body of an async function that is run in the page. Prints one JSON: {value, console, errors,
// requests, violations}.
const fs = require("node:fs"), os = require("node:os"), path = require("node:path");

(async () => {
  const ask = JSON.parse(fs.readFileSync(0, "utf8"));
  const { chromium } = require(path.join(ask.modules, "playwright-core"));
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "memtrace-browser-"));
  const said = { value: null, console: [], errors: [], requests: [], dialogs: 0 };
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: ask.chromium, headless: true, offline: true, javaScriptEnabled: ask.javascript !== false,
    viewport: { width: ask.width || 1400, height: ask.height || 900 }, colorScheme: ask.theme || "light",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    const page = await context.newPage();
    page.on("console", m => said.console.push(`${m.type()}: ${m.text()}`));
    page.on("pageerror", e => said.errors.push(e.message));
    page.on("dialog", d => { said.dialogs++; d.dismiss(); });
    page.on("request", r => { if (r.url() !== `file://${ask.page}`) said.requests.push(r.url()); });
    await page.goto(`file://${ask.page}${ask.hash || ""}`);
    if (ask.javascript !== false) await page.waitForSelector("body[data-ready]", { timeout: 60000 });
    if (ask.shot) await page.waitForTimeout(200);
    for (const key of ask.keys || []) { await page.keyboard.press(key); await page.waitForTimeout(120); }
    if (ask.javascript === false) said.value = await page.innerText("body");
    else said.value = await page.evaluate(`(async () => { ${ask.script} })()`);
    if (ask.shot) await page.screenshot({ path: ask.shot });
  } finally {
    await context.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
  process.stdout.write(JSON.stringify(said));
})().catch(e => { console.error(e); process.exit(1); });
