/* Decisions of a classifier: a slider over its threshold or level, costs, rates and probabilities. */

function classPage() {
  const axis = report.axis_values, whole_ = report.kind === "path";
  const [negative, positive] = report.classes;
  const name = whole_ ? "level τ" : "threshold";
  const n = report.positives + report.negatives;
  const rate = (a, b) => (b > 0 ? a / b : NaN);
  const shownAxis = within(axis.at(-1) - axis[0]);
  const slider = el("input", { type: "range", id: "tau", min: 0, max: axis.length - 1, step: 1, "aria-describedby": "tau-words" });
  slider.value = report.start;
  const cost = (id, value) => {
    const field = el("input", { type: "number", id, min: "0", step: "any", inputmode: "decimal", "aria-describedby": "cost-words" });
    field.value = String(Number(value.toPrecision(6)));
    return field;
  };
  const miss = cost("cost-miss", report.costs[0]), alarm = cost("cost-alarm", report.costs[1]);
  const costs = report.costs.slice(); // the last ones that made sense
  const best = el("button", { type: "button", id: "best" }, `go to the cheapest ${name}`);
  const warning = el("p", { id: "cost-words", class: "warning", role: "alert" });
  const words = el("p", { id: "tau-words", class: "quiet" });
  const cell = (id, kind, text) => el("td", { class: kind }, el("output", { id }, NONE), el("small", {}, text));
  const matrix = el("table", { class: "confusion" },
    el("caption", {}, "Decisions and what was the case, in rows"),
    el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, `decided “${positive}”`), el("th", { scope: "col" }, `decided “${negative}”`))),
    el("tbody", {},
      el("tr", {}, el("th", { scope: "row" }, `is “${positive}”`), cell("tp", "right", "correct: found"), cell("fn", "wrong", "wrong: missed")),
      el("tr", {}, el("th", { scope: "row" }, `is “${negative}”`), cell("fp", "wrong", "wrong: false alarms"), cell("tn", "right", "correct: no alarm"))));
  const numbers = [
    ["cost", "cost of the errors", "missed rows and false alarms, each times its cost"],
    ["accuracy", "accuracy", "of all decisions are correct"],
    ["recall", "found", `of the rows that are “${positive}” are found`],
    ["precision", "right alarms", `of the decisions for “${positive}” are correct`],
    ["alarm-rate", "false alarms", `of the rows that are “${negative}” are decided “${positive}”`],
    ["auc", "AUC", `is the chance that a row that is “${positive}” ranks above one that is “${negative}”: 0.5 is guessing, 1 is perfect. The slider does not move it.`],
    ["threshold", "score to exceed", `A row is decided “${positive}” where its score is above this.`]];
  main.append(section("Decisions", el("p", {}, report.meaning),
    el("div", { class: "controls sticky" }, el("label", { for: "tau" }, name, slider), el("output", { id: "tau-value", for: "tau" })),
    el("div", { class: "controls" },
      el("label", { for: "cost-miss" }, `cost of a missed “${positive}”`, miss),
      el("label", { for: "cost-alarm" }, "cost of a false alarm", alarm), best),
    warning, words, figures(numbers), scrolling(matrix, "Decisions and what was the case")));
  set("auc", report.auc === null ? NONE : number(report.auc, 4));
  if (report.auc === null) set("auc-words", "needs rows of both classes, and these are of one");

  const costAt = (k) => costs[0] * report.false_negative[k] + costs[1] * report.false_positive[k];
  const theory = () => costs[1] / (costs[0] + costs[1]);
  const cheapest = () => {
    let at = 0;
    for (let k = 1; k < axis.length; k += 1) if (costAt(k) < costAt(at) - 1e-12) at = k;
    return at;
  };
  const points = axis.map((_, k) => [rate(report.false_positive[k], report.negatives), rate(report.true_positive[k], report.positives)]);
  const order = points.map((_, k) => k).sort((a, b) => points[a][0] - points[b][0] || points[a][1] - points[b][1]);

  const drawRates = (width) => {
    const place = frame({ x: [0, 1], y: [0, 1], width, height: Math.min(Math.max(280, 0.8 * width), 400), xLabel: `false alarms among “${negative}”`, yLabel: `found among “${positive}”`, title: "Found rows against false alarms" });
    const { X, Y } = place, at = (value) => (Number.isFinite(value) ? value : 0);
    place.under.append(svg("line", { class: "ideal", x1: X(0), y1: Y(0), x2: X(1), y2: Y(1) }));
    place.over.append(svg("path", { class: "level middle", d: path([[0, 0], ...order.map((k) => points[k].map(at)), [1, 1]].map(([a, b]) => [X(a), Y(b)])) }));
    const knob = svg("circle", { class: "knob", r: 7 });
    place.over.append(knob);
    return {
      frame: place,
      stops: () => order.map((k) => ({
        x: X(at(points[k][0])), y: Y(at(points[k][1])),
        lines: [`${name} ${shownAxis(axis[k])}`, `found: ${percent(points[k][1])}`, `false alarms: ${percent(points[k][0])}`],
      })),
      update: (k) => { knob.setAttribute("cx", X(at(points[k][0]))); knob.setAttribute("cy", Y(at(points[k][1]))); },
    };
  };
  const drawCost = (width) => {
    const values = axis.map((_, k) => costAt(k));
    const place = frame({ x: widened(range(axis), 0.01), y: [0, Math.max(...values) * 1.06 || 1], width, height: Math.min(Math.max(280, 0.8 * width), 400), xLabel: name, yLabel: "cost of the errors", title: "Cost of the errors along the " + name });
    const { X, Y } = place;
    place.over.append(svg("path", { class: "level middle", d: path(axis.map((v, k) => [X(v), Y(values[k])])) }));
    if (whole_) place.under.append(svg("line", { class: "ideal", x1: X(theory()), x2: X(theory()), y1: Y(0), y2: place.top }));
    const now = svg("line", { class: "now", y1: Y(0), y2: place.top });
    place.over.append(now);
    return {
      frame: place, byColumn: true,
      stops: () => axis.map((v, k) => ({ x: X(v), y: Y(values[k]), lines: [`${name} ${shownAxis(v)}`, `cost: ${number(values[k], 6)}`, `missed: ${whole(report.false_negative[k])}`, `false alarms: ${whole(report.false_positive[k])}`] })),
      update: (k) => { now.setAttribute("x1", X(axis[k])); now.setAttribute("x2", X(axis[k])); },
    };
  };
  const drawApart = (width) => {
    const h = report.histogram, shownEdge = within(h.edges.at(-1) - h.edges[0]);
    const place = frame({
      x: range(h.edges), y: [0, Math.max(...h.positive, ...h.negative, 1) * 1.06], width, height: 260, yLabel: "rows", yScale: countScale,
      xLabel: whole_ ? `probability of “${positive}”` : "decision value", title: "How the two classes are told apart",
    });
    const { X, Y, inX } = place;
    for (const [key, kind] of [["negative", "bar"], ["positive", "bar other"]]) {
      h[key].forEach((count, k) => {
        const from = X(h.edges[k]), room = X(h.edges[k + 1]) - from;
        place.under.append(svg("rect", { class: kind, x: from + (key === "positive" ? room / 2 : 0), width: Math.max(room / 2 - 0.5, 0.5), y: Y(count), height: Y(0) - Y(count) }));
      });
    }
    const now = svg("line", { class: "now", y1: Y(0), y2: place.top });
    place.over.append(now);
    return {
      frame: place, byColumn: true,
      stops: () => h.positive.map((count, k) => ({
        x: X((h.edges[k] + h.edges[k + 1]) / 2), y: Y(Math.max(count, h.negative[k])),
        lines: [`${shownEdge(h.edges[k])} to ${shownEdge(h.edges[k + 1])}`, `“${positive}”: ${whole(count)} rows`, `“${negative}”: ${whole(h.negative[k])} rows`],
      })),
      update: (k) => { const at = X(inX(axis[k])); now.setAttribute("x1", at); now.setAttribute("x2", at); },
    };
  };
  const rates = chart(drawRates), priced = chart(drawCost), apart = chart(drawApart);
  main.append(el("div", { class: "pair" },
    section("Found against false alarms", figure(rates, "Each point of the curve is one place of the slider. Up and left is better; the dashed line is guessing.")),
    section("What the errors cost", figure(priced, whole_ ? "At the two costs above. The dashed line is the level that is best in theory; the solid one is the slider." : "At the two costs above; the line is the slider."))));
  main.append(section(whole_ ? "Probabilities" : "Decision values", figure(apart, whole_
    ? `The probability of “${positive}” that the model gives each row: the share of all levels at which it says “${positive}”. The line is the level τ.`
    : `The score of each row. Right of the line is decided “${positive}”.`), legend(["var(--hue)", `is “${negative}”`], ["var(--mark)", `is “${positive}”`])));

  const update = () => {
    const k = Number(slider.value);
    const tp = report.true_positive[k], fp = report.false_positive[k], fn = report.false_negative[k], tn = report.true_negative[k];
    set("tau-value", (whole_ ? "τ = " : "") + (whole_ ? number(axis[k], 3) : shownAxis(axis[k])));
    slider.setAttribute("aria-valuetext", `${name} ${shownAxis(axis[k])}`);
    set("tp", whole(tp)); set("fp", whole(fp)); set("fn", whole(fn)); set("tn", whole(tn));
    set("threshold", number(report.thresholds[k], 4));
    set("cost", number(costAt(k), 6));
    set("accuracy", percent(rate(tp + tn, n)));
    set("recall", percent(rate(tp, tp + fn)));
    set("precision", percent(rate(tp, tp + fp)));
    set("alarm-rate", percent(rate(fp, fp + tn)));
    for (const each of [rates, priced, apart]) each.update(k);
    const at = cheapest();
    words.textContent = `At these costs theory says “${positive}” from a chance of ${number(theory(), 3)} on${whole_ ? `: τ = ${number(theory(), 3)}` : ""}. `
      + `On these ${whole(n)} rows the cheapest ${name} is ${shownAxis(axis[at])}, with a cost of ${number(costAt(at), 6)}.`;
  };
  /* What is no cost leaves the page as it was, and says so. */
  const read = () => {
    const wrong = [];
    [miss, alarm].forEach((field, k) => {
      const value = field.value.trim() === "" ? NaN : Number(field.value);
      const right = Number.isFinite(value) && value > 0;
      field.setAttribute("aria-invalid", String(!right));
      if (right) costs[k] = value; else wrong.push(field);
    });
    warning.textContent = wrong.length ? `A cost must be a number above 0; the page still shows ${number(costs[0], 6)} for a missed “${positive}” and ${number(costs[1], 6)} for a false alarm.` : "";
    priced.render();
    update();
  };
  slider.addEventListener("input", update);
  for (const field of [miss, alarm]) field.addEventListener("input", read);
  best.addEventListener("click", () => { slider.value = cheapest(); update(); });
  update();
}
