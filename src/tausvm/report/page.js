"use strict";

/* Everything below draws from the JSON in the page: no library, no network. */
const report = JSON.parse(document.getElementById("report-data").textContent);
const main = document.getElementById("main");
const MAX_DOTS = 1200;

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

function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

function figure(chart, caption) {
  return el("figure", {}, chart, el("figcaption", {}, caption));
}

function figures(items) {
  const list = el("ul", { class: "figures", role: "status", "aria-live": "polite" });
  for (const [id, words] of items) {
    list.append(el("li", {}, el("output", { id }, "–"), el("span", { id: id + "-words" }, words)));
  }
  return list;
}

function table(caption, headings, rows) {
  const head = el("tr", {}, ...headings.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell))));
  return el("div", { class: "scroll" }, el("table", {}, el("caption", {}, caption),
    el("thead", {}, head), el("tbody", {}, ...body)));
}

function set(id, text) { document.getElementById(id).textContent = text; }

// ---------- numbers ----------

function number(value, digits = 4) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4)) return value.toExponential(2);
  return String(Number(value.toPrecision(digits)));
}

function percent(value, digits = 1) {
  return value === null || !Number.isFinite(value) ? "–" : (100 * value).toFixed(digits) + " %";
}

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

function widened([low, high], share = 0.04) {
  const margin = share * (high - low) || 1;
  return [low - margin, high + margin];
}

function ticks([low, high], count = 6) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) || 10 * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

// ---------- a chart's frame ----------

function frame({ x, y, xLabel, yLabel, title, width = 1080, height = 400, xTicks, yTicks, xFormat, yFormat }) {
  const left = 66, right = 52, top = 14, bottom = 46;
  const X = (value) => left + (value - x[0]) / (x[1] - x[0]) * (width - left - right);
  const Y = (value) => height - bottom - (value - y[0]) / (y[1] - y[0]) * (height - top - bottom);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  root.append(svg("title", {}, title));
  const axes = svg("g", { "aria-hidden": "true" });
  const under = svg("g"), over = svg("g");
  for (const value of yTicks || ticks(y)) {
    axes.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: Y(value), y2: Y(value) }));
    const text = svg("text", { x: left - 8, y: Y(value) + 4, "text-anchor": "end" });
    text.textContent = (yFormat || number)(value);
    axes.append(text);
  }
  for (const value of xTicks || ticks(x, 7)) {
    axes.append(svg("line", { class: "axis", x1: X(value), x2: X(value), y1: height - bottom, y2: height - bottom + 5 }));
    const text = svg("text", { x: X(value), y: height - bottom + 19, "text-anchor": "middle" });
    text.textContent = (xFormat || number)(value);
    axes.append(text);
  }
  axes.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  const xText = svg("text", { class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" });
  xText.textContent = xLabel;
  const yText = svg("text", { class: "label", transform: `translate(15 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" });
  yText.textContent = yLabel;
  axes.append(xText, yText);
  root.append(axes, under, over);
  return { root, under, over, X, Y, x, y, width, height, left, right, top, bottom };
}

function path(points) {
  return points.map(([a, b], k) => (k ? "L" : "M") + a.toFixed(1) + " " + b.toFixed(1)).join("");
}

function bandClass(middle) {
  return "bandk" + Math.max(1, Math.min(4, Math.round(1 + 3 * (1 - 2 * Math.abs(middle - 0.5)))));
}

/* Values that would stretch a scale for the sake of a few points are left to the edges. */
function robust(values) {
  const sorted = values.filter((v) => v !== null && Number.isFinite(v)).sort((a, b) => a - b);
  if (sorted.length < 20) return range(sorted);
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const spread = at(0.995) - at(0.005);
  return [Math.max(sorted[0], at(0.005) - 0.3 * spread), Math.min(sorted[sorted.length - 1], at(0.995) + 0.3 * spread)];
}

function dotRows(count) {
  const step = Math.max(1, Math.ceil(count / MAX_DOTS));
  const rows = [];
  for (let k = 0; k < count; k += step) rows.push(k);
  return rows;
}

// ---------- levels ----------

/* A level between two fitted ones is taken on the line between them. */
function between(tau) {
  const levels = report.levels;
  if (levels.length < 2) return { low: 0, high: 0, share: 0 };
  let high = levels.findIndex((level) => level >= tau - 1e-9);
  if (high < 0) high = levels.length - 1;
  if (Math.abs(levels[high] - tau) < 1e-9) return { low: high, high, share: 0 };
  const low = Math.max(high - 1, 0);
  return { low, high, share: high === low ? 0 : (tau - levels[low]) / (levels[high] - levels[low]) };
}

function mixed(curves, { low, high, share }) {
  const a = curves[low], b = curves[high];
  return a.map((value, k) => (1 - share) * value + share * b[k]);
}

function lossAt(residual, tau) {
  if (report.kind === "quantile") return residual >= 0 ? tau * residual : (tau - 1) * residual;
  if (report.kind === "expectile") return (residual >= 0 ? tau : 1 - tau) * residual * residual;
  const excess = Math.max(Math.abs(residual) - report.epsilon, 0);
  return report.squared ? excess * excess : excess;
}

function levelFigures(tau) {
  const f = mixed(report.rows.levels, between(tau));
  const y = report.rows.y, n = y.length;
  let below = 0, loss = 0, distanceBelow = 0, distance = 0;
  for (let k = 0; k < n; k += 1) {
    const residual = y[k] - f[k];
    if (residual <= 0) { below += 1; distanceBelow -= residual; }
    distance += Math.abs(residual);
    loss += lossAt(residual, tau);
  }
  return { f, n, below, loss: loss / n, share: below / n, moment: distance > 0 ? distanceBelow / distance : 0.5 };
}

// ---------- regression ----------

function drawFan(fan) {
  const y = widened(robust(report.rows.y.concat(...fan.curves)));
  const category = fan.type === "category";
  const places = category ? fan.grid.map((_, k) => k) : fan.grid;
  const x = category ? [-0.6, fan.grid.length - 0.4] : widened(range(places), 0.02);
  const short = (k) => String(fan.grid[k]).slice(0, Math.max(3, Math.floor(90 / fan.grid.length)));
  const chart = frame({
    x, y, xLabel: fan.name, yLabel: report.target, height: 440,
    title: `${report.target} against ${fan.name}, with the levels of the model`,
    ...(category ? { xTicks: places, xFormat: short } : {}),
  });
  const { X, Y, under, over } = chart;
  const inside = (value) => Math.min(Math.max(value, y[0]), y[1]);
  const levels = report.levels;
  const runs = category ? places.map((k) => [[k - 0.32, k], [k + 0.32, k]]) : [places.map((p, k) => [p, k])];
  for (let l = 0; l + 1 < fan.curves.length; l += 1) {
    for (const run of runs) {
      const low = run.map(([p, k]) => [X(p), Y(inside(fan.curves[l][k]))]);
      const high = run.map(([p, k]) => [X(p), Y(inside(fan.curves[l + 1][k]))]);
      under.append(svg("path", { class: bandClass(0.5 * (levels[l] + levels[l + 1])), d: path(low.concat(high.reverse())) + "Z" }));
    }
  }
  const dots = [];
  for (const k of dotRows(report.rows.y.length)) {
    if (fan.x[k] === null || fan.x[k] < x[0] || fan.x[k] > x[1]) continue;
    const jitter = category ? 0.5 * (((k * 0.618034) % 1) - 0.5) : 0;
    const dot = svg("circle", { class: "dot", r: 2.4, cx: X(fan.x[k] + jitter).toFixed(1), cy: Y(inside(report.rows.y[k])).toFixed(1) });
    dots.push([dot, k]);
    under.append(dot);
  }
  const ends = [];
  fan.curves.forEach((curve, l) => {
    const middle = !levels.length || Math.abs(levels[l] - 0.5) < 1e-9;
    for (const run of runs) {
      over.append(svg("path", { class: middle ? "level middle" : "level", d: path(run.map(([p, k]) => [X(p), Y(inside(curve[k]))])) }));
    }
    if (levels.length) ends.push([Y(inside(curve[curve.length - 1])), levels[l]]);
  });
  ends.sort((a, b) => a[0] - b[0]);
  let last = -Infinity;
  for (const [place, level] of ends) {
    const at = Math.max(place + 4, last + 14);
    const text = svg("text", { x: chart.width - chart.right + 6, y: at });
    text.textContent = number(level, 3);
    over.append(text);
    last = at;
  }
  const chosen = svg("path", { class: "chosen" });
  over.append(chosen);
  const update = (tau, shown) => {
    if (levels.length) {
      const curve = mixed(fan.curves, between(tau));
      chosen.setAttribute("d", runs.map((run) => path(run.map(([p, k]) => [X(p), Y(inside(curve[k]))]))).join(""));
    }
    for (const [dot, k] of dots) dot.classList.toggle("above", report.rows.y[k] > shown.f[k]);
  };
  return { root: chart.root, update };
}

function drawCalibration() {
  const rows = report.calibration;
  const chart = frame({
    x: [0, 1], y: [0, 1], width: 460, height: 420, xLabel: "level τ", title: "Nominal against observed levels",
    yLabel: report.kind === "quantile" ? "share of targets at or below" : "share of deviations below",
  });
  const { X, Y, under, over } = chart;
  if (report.kind === "quantile") {
    const n = report.data.rows, grid = Array.from({ length: 61 }, (_, k) => k / 60);
    const half = (t) => 1.96 * Math.sqrt(t * (1 - t) / n);
    const low = grid.map((t) => [X(t), Y(Math.max(t - half(t), 0))]);
    const high = grid.map((t) => [X(t), Y(Math.min(t + half(t), 1))]);
    under.append(svg("path", { class: "band", d: path(low.concat(high.reverse())) + "Z" }));
  }
  under.append(svg("line", { class: "ideal", x1: X(0), y1: Y(0), x2: X(1), y2: Y(1) }));
  over.append(svg("path", { class: "level", d: path(rows.map((r) => [X(r.tau), Y(r.observed)])) }));
  for (const r of rows) {
    const dot = svg("circle", { class: "bar", r: 5, cx: X(r.tau), cy: Y(r.observed) });
    dot.append(svg("title", {}, `τ = ${number(r.tau)}: observed ${number(r.observed, 3)}`));
    over.append(dot);
  }
  const now = svg("circle", { class: "knob", r: 7 });
  over.append(now);
  return {
    root: chart.root,
    update: (tau, shown) => {
      now.setAttribute("cx", X(tau));
      now.setAttribute("cy", Y(report.kind === "quantile" ? shown.share : shown.moment));
    },
  };
}

function drawResiduals() {
  const holder = el("div");
  const rows = dotRows(report.rows.y.length);
  const start = levelFigures(startTau());
  const all = [];
  for (const curve of report.rows.levels) report.rows.y.forEach((y, k) => all.push(y - curve[k]));
  const limit = robust(all), x = widened(robust(report.rows.levels.flat()));
  const chart = frame({
    x, y: widened(limit), width: 460, height: 300, xLabel: "predicted", yLabel: "target − predicted",
    title: "Residuals against predictions at the chosen level",
  });
  const { X, Y, under, over } = chart;
  under.append(svg("line", { class: "ideal", x1: X(x[0]), x2: X(x[1]), y1: Y(0), y2: Y(0) }));
  const clampX = (v) => Math.min(Math.max(v, x[0]), x[1]);
  const clampY = (v) => Math.min(Math.max(v, chart.y[0]), chart.y[1]);
  const dots = rows.map((k) => { const dot = svg("circle", { class: "dot", r: 2.2 }); over.append(dot); return [dot, k]; });
  const bins = 30, edges = Array.from({ length: bins + 1 }, (_, k) => limit[0] + k * (limit[1] - limit[0]) / bins);
  const count = (f) => {
    const counts = new Array(bins).fill(0);
    report.rows.y.forEach((y, k) => {
      const at = Math.floor((y - f[k] - limit[0]) / (limit[1] - limit[0]) * bins);
      if (at >= 0 && at < bins) counts[at] += 1;
    });
    return counts;
  };
  let highest = Math.max(...count(start.f));
  for (let l = 0; l < report.rows.levels.length; l += 1) highest = Math.max(highest, ...count(report.rows.levels[l]));
  const bars = frame({
    x: limit, y: [0, highest * 1.08 || 1], width: 460, height: 200, xLabel: "target − predicted", yLabel: "rows",
    title: "How many rows have which residual at the chosen level",
  });
  const boxes = edges.slice(0, bins).map((edge, k) => {
    const box = svg("rect", { class: edge >= -1e-12 ? "bar other" : "bar", x: bars.X(edge) + 0.5, width: Math.max(bars.X(edges[k + 1]) - bars.X(edge) - 1, 0.5) });
    bars.under.append(box);
    return box;
  });
  bars.over.append(svg("line", { class: "now", x1: bars.X(0), x2: bars.X(0), y1: bars.Y(0), y2: bars.top }));
  holder.append(chart.root, bars.root);
  return {
    root: holder,
    update: (tau, shown) => {
      for (const [dot, k] of dots) {
        const residual = report.rows.y[k] - shown.f[k];
        dot.setAttribute("cx", X(clampX(shown.f[k])).toFixed(1));
        dot.setAttribute("cy", Y(clampY(residual)).toFixed(1));
        dot.classList.toggle("above", residual > 0);
      }
      count(shown.f).forEach((c, k) => {
        boxes[k].setAttribute("y", bars.Y(c));
        boxes[k].setAttribute("height", Math.max(bars.Y(0) - bars.Y(c), 0));
      });
    },
  };
}

function startTau() {
  const levels = report.levels;
  if (!levels.length) return 0.5;
  return levels.reduce((best, level) => (Math.abs(level - 0.5) < Math.abs(best - 0.5) ? level : best));
}

function regressionPage() {
  const levels = report.levels, many = levels.length > 1;
  const quantile = report.kind === "quantile";
  const slider = el("input", {
    type: "range", id: "tau", min: levels[0] ?? 0.5, max: levels[levels.length - 1] ?? 0.5, step: 0.005, value: startTau(),
    "aria-describedby": "tau-words",
  });
  slider.value = startTau();
  const select = el("select", { id: "feature" }, ...report.fans.map((fan, k) => el("option", { value: k }, fan.name)));
  if (report.fans.length > 1) select.value = "1";
  const holder = el("div", { id: "fan" });
  const controls = el("div", { class: "controls sticky" });
  if (many) controls.append(el("label", { for: "tau" }, "level τ", slider), el("output", { id: "tau-value", for: "tau" }));
  controls.append(el("label", { for: "feature" }, "against", select));
  const numbers = [];
  if (levels.length) numbers.push(["share", quantile ? "of targets at or below the level" : "of deviations lie below the level"]);
  numbers.push(["above", "rows above the prediction"], ["loss", "mean loss at this level"]);
  if (many && quantile) numbers.push(["inside", "of targets between τ and 1 − τ"]);
  if (report.crossings !== null) numbers.push(["crossings", "of rows where levels cross"]);
  const words = el("p", { id: "tau-words", class: "quiet" });
  const fanSection = section(levels.length ? "The fan of levels" : "The fit", el("p", {}, report.meaning), controls, figures(numbers), words, holder);
  const legend = el("div", { class: "legend" });
  const key = (colour, text) => el("span", {}, el("i", { style: `background:${colour}` }), text);
  if (levels.length) legend.append(key("var(--b3)", "between fitted levels, darker towards the middle"), key("var(--mark)", "the chosen level, and rows above it"));
  else legend.append(key("var(--hue)", "prediction"), key("var(--mark)", "rows above their prediction"));
  fanSection.append(legend);
  main.append(fanSection);
  const pair = el("div", { class: "pair" });
  const charts = [];
  if (report.calibration.length) {
    const calibration = drawCalibration();
    charts.push(calibration);
    pair.append(section("Calibration", figure(calibration.root, quantile
      ? "A calibrated model lies on the dashed line; the band holds 95 % of what chance does to one."
      : "For an expectile, the deviations below it are a share τ of all; a calibrated model lies on the dashed line."),
      table("Nominal and observed levels", ["level", "observed", "mean loss", "targets at or below"],
        report.scores.map((s) => [number(s.tau), percent(s.observed), number(s.loss), percent(s.coverage)]))));
  }
  const residuals = drawResiduals();
  charts.push(residuals);
  pair.append(section("Residuals", figure(residuals.root, levels.length
    ? "At the chosen level. Rows above the line are above their predicted level."
    : "Rows above the line are above their prediction.")));
  main.append(pair);
  if (report.rows.sampled) {
    fanSection.append(el("p", { class: "quiet" }, `The page holds ${report.rows.y.length} of the ${report.data.rows} rows; numbers that move with the slider are of these, the calibration is of all.`));
  }
  let fan = null;
  const draw = () => {
    fan = drawFan(report.fans[Number(select.value)]);
    const chosen = report.fans[Number(select.value)];
    const held = chosen.type !== "order" && report.data.features > 1;
    holder.replaceChildren(figure(fan.root, held
      ? "The curves are a cut: all other features are held at their median or most frequent value. Dots are the rows as they are, coloured by their own prediction."
      : "Dots are the rows, coloured by their own prediction."));
  };
  const update = () => {
    const tau = many ? Number(slider.value) : startTau();
    const shown = levelFigures(tau);
    const at = between(tau);
    fan.update(tau, shown);
    for (const chart of charts) chart.update(tau, shown);
    if (many) {
      set("tau-value", "τ = " + number(tau, 3));
      slider.setAttribute("aria-valuetext", "level " + number(tau, 3));
      words.textContent = at.low === at.high
        ? `Level ${number(tau, 3)} was fitted.`
        : `Level ${number(tau, 3)} lies between the fitted levels ${number(levels[at.low])} and ${number(levels[at.high])}; it is drawn on the line between them.`;
    }
    if (levels.length) {
      set("share", percent(quantile ? shown.share : shown.moment));
      set("share-words", (quantile ? "of targets at or below the level" : "of deviations lie below the level") + `, should be ${percent(tau)}`);
    }
    set("above", String(shown.n - shown.below));
    set("loss", number(shown.loss));
    if (many && quantile) {
      const other = 1 - tau, low = Math.min(tau, other), high = Math.max(tau, other);
      if (low < levels[0] - 1e-9 || high > levels[levels.length - 1] + 1e-9 || high - low < 1e-9) {
        set("inside", "–");
        set("inside-words", "of targets between τ and 1 − τ");
      } else {
        const a = mixed(report.rows.levels, between(low)), b = mixed(report.rows.levels, between(high));
        const count = report.rows.y.filter((y, k) => a[k] < y && y <= b[k]).length;
        set("inside", percent(count / report.rows.y.length));
        set("inside-words", `of targets between ${number(low, 3)} and ${number(high, 3)}, should be ${percent(high - low)}`);
      }
    }
    if (report.crossings !== null) set("crossings", percent(report.crossings));
  };
  slider.addEventListener("input", update);
  select.addEventListener("change", () => { draw(); update(); });
  draw();
  update();
}

// ---------- classification ----------

function classPage() {
  const axis = report.axis_values, path_ = report.kind === "path";
  const [negative, positive] = report.classes;
  const name = path_ ? "level τ" : "threshold";
  const slider = el("input", { type: "range", id: "tau", min: 0, max: axis.length - 1, step: 1, value: report.start, "aria-describedby": "tau-words" });
  slider.value = report.start;
  const miss = el("input", { type: "number", id: "cost-miss", min: 0, step: "any", value: 1 });
  const alarm = el("input", { type: "number", id: "cost-alarm", min: 0, step: "any", value: 1 });
  if (!path_) { miss.value = number(2 * (1 - report.tau), 3); alarm.value = number(2 * report.tau, 3); }
  const best = el("button", { type: "button", id: "best" }, "go to the cheapest");
  const controls = el("div", { class: "controls sticky" },
    el("label", { for: "tau" }, name, slider), el("output", { id: "tau-value", for: "tau" }));
  const costs = el("div", { class: "controls" },
    el("label", { for: "cost-miss" }, `cost of a missed “${positive}”`, miss),
    el("label", { for: "cost-alarm" }, "cost of a false alarm", alarm), best);
  const words = el("p", { id: "tau-words", class: "quiet" });
  const cell = (id, kind, text) => el("td", { class: kind }, el("output", { id }, "–"), el("small", {}, text));
  const matrix = el("table", { class: "confusion" },
    el("caption", {}, "Confusion matrix"),
    el("thead", {}, el("tr", {}, el("th", {}), el("th", { scope: "col" }, `decided “${positive}”`), el("th", { scope: "col" }, `decided “${negative}”`))),
    el("tbody", {},
      el("tr", {}, el("th", { scope: "row" }, `is “${positive}”`), cell("tp", "right", "found"), cell("fn", "wrong", "missed")),
      el("tr", {}, el("th", { scope: "row" }, `is “${negative}”`), cell("fp", "wrong", "false alarms"), cell("tn", "right", "rightly left"))));
  const numbers = [["threshold", path_ ? "decision threshold on f(x)" : "decide “" + positive + "” above this value"],
    ["cost", "cost of the errors"], ["accuracy", "accuracy"], ["recall", "of the positives found"],
    ["precision", "of the alarms are right"], ["alarm-rate", "of the negatives alarmed"]];
  main.append(section("Decisions", el("p", {}, report.meaning), controls, costs, figures(numbers), words, el("div", { class: "scroll" }, matrix)));

  const n = report.positives + report.negatives;
  const rate = (a, b) => (b > 0 ? a / b : NaN);
  const points = axis.map((_, k) => [rate(report.false_positive[k], report.negatives), rate(report.true_positive[k], report.positives)]);
  const roc = frame({ x: [0, 1], y: [0, 1], width: 460, height: 420, xLabel: "false alarms among negatives", yLabel: "found among positives", title: "Found positives against false alarms" });
  roc.under.append(svg("line", { class: "ideal", x1: roc.X(0), y1: roc.Y(0), x2: roc.X(1), y2: roc.Y(1) }));
  const sorted = points.slice().sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  roc.over.append(svg("path", { class: "level middle", d: path([[0, 0], ...sorted, [1, 1]].map(([a, b]) => [roc.X(a), roc.Y(b)])) }));
  const knob = svg("circle", { class: "knob", r: 7 });
  roc.over.append(knob);

  const costHolder = el("div");
  let costNow = null, costFrame = null;
  const costAt = (k) => Number(miss.value) * report.false_negative[k] + Number(alarm.value) * report.false_positive[k];
  const cheapest = () => {
    let at = 0;
    for (let k = 1; k < axis.length; k += 1) if (costAt(k) < costAt(at) - 1e-12) at = k;
    return at;
  };
  const drawCost = () => {
    const values = axis.map((_, k) => costAt(k));
    costFrame = frame({ x: widened(range(axis), 0.01), y: [0, Math.max(...values) * 1.06 || 1], width: 460, height: 420, xLabel: name, yLabel: "cost of the errors", title: "Cost of the errors along the " + name });
    costFrame.over.append(svg("path", { class: "level middle", d: path(axis.map((v, k) => [costFrame.X(v), costFrame.Y(values[k])])) }));
    costNow = svg("line", { class: "now", y1: costFrame.Y(0), y2: costFrame.top });
    costFrame.over.append(costNow);
    if (path_) {
      const suggested = Number(alarm.value) / (Number(miss.value) + Number(alarm.value));
      if (Number.isFinite(suggested)) costFrame.under.append(svg("line", { class: "ideal", x1: costFrame.X(suggested), x2: costFrame.X(suggested), y1: costFrame.Y(0), y2: costFrame.top }));
    }
    costHolder.replaceChildren(costFrame.root);
  };
  const pair = el("div", { class: "pair" },
    section("Found against false alarms", figure(roc.root, "Each point of the curve is one setting of the slider. Up and left is better.")),
    section("What the errors cost", figure(costHolder, path_ ? "The dashed line is τ = b/(a + b), best in theory for the two costs a and b." : "Along the threshold, at the two costs above.")));
  main.append(pair);
  if (report.histogram) {
    const h = report.histogram;
    const tallest = Math.max(...h.positive, ...h.negative);
    const bars = frame({ x: range(h.edges), y: [0, tallest * 1.06], height: 260, xLabel: path_ ? `probability of “${positive}”` : "decision value", yLabel: "rows", title: "The two classes apart" });
    for (const [key, kind] of [["negative", "bar"], ["positive", "bar other"]]) {
      h[key].forEach((count, k) => bars.under.append(svg("rect", {
        class: kind, x: bars.X(h.edges[k]) + (key === "positive" ? 1 : 0), width: Math.max(bars.X(h.edges[k + 1]) - bars.X(h.edges[k]) - 1, 0.5),
        y: bars.Y(count), height: bars.Y(0) - bars.Y(count),
      })));
    }
    const line = svg("line", { class: "now", y1: bars.Y(0), y2: bars.top });
    bars.over.append(line);
    report.moveHistogram = (value) => {
      const at = Math.min(Math.max(value, bars.x[0]), bars.x[1]);
      line.setAttribute("x1", bars.X(at));
      line.setAttribute("x2", bars.X(at));
    };
    const legend = el("div", { class: "legend" },
      el("span", {}, el("i", { style: "background:var(--hue)" }), negative), el("span", {}, el("i", { style: "background:var(--mark)" }), positive));
    main.append(path_
      ? section("Probabilities", figure(bars.root, "The probability of “" + positive + "”, read off the path: the share of levels at which a row is decided so. The line is the level τ."), legend)
      : section("Decision values", figure(bars.root, "Right of the line is decided “" + positive + "”."), legend));
  }

  const update = () => {
    const k = Number(slider.value);
    const tp = report.true_positive[k], fp = report.false_positive[k], fn = report.false_negative[k], tn = report.true_negative[k];
    set("tau-value", (path_ ? "τ = " : "") + number(axis[k], 3));
    slider.setAttribute("aria-valuetext", name + " " + number(axis[k], 3));
    set("tp", String(tp)); set("fp", String(fp)); set("fn", String(fn)); set("tn", String(tn));
    set("threshold", number(report.thresholds[k], 4));
    set("cost", number(costAt(k), 6));
    set("accuracy", percent(rate(tp + tn, n)));
    set("recall", percent(rate(tp, tp + fn)));
    set("precision", percent(rate(tp, tp + fp)));
    set("alarm-rate", percent(rate(fp, fp + tn)));
    knob.setAttribute("cx", roc.X(points[k][0]));
    knob.setAttribute("cy", roc.Y(points[k][1]));
    costNow.setAttribute("x1", costFrame.X(axis[k]));
    costNow.setAttribute("x2", costFrame.X(axis[k]));
    if (report.moveHistogram) report.moveHistogram(axis[k]);
    const at = cheapest();
    const suggested = Number(alarm.value) / (Number(miss.value) + Number(alarm.value));
    words.textContent = (Number.isFinite(suggested) ? `At these costs theory says τ = ${number(suggested, 3)}. ` : "")
      + `On these ${n} rows the cheapest ${name} is ${number(axis[at], 3)}, with a cost of ${number(costAt(at), 6)}.`;
  };
  slider.addEventListener("input", update);
  for (const field of [miss, alarm]) field.addEventListener("input", () => { drawCost(); update(); });
  best.addEventListener("click", () => { slider.value = cheapest(); update(); });
  drawCost();
  update();
}

// ---------- what every page has ----------

function certificateSection() {
  if (!report.certificates.length) {
    return section("The certificate", el("p", {}, report.mean ?? "This model has no certificate."));
  }
  const list = el("ul", { class: "words" }, ...report.certificates.map((c) => el("li", {}, c.words)));
  const traced = report.certificates.filter((c) => c.trace.length > 1);
  const parts = [el("p", {}, "Every fit is a convex problem with a dual, and the dual bounds what any function could reach. The distance between the two is the duality gap; it was recomputed from the data after the solve."), list];
  if (traced.length) {
    const gaps = traced.flatMap((c) => c.trace.map((t) => Math.log10(t[1])));
    const y = range(gaps).map((v, k) => (k ? Math.ceil(v + 0.01) : Math.floor(v)));
    const longest = Math.max(...traced.flatMap((c) => c.trace.map((t) => t[0])));
    const powers = [];
    for (let k = y[0]; k <= y[1]; k += 1) powers.push(k);
    const chart = frame({ x: [0, longest || 1], y, height: 260, xLabel: "seconds", yLabel: "relative gap", title: "How the duality gap closed", yTicks: powers, yFormat: (k) => "1e" + k });
    for (const c of traced) chart.over.append(svg("path", { class: c.tau === null || Math.abs(c.tau - 0.5) < 1e-9 ? "level middle" : "level", d: path(c.trace.map((t) => [chart.X(t[0]), chart.Y(Math.log10(t[1]))])) }));
    parts.push(figure(chart.root, "The gap at every check, one line a level."));
  }
  parts.push(table("The solves", ["level", "gap", "objective", "lower bound", "support vectors", "iterations", "seconds", "solver"],
    report.certificates.map((c) => [c.tau === null ? "–" : number(c.tau), c.gap === null ? "–" : c.gap.toExponential(1), number(c.primal, 6), number(c.dual, 6),
      c.support === null ? "–" : String(c.support), String(c.iterations), c.seconds.toFixed(3), c.solver])));
  return section("The certificate", ...parts);
}

function parameterSection() {
  const pairs = report.parameters.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  const parts = [el("dl", { class: "parameters" }, ...pairs)];
  if (report.chosen.length) {
    const names = Object.keys(report.chosen[0]);
    const taus = report.levels && report.levels.length === report.chosen.length;
    parts.unshift(table("Chosen by cross-validation", ["level", ...names], report.chosen.map((point, k) => [taus ? number(report.levels[k]) : "all", ...names.map((name) => (typeof point[name] === "string" ? point[name] : number(point[name])))])));
  }
  return section("Parameters", ...parts);
}

function learnedSection() {
  const { words, shares, features } = report.learned;
  const heading = shares.length < features ? `The ${shares.length} that count most` : "What the features count";
  return section("Learned features", el("p", {}, words),
    table(heading, ["feature", "share"], shares.map(([name, share]) => [name, (100 * share).toFixed(1) + " %"])));
}

function dataSection() {
  const { rows, features, columns } = report.data;
  const parts = [el("p", {}, `${rows} rows, ${features} features${report.data.name ? ", from " + report.data.name : ""}.`)];
  const numeric = columns.filter((c) => c.type === "number"), text = columns.filter((c) => c.type === "category");
  if (numeric.length) {
    parts.push(table("Numbers", ["column", "least", "first quarter", "median", "third quarter", "largest", "missing"],
      numeric.map((c) => [c.name, ...c.quartiles.map((v) => number(v)), String(c.missing)])));
  }
  if (text.length) {
    parts.push(table("Categories", ["column", "values", "missing"],
      text.map((c) => [c.name, c.values.slice(0, 10).map(([v, k]) => `${v} (${k})`).join(", ") + (c.distinct > 10 ? " …" : ""), String(c.missing)])));
  }
  return section("Data", ...parts);
}

const theme = document.getElementById("theme");
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

document.getElementById("subtitle").textContent = `${report.parameters[0][1]} on ${report.data.rows} rows`
  + (report.data.name ? ` of ${report.data.name}` : "");
if (report.kind === "class" || report.kind === "path") classPage();
else regressionPage();
if (report.learned) main.append(learnedSection());
main.append(certificateSection(), parameterSection(), dataSection());
const versions = Object.entries(report.versions).map(([name, value]) => `${name} ${value}`).join(", ");
document.getElementById("footer").textContent = `Written ${report.created}` + (versions ? `; the model by ${versions}.` : ".");
document.documentElement.dataset.ready = "yes";
