// What a page takes in Chromium: until it is drawn, and from a movement of the brush to the picture. CPU is that of the
// page's main thread, which says something on a busy machine, too.
// usage: node brush.cjs MODULES CHROMIUM PAGE     prints {"load_ms", "load_cpu_ms", "picture_ms", "cpu_ms"}; the latter
// two of 40 movements: the median, and what each takes on average
const fs = require("node:fs"), os = require("node:os"), path = require("node:path");
const [modules, chromium, file] = process.argv.slice(2), MOVES = 40;

// Runs in the page.
async function move(moves) {
  const d = memtrace.data, took = [], span = d.count;
  for (let k = 0; k < moves; k++) {
    const start = performance.now(), at = part => String(d.times[Math.floor(span * part)]);
    memtrace.set({ from: at(0.05 + 0.4 * k / moves), to: at(0.5 + 0.45 * k / moves), mode: ["grew", "allocated"][k % 2], tab: "flame" });
    await new Promise(done => requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); }));
    took.push(performance.now() - start);
  }
  return took.sort((a, b) => a - b)[moves >> 1];
}

(async () => {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "memtrace-brush-"));
  const context = await require(path.join(modules, "playwright-core")).chromium.launchPersistentContext(profile, {
    executablePath: chromium, headless: true, offline: true, viewport: { width: 1280, height: 720 }, args: ["--no-sandbox", "--disable-gpu"],
  });
  try {
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const cpu = async () => (await session.send("Performance.getMetrics")).metrics.find(m => m.name === "TaskDuration").value;
    await page.goto(`file://${path.resolve(file)}`);
    await page.waitForSelector("body[data-ready]");
    const before = await cpu(), picture = await page.evaluate(`(${move})(${MOVES})`), after = await cpu();
    console.log(JSON.stringify({ load_ms: await page.evaluate("memtrace.ready"), load_cpu_ms: before * 1000, picture_ms: picture, cpu_ms: (after - before) * 1000 / MOVES }));
  } finally {
    await context.close();
    fs.rmSync(profile, { recursive: true, force: true });
  }
})().catch(e => { console.error(e); process.exit(1); });
