// How blocks lay in the memory that was reserved for them: a row for each segment, small ones as cells.
import { el, fill, css, facts } from "./dom.js";
import { bytes, count, seconds, percent, cut } from "./format.js";
import { state, set, moment } from "./state.js";
import { lineOf } from "./data.js";
import { nodeColours } from "./groups.js";

const ROW = 20, BAR = 15, ROWS = 14, CELLS = [18, 12, 7];

export function mapsOf(data, track) {
  return data.raw.maps.filter(m => m.device === track?.device).sort((a, b) => a.at_s - b.at_s || b.oom - a.oom);
}

// The one that is chosen, else the nearest to the moment.
function pick(data, track, maps) {
  const index = Number(state.map);
  if (state.map !== "" && maps[index]) return index;
  const at = moment(data, track, state.at).time;
  let best = 0;
  maps.forEach((m, i) => { if (Math.abs(m.at_s - at) < Math.abs(maps[best].at_s - at)) best = i; });
  return best;
}

// {segment, x, y, width, height} of all that is drawn, for the pointer.
function draw(data, track, map, canvas) {
  const pr = devicePixelRatio, width = canvas.parentElement.clientWidth - 4, colour = nodeColours(data, track);
  const largest = map.segments[0]?.bytes ?? 1, rows = map.segments.filter(s => s.bytes > largest / 40).slice(0, ROWS), rest = map.segments.slice(rows.length);
  const CELL = CELLS.find(size => rest.length <= Math.floor(width / size) * 6) ?? CELLS.at(-1);
  const bar = width - 170, each = Math.max(1, Math.floor(width / CELL)), cells = Math.ceil(rest.length / each);
  const height = rows.length * ROW + (rest.length ? 30 + cells * CELL : 0) + 8;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.width = width * pr;
  canvas.height = height * pr;
  const ctx = canvas.getContext("2d"), places = [];
  ctx.scale(pr, pr);
  ctx.font = `11px ${css("--sans")}`;
  let y = 2;
  for (const s of rows) {
    const w = Math.max(2, s.bytes / largest * bar), scale = w / s.bytes, list = s.rectangles;
    ctx.fillStyle = css("--hole");
    ctx.fillRect(0, y, w, BAR);
    for (let i = 0; i < list.length; i += 5) {
      const x = list[i] * scale, own = list[i + 1] * scale;
      ctx.fillStyle = colour(list[i + 3]);
      ctx.globalAlpha = Math.max(0.25, list[i + 2] / list[i + 1]);
      ctx.fillRect(x, y, Math.max(0.5, own - (own > 3 ? 0.6 : 0)), BAR);
    }
    ctx.globalAlpha = 1;
    if (s.hole && s.hole === map.hole) {
      const gap = holeOf(s);
      ctx.strokeStyle = css("--bad");
      ctx.lineWidth = 1.5;
      ctx.strokeRect(gap.from * scale + 0.75, y + 0.75, Math.max(1, (gap.to - gap.from) * scale - 1.5), BAR - 1.5);
    }
    ctx.fillStyle = css("--dim");
    ctx.fillText(`${bytes(s.bytes)}${s.hole ? `, hole ${bytes(s.hole)}` : ", full"}${s.private ? ", graph" : ""}`, w + 8, y + 12);
    places.push({ segment: s, x: 0, y, width: w, height: BAR, scale });
    y += ROW;
  }
  if (rest.length) {
    ctx.fillStyle = css("--dim");
    ctx.fillText(`${count(rest.length)} smaller segments of ${bytes(rest.at(-1).bytes)} to ${bytes(rest[0].bytes)}, one cell each: the darker, the fuller`, 0, y + 14);
    y += 22;
    rest.forEach((s, i) => {
      const x = i % each * CELL, at = y + Math.floor(i / each) * CELL;
      ctx.fillStyle = css("--hole");
      ctx.fillRect(x, at, CELL - 1, CELL - 1);
      if (s.used) {
        ctx.fillStyle = colour(biggest(s));
        ctx.globalAlpha = 0.2 + 0.8 * s.used / s.bytes;
        ctx.fillRect(x, at, CELL - 1, CELL - 1);
        ctx.globalAlpha = 1;
      }
      places.push({ segment: s, x, y: at, width: CELL - 1, height: CELL - 1, scale: 0 });
    });
  }
  return places;
}

function biggest(s) {
  let node = 0, most = -1;
  for (let i = 0; i < s.rectangles.length; i += 5) if (s.rectangles[i + 2] > most) { most = s.rectangles[i + 2]; node = s.rectangles[i + 3]; }
  return node;
}

function holeOf(s) {
  let at = 0, best = { from: 0, to: 0 };
  for (let i = 0; i <= s.rectangles.length; i += 5) {
    const start = i < s.rectangles.length ? s.rectangles[i] : s.bytes;
    if (start - at > best.to - best.from) best = { from: at, to: start };
    at = i < s.rectangles.length ? s.rectangles[i] + s.rectangles[i + 1] : at;
  }
  return best;
}

function describe(data, place, x) {
  const s = place.segment, head = `Segment ${s.address}: ${bytes(s.bytes)}, ${bytes(s.used)} in use, largest hole ${bytes(s.hole)}`;
  if (!place.scale) return `${head}. Mostly ${lineOf(data, biggest(s))}`;
  const offset = (x - place.x) / place.scale, list = s.rectangles;
  for (let i = 0; i < list.length; i += 5)
    if (offset >= list[i] && offset < list[i] + list[i + 1])
      return `${head}. Here: ${bytes(list[i + 2])} in ${count(list[i + 4])} block${list[i + 4] === 1 ? "" : "s"}, ${lineOf(data, list[i + 3])}`;
  return `${head}. Here: nothing`;
}

function side(data, map) {
  const fits = map.requested !== null ? (map.usable_hole >= map.requested ? "a hole is large enough" : "no hole is large enough") : null;
  return [
    el("h2", {}, "Largest hole"),
    el("p", { class: "big" }, bytes(map.hole)),
    fits ? el("p", {}, `${bytes(map.requested)} were asked for. In segments that may serve it (of its stream, for its size) ${fits}: the largest has ${bytes(map.usable_hole)}.`) : null,
    facts([
      ["reserved", bytes(map.reserved), `in ${count(map.segment_count)} segments`],
      ["in blocks", bytes(map.allocated), percent(map.allocated, map.reserved)],
      ["unused", bytes(map.reserved - map.allocated)],
      ["could go back", bytes(map.idle), "segments without a block"],
    ]),
    el("h3", {}, "Who keeps segments from going back"),
    map.pins.length ? el("table", {}, el("thead", {}, el("tr", {}, ["allocated by", "holds", "keeps unused"].map((h, i) => el("th", { class: i ? "n" : "", scope: "col" }, h)))),
      el("tbody", {}, map.pins.slice(0, 12).map(p => el("tr", {}, el("td", { class: "m", title: lineOf(data, p.node) }, cut(lineOf(data, p.node), 34)), el("td", { class: "n" }, bytes(p.held)), el("td", { class: "n" }, bytes(p.pinned))))))
      : el("p", { class: "dim" }, "Nobody: each segment is full or empty."),
    map.segments_left_out ? el("p", { class: "dim" }, `${count(map.segments_left_out)} smaller segments, ${bytes(map.bytes_left_out)}, are not drawn.`) : null,
  ];
}

export function drawMap(data, track, left, right) {
  const maps = mapsOf(data, track);
  if (!maps.length) {
    fill(left, el("p", { class: "empty" }, track?.device ? "No segments of a framework's pool were seen on this device." : `${data.tracks.some(t => t.device) ? "The memory map is of devices: choose the memory of one above." : "The memory map is of devices, and this trace has none."} Of heaps, memtrace frag shows arenas.`));
    fill(right);
    return;
  }
  const index = pick(data, track, maps), map = maps[index];
  const canvas = el("canvas", { class: "map", role: "img", "aria-label": `Memory map: ${count(map.segment_count)} segments, largest hole ${bytes(map.hole)}` }), said = el("p", { class: "dim said", "aria-live": "polite" }, "Point at a block.");
  const slider = el("input", { type: "range", min: 0, max: maps.length - 1, value: index, step: 1, "aria-label": "moment", oninput: e => set({ map: String(e.target.value) }) });
  const label = `${map.oom ? "OOM at " : ""}${seconds(map.at_s)}`;
  const old = left.querySelector("input[type=range]");
  const bar = el("div", { class: "slider" }, el("span", { class: "dim" }, "moment"), old ?? slider, el("span", { class: "m" }, label), el("span", { class: "dim" }, `${index + 1} of ${maps.length}`), said);
  if (old) { old.max = maps.length - 1; old.value = index; }
  const holding = document.activeElement === old;
  fill(left, bar, el("div", { class: "scroll" }, canvas));
  if (holding) old.focus();
  const places = draw(data, track, map, canvas);
  canvas.addEventListener("mousemove", e => {
    const place = places.find(p => e.offsetX >= p.x && e.offsetX <= p.x + p.width && e.offsetY >= p.y && e.offsetY <= p.y + p.height);
    said.textContent = place ? describe(data, place, e.offsetX) : "Point at a block.";
  });
  fill(right, side(data, map));
}
