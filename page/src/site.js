// What is known of the selected frame: its code, its bytes over time, how it grows, what it pins.
import { el, fill, css, facts } from "./dom.js";
import { bytes, count, percent, seconds, cut, cutPath } from "./format.js";
import { state, when } from "./state.js";
import { frameName, framePlace, pathOf } from "./data.js";
import { chosen, largest, figure } from "./flame.js";

function code(data, f) {
  const [, file, line] = data.frames[f], lines = data.raw.source?.[file];
  if (!lines || !line) return null;
  const numbers = Object.keys(lines).map(Number).filter(n => Math.abs(n - line) <= 2).sort((a, b) => a - b);
  if (!numbers.length) return null;
  const text = n => lines[n].replaceAll("\t", "    "), indent = Math.min(...numbers.filter(n => text(n).trim()).map(n => text(n).search(/\S/)));
  return el("pre", { class: "code" }, numbers.map(n => el("div", { class: n === line ? "here" : "" }, el("span", { class: "dim" }, String(n).padStart(5), "  "), text(n).slice(isFinite(indent) ? indent : 0))));
}

// A line of values in time, or of points.
export function course(x, y, { height = 64, colour = css("--accent"), zero = true, band = null, title = "" } = {}) {
  const canvas = el("canvas", { class: "course", title, role: "img", "aria-label": title });
  canvas.style.height = `${height}px`;
  requestAnimationFrame(() => {
    const pr = devicePixelRatio, w = canvas.clientWidth, h = height, ctx = canvas.getContext("2d");
    canvas.width = w * pr;
    canvas.height = h * pr;
    ctx.scale(pr, pr);
    const top = Math.max(...y, ...(band?.y ?? []), 1), bottom = zero ? 0 : Math.min(...y), span = (x.at(-1) - x[0]) || 1;
    const X = v => (v - x[0]) / span * (w - 2) + 1, Y = v => h - 2 - (v - bottom) / (top - bottom || 1) * (h - 6);
    ctx.strokeStyle = css("--line");
    ctx.strokeRect(0.5, 0.5, w - 1, h - 1);
    ctx.beginPath();
    x.forEach((v, i) => i ? ctx.lineTo(X(v), Y(y[i])) : ctx.moveTo(X(v), Y(y[i])));
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5;
    ctx.stroke();
    if (zero) {
      ctx.lineTo(X(x.at(-1)), h);
      ctx.lineTo(X(x[0]), h);
      ctx.fillStyle = colour;
      ctx.globalAlpha = 0.25;
      ctx.fill();
      ctx.globalAlpha = 1;
    }
    if (band) {
      ctx.strokeStyle = css("--bad");
      ctx.setLineDash([3, 3]);
      ctx.beginPath();
      band.x.forEach((v, i) => i ? ctx.lineTo(X(v), Y(band.y[i])) : ctx.moveTo(X(v), Y(band.y[i])));
      ctx.stroke();
    }
  });
  return canvas;
}

function growthOf(data, track, node) {
  const name = frameName(data, node.frame).replaceAll(".<locals>", "").replace(/(.)\([^()]*\)$/, "$1"), place = framePlace(data, node.frame); // as lists have it
  return data.raw.growing.find(g => g.memory === track.kind && (g.device ?? null) === (track.device ?? null) && pathOf(data, g.node).at(-1) !== undefined &&
    (g.name === name || g.name.includes(name)) && (!g.where || g.where === place));
}

// Without steps, and of less than a second, there is no rate.
export function rateOf(g) {
  return g.rate === null ? `${bytes(g.grown_bytes)} in ${seconds(g.grew_for_s)}` : `${bytes(g.rate)} a ${g.stepped ? "step" : "second"}`;
}

// Of all of this memory together, as the verdict and the tab of growth have it. Where it failed, that is known better.
function ends(data, track) {
  const at = data.report.steps?.growth?.[track.kind === "heap" ? "host" : track.name]?.runs_out_at_step;
  return at && !data.raw.moments.some(m => m.name === "OOM") ? ["if it goes on", `memory ends at step ${count(at.at)}`] : null;
}

function pins(data, track, node, at) {
  const maps = data.raw.maps.filter(m => m.device === track.device);
  if (!maps.length) return null;
  const map = maps.reduce((a, b) => Math.abs(b.at_s - at.time) < Math.abs(a.at_s - at.time) ? b : a);
  const nodes = new Set(node.stacks.map(s => s.node)), found = map.pins.filter(p => nodes.has(p.node));
  if (!found.length) return null;
  const sum = key => found.reduce((all, p) => all + p[key], 0);
  return ["pins", `${bytes(sum("pinned"))} unused`, `in ${count(sum("segments"))} segment${sum("segments") === 1 ? "" : "s"} at ${seconds(map.at_s)}`];
}

function madeBy(data, node) {
  const parts = [];
  for (let n = node.up; n && n.frame !== undefined && parts.length < 12; n = n.up) parts.push(n.frame);
  return parts.length ? el("ol", { class: "callers" }, parts.map(f => el("li", { title: data.frames[f][1] ?? data.frames[f][3] ?? "" }, el("span", { class: "m" }, cut(frameName(data, f), 60)), " ", el("span", { class: "dim" }, framePlace(data, f))))) : null;
}

export function drawSite(data, track, tree, box) {
  if (!tree) { fill(box); return; }
  const node = chosen(tree) ?? (state.node ? null : largest(data, track, tree));
  if (!node || node.frame === undefined) {
    fill(box, el("h2", {}, track.title), el("p", { class: "big" }, figure(tree.all)), el("p", { class: "dim" }, state.node ? "The chosen frame has nothing at this moment or in this range." : "Click on a frame to see its code, its course over time and how it grows; shift-click shows it alone."));
    return;
  }
  const at = when(data, track), total = tree.value;
  const values = new Float64Array(data.count);
  for (const s of new Set(node.stacks)) for (let i = 0; i < data.count; i++) values[i] += s.live[i];
  const x = data.times.slice(1), growth = growthOf(data, track, node), [, file, line, library, language] = data.frames[node.frame];
  const shown = state.mode === "difference" ? node.delta : node.value;
  const sized = node.blocks > 0 && state.mode === "alive" && state.what !== "blocks";
  const categories = [...new Set(node.stacks.map(s => s.category))].filter(c => c !== "unknown");
  fill(box,
    el("h2", { class: "m", title: data.frames[node.frame][0] ?? "" }, cut(frameName(data, node.frame), 90)),
    el("p", { class: "dim m place", title: file ?? library ?? "" }, cutPath(file ? `${file}${line ? `:${line}` : ""}` : library ?? "", 84)),
    el("p", { class: "big" }, figure(shown), el("span", { class: "dim" }, ` ${percent(Math.abs(shown), total)}`)),
    code(data, node.frame),
    el("p", { class: "dim label" }, "alive over time"),
    course(x, Array.from(values), { title: `alive over time, at most ${bytes(Math.max(...values))}` }),
    facts([
      sized ? [node.blocks === 1 ? "in" : "in blocks", node.blocks === 1 ? "1 block" : count(node.blocks), node.blocks === 1 ? "" : `of ${bytes(shown / node.blocks)} on average`] : null,
      ["at most", bytes(Math.max(...values))],
      growth?.rate || growth?.rate === null ? ["grows by", rateOf(growth), [growth.rate ? `\u00b1 ${bytes(growth.error)}` : "", growth.kind, track.processes.length > 1 ? `in process ${growth.pid}` : ""].filter(x => x).join(", ")] : growth ? ["shape", growth.kind] : null,
      growth ? ["certainty", growth.certainty] : null,
      growth ? ends(data, track) : null,
      categories.length ? ["for", categories.join(", ").replaceAll("_", " ")] : null,
      pins(data, track, node, at),
      language ? ["language", language] : null,
      node.stacks.some(s => s.estimated) ? ["sampled", "figures are estimates"] : null,
    ]),
    node.up?.frame !== undefined ? el("p", { class: "dim label" }, state.shape === "inverted" ? "on the way to" : "called by") : null,
    madeBy(data, node));
}
