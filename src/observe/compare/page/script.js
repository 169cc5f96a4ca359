// Fills the page of a comparison. Texts of a dump are only ever set as text.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const kShown = 2000;  // rows of a table: a browser does not lay out more with ease

function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.textContent = text === undefined ? "" : String(text);
  return e;
}

const isSmall = (x) => x !== 0 && Math.abs(x) < 1e-4;
const short = (x) => (typeof x !== "number" ? String(x)
  : x === 0 ? "0" : isSmall(x) ? x.toExponential(2) : x.toPrecision(3));
const named = (r) => (r.npu ? r.npu.name : r.bench.name);
const figures = (side) => (side ? [side.norm, side.max, side.min, side.mean].map((text) => {
  const n = Number(text);
  return text !== "None" && Number.isFinite(n) ? n.toPrecision(6) : text;
}).join(" / ") : "not there");

// Said before what is in it where a row is a block, on narrow screens.
function labelled(label, cell) {
  cell.dataset.label = label;
  return cell;
}

function row(r) {
  const line = document.createElement("tr");
  const place = element("td", "mono", named(r));
  if (r.diverges) place.style.color = "var(--bad)";
  line.append(place, element("td", "", r.npu ? r.npu.dtype.replace("torch.", "") : ""),
              labelled("off by", element("td", "number", short(r.difference))), labelled("in", element("td", "", r.of)),
              labelled("explained", element("td", "number", short(r.allowed))),
              labelled("NPU", element("td", "number figures", figures(r.npu))),
              labelled("Bench", element("td", "number figures", figures(r.bench))));
  return line;
}

function table(id, rows) {
  const head = element("tr", "head");
  for (const name of ["name", "type", "difference", "of", "explained", "NPU: norm / max / min / mean",
                      "Bench: norm / max / min / mean"])
    head.append(element("th", "", name));
  byId(id).replaceChildren(head, ...rows.slice(0, kShown).map(row));
  if (rows.length > kShown) {
    const more = document.createElement("tr");
    more.append(element("td", "note", `${rows.length - kShown} more: the JSON file has all`));
    byId(id).append(more);
  }
}

function show() {
  const word = byId("filter").value.toLowerCase(), which = byId("which").value;
  table("compared", data.compared.filter(
    (r) => named(r).toLowerCase().includes(word) && (which === "" || r.diverges)));
}

// Where, and how far; behind it from which line it is called, and what else there is to say.
const end = data.sentence.indexOf("; ");
byId("sentence").textContent = end < 0 ? data.sentence : data.sentence.slice(0, end);
byId("remarks").textContent = end < 0 ? "" : data.sentence.slice(end + 2);
byId("remarks").hidden = end < 0;
byId("runs").textContent = `NPU ${data.npu} · Bench ${data.bench}`;
byId("divergence").hidden = !data.divergence || data.divergence.inputs.length === 0;
if (data.divergence) table("inputs", data.divergence.inputs);
byId("filter").addEventListener("input", show);
byId("which").addEventListener("change", show);
show();
// Of rows of texts, each a list.
function listed(section, id, rows) {
  byId(section).hidden = rows.length === 0;
  for (const texts of rows.slice(0, kShown)) {
    const line = document.createElement("tr");
    for (const text of texts) line.append(element("td", "mono", text));
    byId(id).append(line);
  }
}
listed("unread", "unreadable", data.unreadable.map((u) => [u.name, u.file, u.why]));
listed("matched", "renamed", data.renamed.map((r) => [r.npu, r.bench, `by ${r.by}`]));
byId("alone").hidden = data.only_npu.length + data.only_bench.length === 0;
for (const [run, names] of [["NPU", data.only_npu], ["Bench", data.only_bench]])
  for (const name of names.slice(0, kShown)) {
    const line = document.createElement("tr");
    line.append(element("td", "", run), element("td", "mono", name));
    byId("only").append(line);
  }
