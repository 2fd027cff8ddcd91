// The blocks of a device's pool over time: each a band from its allocation to its end, on top of those that were there
// before it; x counts allocations and frees, so that what happens at once can be told apart.
import { el, fill, css, facts } from "./dom.js";
import { bytes, count, seconds } from "./format.js";
import { frameName, framePlace, lineOf, tellingPath } from "./data.js";
import { nodeColours } from "./groups.js";
import { showAt, hide } from "./hover.js";

const LEFT = 66, BOTTOM = 20, TOP = 16, LEAST = 0.4; // pixels

export function blocksOf(data, track) {
  return data.raw.blocks.find(b => b.device === track?.device);
}

// {lives: [{born, died, bytes, blocks, node, at: [event, offset, ...]}], sums: bytes by event, times}. Event 0 is what
// was there before, event i is behind the i-th change. What stays lies at the bottom, the largest first.
export function stackOf(raw) {
  if (raw.stack) return raw.stack;
  const n = raw.events.length, lives = [], born = Array.from({ length: n + 1 }, () => []), died = Array.from({ length: n + 1 }, () => []);
  for (let i = 0; i < raw.lives.length; i += 5) {
    const [from, to, size, blocks, node] = raw.lives.slice(i, i + 5), life = { born: from, died: to || Infinity, bytes: size, blocks, node, at: [] };
    lives.push(life);
    born[from].push(life);
    if (to) died[to].push(life);
  }
  born[0].sort((a, b) => (b.died === Infinity) - (a.died === Infinity) || b.bytes - a.bytes);
  const order = [], sums = new Float64Array(n + 1), times = new Float64Array(n + 1);
  times[0] = raw.begin_s;
  for (let i = 0, sum = 0, ns = 0; i <= n; i++) {
    let from = order.length;
    for (const life of died[i]) {
      const at = order.indexOf(life);
      order.splice(at, 1);
      from = Math.min(from, at);
      sum -= life.bytes;
    }
    for (let k = from, offset = k ? order[k - 1].at.at(-1) + order[k - 1].bytes : 0; k < order.length; offset += order[k++].bytes) order[k].at.push(i, offset);
    for (const life of born[i]) {
      const last = order.at(-1);
      life.at.push(i, last ? last.at.at(-1) + last.bytes : 0);
      order.push(life);
      sum += life.bytes;
    }
    sums[i] = sum;
    if (i) times[i] = raw.begin_s + (ns += raw.events[i - 1]) / 1e9;
  }
  return raw.stack = { n, lives, sums, times, most: Math.max(...sums) };
}

// What the i-th change was.
function change(raw, stack, i) {
  const made = stack.lives.find(l => l.born === i && i), gone = stack.lives.find(l => l.died === i);
  return made ? { verb: "allocated", life: made } : gone ? { verb: "freed", life: gone } : null;
}

function spanOf(stack, life) {
  const from = life.born ? `allocated at ${seconds(stack.times[life.born])}` : "there before";
  return `${from}, ${life.died === Infinity ? "not freed here" : `freed at ${seconds(stack.times[life.died])}${life.born ? `, alive for ${seconds(stack.times[life.died] - stack.times[life.born])}` : ""}`}`;
}

// The steps that begin in the picture, by event.
function stepsOf(data, stack) {
  const found = [];
  for (const s of data.report.steps?.list ?? []) {
    if (s.begin_s < stack.times[0] || s.begin_s > stack.times[stack.n]) continue;
    const event = stack.times.findIndex(t => t >= s.begin_s);
    if (event >= 0) found.push({ event, number: s.number });
  }
  return found;
}

// Returns what of it is where: {x, y, width, height, life}, the last one drawn on top.
function draw(data, track, raw, canvas, view, chosen) {
  const stack = stackOf(raw), pr = devicePixelRatio, width = canvas.clientWidth, height = canvas.clientHeight, ctx = canvas.getContext("2d");
  canvas.width = width * pr;
  canvas.height = height * pr;
  ctx.scale(pr, pr);
  ctx.font = `11px ${css("--sans")}`;
  const top = stack.most * 1.02 || 1, X = i => LEFT + (i - view.from) / (view.to - view.from) * (width - LEFT - 8), Y = v => height - BOTTOM - v / top * (height - BOTTOM - TOP);
  const colour = nodeColours(data, track), places = [];
  ctx.save();
  ctx.beginPath();
  ctx.rect(LEFT, 0, width - LEFT - 8, height - BOTTOM);
  ctx.clip();
  for (const life of stack.lives) {
    const end = Math.min(life.died, stack.n + 1);
    if (end < view.from || life.born > view.to) continue;
    const tall = Y(0) - Y(life.bytes);
    ctx.fillStyle = colour(life.node);
    ctx.globalAlpha = chosen.life && chosen.life !== life ? 0.45 : 1;
    for (let k = 0; k < life.at.length; k += 2) {
      let to = k + 2;
      while (to < life.at.length && Math.abs(Y(life.at[to + 1]) - Y(life.at[k + 1])) < LEAST) to += 2; // not to be told apart
      const x = X(life.at[k]), right = X(to < life.at.length ? life.at[to] : end), y = Y(life.at[k + 1] + life.bytes);
      if (right >= LEFT && x <= width) {
        ctx.fillRect(x, y, Math.max(LEAST, right - x), Math.max(LEAST, tall - (tall > 3 ? 0.7 : 0)));
        places.push({ x, y, width: Math.max(1, right - x), height: Math.max(1, tall), life });
      }
      k = to - 2;
    }
  }
  ctx.globalAlpha = 1;
  ctx.restore();
  axes(data, raw, stack, ctx, view, { X, Y, width, height, cursor: chosen.event });
  return places;
}

function axes(data, raw, stack, ctx, view, { X, Y, width, height, cursor }) {
  ctx.fillStyle = css("--dim");
  ctx.textAlign = "right";
  for (const part of [0, 0.5, 1]) ctx.fillText(part ? bytes(stack.most * part) : "0", LEFT - 6, Y(stack.most * part) + 4);
  const line = (event, colour, text, y) => {
    const x = X(event);
    if (x < LEFT || x > width - 8) return false;
    ctx.strokeStyle = ctx.fillStyle = css(colour);
    ctx.beginPath();
    ctx.moveTo(x + 0.5, TOP);
    ctx.lineTo(x + 0.5, height - BOTTOM);
    ctx.stroke();
    if (!text) return true;
    if (colour === "--line") ctx.fillStyle = css("--dim");
    ctx.textAlign = x > width - 120 ? "right" : "left";
    ctx.fillText(text, x + (x > width - 120 ? -3 : 3), y);
    return true;
  };
  const steps = stepsOf(data, stack), each = Math.ceil(steps.length / 12);
  steps.forEach((s, i) => line(s.event, "--line", i % each ? "" : `step ${s.number}`, height - BOTTOM + 13));
  if (!steps.length) {
    ctx.textAlign = "left";
    ctx.fillText(seconds(stack.times[Math.max(0, Math.round(view.from))]), LEFT, height - 6);
    ctx.textAlign = "right";
    ctx.fillText(seconds(stack.times[Math.min(stack.n, Math.round(view.to))]), width - 8, height - 6);
  }
  line(raw.moment + 0.5, "--bad", raw.oom ? "OOM" : "peak", 11);
  if (cursor !== null) line(cursor + 0.5, "--ink", "", 0);
}

function side(data, raw, stack, life) {
  const n = stack.n, most = `${count(raw.moment)} changes of ${raw.pid ? `process ${raw.pid}'s pool` : "the pool"} up to ${raw.oom ? "its failure" : "its peak"} at ${seconds(raw.at_s)}${n > raw.moment ? `, and the ${count(n - raw.moment)} behind it` : ""}`;
  return [
    life ? [
      el("h2", {}, lineOf(data, life.node)), el("p", { class: "big" }, bytes(life.bytes)),
      facts([["blocks", count(life.blocks), life.blocks > 1 ? "of one stack that were there all the time" : ""], ["life", spanOf(stack, life)]]),
      el("h3", {}, "allocated by"),
      el("ol", {}, tellingPath(data, life.node).reverse().slice(0, 24).map(f => el("li", { class: "m" }, `${frameName(data, f)} ${framePlace(data, f)}`))),
    ] : [el("h2", {}, "Blocks over time"), el("p", {}, "Point at a block, or choose it with a click.")],
    el("p", { class: "dim" }, `The last ${most}; the x axis counts them. Left and right go from one to the next, with Shift by ten; the wheel zooms, a double click shows all.`),
    raw.left_out ? el("p", { class: "dim" }, `${count(raw.left_out)} blocks are not drawn.`) : null,
  ];
}

export function drawBlocks(data, track, left, right) {
  const raw = blocksOf(data, track);
  if (!raw || !raw.lives.length) {
    fill(left, el("p", { class: "empty" }, track?.device ? "No blocks of a framework's pool were seen on this device around its failure or peak." : "Blocks over time are of a device's pool: choose the memory of a device above."));
    fill(right);
    return;
  }
  const stack = stackOf(raw), view = { from: 0, to: stack.n + 1 }, chosen = { life: null, event: null };
  const canvas = el("canvas", { class: "blocks", role: "img", tabIndex: 0, "aria-label": `${count(stack.lives.length)} blocks over ${count(stack.n)} changes, at most ${bytes(stack.most)}` });
  const said = el("p", { class: "dim said", "aria-live": "polite" }, "Point at a block.");
  let places = [];
  const again = () => { places = draw(data, track, raw, canvas, view, chosen); fill(right, side(data, raw, stack, chosen.life)); };
  const find = e => places.findLast(p => e.offsetX >= p.x && e.offsetX <= p.x + p.width && e.offsetY >= p.y && e.offsetY <= p.y + p.height)?.life;
  const eventAt = e => view.from + (e.offsetX - LEFT) / (canvas.clientWidth - LEFT - 8) * (view.to - view.from);
  const go = by => {
    chosen.event = Math.max(1, Math.min(stack.n, (chosen.event ?? raw.moment) + (chosen.event === null ? 0 : by)));
    const c = change(raw, stack, chosen.event), room = view.to - view.from;
    if (chosen.event < view.from || chosen.event >= view.to) { view.from = Math.max(0, Math.min(stack.n + 1 - room, chosen.event - room / 2)); view.to = view.from + room; }
    chosen.life = c?.life ?? null;
    said.textContent = `${count(chosen.event)} of ${count(stack.n)}, at ${seconds(stack.times[chosen.event])}: ${c ? `${c.verb} ${bytes(c.life.bytes)}, ${lineOf(data, c.life.node)}` : "a block that is not drawn"}; ${bytes(stack.sums[chosen.event])} in all`;
    again();
  };
  canvas.addEventListener("mousemove", e => {
    const life = find(e);
    if (life) showAt(e.clientX, e.clientY, el("b", {}, bytes(life.bytes)), life.blocks > 1 ? ` in ${count(life.blocks)} blocks` : "", el("div", {}, lineOf(data, life.node)), el("div", { class: "dim" }, spanOf(stack, life))); else hide();
  });
  canvas.addEventListener("mouseleave", hide);
  canvas.addEventListener("click", e => { chosen.life = find(e) ?? null; chosen.event = null; again(); });
  canvas.addEventListener("dblclick", () => { view.from = 0; view.to = stack.n + 1; again(); });
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    const at = eventAt(e), by = e.deltaY < 0 ? 0.8 : 1.25, room = Math.min(stack.n + 1, Math.max(8, (view.to - view.from) * by));
    view.from = Math.max(0, Math.min(stack.n + 1 - room, at - (at - view.from) / (view.to - view.from) * room));
    view.to = view.from + room;
    again();
  }, { passive: false });
  canvas.addEventListener("keydown", e => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!by) return;
    e.preventDefault();
    go(by * (e.shiftKey ? 10 : 1));
  });
  fill(left, said, canvas);
  again();
}
