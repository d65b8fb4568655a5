/* Charts drawn for the width that they have, with tips by pointer, touch and keyboard. */

const FONT = 12;
const pen = document.createElement("canvas").getContext("2d");
const charts = [];

// ---------- elements ----------

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function set(id, text) { document.getElementById(id).textContent = text; }

function path(points) {
  return points.map(([a, b], k) => (k ? "L" : "M") + a.toFixed(1) + " " + b.toFixed(1)).join("");
}

// ---------- text that fits ----------

function textWidth(text) {
  pen.font = `${FONT}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/* The text, or as much of it as has room. */
function fitting(text, room) {
  if (textWidth(text) <= room) return text;
  let length = text.length - 1;
  while (length > 0 && textWidth(text.slice(0, length).trimEnd() + "…") > room) length -= 1;
  return length > 0 ? text.slice(0, length).trimEnd() + "…" : "";
}

function label(attributes, text, room = Infinity) {
  const shown = fitting(text, room);
  const node = svg("text", attributes);
  node.textContent = shown;
  if (shown !== text) node.append(svg("title", {}, text));
  return node;
}

/* Labels of a horizontal axis, moved inwards at the edges; null where they would touch. */
function placed(marks, X, width) {
  let last = -Infinity;
  const found = [];
  for (const mark of marks) {
    const half = textWidth(mark.text) / 2 + 1;
    const at = Math.min(Math.max(X(mark.value), half), width - half);
    if (at - half < last + 10) return null;
    found.push({ ...mark, at });
    last = at + half;
  }
  return found;
}

// ---------- a chart's frame ----------

/* Axes in pixels: names above and below, as many labels as have room, margins as wide as they need. */
function frame({ width, height, x, y, xLabel, yLabel, title, xScale = scale, yScale = scale, names = null, right = 14 }) {
  const top = 30, bottom = 46;
  const high = height - bottom, rows = Math.min(Math.max(Math.floor((high - top) / 44), 2), 7);
  const vertical = yScale(y, rows);
  const left = Math.ceil(Math.max(...vertical.marks.map((mark) => textWidth(mark.text)), 8)) + 12;
  const X = (value) => left + (value - x[0]) / (x[1] - x[0]) * (width - left - right);
  const Y = (value) => high - (value - y[0]) / (y[1] - y[0]) * (high - top);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": title });
  const axes = svg("g", { "aria-hidden": "true" });
  const under = svg("g"), over = svg("g");
  for (const { value, text } of vertical.marks) {
    axes.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: Y(value), y2: Y(value) }));
    axes.append(label({ x: left - 8, y: Y(value) + 4, "text-anchor": "end" }, text));
  }
  let note = "";
  if (names) {
    const slot = (width - left - right) / names.length, every = Math.ceil(64 / slot);
    names.forEach((name, k) => {
      if (k % every) return;
      const room = Math.min(slot * every - 8, 2 * (width - X(k)));
      axes.append(label({ x: X(k), y: high + 18, "text-anchor": "middle" }, name, room));
    });
  } else {
    let horizontal = null, marks = null;
    for (let count = Math.min(8, Math.floor((width - left - right) / 50)); count >= 1 && !marks; count -= 1) {
      horizontal = xScale(x, count);
      marks = placed(horizontal.marks, X, width);
    }
    note = horizontal ? horizontal.note : "";
    for (const { value, text, at } of marks || []) {
      axes.append(svg("line", { class: "axis", x1: X(value), x2: X(value), y1: high, y2: high + 5 }));
      axes.append(label({ x: at, y: high + 18, "text-anchor": "middle" }, text));
    }
  }
  const named = (name, extra, room) => {
    if (!extra) return fitting(name, room);
    return `${fitting(name, room - textWidth(", " + extra))}, ${extra}`;
  };
  axes.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: high, y2: high }));
  axes.append(label({ class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, named(xLabel, note, width - left - right)));
  axes.append(label({ class: "label", x: 0, y: 13 }, named(yLabel, vertical.note, width)));
  root.append(axes, under, over);
  const inX = (value) => Math.min(Math.max(value, x[0]), x[1]);
  const inY = (value) => Math.min(Math.max(value, y[0]), y[1]);
  return { root, under, over, X, Y, x, y, inX, inY, width, height, left, right, top, high };
}

/* Labels beside the ends of curves: moved apart, and left out where there is no room for all. */
function endLabels(chart, ends) {
  const gap = FONT + 3, room = Math.max(1, Math.floor((chart.high - chart.top) / gap) + 1);
  let kept = ends.slice().sort((a, b) => a.at - b.at);
  if (kept.length > room) {
    const step = (kept.length - 1) / Math.max(room - 1, 1);
    kept = Array.from({ length: room }, (_, k) => kept[Math.round(k * step)]);
  }
  const places = kept.map((end) => end.at);
  for (let k = 1; k < places.length; k += 1) places[k] = Math.max(places[k], places[k - 1] + gap);
  let limit = chart.high;
  for (let k = places.length - 1; k >= 0; k -= 1) {
    places[k] = Math.min(places[k], limit);
    limit = places[k] - gap;
  }
  kept.forEach((end, k) => {
    chart.over.append(label({ x: chart.width - chart.right + 7, y: places[k] + 4 }, end.text));
  });
}

// ---------- a chart on the page ----------

/* `draw(width)` gives the picture, `update(state)` what moves in it and `stops()` what can be pointed
   at: places with a few lines of text. The picture is drawn anew for every width. */
function chart(draw) {
  const holder = el("div", { class: "chart" });
  const tip = el("div", { class: "tip", role: "status", hidden: "" });
  const cross = svg("g", { class: "cross", "aria-hidden": "true" });
  let width = 0, drawn = null, state = null, at = -1;

  const hide = () => { tip.hidden = true; cross.replaceChildren(); at = -1; };
  const show = (stops, k) => {
    const stop = stops[k];
    at = k;
    tip.replaceChildren(...stop.lines.map((line, i) => el(i ? "div" : "strong", {}, line)));
    tip.hidden = false;
    const place = stop.x + 14 + tip.offsetWidth <= width ? stop.x + 14 : stop.x - 14 - tip.offsetWidth;
    tip.style.left = `${Math.min(Math.max(place, 0), Math.max(width - tip.offsetWidth, 0))}px`;
    tip.style.top = `${Math.max(Math.min(stop.y - tip.offsetHeight / 2, drawn.frame.height - tip.offsetHeight), 0)}px`;
    cross.replaceChildren(
      svg("line", { x1: stop.x, x2: stop.x, y1: drawn.frame.top, y2: drawn.frame.high }),
      svg("circle", { cx: stop.x, cy: stop.y, r: 4 }));
  };
  const point = (event) => {
    const box = drawn.root.getBoundingClientRect(), zoom = width / box.width;
    const px = (event.clientX - box.left) * zoom, py = (event.clientY - box.top) * zoom;
    const stops = drawn.stops();
    let best = -1, least = Infinity;
    stops.forEach((stop, k) => {
      const away = Math.hypot(stop.x - px, drawn.byColumn ? 0 : stop.y - py);
      if (away < least) { least = away; best = k; }
    });
    if (best >= 0) show(stops, best);
  };
  const key = (event) => {
    const stops = drawn.stops(), last = stops.length - 1, jump = event.shiftKey ? 10 : 1;
    const to = { ArrowRight: at < 0 ? 0 : at + jump, ArrowLeft: at < 0 ? last : at - jump, Home: 0, End: last }[event.key];
    if (event.key === "Escape") hide();
    if (to === undefined || last < 0) return;
    event.preventDefault();
    show(stops, Math.min(Math.max(to, 0), last));
  };
  const render = () => {
    if (!width) return;
    hide();
    drawn = draw(width);
    drawn.root = drawn.frame.root;
    drawn.root.append(cross);
    if (drawn.stops) {
      for (const kind of ["pointermove", "pointerdown"]) drawn.root.addEventListener(kind, point);
      drawn.root.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
      drawn.root.addEventListener("keydown", key);
      drawn.root.addEventListener("blur", hide);
    }
    holder.replaceChildren(drawn.root, tip);
    if (state && drawn.update) drawn.update(state);
  };
  const resize = () => {
    const now = Math.floor(holder.clientWidth);
    if (!now || now === width) return;
    width = now;
    render();
  };
  new ResizeObserver(resize).observe(holder);
  const made = {
    holder, render, resize,
    update: (next) => { state = next; hide(); if (drawn && drawn.update) drawn.update(next); },
  };
  charts.push(made);
  return made;
}

// ---------- parts of a page ----------

function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

function figure(chart, caption) {
  return el("figure", {}, chart.holder, el("figcaption", {}, caption));
}

function folded(summary, ...children) {
  return el("details", {}, el("summary", {}, summary), ...children);
}

/* Numbers with a name and a sentence each: [id, name, sentence]. */
function figures(items) {
  const list = el("ul", { class: "figures", role: "status", "aria-live": "polite" });
  for (const [id, name, sentence] of items) {
    list.append(el("li", {}, el("span", { class: "name" }, name), el("output", { id }, NONE),
      el("small", { id: id + "-words" }, sentence)));
  }
  return list;
}

function legend(...items) {
  return el("div", { class: "legend" },
    ...items.map(([colour, text]) => el("span", {}, el("i", { style: `background:${colour}` }), text)));
}

/* What may be wider than the page scrolls by itself, says so, and can be reached by the keyboard. */
function scrolling(content, name) {
  const inner = el("div", { class: "scroll", role: "region", "aria-label": name });
  const cue = el("p", { class: "cue", "aria-hidden": "true" }, "scroll sideways for more →");
  const outer = el("div", { class: "scroller" }, inner, cue);
  inner.append(content);
  const look = () => {
    const hidden = inner.scrollWidth - inner.clientWidth;
    outer.classList.toggle("wide", hidden > 1);
    outer.classList.toggle("more", hidden - inner.scrollLeft > 1);
    if (hidden > 1) inner.setAttribute("tabindex", "0"); else inner.removeAttribute("tabindex");
  };
  inner.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(inner);
  return outer;
}

function table(caption, headings, rows) {
  const head = el("tr", {}, ...headings.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map((row) => el("tr", {}, ...row.map((cell, k) => (k ? el("td", {}, cell) : el("th", { scope: "row" }, cell)))));
  return scrolling(el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, ...body)), caption);
}
