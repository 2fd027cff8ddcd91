// Elements; text goes in as text, never as markup.
import { shown, count } from "./format.js";

export function el(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "title") node.title = shown(value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (key in node && key !== "list") node[key] = value;
    else node.setAttribute(key, value);
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : shown(child));
  }
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

// Values of the style sheet's variables, until colours change.
const variables = new Map();

export function css(name) {
  if (!variables.has(name)) variables.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return variables.get(name);
}

export function forgetColours() { variables.clear(); }

// A table that sorts by the column that is clicked: rows are arrays of {text, value, title, number} or plain values. So
// many rows are LEFT, which the page does not have.
export function table(columns, rows, { sort = -1, falling = true, onrow, limit = 500, label, left = 0 } = {}) {
  let by = sort, down = falling;
  const head = el("tr"), body = el("tbody"), note = el("caption");
  const value = cell => cell && typeof cell === "object" && !(cell instanceof Node) ? cell.value : cell;
  function draw() {
    const list = [...rows];
    if (by >= 0) list.sort((a, b) => {
      const x = value(a[by]) ?? -Infinity, y = value(b[by]) ?? -Infinity;
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    fill(head, columns.map((c, i) => el("th", { class: c.number ? "n" : "", scope: "col", "aria-sort": i === by ? (down ? "descending" : "ascending") : "none" },
      el("button", { type: "button", onclick: () => { down = i === by ? !down : !!c.number; by = i; draw(); } }, c.name, i === by ? (down ? " \u2193" : " \u2191") : ""))));
    fill(body, list.slice(0, limit).map(row => {
      const tr = el("tr", {}, row.map((cell, i) => {
        const whole = cell && typeof cell === "object" && !(cell instanceof Node) ? cell : { text: cell };
        return el("td", { class: columns[i].number ? "n" : columns[i].code ? "m" : "", title: whole.title ?? "" }, whole.text);
      }));
      if (onrow) {
        tr.className = "link";
        tr.tabIndex = 0;
        tr.addEventListener("click", () => onrow(row));
        tr.addEventListener("keydown", e => { if (e.key === "Enter") onrow(row); });
      }
      return tr;
    }));
    const shown = Math.min(limit, list.length);
    note.textContent = shown < list.length + left ? `${count(shown)} of ${count(list.length + left)} rows${left ? `; the page has the ${count(list.length)} that say most` : ""}` : "";
  }
  draw();
  return el("table", { "aria-label": label ?? "" }, note, el("thead", {}, head), body);
}

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(p => p).map(([name, value, more]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value, more ? el("span", { class: "dim" }, ` ${more}`) : null))));
}

export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function csv(rows) {
  return rows.map(row => row.map(v => /[",\n\r]/.test(v) || /^[=+@-]/.test(v) && isNaN(v) ? `"${String(v).replaceAll('"', '""')}"` : v).join(",")).join("\n") + "\n";
}
