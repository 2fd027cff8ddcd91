"""What a page must be, whatever the trace: its figures are those of the other commands, and nothing of it is cut. All is asked in Chromium, and
fails where the page complains of anything, or asks the network for anything (browser.ask)."""
import base64
import functools
import gzip
import json
import os
import re

import browser
import hostile
import mt

BUILT_IN = "imported modules :0", "libraries' constructors :0"  # of small sites
TABS = ("flame", "owners", "map", "growth", "processes", "host", "lost", "text")
# Bytes by path of what is alive at AT of TRACK. Stacks whose inner frames were folded are none of its largest.
PATHS = """
const track = memtrace.data.tracks.find(t => t.name === TRACK), at = { ...memtrace.when(memtrace.data, track), at: 0, ...AT }, sums = {};
const { list, rest, all } = memtrace.valuesOf(track, "alive", at);
for (const { stack, value } of list) {
  const path = stack.path.map(f => memtrace.data.frames[f]).map(([name, file, line]) => `${name} ${(file ?? "").split("/").pop()}:${line}`).join(" < ");
  sums[path] = (sums[path] ?? 0) + value;
}
return { sums, rest, all, folded: memtrace.data.raw.stacks.some(s => s.site === -2) };
"""
# Windows of three moments with the time of their ends, and that of the failure.
MOMENTS = """
const d = memtrace.data, named = at => d.raw.moments.find(m => m.at === at);
return { times: [0.3, 0.6, 0.9].map(p => Math.floor(p * d.count)).map(i => [i, d.times[i + 1]]), oom: named("oom") ? memtrace.windowAt(d, named("oom").at_s) : null };
"""
HIGHEST = "(() => { const t = memtrace.data.tracks.find(t => t.name === TRACK); return { at: t.high.indexOf(Math.max(...t.high)), high: true } })()"
RANGES = """
let seed = 7; const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n, out = [];
for (let i = 0; i < 50; i++) {
  const track = memtrace.data.tracks[random(memtrace.data.tracks.length)], from = random(memtrace.data.count - 1) - 1, to = from + 1 + random(memtrace.data.count - from - 1);
  for (const mode of ["allocated", "temporary", "difference"]) {
    const tree = memtrace.treeOf(memtrace.data, track, mode, { from, to, at: to }, null);
    out.push([mode === "difference" ? tree.delta : tree.value, memtrace.valueOf(track, mode, { from, to })]);
  }
}
return out;
"""
# The longest text of each that is cut though nobody meant it: what scrolls, or ends with dots, is.
CUT = """
const cut = [];
for (const e of document.querySelectorAll("button, h1, h2, h3, p, dt, dd, th, td, .key, option, nav")) {
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  if (!box.width || style.textOverflow === "ellipsis") continue;
  if (e.scrollWidth > e.clientWidth + 2 && style.overflowX !== "auto" && style.display !== "inline" && e.clientWidth) cut.push(`${e.tagName} ${e.textContent.slice(0, 40)}`);
  if (box.right > innerWidth + 1) cut.push(`beyond the window: ${e.tagName} ${e.textContent.slice(0, 40)}`);
}
const rows = [...document.querySelectorAll(".row > *, .moments > *, nav > *, .legend > *, .modes > *")].map(e => [e, e.getBoundingClientRect()]).filter(([, b]) => b.width), over = [];
for (const [a, x] of rows) for (const [b, y] of rows)
  if (a !== b && !a.contains(b) && !b.contains(a) && x.left + 1 < y.right && y.left + 1 < x.right && x.top + 1 < y.bottom && y.top + 1 < x.bottom) over.push(`${a.textContent.slice(0, 20)} on ${b.textContent.slice(0, 20)}`);
return [cut, over];
"""
EACH_TAB = """
const texts = [document.body.innerText];
for (const tab of %s) {
  if (memtrace.set) memtrace.set({ tab });
  await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
  texts.push(document.body.innerText);
}
return [document.body.dataset.ready, window.hurt ?? 0, document.images.length, texts.join("\\n")];
""" % json.dumps(TABS)


@functools.lru_cache(None)
def generated(kind, seed=301):
    """A trace of the battery, which a device is in, and its page; once for each test."""
    import cases  # tests/battery, which not every test has
    path = os.path.join(mt.scratch("battery"), kind)
    cases.make(path, kind, seed, True)
    return mt.Trace(path), browser.page(path)


def everything(page):
    """The page as its reader has it: its own text, and its data unpacked."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    return text + gzip.decompress(base64.b64decode(re.search('id="data">([^<]*)<', text).group(1))).decode()


def same_figures(trace, page):
    """Those of report --json."""
    got, want = browser.ask(page, "return memtrace.data.report"), trace.json("report")
    mt.equal(sorted(got), sorted(want), "keys")
    for key in want:
        if key != "by" and not key.startswith("sites"):  # which are rows of the screen, where a command has no --json
            mt.check(got[key] == want[key], "%s differs: %s, not %s" % (key, str(got[key])[:300], str(want[key])[:300]))


def paths_of_peak(sites):
    """Bytes by path, outermost first, of memtrace peak --json."""
    sums = {}
    for site in sites:
        path = " < ".join("%s %s:%d" % (f["function"], os.path.basename(f["file"] or ""), f["line"] or 0) for f in reversed(site["stack"]))
        sums[path] = sums.get(path, 0) + site["bytes"]
    return sums


def same_tree(trace, page, track, device, at, window, rows="all", joined=0):
    """A moment's tree is what memtrace peak says of that moment. TRACK is a name of the page, DEVICE that of --device. Where there are more sites
    than ROWS, small ones that are JOINED with a larger one may be so much of all."""
    peak = trace.json("peak", "-n", rows, "--device", device, "--at", at)
    sites = [s for s in peak["sites"] if s["memory"] == track.split()[-1] or " " not in track]
    want = paths_of_peak(sites)
    got = browser.ask(page, "const TRACK = %s, AT = (%s);" % (json.dumps(track), window) + PATHS)
    mt.equal(got["all"], sum(want.values()) if rows == "all" else peak["host"]["bytes"], "bytes of %s at %s" % (track, at))
    mt.equal(got["rest"], 0, "what is in no stack")
    # a path lacks what the page says is in no stack, and where small sites stand at a line alone (html.md), those
    small = got["rest"] + (0.005 * got["all"] if got["folded"] else 0)
    for path, bytes_ in got["sums"].items():
        if bytes_ > 0.05 * got["all"] and path not in BUILT_IN:
            mt.check(path in want, "memtrace peak has no %s" % path)
            mt.between(want[path] - small, bytes_, want[path] + joined * got["all"], "bytes of %s" % path)


def same_ranges(page):
    """The icicle of 50 random ranges has what its track has."""
    sums = browser.ask(page, RANGES)
    mt.check(len(sums) == 150 and any(b for _, b in sums), "nothing was compared")
    for tree, track in sums:
        mt.equal(tree, track)


def reads_without_scripts(trace, page):
    """What failed, why and what to do; of a program that is well, that it is."""
    text = " ".join(browser.say(page, javascript=False)["value"].split())
    held = trace.report["verdicts"][:1]
    for words in [v[key] for v in held for key in ("evidence", "advice")] or ["HOST MEMORY"]:
        mt.check(" ".join(words.split()) in text, "%r is not in %s" % (words, text[:2000]))


def nothing_is_cut(page, tab, width=1280, height=720, **more):
    """Neither cut texts nor overlaps; a picture is taken of what was looked at."""
    cut, over = browser.ask(page, CUT, hash="#tab=" + tab, width=width, height=height, **more)
    mt.equal((cut, over), ([], []), "cut texts and overlaps in the tab %s, %d wide" % (tab, width))


def lists_the_largest(trace, page, most):
    """Of more processes than a page lists MOST: who did not end well, the first, and those with the largest peaks; the table begins with the
    largest, and says how many there are."""
    all_ = trace.json("report")["processes"]
    mt.check(len(all_) > most, "only %d processes" % len(all_))
    peak = lambda p: sum(p[kind]["peak_bytes"] for kind in ("host", "map", "pinned"))
    failed = {p["id"] for p in all_ if p["exit"]["kind"] == "signal" or p["exit"]["code"] or p["exit"]["oom_killed"] != "no"}
    listed, caption, rows, lost = browser.ask(page, """
        const drawn = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
        memtrace.set({ tab: "processes" });
        await drawn();
        const table = document.querySelector("table[aria-label=Processes]"), heap = [...table.querySelectorAll("th")].findIndex(th => th.textContent.startsWith("heap peak"));
        const found = [memtrace.data.report.processes, table.caption.textContent, [...table.querySelectorAll("tbody tr")].map(tr => tr.children[heap].textContent)];
        memtrace.set({ tab: "lost" });
        await drawn();
        return [...found, document.querySelector(".left").textContent];""")
    ids = {p["id"] for p in listed}
    mt.equal(len(ids), most, "processes of the page")
    by_id = {p["id"]: p for p in all_}
    mt.equal([(p["id"], key) for p in listed for key in p if p[key] != by_id[p["id"]][key]][:5], [], "figures that are not the report's")
    mt.check(failed <= ids, "who did not end well, and is not listed: %s" % (failed - ids))
    least = min(peak(p) for p in listed if p["id"] not in failed | {all_[0]["id"]})
    mt.equal([p["id"] for p in all_ if p["id"] not in ids and peak(p) > least][:5], [], "processes that are larger than one that is listed")
    mt.equal(caption, "500 of {:,} rows; the page has the {:,} that say most".format(len(all_), most), "what the table says of itself")
    largest = max(p["host"]["peak_bytes"] for p in listed)
    mt.check(len(rows) == 500 and rows[0].startswith(str(largest)[:3] if largest < 1024 else "%.1f" % (largest / 1024)), "the first of %d rows is %s, the largest has %d" % (len(rows), rows[:1], largest))
    mt.check("{:,} processes ".format(len(all_) - most) in lost and "are not listed" in lost, lost)


def opens(path, *options):
    """Whether memtrace makes a page of the trace. Each of its tabs is drawn, and no name in it does anything, or hides."""
    page = os.path.join(mt.scratch("page"), "page.html")
    done = mt.execute([mt.MEMTRACE, "html", "-q", "-o", page, *options, path])
    if done.status == 3:
        return False
    mt.equal(done.status, 0, done.err)
    ready, hurt, images, text = browser.ask(page, EACH_TAB)
    mt.equal((ready, hurt, images), ("1", 0, 0), "ready, what names did, pictures")
    mt.check(len(text) > 1000, "there is nothing in it: %r" % text)
    unseen = hostile.UNSEEN.search(text.replace("\t", " "))
    mt.check(not unseen, "%a after %a" % (unseen and unseen[0], unseen and text[max(0, unseen.start() - 80):unseen.start()]))
    return True
