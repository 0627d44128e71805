// SPDX-License-Identifier: BSD-2-Clause
// Runs the engine of Perfetto's web interface under node: a pipe to its trace processor.
//
//   node perfetto_engine.js DIRECTORY-OF-engine_bundle.js [once]
//
// once: for one trace. What runs as long takes less time than to make it faster.
//
// The bundle is made for a web worker. It gets a context of its own that looks like one, so that
// it does not find node's `process` and refuse. Messages on standard input and output are
// TraceProcessorRpcStream bytes, each with its length in front (32 bits, little-endian).
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");
const { webcrypto } = require("crypto");

const directory = process.argv[2];
if (process.argv[3] === "once")
	require("v8").setFlagsFromString("--liftoff-only");

const said = []; // by the engine: of interest when it fails

function fail(error) { // the stack would quote the whole bundle, which is one line
	process.stderr.write(`perfetto_engine: ${String(error).slice(0, 500)}\n`);
	process.stderr.write(said.slice(-10).map((text) => `  ${text}\n`).join(""));
	process.exit(1);
}
process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);

// A MessagePort for the engine: what it posts goes to standard output.
const port = {
	onmessage: null,
	postMessage(bytes) {
		const header = Buffer.alloc(4);
		header.writeUInt32LE(bytes.length);
		fs.writeSync(1, header);
		for (let at = 0; at < bytes.length;)
			at += fs.writeSync(1, bytes, at);
	},
};

// The engine loads its WebAssembly with a synchronous request.
class XMLHttpRequest {
	open(method, url) { this.url = url; }
	send() { this.response = fs.readFileSync(path.join(directory, path.basename(this.url))); }
}

function worker() {
	const quiet = { log() {}, warn: (text) => said.push(text), error: (text) => said.push(text) };
	const scope = {
		WorkerGlobalScope: function WorkerGlobalScope() {},
		location: { href: "http://localhost/engine_bundle.js" },
		console: quiet,
		crypto: globalThis.crypto || webcrypto, // a global only since node 20
		performance, URL, TextDecoder, TextEncoder, setTimeout, clearTimeout, XMLHttpRequest,
	};
	scope.self = scope;
	const context = vm.createContext(scope);
	vm.runInContext(fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"), context);
	// Uint8Array must be the context's own: the engine checks.
	const copy = vm.runInContext("(bytes) => new Uint8Array(bytes)", context);
	scope.onmessage({ data: port });
	return (bytes) => port.onmessage({ data: copy(bytes) });
}

function read(bytes) {
	const buffer = Buffer.alloc(bytes);
	for (let at = 0; at < bytes;) {
		const n = fs.readSync(0, buffer, at, bytes - at);
		if (!n)
			return null;
		at += n;
	}
	return buffer;
}

async function main() {
	const send = worker();
	await new Promise((resolve) => setTimeout(resolve, 0)); // its start ends in a microtask
	for (let header; (header = read(4));)
		send(read(header.readUInt32LE()));
}

main().catch(fail);
