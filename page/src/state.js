// What is looked at: in the URL's hash, so that a link shows the same; and as the command line that prints it.
import { word, seconds } from "./format.js";
import { windowAt } from "./data.js";

const usual = { tab: "flame", track: "", at: "", from: "", to: "", mode: "alive", q: "", by: "", node: "", map: "", native: "" };
const listeners = [];
export const state = { ...usual };

export function onchange(f) { listeners.push(f); }

export function set(change) {
  const before = { ...state };
  Object.assign(state, change);
  const changed = new Set(Object.keys(state).filter(k => state[k] !== before[k]));
  if (!changed.size) return;
  later ||= setTimeout(write, 50);
  for (const f of listeners) f(changed);
}

// Browsers count how often an address changes, and a brush changes it with each movement.
let later = 0;

function write() {
  later = 0;
  const words = Object.entries(state).filter(([k, v]) => v !== usual[k]).map(([k, v]) => `${k}=${encodeURIComponent(v)}`);
  history.replaceState(null, "", words.length ? `#${words.join("&")}` : location.pathname + location.search);
}

export function read() {
  const next = { ...usual };
  for (const part of location.hash.slice(1).split("&")) {
    const [key, value] = part.split("=");
    if (!(key in usual) || value === undefined) continue;
    try { next[key] = decodeURIComponent(value); } catch { /* not ours */ }
  }
  return next;
}

// The moment that `at` names: {at: window, high: its highest moment rather than its end, name, time}.
export function moment(data, track, text) {
  const moments = data.raw.moments.filter(m => !m.track || m.track === track.name);
  const named = moments.find(m => m.at === text);
  if (named) {
    const at = windowAt(data, named.at_s);
    return { at, high: named.at === "peak", name: named.name, command: named.at, time: named.at_s };
  }
  const time = Number(text);
  if (text !== "" && isFinite(time)) {
    const at = windowAt(data, time);
    return { at, high: false, name: seconds(data.times[at + 1]), command: secondsWord(data.times[at + 1]), time: data.times[at + 1] };
  }
  const usualMoment = moments.find(m => m.at === "oom") ?? moments.find(m => m.at === "peak") ?? moments.at(-1);
  return moment(data, track, usualMoment.at);
}

// A time that is not before that of the window's end, for --at.
export function secondsWord(s) {
  return String(Math.ceil(s * 1e9 - 1e-3) / 1e9);
}

// Windows (from, to].
export function range(data) {
  const to = state.to === "" ? data.firstRange.to : windowAt(data, Number(state.to));
  const from = state.from === "" ? data.firstRange.from : windowAt(data, Number(state.from));
  return from < to ? { from, to } : { from: to - 1, to };
}

export function when(data, track) {
  return { ...moment(data, track, state.at), ...range(data) };
}

function device(track) {
  return track.device ? track.device : track.kind === "heap" ? "host" : track.kind;
}

// The command that says the same on a terminal, or the nearest to it.
export function command(data, track) {
  const dirs = data.raw.dirs.map(word).join(" ");
  const filter = state.q ? ` --filter ${word(state.q)}` : "";
  const r = range(data), span = ` --from ${secondsWord(r.from >= 0 ? data.times[r.from + 1] : data.times[0])} --to ${secondsWord(data.times[r.to + 1])}`;
  const on = track ? ` --device ${word(device(track))}` : "";
  const at = track ? ` --at ${moment(data, track, state.at).command}` : "";
  const ranged = state.mode !== "alive" && (r.from >= 0 || r.to < data.count - 1);
  switch (state.tab) {
    case "flame":
      return state.mode === "alive" ? `memtrace peak${at}${on}${filter} ${dirs}` : `memtrace leaks${ranged ? span : ""}${on}${filter} ${dirs}`;
    case "owners": return `memtrace peak --by site${at}${on}${filter} ${dirs}`;
    case "map": return `memtrace frag${at}${on} ${dirs}`;
    case "growth": return `memtrace timeline --by step${on} ${dirs}`;
    case "changes": return `memtrace diff ${word(data.raw.changes.before)} ${word(data.raw.changes.after)}`;
    case "lost": return `memtrace check ${dirs}`;
    default: return `memtrace report --all ${dirs}`;
  }
}
