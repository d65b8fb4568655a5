"use strict";

/* Numbers as people read them, and scales whose labels fit. No library, no network. */

const NONE = "–";
const UNITS = { 6: "in millions", 9: "in billions", 12: "in trillions" };
const DAY = 86400000;

function grouped(value, least, most) {
  return new Intl.NumberFormat("en-US", { minimumFractionDigits: least, maximumFractionDigits: most })
    .format(value).replace("-", "−").replace(/^−(0(\.0*)?)$/, "$1");
}

function superscript(power) {
  const signs = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  return [...String(power)].map((sign) => signs[sign]).join("");
}

/* Thousands separated, at least so many digits that count, powers of ten for the tiny and the huge. */
function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e12 || size < 1e-4) {
    const power = Math.floor(Math.log10(Number(size.toPrecision(digits))));
    return `${grouped(value / 10 ** power, 0, digits - 1)} × 10${superscript(power)}`;
  }
  return grouped(value, 0, Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
}

function whole(value) { return grouped(value, 0, 0); }

function percent(value, digits = 1) {
  return value === null || !Number.isFinite(value) ? NONE : grouped(100 * value, digits, digits) + " %";
}

/* Values that lie within a spread of each other, with the digits that tell them apart. */
function within(spread) {
  if (!(spread > 0)) return (value) => number(value, 6);
  const decimals = Math.ceil(3 - Math.log10(spread));
  return (value) => {
    if (value === null || !Number.isFinite(value)) return NONE;
    const size = Math.abs(value);
    if (decimals > 12 || size >= 1e12) return number(value, Math.max(4, Math.min(15, Math.ceil(Math.log10((size || spread) / spread)) + 4)));
    return grouped(value, 0, Math.min(Math.max(decimals, 0), 12));
  };
}

function day(milliseconds) { return new Date(milliseconds).toISOString().slice(0, 10); }

// ---------- ranges ----------

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

/* With a margin; a range without width, or one lost in rounding, gets one. */
function widened([low, high], share = 0.04) {
  const size = Math.max(Math.abs(low), Math.abs(high));
  const margin = high - low > 1e-12 * size ? share * (high - low) : 0.1 * size || 1;
  return [low - margin, high + margin];
}

/* Values that would stretch a scale for the sake of a few points are left to the edges. */
function robust(values) {
  const sorted = values.filter((v) => v !== null && Number.isFinite(v)).sort((a, b) => a - b);
  if (sorted.length < 20) return range(sorted);
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const spread = at(0.995) - at(0.005);
  return [Math.max(sorted[0], at(0.005) - 0.3 * spread), Math.min(sorted[sorted.length - 1], at(0.995) + 0.3 * spread)];
}

// ---------- scales ----------

/* Round values in a range, about as many as asked for, each with its label; and what to add to the
   axis' name: a unit, or what is taken off where the labels would differ in their last digits only. */
function scale([low, high], count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * (1 - 1e-9)) || 10 * power;
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) values.push(k * step);
  const top = Math.max(...values.map(Math.abs), step);
  const shift = top / step > 2e4 ? values[Math.floor(values.length / 2)] : 0;
  const rest = Math.max(...values.map((v) => Math.abs(v - shift)), step);
  const exponent = Math.floor(Math.log10(rest) + 1e-9);
  const unit = exponent >= 6 || exponent <= -4 ? 3 * Math.floor(exponent / 3) : 0;
  const decimals = Math.min(Math.max(0, Math.ceil(unit - Math.log10(step) - 1e-9)), 12);
  const notes = [];
  if (shift) notes.push(`${shift > 0 ? "minus" : "plus"} ${number(Math.abs(shift), 15)}`);
  if (unit) notes.push(UNITS[unit] || `in 10${superscript(unit)}`);
  return {
    note: notes.join(", "),
    marks: values.map((value) => ({ value, text: grouped((value - shift) / 10 ** unit, decimals, decimals) })),
  };
}

/* Dates evenly apart, to the day. */
function dateScale([low, high], count) {
  const marks = [];
  for (let k = 0; k <= count; k += 1) {
    const value = Math.round((low + (k + 0.5) * (high - low) / (count + 1)) / DAY) * DAY;
    marks.push({ value, text: day(value) });
  }
  return { note: "", marks: marks.filter((mark, k) => !k || mark.value > marks[k - 1].value) };
}
