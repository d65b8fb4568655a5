/* Levels of a regression: the fan with its slider, calibration and residuals. */

const MAX_DOTS = 1200;

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

function startTau() {
  const levels = report.levels;
  if (!levels.length) return 0.5;
  return levels.reduce((best, level) => (Math.abs(level - 0.5) < Math.abs(best - 0.5) ? level : best));
}

/* Places along curves where a higher level lies below a lower one: of what is drawn. */
function crossingsOf(curves) {
  let found = 0;
  for (let k = 0; k < curves[0].length; k += 1) {
    if (curves.some((curve, l) => l && curve[k] < curves[l - 1][k])) found += 1;
  }
  return found;
}

/* The levels τ and 1 − τ; the outer ones that were fitted where these are not there, or are one. */
function middlePart(tau) {
  const low = Math.min(tau, 1 - tau), high = Math.max(tau, 1 - tau), last = report.levels.at(-1);
  return low < report.levels[0] - 1e-9 || high > last + 1e-9 || high - low < 1e-9 ? [report.levels[0], last] : [low, high];
}

function bandClass(middle) {
  return "band" + Math.max(1, Math.min(4, Math.round(1 + 3 * (1 - 2 * Math.abs(middle - 0.5)))));
}

/* Some of many levels, the outer ones among them, for a list that is read. */
function fewLevels(most = 7) {
  const last = report.levels.length - 1;
  if (last < most) return report.levels.map((_, l) => l);
  return Array.from({ length: most }, (_, k) => Math.round(k * last / (most - 1)));
}

// ---------- charts ----------

/* Of many rows in order as many as a width can show apart, the first and the last among them. */
function thinned(fan, width) {
  const most = Math.max(2, Math.floor(width / 4)), last = fan.grid.length - 1;
  if (fan.type !== "order" || last < most) return fan;
  const kept = Array.from({ length: most }, (_, k) => Math.round(k * last / (most - 1)));
  return { ...fan, grid: kept.map((k) => fan.grid[k]), curves: fan.curves.map((curve) => kept.map((k) => curve[k])) };
}

function drawFan(whole_, width) {
  const fan = thinned(whole_, width);
  const y = widened(robust(report.rows.y.concat(...fan.curves)));
  const category = fan.type === "category", levels = report.levels;
  const places = category ? fan.grid.map((_, k) => k) : fan.grid;
  const x = category ? [-0.5, fan.grid.length - 0.5] : fan.type === "order" ? [Math.min(1, fan.grid.length), fan.x.length] : widened(range(places), 0.02);
  if (x[0] === x[1]) x[1] += 1;
  const names = levels.map((level) => number(level, 3));
  const place = frame({
    width, x, y, xLabel: fan.name, yLabel: report.target, height: Math.round(Math.min(460, Math.max(300, 0.62 * width))),
    title: `${report.target} against ${fan.name}, with the levels of the model`,
    right: names.length ? Math.ceil(Math.max(...names.map(textWidth))) + 10 : 14,
    ...(category ? { names: fan.grid.map(String) } : {}),
    ...(fan.type === "date" ? { xScale: dateScale } : {}),
  });
  const { X, Y, under, over, inY } = place;
  const runs = category ? places.map((k) => [[k - 0.32, k], [k + 0.32, k]]) : [places.map((p, k) => [p, k])];
  for (let l = 0; l + 1 < fan.curves.length; l += 1) {
    for (const run of runs) {
      const low = run.map(([p, k]) => [X(p), Y(inY(fan.curves[l][k]))]);
      const high = run.map(([p, k]) => [X(p), Y(inY(fan.curves[l + 1][k]))]);
      under.append(svg("path", { class: bandClass(0.5 * (levels[l] + levels[l + 1])), d: path(low.concat(high.reverse())) + "Z" }));
    }
  }
  const dots = [];
  for (const k of dotRows(report.rows.y.length)) {
    if (fan.x[k] === null || fan.x[k] < x[0] || fan.x[k] > x[1]) continue;
    const jitter = category ? 0.5 * (((k * 0.618034) % 1) - 0.5) : 0;
    const dot = svg("circle", { class: "dot", r: width < 500 ? 2 : 2.4, cx: X(fan.x[k] + jitter).toFixed(1), cy: Y(inY(report.rows.y[k])).toFixed(1) });
    dots.push([dot, k]);
    under.append(dot);
  }
  fan.curves.forEach((curve, l) => {
    const middle = !levels.length || Math.abs(levels[l] - 0.5) < 1e-9;
    for (const run of runs) {
      over.append(svg("path", { class: middle ? "level middle" : "level", d: path(run.map(([p, k]) => [X(p), Y(inY(curve[k]))])) }));
    }
  });
  endLabels(place, levels.map((_, l) => ({ at: Y(inY(fan.curves[l].at(-1))), text: names[l] })));
  const chosen = svg("path", { class: "chosen" });
  over.append(chosen);
  const shownValue = within(y[1] - y[0]), place_ = within(x[1] - x[0]);
  const where = (k) => {
    if (fan.type === "order") return `row ${whole(fan.grid[k])} of ${whole(fan.x.length)} by prediction`;
    const value = category ? String(fan.grid[k]) : fan.type === "date" ? day(fan.grid[k]) : place_(fan.grid[k]);
    return `${fan.name}: ${value}`;
  };
  let curve = fan.curves[0], level = startTau();
  return {
    frame: place, byColumn: true,
    stops: () => places.map((p, k) => ({
      x: X(p), y: Y(inY(curve[k])),
      lines: [where(k), ...(levels.length ? fewLevels().map((l) => `level ${names[l]}: ${shownValue(fan.curves[l][k])}`) : [`predicted: ${shownValue(curve[k])}`]),
        ...(levels.length > 1 && !levels.includes(level) ? [`chosen ${number(level, 3)}: ${shownValue(curve[k])}`] : [])],
    })),
    update: ({ tau, shown }) => {
      level = tau;
      if (levels.length) {
        curve = mixed(fan.curves, between(tau));
        chosen.setAttribute("d", runs.map((run) => path(run.map(([p, k]) => [X(p), Y(inY(curve[k]))]))).join(""));
      }
      for (const [dot, k] of dots) dot.classList.toggle("above", report.rows.y[k] > shown.f[k]);
    },
  };
}

function chanceBand(tau) {
  const half = 1.96 * Math.sqrt(tau * (1 - tau) / report.data.rows);
  return [Math.max(tau - half, 0), Math.min(tau + half, 1)];
}

function drawCalibration(width) {
  const rows = report.calibration, quantile = report.kind === "quantile";
  const place = frame({
    x: [0, 1], y: [0, 1], width, height: Math.min(Math.max(280, 0.8 * width), 420), xLabel: "level τ", title: "What the levels promise against what is observed",
    yLabel: quantile ? "observed: share of targets at or below" : "observed: share of distances below",
  });
  const { X, Y, under, over } = place;
  if (quantile) {
    const grid = Array.from({ length: 61 }, (_, k) => k / 60);
    const low = grid.map((t) => [X(t), Y(chanceBand(t)[0])]), high = grid.map((t) => [X(t), Y(chanceBand(t)[1])]);
    under.append(svg("path", { class: "chance", d: path(low.concat(high.reverse())) + "Z" }));
  }
  under.append(svg("line", { class: "ideal", x1: X(0), y1: Y(0), x2: X(1), y2: Y(1) }));
  over.append(svg("path", { class: "level", d: path(rows.map((r) => [X(r.tau), Y(r.observed)])) }));
  for (const r of rows) over.append(svg("circle", { class: "bar", r: 4.5, cx: X(r.tau), cy: Y(r.observed) }));
  const now = svg("circle", { class: "knob", r: 7 });
  over.append(now);
  return {
    frame: place,
    stops: () => rows.map((r) => ({
      x: X(r.tau), y: Y(r.observed),
      lines: [`level ${number(r.tau, 3)}`, `observed: ${percent(r.observed)}`, `should be: ${percent(r.tau)}`,
        ...(quantile ? [`by chance: ${chanceBand(r.tau).map((share) => percent(share)).join(" to ")}`] : [])],
    })),
    update: ({ tau, shown }) => {
      now.setAttribute("cx", X(tau));
      now.setAttribute("cy", Y(quantile ? shown.share : shown.moment));
    },
  };
}

/* The range of all residuals, the same at every level so that nothing jumps when the slider moves. */
function residualRange() {
  const all = [];
  for (const curve of report.rows.levels) report.rows.y.forEach((y, k) => all.push(y - curve[k]));
  const [low, high] = widened(robust(all), 0);
  return [Math.min(low, 0), Math.max(high, 0)];
}

function drawResiduals(width) {
  const limit = residualRange(), x = widened(robust(report.rows.levels.flat()));
  const place = frame({
    x, y: widened(limit), width, height: 290, xLabel: "predicted", yLabel: "target − predicted",
    title: "How far targets lie from their predictions, against the predictions",
  });
  const { X, Y, under, over, inX, inY } = place;
  under.append(svg("line", { class: "ideal", x1: X(x[0]), x2: X(x[1]), y1: Y(0), y2: Y(0) }));
  const dots = dotRows(report.rows.y.length).map((k) => { const dot = svg("circle", { class: "dot", r: 2.2 }); over.append(dot); return [dot, k]; });
  const shownX = within(x[1] - x[0]), shownY = within(limit[1] - limit[0]);
  let f = report.rows.levels[0];
  return {
    frame: place,
    stops: () => dots.map(([, k]) => ({
      x: X(inX(f[k])), y: Y(inY(report.rows.y[k] - f[k])),
      lines: [`target: ${shownX(report.rows.y[k])}`, `predicted: ${shownX(f[k])}`, `difference: ${shownY(report.rows.y[k] - f[k])}`],
    })),
    update: ({ shown }) => {
      f = shown.f;
      for (const [dot, k] of dots) {
        const residual = report.rows.y[k] - f[k];
        dot.setAttribute("cx", X(inX(f[k])).toFixed(1));
        dot.setAttribute("cy", Y(inY(residual)).toFixed(1));
        dot.classList.toggle("above", residual > 0);
      }
    },
  };
}

function drawCounts(width) {
  const limit = residualRange(), bins = width < 420 ? 20 : 30, step = (limit[1] - limit[0]) / bins;
  const edges = Array.from({ length: bins + 1 }, (_, k) => limit[0] + k * step);
  const count = (f) => {
    const counts = new Array(bins).fill(0);
    report.rows.y.forEach((y, k) => {
      const at = Math.floor((y - f[k] - limit[0]) / step);
      if (at >= 0 && at < bins) counts[at] += 1;
    });
    return counts;
  };
  const highest = Math.max(1, ...report.rows.levels.map((f) => Math.max(...count(f))));
  const place = frame({
    x: limit, y: [0, highest * 1.08], width, height: 210, xLabel: "target − predicted", yLabel: "rows",
    title: "How many rows lie how far from their prediction", yScale: countScale,
  });
  const { X, Y } = place;
  const boxes = edges.slice(0, bins).map((edge, k) => {
    const box = svg("rect", { class: edge >= -0.5 * step ? "bar other" : "bar", x: X(edge) + 0.5, width: Math.max(X(edges[k + 1]) - X(edge) - 1, 0.5) });
    place.under.append(box);
    return box;
  });
  place.over.append(svg("line", { class: "now", x1: X(0), x2: X(0), y1: Y(0), y2: place.top }));
  let counts = new Array(bins).fill(0);
  const shownAt = within(limit[1] - limit[0]);
  return {
    frame: place, byColumn: true,
    stops: () => counts.map((rows, k) => ({
      x: X(edges[k] + 0.5 * step), y: Y(rows),
      lines: [`${shownAt(edges[k])} to ${shownAt(edges[k + 1])}`, rows === 1 ? "1 row" : `${whole(rows)} rows`],
    })),
    update: ({ shown }) => {
      counts = count(shown.f);
      counts.forEach((rows, k) => {
        boxes[k].setAttribute("y", Y(Math.min(rows, place.y[1])));
        boxes[k].setAttribute("height", Math.max(Y(0) - Y(Math.min(rows, place.y[1])), 0));
      });
    },
  };
}

/* Counts have no fractions. */
function countScale(limits, marks) {
  return scale(limits, Math.max(1, Math.min(marks, Math.floor(limits[1]))));
}

// ---------- the page ----------

function regressionPage() {
  const levels = report.levels, many = levels.length > 1, { rows, data } = report;
  const quantile = report.kind === "quantile";
  const slider = el("input", { type: "range", id: "tau", min: levels[0] ?? 0.5, max: levels.at(-1) ?? 0.5, step: 0.005, "aria-describedby": "tau-words" });
  slider.value = startTau();
  const select = el("select", { id: "feature" }, ...report.fans.map((fan, k) => el("option", { value: k }, fan.name)));
  // with several features a cut holds the others still; the rows in order are as they are
  select.value = report.fans.length > 1 && data.features === 1 ? "1" : "0";
  const fanNow = () => report.fans[Number(select.value)];
  const cut = () => fanNow().type !== "order" && data.features > 1;

  const shareWords = quantile ? "of the targets lie at or below the line" : "of all distances from the line lie below it";
  const numbers = [];
  if (levels.length) numbers.push(["share", quantile ? "below the line" : "distance below", shareWords]);
  numbers.push(["above", "above the line", "rows have a target above their prediction"]);
  numbers.push(["loss", "mean loss", ""]);
  if (many && quantile) numbers.push(["inside", "in between", "of the targets lie between two levels"]);
  if (report.crossings !== null) numbers.push(["crossings", "levels that cross", ""]);
  const words = el("p", { id: "tau-words", class: "quiet" });
  const caption = el("figcaption");
  const fan = chart((width) => drawFan(fanNow(), width));
  const moving = [fan];
  const fanSection = section(levels.length ? "The levels" : "The predictions", el("p", {}, report.meaning));
  if (many) {
    fanSection.append(el("div", { class: "controls sticky" },
      el("label", { for: "tau" }, "level τ", slider), el("output", { id: "tau-value", for: "tau" })));
  }
  fanSection.append(figures(numbers));
  if (many) fanSection.append(words);
  fanSection.append(
    el("div", { class: "controls" }, el("label", { for: "feature" }, "drawn against", select)),
    el("figure", { id: "fan" }, fan.holder, caption),
    levels.length
      ? legend(["var(--band3)", "between fitted levels, darker towards the middle"], ["var(--mark)", "the chosen level, and the rows above it"])
      : legend(["var(--hue)", "prediction"], ["var(--mark)", "rows above their prediction"]));
  if (rows.sampled) {
    fanSection.append(el("p", { class: "quiet" }, `The page holds ${whole(rows.y.length)} of the ${whole(data.rows)} rows, drawn at random: numbers that move with the slider are of these, the calibration is of all.`));
  }
  main.append(fanSection);

  const pair = el("div", { class: "pair" });
  if (report.calibration.length) {
    const calibration = chart(drawCalibration);
    moving.push(calibration);
    pair.append(section("Does it keep its promises?", figure(calibration, quantile
      ? "Each dot is a level: across what it promises, upwards what was observed. Dots on the dashed line keep their promise; the band is as far as chance alone moves them, 19 times in 20."
      : "Each dot is an expectile. Of all distances between targets and an expectile a share τ lies below it, so dots should lie on the dashed line."),
      table("Promised and observed", ["level", "observed", "mean loss", ...(quantile ? [] : ["targets at or below"])],
        report.scores.map((s) => [number(s.tau), percent(s.observed), number(s.loss), ...(quantile ? [] : [percent(s.coverage)])]))));
  }
  const residuals = chart(drawResiduals), counts = chart(drawCounts);
  moving.push(residuals, counts);
  pair.append(section("How far off?", figure(residuals, "Each dot is a row; those above the dashed line have a target above the prediction" + (levels.length ? " at the chosen level." : ".")),
    figure(counts, "The same differences, counted.")));
  main.append(pair);

  const describe = () => {
    caption.textContent = cut()
      ? "The curves are a cut through the model: all other features are held at their median or most frequent value. Dots are the rows as they are, coloured by their own prediction, so they need not lie about the curves."
      : fanNow().type === "order" ? "The rows from the lowest prediction to the highest, each with its own levels; dots are the targets." : "Dots are the rows.";
    if (report.crossings === null) return;
    const drawn = cut() || data.features === 1 && fanNow().type !== "order";
    const found = drawn ? crossingsOf(fanNow().curves) : report.crossings, of = drawn ? fanNow().grid.length : data.rows;
    set("crossings", found ? `${whole(found)} of ${whole(of)}` : "none");
    set("crossings-words", (drawn ? "places along the curves below" : "rows") + " where a higher level lies below a lower one");
  };
  const lossWords = (tau) => {
    if (quantile) return `is the price of being off: a unit above the line costs ${number(tau, 3)}, a unit below ${number(1 - tau, 3)}; lower is better`;
    if (levels.length) return `is the price of being off: squared distances above the line count ${number(tau, 3)}, below ${number(1 - tau, 3)}; lower is better`;
    return `is the average ${report.squared ? "squared error" : "error"}${report.epsilon ? ` beyond ${number(report.epsilon)}, below which errors are forgiven` : ""}; lower is better`;
  };
  const update = () => {
    const tau = many ? Number(slider.value) : startTau();
    const shown = levelFigures(tau), at = between(tau);
    for (const each of moving) each.update({ tau, shown });
    if (many) {
      set("tau-value", "τ = " + number(tau, 3));
      slider.setAttribute("aria-valuetext", "level " + number(tau, 3));
      words.textContent = at.low === at.high
        ? `Level ${number(tau, 3)} was fitted.`
        : `Level ${number(tau, 3)} lies between the fitted levels ${number(levels[at.low])} and ${number(levels[at.high])}; it is drawn on the line between them.`;
    }
    if (levels.length) {
      set("share", percent(quantile ? shown.share : shown.moment));
      set("share-words", `${shareWords}; it should be ${percent(tau)}`);
    }
    set("above", whole(shown.n - shown.below));
    set("loss", number(shown.loss));
    set("loss-words", lossWords(tau));
    if (many && quantile) {
      const [low, high] = middlePart(tau);
      const a = mixed(rows.levels, between(low)), b = mixed(rows.levels, between(high));
      const count = rows.y.filter((y, k) => a[k] < y && y <= b[k]).length;
      set("inside", percent(count / rows.y.length));
      set("inside-words", `of the targets lie between levels ${number(low, 3)} and ${number(high, 3)}; it should be ${percent(high - low)}`);
    }
  };
  slider.addEventListener("input", update);
  select.addEventListener("change", () => { fan.render(); describe(); update(); });
  describe();
  update();
}
