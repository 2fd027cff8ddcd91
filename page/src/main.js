import "uplot/dist/uPlot.min.css";
import "./page.css";
import { el, fill, forgetColours } from "./dom.js";
import { bytes, seconds, cut } from "./format.js";
import { load, windowAt, valueOf, valuesOf, modes, work } from "./data.js";
import { state, set, read, follow, onchange, command, moment, when, secondsWord, isOf } from "./state.js";
import { setPalette, paletteName } from "./colours.js";
import { grouping } from "./groups.js";
import { drawTimeline, zoom, chooseRange, nameOfOnly, layersNow } from "./timeline.js";
import { drawFlame, modeButtons, treeOf, mark, shapes, escapeRegExp } from "./flame.js";
import { drawSite } from "./site.js";
import { drawMap } from "./map.js";
import { drawBlocks, blocksOf, stackOf } from "./blocks.js";
import { drawHolders } from "./holders.js";
import { drawOwners, drawGrowth, drawProcesses, drawHost, drawLost, drawChanges } from "./tabs.js";

const tabs = [["flame", "Flame graph"], ["owners", "Owners"], ["map", "Memory map"], ["blocks", "Blocks"], ["growth", "Growth"], ["processes", "Processes"], ["host", "Ledgers"], ["lost", "Lost and not known"], ["text", "As text"]];
let data, boxes, tree = null, dark = null;

window.memtrace = {}; // what tests look at

// ---- what is looked at ----

// That which was chosen, else what the verdict is about, else the largest.
function track() {
  const named = name => data.tracks.find(t => t.name === name && t.peak);
  return named(state.track) ?? named(data.raw.opens_on) ?? data.tracks.reduce((most, t) => t.peak > most.peak ? t : most);
}

// ---- the frame ----

function build() {
  const app = document.getElementById("app"), button = (name, title, f) => el("button", { type: "button", title, onclick: f }, name);
  boxes = {
    legend: el("div", { class: "legend" }), plot: el("div", { class: "plot", role: "img", "aria-label": "memory over time" }), strip: el("canvas", { class: "strip", tabIndex: 0, "aria-label": "range of time" }),
    nav: el("nav", { role: "tablist" }), command: el("code", { class: "command" }), low: el("div", { class: "low" }), left: el("div", { class: "left" }), right: el("aside", { class: "right", "aria-label": "details" }),
    bar: el("div", { class: "modes" }), flame: el("div", { class: "flame" }), moments: el("div", { class: "moments" }), tracks: el("select", { "aria-label": "memory", onchange: e => set({ track: e.target.value, node: "", map: "", q: "", only: "" }) }),
  };
  const text = document.getElementById("text");
  boxes.text = text;
  app.append(
    el("section", { class: "time" }, el("div", { class: "row" }, boxes.tracks, boxes.moments), boxes.legend, boxes.plot, boxes.strip),
    el("div", { class: "tabs" }, boxes.nav, boxes.command, button("Copy", "copy this command line", copy)),
    boxes.low, text);
  boxes.low.append(boxes.left, boxes.right);
  document.getElementById("tools").append(
    boxes.colours = button("Colours", "a palette for who sees colours differently", () => { setPalette(paletteName() === "usual" ? "clear" : "usual"); all(new Set(["theme"])); }),
    boxes.theme = button("Dark", "dark or light", chooseTheme), button("?", "keys", help));
  document.body.classList.add("scripted");
}

async function copy() {
  try { await navigator.clipboard.writeText(boxes.command.textContent); } catch {
    getSelection().selectAllChildren(boxes.command);
  }
}

function theme(on) {
  dark = on;
  document.documentElement.dataset.theme = on ? "dark" : "light";
  forgetColours();
  boxes.theme.textContent = on ? "Light" : "Dark";
  if (data) all(new Set(["theme"]));
}

// What was chosen is kept; else it is as the system has it.
function chooseTheme() {
  theme(!dark);
  try { localStorage.setItem("memtrace-theme", dark ? "dark" : "light"); } catch { /* a file may have no storage */ }
}

function firstTheme() {
  let kept = null;
  try { kept = localStorage.getItem("memtrace-theme"); } catch { /* the same */ }
  return (kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
}

function help() {
  const keys = [["o p e", "failure, peak, end"], ["[ ]", "the moment before, the one after"], [".", "forget range, filter and zoom"], ["1 to 9, 0", "tabs"], ["left, right", "in the picture of blocks: from one change to the next"], ["a g m t d", "alive, grew, allocated (made), temporary, difference"], ["/", "search; shift-click on a frame shows what goes through it alone"], ["Tab, arrows, Enter", "in the flame graph: into it, from frame to frame, choose"], ["i s", "inverted; callers and callees"], ["n", "number of blocks, not bytes"], ["+ -", "zoom in time, as the wheel does"], ["l", "dark or light"], ["?", "this"]];
  const old = document.querySelector("dialog");
  if (old) { old.remove(); return; }
  const box = el("dialog", {}, el("h2", {}, "Keys"), el("dl", { class: "facts" }, keys.map(([k, what]) => el("div", {}, el("dt", { class: "m" }, k), el("dd", {}, what)))), el("button", { type: "button", onclick: () => box.remove() }, "Close"));
  document.body.append(box);
  box.showModal();
  box.addEventListener("close", () => box.remove());
}

// ---- room ----

const PHONE = 700, VERDICT = 112, FLAME = 420, LEAST_PLOT = 104; // pixels; of a window 720 high

// The verdict is whole where there is room, else its sentences are lines that end with an ellipsis, and a button shows all.
function fitVerdict() {
  const most = Math.max(VERDICT, innerHeight * VERDICT / 720);
  for (const v of document.querySelectorAll(".verdict")) {
    const more = v.querySelector(".more") ?? el("button", { type: "button", class: "more", onclick: () => { v.classList.toggle("open"); fitVerdict(); layout(); drawTimelineAgain(); } });
    more.remove();
    v.classList.remove("tight", "tighter");
    if (innerWidth < PHONE) continue;
    const over = () => v.getBoundingClientRect().height > most, open = v.classList.contains("open");
    if (!over() && !open) continue;
    if (!open) {
      v.classList.add("tight");
      if (over()) v.classList.add("tighter");
    }
    more.textContent = open ? "less" : "all of it";
    v.append(more);
  }
}

// The chart gets what is left above the flame graph, which begins at a little more than half of the window.
function layout() {
  if (innerWidth < PHONE) { boxes.plot.style.height = ""; return; }
  boxes.plot.style.height = `${LEAST_PLOT}px`;
  const flame = boxes.low.getBoundingClientRect().top + scrollY + 8 + BAR, room = innerHeight * FLAME / 720 - flame;
  boxes.plot.style.height = `${Math.max(LEAST_PLOT, Math.round(LEAST_PLOT + room))}px`;
}

const BAR = 34; // of buttons above the flame graph

function drawTimelineAgain() {
  if (data?.tracks.some(t => t.peak)) drawTimeline(data, track(), boxes, new Set());
}

// ---- drawing ----

// As the report has it: to the event, where the page has its moment.
function peakTime(t) {
  const m = data.raw.moments.find(m => m.name === "Peak" && m.track === t.name);
  return seconds(m ? m.at_s : data.times[t.high.indexOf(t.peak) + 1]);
}

function drawRow() {
  const t = track();
  fill(boxes.tracks, data.tracks.filter(x => x.peak).map(x => el("option", { value: x.name, selected: x === t }, `${x.title}, peak ${bytes(x.peak)} at ${peakTime(x)}`)));
  const seen = new Set(), at = state.at || moment(data, t, "").command;
  const moments = data.raw.moments.filter(m => isOf(m, t) && !seen.has(m.at) && seen.add(m.at));
  const ooms = moments.filter(m => m.name === "OOM");
  const button = (name, title, on, f) => el("button", { type: "button", class: on ? "on" : "", title, "aria-pressed": String(on), onclick: f }, name);
  const by = grouping(t), ways = [["category", "by category"], ["site", "by line"], ...t.threads ? [["thread", "by thread"]] : [], ...t.processes.length > 1 ? [["process", "by process"]] : []];
  fill(boxes.moments,
    ways.map(([k, name]) => button(name, "what the colours are", by === k, () => set({ by: k, only: "" }))),
    el("span", { class: "gap" }),
    moments.map(m => button(ooms.length > 1 && m.name === "OOM" ? m.at.replace("oom", "OOM ").replace(":", "") : m.name, `at ${m.at_s} s`, at === m.at && state.mode === "alive", () => set({ at: m.at, mode: "alive", map: "" }))),
    phaseSelect());
}

function phaseSelect() {
  const phases = (data.report.phases ?? []).filter(p => p.end_s > p.start_s).slice(0, 200);
  if (!phases.length) return null;
  return el("select", { "aria-label": "phase", title: "a phase: its range", onchange: e => { const p = phases[Number(e.target.value)]; if (p) chooseRange(data, p.start_s, p.end_s); } },
    el("option", { value: "" }, "Before and after a phase"), phases.map((p, i) => el("option", { value: i }, p.name.slice(0, 80))));
}

function drawTabs() {
  fill(boxes.nav, tabs.map(([key, name]) => el("button", { type: "button", role: "tab", class: state.tab === key ? "here" : "", "aria-selected": String(state.tab === key), onclick: () => set({ tab: key }) }, name)));
  boxes.command.textContent = command(data, track());
  boxes.command.title = boxes.command.textContent;
}

function drawBar() {
  const owners = state.tab === "owners", t = track();
  const search = boxes.bar.querySelector("input") ?? el("input", { type: "search", placeholder: "search  /", "aria-label": "frames that match stand out; Filter shows their stacks alone",
    oninput: e => set({ find: e.target.value }, true), onkeydown: e => { if (e.key === "Escape") { set({ find: "" }); e.target.value = ""; e.target.blur(); } } });
  if (document.activeElement !== search) search.value = state.find;
  const held = document.activeElement === search, button = (name, title, on, f) => el("button", { type: "button", class: on ? "on" : "", title, "aria-pressed": String(on), onclick: f }, name);
  const filters = [state.q ? ["q", state.q] : null, state.only ? ["only", nameOfOnly(t)] : null].filter(f => f);
  boxes.bar.replaceChildren(...[...modeButtons(),
    owners ? null : el("select", { "aria-label": "shape of the flame graph", onchange: e => set({ shape: e.target.value, node: e.target.value === "sandwich" ? state.node : "" }) }, Object.entries(shapes).map(([key, s]) => el("option", { value: key, selected: state.shape === key, title: s.title }, s.name))),
    owners ? null : button("Blocks", "how many instead of how much", state.what === "blocks", () => set({ what: state.what ? "" : "blocks" })),
    owners ? null : button("Native", "frames below Python's too", !!state.native, () => set({ native: state.native ? "" : "1", node: "" })),
    search, button("Filter", "only stacks with a frame that matches what is searched for", false, () => { if (state.find) set({ q: escapeRegExp(state.find), find: "", node: "" }); }),
    ...filters.map(([key, name]) => el("button", { type: "button", class: "chip", title: "a click shows all again", onclick: () => set({ [key]: "", node: "" }) }, `only ${cut(name, 28)} \u00d7`)),
    el("span", { class: "found", role: "status" })].filter(x => x));
  if (held) search.focus();
}

const wide = { owners: b => drawOwners(data, track(), b), growth: b => drawGrowth(data, track(), b), processes: b => drawProcesses(data, b), host: b => drawHost(data, b), lost: b => drawLost(data, b), holders: b => drawHolders(data, b), changes: b => drawChanges(data, b) };

function drawLow(changed) {
  const light = changed && [...changed].every(k => k === "node" && state.shape !== "sandwich" || k === "find"); // the same graph
  const tab = tabs.some(([k]) => k === state.tab) ? state.tab : "flame";
  boxes.low.className = `low ${tab}`;
  boxes.low.hidden = tab === "text";
  boxes.text.hidden = tab !== "text";
  boxes.right.hidden = !["flame", "map", "blocks"].includes(tab);
  if (tab === "flame") {
    if (!light) {
      if (!boxes.left.contains(boxes.flame)) fill(boxes.left, boxes.bar, boxes.flame);
      drawBar();
      tree = drawFlame(data, track(), boxes.flame);
    } else if (changed.has("find")) {
      mark(data, tree, boxes.flame);
    }
    drawSite(data, track(), tree, boxes.right);
  } else if (tab === "map") {
    drawMap(data, track(), boxes.left, boxes.right);
  } else if (tab === "blocks") {
    drawBlocks(data, track(), boxes.left, boxes.right);
  } else if (wide[tab]) {
    if (tab === "owners") { fill(boxes.left, boxes.bar); drawBar(); const inner = el("div"); boxes.left.append(inner); wide[tab](inner); } else wide[tab](boxes.left);
  }
}

let pending = null;
function all(changed) {
  const start = performance.now();
  work.nodes = work.windows = 0;
  if (!changed || [...changed].some(k => !["node", "find", "shape", "what", "native", "tab", "way"].includes(k))) {
    if (!changed || ["track", "at", "mode", "by"].some(k => changed.has(k))) drawRow();
    const again = changed && !["track", "by", "theme"].some(k => changed.has(k));
    if (!again) drawTimeline(data, track(), boxes, null, layout); else drawTimeline(data, track(), boxes, changed);
  }
  drawTabs();
  drawLow(changed);
  window.memtrace.took = performance.now() - start;
  pending = null;
}

// One picture for all that changed since the last one.
function later(changed) {
  if (pending) { for (const k of changed) pending.add(k); return; }
  pending = new Set(changed);
  requestAnimationFrame(() => { const c = pending; all(c); });
}

// ---- keys ----

function goTo(name) {
  const t = track(), m = data.raw.moments.findLast(x => x.name === name && isOf(x, t));
  if (m) set({ at: m.at, mode: "alive", map: "" });
}

function step(by) {
  const at = moment(data, track(), state.at).at, next = Math.min(data.count - 1, Math.max(0, at + by));
  if (state.tab === "map") { set({ map: String(Math.max(0, (Number(document.querySelector("input[type=range]")?.value) || 0) + by)) }); return; }
  set({ at: secondsWord(data.times[next + 1]), mode: "alive" });
}

const keys = {
  o: () => goTo("OOM"), p: () => goTo("Peak"), e: () => goTo("End"), "[": () => step(-1), "]": () => step(1),
  ".": () => { zoom(data, 0, Infinity); set({ from: "", to: "", q: "", find: "", only: "", node: "", mode: "alive" }); },
  a: () => set({ mode: "alive" }), g: () => set({ mode: "grew" }), m: () => set({ mode: "allocated" }), t: () => set({ mode: "temporary" }), d: () => set({ mode: "difference" }),
  i: () => set({ shape: state.shape === "inverted" ? "" : "inverted", node: "" }), s: () => set({ shape: state.shape === "sandwich" ? "" : "sandwich" }), n: () => set({ what: state.what ? "" : "blocks" }),
  "/": () => { set({ tab: "flame" }); setTimeout(() => boxes.bar.querySelector("input")?.focus(), 60); },
  "+": () => zoom(data, (data.times[0] + data.times.at(-1)) / 2, 0.8), "-": () => zoom(data, (data.times[0] + data.times.at(-1)) / 2, 1.25),
  l: chooseTheme, "?": help,
};

function onkey(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  const f = keys[e.key];
  if (f) { e.preventDefault(); f(); }
}

// ---- begin ----

async function begin() {
  build();
  theme(firstTheme());
  data = await load();
  if (data.raw.holders.length) tabs.push(["holders", "Holders"]);
  if (data.raw.changes) tabs.push(["changes", "Changes"]);
  tabs.slice(0, 10).forEach(([key], i) => { keys[(i + 1) % 10] = () => set({ tab: key }); }); // 0 is the tenth, as on keyboards
  Object.assign(state, read());
  Object.assign(window.memtrace, { data, state, work, set, track, when, valueOf, valuesOf, treeOf, windowAt, layers: layersNow, blocks: () => stackOf(blocksOf(data, track())), seconds, command: () => command(data, track()) });
  if (!data.tracks.some(t => t.peak)) {
    document.getElementById("app").replaceChildren(el("p", { class: "empty" }, "No memory was recorded: there is nothing to draw. What is known stands below."));
    document.getElementById("app").append(boxes.text);
    document.body.dataset.ready = "1";
    return;
  }
  onchange(later);
  fitVerdict();
  all();
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  addEventListener("keydown", onkey);
  let resizing = 0;
  addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => { fitVerdict(); all(); }, 100); });
  window.memtrace.ready = performance.now();
  document.body.dataset.ready = "1";
}

begin().catch(e => {
  document.getElementById("app").append(el("p", { class: "empty" }, `The page can't draw its data in this browser (${e.message}). The report as text is below.`));
  document.body.dataset.ready = "failed";
  window.memtrace.error = String(e.stack ?? e);
});
