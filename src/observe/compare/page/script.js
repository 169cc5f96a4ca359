// Fills the page of a comparison, or of several steps. Texts of a dump are only ever set as text.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const kShown = 2000;  // rows of a table: a browser does not lay out more with ease

function element(tag, className, ...content) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...content.map((c) => (c instanceof Node ? c : String(c))));
  return e;
}

const isSmall = (x) => x !== 0 && Math.abs(x) < 1e-4;
const short = (x) => (typeof x !== "number" ? String(x)
  : x === 0 ? "0" : isSmall(x) ? x.toExponential(2) : x.toPrecision(3));

// A name breaks behind its dots, and not within a word.
function broken(name) {
  const whole = element("span", "");
  for (const part of name.split(/(?<=[./])/)) whole.append(part, document.createElement("wbr"));
  return whole;
}

// Of float64 all digits: it is compared to the last of them.
const figure = (x, type) => (typeof x !== "number" || Number.isInteger(x) || /float64/i.test(type) ? String(x)
  : isSmall(x) ? x.toExponential(5) : x.toPrecision(6));

const names = (r) => [r.npu, r.bench].filter(Boolean).map((side) => side.name);

// Of both runs, where they are not the same.
function nameCell(r) {
  const [first, second] = names(r), cell = element("td", "mono", broken(first));
  if (second && second !== first) cell.append(element("div", "other", broken(second)));
  return cell;
}

// Each figure stays whole; what a dump does not have is left out.
function figures(label, side) {
  const cell = element("td", "figures");
  cell.dataset.label = label;
  if (!side) cell.append("not there");
  else
    for (const of of ["norm", "max", "min", "mean"])
      if (side[of] !== null)
        cell.append(element("span", "", element("span", "of", of), figure(side[of], side.dtype)));
  return cell;
}

// Said before what is in it where a row is a block, on narrow screens.
function labelled(label, cell) {
  cell.dataset.label = label;
  return cell;
}

function row(r) {
  const type = (side) => (side ? side.dtype.replace("torch.", "") : "");
  const types = [...new Set([type(r.npu), type(r.bench)])].filter(Boolean).join(" / ");
  return element("tr", r.diverges ? "more" : "", nameCell(r), element("td", "", types),
                 labelled("off by", element("td", "number off", short(r.difference))),
                 labelled("in", element("td", "", r.of)),
                 labelled("rounding explains", element("td", "number", short(r.allowed))),
                 figures("NPU", r.npu), figures("Bench", r.bench));
}

const head = (...names) => element("tr", "head", ...names.map((name) => element("th", "", name)));

function table(id, rows) {
  byId(id).replaceChildren(head("name", "type", "off by", "in which figure", "rounding explains", "NPU", "Bench"),
                           ...rows.slice(0, kShown).map(row));
  if (rows.length > kShown)
    byId(id).append(element("tr", "", element("td", "note", `${rows.length - kShown} more: the JSON file has all`)));
}

function show() {
  const word = byId("filter").value.toLowerCase(), which = byId("which").value;
  table("compared", data.compared.filter(
    (r) => names(r).some((name) => name.toLowerCase().includes(word)) && (which === "" || r.diverges)));
}

// Where, and how far; behind it from which line it is called, and what else there is to say.
function sentence() {
  const end = data.sentence.indexOf("; ");
  byId("sentence").textContent = end < 0 ? data.sentence : data.sentence.slice(0, end);
  byId("remarks").textContent = end < 0 ? "" : data.sentence.slice(end + 2);
  byId("remarks").hidden = end < 0;
}

function fill(id, rows, ...columns) {
  byId(id).hidden = rows.length === 0;
  byId(id + "-table").replaceChildren(head(...columns), ...rows);
}

// Of rows of texts, each a list.
function listed(section, id, rows) {
  byId(section).hidden = rows.length === 0;
  for (const texts of rows.slice(0, kShown)) {
    const line = document.createElement("tr");
    for (const text of texts) line.append(element("td", "mono", text));
    byId(id).append(line);
  }
}

function steps() {
  fill("steps", data.steps.map((s) => {
    const link = element("a", "", [s.step, s.rank].filter(Boolean).join(" "));
    link.href = encodeURIComponent(s.files.find((file) => file.endsWith(".html")));
    const text = s.sentence.slice(link.textContent.length + 2);
    return element("tr", "", element("td", "", link), element("td", s.diverges || s.lacks ? "over" : "", text));
  }), "step", "what it says");
  for (const id of ["divergence", "arguments", "loop", "all", "unread", "matched", "alone", "runs"]) byId(id).hidden = true;
}

function comparison() {
  byId("steps").hidden = true;
  const { compared, of, lacks } = data.coverage;
  // Tables have msprobe's words, sentences say which run it is.
  byId("runs").textContent = `NPU, the first run: ${data.npu} · Bench, the second run: ${data.bench} · ` +
    `${compared === of ? compared : `${compared} of ${of}`} tensors compared${lacks ? "; " + lacks : ""}`;
  const where = data.divergence, shown = where && where.record ? where.record : null;
  const inputs = where ? where.inputs.filter((r) => !shown || names(r)[0] !== names(shown)[0]) : [];
  const rows = [...(shown ? [shown] : []), ...inputs.filter((r) => r.diverges), ...inputs.filter((r) => !r.diverges)];
  byId("divergence").hidden = rows.length === 0;
  table("inputs", rows);
  fill("arguments", (where ? where.arguments : []).map((a) => element("tr", "",
    element("td", "", a.run === "npu" ? "NPU" : "Bench"), element("td", "mono", broken(a.call)),
    element("td", "mono", a.argument), element("td", "", a.dtype))), "run", "call", "argument", "type");
  fill("loop", data.loop.map((t) => element("tr", "",
    labelled("place", element("td", "", t.place)), labelled("what", element("td", "", t.text)),
    labelled("off by", element("td", "number", short(t.difference))),
    labelled("rounding explains", element("td", "number", short(t.allowed))))),
       "place", "what", "off by", "rounding explains");
  byId("which").value = data.compared.some((r) => r.diverges) ? "more" : "";
  byId("filter").addEventListener("input", show);
  byId("which").addEventListener("change", show);
  show();
  listed("unread", "unreadable", data.unreadable.map((u) => [u.name, u.file, u.why]));
  listed("matched", "renamed", data.renamed.map((r) => [r.npu, r.bench, `by ${r.by}`]));
  byId("alone").hidden = data.only_npu.length + data.only_bench.length === 0;
  for (const [run, names] of [["NPU", data.only_npu], ["Bench", data.only_bench]])
    for (const name of names.slice(0, kShown))
      byId("only").append(element("tr", "", element("td", "", run), element("td", "mono", broken(name))));
}

sentence();
if (data.steps) steps();
else comparison();
