// The page's data: unpacked, and asked what was there at a moment or happened in a range. What is asked of stacks is
// added up from the windows that memtrace wrote; nothing else is computed here.

export async function load() {
  const text = document.getElementById("data").textContent;
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpack(JSON.parse(await new Response(stream).text()));
}

// What is counted of the last picture: nodes that were drawn, windows that were looked into. Tests bound it.
export const work = { nodes: 0, windows: 0 };

// What the value of a column is from each window in which it changes.
function kept(n, at, values) {
  const out = new Float64Array(n);
  for (let i = 0; i < at.length; i++) out.fill(values[i], at[i], i + 1 < at.length ? at[i + 1] : n);
  return out;
}

function highs(n, at, values, live) {
  const out = live.slice();
  for (let i = 0; i < at.length; i++) out[at[i]] += values[i];
  return out;
}

// Sums of all windows before each: what happened in a range is the difference of two.
function sumsBefore(n, at, values) {
  const out = new Float64Array(n + 1);
  for (let i = 0, sum = 0; i < at.length; i++) {
    sum += values[i];
    out.fill(sum, at[i] + 1, i + 1 < at.length ? at[i + 1] + 1 : n + 1);
  }
  return out;
}

// A property that is made when it is first asked for.
function lazily(object, name, make) {
  Object.defineProperty(object, name, { configurable: true, enumerable: true, get() {
    const value = make();
    Object.defineProperty(object, name, { value, enumerable: true });
    return value;
  } });
}

export function unpack(raw) {
  const n = raw.times_s.length - 1;
  const data = { raw, report: raw.report, times: raw.times_s, count: n, tracks: [], stacks: [], frames: raw.frames, nodes: raw.nodes };
  const processes = new Map(raw.report.processes.map(p => [p.id, p]));
  raw.tracks.forEach((t, i) => {
    if (!t) return;
    const name = t.device ? (t.kind === "pool" ? `${t.device} pool` : t.device) : t.kind;
    const track = { ...t, index: i, name, title: titleOf(t), peak: Math.max(0, ...t.high), stacks: [], threads: false, groups: new Map() }, all = t.high.map((v, k) => k);
    track.processes = t.processes.filter(p => processes.has(p.process)).map(p => ({ ...processes.get(p.process), live: kept(n, p.at, p.live), high: highs(n, p.at, p.high, kept(n, p.at, p.live)) }));
    for (const key of ["allocated", "passing"]) lazily(track, `${key}Before`, () => sumsBefore(n, all, t[key]));
    data.tracks.push(track);
  });
  lazily(data, "firstRange", () => firstRange(data));
  const tracks = new Map(data.tracks.map(t => [t.index, t]));
  for (const s of raw.stacks) {
    const stack = {
      node: s.node, category: s.category, site: s.site, estimated: !!s.estimated, sites: s.sites,
      live: kept(n, s.at, s.live), track: tracks.get(s.track), path: pathOf(data, s.node), most: 0,
      label: s.label ? pathOf(data, s.label)[0] : -1, thread: s.thread ? pathOf(data, s.thread)[0] : -1, madeAndFreed: s.temporary ?? 0,
    };
    if (stack.label >= 0) stack.site = stack.label; // one row for all of them, as in the report's lists
    stack.high = highs(n, s.at, s.high, stack.live);
    for (let i = 0; i < n; i++) if (stack.high[i] > stack.most) stack.most = stack.high[i];
    lazily(stack, "blocks", () => kept(n, s.at, s.blocks));
    for (const key of ["allocated", "passing"]) lazily(stack, `${key}Before`, () => sumsBefore(n, s.at, s[key]));
    stack.track.threads ||= stack.thread >= 0;
    stack.track.stacks.push(stack);
    data.stacks.push(stack);
  }
  return data;
}

function titleOf(t) {
  const kinds = { heap: "Heap", map: "Mapped memory", pinned: "Pinned memory", device: "driver's allocations", pool: "pool" };
  return t.device ? `${t.device} ${kinds[t.kind]}` : kinds[t.kind];
}

// Frame numbers, outermost first.
export function pathOf(data, node) {
  const path = [];
  for (let at = node; at; at = data.nodes[2 * at - 2]) path.push(data.nodes[2 * at - 1]);
  return path.reverse();
}

export function frameName(data, f) {
  const [name, , , library] = data.frames[f];
  return name && name.startsWith("+0x") ? `${library ? library.slice(library.lastIndexOf("/") + 1) : "?"}${name}` : name ?? "?";
}

export function framePlace(data, f) {
  const [, file, line, library] = data.frames[f], path = file ?? library ?? "";
  const base = path.slice(path.lastIndexOf("/") + 1);
  return file && line ? `${base}:${line}` : base;
}

// Python's frames of a node where it has any, else all.
export function tellingPath(data, node) {
  const path = pathOf(data, node), python = path.filter(f => data.frames[f][4] === "python");
  return python.length ? python : path;
}

// Who allocated.
export function lineOf(data, node) {
  const f = tellingPath(data, node).at(-1);
  return f === undefined ? "no stack" : `${frameName(data, f)}  ${framePlace(data, f)}`;
}

// The range that is shown first, as windows (from, to]: from the begin of the loop to the failure, or to the end of the
// last whole step. What a program loads before the loop and frees as it ends would hide what grew. Without steps and
// failures it is the whole run.
function firstRange(data) {
  const steps = (data.report.steps?.list ?? []).filter(s => !s.partial), oom = data.raw.moments.find(m => m.at === "oom");
  const to = oom ? windowAt(data, oom.at_s) : steps.length ? windowAt(data, steps.at(-1).end_s) : data.count - 1;
  const from = steps.length && steps[0].begin_s > data.times[0] ? windowAt(data, steps[0].begin_s) : -1;
  return { from: from < to ? from : -1, to };
}

// The window that ends at or behind a time.
export function windowAt(data, seconds) {
  let low = 0, high = data.count - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (data.times[middle + 1] < seconds - 1e-9) low = middle + 1; else high = middle;
  }
  return low;
}

export const modes = {
  alive: { name: "Alive", title: "what was alive at the moment", range: false },
  grew: { name: "Grew", title: "what was alive at the end of the range and not at its beginning", range: true },
  allocated: { name: "Allocated", title: "all that was allocated in the range, freed or not", range: true },
  temporary: { name: "Temporary", title: "what was allocated and freed again within one window of the range; in blocks: what its thread freed before it allocated anything else, in the whole run", range: true },
  difference: { name: "Difference", title: "end of the range against its beginning: what grew, and what shrank", range: true },
};

// What a column says of a mode; `of` is a stack or a track. A range is (from, to]: windows from + 1 to to, and what was
// alive before is that at the end of window from; -1 = nothing was.
export function valueOf(of, mode, when, what = "") {
  work.windows += mode === "alive" ? 1 : 2;
  if (what === "blocks") return mode === "temporary" ? of.madeAndFreed ?? 0 : blocksOf(of, mode, when);
  if (mode === "alive") return when.high ? of.high[when.at] : of.live[when.at];
  if (mode === "grew" || mode === "difference") return of.live[when.to] - (when.from >= 0 ? of.live[when.from] : 0);
  const before = mode === "allocated" ? of.allocatedBefore : of.passingBefore;
  return before[when.to + 1] - before[when.from + 1];
}

export function blocksOf(of, mode, when) {
  return mode === "alive" ? of.blocks[when.at] : of.blocks[when.to] - (when.from >= 0 ? of.blocks[when.from] : 0);
}

// Whether there are figures of blocks: what was allocated is told in bytes alone.
export const hasBlocks = mode => mode !== "allocated";

// [{stack, value}], and what is in no stack of the page's.
export function valuesOf(track, mode, when, filter, what = "") {
  const list = [];
  let all = valueOf(track, mode, when, what), known = 0;
  for (const stack of track.stacks) {
    const value = valueOf(stack, mode, when, what);
    known += value;
    if (value && (!filter || filter(stack))) list.push({ stack, value });
  }
  if (what === "blocks" && mode === "temporary") all = known; // of a track they are not counted
  return { list, rest: filter ? 0 : all - known, all };
}
