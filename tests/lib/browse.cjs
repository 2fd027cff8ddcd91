// Opens pages in Chromium and says what it is asked: reads {page, hash, script, javascript, width, height, theme, keys, acts, shot} from lines of
// stdin; `script` is the body of an async function that is run in the page. For each it prints a line of JSON: {value, console, errors,
// requests, dialogs}, or {failed}. One browser is there for all of them; each page has a context of its own.
// usage: node browse.cjs MODULES CHROMIUM
const path = require("node:path"), readline = require("node:readline");
const [modules, executablePath] = process.argv.slice(2);

// {key}, {move: [x, y]}, {click: a selector}, {back: true}, {run: a body as of script}
async function did(page, act) {
  if (act.key) await page.keyboard.press(act.key);
  if (act.move) await page.mouse.move(...act.move);
  if (act.click) await page.click(act.click);
  if (act.back) await page.goBack();
  if (act.run) await page.evaluate(`(async () => { ${act.run} })()`);
}

async function answer(browser, ask) {
  const said = { value: null, console: [], errors: [], requests: [], dialogs: 0 };
  const context = await browser.newContext({
    offline: true, javaScriptEnabled: ask.javascript !== false, viewport: { width: ask.width || 1400, height: ask.height || 900 }, colorScheme: ask.theme || "light",
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
    for (const act of ask.acts || []) { await did(page, act); await page.waitForTimeout(120); }
    if (ask.javascript === false) said.value = await page.innerText("body");
    else said.value = await page.evaluate(`(async () => { ${ask.script} })()`);
    if (ask.shot) await page.screenshot({ path: ask.shot });
  } finally {
    await context.close();
  }
  return said;
}

(async () => {
  const browser = await require(path.join(modules, "playwright-core")).chromium.launch({
    executablePath, headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  for await (const line of readline.createInterface({ input: process.stdin }))
    console.log(JSON.stringify(await answer(browser, JSON.parse(line)).catch(e => ({ failed: String(e.stack) }))));
  await browser.close();
})().catch(e => { console.error(e); process.exit(1); });
