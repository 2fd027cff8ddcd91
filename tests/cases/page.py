#!/usr/bin/env python3
"""memtrace html in a real browser: its figures are those of the other commands, it asks for nothing and obeys no name, and it reads without
scripts."""
# timeout: 500
import base64
import functools
import gzip
import json
import os
import re
import signal
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import browser
import cases
import golden_traces
import mt

HURT = "</script><img src=x onerror=window.hurt=1><script>window.hurt=1</script>"


@functools.lru_cache(None)
def generated(kind, seed=301):
    """A trace of a device, which failed."""
    path = os.path.join(mt.scratch("battery"), kind)
    cases.make(path, kind, seed, True)
    return mt.Trace(path), browser.page(path)


def paths_of_peak(sites):
    """Bytes by path, outermost first, of memtrace peak --json."""
    sums = {}
    for site in sites:
        path = " < ".join("%s %s:%d" % (f["function"], os.path.basename(f["file"] or ""), f["line"] or 0) for f in reversed(site["stack"]))
        sums[path] = sums.get(path, 0) + site["bytes"]
    return sums


# The same of the page: stacks whose inner frames were folded are none of its largest.
PATHS = """
const track = memtrace.data.tracks.find(t => t.name === TRACK), at = { ...memtrace.when(memtrace.data, track), at: 0, ...AT }, sums = {};
const { list, rest, all } = memtrace.valuesOf(track, "alive", at);
for (const { stack, value } of list) {
  const path = stack.path.map(f => memtrace.data.frames[f]).map(([name, file, line]) => `${name} ${(file ?? "").split("/").pop()}:${line}`).join(" < ");
  sums[path] = (sums[path] ?? 0) + value;
}
return { sums, rest, all };
"""


def same_tree(trace, page, track, device, at, window):
    """A moment's tree is what memtrace peak says of that moment."""
    sites = [s for s in trace.json("peak", "-n", "all", "--device", device, "--at", at)["sites"] if s["memory"] == track.split()[-1] or " " not in track]
    want = paths_of_peak(sites)
    got = browser.ask(page, "const TRACK = %s, AT = (%s);" % (json.dumps(track), window) + PATHS)
    mt.equal(got["all"], sum(want.values()), "bytes of %s at %s" % (track, at))
    mt.between(0, got["rest"], 0.005 * got["all"], "what is in no stack")
    for path, bytes_ in got["sums"].items():
        if bytes_ > 0.05 * got["all"]:
            mt.equal(bytes_, want.get(path), "bytes of %s" % path)


def case_figures_are_the_reports():
    trace, page = generated("capacity")
    got, want = browser.ask(page, "return memtrace.data.report"), trace.json("report")
    mt.equal(sorted(got), sorted(want), "keys")
    for key in want:
        if key != "by" and not key.startswith("sites"):  # which are rows of the screen, where a command has no --json
            mt.check(got[key] == want[key], "%s differs: %s, not %s" % (key, str(got[key])[:300], str(want[key])[:300]))


MOMENTS = """
const d = memtrace.data, named = at => d.raw.moments.find(m => m.at === at);
return { times: [0.3, 0.6, 0.9].map(p => Math.floor(p * d.count)).map(i => [i, d.times[i + 1]]), oom: named("oom") ? memtrace.windowAt(d, named("oom").at_s) : null };
"""
HIGHEST = "(() => { const t = memtrace.data.tracks.find(t => t.name === TRACK); return { at: t.high.indexOf(Math.max(...t.high)), high: true } })()"


def case_moments_are_peaks():
    trace, page = generated("leak")
    device = trace.report["devices"][0]["name"]
    for window, time in browser.ask(page, MOMENTS)["times"]:
        same_tree(trace, page, device + " pool", device, "%.9f" % time, "{ at: %d, high: false }" % window)
    same_tree(trace, page, device + " pool", device, "peak", HIGHEST)


def case_failure_is_its_moment():
    trace, page = generated("capacity")
    device, window = trace.report["devices"][0]["name"], browser.ask(page, MOMENTS)["oom"]
    same_tree(trace, page, device + " pool", device, "oom", "{ at: %d, high: false }" % window)


def case_ranges_add_up():
    """The icicle of 50 random ranges has what its track has; what was allocated is what the report says of that time."""
    trace, page = generated("leak")
    sums = browser.ask(page, """
        let seed = 7; const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n, out = [];
        for (let i = 0; i < 50; i++) {
          const track = memtrace.data.tracks[random(memtrace.data.tracks.length)], from = random(memtrace.data.count - 1) - 1, to = from + 1 + random(memtrace.data.count - from - 1);
          for (const mode of ["allocated", "temporary", "difference"]) {
            const tree = memtrace.treeOf(memtrace.data, track, mode, { from, to, at: to }, null);
            out.push([mode === "difference" ? tree.delta : tree.value, memtrace.valueOf(track, mode, { from, to })]);
          }
        }
        return out;""")
    mt.check(len(sums) == 150 and any(b for _, b in sums), "nothing was compared")
    for tree, track in sums:
        mt.equal(tree, track)
    begin, end, allocated = browser.ask(page, """
        const d = memtrace.data, t = d.tracks.find(t => t.kind === "pool"), from = Math.floor(d.count / 3), to = Math.floor(d.count * 2 / 3);
        return [d.times[from + 1], d.times[to + 1], memtrace.valueOf(t, "allocated", { from, to })];""")
    report = trace.json("report", "--from", "%.9f" % (begin + 1e-9), "--to", "%.9f" % end)
    mt.equal(allocated, report["devices"][0]["pool"]["allocated_bytes"], "allocated from %s to %s" % (begin, end))


def case_map_is_frag():
    trace, page = generated("fragmentation")
    frag = trace.json("frag", "--at", "oom")["devices"][0]
    got = browser.ask(page, """
        const m = memtrace.data.raw.maps.filter(m => m.oom).at(-1), sum = (f) => m.segments.reduce((a, s) => a + f(s), 0);
        return { reserved: m.reserved, allocated: m.allocated, hole: m.hole, segments: m.segments.map(s => [s.address, s.bytes, s.hole]).sort(),
                 drawn: sum(s => s.rectangles.reduce((a, v, i) => a + (i % 5 === 2 ? v : 0), 0)), canvas: document.querySelector("canvas.map").width };""", hash="#tab=map")
    mt.equal((got["reserved"], got["allocated"], got["hole"]), (frag["reserved_bytes"], frag["allocated_bytes"], frag["largest_hole_bytes"]))
    mt.equal(sorted(got["segments"]), sorted(["0x%x" % s["address"], s["size_bytes"], s["largest_hole_bytes"]] for s in frag["segments"]))
    mt.equal(got["drawn"], frag["allocated_bytes"], "bytes of all rectangles")
    mt.check(got["canvas"], "nothing is drawn")


def case_without_scripts():
    trace, page = generated("capacity")
    text = browser.say(page, javascript=False)["value"]
    verdict = trace.report["verdicts"][0]
    for words in ("ran out of memory", verdict["evidence"], verdict["advice"], "WHY"):
        mt.check(words in text, "%r is not in %s" % (words, text[:2000]))


def case_state_is_in_the_address():
    """Keys and buttons change it, a link brings it back, and the command line that is shown can be run."""
    trace, page = generated("leak")
    said = browser.ask(page, "return [location.hash, memtrace.state, memtrace.command()]", keys=["p", "g", "2"])
    mt.equal((said[1]["at"], said[1]["mode"], said[1]["tab"]), ("peak", "grew", "owners"))
    again = browser.ask(page, "return [memtrace.state, memtrace.command()]", hash=said[0])
    mt.equal(again, said[1:], "the state behind a link")
    tabs = browser.ask(page, """
        const found = [];
        for (const tab of ["flame", "owners", "map", "growth", "processes", "host", "lost", "text"]) {
          memtrace.set({ tab, at: "peak" });
          await new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
          found.push([tab, memtrace.command(), document.querySelector(tab === "text" ? "#text:not([hidden])" : ".low:not([hidden]) .left")?.textContent.length ?? 0]);
        }
        return found;""")
    for tab, command, letters in tabs:
        mt.check(letters > 20, "the tab %s is empty" % tab)
        done = mt.execute(["sh", "-c", command.replace("memtrace", mt.MEMTRACE, 1)])
        mt.check(done.status == 0 and done.out, "%s: %s" % (command, done))


def hostile_program():
    """Every name that a program chooses, with markup in it."""
    folder = mt.scratch("hostile")
    path = os.path.join(folder, "x<img src=x onerror=window.hurt=1>.py")
    code = ("import sys\nfrom types import CodeType\n"
            "keep = []\ncode = compile('def f():\\n return bytearray(3 << 20)\\n', %r, 'exec')\nspace = {}\nexec(code, space)\nf = space['f']\n"
            "f.__code__ = f.__code__.replace(co_name=%r, co_qualname=%r) if sys.version_info >= (3, 11) else f.__code__.replace(co_name=%r)\n"
            "keep += [f() for _ in range(9)]\n" % (HURT, HURT, HURT, HURT))
    with open(path, "w", encoding="utf-8") as file:
        file.write(code)
    return [mt.python(), path, HURT, "\u202edlrow\u200b", "a" * 10000]


def case_names_are_text():
    trace = mt.shimmed(hostile_program()).trace.settle()
    page = browser.page(trace.path, options=["--source", "all"])
    with open(page, encoding="utf-8") as file:
        mt.check("onerror=window.hurt" not in re.sub(r"&lt;img src=x onerror=window.hurt=1&gt;", "", file.read()), "a name stands as markup")
    texts = browser.ask(page, """
        const found = [];
        for (const tab of ["flame", "owners", "processes", "text"]) {
          memtrace.set({ tab });
          await new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
          found.push([window.hurt ?? 0, document.images.length, document.body.innerText]);
        }
        return found;""", hash="#track=heap")
    for hurt, images, text in texts:
        mt.equal((hurt, images), (0, 0), "what names did")
        mt.check(not re.search("[\u200b-\u200f\u202a-\u202e]", text), "what turns text around or has no width")
    mt.check(any("onerror=window.hurt=1" in text for _, _, text in texts), "the name is not shown")


def everything(page):
    """The page as its reader has it: its own text, and its data unpacked."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    return text + gzip.decompress(base64.b64decode(re.search('id="data">([^<]*)<', text).group(1))).decode()


def case_redacted():
    """No name of the program, of its files, functions or arguments, nor a line of code; figures are the same."""
    folder = mt.scratch("privately")
    path = os.path.join(folder, "heirloom.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("def porcelain():\n    return bytearray(3 << 20)\nkeep = [porcelain() for _ in range(5)]\n")
    trace = mt.shimmed([mt.python(), path, "--token=zanzibar", "mulberry"]).trace.settle()
    names = ("heirloom", "porcelain", "zanzibar", "mulberry", os.path.basename(folder))
    open_, closed = (browser.page(trace.path, options=["--source", "all", *more]) for more in ((), ("--redact",)))
    plain, redacted = everything(open_), everything(closed)
    for name in names:
        mt.check(name in plain, "%s is not in the page at all" % name)
        mt.check(name not in redacted, "%s is in the redacted page" % name)
    mt.check("/tmp/" not in redacted and "memtrace report redacted.tar.zst" in redacted, "where it was while the page was made")
    mt.equal(mt.execute([mt.MEMTRACE, "pack", "-q", "--redact", "-o", "redacted.tar.zst", trace.path], cwd=folder).status, 0)
    command = browser.ask(closed, "return memtrace.command()", hash="#tab=owners")
    done = mt.execute(["sh", "-c", command.replace("memtrace", mt.MEMTRACE, 1)], cwd=folder)
    mt.check(done.status == 0 and " redacted.tar.zst" in command and done.out, "%s: %s" % (command, done))
    peak = "return [memtrace.data.tracks.map(t => [t.name, t.peak]), memtrace.data.stacks.length > 0]"
    mt.equal(browser.ask(closed, peak), browser.ask(open_, peak), "figures")


@mt.variants(("html", "--redact"), ("pack", "--redact"))
def case_redacts_in_tmpdir(*words):
    """In a file without a name, where the user wants such files; nothing is left of it."""
    folder, strace = mt.scratch("tmp"), mt.need("strace")
    trace = golden_traces.unpack("tree", mt.scratch("golden"))
    for place, status in ((folder, 0), (os.path.join(folder, "missing"), 3)):
        log = os.path.join(mt.scratch("log"), "log")
        done = mt.execute([strace, "-f", "-o", log, "-e", "trace=%file", mt.MEMTRACE, *words, "-q", "-o", os.path.join(mt.scratch("out"), "out"), trace], env=mt.clean_env(TMPDIR=place))
        mt.equal(done.status, status, "with TMPDIR=%s: %s" % (place, done.err))
        mt.check(place in done.err or not status, done.err)
        with open(log, encoding="utf-8") as file:
            written = set(re.findall(r'"([^"]*)", [^"]*O_(?:CREAT|RDWR|WRONLY|DIRECTORY|TMPFILE)', file.read()))
        mt.check(place in written, "%s is not among %s" % (place, written))
        mt.equal([path for path in written if os.path.dirname(path) in ("/", "/tmp") and "tmp" in path], [], "what is written outside of TMPDIR")
        mt.equal(os.listdir(folder), [], "what is left in TMPDIR")


def complete(page, words=()):
    ready, text = browser.ask(page, "return [document.body.dataset.ready, document.body.innerText]", hash="#tab=lost")
    mt.equal(ready, "1")
    for word in words:
        mt.check(word in text, "%r is not in %s" % (word, text[:1500]))


def case_without_stacks():
    trace = mt.shimmed([mt.python(), "-c", "keep = bytearray(5 << 20)"], env={"MEMTRACE_STACKS": "none"}).trace.settle()
    page = browser.page(trace.path)
    complete(page)
    whole = browser.ask(page, "const t = memtrace.track(); return [t.name, t.peak, memtrace.treeOf(memtrace.data, t, 'alive', memtrace.when(memtrace.data, t), null).value]")
    mt.equal(whole[2], trace.host["peak_bytes"], "what is alive at the peak, by whomever")


def text_of(page, tab):
    return browser.ask(page, "return document.body.innerText", hash="#track=heap&tab=" + tab)


def case_says_what_is_missing():
    """Without devices and without stacks; where they are known nothing is said."""
    code = "keep = bytearray(5 << 20)"
    bare, whole = (browser.page(mt.shimmed([mt.python(), "-c", code], env={"MEMTRACE_STACKS": mode}).trace.settle().path) for mode in ("none", "all"))
    device = generated("leak")[1]
    words = {"flame": "Stacks of heap blocks were not recorded", "lost": "who allocated on the heap: a process was recorded without stacks"}
    for tab, said in words.items():
        mt.check(said in text_of(bare, tab), "%r is not in the tab %s" % (said, tab))
        mt.check(said not in text_of(whole, tab), "%r is in the tab %s" % (said, tab))
    mt.check("this trace has none" in text_of(whole, "map"), "the map of a trace without devices")
    mt.check("this trace has none" not in text_of(device, "map"), "the map of a trace with a device")
    mt.equal(browser.ask(whole, "return memtrace.data.tracks.filter(t => t.device)"), [], "tracks of devices")


@functools.lru_cache(None)
def compared():
    """[traces], the page of diff --html, diff --json of the same by site, as the page has it."""
    traces = [generated("leak", seed)[0].path for seed in (301, 302)]
    page = os.path.join(mt.scratch("diff"), "diff.html")
    for words in (["--html", page], ["--json", "--by", "site"]):
        done = mt.execute([mt.MEMTRACE, "diff", *words, *traces])
        mt.equal(done.status, 0, "diff %s: %s" % (words, done.err))
    return traces, page, json.loads(done.out)


CHANGES = """
memtrace.set({ tab: "changes" });
await new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
const rows = table => [...table.querySelectorAll("tbody tr")].map(tr => [...tr.children].map(td => td.title || td.textContent));
return { raw: memtrace.data.raw.changes, command: memtrace.command(), peaks: memtrace.data.raw.before.series.filter(s => s.process === null).map(s => [s.device, s.what, Math.max(...s.high)]),
         tables: Object.fromEntries([...document.querySelectorAll(".low table")].map(t => [t.ariaLabel || t.getAttribute("aria-label"), rows(t)])) };
"""
SECTIONS = {"Totals": "totals", "System": "system", "Devices": "devices", "Categories at the peak": "categories", "Processes": "processes", "Phases": "phases",
            "Steps": "steps", "Sites at the peak": "sites"}


def rounded(o):
    """The page has twelve digits of a number, diff more."""
    if isinstance(o, dict):
        return {key: rounded(value) for key, value in o.items()}
    return [rounded(value) for value in o] if isinstance(o, list) else float("%.9g" % o) if isinstance(o, float) else o


def size(text):
    """Bytes as the page has them, rounded: +1.5 MiB."""
    number, unit = text.replace(",", "").replace("\u2212", "-").split(" ")
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]


def case_diff_has_the_figures_of_json():
    """What the page of two traces holds, and what its tables show, is diff --json."""
    traces, page, want = compared()
    got = browser.ask(page, CHANGES)
    for key in want:
        mt.equal(rounded(got["raw"].get(key)), rounded(want[key]), "what the page holds of " + key)
    mt.equal(set(got["tables"]), {title for title, key in SECTIONS.items() if want.get(key)}, "tables")
    mt.check(want["devices"] and any(r.get("change_bytes") for r in want["sites"]), "nothing was compared")
    for title, rows in got["tables"].items():
        wanted = want[SECTIONS[title]]
        mt.equal([r[3] for r in rows], [w.get("site") or w["name"] for w in wanted], title)
        for row, w in zip(rows, wanted):
            for text, key in zip(row, ("change_bytes", "before_bytes", "after_bytes")):
                if w.get(key) is not None:
                    mt.between(w[key] - abs(w[key]) / 150 - 1, size(text), w[key] + abs(w[key]) / 150 + 1, "%s of %s: %s" % (key, row, text))


def case_diff_draws_what_was_before():
    """The other trace's curve is its timeline, and the command that is shown compares the same two."""
    traces, page, want = compared()
    got = browser.ask(page, CHANGES)
    timeline = json.loads(mt.execute([mt.MEMTRACE, "timeline", "--json", traces[0]]).out)["series"]
    peaks = [[s["device"], s["kind"], max(p["high_bytes"] for p in s["points"])] for s in timeline if s["pid"] is None and any(p["high_bytes"] for p in s["points"])]
    mt.check(any(device for device, *_ in peaks), "no device in %s" % peaks)
    for peak in peaks:
        mt.check(peak in got["peaks"], "%s is not in %s" % (peak, got["peaks"]))
    done = mt.execute(["sh", "-c", got["command"].replace("memtrace", mt.MEMTRACE, 1) + " --json --by site"])
    mt.equal(json.loads(done.out), want, got["command"])


def case_diff_without_scripts():
    """The largest changes stand first."""
    _, page, want = compared()
    text = browser.say(page, javascript=False)["value"]
    changed = [w for w in want["sites"] if w["change_bytes"]]
    listed = text.split("After, compared with before")[1].strip().split("\n")[:8]
    for name in (" ".join(changed[0]["site"].split()), "cuda:0, peak"):
        mt.check(any(name in " ".join(line.split()) for line in listed), "%s is not in %s" % (name, listed))


def case_of_nothing():
    """It ended before it allocated anything to speak of."""
    trace = mt.shimmed(["/bin/true"]).trace
    if trace.exists():
        complete(browser.page(trace.settle().path))


def case_still_running():
    output = os.path.join(mt.scratch("trace"), "t")
    child = subprocess.Popen([mt.python(), "-c", "keep = [bytearray(1 << 20) for _ in range(8)]\nprint(flush=True)\nimport time\ntime.sleep(600)"], env=mt.shim_env(output), stdout=subprocess.PIPE, start_new_session=True)
    try:
        child.stdout.readline()
        complete(browser.page(output), ["still ran"])
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def case_broken():
    """Half of a file is missing: what is left is shown, and that something is missing."""
    trace, _ = generated("leak")
    path = os.path.join(mt.scratch("broken"), "t")
    mt.execute(["cp", "-r", trace.path, path])
    largest = max((os.path.join(path, f) for f in os.listdir(path)), key=os.path.getsize)
    os.truncate(largest, os.path.getsize(largest) // 2)
    mt.check(mt.execute([mt.MEMTRACE, "html", "-o", path + ".html", path]).status != 0, "it is written without --force")
    complete(browser.page(path, options=["--force"]), ["incomplete"])


def case_fits():
    """Nothing is cut or overlaps at usual sizes, in light and dark; pictures are kept beside what is built."""
    _, page = generated("leak")
    folder = os.path.join(mt.BUILD, "tests/pages")
    os.makedirs(folder, exist_ok=True)
    for width, height, theme in ((1400, 900, "light"), (1400, 900, "dark"), (900, 700, "light")):
        wide, tall, parts = browser.ask(page, """
            const box = e => e.getBoundingClientRect(), parts = [...document.querySelectorAll("header, .verdict, .time, .tabs, .low")].map(e => [box(e).top, box(e).bottom]);
            return [document.documentElement.scrollWidth, box(document.querySelector(".low")).top, parts];""", width=width, height=height, theme=theme, shot=os.path.join(folder, "leak-%d-%s.png" % (width, theme)))
        mt.check(wide <= width, "it is %d wide at %d" % (wide, width))
        mt.check(all(a[1] <= b[0] + 1 for a, b in zip(parts, parts[1:])), "parts overlap: %s" % parts)
        mt.check(height < 900 or tall < 620, "the flame graph begins at %d of %d" % (tall, height))


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


def case_nothing_is_cut():
    """At 1280 by 720, in each tab."""
    for kind in ("leak", "capacity"):
        _, page = generated(kind)
        for tab in ("flame", "owners", "map", "growth", "host"):
            cut, over = browser.ask(page, CUT, hash="#tab=" + tab, width=1280, height=720)
            mt.equal((cut, over), ([], []), "cut texts and overlaps in %s, tab %s" % (kind, tab))


def case_times_have_one_form():
    """On an axis that goes on for longer than two minutes, too; the last one is not cut."""
    labels = browser.ask(generated("leak")[1], """
        const said = [], whole = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
          if (this.textAlign === "center" && !this.canvas.matches(".strip")) said.push([text, x + this.measureText(text).width / 2 - this.canvas.width]);
          return whole.apply(this, arguments);
        };
        const found = [];
        for (const scale of [1, 100, 4000]) {
          said.length = 0;
          const d = memtrace.data, last = d.times.at(-1);
          d.times.forEach((t, i) => { d.times[i] = t / last * 3 * scale; });
          memtrace.set({ track: memtrace.track().name });
          memtrace.set({ by: scale === 100 ? "site" : "category" });
          while (!said.length) await new Promise(done => setTimeout(done, 20));
          found.push(said.slice());
        }
        return found;""")
    for scale, said in zip((1, 100, 4000), labels):
        forms = {re.sub(r"\d+", "N", text) for text, _ in said if text}
        mt.check(len(said) > 2 and len({f.replace("N.N", "N") for f in forms}) == 1, "forms of times up to %d s: %s" % (3 * scale, forms))
        mt.check(max(beyond for _, beyond in said) <= 0, "the last time is cut: %s" % said[-1])


def case_a_brush_does_little():
    """A picture takes two windows of each stack, whatever the range, and no node that can't be seen."""
    code = ("import random\nrandom.seed(1)\nkeep = []\nfs = {}\n"
            "exec('\\n'.join('def f%d(p):\\n  if not p: keep.append(bytearray(random.randrange(2000, 9000)))\\n  else: fs[p[0]](p[1:])' % i for i in range(40)))\n"
            "fs.update({i: globals()['f%d' % i] for i in range(40)})\n"
            "for _ in range(6000): fs[random.randrange(40)]([random.randrange(40) for _ in range(4)])\n")
    page = browser.page(mt.shimmed([mt.python(), "-c", code]).trace.settle().path)
    stacks, drawn = browser.ask(page, """
        const d = memtrace.data, out = [];
        for (const [from, to, mode] of [[3, 250, "allocated"], [90, 200, "grew"], [100, 104, "temporary"]]) {
          memtrace.set({ from: String(d.times[from + 1]), to: String(d.times[to + 1]), mode });
          await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
          out.push([memtrace.work.windows, memtrace.work.nodes, document.querySelectorAll("g.frame").length]);
        }
        return [memtrace.track().stacks.length, out];""", hash="#track=heap", width=1280, height=720)
    mt.check(stacks > 500 and drawn[0][1] > 1, "only %d stacks, and %s" % (stacks, drawn))  # in five windows there may be nothing
    for windows, nodes, frames in drawn:
        mt.between(1, windows, 2 * stacks + 2, "windows that were looked into, of %d stacks" % stacks)
        mt.between(0, nodes, 4000, "nodes that were made")
        mt.equal(frames, nodes, "nodes that were drawn")


def case_died_at_once():
    """Within its first 50 ms, and by a signal."""
    done = mt.shimmed([mt.program("exits"), "kill"])
    mt.equal(done.status, -9)
    trace = done.trace.settle()
    ended, = [p["exit"] for p in trace.json("report")["processes"]]
    text = browser.ask(browser.page(trace.path), "return document.body.innerText", hash="#tab=processes")
    mt.check("%s %s" % (ended["kind"], ended["code"]) in text or ended["kind"] in text, "%s is not in %s" % (ended, text[-1500:]))


def case_is_bounded():
    """A hundred thousand stacks are no larger page than the limit says, and all their bytes are in it."""
    code = ("import sys, random\nrandom.seed(1)\nsys.setrecursionlimit(10000)\nkeep = []\n"
            "fs = {}\n"
            "exec('\\n'.join('def f%d(p):\\n  if not p: keep.append(bytearray(random.randrange(2000, 9000)))\\n  else: fs[p[0]](p[1:])' % i for i in range(40)))\n"
            "fs.update({i: globals()['f%d' % i] for i in range(40)})\n"
            "for _ in range(30000): fs[random.randrange(40)]([random.randrange(40) for _ in range(6)])\n")
    trace = mt.shimmed([mt.python(), "-c", code]).trace.settle()
    page = browser.page(trace.path)
    mt.check(os.path.getsize(page) < 5 << 20, "%d bytes" % os.path.getsize(page))
    peak, known, stacks = browser.ask(page, "const t = memtrace.data.tracks.find(t => t.kind === 'heap'), at = { at: t.high.indexOf(t.peak), high: true }, v = memtrace.valuesOf(t, 'alive', at); return [v.all, v.all - v.rest, memtrace.data.stacks.length]")
    mt.equal(peak, trace.host["peak_bytes"])
    mt.between(0.995 * peak, known, peak, "bytes of stacks")
    mt.check(stacks <= 1000, "%d stacks" % stacks)


mt.main()
