// What stacks are added up by: category, or the line that asked. One colour for each.
import { categoryColour, placeColour } from "./colours.js";
import { frameName, framePlace } from "./data.js";

const MOST = 9; // lines with a colour of their own

// {of(stack) -> key, list: [{key, name, colour}] the largest last drawn first}
export function groupsOf(data, track, by) {
  if (by === "category") {
    const sums = new Map();
    for (const s of track.stacks) sums.set(s.category, Math.max(sums.get(s.category) ?? 0, Math.max(...s.high)));
    const list = [...sums].sort((a, b) => b[1] - a[1]).map(([key]) => ({ key, name: key.replaceAll("_", " "), colour: categoryColour(key) }));
    return { by, of: s => s.category, list, colour: s => categoryColour(s.category) };
  }
  const sums = new Map();
  for (const s of track.stacks) if (s.site >= -1) sums.set(s.site, (sums.get(s.site) ?? 0) + Math.max(...s.high));
  const top = [...sums].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([key]) => key);
  const index = new Map(top.map((key, i) => [key, i]));
  const list = top.map((key, i) => ({ key, name: key < 0 ? "no stack" : `${frameName(data, key)}  ${framePlace(data, key)}`, colour: placeColour(i) }));
  return { by, of: s => index.has(s.site) ? s.site : "", list, colour: s => placeColour(index.has(s.site) ? index.get(s.site) : -1) };
}

// What is used where nobody chose: lines where the categories of most are not known.
export function usualGrouping(track) {
  let known = 0, all = 0;
  for (const s of track.stacks) {
    const most = Math.max(...s.high);
    all += most;
    if (s.category !== "unknown") known += most;
  }
  return known * 2 >= all && all ? "category" : "site";
}
