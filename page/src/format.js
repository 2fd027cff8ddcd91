// Figures and names for eyes: the same forms as on the terminal.

export function bytes(n) {
  if (n === null || n === undefined || !isFinite(n)) return "not known";
  const sign = n < 0 ? "-" : "";
  n = Math.abs(n);
  if (n < 1024) return `${sign}${Math.round(n)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = -1;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return `${sign}${n.toFixed(n < 10 ? 2 : 1)} ${units[i]}`;
}

export function count(n) {
  return n === null || n === undefined ? "not known" : Math.round(n).toLocaleString("en");
}

export function seconds(s) {
  if (s === null || s === undefined) return "not known";
  if (s > 0 && s < 0.001) return s < 0.000001 ? `${(s * 1e9).toFixed(0)} ns` : s < 0.0001 ? `${(s * 1e6).toFixed(s < 0.00001 ? 1 : 0)} \u00b5s` : `${(s * 1e3).toFixed(2)} ms`;
  if (s < 100) return `${s.toFixed(s < 1 ? 3 : s < 10 ? 2 : 1)} s`;
  const whole = Math.floor(s), two = n => String(n).padStart(2, "0");
  return `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

export function percent(part, all) {
  return all > 0 ? `${(100 * part / all).toFixed(part / all < 0.1 ? 1 : 0)} %` : "";
}

// Text from a trace may turn the direction of what follows, or have no width: such characters are shown as a box. Signs
// that stand before digits are seen.
const unseen = /(?![\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

export function shown(text) {
  return String(text).replace(unseen, "\ufffd");
}

// Its beginning; no character is parted.
export function cut(text, length) {
  text = shown(text);
  return text.length <= length ? text : `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, "")}\u2026`;
}

// Its end, which tells paths apart.
export function cutPath(text, length) {
  text = shown(text);
  return text.length <= length ? text : `\u2026${text.slice(text.length - length + 1).replace(/^[\udc00-\udfff]/, "")}`;
}

export function base(path) {
  return path ? path.slice(path.lastIndexOf("/") + 1) : "";
}

// A word of a command line, for a shell.
export function word(text) {
  return /^[A-Za-z0-9_\/.:=,+%@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
