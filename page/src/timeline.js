// Memory over time: stacked by group, with what limits it, phases, steps and failures. Each window stands at its highest
// moment, so peaks are as high as they were.
import uPlot from "uplot";
import { el, fill, css } from "./dom.js";
import { bytes, count, seconds, cut } from "./format.js";
import { state, set, moment, range, secondsWord } from "./state.js";
import { windowAt } from "./data.js";
import { groupsOf, grouping } from "./groups.js";
import { layersOf } from "./layers.js";
import { showAt, hide } from "./hover.js";

// Of the picture's area, in pixels: to the left are figures, to the right half a label of time.
const LEFT = 62, RIGHT = 26;
let plot = null, strip = null, view = null, layers = null, shape = "";

// From the process's steps: when memory ends, as points in time.
function forecastOf(data, track) {
  const steps = data.report.steps, name = track.kind === "heap" ? "host" : track.name;
  const growth = steps?.growth?.[name], ends = growth?.runs_out_at_step;
  if (!ends || !growth.limit_bytes || !steps.list.length) return null;
  const first = steps.list[0], last = steps.list.at(-1), period = (last.end_s - first.begin_s) / Math.max(1, last.number + last.count - first.number);
  const time = step => step === null ? null : first.begin_s + (step - (first.number - 1)) * period;
  return { from: [last.end_s, last.high_bytes[name] ?? last.low_bytes[name]], limit: growth.limit_bytes, at: time(ends.at), low: time(ends.low), high: time(ends.high), step: ends };
}

function stepPath(ctx, u, data, top, bottom) {
  const x = i => u.valToPos(data.times[i], "x", true), y = v => u.valToPos(v, "y", true);
  ctx.beginPath();
  ctx.moveTo(x(0), y(top[0]));
  for (let i = 0; i < data.count; i++) { ctx.lineTo(x(i), y(top[i])); ctx.lineTo(x(i + 1), y(top[i])); }
  for (let i = data.count - 1; i >= 0; i--) { ctx.lineTo(x(i + 1), y(bottom[i])); ctx.lineTo(x(i), y(bottom[i])); }
  ctx.closePath();
}

// It stays the same while a brush moves, so it is kept as a picture.
function drawStack(u, data) {
  const { ctx, bbox } = u, key = [bbox.left, bbox.top, bbox.width, bbox.height, view, state.only].join();
  if (layers.pictureKey !== key) {
    layers.picture = document.createElement("canvas");
    layers.picture.width = ctx.canvas.width;
    layers.picture.height = ctx.canvas.height;
    layers.pictureKey = key;
    paintStack(u, data, layers.picture.getContext("2d"));
  }
  ctx.drawImage(layers.picture, 0, 0);
}

function paintStack(u, data, ctx) {
  const { bbox } = u;
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  let below = new Float64Array(data.count);
  for (const layer of layers.list) {
    const top = below.map((v, i) => v + layer.values[i]);
    stepPath(ctx, u, data, top, below);
    ctx.fillStyle = layer.colour;
    ctx.globalAlpha = state.only !== "" && `=${layer.key}` !== state.only ? 0.16 : 0.88;
    ctx.fill();
    below = top;
  }
}

function text(ctx, words, x, y, colour, align = "left", back = null) {
  ctx.font = `${11 * devicePixelRatio}px ${css("--sans")}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic"; // uPlot leaves its own
  const w = ctx.measureText(words).width, left = align === "right" ? x - w : align === "center" ? x - w / 2 : x;
  if (back) {
    ctx.fillStyle = back;
    ctx.fillRect(left - 4 * devicePixelRatio, y - 12 * devicePixelRatio, w + 8 * devicePixelRatio, 16 * devicePixelRatio);
  }
  ctx.fillStyle = colour;
  ctx.fillText(words, left, y);
  return w;
}

// Of "FILE:LINE FUNCTION" what there is room for: all, the function, its end, or nothing. Of another name all or nothing.
function phaseName(ctx, name, room) {
  ctx.font = `${11 * devicePixelRatio}px ${css("--sans")}`;
  const own = /^(?:In \[\d+\]|[^ ]+):\d+ (.*)$/.exec(name)?.[1] ?? name;
  return [name, ...own === name ? [] : [own, own.slice(own.lastIndexOf(".") + 1)]].map(shownName).find(n => ctx.measureText(n).width <= room) ?? "";
}

const shownName = name => cut(name, 60);

function drawAround(u, data, track) {
  const { ctx, bbox } = u, pr = devicePixelRatio;
  const X = s => u.valToPos(s, "x", true), Y = v => u.valToPos(v, "y", true);
  const left = bbox.left, right = bbox.left + bbox.width, top = bbox.top, bottom = bbox.top + bbox.height;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, bbox.width, bbox.height);
  ctx.clip();
  // phases: a tint and a name where there is room
  const phases = (data.report.phases ?? []).filter(p => p.end_s > p.start_s);
  const names = [];
  let used = left;
  phases.slice(0, 60).forEach((p, i) => {
    const a = Math.max(left, X(p.start_s)), b = Math.min(right, X(p.end_s));
    if (b - a < 2 * pr) return;
    if (i % 2) { ctx.fillStyle = css("--fg"); ctx.globalAlpha = 0.035; ctx.fillRect(a, top, b - a, bbox.height); ctx.globalAlpha = 1; }
    const name = phaseName(ctx, p.name, b - a - 8 * pr);
    if (name && a >= used) { names.push([name, a + 2 * pr]); used = b; }
  });
  // steps: ticks at the bottom
  const steps = data.report.steps?.list ?? [];
  if (steps.length && data.report.steps.source !== "none") {
    const every = Math.max(1, Math.ceil(steps.length / (bbox.width / (6 * pr))));
    ctx.strokeStyle = css("--fg");
    ctx.globalAlpha = 0.5;
    ctx.beginPath();
    steps.forEach((s, i) => { if (i % every === 0) { ctx.moveTo(X(s.begin_s), bottom); ctx.lineTo(X(s.begin_s), bottom - 4 * pr); } });
    ctx.stroke();
    ctx.globalAlpha = 1;
  }
  // the selected range
  if (state.from !== "" || state.to !== "") {
    const r = range(data), a = X(r.from >= 0 ? data.times[r.from + 1] : data.times[0]), b = X(data.times[r.to + 1]);
    ctx.fillStyle = css("--accent");
    ctx.globalAlpha = 0.13;
    ctx.fillRect(a, top, b - a, bbox.height);
    ctx.globalAlpha = 1;
  }
  for (const line of layers.lines.filter(l => !l.apart)) {
    ctx.setLineDash(line.dash.map(v => v * pr));
    ctx.strokeStyle = css("--fg");
    ctx.lineWidth = 1.2 * pr;
    ctx.beginPath();
    line.x.forEach((x, i) => i ? ctx.lineTo(X(x), Y(line.y[i])) : ctx.moveTo(X(x), Y(line.y[i])));
    ctx.stroke();
  }
  ctx.setLineDash([]);
  if (layers.limit.bytes && layers.limitShown) {
    ctx.strokeStyle = css("--bad");
    ctx.lineWidth = 1.4 * pr;
    ctx.beginPath();
    ctx.moveTo(left, Y(layers.limit.bytes));
    ctx.lineTo(right, Y(layers.limit.bytes));
    ctx.stroke();
    text(ctx, `${layers.limit.name} ${bytes(layers.limit.bytes)}`, left + 6 * pr, Y(layers.limit.bytes) + 14 * pr, css("--bad"), "left", css("--bg"));
  }
  const f = layers.forecast;
  if (f && f.at !== null) {
    ctx.strokeStyle = css("--bad");
    ctx.fillStyle = css("--bad");
    ctx.lineWidth = 1.5 * pr;
    ctx.globalAlpha = 0.15;
    ctx.beginPath();
    ctx.moveTo(X(f.from[0]), Y(f.from[1]));
    ctx.lineTo(X(f.low ?? f.at), Y(f.limit));
    ctx.lineTo(f.high === null ? right : X(f.high), Y(f.limit));
    ctx.closePath();
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.setLineDash([2 * pr, 3 * pr]);
    ctx.beginPath();
    ctx.moveTo(X(f.from[0]), Y(f.from[1]));
    ctx.lineTo(X(f.at), Y(f.limit));
    ctx.stroke();
    ctx.setLineDash([]);
    text(ctx, `forecast: step ${Math.round(f.step.at)} (${Math.round(f.step.low ?? f.step.at)} to ${f.step.high === null ? "never" : Math.round(f.step.high)})`,
      Math.min(X(f.at), right) - 6 * pr, top + 26 * pr, css("--bad"), "right", css("--bg"));
  }
  let last = -Infinity;
  for (const m of layers.failures) {
    ctx.strokeStyle = css("--bad");
    ctx.lineWidth = 1.6 * pr;
    ctx.beginPath();
    ctx.moveTo(X(m.at_s), top);
    ctx.lineTo(X(m.at_s), bottom);
    ctx.stroke();
    if (X(m.at_s) - last < 46 * pr) continue;
    last = X(m.at_s);
    const near = X(m.at_s) > right - 110 * pr;
    text(ctx, m.step ? `OOM, step ${m.step}` : "OOM", X(m.at_s) + (near ? -8 : 8) * pr, top + 44 * pr, css("--bg"), near ? "right" : "left", css("--bad"));
  }
  if (state.mode === "alive") {
    const at = X(moment(data, track, state.at).time);
    ctx.strokeStyle = css("--accent");
    ctx.lineWidth = 1.5 * pr;
    ctx.beginPath();
    ctx.moveTo(at, top);
    ctx.lineTo(at, bottom);
    ctx.stroke();
  }
  ctx.restore();
  for (const [name, x] of names) text(ctx, name, x, top - 5 * pr, css("--dim"));
}

function nice(max) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(max || 1) / 10));
  for (const step of [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 256, 512]) {
    if (max / (step * unit) <= 5) return step * unit;
  }
  return max / 4 || 1;
}

function make(data, track, box) {
  const width = box.clientWidth, height = box.clientHeight;
  const top = layers.top;
  const options = {
    width, height,
    padding: [18, RIGHT, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, lock: false },
    select: { show: true },
    scales: { x: { time: false, range: () => view ?? [data.times[0], data.times.at(-1)] }, y: { range: [0, top] } },
    axes: [
      { stroke: css("--dim"), space: 64, grid: { show: false }, ticks: { stroke: css("--line"), size: 4 }, font: `11px ${css("--sans")}`, size: 26, values: (u, v) => v.map(t => axisTime(t, v)) },
      { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: `11px ${css("--sans")}`, size: LEFT, gap: 4, splits: () => { const s = nice(top), out = []; for (let v = 0; v <= top; v += s) out.push(v); return out; }, values: (u, v) => v.map(x => axisBytes(x, v)) },
    ],
    series: [{}, { stroke: "transparent", points: { show: false } }],
    hooks: {
      drawAxes: [u => drawStack(u, data)],
      draw: [u => drawAround(u, data, track)],
      setSelect: [u => {
        const a = u.posToVal(u.select.left, "x"), b = u.posToVal(u.select.left + u.select.width, "x");
        if (u.select.width > 3) chooseRange(data, a, b);
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }],
      setCursor: [u => hover(data, track, u)],
    },
  };
  plot = new uPlot(options, [data.times.slice(1), Array.from(track.high)], box);
  const over = plot.over;
  let pressed = 0;
  over.addEventListener("mousedown", e => { pressed = e.clientX; });
  over.addEventListener("click", e => {
    if (Math.abs(e.clientX - pressed) > 3) return;
    const t = plot.posToVal(e.offsetX, "x");
    set({ at: secondsWord(data.times[windowAt(data, t) + 1]), mode: "alive" });
  });
  over.addEventListener("wheel", e => {
    e.preventDefault();
    zoom(data, plot.posToVal(e.offsetX, "x"), e.deltaY > 0 ? 1.25 : 0.8);
  }, { passive: false });
  over.addEventListener("dblclick", () => zoom(data, 0, Infinity));
}

// All labels have one form, and are as exact as their distance: seconds, or where they are many and whole, minutes or
// hours too; in what is over at once, milliseconds or microseconds.
// In one unit, that of the highest one.
function axisBytes(v, all) {
  const power = Math.max(0, Math.floor(Math.log2(all.at(-1) || 1) / 10)), step = (all[1] ?? 0) / 1024 ** power;
  const digits = [0, 1, 2].find(n => Math.abs(step * 10 ** n - Math.round(step * 10 ** n)) < 1e-6) ?? 2;
  return v ? `${(v / 1024 ** power).toFixed(digits)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][power]}` : "0";
}

function axisTime(t, all) {
  const step = all.length > 1 ? all[1] - all[0] : 1, last = all.at(-1), two = n => String(n).padStart(2, "0");
  const [unit, name] = step >= 0.001 || last >= 1 ? [1, "s"] : step >= 0.000001 ? [1000, "ms"] : [1000000, "\u00b5s"];
  let digits = Math.max(0, -Math.floor(Math.log10(step * unit) + 1e-9));
  if (Math.abs(step * unit * 10 ** digits % 1 - 0.5) < 0.1) digits++; // 2.5, 0.25
  if (last > 120 && step >= 1 && !digits) {
    const whole = Math.round(t), parts = [Math.floor(whole / 60) % 60, whole % 60].map(two);
    return last >= 3600 ? `${Math.floor(whole / 3600)}:${parts.join(":")}` : `${Math.floor(whole / 60)}:${parts[1]}`;
  }
  return `${(t * unit).toFixed(digits)} ${name}`;
}

export function zoom(data, around, factor) {
  const [first, last] = [data.times[0], data.times.at(-1)], [a, b] = view ?? [first, last];
  const from = Math.max(first, around - (around - a) * factor), to = Math.min(last, around + (b - around) * factor);
  if (to - from < (last - first) / 5000) return;
  view = from <= first && to >= last || !isFinite(factor) ? null : [from, to];
  plot.redraw(false, true);
  plot.setScale("x", { min: (view ?? [first, last])[0], max: (view ?? [first, last])[1] });
  drawStrip(data);
}

export function chooseRange(data, a, b, moving = false) {
  const from = windowAt(data, Math.max(data.times[0], Math.min(a, b))), to = windowAt(data, Math.max(a, b));
  if (to <= from) return;
  set({ from: secondsWord(data.times[from + 1]), to: secondsWord(data.times[to + 1]), mode: state.mode === "alive" ? "grew" : state.mode }, moving);
}

// The step and the phase that a time lies in.
function around(data, t) {
  const steps = data.report.steps?.source === "none" ? [] : data.report.steps?.list ?? [], step = steps.find(s => s.begin_s <= t && t <= s.end_s);
  const phases = (data.report.phases ?? []).filter(p => p.start_s <= t && t <= p.end_s), phase = phases.sort((a, b) => (a.end_s - a.start_s) - (b.end_s - b.start_s))[0];
  return [step ? `step ${count(step.number)}` : null, phase ? cut(phase.name, 44) : null].filter(x => x);
}

const SHOWN = 14; // rows of the box

function hover(data, track, u) {
  if (u.cursor.left < 0 || !u.over.matches(":hover")) { hide(); return; }
  const i = windowAt(data, u.posToVal(u.cursor.left, "x")), place = u.over.getBoundingClientRect();
  const all = [...layers.list].reverse().filter(l => l.values[i] > 0), small = all.length > SHOWN ? all.filter(l => !l.rest).sort((a, b) => a.values[i] - b.values[i]).slice(0, all.length - SHOWN + 1) : [];
  const row = (mark, name, value) => el("tr", {}, el("td", {}, mark, cut(name, 46)), el("td", { class: "n" }, bytes(value)));
  const swatch = colour => el("i", { class: "key", style: { background: colour } });
  showAt(place.left + u.cursor.left, place.top + u.cursor.top,
    el("b", {}, [seconds(data.times[i + 1]), ...around(data, data.times[i + 1])].join(", ")),
    el("table", {}, el("tbody", {},
      all.filter(l => !small.includes(l)).map(l => row(swatch(l.colour), l.name, l.values[i])),
      small.length ? row(swatch(css("--other")), `${count(small.length)} smaller ones`, small.reduce((sum, l) => sum + l.values[i], 0)) : null,
      row(null, `${track.title}, together`, track.high[i]),
      layers.lines.filter(l => isFinite(l.values[i])).map(l => row(el("i", { class: `key ${lineClass(l)}` }), l.name, l.values[i])))),
    data.times[i + 1] - data.times[i] > 0 ? el("p", { class: "dim" }, `highest in ${seconds(data.times[i + 1] - data.times[i])}; at its end ${bytes(track.live[i])}`) : null);
}

const lineClass = l => l.dash[0] > 4 ? "line" : l.dash[0] > 1 ? "line short" : "line dots";

// ---- the strip below, with the brush ----

function drawStrip(data) {
  const pr = devicePixelRatio, w = strip.clientWidth, h = strip.clientHeight, ctx = strip.getContext("2d");
  strip.width = w * pr;
  strip.height = h * pr;
  ctx.scale(pr, pr);
  const [left, right] = [LEFT, w - RIGHT], first = data.times[0], span = data.times.at(-1) - first;
  const X = s => left + (s - first) / span * (right - left), track = layers.track;
  ctx.fillStyle = css("--dim");
  ctx.globalAlpha = 0.4;
  ctx.beginPath();
  ctx.moveTo(left, h);
  for (let i = 0; i < data.count; i++) {
    const y = h - 2 - track.high[i] / (track.peak || 1) * (h - 6);
    ctx.lineTo(X(data.times[i]), y);
    ctx.lineTo(X(data.times[i + 1]), y);
  }
  ctx.lineTo(right, h);
  ctx.fill();
  ctx.globalAlpha = 1;
  const r = range(data), a = X(r.from >= 0 ? data.times[r.from + 1] : first), b = X(data.times[r.to + 1]);
  ctx.fillStyle = css("--accent");
  ctx.globalAlpha = state.from === "" && state.to === "" ? 0.06 : 0.2;
  ctx.fillRect(a, 0, b - a, h);
  ctx.globalAlpha = 1;
  for (const x of [a, b]) { ctx.beginPath(); ctx.roundRect(x - 2.5, h / 2 - 8, 5, 16, 2); ctx.fill(); }
  if (view) {
    ctx.strokeStyle = css("--fg");
    ctx.strokeRect(X(view[0]) + 0.5, 0.5, X(view[1]) - X(view[0]) - 1, h - 1);
  }
}

function brush(data) {
  let drag = null;
  const time = e => {
    const box = strip.getBoundingClientRect(), x = (e.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    return data.times[0] + Math.min(1, Math.max(0, x)) * (data.times.at(-1) - data.times[0]);
  };
  const px = s => LEFT + (s - data.times[0]) / (data.times.at(-1) - data.times[0]) * (strip.clientWidth - LEFT - RIGHT);
  strip.addEventListener("pointerdown", e => {
    const r = range(data), a = r.from >= 0 ? data.times[r.from + 1] : data.times[0], b = data.times[r.to + 1], t = time(e);
    const x = e.clientX - strip.getBoundingClientRect().left;
    drag = Math.abs(x - px(a)) < 8 ? { fixed: b } : Math.abs(x - px(b)) < 8 ? { fixed: a }
      : t > a && t < b && state.from !== "" ? { start: t, a, b } : { fixed: t };
    strip.setPointerCapture(e.pointerId);
  });
  strip.addEventListener("pointermove", e => {
    if (!drag) return;
    const t = time(e);
    if (drag.fixed !== undefined) chooseRange(data, drag.fixed, t, true);
    else chooseRange(data, Math.max(data.times[0], drag.a + t - drag.start), Math.min(data.times.at(-1), drag.b + t - drag.start), true);
  });
  strip.addEventListener("pointerup", () => { drag = null; });
  strip.addEventListener("dblclick", () => set({ from: "", to: "" }));
}

// ---- all ----

// What tests look at.
export const layersNow = () => layers;

export function nameOfOnly() {
  return layers?.list.find(l => `=${l.key}` === state.only)?.name ?? "none of these";
}

let unfolded = false;

// One for each colour; a click shows it alone: in the chart, in the flame graph and among owners. `shown` of the track's
// own are there, the others behind a button.
function entries(data, track, shown, redraw) {
  const { at, high } = moment(data, track, state.at), most = l => Math.max(...l.values), value = l => (high ? l.values : l.ends)[at];
  const own = layers.list.filter(l => !l.rest && most(l) > 0).sort((a, b) => value(b) - value(a) || most(b) - most(a)), rest = layers.list.filter(l => l.rest);
  const entry = l => el("button", { type: "button", class: `key${state.only === `=${l.key}` ? " on" : ""}`, title: `${l.name}: at most ${bytes(most(l))}. A click shows it alone.`, "aria-pressed": String(state.only === `=${l.key}`),
    onclick: () => set({ only: state.only === `=${l.key}` ? "" : `=${l.key}`, node: "" }) }, el("i", { style: { background: l.colour } }), `${cut(l.name, 34)} `, el("span", { class: "dim" }, bytes(value(l))));
  const lines = layers.lines.map(l => el("span", { class: "key", title: l.apart ? "too high to be drawn here" : "" }, el("i", { class: lineClass(l) }), l.name, l.apart ? el("span", { class: "dim" }, ` at most ${bytes(l.peak)}, above the chart`) : ""));
  return [own.slice(0, shown).map(entry), own.length > shown ? el("button", { type: "button", class: "key more", onclick: () => { unfolded = true; redraw(); } }, `${count(own.length - shown)} more`) : null, rest.map(entry), lines];
}

// As many as there is room for in a line, or in two of a high window.
function label(data, track, box, redraw) {
  const rows = innerWidth < 700 ? 5 : innerHeight < 1000 ? 1 : 2;
  for (let shown = layers.list.filter(l => !l.rest).length; shown >= 0; shown--) {
    fill(box, entries(data, track, shown, redraw));
    if (unfolded || shown < 2 || box.getBoundingClientRect().height < 24 * rows) return;
  }
}

// `layout` is called when the legend is there, and gives the chart its height.
export function drawTimeline(data, track, boxes, changed, layout = null) {
  const by = grouping(track), relabel = () => label(data, track, boxes.legend, relabel);
  const wanted = `${track.name}|${by}|${boxes.plot.clientWidth}|${boxes.plot.clientHeight}|${changed ? "" : "all"}`;
  if (!plot || wanted !== shape || !changed || changed.has("theme")) {
    shape = wanted;
    if (!layers || layers.track !== track) view = null;
    const made = layersOf(data, track, groupsOf(data, track, by));
    layers = { ...made, forecast: made.limitShown && !made.failures.length ? forecastOf(data, track) : null };
    if (plot) plot.destroy();
    relabel();
    layout?.();
    if (!strip) {
      strip = boxes.strip;
      brush(data);
    }
    make(data, track, boxes.plot);
  } else {
    plot.redraw(false, false);
  }
  drawStrip(data);
  relabel();
}
