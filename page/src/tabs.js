// The tables behind the other tabs. All figures are those of memtrace report --json.
import { el, fill, css, table, facts, download, csv } from "./dom.js";
import { bytes, count, seconds, percent, cut, base } from "./format.js";
import { state, set, when } from "./state.js";
import { valueOf, valuesOf, blocksOf, frameName, framePlace, modes } from "./data.js";
import { filterOf } from "./flame.js";
import { poolRest } from "./layers.js";
import { course, rateOf } from "./site.js";

const cell = (value, text) => ({ value, text });
const size = n => cell(n, bytes(n));
const number = n => cell(n, count(n));

// ---- owners ----

function ownerRows(data, track) {
  const at = when(data, track), { list, rest } = valuesOf(track, state.mode, at, filterOf(data, track)), by = new Map();
  for (const { stack, value } of list) {
    const key = `${stack.site}|${stack.category}`;
    let row = by.get(key);
    if (!row) by.set(key, row = { site: stack.site, category: stack.category, value: 0, blocks: 0, grew: 0, allocated: 0, stacks: 0 });
    row.value += value;
    row.blocks += blocksOf(stack, state.mode, at);
    row.grew += stack.live[at.to] - (at.from >= 0 ? stack.live[at.from] : 0);
    row.allocated += valueOf(stack, "allocated", at);
    row.stacks++;
  }
  return { rows: [...by.values()], rest };
}

export function drawOwners(data, track, box) {
  const { rows, rest } = ownerRows(data, track), mode = modes[state.mode].name.toLowerCase();
  const name = r => r.site === -2 ? "small sites together" : r.site < 0 ? "no stack" : frameName(data, r.site), place = r => r.site < 0 ? "" : framePlace(data, r.site);
  const columns = [{ name: mode, number: true }, { name: "%", number: true }, { name: "blocks", number: true }, { name: "grew in range", number: true }, { name: "allocated in range", number: true }, { name: "stacks", number: true }, { name: "for" }, { name: "allocated by", code: true }, { name: "where", code: true }];
  const all = rows.reduce((sum, r) => sum + r.value, 0) + Math.max(0, rest);
  const list = rows.map(r => Object.assign([size(r.value), cell(r.value, percent(r.value, all)), number(r.blocks), size(r.grew), size(r.allocated), number(r.stacks), r.category.replaceAll("_", " "), { value: name(r), text: cut(name(r), 70), title: name(r) }, { value: place(r), text: place(r), title: r.site < 0 ? "" : data.frames[r.site][1] ?? "" }], { row: r }));
  const save = () => download("owners.csv", csv([["bytes", "blocks", "grew_bytes", "allocated_bytes", "stacks", "category", "function", "file", "line"],
    ...rows.sort((a, b) => b.value - a.value).map(r => [r.value, r.blocks, r.grew, r.allocated, r.stacks, r.category, name(r), r.site < 0 ? "" : data.frames[r.site][1] ?? data.frames[r.site][3] ?? "", r.site < 0 ? "" : data.frames[r.site][2]])]));
  fill(box, el("p", { class: "bar" }, el("button", { type: "button", onclick: save }, "Save as CSV"), el("span", { class: "dim" }, rest > 0 ? `${bytes(rest)} of small sites, or without a stack, is not listed` : "")),
    table(columns, list, { sort: 0, label: "Owners", onrow: r => { if (r.row.site >= 0) set({ tab: "flame", q: frameName(data, r.row.site).replace(/[.*+?^${}()|[\]\\]/g, "\\$&") }); } }));
}

// ---- growth ----

export function drawGrowth(data, track, box) {
  const steps = data.report.steps, growing = data.raw.growing;
  const parts = [];
  if (steps && steps.source !== "none") {
    parts.push(el("p", {}, `${count(steps.count)} steps of ${seconds(steps.period_s)} each, ${steps.source === "inferred" ? "found without marks" : `as ${steps.source} say`}. Low and high point of each, by memory:`));
    const first = track.kind === "heap" ? "host" : track.name, grown = Object.entries(steps.growth).sort((a, b) => (b[0] === first) - (a[0] === first));
    for (const [name, g] of grown) {
      const list = steps.list.filter(s => !s.partial && s.low_bytes[name] !== undefined);
      if (list.length < 2 || !list.some(s => s.high_bytes[name])) continue;
      const ends = g.runs_out_at_step, failed = data.raw.moments.find(m => m.name === "OOM" && m.track === name);
      parts.push(el("section", { class: "growth" }, el("h3", {}, name),
        forecastChart(list, name, g, !failed),
        facts([
          ["shape", g.kind, `certainty ${g.certainty}`],
          g.bytes_per_step ? ["a step", bytes(g.bytes_per_step), `\u00b1 ${bytes(g.error)}`] : null,
          g.kind === "accelerating" ? ["faster by", `${bytes(g.acceleration * 100)}/step in each 100 steps`] : null,
          g.limit_bytes ? ["limit", bytes(g.limit_bytes)] : null,
          failed ? ["memory ended", failed.step ? `at step ${count(failed.step)}` : `at ${seconds(failed.at_s)}`] : ends ? ["if it goes on", `memory ends at step ${count(ends.at)}`, `${count(ends.low)} to ${ends.high === null ? "never" : count(ends.high)}, ${Math.round(ends.level * 100)} %`] : null,
        ])));
    }
  } else {
    parts.push(el("p", {}, "No steps were found; growth is told over time."));
  }
  const columns = [{ name: "grown by", number: true }, { name: "rate", number: true }, { name: "\u00b1", number: true }, { name: "shape" }, { name: "certainty" }, { name: "outlook" }, { name: "memory" }, { name: "low points" }, { name: "allocated by", code: true }, { name: "where", code: true }];
  const rows = growing.map(g => [size(g.grown_bytes), cell(g.rate, rateOf(g)), g.rate === null ? "" : size(g.error), g.kind, g.certainty, g.outlook, g.device ? `${g.device} ${g.memory}` : g.memory, { value: 0, text: small(g) }, { text: cut(g.name, 60), value: g.name, title: g.name }, g.where ?? ""]);
  parts.push(el("h3", {}, "Owners that grow"), rows.length ? table(columns, rows, { sort: 0, label: "Owners that grow" }) : el("p", { class: "dim" }, "None of the largest owners grows steadily."));
  fill(box, parts);
}

function small(g) {
  const c = course(g.x, g.bytes, { height: 22 });
  c.classList.add("small");
  return c;
}

// Low and high points, and the forecast with its interval up to the limit.
function forecastChart(list, name, g, ahead) {
  const canvas = el("canvas", { class: "course", role: "img", "aria-label": `low and high points of ${name} by step` }), height = 120;
  canvas.style.height = `${height}px`;
  requestAnimationFrame(() => {
    const pr = devicePixelRatio, w = canvas.clientWidth, h = height, ctx = canvas.getContext("2d"), ends = ahead && g.limit_bytes && g.runs_out_at_step?.at < 4 * list.at(-1).number ? g.runs_out_at_step : null;
    canvas.width = w * pr;
    canvas.height = h * pr;
    ctx.scale(pr, pr);
    const first = list[0].number, last = list.at(-1), far = ends && g.limit_bytes ? Math.min((ends.high ?? ends.at) * 1.05, last.number + (last.number - first) * 2) : last.number;
    const top = Math.max(...list.map(s => s.high_bytes[name]), ends && g.limit_bytes ? g.limit_bytes : 0) * 1.06 || 1;
    const X = n => 62 + (n - first) / Math.max(1, far - first) * (w - 72), Y = v => h - 18 - v / top * (h - 26);
    ctx.font = `11px ${css("--sans")}`;
    ctx.fillStyle = css("--dim");
    ctx.strokeStyle = css("--line");
    for (const part of [0, 0.5, 1]) {
      const v = top / 1.06 * part;
      ctx.beginPath();
      ctx.moveTo(62, Y(v));
      ctx.lineTo(w - 8, Y(v));
      ctx.stroke();
      ctx.textAlign = "right";
      ctx.fillText(part ? bytes(v) : "0", 56, Y(v) + 4);
    }
    ctx.textAlign = "left";
    ctx.fillText(`step ${first}`, 62, h - 4);
    ctx.textAlign = "right";
    ctx.fillText(`step ${Math.round(far)}`, w - 8, h - 4);
    ctx.fillStyle = css("--accent");
    ctx.globalAlpha = 0.25;
    ctx.beginPath();
    list.forEach((s, i) => i ? ctx.lineTo(X(s.number), Y(s.high_bytes[name])) : ctx.moveTo(X(s.number), Y(s.high_bytes[name])));
    [...list].reverse().forEach(s => ctx.lineTo(X(s.number), Y(s.low_bytes[name])));
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.strokeStyle = css("--accent");
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    list.forEach((s, i) => i ? ctx.lineTo(X(s.number), Y(s.low_bytes[name])) : ctx.moveTo(X(s.number), Y(s.low_bytes[name])));
    ctx.stroke();
    if (!ends || !g.limit_bytes) return;
    ctx.strokeStyle = ctx.fillStyle = css("--bad");
    ctx.beginPath();
    ctx.moveTo(62, Y(g.limit_bytes));
    ctx.lineTo(w - 8, Y(g.limit_bytes));
    ctx.stroke();
    ctx.globalAlpha = 0.18;
    ctx.beginPath();
    ctx.moveTo(X(last.number), Y(last.high_bytes[name]));
    ctx.lineTo(X(Math.min(far, ends.low ?? ends.at)), Y(g.limit_bytes));
    ctx.lineTo(X(Math.min(far, ends.high ?? far)), Y(g.limit_bytes));
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(X(last.number), Y(last.high_bytes[name]));
    ctx.lineTo(X(Math.min(far, ends.at)), Y(g.limit_bytes));
    ctx.stroke();
  });
  return canvas;
}

// ---- processes ----

export function drawProcesses(data, box) {
  const exit = e => e.kind === "exit" ? `exit ${e.code}` : e.kind === "signal" ? `signal ${e.code}` : e.kind;
  const devices = data.report.devices ?? [];
  const ranked = data.report.processes.some(p => p.rank !== null);
  const columns = [...ranked ? [{ name: "rank", number: true }] : [], { name: "pid", number: true }, { name: "program", code: true }, { name: "start", number: true }, { name: "end", number: true }, { name: "ended with" }, { name: "heap peak", number: true }, { name: "mapped peak", number: true }, { name: "pinned peak", number: true }, { name: "resident at most", number: true }, { name: "heap at end", number: true }, { name: "allocations", number: true }, { name: "threads", number: true }, { name: "command", code: true }];
  const rows = data.report.processes.map(p => [...ranked ? [cell(p.rank, p.rank ?? "")] : [], p.pid, cut(p.name, 30), cell(p.start_s, seconds(p.start_s)), cell(p.end_s, seconds(p.end_s)), p.state === "running" ? "runs" : `${exit(p.exit)}${p.exit.oom_killed !== "no" && p.exit.oom_killed ? `, killed by the kernel: ${p.exit.oom_killed}` : ""}`, size(p.host.peak_bytes), size(p.map.peak_bytes), size(p.pinned.peak_bytes), size(p.rss_peak_bytes), size(p.host.live_bytes), number(p.host.allocations), number(p.threads), { value: p.command.join(" "), text: el("span", { class: "one" }, p.command.map((w, i) => i < 2 ? base(w) : w).join(" ")), title: p.command.join(" ") }]);
  const shares = devices.flatMap(d => d.processes.map(p => [d.name, p.pid, cut(p.name, 30), size(p.bytes), p.traced ? "yes" : "no", size(p.pool_allocated), size(p.pool_free), size(p.other)]));
  const left = data.raw.processes_left_out, many = rows.length + left > 500;
  fill(box, table(columns, rows, { label: "Processes", left, sort: many ? columns.findIndex(c => c.name === "heap peak") : -1 }),
    shares.length ? [el("h3", {}, "On devices, at the failure or the peak"), table([{ name: "device" }, { name: "pid", number: true }, { name: "program", code: true }, { name: "memory", number: true }, { name: "traced" }, { name: "in pool's blocks", number: true }, { name: "rest of the pool", number: true }, { name: "outside the pool", number: true }], shares, { label: "Processes on devices", left: data.raw.device_processes_left_out })] : null);
}

// ---- ledgers ----

const hostRows = ["live", "kept", "pinned", "mapped_files", "shared", "shm_files", "other_processes", "page_cache", "kernel", "free", "unexplained"];
const hostWords = {
  live: "live: what the programs have", kept: "kept by allocators", pinned: "pinned for devices", mapped_files: "mapped files", shared: "shared memory", shm_files: "files in /dev/shm",
  other_processes: "other processes", page_cache: "page cache", kernel: "the kernel's", free: "free", unexplained: "not explained",
};
const deviceRows = ["pool_allocated", "pool_free", "other_own", "other_processes", "free", "unexplained"];
const deviceWords = { pool_allocated: "blocks of the pool", other_own: "of these processes, outside the pool", other_processes: "other processes", free: "free", unexplained: "not explained" };

const colours = Object.fromEntries([...hostRows, ...deviceRows.slice(0, 3)].map((k, i) => [k, i % hostRows.length])); // alike where they mean the same

function ledger(title, l, rows, words, total) {
  const parts = rows.filter(k => l[k]);
  return el("section", { class: "ledger" }, el("h3", {}, title),
    el("div", { class: "stack", role: "img", "aria-label": title }, parts.filter(k => l[k] > 0).map((k, i) => {
      const bar = el("i", { title: `${words[k]}: ${bytes(l[k])}` });
      bar.style.width = `${100 * l[k] / (total || 1)}%`;
      bar.className = `part${colours[k]}`;
      return bar;
    })),
    el("table", {}, el("tbody", {}, rows.map(k => el("tr", { class: l[k] ? "" : "none" }, el("td", {}, el("i", { class: `key part${colours[k]}` }), words[k]), el("td", { class: "n" }, l[k] === null || l[k] === undefined ? "not known" : bytes(l[k])), el("td", { class: "n dim" }, percent(l[k], total)))),
      el("tr", { class: "sum" }, el("td", {}, "together"), el("td", { class: "n" }, bytes(total)), el("td", {})))));
}

export function drawHost(data, box) {
  const system = data.report.system, parts = [];
  for (const d of data.report.devices ?? []) if (d.ledger?.total && deviceRows.some(k => k !== "free" && d.ledger[k] > 0)) parts.push(ledger(`${d.name} at ${seconds(d.ledger.at_s)}, ${data.raw.moments.some(m => m.name === "OOM" && Math.abs(m.at_s - d.ledger.at_s) < 1e-6) ? "the failure" : "its peak"}`, d.ledger, deviceRows, { ...deviceWords, pool_free: poolRest(d) }, d.ledger.total));
  if (system?.ledger) parts.push(ledger(`${system.ledger.of === "cgroup" ? "Control group" : "Machine"} at ${seconds(system.ledger.at_s)}, ${data.report.processes.some(p => p.exit?.oom_killed && p.exit.oom_killed !== "no") ? "before the kernel killed" : "the fullest sample of these processes"}`, system.ledger, hostRows, hostWords, system.ledger.total_bytes));
  else parts.push(el("p", { class: "dim" }, "The host was not sampled: there is no ledger of it."));
  if (system) parts.push(el("section", { class: "ledger" }, el("h3", {}, "The machine"), facts([
    ["memory", bytes(system.memory_bytes)], ["limit of the control group", system.limit_bytes === null ? "none" : bytes(system.limit_bytes)],
    ["available at least", bytes(system.available_min_bytes)], ["swap in use at most", bytes(system.swap_peak_bytes)], ["swapped out", bytes(system.swapped_out_bytes)],
    ["killed by the kernel", system.oom_kills === null ? "not known" : count(system.oom_kills)], ["waited for memory", system.stalled_s === null ? "not known" : seconds(system.stalled_s)],
    ["resident at most, traced", bytes(system.resident_peak_bytes)],
  ])));
  fill(box, el("div", { class: "ledgers" }, parts));
}

// ---- what was lost ----

// Of many devices often the same is said.
function alike(list) {
  const found = new Map();
  for (const v of list) {
    const key = `${v.kind}\n${v.evidence}`;
    found.set(key, [v, [...found.get(key)?.[1] ?? [], v.device]]);
  }
  return [...found.values()];
}

export function drawLost(data, box) {
  const l = data.report.losses, r = data.report, raw = data.raw;
  const reasons = list => list?.length ? `because of ${list.join(", ")}` : "";
  const left = raw.stacks_left_out, n = raw.without_stacks;
  const absent = ["devices", "processes", "phases"].map(k => [k, raw[`${k}_left_out`]]).filter(([, n]) => n).map(([k, n]) => `${count(n)} ${n === 1 ? { devices: "device", processes: "process", phases: "phase" }[k] : k}`);
  const unknown = [...r.unknown, ...n ? [`who allocated on the heap: ${n === 1 ? "a process was" : `${count(n)} processes were`} recorded without stacks`] : []];
  fill(box,
    el("h3", {}, r.complete ? "Nothing was lost while recording." : "The trace is incomplete."),
    facts([
      ["events", l.events ? count(l.events) : "none", reasons(l.events_why)],
      ["stacks cut off", l.truncated_stacks ? count(l.truncated_stacks) : "none"],
      ["stacks not kept", l.unplaced_stacks ? count(l.unplaced_stacks) : "none"],
      ["not written", l.unwritten_bytes ? bytes(l.unwritten_bytes) : "nothing"],
      ["frees not seen", l.missed_frees ? count(l.missed_frees) : "none"],
      ["processes not recorded", l.unrecorded_processes ? count(l.unrecorded_processes) : "none", reasons(l.unrecorded_why)],
      ["events that can't be read", l.skipped_slots ? count(l.skipped_slots) : "none"],
      r.folded ? ["folded at the disk limit", `${count(r.folded.blocks)} short-lived blocks`, `until ${seconds(r.folded.until_s)}; up to ${bytes(r.folded.uncertain_bytes)} may be missing at a moment before`] : null,
    ]),
    el("h3", {}, "Not known"),
    unknown.length ? el("ul", {}, unknown.map(u => el("li", {}, u))) : el("p", { class: "dim" }, "No figure that a verdict needs is missing."),
    el("h3", {}, "Ruled out"),
    r.ruled_out.length ? el("ul", {}, alike(r.ruled_out).map(([v, devices]) => el("li", {}, el("b", {}, `${v.open ? "" : "no "}${v.kind.replaceAll("_", " ")}${v.open ? "?" : ""} (${devices.join(", ")}) `), v.evidence))) : el("p", { class: "dim" }, "Nothing was in question."),
    r.unread_files.length ? [el("h3", {}, "Files without names"), el("ul", {}, r.unread_files.map(f => el("li", {}, el("span", { class: "m" }, f.path), ` ${f.why}`)))] : null,
    el("h3", {}, "What this page leaves out"),
    el("p", {}, `${left ? `${count(left)} stacks with little memory are shown as others. ` : "No stack. "}${raw.tree_full ? "Some call paths are cut off. " : ""}${absent.length ? `${absent.join(" and ")} with the least memory or time are not listed. ` : ""}Moments are exact at the ends of ${count(data.count)} windows of ${seconds((data.times.at(-1) - data.times[0]) / data.count)}, and at failures and peaks.`));
}

// ---- what changed from another trace ----

export function drawChanges(data, box) {
  const c = data.raw.changes, names = { totals: "Totals", system: "System", devices: "Devices", categories: "Categories at the peak", processes: "Processes", phases: "Phases", steps: "Steps", holders: "Holders at the snapshots", sites: "Sites at the peak" };
  const value = (o, side) => o[`${side}_bytes`] === null ? cell(0, "none") : o[`${side}_bytes`] !== undefined ? size(o[`${side}_bytes`]) : cell(o[`${side}_s`], seconds(o[`${side}_s`]));
  const change = o => o.change_bytes !== undefined ? cell(o.change_bytes, `${o.change_bytes > 0 ? "+" : ""}${bytes(o.change_bytes)}`) : cell(o.change_s, `${o.change_s > 0 ? "+" : ""}${o.change_s.toFixed(3)} s`);
  fill(box, el("p", {}, "Before: ", el("span", { class: "m" }, c.before), ". After: ", el("span", { class: "m" }, c.after), "."),
    Object.keys(names).filter(k => c[k]?.length).map(k => [el("h3", {}, names[k]),
      table([{ name: "change", number: true }, { name: "before", number: true }, { name: "after", number: true }, { name: "of", code: true }, { name: "figure" }],
        c[k].map(o => [change(o), value(o, "before"), value(o, "after"), { value: o.site ?? o.name, text: cut(o.site ?? o.name, 90), title: o.site ?? o.name }, o.figure ?? o.kind ?? ""]), { label: names[k], limit: 100 })]));
}
