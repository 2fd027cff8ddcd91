// What memory is added up by: category, the line that asked, thread, or process. One colour for each, but of processes there are
// more than colours. They are told of a track and not of its stacks, which have their usual colours then.
import { categoryColour, placeColour, paletteName } from "./colours.js";
import { css } from "./dom.js";
import { frameName, framePlace } from "./data.js";
import { state } from "./state.js";

const MOST = 9; // lines with a colour of their own

// {of(stack) -> key, list: [{key, name, colour}] the largest first, colour(stack)}; the same one as long as colours are the same.
export function groupsOf(data, track, by) {
  const key = `${by} ${paletteName()} ${css("--other")}`;
  if (!track.groups.has(key)) track.groups.set(key, makeGroups(data, track, by));
  return track.groups.get(key);
}

// Those of stacks.
export function stackGroups(data, track) {
  const by = grouping(track);
  return groupsOf(data, track, by === "process" ? usualGrouping(track) : by);
}

// The colour of a node's stack.
export function nodeColours(data, track) {
  const groups = stackGroups(data, track), by = new Map(track.stacks.map(s => [s.node, groups.colour(s)]));
  return node => by.get(node) ?? css("--other");
}

function makeGroups(data, track, by) {
  if (by === "process")
    return { others: "other processes", list: track.processes.map(p => ({ key: p.id, name: processName(p), values: p.high, ends: p.live })) };
  if (by === "category") {
    const sums = new Map();
    for (const s of track.stacks) sums.set(s.category, Math.max(sums.get(s.category) ?? 0, s.most));
    const list = [...sums].sort((a, b) => b[1] - a[1]).map(([key]) => ({ key, name: key.replaceAll("_", " "), colour: categoryColour(key) }));
    return { by, of: s => s.category, list, colour: s => categoryColour(s.category) };
  }
  const of = by === "thread" ? s => s.thread : s => s.site, sums = new Map();
  for (const s of track.stacks) if (of(s) >= -1) sums.set(of(s), (sums.get(of(s)) ?? 0) + s.most);
  const top = [...sums].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([key]) => key);
  const index = new Map(top.map((key, i) => [key, i]));
  const list = top.map((key, i) => ({ key, name: key < 0 ? "no stack" : by === "thread" ? frameName(data, key) : `${frameName(data, key)}  ${framePlace(data, key)}`, colour: placeColour(i) }));
  return { by, of: s => index.has(of(s)) ? of(s) : "", list, colour: s => placeColour(index.get(of(s)) ?? -1) };
}

export function grouping(track) {
  const lacks = { process: track.processes.length < 2, thread: !track.threads };
  return !state.by || lacks[state.by] ? usualGrouping(track) : state.by;
}

export function processName(p) {
  return `${p.rank === null ? "" : `rank ${p.rank}, `}${p.name} ${p.pid}`;
}

// What is used where nobody chose: lines where the categories of most are not known.
function usualGrouping(track) {
  track.usual ??= bestGrouping(track);
  return track.usual;
}

function bestGrouping(track) {
  if (track.threads) return "thread";
  let known = 0, all = 0;
  for (const s of track.stacks) {
    all += s.most;
    if (s.category !== "unknown") known += s.most;
  }
  return known * 2 >= all && all ? "category" : "site";
}
