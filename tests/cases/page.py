#!/usr/bin/env python3
"""memtrace html in a real browser: its figures are those of the other commands, it asks for nothing and obeys no name, and it reads without
scripts."""
# timeout: 500
import json
import os
import re
import shutil
import signal
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import browser
import cases
import golden_traces
import hostile
import mt
import page_checks
from trace import EXIT_SIGNAL, POOL, Trace

HURT = "</script><img src=x onerror=window.hurt=1><script>window.hurt=1</script>"


def case_figures_are_the_reports():
    trace, page = page_checks.generated("capacity")
    page_checks.same_figures(trace, page)


def case_moments_are_peaks():
    trace, page = page_checks.generated("leak")
    device = trace.report["devices"][0]["name"]
    for window, time in browser.ask(page, page_checks.MOMENTS)["times"]:
        page_checks.same_tree(trace, page, device + " pool", device, "%.9f" % time, "{ at: %d, high: false }" % window)
    page_checks.same_tree(trace, page, device + " pool", device, "peak", page_checks.HIGHEST)


def case_failure_is_its_moment():
    trace, page = page_checks.generated("capacity")
    device, window = trace.report["devices"][0]["name"], browser.ask(page, page_checks.MOMENTS)["oom"]
    page_checks.same_tree(trace, page, device + " pool", device, "oom", "{ at: %d, high: false }" % window)


def case_ranges_add_up():
    """The icicle of 50 random ranges has what its track has; what was allocated is what the report says of that time."""
    trace, page = page_checks.generated("leak")
    page_checks.same_ranges(page)
    begin, end, allocated = browser.ask(page, """
        const d = memtrace.data, t = d.tracks.find(t => t.kind === "pool"), from = Math.floor(d.count / 3), to = Math.floor(d.count * 2 / 3);
        return [d.times[from + 1], d.times[to + 1], memtrace.valueOf(t, "allocated", { from, to })];""")
    report = trace.json("report", "--from", "%.9f" % (begin + 1e-9), "--to", "%.9f" % end)
    mt.equal(allocated, report["devices"][0]["pool"]["allocated_bytes"], "allocated from %s to %s" % (begin, end))


FIRST_RANGE = """
    const d = memtrace.data, t = memtrace.track(), w = memtrace.when(d, t);
    return { from: w.from < 0 ? d.times[0] : d.times[w.from + 1], to: d.times[w.to + 1], grew: memtrace.valueOf(t, "grew", w), whole: memtrace.valueOf(t, "grew", { from: -1, to: d.count - 1 }),
             failed: d.raw.moments.find(m => m.at === "oom")?.at_s, steps: d.report.steps?.list, command: document.querySelector("code.command").textContent };"""


def case_first_range():
    """What grew is asked from the loop's begin to the failure: what was loaded before and what is freed behind it is no part of that. The command says the same."""
    failed, leak = (browser.ask(page_checks.generated(kind)[1], FIRST_RANGE, hash="#mode=grew") for kind in ("capacity", "leak"))
    mt.equal(failed["to"], failed["failed"], "its end, and the failure")
    mt.check(" --to %.9f" % failed["to"] in failed["command"], failed["command"])
    mt.between(leak["steps"][0]["begin_s"], leak["from"], leak["steps"][1]["end_s"], "its begin, about that of the first step")
    mt.check(0 < leak["grew"] < leak["whole"], "what was loaded counts as grown: %s" % leak["grew"])


def case_by_process():
    """Who had how much at the peak is what memtrace peak --by process says; at any moment they have what there was together."""
    made = Trace(os.path.join(mt.scratch("made"), "t"))
    for k in range(6):
        p = made.process(100 + k, ["children"])
        work = p.stack(("work.py", "<module>", 3), ("work.py", "work", 10))
        for i in range(60):
            p.at(0.1 * k + 0.01 * i)
            block = p.malloc(10000 + 100 * k, work)
            if i % 3 == 0:
                p.at(0.1 * k + 0.01 * i + 0.005)
                p.mfree(block)
    made.save()
    trace = mt.Trace(made.path)
    page = browser.page(trace.path)
    at_peak, sums, legend = browser.ask(page, """
        const t = memtrace.track(), top = t.high.indexOf(t.peak);
        memtrace.set({ by: "process" });
        await new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
        return [t.processes.map(p => [p.pid, p.high[top]]), t.high.map((v, i) => [v, t.processes.reduce((sum, p) => sum + p.high[i], 0)]), document.querySelector(".legend").textContent];""", hash="#track=heap")
    want = {int(s["label"].split()[0]): s["bytes"] for s in trace.json("peak", "--by", "process", "--device", "host", "-n", "all")["sites"]}
    mt.equal({pid: bytes_ for pid, bytes_ in at_peak if bytes_}, want)
    mt.check(len(want) >= 3 and all(whole == parts for whole, parts in sums), "of %s parts of the whole: %s" % (want, [pair for pair in sums if pair[0] != pair[1]]))
    mt.check(all("children %d" % pid in legend for pid in want), legend)
    mt.check("by process" not in browser.ask(page_checks.generated("leak")[1], "return document.querySelector('.moments').textContent"), "of one process")


def case_map_is_frag():
    trace, page = page_checks.generated("fragmentation")
    frag = trace.json("frag", "--at", "oom")["devices"][0]
    got = browser.ask(page, """
        const m = memtrace.data.raw.maps.filter(m => m.oom).at(-1), sum = (f) => m.segments.reduce((a, s) => a + f(s), 0);
        return { reserved: m.reserved, allocated: m.allocated, hole: m.hole, segments: m.segments.map(s => [s.address, s.bytes, s.hole]).sort(),
                 drawn: sum(s => s.rectangles.reduce((a, v, i) => a + (i % 5 === 2 ? v : 0), 0)), canvas: document.querySelector("canvas.map").width };""", hash="#tab=map")
    mt.equal((got["reserved"], got["allocated"], got["hole"]), (frag["reserved_bytes"], frag["allocated_bytes"], frag["largest_hole_bytes"]))
    mt.equal(sorted(got["segments"]), sorted(["0x%x" % s["address"], s["size_bytes"], s["largest_hole_bytes"]] for s in frag["segments"]))
    mt.equal(got["drawn"], frag["allocated_bytes"], "bytes of all rectangles")
    mt.check(got["canvas"], "nothing is drawn")


POOL = 10  # the class of its events: docs/FORMAT.md


@mt.variants("fragmentation", "leak")
def case_blocks_over_time(kind):
    """After each change the bands add up to what the events of the trace do; at the failure to what its map has."""
    trace, page = page_checks.generated(kind)
    n, at, sums, lives, allocated, drawn = browser.ask(page, """
        const s = memtrace.blocks(), raw = memtrace.data.raw.blocks[0];
        return [s.n, raw.moment, [...s.sums], s.lives.map(l => [l.born, l.died === Infinity ? 0 : l.died, l.bytes]), memtrace.data.raw.maps.findLast(m => m.at_s === raw.at_s).allocated,
                document.querySelector("canvas.blocks").width]""", hash="#tab=blocks")
    mt.equal((sums[at], drawn > 0), (allocated, True), "at the failure, drawn")
    live, total, after = {}, 0, []
    for event in map(json.loads, trace.tool("dump", "--events", "--json").out.splitlines()):
        if event.get("class") == POOL and event["record"] in ("device-alloc", "device-free"):
            key = event["process"], event["addr"]
            change = event["size"] if event["record"] == "device-alloc" else -live.pop(key)
            total += change
            after.append(total)
            if change > 0:
                live[key] = change
    mt.check(n > 20 and any(list(map(int, sums[1:])) == after[i:i + n] for i in range(len(after) - n + 1)), "sums of %d changes are not among the trace's" % n)
    mt.check(all(bool(died) <= (died > born) and size > 0 for born, died, size in lives), "lives")


def case_without_scripts():
    trace, page = page_checks.generated("capacity")
    page_checks.reads_without_scripts(trace, page)
    text = browser.say(page, javascript=False)["value"]
    for words in ("ran out of memory", "WHY"):
        mt.check(words in text, "%r is not in %s" % (words, text[:2000]))
    mt.check("Memory trouble: host pressure" in browser.say(page_checks.generated("host_pressure")[1], javascript=False)["value"], "in words, not in capitals")


def case_state_is_in_the_address():
    """Keys and buttons change it, a link brings it back, and the command line that is shown can be run."""
    trace, page = page_checks.generated("leak")
    said = browser.ask(page, """
        for (let tries = 0; tries < 100 && !location.hash.includes("owners"); tries++) await new Promise(done => setTimeout(done, 50));
        return [location.hash, memtrace.state, memtrace.command()];""", keys=["p", "g", "2"])
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
        mt.check("onerror=window.hurt" not in re.sub(r"&lt;img src=x[^<>]{1,99}?onerror=window.hurt=1&gt;", "", file.read()), "a name stands as markup")
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


def case_redacted():
    """No name of the program, of its files, functions or arguments, nor a line of code; figures are the same."""
    folder = mt.scratch("privately")
    path = os.path.join(folder, "heirloom.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("def porcelain():\n    return bytearray(3 << 20)\nkeep = [porcelain() for _ in range(5)]\n")
    trace = mt.shimmed([mt.python(), path, "--token=zanzibar", "mulberry"]).trace.settle()
    names = ("heirloom", "porcelain", "zanzibar", "mulberry", os.path.basename(folder))
    open_, closed = (browser.page(trace.path, options=["--source", "all", *more]) for more in ((), ("--redact",)))
    plain, redacted = page_checks.everything(open_), page_checks.everything(closed)
    for name in names:
        mt.check(name in plain, "%s is not in the page at all" % name)
        mt.check(name not in redacted, "%s is in the redacted page" % name)
    paths = {path for f in browser.ask(open_, "return memtrace.data.frames") for path in (f[1], f[3]) if re.match("/(?!usr/|lib)", path or "")}
    words = {word for p in trace.report["processes"] for word in p["command"] if len(word) > 6}
    mt.check(path in paths and len(words) > 2, "paths %s, arguments %s" % (paths, words))
    mt.equal([text for text in paths | words if text in redacted], [], "paths and arguments that are left")
    mt.check(not re.search("/tmp/|/proc/self/fd", redacted) and "memtrace report redacted.tar.zst" in redacted, "where it was while the page was made")
    mt.equal(mt.execute([mt.MEMTRACE, "pack", "-q", "--redact", "-o", "redacted.tar.zst", trace.path], cwd=folder).status, 0)
    command = browser.ask(closed, "return memtrace.command()", hash="#tab=owners")
    done = mt.execute(["sh", "-c", command.replace("memtrace", mt.MEMTRACE, 1)], cwd=folder)
    mt.check(done.status == 0 and " redacted.tar.zst" in command and done.out, "%s: %s" % (command, done))
    peak = "return [memtrace.data.tracks.map(t => [t.name, t.peak]), memtrace.data.stacks.length > 0]"
    mt.equal(browser.ask(closed, peak), browser.ask(open_, peak), "figures")


def case_detail():
    """1,500 lines keep as much each: where there is room for all, each has its stack; figures are the same."""
    program = "keep = []\n" + "".join("def f%d():\n    keep.append(bytearray(3000))\nf%d()\n" % (i, i) for i in range(1500))
    script = os.path.join(mt.scratch("detail"), "many.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(program)
    trace = mt.shimmed([mt.python(), script]).trace.settle()
    ask = "return [memtrace.data.raw.stacks.length, new Set(memtrace.data.frames.filter(f => /^f\\d+$/.test(f[0])).map(f => f[0])).size, memtrace.data.tracks.map(t => [t.name, t.peak])]"
    (stacks, functions, peaks), (more, all_functions, same) = (browser.ask(browser.page(trace.path, options=options), ask) for options in ((), ("--detail", "4")))
    mt.check(stacks <= 1000 and functions < 1000, "%d stacks, %d functions" % (stacks, functions))
    mt.check(more >= 1500 and all_functions == 1500, "%d stacks, %d functions with --detail 4" % (more, all_functions))
    mt.equal(same, peaks, "figures")
    done = mt.execute([mt.MEMTRACE, "html", "--detail", "65", trace.path])
    mt.check(done.status == 2 and "1 to 64, not 65" in done.err, str(done))


def case_own_code_comes_first():
    """Of all files there is not always room: a library with more lines than that, which comes first by name, leaves the program's own."""
    folder = mt.scratch("source")
    library, own = os.path.join(folder, "a/site-packages"), os.path.join(folder, "own.py")
    os.makedirs(library)
    with open(os.path.join(library, "many.py"), "w", encoding="utf-8") as file:
        file.write("".join("def f%d():\n    return bytearray(3000)\n\n\n\n\ndef g%d():\n    return f%d()\n\n\n\n\n" % (i, i, i) for i in range(1200)))
    with open(own, "w", encoding="utf-8") as file:
        file.write("import sys\nsys.path.insert(0, %r)\nimport many\nkeep = [getattr(many, 'g%%d' %% i)() for i in range(1200)]\n" % library)
    page = browser.page(mt.shimmed([mt.python(), own]).trace.settle().path, options=["--source", "all"])
    lines = browser.ask(page, "return Object.fromEntries(Object.entries(memtrace.data.raw.source).map(([file, lines]) => [file, Object.keys(lines).length]))")
    mt.check(sum(lines.values()) >= 3000, "there was room: %s" % lines)
    mt.check(own in lines, "the program's own is not among %s" % lines)


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


@mt.variants("leak", "host_pressure")
def case_no_text_does_anything(kind):
    """Each text that a trace can hold: escape sequences, line ends, what turns text around, no UTF-8, quotes, markup, 4 KB of it."""
    path = os.path.join(mt.scratch("battery"), kind)
    cases.make(path, kind, 301, True)
    change = hostile.Changer()
    hostile.rewrite(path, lambda field, text: change(field, HURT.encode() + text))
    mt.check(page_checks.opens(path), "no page is made of it")


def case_without_network_and_fonts():
    """On a machine without a network, and without any font that the page names (Chromium needs one), it is whole: its figures, and each of its tabs."""
    folder, unshare = mt.scratch("fonts"), (mt.need("unshare"), "-n")
    probe = mt.plain([*unshare, "true"])
    if probe.status:
        mt.skip("unshare -n: %s" % probe.err.strip())
    listed = mt.execute([mt.need("fc-list"), "--format", "%{family}\t%{file}\n"], env=mt.clean_env()).out.splitlines()
    other = [path for family, path in (line.split("\t") for line in listed) if not re.search("DejaVu Sans|Roboto|Segoe|Menlo|Consolas|Mono", family)]
    mt.check(other, "no font but those that the page names")
    shutil.copy(other[0], folder)
    with open(os.path.join(folder, "fonts.conf"), "w", encoding="utf-8") as file:
        file.write('<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>%s</dir><cachedir>%s</cachedir></fontconfig>' % (folder, folder))
    env = (("FONTCONFIG_FILE", os.path.join(folder, "fonts.conf")),)
    mt.equal(len(mt.execute(["fc-list"], env=mt.clean_env(**dict(env))).out.splitlines()), 1, "fonts")
    _, page = page_checks.generated("capacity")
    ready, _, _, text = browser.ask(page, page_checks.EACH_TAB, before=unshare, env=env)
    mt.equal((ready, text), ("1", browser.ask(page, page_checks.EACH_TAB)[3]), "ready, and what can be read")


VIOLATIONS = """
const said = [];
document.addEventListener("securitypolicyviolation", e => said.push(e.effectiveDirective));
const script = document.createElement("script"), image = new Image(), frame = document.createElement("iframe");
script.textContent = "window.hurt = 1";
image.src = "http://127.0.0.1:9/i.png";
frame.src = "http://127.0.0.1:9/";
document.body.append(script, image, frame);
document.body.insertAdjacentHTML("beforeend", "<b style='color: red' onclick='window.hurt = 1'>x</b>");
document.body.lastChild.click();
await fetch("http://127.0.0.1:9/").catch(() => 0);
const most = document.querySelector("meta[http-equiv]") ? 100 : 1; // an event comes when the browser has time for it
for (let i = 0; i < most && said.length < 6; i++) await new Promise(done => setTimeout(done, 100));
return [said.sort(), window.hurt ?? 0];
"""


def case_policy_forbids():
    """What a page must not do it can't do, and is seen to try."""
    _, page = page_checks.generated("capacity")
    said = browser.say(page, VIOLATIONS)
    mt.equal(said["value"], [["connect-src", "frame-src", "img-src", "script-src-attr", "script-src-elem", "style-src-attr"], 0], "what was refused")
    mt.check(len(said["console"]) >= 6, "complaints: %s" % said)
    free = page + ".free.html"
    with open(page, encoding="utf-8") as before, open(free, "w", encoding="utf-8") as after:
        after.write(re.sub("<meta http-equiv[^>]*>", "", before.read()))
    said = browser.say(free, VIOLATIONS)
    mt.check(said["value"] == [[], 1] and len(said["requests"]) >= 2, "without a policy nothing is seen either: %s" % said)


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
    device = page_checks.generated("leak")[1]
    words = {"flame": "Stacks of heap blocks were not recorded", "lost": "who allocated on the heap: a process was recorded without stacks"}
    for tab, said in words.items():
        mt.check(said in text_of(bare, tab), "%r is not in the tab %s" % (said, tab))
        mt.check(said not in text_of(whole, tab), "%r is in the tab %s" % (said, tab))
    mt.check("this trace has none" in text_of(whole, "map"), "the map of a trace without devices")
    mt.check("this trace has none" not in text_of(device, "map"), "the map of a trace with a device")
    mt.equal(browser.ask(whole, "return memtrace.data.tracks.filter(t => t.device)"), [], "tracks of devices")


@mt.once
def compared():
    """[traces], the page of diff --html, diff --json of the same by site, as the page has it."""
    traces = [page_checks.generated("leak", seed)[0].path for seed in (301, 302)]
    page = os.path.join(mt.scratch("diff"), "diff.html")
    for words in (["--html", page], ["--json", "--by", "site"]):
        done = mt.execute([mt.MEMTRACE, "diff", *words, *traces])
        mt.equal(done.status, 0, "diff %s: %s" % (words, done.err))
    return traces, page, json.loads(done.out)


CHANGES = """
memtrace.set({ tab: "changes" });
await new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
const rows = table => [...table.querySelectorAll("tbody tr")].map(tr => [...tr.children].map(td => td.title || td.textContent));
return { raw: memtrace.data.raw.changes, command: memtrace.command(), peaks: memtrace.data.raw.before.series.map(s => [s.device, s.what, Math.max(...s.high)]),
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
    trace, _ = page_checks.generated("leak")
    path = os.path.join(mt.scratch("broken"), "t")
    mt.execute(["cp", "-r", trace.path, path])
    largest = max((os.path.join(path, f) for f in os.listdir(path)), key=os.path.getsize)
    os.truncate(largest, os.path.getsize(largest) // 2)
    mt.check(mt.execute([mt.MEMTRACE, "html", "-o", path + ".html", path]).status != 0, "it is written without --force")
    complete(browser.page(path, options=["--force"]), ["incomplete"])


def case_fits():
    """Nothing is cut or overlaps at usual sizes, in light and dark; pictures are kept beside what is built."""
    _, page = page_checks.generated("leak")
    folder = os.path.join(mt.BUILD, "tests/pages")
    os.makedirs(folder, exist_ok=True)
    for width, height, theme in ((1400, 900, "light"), (1400, 900, "dark"), (900, 700, "light")):
        wide, tall, parts = browser.ask(page, """
            const box = e => e.getBoundingClientRect(), parts = [...document.querySelectorAll("header, .verdict, .time, .tabs, .low")].map(e => [box(e).top, box(e).bottom]);
            return [document.documentElement.scrollWidth, box(document.querySelector(".low")).top, parts];""", width=width, height=height, theme=theme, shot=os.path.join(folder, "leak-%d-%s.png" % (width, theme)))
        mt.check(wide <= width, "it is %d wide at %d" % (wide, width))
        mt.check(all(a[1] <= b[0] + 1 for a, b in zip(parts, parts[1:])), "parts overlap: %s" % parts)
        mt.check(height < 900 or tall < 620, "the flame graph begins at %d of %d" % (tall, height))


def case_nothing_is_cut():
    """At 1280 by 720, in each tab."""
    for kind in ("leak", "capacity"):
        _, page = page_checks.generated(kind)
        for tab in ("flame", "owners", "map", "growth", "host"):
            page_checks.nothing_is_cut(page, tab)


def seconds_of(text):
    """2.5 s, 0.4 ms, 3:20, 1:40:00"""
    if ":" in text:
        return sum(int(part) * 60 ** i for i, part in enumerate(reversed(text.split(":"))))
    number, unit = text.split(" ")
    return float(number) * {"s": 1, "ms": 1e-3, "\u00b5s": 1e-6}[unit]


SPANS = (0.0000012, 0.0012, 3, 47, 300, 12000)  # seconds


def case_times_have_one_form():
    """On an axis as short or as long as it may be; they are as far apart as they say, and the last one is not cut."""
    labels = browser.ask(page_checks.generated("leak")[1], """
        const said = [], whole = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
          if (this.textAlign === "center" && !this.canvas.matches(".strip")) said.push([text, x + this.measureText(text).width / 2 - this.canvas.width]);
          return whole.apply(this, arguments);
        };
        const found = [];
        for (const [i, span] of %s.entries()) {
          said.length = 0;
          const d = memtrace.data, last = d.times.at(-1);
          d.times.forEach((t, i) => { d.times[i] = t / last * span; });
          memtrace.set({ track: memtrace.track().name });
          memtrace.set({ by: i %% 2 ? "site" : "category" });
          while (!said.length) await new Promise(done => setTimeout(done, 20));
          found.push(said.slice());
        }
        return found;""" % json.dumps(SPANS))
    for span, said in zip(SPANS, labels):
        forms = {re.sub(r"\d+", "N", text) for text, _ in said if text}
        mt.check(len(said) > 2 and len({f.replace("N.N", "N") for f in forms}) == 1, "forms of times up to %s s: %s" % (span, forms))
        mt.check(max(beyond for _, beyond in said) <= 0, "the last time is cut: %s" % said[-1])
        times = [seconds_of(text) for text, _ in said if text]
        apart = [b - a for a, b in zip(times, times[1:])]
        mt.check(times[-1] <= span * 1.001 and max(apart) - min(apart) < span / 1e6, "times up to %s s: %s" % (span, said))


@mt.variants(3, 60 << 10, 1000 << 10, 1 << 30, 1717986918, 24 << 30, 5 << 40)
def case_bytes_have_one_unit(peak):
    """On the axis, whatever the peak; they are as far apart as they say."""
    said = browser.ask(page_checks.generated("leak")[1], """
        const said = [], whole = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
          if (this.textAlign === "right" && x < 70 * devicePixelRatio) said.push(text);
          return whole.apply(this, arguments);
        };
        const t = memtrace.track(), factor = %d / t.peak;
        t.high = t.high.map(v => v * factor);
        t.peak *= factor;
        memtrace.data.raw.series = [];
        memtrace.set({ by: "site" });
        while (!said.length) await new Promise(done => setTimeout(done, 20));
        return said;""" % peak)
    mt.check(said[0] == "0" and 3 <= len(said) <= 8, said)
    units, numbers = {text.split()[1] for text in said[1:]}, [0, *(float(text.split()[0]) for text in said[1:])]
    apart = [b - a for a, b in zip(numbers, numbers[1:])]
    mt.check(len(units) == 1 and max(apart) - min(apart) < 1e-9 and len({text.partition(".")[2].partition(" ")[0].__len__() for text in said[1:]}) == 1, said)


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


def case_lists_the_processes_that_say_most():
    """Of 2,050: the largest, and a small one that was killed. Their 4,100 sites are two stacks, and both are whole."""
    made = Trace(os.path.join(mt.scratch("made"), "t"))
    for k in range(2050):
        p = made.process(100 + k, ["python", "work.py"], k / 1000)
        p.malloc(10000 + k, p.stack(("work.py", "<module>", 3), ("work.py", "work", 10)))
        p.malloc(100, p.stack(("work.py", "<module>", 4), ("work.py", "work", 11)))
        if k == 7:
            p.exit = EXIT_SIGNAL, signal.SIGKILL
    made.save()
    page = browser.page(made.path)
    page_checks.lists_the_largest(mt.Trace(made.path), page, 2000)
    stacks = browser.ask(page, "return memtrace.data.stacks.map(s => [s.path.map(f => memtrace.data.frames[f][2]), s.sites, s.site >= 0])")
    mt.equal(sorted(stacks), [[[3, 10], 2050, True], [[4, 11], 2050, True]], "lines of paths, sites, and whether they are known")


def case_shows_the_devices_that_say_most():
    """Of 20: the one that failed, though it is the smallest, and the largest."""
    made = Trace(os.path.join(mt.scratch("made"), "t"))
    for k in range(20):
        p = made.process(100 + k, ["python", "train.py"])
        device = p.device(k, "GPU-%d" % k, 1 << 30)
        work = p.stack(("work.py", "<module>", 3))
        p.at(0.1)
        p.alloc(device, POOL, (k + 1) << 20, work)
        if not k:
            p.fail(device, POOL, 2 << 30, work, allocated=1 << 20, reserved=1 << 20)
    made.save()
    trace = mt.Trace(made.path)
    page = browser.page(trace.path)
    mt.equal(len(trace.report["devices"]), 20, "devices")
    shown, tracks, moments, lost = browser.ask(page, """
        const d = memtrace.data;
        return [d.report.devices.map(d => d.name), d.tracks.filter(t => t.device).map(t => t.device), d.raw.moments.map(m => [m.name, m.track]), document.querySelector(".left").textContent];""", hash="#tab=lost")
    largest = ["cuda:0", *("cuda:%d" % k for k in range(5, 20))]
    mt.equal((sorted(shown), sorted(set(tracks))), (sorted(largest), sorted(largest)), "devices of the page")
    mt.check(["OOM", "cuda:0 pool"] in moments and all(["Peak", name + " pool"] in moments for name in largest), moments)
    mt.check("4 devices with the least memory or time are not listed" in lost, lost)


mt.main()
