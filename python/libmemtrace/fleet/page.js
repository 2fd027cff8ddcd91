"use strict";
// The page of memtrace fleet: findings, and a canvas with a row for each rank and a column for each stretch of time.
const $ = (id) => document.getElementById(id);
const NONE = 255, LEVELS = 254;
const LEFT = 150, TOP = 4, BOTTOM = 22; // of the map, in CSS pixels

async function unpack() {
  const bytes = Uint8Array.from(atob($("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function size(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; Math.abs(n) >= 1000 && i < units.length - 1; i++) n /= 1024;
  return i ? n.toFixed(Math.abs(n) < 10 ? 2 : 1) + " " + units[i] : n + " B";
}

const seconds = (s) => (s >= 3600 ? (s / 3600).toFixed(1) + " h" : s >= 100 ? (s / 60).toFixed(1) + " min" : s.toFixed(s < 1 ? 3 : 1) + " s");

function element(tag, text, more) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  return Object.assign(e, more || {});
}

// Viridis, in eight steps between which is interpolated: light is much, in both themes, and told apart without colours.
const STOPS = [[68, 1, 84], [70, 50, 126], [54, 92, 141], [39, 127, 142], [31, 161, 135], [74, 193, 109], [160, 218, 57], [253, 231, 37]];
// Of the ratio to the median: blue is less, white the same, red more.
const AROUND = [[33, 102, 172], [103, 169, 207], [209, 229, 240], [247, 247, 247], [253, 219, 199], [239, 138, 98], [178, 24, 43]];

function colour(stops, part) {
  const x = Math.max(0, Math.min(1, part)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(x));
  return stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (x - i)));
}

class HeatMap {
  constructor(data) {
    this.data = data;
    this.maps = data.maps.map((m) => ({ ...m, cells: Uint8Array.from(atob(m.cells), (c) => c.charCodeAt(0)) }));
    this.marked = null;
    this.cursor = null;
  }

  get map() { return this.maps[$("series").selectedIndex]; }

  cell(row, column) { return this.map.cells[row * this.data.columns + column]; }

  highest(row) {
    let most = 0;
    for (let c = 0; c < this.data.columns; c++) if (this.cell(row, c) !== NONE) most = Math.max(most, this.cell(row, c));
    return most;
  }

  order() {
    const rows = this.data.rows.map((_, i) => i), by = $("order").value;
    if (by === "most") return rows.sort((a, b) => this.highest(b) - this.highest(a) || a - b);
    if (by === "rank") return rows;
    const key = (i) => this.data.rows[i][by];
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
    return rows.sort((a, b) => compare(key(a), key(b)) || a - b);
  }

  // The median of a role in each column, for the scale that shows who differs.
  medians() {
    const found = {};
    this.data.rows.forEach((r, i) => (found[r.role] = found[r.role] || []).push(i));
    for (const role in found) {
      const rows = found[role];
      found[role] = Array.from({ length: this.data.columns }, (_, c) => {
        const known = rows.map((i) => this.cell(i, c)).filter((v) => v !== NONE).sort((a, b) => a - b);
        return known.length ? known[known.length >> 1] : 0;
      });
    }
    return found;
  }

  draw() {
    const canvas = $("map"), width = $("frame").clientWidth, n = this.data.rows.length, ratio = devicePixelRatio || 1;
    this.rows = this.order();
    this.height = Math.max(2, Math.min(18, Math.floor(620 / n)));
    const tall = TOP + BOTTOM + Math.max(60, this.height * n);
    canvas.width = width * ratio;
    canvas.height = tall * ratio;
    canvas.style.height = tall + "px";
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    this.plot(g, width, n);
    this.axes(g, width, tall);
    this.legend();
  }

  plot(g, width, n) {
    const columns = this.data.columns, image = new ImageData(columns, n), compared = $("scale").value === "role", medians = compared ? this.medians() : null;
    this.rows.forEach((row, y) => {
      for (let c = 0; c < columns; c++) {
        const v = this.cell(row, c), at = (y * columns + c) * 4;
        if (v === NONE) continue; // transparent
        const usual = compared ? medians[this.data.rows[row].role][c] : 0;
        const rgb = compared ? colour(AROUND, 0.5 + (v - usual) / Math.max(usual, 8) / 2) : colour(STOPS, v / LEVELS);
        image.data.set([...rgb, 255], at);
      }
    });
    const small = new OffscreenCanvas(columns, n);
    small.getContext("2d").putImageData(image, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(small, LEFT, TOP, width - LEFT, this.height * n);
  }

  axes(g, width, tall) {
    const style = getComputedStyle(document.documentElement), n = this.rows.length, every = Math.max(1, Math.ceil(16 / this.height));
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    this.rows.forEach((row, y) => {
      const r = this.data.rows[row], marked = r.marks.length > 0, middle = TOP + (y + 0.5) * this.height;
      if (marked) {
        g.fillStyle = style.getPropertyValue("--mark");
        g.fillRect(LEFT - 5, TOP + y * this.height, 4, Math.max(2, this.height - (this.height > 4 ? 1 : 0)));
      }
      if (y % every && !(marked && this.height >= 12)) return;
      g.fillStyle = style.getPropertyValue(marked ? "--mark" : "--faint");
      g.textAlign = "right";
      g.fillText(r.name.length > 22 ? r.name.slice(0, 21) + "…" : r.name, LEFT - 10, Math.max(TOP + 7, middle));
    });
    g.textAlign = "center";
    g.fillStyle = style.getPropertyValue("--faint");
    for (let i = 0; i <= 4; i++) {
      g.textAlign = i === 0 ? "left" : i === 4 ? "right" : "center";
      g.fillText(seconds((this.data.seconds * i) / 4), LEFT + ((width - LEFT) * i) / 4, tall - BOTTOM / 2);
    }
    this.bottom = TOP + n * this.height;
  }

  legend() {
    const compared = $("scale").value === "role", stops = compared ? AROUND : STOPS, box = $("legend");
    const bar = element("i");
    bar.style.background = "linear-gradient(to right," + stops.map((s) => "rgb(" + s + ")").join(",") + ")";
    box.replaceChildren(element("span", compared ? "half" : "0"), bar, element("span", compared ? "double" : size(this.map.most)));
  }

  tell(x, y) {
    const canvas = $("map"), column = Math.floor(((x - LEFT) / (canvas.clientWidth - LEFT)) * this.data.columns), at = Math.floor((y - TOP) / this.height);
    if (column < 0 || column >= this.data.columns || at < 0 || at >= this.rows.length) return;
    this.say(at, column);
  }

  say(at, column) {
    this.cursor = [at, column];
    const row = this.rows[at], r = this.data.rows[row], v = this.cell(row, column);
    const when = (this.data.seconds * (column + 0.5)) / this.data.columns;
    $("under").textContent = `${r.name}, ${r.role}, on ${r.host}: at ${seconds(when)} ` + (v === NONE ? "not running" : `about ${size(Math.round((v / LEVELS) * this.map.most))}`) +
      ` of ${this.map.title}, at most ${size(Math.round((this.highest(row) / LEVELS) * this.map.most))}` + (r.marks.length ? `; ${r.marks.map((m) => m.replaceAll("_", " ")).join(", ")}` : "");
  }

  // The arrow keys move as the pointer does.
  key(event) {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const [at, column] = this.cursor || [0, 0];
    this.say(Math.max(0, Math.min(this.rows.length - 1, at + move[0])), Math.max(0, Math.min(this.data.columns - 1, column + move[1])));
  }
}

function findings(data, map) {
  const list = $("findings");
  if (!data.report.findings.length) list.append(element("li", "No rank died, differs from its peers, grows, or came near the end of its memory; none is missing."));
  for (const f of data.report.findings) {
    const li = element("li"), text = element("p");
    const row = f.names.length ? data.rows.findIndex((r) => r.name === f.names[0]) : -1;
    li.append(element("b", f.kind.replaceAll("_", " ")));
    text.append(row < 0 ? element("span", f.evidence) : element("button", f.evidence, { type: "button", onclick: () => { map.say(map.rows.indexOf(row), data.columns - 1); $("map").scrollIntoView({ block: "center" }); } }));
    li.append(text, element("p", "→ " + f.advice, { className: "advice" }));
    list.append(li);
  }
}

function roles(data) {
  const table = $("table"), names = Object.keys(data.report.roles);
  const measure = ["device", "reserved", "heap", "map", "pinned", "rss"].find((m) => names.some((r) => (data.report.roles[r].measures[m] || {}).highest_bytes > 0));
  const row = (cells, tag) => { const tr = element("tr"); cells.forEach((c) => tr.append(element(tag, c))); table.append(tr); };
  row(["role", "ranks", "median of " + measure, "highest", "of rank"], "th");
  for (const name of names) {
    const m = data.report.roles[name].measures[measure];
    if (m) row([name, data.report.roles[name].ranks, size(m.median_bytes), size(m.highest_bytes), m.rank ?? ""], "td");
  }
}

unpack().then((data) => {
  const r = data.report, map = new HeatMap(data);
  $("title").textContent = document.title;
  $("about").textContent = `${r.ranks} ${r.world_size ? "of " + r.world_size + " " : ""}ranks on ${r.hosts} nodes` + (r.job ? `, job ${r.job}` : "") +
    `, ${new Date(data.start_ns / 1e6).toISOString().slice(0, 16).replace("T", " ")} UTC, ${seconds(data.seconds)}`;
  map.maps.forEach((m) => $("series").append(element("option", m.title)));
  for (const id of ["series", "order", "scale"]) $(id).addEventListener("change", () => map.draw());
  addEventListener("resize", () => map.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map.draw());
  $("map").addEventListener("pointermove", (e) => map.tell(e.offsetX, e.offsetY));
  $("map").addEventListener("keydown", (e) => map.key(e));
  if (map.maps.length) map.draw();
  findings(data, map);
  roles(data);
  document.documentElement.dataset.ready = "1";
});
