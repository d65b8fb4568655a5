/* The page: what every model has, and the parts that its kind has. */

const report = JSON.parse(document.getElementById("report-data").textContent);
const main = document.getElementById("main");

function certificateSection() {
  const { solves, certificate } = report;
  const parts = [el("p", {}, certificate)];
  if (!solves.length) return section("The certificate", ...parts);
  const inside = [];
  const traced = solves.filter((solve) => solve.trace.length > 1);
  if (traced.length) {
    const gaps = range(traced.flatMap((solve) => solve.trace.map((t) => Math.log10(t[1]))));
    const y = [Math.floor(gaps[0]), Math.ceil(gaps[1] + 0.01)];
    const longest = Math.max(...traced.flatMap((solve) => solve.trace.map((t) => t[0]))) || 1;
    const powers = (limits, count) => {
      const step = Math.max(1, Math.ceil((limits[1] - limits[0]) / count)), marks = [];
      for (let k = limits[0]; k <= limits[1]; k += step) marks.push({ value: k, text: k > -4 && k <= 0 ? number(10 ** k) : `10${superscript(k)}` });
      return { note: "", marks };
    };
    inside.push(figure(chart((width) => {
      const place = frame({ x: [0, longest], y, width, height: 260, xLabel: "seconds", yLabel: "gap", title: "How the gap to the lower bound closed", yScale: powers });
      const stops = [];
      for (const solve of traced) {
        const points = solve.trace.map((t) => [place.X(t[0]), place.Y(Math.log10(t[1]))]);
        place.over.append(svg("path", { class: solve.tau === null || Math.abs(solve.tau - 0.5) < 1e-9 ? "level middle" : "level", d: path(points) }));
        points.forEach(([px, py], k) => stops.push({ x: px, y: py, lines: [solve.tau === null ? "the fit" : `level ${number(solve.tau)}`, `after ${number(solve.trace[k][0], 3)} s`, `gap: ${number(solve.trace[k][1], 2)}`] }));
      }
      return { frame: place, stops: () => stops };
    }), "The gap, the distance between the objective and its lower bound, at every look during the solve; one line a level."));
  }
  inside.push(table("The solves", ["level", "gap", "objective", "lower bound", "support vectors", "iterations", "seconds", "solver", "ended"],
    solves.map((s) => [s.tau === null ? "all" : number(s.tau), number(s.gap, 2), number(s.primal, 6), number(s.dual, 6),
      s.support === null ? NONE : whole(s.support), whole(s.iterations), number(s.seconds, 3), s.solver, s.status])));
  return section("The certificate", ...parts, folded("How the fit was solved", ...inside));
}

function learnedSection() {
  const { words, shares, features } = report.learned;
  const largest = Math.max(...shares.map(([, share]) => share)) || 1;
  const list = el("ol", { class: "shares", "aria-label": "Learned features" }, ...shares.map(([name, share]) => el("li", {},
    el("span", { title: name }, name), el("b", { "aria-hidden": "true" }, el("i", { style: `width:${(100 * share / largest).toFixed(1)}%` })), el("output", {}, percent(share)))));
  return section("What the model looks at", el("p", {}, words), list,
    shares.length < features ? el("p", { class: "quiet" }, `The ${shares.length} of ${whole(features)} features that count most.`) : null);
}

function parameterSection() {
  const parts = [];
  if (report.chosen.length) {
    const names = Object.keys(report.chosen[0]);
    const taus = report.levels && report.levels.length === report.chosen.length;
    parts.push(table("Chosen by cross-validation", ["level", ...names], report.chosen.map((point, k) => [taus ? number(report.levels[k]) : "all", ...names.map((name) => (typeof point[name] === "number" ? number(point[name]) : String(point[name])))])));
  }
  const pairs = report.parameters.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  parts.push(folded(`All parameters of ${report.parameters[0][1]}`, el("dl", { class: "parameters" }, ...pairs)));
  return section("Parameters", ...parts);
}

function dataSection() {
  const { rows, features, columns, name } = report.data;
  const parts = [el("p", {}, `${whole(rows)} rows, ${whole(features)} ${features === 1 ? "feature" : "features"}${name ? ", from " + name : ""}.`)];
  const ranked = columns.filter((c) => c.type !== "category"), text = columns.filter((c) => c.type === "category");
  if (ranked.length) {
    parts.push(table(text.length ? "Numbers and dates" : "The features", ["column", "least", "first quarter", "median", "third quarter", "largest", "missing"],
      ranked.map((c) => [c.name, ...c.quartiles.map((v) => (c.type === "date" ? day(v) : within(c.quartiles[4] - c.quartiles[0])(v))), whole(c.missing)])));
  }
  if (text.length) {
    parts.push(table("Categories", ["column", "values", "missing"],
      text.map((c) => [c.name, c.values.slice(0, 10).map(([v, k]) => `${v} (${whole(k)})`).join(", ") + (c.distinct > 10 ? " …" : ""), whole(c.missing)])));
  }
  return section("Data", ...parts);
}

const theme = document.getElementById("theme");
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

document.getElementById("subtitle").textContent = `${report.parameters[0][1]} on ${whole(report.data.rows)} rows`
  + (report.data.name ? ` of ${report.data.name}` : "");
main.append(el("p", { id: "fitted", class: `banner ${report.fitted.state}` }, report.fitted.words));
if (report.kind === "class" || report.kind === "path") classPage();
else regressionPage();
if (report.learned) main.append(learnedSection());
main.append(certificateSection(), parameterSection(), dataSection());
const versions = Object.entries(report.versions).map(([name, value]) => `${name} ${value}`).join(", ");
document.getElementById("footer").textContent = `Written ${report.created}` + (versions ? `; the model by ${versions}.` : ".");
for (const each of charts) each.resize();
document.documentElement.dataset.ready = "yes";
