/* Opens a file in speedscope as its command line does, and prints what its "save" (Ctrl+S) would write: what it has
 * understood, as JSON. Or {"alert": TEXT}, what it would say instead.
 *
 *   node speedscope.js FOLDER FILE      FOLDER: where the npm package is
 *
 * The application is made for browsers. It is given as much of a document as it asks for, in which nothing is drawn. */
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, file] = process.argv.slice(2);
const release = path.join(folder, "dist/release");
const bundle = fs.readdirSync(release).find((name) => /^speedscope-\w+\.js$/.test(name));
const listeners = {};
let saved, asked;

class Element {
	constructor(name) {
		Object.assign(this, { nodeName: name, localName: name, nodeType: 1, childNodes: [], attributes: [], dataset: {}, parentNode: null });
		this.style = { setProperty() {} };
		this.sheet = { cssRules: [], insertRule() {} };
		this.ownerSVGElement = undefined;
	}
	get firstChild() { return this.childNodes[0] || null; }
	get lastElementChild() { return this.childNodes[this.childNodes.length - 1] || null; }
	get nextSibling() { return this.parentNode ? this.parentNode.childNodes[this.parentNode.childNodes.indexOf(this) + 1] || null : null; }
	appendChild(child) { return this.insertBefore(child, null); }
	insertBefore(child, before) {
		if (child.parentNode)
			child.parentNode.removeChild(child);
		const at = this.childNodes.indexOf(before);
		this.childNodes.splice(at < 0 ? this.childNodes.length : at, 0, child);
		child.parentNode = this;
		return child;
	}
	removeChild(child) {
		this.childNodes.splice(this.childNodes.indexOf(child), 1);
		child.parentNode = null;
		return child;
	}
	remove() { if (this.parentNode) this.parentNode.removeChild(this); }
	setAttribute() {}
	removeAttribute() {}
	addEventListener() {}
	removeEventListener() {}
	getBoundingClientRect() { return { left: 0, top: 0, width: 800, height: 600, right: 800, bottom: 600 }; }
	getContext() { return null; }
	focus() {}
	blur() {}
	click() {}
}

class HTMLCanvasElement extends Element {}
const create = (name) => (name === "canvas" ? new HTMLCanvasElement(name) : new Element(name));

const document = {
	head: new Element("head"), body: new Element("body"), documentElement: new Element("html"), title: "",
	createElement: create,
	createElementNS: (space, name) => create(name),
	createTextNode: (data) => Object.assign(new Element("#text"), { nodeType: 3, data }),
	querySelector: () => null,
	getElementById: () => null,
	addEventListener() {},
	removeEventListener() {},
};
const window = {
	document, HTMLElement: Element, HTMLCanvasElement, setTimeout, clearTimeout, setInterval, clearInterval, URL: { createObjectURL: (blob) => ((saved = blob.parts.join("")), "") },
	Blob: class { constructor(parts) { this.parts = parts; } },
	TextDecoder, TextEncoder, WebAssembly, performance, atob, devicePixelRatio: 1, innerWidth: 800, innerHeight: 600,
	location: { hash: "#localProfilePath=profile", protocol: "file:", href: "file:///", search: "" },
	history: { replaceState() {} }, navigator: { userAgent: "", platform: "" },
	console: { log() {}, time() {}, timeEnd() {}, warn() {}, error() {} },
	alert: (text) => (saved = JSON.stringify({ alert: text })),
	addEventListener: (name, f) => (listeners[name] = [...(listeners[name] || []), f]),
	removeEventListener() {}, requestAnimationFrame: (f) => setTimeout(f, 0), cancelAnimationFrame() {},
	matchMedia: () => ({ matches: false, addEventListener() {}, addListener() {} }),
	getComputedStyle: () => ({}), localStorage: { getItem: () => null, setItem() {} },
};
window.window = window.self = window.globalThis = window;

function wait(times) {
	if (window.speedscope && !asked) {
		asked = true;
		window.speedscope.loadFileFromBase64(path.basename(file), fs.readFileSync(file).toString("base64"));
	}
	for (const listener of listeners.keydown || [])
		listener({ key: "s", ctrlKey: true, preventDefault() {} });
	if (saved || !times) {
		process.stdout.write(saved || '{"alert": "nothing was read"}', () => process.exit());
	} else {
		setTimeout(wait, 10, times - 1);
	}
}

vm.runInNewContext(fs.readFileSync(path.join(release, bundle), "utf8"), window, { filename: bundle });
/* Without pixels it fails to draw; what it has read is complete by then. */
process.on("uncaughtException", () => {});
process.on("unhandledRejection", () => {});
wait(6000);
