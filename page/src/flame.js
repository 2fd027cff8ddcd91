// The flame graph (icicle) of a moment or a range.
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import { el, fill, css } from "./dom.js";
import { bytes, count, percent, seconds, shown, cut, cutPath } from "./format.js";
import { state, set, when } from "./state.js";
import { valuesOf, frameName, framePlace, modes, blocksOf, hasBlocks, work } from "./data.js";
import { showAt, hide } from "./hover.js";
import { stackGroups, grouping } from "./groups.js";

const MOST_DEPTH = 60, LEAST = 0.8; // pixels
let shift = false;

const matcher = text => { try { return text ? new RegExp(text, "i") : null; } catch { return null; } };
const says = (data, re, f) => re.test(frameName(data, f)) || re.test(framePlace(data, f)) || re.test(data.frames[f][1] ?? "");

// Which stacks are looked at: those with a frame that matches, and of the colour that is shown alone; null = all.
export function filterOf(data, track) {
  let re = null;
  try { re = state.q ? new RegExp(state.q) : null; } catch { /* as if there was none */ }
  const groups = stackGroups(data, track), only = state.only && grouping(track) !== "process" ? s => `=${groups.of(s)}` === state.only : null;
  if (!re && !only) return null;
  return s => (!only || only(s)) && (!re || s.path.some(f => says(data, re, f)));
}

const isPython = (data, f) => data.frames[f][4] === "python";

// Names that a stack stands under: its thread's, where threads are told apart and colours are theirs, and what the report's
// lists have for it, as imported modules.
function namesOf(data, stack, path) {
  const thread = stack.thread >= 0 && grouping(stack.track) === "thread" ? [stack.thread] : [];
  return stack.label >= 0 && path[0] !== stack.label ? [...thread, stack.label] : thread;
}

// Python first: of a stack with frames of Python those alone, unless native ones are asked for.
const pythonPath = (data, stack) => {
  const python = state.native ? [] : stack.path.filter(f => isPython(data, f));
  return python.length ? python : stack.path;
};

export function shownPath(data, stack) {
  const path = pythonPath(data, stack);
  return [...namesOf(data, stack, path), ...path];
}

export const shapes = {
  "": { name: "from callers", title: "who called stands above whom it called" },
  inverted: { name: "inverted", title: "who allocated stands first, and below who called that" },
  sandwich: { name: "callers, callees", title: "of the chosen function: above who called it, below what it called, in all stacks that have it" },
};

function unknownNode(root, name, value, delta) {
  root.children.push({ name, value, delta, children: [], others: true, stacks: [], up: root });
}

// Added up along `along(stack)`, which are frame numbers; by its usual path if there is none. null = not of this stack.
export function treeOf(data, track, mode, at, filter, along = null, what = "") {
  const { list, rest, all } = valuesOf(track, mode, at, filter, what);
  const signed = mode === "difference" || mode === "grew";
  const root = { name: track.title, value: 0, delta: 0, blocks: 0, children: [], by: new Map(), path: [] };
  let unknown = 0, unknownDelta = 0;
  for (const { stack, value } of list) {
    if (mode === "grew" && value < 0) continue;
    const path = along ? along(stack) : shownPath(data, stack);
    if (!path) continue;
    const size = signed ? Math.abs(value) : value, blocks = mode === "allocated" || mode === "temporary" ? 0 : blocksOf(stack, mode, at);
    let node = root;
    node.value += size;
    node.delta += value;
    node.blocks += blocks;
    if (!stack.path.length) { unknown += size; unknownDelta += value; }
    for (const f of path.slice(0, MOST_DEPTH)) {
      let child = node.by.get(f);
      if (!child) {
        child = { name: shown(`${frameName(data, f)} ${framePlace(data, f)}`), frame: f, value: 0, delta: 0, blocks: 0, children: [], by: new Map(), parts: new Map(), stacks: [], up: node };
        node.by.set(f, child);
        node.children.push(child);
      }
      child.value += size;
      child.delta += value;
      child.blocks += blocks;
      child.stacks.push(stack);
      child.parts.set(stack, (child.parts.get(stack) ?? 0) + size);
      node = child;
    }
  }
  if (unknown) unknownNode(root, "no stack", unknown, unknownDelta);
  const left = signed ? Math.abs(rest) : Math.max(0, rest);
  if (left > 0 && (mode !== "grew" || rest > 0) && state.shape !== "sandwich") {
    root.value += left;
    root.delta += rest;
    unknownNode(root, "others: small sites, or no stack", left, rest);
  }
  root.all = all;
  return root;
}

// The names of a stack stay first.
function invertedPath(data, stack) {
  const path = pythonPath(data, stack), names = namesOf(data, stack, path), own = stack.label >= 0 && path[0] === stack.label && path.length > 1 ? 1 : 0;
  return [...names, ...path.slice(0, own), ...path.slice(own).reverse()];
}

// From a frame inwards, or outwards; a function that calls itself counts once: from its outermost call inwards.
const inwards = (data, f) => stack => { const path = shownPath(data, stack), i = path.indexOf(f); return i < 0 ? null : path.slice(i); };
const outwards = (data, f) => stack => { const path = shownPath(data, stack), i = path.indexOf(f); return i < 0 ? null : path.slice(0, i + 1).reverse(); };

// The colour of what most of its bytes are.
function colourOf(node, groups, mode) {
  if (!node.up || node.others) return css("--hole");
  if (mode === "difference") return node.delta >= 0 ? css("--more") : css("--less");
  let best = null, most = -1;
  for (const [stack, value] of node.parts) if (value > most) { most = value; best = stack; }
  return groups.colour(best);
}

// What there is to see: children that together are too narrow to be drawn are left out, else they are one.
function drawnOf(node, least) {
  work.nodes++;
  const children = [];
  let small = 0, count = 0, delta = 0;
  for (const child of node.children) {
    if (child.value >= least) { children.push(drawnOf(child, least)); continue; }
    small += child.value;
    delta += child.delta;
    count++;
  }
  if (small >= least) {
    const name = `${count} small ones`;
    work.nodes++;
    children.push({ name, value: small, node: { name, value: small, delta, children: [], others: true, stacks: [], up: node }, children: [] });
  }
  return { name: node.name, value: node.value, node, children };
}

// A chart of a node's part. `up`: its root is the lowest row.
function chartOf(data, track, root, all, box, { up = false, name = null } = {}) {
  const width = box.clientWidth - 2, groups = stackGroups(data, track), inner = el("div", { class: up ? "callers-graph" : "" });
  box.append(inner);
  const chart = flamegraph().width(width).cellHeight(22).inverted(!up).transitionDuration(0).minFrameSize(0).selfValue(false)
    .sort((a, b) => b.data.value - a.data.value)
    .setColorMapper(d => colourOf(d.data.node, groups, state.mode))
    .tooltip(Object.assign(() => 0, { show: (event, d) => describe(event.clientX, event.clientY, data, d.data.node, all), hide, destroy: hide }))
    .onClick(d => {
      const node = d.data.node;
      hide();
      if (node.frame === undefined) { set({ node: "" }); return; }
      if (shift) set({ q: escapeRegExp(frameName(data, node.frame)), node: "" });
      else set({ node: state.shape === "sandwich" ? String(node.frame) : pathText(node) });
    });
  chart.getName(d => d.depth || !name ? `${d.data.node.name}  ${figure(state.mode === "difference" ? d.data.node.delta : d.data.value)}` : name);
  select(inner).datum(drawnOf(root, root.value / width * LEAST)).call(chart);
  inner.querySelectorAll("g.frame").forEach(g => {
    const d = g.__data__, node = d.data.node;
    g.tabIndex = d.depth ? -1 : 0;
    g.setAttribute("role", "button");
    g.setAttribute("aria-label", labelOf(node, all));
    if (node.frame !== undefined && state.node && pathText(node) === state.node) g.classList.add("chosen");
  });
  inner.addEventListener("keydown", e => onkey(e, inner, up));
  inner.addEventListener("focusin", e => {
    const d = e.target.__data__, place = e.target.getBoundingClientRect();
    if (d && e.target.matches(":focus-visible")) describe(place.left + 10, place.bottom - 8, data, d.data.node, all);
  });
  inner.addEventListener("focusout", hide);
  return inner;
}

// Arrows go to the caller, to the largest of those that were called, and to neighbours; Enter is a click.
function onkey(e, box, up) {
  const d = e.target.__data__;
  if (!d || e.ctrlKey || e.metaKey || e.altKey) return;
  const row = d.parent ? [...d.parent.children].sort((a, b) => a.x0 - b.x0) : [d], at = row.indexOf(d), inner = d.children?.length ? d.children.reduce((a, b) => b.value > a.value ? b : a) : null;
  const to = { ArrowDown: up ? d.parent : inner, ArrowUp: up ? inner : d.parent, ArrowLeft: row[at - 1], ArrowRight: row[at + 1] };
  if (e.key in to) {
    const g = [...box.querySelectorAll("g.frame")].find(other => other.__data__ === to[e.key]);
    e.preventDefault();
    e.stopPropagation();
    if (!g) return;
    e.target.tabIndex = -1;
    g.tabIndex = 0;
    g.focus({ focusVisible: true });
  } else if (e.key === "Enter" || e.key === " ") {
    e.preventDefault();
    shift = e.shiftKey;
    e.target.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: e.shiftKey }));
  } else if (e.key === "Escape") {
    set({ node: "" });
  }
}

export function drawFlame(data, track, box) {
  const at = when(data, track), filter = filterOf(data, track), what = state.what && hasBlocks(state.mode) ? state.what : "";
  const make = along => treeOf(data, track, state.mode, at, filter, along, what);
  let tree = make(state.shape === "inverted" ? s => invertedPath(data, s) : null);
  fill(box);
  window.memtrace.tree = tree;
  if (!tree.value) {
    const rest = state.only.startsWith("=rest:");
    box.append(el("p", { class: "empty" }, rest ? "Of this memory no stacks are known." : state.q || state.only ? `No stack of this has a frame that matches ${state.q || "what is shown alone"}.`
      : track.stacks.length ? "Nothing here: of this kind there was nothing at that moment or in that range."
        : "No stacks: the trace has none, or nothing was allocated."));
    return tree;
  }
  const time = modes[state.mode].range ? `, ${seconds(at.from >= 0 ? data.times[at.from + 1] : data.times[0])} to ${seconds(data.times[at.to + 1])}` : ` at ${seconds(at.time)}`;
  if (state.shape === "sandwich") {
    const last = Number(state.node.split(".").at(-1)), f = state.node && track.stacks.some(s => shownPath(data, s).includes(last)) ? last : (largest(data, track, tree) ?? {}).frame;
    const callers = make(outwards(data, f)).by.get(f);
    tree = window.memtrace.tree = make(inwards(data, f));
    tree.sandwich = callers;
    if (!callers) { box.append(el("p", { class: "empty" }, "The chosen function has nothing at this moment or in this range.")); return tree; }
    box.append(el("p", { class: "dim" }, `Who called ${frameName(data, f)}:`));
    chartOf(data, track, callers, tree, box, { up: true });
    box.append(el("p", { class: "dim" }, "What it called:"));
    chartOf(data, track, tree.by.get(f), tree, box);
  } else {
    chartOf(data, track, tree, tree, box, { name: `${tree.name}  ${figure(state.mode === "difference" ? tree.delta : tree.value)}${time}` });
  }
  mark(data, tree, box);
  if (track.kind === "heap" && data.raw.without_stacks && tree.children.every(n => n.frame === undefined))
    box.append(el("p", { class: "dim" }, "Stacks of heap blocks were not recorded (--stacks none): who allocated is not known."));
  return tree;
}

// What is searched for stands out, and how much goes through it is said.
export function mark(data, tree, box) {
  const re = matcher(state.find), stacks = new Set(), said = document.querySelector(".modes .found");
  let frames = 0;
  box.querySelectorAll("g.frame").forEach(g => {
    const node = g.__data__.data.node, hit = !!re && node.frame !== undefined && says(data, re, node.frame);
    g.classList.toggle("hit", hit);
    g.classList.toggle("miss", !!re && !hit);
    frames += hit;
  });
  const label = box.querySelector("g.frame .d3-flame-graph-label"), root = label?.closest("g.frame").__data__?.depth === 0;
  if (root) label.dataset.own ??= label.textContent;
  if (!re) { if (said) said.textContent = ""; if (root) label.textContent = label.dataset.own; return; }
  let sum = 0;
  (function look(node) {
    if (node.frame !== undefined && says(data, re, node.frame)) { sum += node.value; return; }
    node.children.forEach(look);
  })(tree);
  const found = `${state.find}: ${sum ? `${figure(sum)}, ${percent(sum, tree.value)} in ${count(frames)} frame${frames === 1 ? "" : "s"}` : "not found"}`;
  if (said) said.textContent = found;
  if (root) label.textContent = shown(`${label.dataset.own};  ${found}`);
}

export function pathText(node) {
  const parts = [];
  for (let n = node; n && n.frame !== undefined; n = n.up) parts.push(n.frame);
  return parts.reverse().join(".");
}

// The node of the tree that is selected; NULL where it is not in it.
export function chosen(tree) {
  let node = tree;
  if (!state.node) return null;
  for (const f of state.node.split(".")) {
    node = node.by?.get(Number(f));
    if (!node) return null;
  }
  return node;
}

// Where nothing was chosen: the line that a verdict names, where it has most; else the frame with most bytes that are in
// none of those it called, but for what modules and libraries need for themselves, unless that is all there is.
export function largest(data, track, tree) {
  const named = data.report.verdicts.filter(v => v.device === (track.device ?? "host")).flatMap(v => v.sites).map(s => s.split(" ")[0]);
  const labels = new Set(track.stacks.map(s => s.label).filter(l => l >= 0));
  let best = null;
  if (named.length) {
    (function look(n) {
      if (n.frame !== undefined && framePlace(data, n.frame) === named[0] && n.value > (best?.value ?? 0)) best = n;
      n.children.forEach(look);
    })(tree);
    if (best) return best;
  }
  const own = n => n.value - n.children.reduce((sum, c) => sum + c.value, 0);
  const most = without => {
    let found = null;
    (function look(n) {
      if (n.frame !== undefined && n.value > 0 && (!found || own(n) > own(found))) found = n;
      n.children.filter(c => !c.others && !(without && labels.has(c.frame))).forEach(look);
    })(tree);
    return found;
  };
  return most(true) ?? most(false);
}

const inBlocks = () => state.what === "blocks" && hasBlocks(state.mode);
export const figure = n => inBlocks() ? `${count(n)} block${n === 1 ? "" : "s"}` : bytes(n);

function labelOf(node, tree) {
  const value = state.mode === "difference" ? node.delta : node.value;
  return `${node.name}\n${figure(value)}, ${percent(node.value, tree.value)}${node.blocks && !inBlocks() ? `, ${count(node.blocks)} block${node.blocks === 1 ? "" : "s"}` : ""}`;
}

function describe(x, y, data, node, tree) {
  const [name, file, line] = node.frame === undefined ? [node.name] : data.frames[node.frame];
  showAt(x, y, el("b", {}, cut(node.frame === undefined ? name : frameName(data, node.frame), 70)), file ? el("div", { class: "m dim" }, cutPath(`${file}${line ? `:${line}` : ""}`, 60)) : null, el("div", {}, labelOf(node, tree).split("\n")[1]));
}

export const escapeRegExp = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

export function modeButtons(rerun) {
  return Object.entries(modes).map(([key, m]) =>
    el("button", { type: "button", class: state.mode === key ? "on" : "", title: m.title, "aria-pressed": String(state.mode === key), onclick: () => set({ mode: key, node: "" }) }, m.name));
}

addEventListener("click", e => { shift = e.shiftKey; }, true);
