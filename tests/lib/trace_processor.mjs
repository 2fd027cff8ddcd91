// Perfetto's trace_processor, as WebAssembly for a browser's worker, run by node: loads a trace and answers queries.
// usage: node trace_processor.mjs FOLDER TRACE QUERY...     prints a JSON list of lists of rows, one list for each query
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { pathToFileURL } from "node:url";

const [folder, trace, ...queries] = process.argv.slice(2);
const wasm = fs.readFileSync(path.join(folder, "trace_processor.wasm"));

// What it takes for a worker's world. The build of 64 bits is not in the package.
const Module = WebAssembly.Module;
WebAssembly.Module = class extends Module {
	constructor(bytes) {
		if (new Uint8Array(bytes.buffer ?? bytes)[8] === 5) // it begins with a memory: the question for 64 bits
			throw new Error("no 64 bits");
		super(bytes);
	}
};
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
Object.defineProperty(globalThis, "location", { value: { href: "file:///" } });
globalThis.XMLHttpRequest = class {
	open() {}
	send() {
		this.status = 200;
		this.response = wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength);
	}
};
console.warn = () => {};
console.log = () => {};

const { EngineBase } = await import(pathToFileURL(path.join(folder, "engine.mjs")).href);
vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.node.js"), "utf8"));

class Engine extends EngineBase {
	constructor(port) {
		super();
		this.id = "test";
		this.mode = "WASM";
		this.port = port;
		port.onmessage = message => this.onRpcResponseBytes(message.data);
	}
	rpcSendRequestBytes(data) {
		this.port.postMessage(data);
	}
	[Symbol.dispose]() {}
}

await new Promise(done => setTimeout(done, 300)); // what it has begun is done
const channel = new MessageChannel();
globalThis.onmessage({ data: channel.port1 });
const engine = new Engine(channel.port2);
await engine.parse(new Uint8Array(fs.readFileSync(trace)));
await engine.notifyEof();
const answers = [];
for (const query of queries) {
	const result = await engine.query(query);
	const rows = [];
	for (const it = result.iter({}); it.valid(); it.next())
		rows.push(result.columns().map(name => { const v = it.get(name); return typeof v === "bigint" ? Number(v) : v; }));
	answers.push(rows);
}
process.stdout.write(JSON.stringify(answers) + "\n");
process.exit(0);
