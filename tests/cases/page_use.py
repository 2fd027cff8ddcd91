#!/usr/bin/env python3
"""How a page is used, in a real browser: its pointer, keys and history, the room that its parts take, and that a figure is the same
wherever it stands."""
# timeout: 300
import json
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import browser
import cases
import mt
import page_checks
import trace as writer

PICTURE = "await new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));"


# ---- figures ----

def case_imports_have_one_figure():
    """In the flame graph, among owners and in the legend it is the report's."""
    trace = mt.shimmed([mt.python(), "-c", "import decimal, email.message, http.client, json, unittest\nkeep = [bytearray(5000) for _ in range(400)]"]).trace.settle()
    size, = re.findall(r"^ *([0-9.]+ [KM]iB) .* imported modules$", mt.execute([mt.MEMTRACE, "report", "--all", trace.path]).out, re.M)[:1]
    flame, shown, legend = browser.ask(browser.page(trace.path), """
        const node = memtrace.tree.children.filter(c => c.name.startsWith("imported modules"));
        const legend = [...document.querySelectorAll(".legend .key")].map(e => e.textContent).filter(t => t.startsWith("imported modules"));
        memtrace.set({ tab: "owners" });
        %s
        const rows = [...document.querySelectorAll("table[aria-label=Owners] tbody tr")].map(tr => tr.textContent).filter(t => t.includes("imported modules"));
        return [node.map(n => n.value), rows, legend];""" % PICTURE, hash="#track=heap&at=peak&by=site")
    number, unit = size.split()
    scale = {"KiB": 1 << 10, "MiB": 1 << 20}[unit]
    mt.check(len(flame) == 1 and abs(flame[0] / scale - float(number)) <= 0.051, "%s in the report, %s in the flame graph" % (size, flame))
    same = lambda text: float(re.search(r"([0-9.]+) %s" % unit, text).group(1))
    for text in [*shown, *legend]:
        mt.check(abs(same(text) - float(number)) <= 0.051, "%s in the report, and %s" % (size, text))
    mt.check(len(shown) == 1 and len(legend) == 1, "%s, %s" % (shown, legend))


def case_the_frame_that_is_shown_first():
    """That which has most of its own, not a small one of what modules need; where there is nothing else, one of those."""
    modules = "import asyncio, decimal, email.message, http.client, json, unittest\n"
    for code, want in ((modules + "def load():\n    return bytearray(90000)\nkeep = [load() for _ in range(3)]", "^load$"), (modules, ".")):
        trace = mt.shimmed([mt.python(), "-c", code]).trace.settle()
        title, modules_bytes, shown = browser.ask(browser.page(trace.path), """
            const n = memtrace.tree.children.find(c => c.name.startsWith("imported modules"));
            return [document.querySelector(".right h2").textContent, n.value, document.querySelector(".right .big").textContent];""", hash="#track=heap&at=peak")
        mt.check(re.search(want, title) and modules_bytes > 1 << 20, "%s %s beside %d bytes of modules" % (title, shown, modules_bytes))


def case_growth_of_an_inner_function():
    """What grows is said beside its frame, also of a function within another one, which lists name without <locals>."""
    code = ("import time\ndef main():\n    kept = []\n    def keep():\n        kept.append(bytearray(100000))\n"
            "    for _ in range(400):\n        keep()\n        bytearray(300000)\n        time.sleep(0.003)\nmain()\n")
    trace = mt.shimmed([mt.python(), "-c", code]).trace.settle()
    title, said = browser.ask(browser.page(trace.path), "return [document.querySelector('.right h2').textContent, document.querySelector('.right .facts').innerText.replace(/\\s+/g, ' ')]")
    mt.check(title == "main.<locals>.keep" and re.search(r"grows by \d.* a (step|second) \u00b1 .*, linear certainty ", said), "%s: %s" % (title, said))


SERVER = """#include <map>
#include <vector>
std::map<int, std::vector<char>> sessions;
void handle(int id)
{
    std::vector<char> body(20000, 'x');
    sessions[id] = std::vector<char>(3000);
    if (id % 4)
        sessions.erase(id);
}
int main() { for (int id = 0; id < 20000; id++) handle(id); }
"""


def case_growth_of_a_function_with_arguments():
    """The same of C++, where lists name a function without its arguments."""
    path = os.path.join(mt.scratch("server"), "server")
    with open(path + ".cc", "w", encoding="utf-8") as file:
        file.write(SERVER)
    mt.equal(mt.execute([mt.need("c++"), "-g", "-O1", "-o", path, path + ".cc"]).status, 0, "status of the compiler")
    trace = mt.shimmed([path]).trace.settle()
    title, said = browser.ask(browser.page(trace.path), "return [document.querySelector('.right h2').textContent, document.querySelector('.right .facts').innerText.replace(/\\s+/g, ' ')]")
    mt.check(title == "handle(int)" and re.search(r"grows by \d.* [a-z]+ certainty ", said), "%s: %s" % (title, said))


def case_categories_are_the_reports():
    """To the byte, with those of the smallest sites, in the chart, its legend and the flame graph that a click on it shows."""
    trace = mt.shimmed([mt.python(), "-c", "import asyncio, decimal, email.message, http.client, json, unittest, xml.dom.minidom\nkeep = [bytearray(5000) for _ in range(400)]"]).trace.settle()
    want = {name: size for name, size in trace.report["categories"]["host"].items() if size}
    layers, all_, alone, legend = browser.ask(browser.page(trace.path), """
        const d = memtrace.data, w = memtrace.when(d, memtrace.track()), layers = Object.fromEntries(memtrace.layers().list.map(l => [l.key || "others", l.values[w.at]]).filter(([, v]) => v));
        const legend = [...document.querySelectorAll(".legend .key")].map(e => e.textContent), all = memtrace.track().high[w.at], alone = {};
        for (const key of Object.keys(layers)) { memtrace.set({ only: `=${key}` }); %s alone[key] = memtrace.tree.value; }
        return [layers, all, alone, legend];""" % PICTURE, hash="#track=heap&at=peak&by=category")
    mt.equal((layers, sum(layers.values()), alone), (want, all_, want), "in the chart, all of it, and each alone")
    mt.check(len(want) > 1 and any(text.startswith("context ") for text in legend), "%s %s" % (want, legend))


def case_resident_counts_shared_pages_once():
    """What forked processes share is there once: in the chart as in the ledger."""
    code = ("import os, time\nkeep = bytearray(b'x') * (40 << 20)\nbusy = lambda: [(bytearray(5000), time.sleep(0.01)) for _ in range(250)] and None\npids = []\n"
            "for _ in range(5):\n    pid = os.fork()\n    if not pid:\n        busy()\n        os._exit(0)\n    pids.append(pid)\n"
            "busy()\nfor pid in pids: os.waitpid(pid, 0)\n")
    trace = mt.shimmed([mt.python(), "-c", code]).trace.settle()
    resident, peak, lines = browser.ask(browser.page(trace.path), """
        const d = memtrace.data, line = memtrace.layers().lines.find(l => l.name.startsWith("resident"));
        return [Math.max(...d.raw.resident.bytes), d.report.system.resident_peak_bytes, line?.peak];""", hash="#track=heap")
    mt.equal((resident, lines), (peak, peak), "the chart's highest, and the ledger's")
    mt.between(40 << 20, peak, 150 << 20, "of 40 MiB that six processes share, and what each has of its own")
    changes = json.loads(mt.execute([mt.MEMTRACE, "diff", "--json", page_checks.generated("leak")[0].path, trace.path]).out)
    mt.equal([row["after_bytes"] for row in changes["system"] if row["figure"] == "resident peak"], [peak], "what memtrace diff has")


@mt.variants("fragmentation", "other_process", "capacity")
def case_all_of_a_device_is_in_its_chart(kind):
    """Up to its capacity; at the failure what the chart stacks are the rows of the ledger."""
    trace, page = page_checks.generated(kind)
    ledger, total = trace.report["devices"][0]["ledger"], trace.report["devices"][0]["total_bytes"]
    got = browser.ask(page, """
        const d = memtrace.data, l = memtrace.layers(), at = memtrace.windowAt(d, d.report.devices[0].ledger.at_s), sum = f => l.list.filter(f).reduce((a, x) => a + x.values[at], 0);
        return { rest: Object.fromEntries(l.list.filter(x => x.rest).map(x => [x.key.slice(5), x.values[at]])), own: sum(x => !x.rest), all: sum(() => true),
                 over: Math.max(...d.times.slice(1).map((t, i) => l.list.reduce((a, x) => a + x.values[i], 0))) };""")
    rest = {key: got["rest"].get(key, 0) for key in ("unused", "outside", "contexts", "neighbours", "unexplained", "free")}
    mt.equal(got["own"], ledger["pool_allocated"], "blocks of the pool")
    mt.equal((rest["unused"], rest["outside"] + rest["contexts"], rest["neighbours"]), (ledger["pool_free"], ledger["other_own"], ledger["other_processes"] or 0), "unused, outside, others")
    mt.equal((rest["unexplained"], rest["free"]), (max(0, ledger["unexplained"] or 0), ledger["free"]), "not explained, free")
    mt.equal((got["all"], got["over"] <= total * 1.001), (total, True), "all of it; at any time")


MIB = 1 << 20
CONTEXTS = (4001, 2.0, 12.0, 300 * MIB), (4002, 14.0, 20.0, 500 * MIB)  # pid, first memory, end, bytes of the context
SAMPLED, NEIGHBOUR = 1.5, (5.0, 2048 * MIB)  # from when on; of somebody who is not traced from when on so much


def written_contexts():
    """Two processes, one after the other, whose memory moves all the time but for the last two seconds; what the driver says each half second, of
    the device before its processes."""
    t = writer.Trace(os.path.join(mt.scratch("contexts"), "trace"))
    device, subject, held = "GPU-00000000", {}, {}
    whole, neighbour = t.samples.subject("DEVICE", (1, 0, 0), device, "Stand-in"), t.samples.subject("DEVICE_PROCESS", (1, 5000, 5000), device, "other")
    for pid, begin, end, context in CONTEXTS:
        p = t.process(pid, ["python", "train.py"], begin - 2.0)
        number, subject[pid], held[pid] = p.device(0, device, 5 << 30), t.samples.subject("DEVICE_PROCESS", (1, pid, pid), device, "python"), []
        for i in range(int((end - begin - 2.0) / 0.02)):
            p.at(begin + 0.02 * i)
            p.alloc(number, writer.DEVICE, 4 * MIB, p.stack(("/app/train.py", "main", 7)))
            held[pid].append(p.now)
        p.at(end)
    for i in range(int(2 * SAMPLED), 42):
        has = {subject[pid]: sum(4 * MIB for at in held[pid] if at < i / 2) + context for pid, begin, end, context in CONTEXTS if begin - 0.01 < i / 2 < end}
        has.update({neighbour: NEIGHBOUR[1]} if i / 2 >= NEIGHBOUR[0] else {})
        t.samples.say(i / 2, whole, total=5 << 30, used=sum(has.values()), free=(5 << 30) - sum(has.values()))
        for one, size in has.items():
            t.samples.say(i / 2, one, bytes=size, known=1)
    t.save()
    return t.path


def case_a_context_is_there_from_its_first_memory_on():
    """To the end of its process, though what it takes is known only later, when that memory stands still."""
    context, unexplained, others, free, times = browser.ask(browser.page(written_contexts()), """
        const d = memtrace.data, of = key => [...memtrace.layers().list.find(l => l.key === `rest:${key}`)?.values ?? new Float64Array(d.count)];
        return [...["contexts", "unexplained", "neighbours", "free"].map(of), d.times];""")
    want = lambda begin, end: next((size for _, first, last, size in CONTEXTS if begin < last - 0.1 and end > first + 0.1), 0)
    edge = lambda begin, end: any(begin - 0.2 < at < end + 0.2 for _, first, last, _ in CONTEXTS for at in (first, last))
    wrong = [(a, b, found) for a, b, found in zip(times, times[1:], context) if not edge(a, b) and found != want(a, b)]
    mt.check(not wrong and max(unexplained) == 0, "contexts of windows: %s; unexplained %s" % (wrong[:5], max(unexplained)))
    ends = [(end, bool(a), bool(b)) for end, a, b in zip(times[1:], others, free) if all(abs(end - at) > 0.1 for at in (SAMPLED, NEIGHBOUR[0]))]
    mt.equal([(end, a, b) for end, a, b in ends if (a, b) != (end > NEIGHBOUR[0], end > SAMPLED)], [], "windows, whether others were seen, and what is free")


def case_a_failure_is_on_each_memory_of_its_device():
    _, page = page_checks.generated("capacity")
    for track in ("cuda:0", "cuda:0 pool"):
        marks, buttons, at = browser.ask(page, """
            return [memtrace.layers().failures.length, [...document.querySelectorAll(".moments button")].map(b => b.textContent), memtrace.when(memtrace.data, memtrace.track()).name];""", hash="#track=" + track.replace(" ", "%20"))
        mt.check(marks and "OOM" in buttons and at == "OOM", "%s: %s marks, %s, at %s" % (track, marks, buttons, at))


MAPPED = "import mmap, time\nkeep = []\nfor i in range(60):\n    keep.append(mmap.mmap(-1, 4 << 20))\n    bytearray(1 << 20)\n    time.sleep(0.005)\n"


@mt.variants("leak", "host_leak", "capacity", "mapped", "heap")
def case_opens_on_what_is_said_first(kind):
    """On the memory that failed, else that of the first verdict, else that whose growth or peak is named, whatever else is larger."""
    code = {"mapped": MAPPED, "heap": MAPPED + "bulk = [bytearray(50000) for _ in range(4000)]"}.get(kind)
    page = browser.page(mt.shimmed([mt.python(), "-c", code]).trace.settle().path) if code else page_checks.generated(kind)[1]
    name, first, larger = browser.ask(page, """
        const d = memtrace.data, t = memtrace.track();
        return [t.name, document.querySelector("#verdict").innerText, d.tracks.filter(x => x.peak > t.peak).map(x => x.name)];""")
    want, words = {"leak": ("cuda:0 pool", "cuda:0"), "capacity": ("cuda:0 pool", "GPU 0"), "host_leak": ("heap", "heap"),
                   "mapped": ("map", " mapped at "), "heap": ("heap", " of heap at ")}[kind]
    mt.check(name == want and words in first, "it opens on %s, and says %s" % (name, first))
    mt.check(larger or kind != "heap", "nothing else is larger, so this case shows little")


def case_short_times_are_told():
    """A step of less than a millisecond is not 0.000 s."""
    _, page = page_checks.generated("leak")
    mt.equal(browser.ask(page, "return [0, 0.00000042, 0.0000123, 0.00042, 0.002, 12.3].map(memtrace.seconds)"), ["0.000 s", "420 ns", "12 \u00b5s", "0.42 ms", "0.002 s", "12.3 s"])


# ---- pointer ----

PLACES = """[...document.querySelectorAll("header, .verdict, .time, .legend, .plot, .tabs, .low, .legend .key")].map(e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })"""


def case_a_box_is_at_the_pointer():
    """It has the time, the step and the phase, and each colour that there is at that moment; nothing else moves."""
    _, page = page_checks.generated("leak")
    x, y = browser.ask(page, "const b = document.querySelector('.u-over').getBoundingClientRect(); return [Math.round(b.left + b.width * 0.8), Math.round(b.top + b.height / 2)]", width=1280, height=720)
    box, text, want, before, after = browser.ask(page, """
        const b = document.querySelector(".hover").getBoundingClientRect(), l = memtrace.layers(), d = memtrace.data;
        const over = document.querySelector(".u-over").getBoundingClientRect(), at = memtrace.windowAt(d, d.times[0] + (%d - over.left) / over.width * (d.times.at(-1) - d.times[0]));
        return [[b.left, b.top, b.width], document.querySelector(".hover").innerText, [l.list.filter(x => x.values[at] > 0).map(x => x.name), memtrace.seconds(d.times[at + 1])], window.places, %s];""" % (x, PLACES),
        width=1280, height=720, acts=[{"run": "window.places = " + PLACES}, {"move": [x, y]}])
    mt.equal(after, before, "where everything is, before and after")
    mt.check(abs(box[0] - x) < 40 or abs(box[0] + box[2] - x) < 40, "the box is at %s, the pointer at %d" % (box, x))
    for words in [*want[0], want[1], "step "]:
        mt.check(words in text, "%r is not in %r" % (words, text))
    gone = browser.ask(page, "return document.querySelector('.hover').hidden", width=1280, height=720, acts=[{"move": [x, y]}, {"move": [x, 5]}])
    mt.check(gone, "it stays when the pointer has gone")


def case_legend():
    """An entry for each colour; a click shows it alone in the chart, the flame graph and among owners."""
    _, page = page_checks.generated("leak")
    names, want, alone, sums, state = browser.ask(page, """
        document.querySelector(".legend .more")?.click();
        const names = [...document.querySelectorAll(".legend .key")].map(e => e.textContent), want = memtrace.layers().list.filter(l => l.values.some(v => v > 0)).map(l => l.name);
        const entry = [...document.querySelectorAll(".legend .key")].find(e => e.textContent.startsWith("optimizer"));
        entry.click();
        %s
        const d = memtrace.data, t = memtrace.track(), w = memtrace.when(d, t);
        const categories = new Set();
        (function look(n) { n.stacks?.forEach(s => categories.add(s.category)); n.children.forEach(look); })(memtrace.tree);
        const sum = memtrace.tree.value, own = t.stacks.filter(s => s.category === "optimizer").reduce((a, s) => a + memtrace.valueOf(s, "alive", w), 0);
        return [names, want, [...categories], [sum, own], [memtrace.state.only, document.querySelector(".chip")?.textContent]];""" % PICTURE, width=1280, height=720)
    for name in want:
        mt.check(any(n.startswith(name[:30]) for n in names), "%s has no entry: %s" % (name, names))
    mt.equal((alone, sums[0]), (["optimizer"], sums[1]), "what the flame graph has")
    mt.check(state[0] == "=optimizer" and "optimizer" in state[1], state)


# ---- keys and history ----

def case_keys_in_the_flame_graph():
    """Tab goes into it, arrows from frame to frame, Enter chooses."""
    _, page = page_checks.generated("capacity")
    where = "window.went = [...window.went ?? [], document.activeElement.__data__?.data.node.name ?? document.activeElement.tagName];"
    keys = ["Tab", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowRight"]
    acts = [{"run": "document.querySelector('.modes').lastElementChild.previousElementSibling.focus()"}]
    for key in keys:
        acts += [{"key": key}, {"run": where}]
    went, node, tree = browser.ask(page, """
        const row = n => [...n.children].sort((a, b) => b.value - a.value).map(c => c.name), t = memtrace.tree, first = [...t.children].sort((a, b) => b.value - a.value)[0];
        return [window.went, memtrace.state.node, [t.name, row(t), row(first)]];""", acts=[*acts, {"key": "Enter"}], width=1280, height=720)
    root, top, inner = tree
    mt.equal(went, [root, top[0], inner[0], top[0], top[1]], "frames that have the focus")
    mt.check(node, "Enter chose nothing")


def case_back_goes_a_state_back():
    _, page = page_checks.generated("leak")
    written = {"run": "await new Promise(done => setTimeout(done, 100))"}  # the address follows what is seen
    acts = [act for key in "g2p" for act in ({"key": key}, written)]
    state, hash_, tabs = browser.ask(page, "return [memtrace.state, location.hash, document.querySelector('nav .here').textContent]", acts=[*acts, {"back": True}, written, {"back": True}, written])
    mt.equal((state["mode"], state["tab"], tabs), ("grew", "flame", "Flame graph"))
    mt.equal(hash_, "#mode=grew")


def case_in_a_notebooks_frame():
    """A page in a page has no address of its own: nothing fails, and it works."""
    _, page = page_checks.generated("capacity")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    outer = page + ".outer.html"
    with open(outer, "w", encoding="utf-8") as file:
        file.write('<!doctype html><body><iframe style="width: 1200px; height: 700px" srcdoc="%s"></iframe><script>\n'
                   "const wait = setInterval(() => { if (frames[0].document.body?.dataset.ready) { clearInterval(wait); document.body.dataset.ready = '1'; } }, 50);</script>" % text.replace("&", "&amp;").replace('"', "&quot;"))
    said = browser.say(outer, """
        const inner = frames[0];
        inner.memtrace.set({ mode: "grew" });
        inner.memtrace.set({ tab: "owners" });
        await new Promise(done => setTimeout(done, 300));
        return [inner.memtrace.state.tab, inner.document.querySelectorAll("table[aria-label=Owners] tbody tr").length];""")
    mt.check(said["value"][0] == "owners" and said["value"][1] > 0, said["value"])
    mt.equal((said["errors"], [c for c in said["console"] if "error" in c]), ([], []), "complaints")


def case_search_marks_and_filter_shows_alone():
    _, page = page_checks.generated("capacity")
    all_, frames, hits, label, filtered, q = browser.ask(page, """
        const all = memtrace.tree.value, count = () => document.querySelectorAll("g.frame").length, before = count(), input = document.querySelector(".modes input");
        input.value = "forward";
        input.dispatchEvent(new Event("input", { bubbles: true }));
        %s
        const found = [before === count(), document.querySelectorAll("g.hit").length, document.querySelector(".found").textContent];
        [...document.querySelectorAll(".modes button")].find(b => b.textContent === "Filter").click();
        %s
        return [all, found[0], found[1], found[2], memtrace.tree.value, memtrace.state.q];""" % (PICTURE, PICTURE))
    mt.check(frames and hits > 1 and re.match(r"forward: [0-9.]+ GiB, \d+ % in \d+ frames$", label), "%s, %s, %r" % (frames, hits, label))
    mt.check(0 < filtered < all_ and q == "forward", "%s of %s, %s" % (filtered, all_, q))


def case_shapes_have_the_same_bytes():
    """Inverted, it begins with who allocated; of one function its callers and what it called have as much as it has."""
    _, page = page_checks.generated("capacity")
    usual, inverted, sandwich = browser.ask(page, """
        const out = [[memtrace.tree.value]], leaf = f => { let n = memtrace.tree; return n.by; };
        memtrace.set({ shape: "inverted" });
        %s
        out.push([memtrace.tree.value, [...memtrace.tree.by.values()].map(n => n.name.split(" ")[0])]);
        const f = [...memtrace.tree.by.values()].sort((a, b) => b.value - a.value)[0];
        memtrace.set({ shape: "sandwich", node: String(f.frame) });
        %s
        out.push([f.value, memtrace.tree.sandwich.value, memtrace.tree.by.get(f.frame).value, document.querySelectorAll(".flame svg").length]);
        return out;""" % (PICTURE, PICTURE))
    mt.equal(inverted[0], usual[0], "bytes")
    mt.check("Block.forward" in inverted[1] and "<module>" not in inverted[1], inverted)
    mt.equal(sandwich, [sandwich[0], sandwich[0], sandwich[0], 2])


def case_threads_have_their_own_flame_graphs():
    """What each thread keeps stands under its name, and adds up to what `peak --by thread` says; by line it is under none."""
    program = ("import threading\nkeep = []\ndef work(n):\n    keep.extend(bytearray(100_000 * n) for _ in range(20))\n"
               "for n in (1, 3):\n    t = threading.Thread(target=work, args=(n,))\n    t.start()\n    t.join()\n")
    trace = mt.shimmed([mt.python(), "-c", program]).trace.settle()
    threads, lines = browser.ask(browser.page(trace.path, options=("--by", "thread")), """
        const first = () => [...memtrace.tree.by.values()].map(n => [n.name.trim(), n.value]);
        const out = [first()];
        memtrace.set({ by: "site" });
        %s
        return [...out, first()];""" % PICTURE, hash="#track=heap&at=peak")
    want = {s["label"]: s["bytes"] for s in trace.json("peak", "-n", "all", "--device", "host", "--by", "thread")["sites"] if s["memory"] == "heap"}
    largest = sorted(want, key=want.get)[-2:]
    for name in largest:
        mt.equal(dict(threads)[name], want[name], "bytes of %s" % name)
    mt.check([2.0e6 <= want[name] <= 6.2e6 for name in largest] == [True, True], want)
    mt.equal([name for name, _ in lines if name in want], [], "by line")


def case_blocks_beside_bytes():
    """Blocks at the peak are the report's; what is made and freed at once is counted as memtrace report does."""
    trace = mt.shimmed([mt.python(), "-c", "keep = []\nfor i in range(3000):\n    bytearray(3000)\n    if i % 10 == 0: keep.append(bytearray(2000))\n"]).trace.settle()
    blocks, temporary = browser.ask(browser.page(trace.path), """
        memtrace.set({ what: "blocks" });
        %s
        const alive = memtrace.tree.value;
        memtrace.set({ mode: "temporary" });
        %s
        const most = [...memtrace.tree.by.values()].sort((a, b) => b.value - a.value)[0];
        return [alive, [most.name, most.value]];""" % (PICTURE, PICTURE), hash="#track=heap&at=end")
    end = trace.json("peak", "-n", "all", "--device", "host", "--at", "end")
    mt.equal(blocks, sum(s["blocks"] for s in end["sites"] if s["memory"] == "heap"), "blocks alive at the end")
    mt.check(temporary[0].startswith("<module>") and temporary[1] >= 2900, "made and freed at once: %s" % temporary)


# ---- room ----

@mt.variants("capacity", "leak", "other_process_traced", "fragmentation")
def case_there_is_room(kind):
    """At 1280 by 720 for the verdict, the chart, and eleven rows of the flame graph; the chart grows with the window, and a phone has all of the verdict."""
    _, page = page_checks.generated(kind)
    ask = """
        const box = q => document.querySelector(q).getBoundingClientRect(), cut = [...document.querySelectorAll(".verdict h1, .verdict p, .verdict li, .verdict dd")].filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" || e.getBoundingClientRect().right > innerWidth).map(e => e.textContent);
        return [box(".verdict").height, box(".flame").top, box(".plot").height, cut, document.querySelector(".verdict .more")?.textContent, document.documentElement.scrollWidth];"""
    verdict, flame, plot, cut, more, _ = browser.ask(page, ask, width=1280, height=720)
    mt.check(verdict <= 112 and flame <= 421 and (720 - flame) / 22 >= 11, "verdict %s, flame graph at %s" % (verdict, flame))
    mt.check(plot >= 104 and (more or not cut), "chart %s; cut without a way to see it: %s" % (plot, cut))
    if more:
        opened = browser.ask(page, "document.querySelector('.verdict .more').click();" + ask, width=1280, height=720)
        mt.equal((opened[3], opened[4]), ([], "less"), "cut when all of it is asked for")
    large = browser.ask(page, ask, width=2560, height=1300)
    mt.check(large[2] > 2 * plot, "the chart is %s and %s high" % (plot, large[2]))
    phone = browser.ask(page, ask, width=390, height=844)
    mt.equal(phone[3:], [[], None, 390], "cut on a phone, and how wide it is there")


def case_text_is_cut_at_its_end():
    """A long name keeps its beginning, a path its end."""
    folder = os.path.join(mt.scratch("long"), "a" * 60, "b" * 60)
    os.makedirs(folder)
    script = os.path.join(folder, "deep.py")
    name = "allocates_" + "z" * 120
    with open(script, "w", encoding="utf-8") as file:
        file.write("def %s():\n    return bytearray(4 << 20)\nkeep = [%s() for _ in range(4)]\n" % (name, name))
    title, place, head = browser.ask(browser.page(mt.shimmed([mt.python(), script]).trace.settle().path), "return [document.querySelector('.right h2').textContent, document.querySelector('.right .place').textContent, document.querySelector('.verdict h1').textContent]", hash="#track=heap&at=peak")
    mt.check(title.startswith("allocates_zz") and title.endswith("\u2026"), title)
    mt.check(place.startswith("\u2026") and place.endswith("/deep.py:2"), place)
    mt.check(re.search(r"\d % of it deep\.py:2 allocates_z+", head), "a sentence that a terminal wraps is one here: %s" % head)


mt.main()
