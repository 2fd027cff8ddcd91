// What is looked at: in the URL's hash, so that a link shows the same; and as the command line that prints it.
import { word, seconds } from "./format.js";
import { windowAt } from "./data.js";

// q: a filter; find: what is searched for, which stays among the rest; only: the key of a colour; shape: how the flame
// graph is added up; what: bytes or blocks; way: to a holder.
const usual = { tab: "flame", track: "", at: "", from: "", to: "", mode: "alive", q: "", find: "", by: "", only: "", node: "", map: "", native: "", shape: "", what: "", way: "" };
const listeners = [];
export const state = { ...usual };

export function onchange(f) { listeners.push(f); }

// With `moving` it is one of many changes of one movement, as of a brush: they are one step back together.
export function set(change, moving = false) {
  const before = { ...state };
  Object.assign(state, change);
  const changed = new Set(Object.keys(state).filter(k => state[k] !== before[k]));
  if (!changed.size) return;
  if (!moving) steps = true;
  later ||= setTimeout(write, 50);
  for (const f of listeners) f(changed);
}

// Browsers count how often an address changes, and a brush changes it with each movement.
let later = 0, steps = false, movingSince = "";

function address() {
  const words = Object.entries(state).filter(([k, v]) => v !== usual[k]).map(([k, v]) => `${k}=${encodeURIComponent(v)}`);
  return words.length ? `#${words.join("&")}` : location.pathname + location.search;
}

// A page within another one, as in a notebook, may have no address of its own.
function write() {
  const to = address(), push = steps || !movingSince;
  later = 0;
  movingSince = steps ? "" : "moving";
  steps = false;
  if (to === (location.hash || location.pathname + location.search)) return;
  try { push ? history.pushState(null, "", to) : history.replaceState(null, "", to); } catch { /* then there is nothing to go back to */ }
}

// As the address has it: what Back and a link do. It is no new step.
export function follow() {
  clearTimeout(later);
  later = 0;
  set(read());
  clearTimeout(later);
  later = 0;
  steps = false;
}

// Whether a moment is one of this memory: a failure is one of all that is on its device.
export function isOf(m, track) {
  return !m.track || m.track === track.name || m.name === "OOM" && !!track.device && [track.device, `${track.device} pool`].includes(m.track);
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
  const moments = data.raw.moments.filter(m => isOf(m, track));
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
    case "blocks": return `memtrace export --format snapshot ${dirs}`;
    case "growth": return `memtrace timeline --by step${on} ${dirs}`;
    case "holders": return `memtrace holders ${dirs}`;
    case "changes": return `memtrace diff ${word(data.raw.changes.before)} ${word(data.raw.changes.after)}`;
    case "lost": return `memtrace check ${dirs}`;
    default: return `memtrace report --all ${dirs}`;
  }
}
