// What a chart stacks, window by window: the groups of a track, and on a device all else that it holds, up to its
// capacity, so that at a failure they are the rows of the ledger. Beside them lines.
import { css } from "./dom.js";
import { placeColour } from "./colours.js";
import { windowAt } from "./data.js";
import { isOf } from "./state.js";

// Of values that hold from x[i] on, the highest in each window.
function highest(data, x, y) {
  const out = new Float64Array(data.count);
  for (let i = 0, k = 0; i < data.count; i++) {
    while (k + 1 < x.length && x[k + 1] <= data.times[i]) k++;
    let most = x.length && x[k] <= data.times[i + 1] ? y[k] : 0;
    for (let j = k + 1; j < x.length && x[j] <= data.times[i + 1]; j++) most = Math.max(most, y[j]);
    out[i] = most;
  }
  return out;
}

// Those of a series of memtrace timeline, which has stretches of its own.
function windowsOf(data, what, device, raw = data.raw) {
  const found = raw.series.find(s => s.what === what && (s.device ?? null) === (device ?? null));
  return found ? highest(data, found.high.map((v, i) => raw.series_from_s + (found.first + i) * raw.series_width_s), found.high) : null;
}

// Of each group: `values` at the highest moment of each window, `ends` at its end. A window that ends with a failure stands
// at that.
function groupLayers(data, track, groups, failures) {
  const sum = (key, whole, given) => {
    const sums = new Map(groups.list.map(g => [g.key, g[given] ?? new Float64Array(data.count)])), others = Float64Array.from(whole);
    for (const s of groups.of ? track.stacks : []) {
      const into = sums.get(groups.of(s));
      for (let i = 0; into && i < data.count; i++) into[i] += s[key][i];
    }
    for (const values of sums.values()) for (let i = 0; i < data.count; i++) others[i] = Math.max(0, others[i] - values[i]);
    return { sums, others };
  };
  const high = sum("high", track.high, "values"), end = sum("live", track.live, "ends");
  const settle = (values, ends) => { const out = values.slice(); for (const m of failures) { const i = windowAt(data, m.at_s); out[i] = ends[i]; } return out; };
  // the steadiest at the bottom, so that what grows is seen to grow
  const steady = v => { let sum = 0, most = 1; for (const x of v) { sum += x; if (x > most) most = x; } return sum / most; };
  const list = groups.list.map(g => ({ ...g, values: settle(high.sums.get(g.key), end.sums.get(g.key)), ends: end.sums.get(g.key) })).sort((a, b) => steady(b.values) - steady(a.values));
  if (groups.others) list.forEach((layer, i) => { layer.colour = placeColour(i); }); // they come again: neighbours must differ
  const others = settle(high.others, end.others);
  if (others.some(v => v > 0)) list.push({ key: "", name: groups.others ?? "others", colour: css("--other"), values: others, ends: end.others });
  return list;
}

// What a pool has beside its blocks. Of XLA's nobody knows how much of it is in use.
export const poolRest = device => device?.processes.some(p => p.pool_partly_seen) ? "rest of XLA's pool" : "pool, unused";

const rest = {
  unused: [null, "--hole"], outside: ["outside the pool", "--outside"], contexts: ["contexts", "--contexts"], neighbours: ["other processes", "--neighbours"],
  unexplained: ["not explained", "--unexplained"], free: ["free", "--free"],
};

// What a device holds beside the track's own memory. A context is there as long as its process has memory; what else was
// sampled holds from one sample to the next; at the moment of the ledger its figures stand.
function deviceLayers(data, track, total, own) {
  const values = Object.fromEntries(Object.keys(rest).map(key => [key, new Float64Array(data.count)])), less = (a, b) => Math.max(0, a - b);
  const samples = data.raw.device_samples.find(s => s.device === track.device), pool = track.kind === "pool";
  const reserved = pool && windowsOf(data, "reserved", track.device), driver = windowsOf(data, "device", track.device);
  const [contexts, others, unexplained] = ["contexts", "others", "unexplained"].map(key => samples && highest(data, samples.at_s, samples[key]));
  for (let i = 0; i < data.count; i++) {
    const held = Math.max(own[i], reserved?.[i] ?? 0);
    values.unused[i] = held - own[i];
    values.outside[i] = less(driver?.[i] ?? 0, held);
    const left = total ? less(total, held + values.outside[i]) : Infinity; // between samples it is not known better
    values.neighbours[i] = Math.min(left, others?.[i] ?? 0);
    values.contexts[i] = Math.min(left - values.neighbours[i], contexts?.[i] ?? 0);
    values.unexplained[i] = Math.min(left - values.neighbours[i] - values.contexts[i], unexplained?.[i] ?? 0);
  }
  const device = data.report.devices.find(d => d.name === track.device), l = device?.ledger, at = l?.at_s == null ? -1 : windowAt(data, l.at_s);
  if (at >= 0 && Math.abs(data.times[at + 1] - l.at_s) < 1e-6) {
    const contextBytes = (l.other_own_parts ?? []).filter(p => p.name.startsWith("context")).reduce((sum, p) => sum + p.bytes, 0);
    values.unused[at] = pool ? l.pool_free : 0;
    values.contexts[at] = contextBytes;
    values.outside[at] = pool ? less(l.other_own, contextBytes) : 0;
    values.neighbours[at] = l.other_processes ?? 0;
    values.unexplained[at] = Math.max(0, l.unexplained ?? 0);
  }
  const used = i => own[i] + ["unused", "outside", "contexts", "neighbours", "unexplained"].reduce((sum, key) => sum + values[key][i], 0);
  // nobody looked before the first sample: what is not ours may be others'
  for (let i = 0; total && i < data.count; i++) if (!samples || i === at || data.times[i + 1] >= (samples.first_s ?? 0)) values.free[i] = less(total, used(i));
  return Object.entries(rest).filter(([key]) => values[key].some(v => v > 0))
    .map(([key, [name, colour]]) => ({ key: `rest:${key}`, name: key === "unused" ? poolRest(device) : key === "free" && !samples ? "free, or not seen" : name, colour: css(colour), values: values[key], ends: values[key], rest: true }));
}

// [{name, x, y, dash, peak}]; values hold from each x on.
function linesOf(data, track) {
  const lines = [], step = (name, x, y, dash, end = data.times.at(-1)) => {
    if (!y.some(v => v > 0)) return;
    const line = { name, x: [], y: [], dash, peak: Math.max(...y), values: highest(data, x, y).map((v, i) => data.times[i] < end && data.times[i + 1] >= x[0] ? v : NaN) };
    x.forEach((v, i) => { line.x.push(v, x[i + 1] ?? end); line.y.push(y[i], y[i]); });
    lines.push(line);
  };
  const series = (name, raw, what, device, dash) => {
    const found = raw.series.find(s => s.what === what && (s.device ?? null) === (device ?? null));
    if (found) step(name, found.high.map((v, i) => raw.series_from_s + (found.first + i) * raw.series_width_s), found.high, dash);
  };
  if (!track.device) {
    step("resident, shared pages once", data.raw.resident.at_s, data.raw.resident.bytes, [5, 3], data.raw.resident.at_s.at(-1)); // then nobody looked
    series("control group", data.raw, "cgroup", null, [2, 3]);
  }
  if (data.raw.before) series("before", data.raw.before, track.kind, track.device, [1, 2]);
  return lines;
}

function limitOf(data, track) {
  if (track.device) return { bytes: data.report.devices.find(d => d.name === track.device)?.total_bytes, name: "capacity" };
  const system = data.report.system ?? {};
  return system.limit_bytes ? { bytes: system.limit_bytes, name: "limit of the control group" } : { bytes: null };
}

// {track, groups, list, lines, limit, limitShown, failures, top}: the list is stacked from its first one up. What is far
// above the track's own memory is not drawn, so that this can be seen: the limit, what is free below it, lines.
export function layersOf(data, track, groups) {
  const limit = limitOf(data, track), lines = linesOf(data, track), failures = data.raw.moments.filter(m => m.name === "OOM" && isOf(m, track));
  // what a verdict about the host speaks of must be seen, though the heap is small beside it
  const host = !track.device && data.report.verdicts.some(v => v.device === "host");
  const list = groupLayers(data, track, groups, failures), own = new Float64Array(data.count);
  for (const l of list) for (let i = 0; i < data.count; i++) own[i] += l.values[i];
  const around = track.device ? deviceLayers(data, track, limit.bytes, own) : [], held = around.filter(l => l.key !== "rest:free");
  let peak = Math.max(track.peak, 1);
  for (let i = 0; i < data.count; i++) peak = Math.max(peak, held.reduce((sum, l) => sum + l.values[i], own[i]));
  for (const line of lines) if (host || line.peak <= track.peak * 4) peak = Math.max(peak, line.peak);
  const limitShown = !!limit.bytes && (limit.bytes < peak * 2.5 || failures.length > 0);
  return {
    track, groups, limit, limitShown, failures, lines: lines.map(l => ({ ...l, apart: l.peak > peak })),
    list: [...list, ...limitShown ? around : held], top: Math.max(peak, limitShown ? limit.bytes : 0) * 1.08,
  };
}
