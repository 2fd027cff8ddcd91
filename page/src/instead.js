// In the place of two packages of which d3-flame-graph needs next to nothing here. With what they need in turn they would be a sixth of
// a page's scripts.
// d3-transition: its movements last 0 s here, so what they lead to is there at once.
// d3-scale: the only scales lead from 0..1 to pixels.
import { selection } from "d3-selection";

const same = function () { return this; };
Object.assign(selection.prototype, { transition: same, duration: same, delay: same, ease: same });

export const scaleLinear = () => ({ range: ([a, b]) => x => a + x * (b - a) });
