// The lens: look into a trace, step by step, without asking the kernel. What comes in is made by packing.py.
// From top to bottom: reading the packed data, drawing one step, the parts of the page, and what holds them together.

const LANES = 32;
const WORD = 4; // bytes of a bank
const SECTOR = 32; // bytes
const ROW = 128; // bytes: a cache line of four sectors, or one word of each bank
const CELL = 20; // units of the drawing
const GUTTER = 98;
const GAP = 7; // where rows are left out
const MANY_ROWS = 14; // beyond which they are drawn closer
const WIDTH = GUTTER + LANES * CELL + 6;
const SPEEDS = { slow: 1400, normal: 600, fast: 150 }; // ms a step
const REST_MS = 700; // after which the figure for exported notebooks follows

// ---- reading --------------------------------------------------------------------------------------------------------

export function lanesOf(mask) {
  return Array.from({ length: LANES }, (_, lane) => lane).filter((lane) => (mask >>> lane) & 1);
}

/** One step of a warp, unpacked: lanes, and for a request the byte address of each. */
export function readStep(data, row) {
  const [time, line, kind, occurrence, mask, ...rest] = row;
  const step = { time, line, kind: data.kinds[kind], occurrence, lanes: lanesOf(mask) };
  if (kind > 2) return { ...step, taken: lanesOf(rest[0]) };
  const [array, base, pattern, passes, conflicts] = rest;
  const [name, space, itemsize, shape] = data.arrays[array];
  const addresses = data.patterns[pattern].map((cell) => base + cell * itemsize);
  return { ...step, array: name, space, itemsize, shape, addresses, passes, conflicts };
}

const diverges = (branch) => branch.taken.length > 0 && branch.taken.length < branch.lanes.length;

/** What a step adds to each of the counters. */
export function countsOf(data, step) {
  const counts = {};
  const prefix = `${step.space}_${step.kind}_`;
  if (step.kind === "atomic") counts.atomic_requests = 1;
  else if (step.kind === "barrier") counts.barriers = 1;
  else if (step.kind === "branch") counts.divergent_branches = diverges(step) ? 1 : 0;
  else if (step.space === "global" || step.space === "shared") {
    counts[`${prefix}requests`] = 1;
    counts[`${prefix}${step.space === "global" ? "sectors" : "wavefronts"}`] = step.passes;
    if (step.space === "shared") counts[`${prefix}bank_conflicts`] = step.conflicts;
  }
  return data.counters.map((name) => counts[name] ?? 0);
}

/** The lanes on each element, by its address; in shared memory small elements word by word. */
export function cellsOf(step) {
  const unit = step.space === "shared" ? Math.max(step.itemsize, WORD) : step.itemsize;
  const cells = new Map();
  step.lanes.forEach((lane, place) => {
    const address = Math.floor(step.addresses[place] / unit) * unit;
    cells.set(address, [...(cells.get(address) ?? []), lane]);
  });
  return cells;
}

/** The most distinct words that each bank must serve at a time; 8 bytes go half a warp at a time, 16 a quarter. */
export function bankDegrees(step) {
  const each = Math.max(1, Math.floor(step.itemsize / WORD));
  const asked = new Map();
  step.lanes.forEach((lane, place) => {
    const first = Math.floor(step.addresses[place] / WORD);
    for (let word = first; word < first + each; word++) {
      const key = (word % LANES) + LANES * Math.floor((lane * each) / LANES);
      asked.set(key, (asked.get(key) ?? new Set()).add(word));
    }
  });
  const degrees = Array(LANES).fill(0);
  for (const [key, words] of asked) degrees[key % LANES] = Math.max(degrees[key % LANES], words.size);
  return degrees;
}

/** The element at an address, such as "A[3, 0]"; the address where the array has gaps. */
export function elementAt(step, address) {
  if (!step.shape) return `byte ${address}`;
  let cell = Math.floor(address / step.itemsize);
  const index = [];
  for (const extent of [...step.shape].reverse()) {
    index.unshift(cell % extent);
    cell = Math.floor(cell / extent);
  }
  return `${step.array}[${index.join(", ")}]`;
}

const rowBytes = (step) => (step.space === "shared" ? ROW : Math.min(ROW, LANES * step.itemsize));
const rowsOf = (step) => {
  const rows = [...cellsOf(step).keys()].map((address) => Math.floor(address / rowBytes(step)));
  return [...new Set(rows)].sort((a, b) => a - b);
};
const plural = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

/** A step in words, with its cost. */
export function describe(step) {
  const active = plural(step.lanes.length, "active lane");
  switch (step.kind) {
    case "branch":
      return `Branch: ${step.taken.length} of ${active} take it${diverges(step) ? "; the warp diverges" : ""}.`;
    case "barrier":
      return "Barrier: the threads of the block wait here for each other.";
    case "syncwarp":
      return "syncwarp: the lanes of the warp wait here for each other.";
    case "shuffle":
      return `Shuffle: ${active} hand each other registers.`;
    case "vote":
      return `Vote: ${active} hear what the others say.`;
    case "divergent_barrier":
      return `A barrier that not all threads of the block reach: ${plural(step.lanes.length, "lane")} of this warp wait.`;
    case "out_of_bounds":
      return `Out of bounds: the array has no such element for lane ${step.lanes.join(", ")}.`;
  }
  const verb = { load: "Load from", store: "Store to", atomic: "Atomic update of" }[step.kind];
  const asked = plural(step.lanes.length * step.itemsize, "byte");
  const what = `${verb} ${step.array} (${step.space} memory): ${plural(step.lanes.length, "lane")}, ${asked}`;
  if (step.space === "global") return `${what}, ${plural(step.passes, "sector")}.`;
  if (step.space !== "shared") return `${what}.`;
  const conflicts = step.conflicts ? plural(step.conflicts, "bank conflict") : "no bank conflict";
  return `${what}, ${plural(step.passes, "wavefront")}, ${conflicts}.`;
}

// ---- drawing --------------------------------------------------------------------------------------------------------

function make(space, tag, attributes, children) {
  const node = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const h = (tag, attributes, ...children) => make(null, tag, attributes, children);
const s = (tag, attributes, ...children) => make("http://www.w3.org/2000/svg", tag, attributes, children);

const SIGNS = {
  first: "M3 3h2v10H3zM13 3v10L6 8z", previous: "M12 3v10L4 8z", play: "M4 2v12l9-6z", pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M4 3v10l8-5z", last: "M11 3h2v10h-2zM3 3v10l7-5z", hazard: "M8 1 15.5 15H.5zM7.2 6v4.5h1.6V6zM7.2 11.6v1.6h1.6v-1.6z",
};
/** A sign drawn by hand: not every font has them. */
const sign = (name) => s("svg", { viewBox: "0 0 16 16", class: "ll-sign", "aria-hidden": "true" }, s("path", { d: SIGNS[name], "fill-rule": "evenodd" }));

/** Draws steps of one trace as SVG; hatch is the id of the pattern for masked lanes. */
class Artist {
  constructor(data, hatch) {
    this.data = data;
    this.hatch = hatch;
  }

  draw(step, pinned) {
    this.pinned = pinned;
    this.y = 4;
    this.high = CELL; // of a row
    this.parts = [];
    this.lanes(step);
    if (step.kind === "branch") this.answers(step);
    else if (!step.addresses) this.bar(step);
    else if (step.space === "local") this.words("each lane has its own copy of a local array");
    else this.memory(step);
    const stripes = s("pattern", { id: this.hatch, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      s("line", { x1: 0, y1: 0, x2: 0, y2: 5, class: "ll-line" }));
    const look = { viewBox: `0 0 ${WIDTH} ${this.y + 4}`, width: "100%", role: "img", "aria-label": describe(step) };
    return s("svg", look, s("defs", {}, stripes), ...this.parts);
  }

  text(x, y, words, name, anchor = "middle") {
    const size = Math.min(words.length > 2 && anchor === "middle" ? 9.5 : 12, this.high * 0.75);
    this.parts.push(s("text", { x, y: y + this.high / 2, class: name, "text-anchor": anchor, "font-size": size }, words));
  }

  label(words, name = "ll-label") {
    const short = words.length > 15 ? `…${words.slice(-14)}` : words;
    this.parts.push(s("text", { x: GUTTER - 6, y: this.y + this.high / 2, class: name, "text-anchor": "end", "font-size": Math.min(words.length > 12 ? 10.5 : 11.5, this.high * 0.75) }, short, s("title", {}, words)));
  }

  words(words) {
    this.text(GUTTER, this.y, words, "ll-label", "start");
    this.y += CELL;
  }

  cell(x, width, lanes, hint) {
    const [first] = lanes;
    const pinned = lanes.includes(this.pinned);
    const text = lanes.length === 1 ? `${first}` : `×${lanes.length}`;
    const box = { x: x + 0.5, y: this.y + 0.5, width: width - 1, height: this.high - 1, fill: this.data.colours[first] };
    this.parts.push(s("rect", { ...box, class: pinned ? "ll-cell ll-pinned" : "ll-cell", "data-lanes": lanes.join(" ") }, s("title", {}, hint)));
    this.text(x + width / 2, this.y, text, first < this.data.darkLanes ? "ll-on-dark" : "ll-on-light");
  }

  lanes(step) {
    this.label("lanes");
    const coloured = new Set(step.taken && step.kind === "branch" ? step.taken : step.lanes);
    const active = new Set(step.lanes);
    for (let lane = 0; lane < LANES; lane++) {
      const x = GUTTER + lane * CELL;
      if (coloured.has(lane)) this.cell(x, CELL, [lane], `lane ${lane}, active`);
      else {
        const box = { x: x + 0.5, y: this.y + 0.5, width: CELL - 1, height: this.high - 1, class: "ll-empty" };
        const fill = active.has(lane) ? "none" : `url(#${this.hatch})`;
        const title = active.has(lane) ? `lane ${lane}, active, does not take the branch` : `lane ${lane}, masked`;
        this.parts.push(s("rect", { ...box, fill, "data-masked": active.has(lane) ? null : lane }, s("title", {}, title)));
        if (active.has(lane)) this.text(x + CELL / 2, this.y, `${lane}`, "ll-text");
      }
    }
    this.y += CELL * 1.4;
  }

  answers(step) {
    this.label("takes it");
    const taken = new Set(step.taken);
    for (const lane of step.lanes) this.text(GUTTER + (lane + 0.5) * CELL, this.y, taken.has(lane) ? "✓" : "–", "ll-text");
    this.y += CELL;
  }

  bar(step) {
    const bad = step.kind === "divergent_barrier" || step.kind === "out_of_bounds";
    const box = { x: GUTTER, y: this.y, width: LANES * CELL, height: CELL, rx: 3, class: bad ? "ll-bar ll-bad" : "ll-bar" };
    this.parts.push(s("rect", box));
    this.text(GUTTER + (LANES / 2) * CELL, this.y, step.kind.replace("_", " "), "ll-bar-text");
    this.y += CELL;
  }

  memory(step) {
    const size = rowBytes(step);
    const cells = cellsOf(step);
    if (step.space === "shared") this.banks(bankDegrees(step));
    const rows = rowsOf(step);
    this.high = rowHeight(rows);
    let before = null;
    for (const row of rows) {
      if (before !== null && row > before + 1) this.y += GAP;
      before = row;
      this.row(step, row * size, [...cells].filter(([address]) => Math.floor(address / size) === row));
    }
  }

  banks(degrees) {
    this.label("bank");
    degrees.forEach((_, bank) => this.text(GUTTER + (bank + 0.5) * CELL, this.y, `${bank}`, "ll-label"));
    this.y += CELL * 0.9;
    if (Math.max(...degrees) < 2) return;
    this.label("conflict", "ll-conflict");
    degrees.forEach((degree, bank) => {
      if (degree > 1) this.text(GUTTER + (bank + 0.5) * CELL, this.y, `×${degree}`, "ll-conflict");
    });
    this.y += CELL;
  }

  row(step, start, cells) {
    const size = rowBytes(step);
    const scale = (LANES * CELL) / size;
    const shared = step.space === "shared";
    const piece = shared ? WORD : SECTOR;
    const touched = new Set();
    for (const [address] of cells)
      for (let byte = address; byte < address + step.itemsize; byte += WORD) touched.add(Math.floor(byte / piece));
    this.label(elementAt(step, start));
    for (let number = start / piece; number < (start + size) / piece; number++) {
      const marked = !shared && step.space === "global" && touched.has(number);
      const x = GUTTER + (number * piece - start) * scale;
      const box = { x: x + 0.5, y: this.y + 0.5, width: piece * scale - 1, height: this.high - 1 };
      this.parts.push(s("rect", { ...box, class: marked ? "ll-sector ll-touched" : "ll-sector" }));
    }
    for (const [address, lanes] of cells) {
      const width = Math.max(step.itemsize, shared ? WORD : 0) * scale;
      const hint = `${elementAt(step, address)}: lane ${lanes.join(", ")}`;
      this.cell(GUTTER + (address - start) * scale, width, lanes, hint);
    }
    this.y += this.high + 1;
  }
}

const rowHeight = (rows) => (rows.length > MANY_ROWS ? 15 : CELL);

/** How tall the drawing of a step is, in units: the stage keeps the height of the tallest, so that nothing jumps. */
function heightOf(step) {
  if (!step.addresses || step.space === "local") return 3 * CELL;
  const rows = rowsOf(step);
  const gaps = rows.filter((row, place) => place > 0 && row > rows[place - 1] + 1).length;
  return (step.space === "shared" ? 4 : 2) * CELL + rows.length * (rowHeight(rows) + 1) + gaps * GAP;
}

// ---- the lens -------------------------------------------------------------------------------------------------------

const COLUMNS = [
  ["requests", "requests of this line, whole launch", ["global_load_requests", "global_store_requests", "shared_load_requests", "shared_store_requests", "atomic_requests"]],
  ["sectors", "32-byte sectors of global memory", ["global_load_sectors", "global_store_sectors"]],
  ["conflicts", "bank conflicts in shared memory", ["shared_load_bank_conflicts", "shared_store_bank_conflicts"]],
];

class Lens {
  constructor(data, tell) {
    this.data = data;
    this.tell = tell; // hears where the lens rests
    this.artist = new Artist(data, `ll-hatch-${Math.random().toString(36).slice(2)}`);
    this.warp = 0; // place among data.warps
    this.line = null; // place among data.source, null for all
    this.at = 0; // place in the warp's steps
    this.pinned = null; // the lane of a hazard
    this.timer = null;
    this.root = this.build();
    if (data.warps.length) this.enter(0);
    clearTimeout(this.resting); // the figure for exported notebooks is there already
    if (!data.warps.length) this.say(`${data.kernel} was not run.`);
  }

  // -- the page

  build() {
    const { kernel, grid, block, sampled } = this.data;
    const size = (dim) => (dim[2] > 1 ? dim : dim[1] > 1 ? dim.slice(0, 2) : dim.slice(0, 1)).join("×");
    const title = `${kernel}: ${size(grid)} ${Math.max(...grid) > 1 ? "blocks" : "block"} of ${size(block)} threads`;
    this.live = h("p", { class: "ll-say", "aria-live": "polite" });
    this.picture = h("div", { class: "ll-picture", tabindex: 0, role: "group", "aria-label": "The step. Left and right arrow keys step, up and down change the warp, space plays." });
    this.counts = h("table", { class: "ll-counts" });
    const root = h("div", { class: "labkit-lens", role: "group", "aria-label": `Lens on ${title}`, "data-lm-suppress-shortcuts": "true" },
      h("div", { class: "ll-title" }, h("b", {}, title), sampled ? h("span", { class: "ll-label" }, ` ${sampled}`) : null),
      this.buildTools(),
      h("div", { class: "ll-main" }, this.buildSource(), this.live, this.counts, this.picture),
      this.buildHazards(),
      h("p", { class: "ll-label ll-help" }, "Keys: ← → step, ↑ ↓ warp, space play or pause, Home and End. A line number keeps to that line. A cell shows the number of its lane, ×n stands for n lanes; a hatched lane is masked. Tinted are the 32-byte sectors that are moved."),
    );
    root.addEventListener("keydown", (event) => this.onKey(event));
    // JupyterLab takes its shortcuts first; here it keeps those with Ctrl, Meta and Shift, such as Save and Run.
    this.guard = (event) => root.toggleAttribute("data-lm-suppress-shortcuts", !(event.ctrlKey || event.metaKey || event.shiftKey));
    window.addEventListener("keydown", this.guard, true);
    return root;
  }

  buildTools() {
    const button = (name, icon, act) => h("button", { type: "button", title: name, "aria-label": name, onclick: act }, sign(icon));
    const option = (value, words) => h("option", { value }, words);
    const dims = this.data.grid[2] > 1 ? 3 : this.data.grid[1] > 1 ? 2 : 1;
    const inGrid = (block) => (dims > 1 ? `(${block.slice(0, dims).join(", ")})` : block[0]);
    this.warpBox = h("select", { onchange: () => this.enter(Number(this.warpBox.value), this.step?.time) },
      this.data.warps.map((one, place) => option(place, `${one.warp} (block ${inGrid(one.block)}, threads ${one.threads.join("–")})`)));
    this.lineBox = h("select", { onchange: () => this.keepTo(this.lineBox.value === "" ? null : Number(this.lineBox.value)) });
    this.speedBox = h("select", {}, Object.keys(SPEEDS).map((name) => option(name, name)));
    this.speedBox.value = "normal";
    this.playButton = button("Play", "play", () => this.toggle());
    this.slider = h("input", { type: "range", min: 0, step: 1, "aria-label": "Step", oninput: () => this.goTo(this.shown[Number(this.slider.value)]) });
    this.marks = h("div", { class: "ll-marks" });
    this.where = h("span", { class: "ll-where" });
    const controls = h("div", { class: "ll-tools" },
      h("label", {}, "Warp ", this.warpBox), h("label", {}, "Line ", this.lineBox),
      h("span", { class: "ll-buttons" },
        button("First step", "first", () => this.move(-Infinity)), button("Previous step", "previous", () => this.move(-1)), this.playButton,
        button("Next step", "next", () => this.move(1)), button("Last step", "last", () => this.move(Infinity))),
      h("label", {}, "Speed ", this.speedBox), this.where);
    return h("div", {}, controls, h("div", { class: "ll-time" }, this.marks, this.slider));
  }

  buildSource() {
    const indent = Math.min(...this.data.source.map(([, text]) => (text.trim() ? text.search(/\S/) : 99)));
    const total = (counts, names) => names.reduce((sum, name) => sum + counts[this.data.counters.indexOf(name)], 0);
    const columns = COLUMNS.filter(([, , names]) => total(this.data.totals, names));
    this.rows = this.data.source.map(([line, text, counts], place) => {
      const hazards = this.data.hazards.flatMap((hazard, number) => (hazard.lines[0] === line || hazard.lines[1] === line ? [number] : []));
      const mark = hazards.length
        ? h("button", { type: "button", class: "ll-mark", title: this.data.hazards[hazards[0]].message, "aria-label": `Hazard in line ${line}: go there`, onclick: () => this.jump(hazards[0], this.data.hazards[hazards[0]].lines[0] === line ? 0 : 1) }, sign("hazard"))
        : null;
      const numbers = columns.map(([, , names]) => {
        const sum = counts ? total(counts, names) : 0;
        return h("td", { class: "ll-count" }, sum ? sum.toLocaleString("en") : "");
      });
      const pick = h("button", { type: "button", class: "ll-line-number", title: "keep to this line", "aria-label": `Keep to line ${line}`, onclick: () => this.keepTo(this.line === place ? null : place) }, `${line}`);
      return h("tr", {}, h("td", { class: "ll-margin" }, mark, pick), ...numbers, h("td", { class: "ll-code" }, h("code", {}, text.slice(indent) || " ")));
    });
    const heads = columns.map(([name, title]) => h("th", { scope: "col", title }, name));
    return h("div", { class: "ll-source", tabindex: 0, role: "region", "aria-label": "Source of the kernel with the counters of each line" },
      h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "line"), ...heads, h("th", { scope: "col", class: "ll-code" }, "source"))), h("tbody", {}, this.rows)));
  }

  buildHazards() {
    const { hazards, notes } = this.data;
    const items = hazards.map((hazard, number) => {
      const go = (which, words) => {
        const place = hazard.places[which];
        if (hazard.lines[which] === null || hazard.lines[which] === undefined) return null;
        const where = place ? `line ${hazard.lines[which]}, warp ${place[0]}, lane ${place[2]}` : `line ${hazard.lines[which]}`;
        return h("button", { type: "button", class: "ll-jump", onclick: () => this.jump(number, which) }, `${words}: ${where}`);
      };
      const times = hazard.count > 1 ? ` (${hazard.count.toLocaleString("en")} times)` : "";
      return h("li", { class: "ll-hazard" }, h("b", {}, sign("hazard"), ` ${hazard.kind}: `), `${hazard.message}${times}`,
        h("div", {}, go(0, hazard.lines[1] ? "Later access" : "Show it"), go(1, "Earlier access")));
    });
    const said = notes.map(([line, message, count]) => h("li", { class: "ll-label" }, `Note, line ${line}: ${message}${count > 1 ? ` (${count} times)` : ""}`));
    return items.length + said.length ? h("ul", { class: "ll-hazards", "aria-label": "Hazards and notes" }, items, said)
      : h("p", { class: "ll-label ll-clean" }, "No hazards.");
  }

  // -- moving

  get steps() {
    return this.data.warps[this.warp].steps;
  }

  /** Look at another warp, at the same time or later. */
  enter(warp, time = 0) {
    this.warp = warp;
    this.warpBox.value = warp;
    this.so_far = null;
    const steps = this.steps.map((row) => readStep(this.data, row));
    this.picture.style.setProperty("--ll-rows", Math.max(3, ...steps.map(heightOf)) / WIDTH);
    const lines = [...new Set(steps.map((step) => step.line))].sort((a, b) => a - b);
    if (this.line !== null && !lines.includes(this.line)) this.line = null;
    const count = (line) => new Set(steps.filter((step) => step.line === line).map((step) => step.occurrence)).size;
    this.lineBox.replaceChildren(h("option", { value: "" }, "all lines"),
      ...lines.map((line) => h("option", { value: line }, `${this.data.source[line][0]}: ${this.data.source[line][1].trim().slice(0, 40)} (${count(line)}×)`)));
    this.rows.forEach((row, place) => { row.querySelector(".ll-line-number").disabled = !lines.includes(place); });
    const later = this.steps.findIndex((row) => row[0] >= time && (this.line === null || row[1] === this.line));
    this.keepTo(this.line, later < 0 ? this.steps.length - 1 : later);
  }

  /** Step through one line only, null for all of them. */
  keepTo(line, at = this.at) {
    this.line = line;
    this.lineBox.value = line ?? "";
    this.rows.forEach((row, place) => row.querySelector(".ll-line-number").setAttribute("aria-pressed", place === line));
    this.shown = this.steps.flatMap((row, place) => (line === null || row[1] === line ? [place] : []));
    this.slider.max = Math.max(0, this.shown.length - 1);
    this.drawMarks();
    this.goTo(this.shown.find((place) => place >= at) ?? this.shown.at(-1) ?? 0);
  }

  goTo(at, pinned = null) {
    this.at = at;
    this.pinned = pinned;
    this.show();
    clearTimeout(this.resting);
    if (!this.timer && this.step) this.resting = setTimeout(() => this.rest(), REST_MS);
  }

  move(by) {
    const place = this.shown.indexOf(this.at);
    const next = Math.min(Math.max(place + by, 0), this.shown.length - 1);
    if (next !== place) this.goTo(this.shown[next]);
    return next !== place;
  }

  toggle(playing = !this.timer) {
    clearTimeout(this.timer);
    this.timer = null;
    const atEnd = () => this.shown.indexOf(this.at) === this.shown.length - 1;
    if (playing && atEnd()) this.move(-Infinity);
    if (playing) {
      const turn = () => {
        this.move(1);
        if (atEnd()) this.toggle(false);
        else this.timer = setTimeout(turn, SPEEDS[this.speedBox.value]);
      };
      this.timer = setTimeout(turn, SPEEDS[this.speedBox.value]);
    } else if (this.step) this.resting = setTimeout(() => this.rest(), REST_MS);
    this.live.setAttribute("aria-live", playing ? "off" : "polite");
    this.playButton.replaceChildren(sign(playing ? "pause" : "play"));
    for (const name of ["title", "aria-label"]) this.playButton.setAttribute(name, playing ? "Pause" : "Play");
  }

  /** Go to the access at fault (0) or to the earlier one (1); only its line lights up where it was not recorded. */
  jump(number, which) {
    this.toggle(false);
    const hazard = this.data.hazards[number];
    const place = hazard.places[which];
    if (place) {
      this.line = null;
      this.enter(this.data.warps.findIndex((one) => one.warp === place[0]));
      this.goTo(place[1], place[2]);
    }
    this.light(hazard.lines[which], hazard.lines[1 - which]);
    this.root.querySelectorAll(".ll-hazard").forEach((item, one) => item.classList.toggle("ll-chosen", one === number));
    if (!place) this.say(`Line ${hazard.lines[which]}; this step is not among those that were recorded.`);
  }

  onKey(event) {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.tagName === "SELECT") return;
    const act = {
      ArrowRight: () => this.move(1), ArrowLeft: () => this.move(-1), Home: () => this.move(-Infinity), End: () => this.move(Infinity),
      ArrowDown: () => this.turnWarp(1), ArrowUp: () => this.turnWarp(-1), " ": () => this.toggle(),
    }[key];
    const native = target.tagName === "BUTTON" ? key === " " : target.tagName === "INPUT" && key !== " ";
    const scrolls = target.classList.contains("ll-source") && key !== " ";
    if (!act || native || scrolls || !this.data.warps.length) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  turnWarp(by) {
    const next = this.warp + by;
    if (next >= 0 && next < this.data.warps.length) this.enter(next, this.step?.time);
  }

  // -- showing

  show() {
    const row = this.steps[this.at];
    this.step = row ? readStep(this.data, row) : null;
    const place = this.shown.indexOf(this.at);
    this.slider.value = Math.max(place, 0);
    this.where.textContent = row ? `step ${place + 1} of ${this.shown.length}` : "this warp does nothing to be seen";
    if (!this.step) return this.picture.replaceChildren();
    const line = this.data.source[this.step.line][0];
    this.slider.setAttribute("aria-valuetext", `step ${place + 1} of ${this.shown.length}, line ${line}`);
    const hazards = this.hazardsHere();
    const pinned = this.pinned ?? hazards[0]?.lane ?? null;
    const mark = hazards.length ? h("span", { class: "ll-here" }, sign("hazard"), ` ${hazards[0].kind} at lane ${hazards[0].lane}. `) : "";
    this.say(describe(this.step), `Line ${line}, execution ${this.step.occurrence + 1}. `, mark);
    this.picture.replaceChildren(this.artist.draw(this.step, pinned));
    this.light(line, null);
    this.root.querySelectorAll(".ll-chosen").forEach((item) => item.classList.remove("ll-chosen"));
    this.showCounts();
  }

  say(words, where = "", mark = "") {
    this.live.replaceChildren(where, h("b", {}, words), " ", mark);
  }

  /** The hazards that have an access at this step. */
  hazardsHere() {
    const { warp } = this.data.warps[this.warp];
    const here = (place) => place && place[0] === warp && place[1] === this.at;
    return this.data.hazards.flatMap(({ kind, places }) => places.filter(here).map((place) => ({ kind, lane: place[2] })));
  }

  /** Light up the current line, and mark the line of the other access of a hazard. */
  light(line, other) {
    this.rows.forEach((row, place) => {
      const current = this.data.source[place][0] === line;
      row.classList.toggle("ll-current", current);
      row.classList.toggle("ll-other", other !== null && other !== undefined && this.data.source[place][0] === other && !current);
      if (current) {
        row.setAttribute("aria-current", "step");
        const box = row.closest(".ll-source");
        const top = row.offsetTop - box.clientHeight / 2;
        if (box.scrollHeight > box.clientHeight) box.scrollTop = top;
      } else row.removeAttribute("aria-current");
    });
  }

  showCounts() {
    if (!this.so_far) {
      const sums = this.data.counters.map(() => 0);
      this.so_far = this.steps.map((row) => countsOf(this.data, readStep(this.data, row)).map((count, n) => (sums[n] += count)));
    }
    const now = countsOf(this.data, this.step);
    const head = ["", "this step", "this warp so far", "whole launch"].map((words) => h("th", { scope: "col" }, words));
    const rows = this.data.counters.flatMap((name, n) => (!this.data.totals[n] ? [] : [
      h("tr", { class: now[n] ? "ll-now" : "" }, h("th", { scope: "row" }, name.replaceAll("_", " ")),
        ...[now[n], this.so_far[this.at][n], this.data.totals[n]].map((count) => h("td", {}, count.toLocaleString("en"))))]));
    this.counts.replaceChildren(h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  }

  /** Barriers as milestones and hazards as red marks above the slider. */
  drawMarks() {
    const last = Math.max(1, this.shown.length - 1);
    const left = (place) => `left: calc(8px + (100% - 16px) * ${this.shown.indexOf(place) / last})`;
    const milestones = this.shown.filter((place) => /barrier|syncwarp/.test(this.data.kinds[this.steps[place][2]]));
    const ticks = milestones.map((place) => h("span", { class: "ll-tick", style: left(place), title: "barrier" }));
    const warp = this.data.warps[this.warp].warp;
    const reds = this.data.hazards.flatMap((hazard, number) => hazard.places.flatMap((place, which) =>
      (!place || place[0] !== warp || !this.shown.includes(place[1]) ? [] : [
        h("button", { type: "button", class: "ll-red", tabindex: -1, style: left(place[1]), title: hazard.message, "aria-label": `Hazard ${number + 1}: ${hazard.kind}`, onclick: () => this.jump(number, which) }, "▼")])));
    this.marks.replaceChildren(...ticks, ...reds);
  }

  rest() {
    this.tell({ warp: this.data.warps[this.warp].warp, line: this.data.source[this.step.line][0], occurrence: this.step.occurrence });
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.resting);
    window.removeEventListener("keydown", this.guard, true);
  }
}

function render({ model, el }) {
  const tell = (place) => {
    model.set("place", place);
    model.save_changes();
  };
  const lens = new Lens(JSON.parse(model.get("data")), tell);
  // The plain sliders are there in case this script cannot be loaded; it was.
  el.append(h("style", {}, `.${model.get("stand_in")} { display: none !important; }`), lens.root);
  return () => lens.close();
}

export default { render };
