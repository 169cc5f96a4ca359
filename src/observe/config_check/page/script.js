// Fills the page of a check. Texts of the two sides are only ever set as text.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const kShown = 2000;  // rows of a table: a browser does not lay out more with ease
const kLevels = ["error", "warning", "pass"];
const kColours = {error: "var(--bad)", warning: "var(--second)"};

function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.textContent = text === undefined ? "" : String(text);
  return e;
}

const findings = data.checks.flatMap((check) => check.findings.map((f) => ({check: check.name, ...f})));
findings.sort((x, y) => kLevels.indexOf(x.level) - kLevels.indexOf(y.level));
// A name breaks behind its dots and lines, and not within a word.
function broken(name) {
  const cell = element("td", "mono name");
  for (const part of name.split(/(?<=[./_-])/)) cell.append(part, document.createElement("wbr"));
  return cell;
}

const named = (f) => (f.a_name === f.b_name || !f.b_name ? f.a_name : f.a_name ? `${f.a_name} / ${f.b_name}` : f.b_name);

function show() {
  const word = byId("filter").value.toLowerCase(), all = byId("which").value === "";
  const shown = findings.filter((f) => (all || f.level !== "pass") && named(f).toLowerCase().includes(word));
  byId("unshown").textContent = shown.length > kShown ?
    `the first ${kShown} of ${shown.length}: the filter finds the others` : "";
  const head = element("tr", "head");
  for (const name of ["", "of", "name", "A", "B", "what to do"]) head.append(element("th", "", name));
  byId("findings").replaceChildren(head, ...shown.slice(0, kShown).map((f) => {
    const line = document.createElement("tr"), level = element("td", "", f.level);
    if (kColours[f.level]) level.style.color = kColours[f.level];
    const a = element("td", "mono", f.a_value), b = element("td", "mono", f.b_value);
    a.dataset.label = "A", b.dataset.label = "B";  // said where a row is a block, on narrow screens
    line.append(level, element("td", "", f.check), broken(named(f)), a, b,
                element("td", "advice", f.advice));
    return line;
  }));
}

const count = (level) => findings.filter((f) => f.level === level).length;
const alike = findings.filter((f) => f.level === "pass" && f.a_name && f.b_name).length;
const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
byId("verdict").textContent = `${data.verdict}: ${counted(count("error"), "error")}, ` +
  `${counted(count("warning"), "warning")}, ${alike} alike`;
byId("sides").textContent = `A ${data.a} · B ${data.b}`;
byId("filter").addEventListener("input", show);
byId("which").addEventListener("change", show);
show();
