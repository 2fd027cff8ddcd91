// The flame graph (icicle) of a moment or a range.
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import { el, fill, css } from "./dom.js";
import { bytes, count, percent, shown } from "./format.js";
import { state, set, when } from "./state.js";
import { valuesOf, frameName, framePlace, modes, blocksOf, work } from "./data.js";
import { stackGroups } from "./groups.js";

const MOST_DEPTH = 60, LEAST = 0.8; // pixels
let shift = false;

export function filterOf(data) {
  if (!state.q) return null;
  let re;
  try { re = new RegExp(state.q); } catch { return null; }
  return s => s.path.some(f => re.test(frameName(data, f)) || re.test(framePlace(data, f)) || re.test(data.frames[f][1] ?? ""));
}

const isPython = (data, f) => data.frames[f][4] === "python";

// Python first: of a stack with frames of Python those alone, unless native ones are asked for. What the report's lists
// have under one name, as imported modules, stands under that name.
export function shownPath(data, stack) {
  const python = state.native ? [] : stack.path.filter(f => isPython(data, f)), path = python.length ? python : stack.path;
  return stack.label >= 0 && path[0] !== stack.label ? [stack.label, ...path] : path;
}

export function treeOf(data, track, mode, at, filter) {
  const { list, rest, all } = valuesOf(track, mode, at, filter);
  const signed = mode === "difference" || mode === "grew";
  const root = { name: track.title, value: 0, delta: 0, blocks: 0, children: [], by: new Map(), path: [] };
  let unknown = 0, unknownDelta = 0;
  for (const { stack, value } of list) {
    if (mode === "grew" && value < 0) continue;
    const size = signed ? Math.abs(value) : value, blocks = mode === "allocated" || mode === "temporary" ? 0 : blocksOf(stack, mode, at);
    let node = root;
    node.value += size;
    node.delta += value;
    node.blocks += blocks;
    if (!stack.path.length) { unknown += size; unknownDelta += value; }
    for (const f of shownPath(data, stack).slice(0, MOST_DEPTH)) {
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
  if (unknown) root.children.push({ name: "no stack", value: unknown, delta: unknownDelta, children: [], others: true, stacks: [], up: root });
  const left = signed ? Math.abs(rest) : Math.max(0, rest);
  if (left > 0 && (mode !== "grew" || rest > 0)) {
    root.value += left;
    root.delta += rest;
    root.children.push({ name: `others: small sites, or no stack`, value: left, delta: rest, children: [], others: true, stacks: [], up: root });
  }
  root.all = all;
  return root;
}

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

export function drawFlame(data, track, box) {
  const at = when(data, track), tree = treeOf(data, track, state.mode, at, filterOf(data));
  const groups = stackGroups(data, track), width = box.clientWidth - 2;
  fill(box);
  window.memtrace.tree = tree;
  if (!tree.value) {
    box.append(el("p", { class: "empty" }, state.q ? `No stack has a frame that matches ${state.q}.`
      : track.stacks.length ? "Nothing here: of this kind there was nothing at that moment or in that range."
        : "No stacks: the trace has none, or nothing was allocated."));
    return tree;
  }
  const seen = drawnOf(tree, tree.value / width * LEAST);
  const chart = flamegraph().width(width).cellHeight(22).inverted(true).transitionDuration(0).minFrameSize(0).selfValue(false)
    .sort((a, b) => b.data.value - a.data.value)
    .setColorMapper(d => colourOf(d.data.node, groups, state.mode))
    .setLabelHandler(d => labelOf(d.data.node, tree))
    .onClick(d => {
      const node = d.data.node;
      if (node.frame === undefined) { set({ node: "" }); return; }
      if (shift) set({ q: escapeRegExp(frameName(data, node.frame)), node: "" });
      else set({ node: pathText(node) });
    });
  chart.getName(d => `${d.data.node.name}  ${bytes(state.mode === "difference" ? d.data.node.delta : d.data.value)}`);
  select(box).datum(seen).call(chart);
  box.querySelectorAll("g.frame").forEach(g => {
    const d = g.__data__, node = d.data.node;
    g.tabIndex = d.depth ? -1 : 0;
    if (node.frame !== undefined && state.node && pathText(node) === state.node) g.classList.add("chosen");
  });
  if (track.kind === "heap" && data.raw.without_stacks && tree.children.every(n => n.frame === undefined))
    box.append(el("p", { class: "dim" }, "Stacks of heap blocks were not recorded (--stacks none): who allocated is not known."));
  return tree;
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

// Where nothing was chosen: the line that a verdict names, where it has most; else the way down along the largest part, to the last frame of its own.
export function largest(data, track, tree) {
  const named = data.report.verdicts.filter(v => v.device === (track.device ?? "host")).flatMap(v => v.sites).map(s => s.split(" ")[0]);
  let node = tree, best = null;
  if (named.length) {
    (function look(n) {
      if (n.frame !== undefined && framePlace(data, n.frame) === named[0] && n.value > (best?.value ?? 0)) best = n;
      n.children.forEach(look);
    })(tree);
    if (best) return best;
  }
  while (node.children.length) {
    const next = node.children.filter(c => !c.others).sort((a, b) => b.value - a.value)[0];
    if (!next) break;
    node = next;
  }
  return node === tree ? null : node;
}

function labelOf(node, tree) {
  const value = state.mode === "difference" ? node.delta : node.value;
  return `${node.name}\n${bytes(value)}, ${percent(node.value, tree.value)}${node.blocks ? `, ${count(node.blocks)} blocks` : ""}`;
}

const escapeRegExp = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

export function modeButtons(rerun) {
  return Object.entries(modes).map(([key, m]) =>
    el("button", { type: "button", class: state.mode === key ? "on" : "", title: m.title, "aria-pressed": String(state.mode === key), onclick: () => set({ mode: key, node: "" }) }, m.name));
}

addEventListener("click", e => { shift = e.shiftKey; }, true);
