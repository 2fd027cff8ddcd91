// A box at the pointer. It takes no room, so that nothing moves.
import { el, fill } from "./dom.js";

let box = null;

export function showAt(x, y, ...children) {
  if (!box) document.body.append(box = el("div", { class: "hover", role: "status" }));
  fill(box, children);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect(), gap = 14;
  const left = x + gap + width <= innerWidth ? x + gap : Math.max(2, x - gap - width);
  const top = y + gap + height <= innerHeight ? y + gap : Math.max(2, y - gap - height);
  box.style.left = `${left}px`;
  box.style.top = `${top}px`;
}

export function hide() {
  if (box) box.hidden = true;
}
