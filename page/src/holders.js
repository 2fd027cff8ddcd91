// Which object of Python keeps the memory: the largest of all, and step by step from a module or a running function.
import { el, fill, table, facts } from "./dom.js";
import { bytes, count, percent, seconds, cut } from "./format.js";
import { state, set } from "./state.js";

const titles = { heap: "Heap", small: "Small objects, in Python's own arenas", pinned: "Pinned memory", map: "Mapped memory", pool: "pool", device: "driver's allocations" };

function titleOf(part, several) {
  return `${part.device ? `${part.device} ` : ""}${titles[part.memory]}${several ? ` of ${part.pid} ${part.process}` : ""}`;
}

// Rows folded by the steps that their ways have in common. A row is where its way ends.
function treeOf(part) {
  const root = { step: "", type: null, bytes: 0, rows: [], next: [] };
  for (const row of part.rows) {
    let at = root;
    root.bytes += row.bytes;
    for (const [step, type] of row.way) {
      let next = at.next.find(n => n.step === step);
      if (!next) at.next.push(next = { step, type, bytes: 0, rows: [], next: [] });
      at = next;
      at.bytes += row.bytes;
    }
    at.rows.push(row);
  }
  const sort = n => { n.next.sort((a, b) => b.bytes - a.bytes); n.next.forEach(sort); };
  sort(root);
  return root;
}

// "0.2.1": the part, then at each step which one, the largest being 0.
function follow(parts) {
  const [first, ...steps] = state.way.split(".").map(Number), part = parts[first];
  if (!part) return null;
  const nodes = [treeOf(part)];
  for (const i of steps) {
    if (!nodes.at(-1).next[i]) return null;
    nodes.push(nodes.at(-1).next[i]);
  }
  return { part, nodes };
}

function wayTo(parts, part, row) {
  let at = treeOf(part);
  return [parts.indexOf(part), ...row.way.map(([step]) => { const i = at.next.findIndex(n => n.step === step); at = at.next[i]; return i; })].join(".");
}

const code = (text, most) => ({ value: text, text: cut(text, most), title: text });
const size = n => ({ value: n, text: bytes(n) });

function drawPart(parts, part, several) {
  const columns = [{ name: "bytes", number: true }, { name: "%", number: true }, { name: "blocks", number: true }, { name: "held by", code: true }, { name: "also held by", code: true }, { name: "made by", code: true }];
  const rows = part.rows.map(r => Object.assign([size(r.bytes), { value: r.bytes, text: percent(r.bytes, part.bytes) }, { value: r.blocks, text: count(r.blocks) }, code(r.text, 90), code(r.also ?? "", 60), code(r.made_by ?? "", 60)], { row: r }));
  return [el("h3", {}, `${titleOf(part, several)}: ${bytes(part.held)} of ${bytes(part.bytes)}`),
    el("p", { class: "dim" }, `at ${seconds(part.at_s)}, ${part.why}${part.cycles ? `; gc.collect() would free ${bytes(part.cycles)}` : ""}`),
    table(columns, rows, { sort: 0, limit: 20, label: titleOf(part, several), onrow: r => set({ way: wayTo(parts, part, r.row) }) })];
}

// Each step leads back to what else goes on from there.
function drawWay({ part, nodes }, several) {
  const here = nodes.at(-1), ways = state.way.split(".");
  const crumb = (n, i) => [el("button", { type: "button", class: i === nodes.length - 1 ? "on" : "", title: n.type ?? "", onclick: () => set({ way: ways.slice(0, i + 1).join(".") }) }, i ? cut(n.step, 60) : titleOf(part, several)), " "];
  const list = here.next.map((n, i) => Object.assign([size(n.bytes), { value: n.bytes, text: percent(n.bytes, part.bytes) }, code(n.step, 90), n.type ?? ""], { way: `${state.way}.${i}` }));
  return [el("p", { class: "bar way" }, el("button", { type: "button", onclick: () => set({ way: "" }) }, "All holders"), " ", nodes.map(crumb)),
    el("p", { class: "big" }, bytes(here.bytes), el("span", { class: "dim" }, ` ${percent(here.bytes, part.bytes)} of ${bytes(part.bytes)}`)),
    here.rows.map(r => facts([["held by", el("span", { class: "m" }, r.text)], ["bytes", bytes(r.bytes), `in ${count(r.blocks)} block${r.blocks === 1 ? "" : "s"}`], r.also ? ["also held by", el("span", { class: "m" }, r.also), "letting go of one of them frees nothing"] : null, r.made_by ? ["made by", el("span", { class: "m" }, r.made_by)] : null])),
    list.length ? table([{ name: "bytes", number: true }, { name: "%", number: true }, { name: "leads to", code: true }, { name: "type", code: true }], list, { sort: 0, label: "leads to", onrow: r => set({ way: r.way }) }) : null];
}

export function drawHolders(data, box) {
  const parts = data.raw.holders, several = new Set(parts.map(p => p.pid)).size > 1, at = state.way ? follow(parts) : null;
  fill(box, at ? drawWay(at, several) : parts.map(p => drawPart(parts, p, several)));
}
