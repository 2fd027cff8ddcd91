// The page's data: unpacked, and asked what was there at a moment or happened in a range. What is asked of stacks is
// added up from the windows that memtrace wrote; nothing else is computed here.

export async function load() {
  const text = document.getElementById("data").textContent;
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return unpack(JSON.parse(await new Response(stream).text()));
}

function columnOf(stack, name, n, keep) {
  const out = new Float64Array(n), at = stack.at, values = stack[name];
  for (let i = 0; i < at.length; i++) {
    const until = i + 1 < at.length ? at[i + 1] : n;
    out[at[i]] = values[i];
    if (keep) out.fill(values[i], at[i], until);
  }
  return out;
}

export function unpack(raw) {
  const n = raw.times_s.length - 1;
  const data = { raw, report: raw.report, times: raw.times_s, count: n, tracks: [], stacks: [], frames: raw.frames, nodes: raw.nodes };
  raw.tracks.forEach((t, i) => {
    if (!t) return;
    const name = t.device ? (t.kind === "pool" ? `${t.device} pool` : t.device) : t.kind;
    data.tracks.push({ ...t, index: i, name, title: titleOf(t), peak: Math.max(0, ...t.high), stacks: [] });
  });
  const tracks = new Map(data.tracks.map(t => [t.index, t]));
  for (const s of raw.stacks) {
    const stack = {
      node: s.node, category: s.category, site: s.site, estimated: !!s.estimated, sites: s.sites,
      live: columnOf(s, "live", n, true), blocks: columnOf(s, "blocks", n, true),
      high: columnOf(s, "high", n, false), allocated: columnOf(s, "allocated", n, false), passing: columnOf(s, "passing", n, false),
      track: tracks.get(s.track), path: pathOf(data, s.node),
    };
    for (let i = 0; i < n; i++) stack.high[i] += stack.live[i];
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
  grew: { name: "Grew in range", title: "what was alive at the end of the range and not at its beginning", range: true },
  allocated: { name: "Allocated", title: "all that was allocated in the range, freed or not", range: true },
  temporary: { name: "Temporary", title: "what was allocated and freed again within one window of the range", range: true },
  difference: { name: "Difference", title: "end of the range against its beginning: what grew, and what shrank", range: true },
};

// What a column says of a mode; `of` is a stack or a track. A range is (from, to]: windows from + 1 to to, and what was
// alive before is that at the end of window from; -1 = nothing was.
export function valueOf(of, mode, when) {
  if (mode === "alive") return when.high ? of.high[when.at] : of.live[when.at];
  if (mode === "grew" || mode === "difference") return of.live[when.to] - (when.from >= 0 ? of.live[when.from] : 0);
  const column = mode === "allocated" ? of.allocated : of.passing;
  let sum = 0;
  for (let i = when.from + 1; i <= when.to; i++) sum += column[i];
  return sum;
}

export function blocksOf(of, mode, when) {
  return mode === "alive" ? of.blocks[when.at] : of.blocks[when.to] - (when.from >= 0 ? of.blocks[when.from] : 0);
}

// [{stack, value}], and what is in no stack of the page's.
export function valuesOf(track, mode, when, filter) {
  const list = [];
  let all = valueOf(track, mode, when), known = 0;
  for (const stack of track.stacks) {
    const value = valueOf(stack, mode, when);
    known += value;
    if (value && (!filter || filter(stack))) list.push({ stack, value });
  }
  return { list, rest: filter ? 0 : all - known, all };
}
