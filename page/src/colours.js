// Colours of categories, and of names where there are no categories. The second palette is for who sees colours differently.
import { css } from "./dom.js";

const names = ["parameters", "gradients", "optimizer", "activations", "kv_cache", "workspace", "comm", "input_pipeline", "checkpoint", "caches", "context"];
const palettes = {
  usual: ["#4e79a7", "#59a14f", "#76b7b2", "#f28e2b", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#e15759", "#8cb3d9", "#7f8fa6"],
  clear: ["#0072b2", "#009e73", "#56b4e9", "#e69f00", "#f0e442", "#cc79a7", "#d55e00", "#7f6a00", "#004f7c", "#9ad0b9", "#7f8fa6"],
};
const places = {
  usual: ["#5b8cc0", "#e09f3e", "#6aa84f", "#b07aa1", "#4fb0ae", "#d1706c", "#c9b458", "#8f7ac2", "#a17f6b", "#7fa3b8"],
  clear: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f6a00", "#004f7c", "#9ad0b9"],
};
let palette = "usual";

export function setPalette(name) { palette = name in palettes ? name : "usual"; }
export function paletteName() { return palette; }

export function categoryColour(name) {
  const i = names.indexOf(name);
  return i < 0 ? css("--other") : palettes[palette][i];
}

export function placeColour(i) {
  return i < 0 ? css("--other") : places[palette][i % places[palette].length];
}

export function hashOf(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}
