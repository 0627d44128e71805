// SPDX-License-Identifier: BSD-2-Clause
// What makes a flame graph answer; it goes into the SVG as it is (user/sink/flame.c). Without it the picture stands as
// it was drawn, 1200 wide. All that is known of a frame is in the drawing: its place, and the lines of its <title>: name first,
// numbers last.
(() => {
"use strict";
const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
const svg = document.documentElement, root = document.getElementById("frames");
const TOP = +root.dataset.top, ROW = +root.dataset.row, SPAN = +root.dataset.width, SIDE = +root.dataset.side;
const PAD = 4;

const frames = [];
let rows = 0;
for (const el of root.children) {
	const rect = el.querySelector("rect"), title = el.querySelector("title");
	const depth = Math.round((rect.y.baseVal.value - TOP) / ROW);
	frames.push({
		el, rect, text: el.querySelector("text"), lines: title.textContent.split("\n"), depth,
		x: (rect.x.baseVal.value - SIDE) / SPAN, w: rect.width.baseVal.value / SPAN, at: frames.length,
	});
	title.remove(); // else the browser shows it as well
	rows = Math.max(rows, depth + 1);
}
// Frames come parents first: the nearest one before, one row higher, is the parent.
const open = [];
for (const f of frames) {
	open.length = f.depth;
	f.parent = f.depth ? open[f.depth - 1] : null;
	open[f.depth] = f;
}

// What each frame has in each part of the time: [part, nanoseconds, samples]…, of itself and what is not drawn.
const heat = document.getElementById("heat"), PARTS = +heat.dataset.parts, PART_NS = +heat.dataset.partNs;
const cells = [...heat.querySelectorAll("rect")];
document.getElementById("numbers").textContent.split("\n").slice(1, -1).forEach((line, i) => {
	let part = 0;
	frames[i].numbers = line.split(" ").filter(Boolean).map((word) => {
		const [step, ns, samples] = word.split(".").map((digits) => parseInt(digits, 36));
		part += step;
		return [part, ns, samples || 1];
	});
	frames[i].all = {x: frames[i].x, w: frames[i].w, numbers: frames[i].lines.at(-1)}; // as it was drawn
});
for (const cell of cells)
	cell.style.pointerEvents = "none";

let focus = frames[0], picked = null, flipped = false, wide = 0, pitch = 7;
let chosen = null, from = null; // the first and the last part that are chosen; where the mouse was pressed

function element(ns, name, parent, properties) {
	const el = document.createElementNS(ns, name);
	Object.assign(el, properties);
	parent.append(el);
	return el;
}

// ---- drawing

function measure() {
	const probe = document.createElementNS(SVG, "text"), group = document.createElementNS(SVG, "g");
	group.setAttribute("class", "f");
	probe.textContent = "m".repeat(100);
	group.append(probe);
	svg.append(group);
	pitch = probe.getComputedTextLength() / 100 || 7;
	group.remove();
}

const columns = (c) => c < 0x1100 || (c >= 0x2000 && c < 0x2e80) ? 1 : 2;

function label(name, room) {
	let taken = 0, out = "";
	if (name.length <= room / 2)
		return name;
	for (const c of name) {
		taken += columns(c.codePointAt(0));
		if (taken > room)
			return room < 3 ? "" : [...out].slice(0, -1).join("") + "…";
		out += c;
	}
	return out;
}

const isAbove = (f) => f.depth < focus.depth;

function show(f, x, width) {
	const y = TOP + ROW * (flipped ? rows - 1 - f.depth : f.depth);
	const name = label(f.lines[0], Math.floor((width - 2 * PAD) / pitch));
	f.rect.setAttribute("x", x.toFixed(2));
	f.rect.setAttribute("y", y);
	f.rect.setAttribute("width", Math.max(width, .2).toFixed(2));
	if (name && !f.text)
		f.text = element(SVG, "text", f.el, {});
	if (f.text) {
		f.text.textContent = name;
		f.text.setAttribute("x", (Math.max(x, SIDE) + PAD).toFixed(2));
		f.text.setAttribute("y", y + ROW - 5.5);
	}
	f.el.classList.toggle("above", isAbove(f));
}

function draw() {
	const scale = wide / (focus.w || 1);
	let deepest = 0;
	for (const f of frames) {
		const left = Math.max(f.x, focus.x), right = Math.min(f.x + f.w, focus.x + focus.w);
		const seen = (right - left) * scale > .15 && (f.depth > focus.depth || f === focus || holds(f, focus));
		f.el.style.display = seen ? "" : "none";
		if (!seen)
			continue;
		deepest = Math.max(deepest, f.depth);
		show(f, SIDE + (left - focus.x) * scale, (right - left) * scale);
	}
	const height = TOP + ROW * (flipped ? rows : deepest + 1) + SIDE;
	svg.setAttribute("height", height);
	reset.disabled = focus === frames[0];
	whole.disabled = !chosen;
}

function holds(f, inner) {
	for (let up = inner; up; up = up.parent)
		if (up === f)
			return true;
	return false;
}

function resize() {
	const width = Math.max(320, document.documentElement.clientWidth || innerWidth);
	wide = width - 2 * SIDE;
	svg.setAttribute("width", width);
	bar.setAttribute("width", Math.min(wide, 620));
	for (const el of document.querySelectorAll(".fit")) {
		const whole = el.dataset.whole ||= el.textContent;
		el.textContent = whole;
		if (el.getComputedTextLength() > wide) {
			const keep = Math.max(8, Math.floor(whole.length * wide / el.getComputedTextLength()) - 2);
			el.textContent = [...whole].slice(0, keep).join("") + "…";
		}
	}
	placeKey(width);
	placeHeat();
	draw();
}

// The key of the colours: beside the bar where there is room, else not at all.
function placeKey(width) {
	const key = document.getElementById("key");
	const box = key.getBBox();
	key.style.display = width - 2 * SIDE < 560 + box.width ? "none" : "";
	key.setAttribute("transform", `translate(${(width - SIDE - box.width - box.x).toFixed(1)} 0)`);
}

// ---- the strip: samples over time

function placeHeat() {
	const step = wide / PARTS;
	cells.forEach((cell, i) => {
		cell.setAttribute("x", (SIDE + i * step).toFixed(3));
		cell.setAttribute("width", step.toFixed(3));
		cell.classList.toggle("out", Boolean(chosen) && (i < chosen[0] || i > chosen[1]));
	});
	field.setAttribute("width", wide);
	mark.style.display = chosen ? "" : "none";
	if (!chosen)
		return;
	mark.setAttribute("x", SIDE + chosen[0] * step);
	mark.setAttribute("width", (chosen[1] - chosen[0] + 1) * step);
}

function timeText(ns) {
	const [unit, of] = ns >= 1e9 ? ["s", 1e9] : ns >= 1e6 ? ["ms", 1e6] : ns >= 1e3 ? ["µs", 1e3] : ["ns", 1];
	const v = ns / of;
	return `${of === 1 ? v : v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0)} ${unit}`;
}

const count = (samples) => `${samples.toLocaleString("en")} sample${samples === 1 ? "" : "s"}`;

// Lays the frames out anew, as wide as their samples in the chosen parts; null: as they were drawn.
function choose(parts) {
	chosen = parts;
	for (const f of frames)
		Object.assign(f, {ns: 0, samples: 0, right: 0});
	for (const f of chosen ? frames : []) {
		for (const [part, ns, samples] of f.numbers) {
			if (part < chosen[0] || part > chosen[1])
				continue;
			f.ns += ns;
			f.samples += samples;
		}
	}
	for (let i = chosen ? frames.length : 0; i-- > 1;) { // callees come after their callers
		frames[i].parent.ns += frames[i].ns;
		frames[i].parent.samples += frames[i].samples;
	}
	const all = frames[0].ns || 1;
	for (const f of frames) {
		Object.assign(f, {x: f.all.x, w: f.all.w});
		f.lines[f.lines.length - 1] = f.all.numbers;
		if (!chosen)
			continue;
		f.w = f.parent ? f.ns / all : 1;
		f.x = f.right = f.parent ? f.parent.right : 0;
		if (f.parent)
			f.parent.right += f.w;
		f.lines[f.lines.length - 1] = `${timeText(f.ns)} (${(f.ns / all * 100).toFixed(1)} %), ` +
			`${count(f.samples)} in the chosen time`;
	}
	if (!focus.w)
		focus = frames[0];
	when.textContent = !chosen ? whenAll : `from ${timeText(chosen[0] * PART_NS)} to ${timeText((chosen[1] + 1) * PART_NS)}: ` +
		`${timeText(frames[0].ns)} in ${count(frames[0].samples)}`;
	search();
	hideTip();
	placeHeat();
	draw();
}

const partAt = (event) => Math.max(0, Math.min(PARTS - 1, Math.floor((event.clientX + scrollX - SIDE) / wide * PARTS)));

function drag(event) {
	const at = partAt(event);
	if (event.type === "pointerdown")
		from = at;
	if (event.type === "pointerdown")
		heat.setPointerCapture(event.pointerId);
	if (from !== null)
		choose([Math.min(from, at), Math.max(from, at)]);
	if (event.type === "pointerup" || event.type === "pointercancel")
		from = null;
	event.preventDefault();
}

// ---- zoom and search

function zoom(f) {
	focus = f;
	draw();
	hideTip();
}

function pattern(term) {
	try {
		return new RegExp(term, "i");
	} catch {
		return null;
	}
}

function search() {
	const term = input.value, hit = term ? pattern(term) : null;
	let share = 0, below = Infinity, count = 0;
	input.classList.toggle("wrong", Boolean(term) && !hit);
	svg.classList.toggle("searching", Boolean(hit));
	for (const f of frames) {
		const is = Boolean(hit) && f.lines.slice(0, -1).some((line) => hit.test(line));
		f.el.classList.toggle("hit", is);
		if (f.depth <= below)
			below = Infinity;
		count += is;
		if (is && below === Infinity) { // what is called by a match is in the match's time already
			share += f.w;
			below = f.depth;
		}
	}
	found.textContent = hit ? `${count} frames, ${(share * 100).toFixed(1)} % of the time` : "";
}

// ---- tooltip

function fillTip(f) {
	tip.replaceChildren();
	f.lines.forEach((line, i) =>
		element(HTML, i ? "i" : "b", tip, {textContent: line.length > 600 ? line.slice(0, 600) + "…" : line}));
	if (focus !== frames[0] && f.w <= focus.w)
		element(HTML, "i", tip, {textContent: `${(f.w / focus.w * 100).toFixed(1)} % of what is zoomed into`});
}

function showTip(f, x, y) {
	fillTip(f);
	tip.style.display = "";
	const box = tip.getBoundingClientRect();
	const left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8));
	const top = y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18;
	tip.style.left = left + scrollX + "px";
	tip.style.top = top + scrollY + "px";
}

function hideTip() {
	tip.style.display = "none";
}

// ---- keyboard

function pick(f) {
	if (!f)
		return;
	picked?.el.classList.remove("picked");
	picked = f;
	f.el.classList.add("picked");
	const box = f.rect.getBoundingClientRect();
	if (box.top < 0 || box.bottom > innerHeight)
		scrollBy(0, box.top - innerHeight / 2);
	const now = f.rect.getBoundingClientRect();
	showTip(f, now.left, now.bottom - 14);
}

const shown = (f) => f.el.style.display !== "none";
const children = (f) => frames.filter((g) => g.parent === f && shown(g));
const widest = (list) => list.reduce((a, b) => (b && (!a || b.w > a.w) ? b : a), null);

function beside(f, step) {
	for (let at = f.at + step; at >= 0 && at < frames.length; at += step)
		if (frames[at].depth === f.depth && shown(frames[at]))
			return frames[at];
	return null;
}

function onKey(event) {
	const down = flipped ? "ArrowUp" : "ArrowDown", up = flipped ? "ArrowDown" : "ArrowUp";
	const typing = event.target === input;
	if ((event.key === "f" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) {
		input.focus();
		input.select();
	} else if (event.key === "Escape") {
		if (typing && input.value) {
			input.value = "";
			search();
		} else if (typing) {
			input.blur();
		} else {
			picked?.el.classList.remove("picked");
			picked = null;
			zoom(frames[0]);
			if (chosen)
				choose(null);
		}
	} else if (typing || event.ctrlKey || event.metaKey || event.altKey || event.target.localName === "button") {
		return;
	} else if (event.key === down) {
		pick(picked ? widest(children(picked)) : focus);
	} else if (event.key === up) {
		pick(picked ? picked.parent : focus);
	} else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
		pick(picked ? beside(picked, event.key === "ArrowRight" ? 1 : -1) : focus);
	} else if (event.key === "Enter" && picked) {
		zoom(picked);
		pick(picked);
	} else if (event.key === "i") {
		flip.click();
	} else {
		return;
	}
	event.preventDefault();
}

// ---- what is only there when all this runs

const bar = element(SVG, "foreignObject", svg, {});
for (const [name, value] of Object.entries({x: SIDE, y: 54, height: 30, style: "overflow: visible"}))
	bar.setAttribute(name, value);
const tools = element(HTML, "div", bar, {className: "bar"});
const input = element(HTML, "input", tools, {type: "search", placeholder: "Search ( / ): text or regex", spellcheck: false});
input.setAttribute("aria-label", "Search for frames");
const reset = element(HTML, "button", tools, {textContent: "Reset zoom", title: "Esc"});
const flip = element(HTML, "button", tools, {textContent: "Flip", title: "i: the root at the bottom or at the top"});
const whole = element(HTML, "button", tools, {textContent: "All time", title: "what was chosen in the strip of time: Esc"});
const found = element(HTML, "span", tools, {});
found.setAttribute("aria-live", "polite");
const layer = element(SVG, "foreignObject", svg, {});
for (const [name, value] of Object.entries({x: 0, y: 0, width: 1, height: 1, style: "overflow: visible; pointer-events: none"}))
	layer.setAttribute(name, value);
const tip = element(HTML, "div", layer, {className: "tip"});

const field = document.createElementNS(SVG, "rect"), mark = document.createElementNS(SVG, "rect");
for (const [name, value] of Object.entries({id: "field", x: SIDE, y: cells[0].y.baseVal.value, height: cells[0].height.baseVal.value}))
	field.setAttribute(name, value);
for (const [name, value] of Object.entries({id: "chosen", y: cells[0].y.baseVal.value, height: cells[0].height.baseVal.value}))
	mark.setAttribute(name, value);
heat.prepend(field); // what the mouse meets
heat.append(mark);
const when = document.getElementById("when"), whenAll = when.textContent + ": drag over them to choose a part";

const frameOf = new Map(frames.map((f) => [f.el, f]));
const under = (event) => frameOf.get(event.target.closest?.(".f"));
root.addEventListener("click", (event) => under(event) && zoom(under(event)));
root.addEventListener("mousemove", (event) => {
	const f = under(event);
	f ? showTip(f, event.clientX, event.clientY) : hideTip();
});
root.addEventListener("mouseleave", hideTip);
for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"])
	heat.addEventListener(type, (event) => (type === "pointerdown" || from !== null) && drag(event));
heat.addEventListener("dblclick", () => choose(null));
whole.addEventListener("click", () => choose(null));
input.addEventListener("input", search);
reset.addEventListener("click", () => zoom(frames[0]));
flip.addEventListener("click", () => {
	flipped = !flipped;
	draw();
});
document.addEventListener("keydown", onKey);
addEventListener("resize", resize);

svg.removeAttribute("viewBox");
when.textContent = whenAll;
hideTip();
measure();
resize();
svg.classList.add("live");
})();
