// The parts of the page that are text: header, tiles, precision decisions, skips, recipe.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const run = data.run, curves = data.curves;

const byId = (id) => document.getElementById(id);

// An element with text children only ever set as text: nothing of a run is read as html.
function element(tag, className, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  for (const c of children) e.append(c);
  return e;
}

const finite = (x) => typeof x === "number" && Number.isFinite(x);
const digits = (x, n) => x.toLocaleString("en-US", { maximumFractionDigits: n, minimumFractionDigits: n });
const whole = (x) => Math.round(x).toLocaleString("en-US");

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; ++u; }
  return (u === 0 ? String(n) : digits(n, n < 10 ? 2 : n < 100 ? 1 : 0)) + " " + units[u];
}

function count(n) {
  for (const [size, unit] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]])
    if (n >= size) return digits(n / size, n / size < 100 ? 2 : 0) + unit;
  return String(n);
}

function duration(s) {
  if (s < 1) return digits(s * 1000, s < 0.1 ? 1 : 0) + " ms";
  if (s < 120) return digits(s, 1) + " s";
  const m = Math.floor(s / 60);
  return m < 120 ? `${m} min ${Math.round(s % 60)} s` : `${Math.floor(m / 60)} h ${m % 60} min`;
}

const last = (list) => (list.length ? list[list.length - 1] : null);

function median(list) {
  const sorted = list.filter(finite).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : null;
}

function header() {
  document.title = data.name + " · Aloft";
  byId("title").textContent = data.name;
  const m = run.model || {};
  const model = [m.family, m.layers && `${m.layers} layers`, m.dim && `width ${m.dim}`,
                 m.heads && `${m.heads} heads`, m.context && `context ${m.context}`,
                 m.vocab && `vocabulary ${whole(m.vocab)}`].filter(Boolean).join(", ");
  byId("subtitle").textContent = model;
  byId("status").append(
    element("span", run.finished && !run.error ? "badge" : "badge open",
            run.error ? `stopped: ${run.error.code}` : run.finished ? "finished" : "not finished"),
    element("br"), (run.started || "").replace("T", " ").replace("Z", " UTC"),
    element("br"), run.machine || "");
  if (run.error) byId("status").append(element("pre", "", run.error.text));
  byId("footer").textContent =
    `Aloft ${run.aloft || ""} · seed ${run.seed} · ${run.mode} mode · ${run.threads} threads` +
    (run.signature ? ` · plan ${run.signature}` : "");
}

function tile(label, value, more, bad) {
  const t = element("div", bad ? "tile bad" : "tile", element("div", "label", label));
  const v = element("div", "value");
  v.append(...(Array.isArray(value) ? [value[0], element("small", "", " " + value[1])] : [value]));
  t.append(v, element("div", "more", more || ""));
  byId("tiles").append(t);
}

function tiles() {
  const result = run.result || {};
  const steps = result.steps ?? last(curves.step) ?? 0;
  const planned = run.recipe.train && run.recipe.train.steps;
  const skipped = result.skipped ?? curves.skipped;
  tile("Steps", planned && planned !== steps ? [whole(steps), `of ${whole(planned)}`] : whole(steps),
       skipped ? `${whole(skipped)} skipped: gradients not finite` : "none skipped");
  const loss = last(curves.loss);
  const first = curves.loss.find(finite);
  tile("Training loss", finite(loss) ? digits(loss, 4) : curves.loss.length ? "not finite" : "–",
       finite(first) ? `from ${digits(first, 4)}` : "", curves.loss.length > 0 && !finite(loss));
  const evaluation = last(curves.evaluations);
  const best = curves.evaluations.map((e) => e[1]).filter(finite);
  tile("Validation loss", evaluation && finite(evaluation[1]) ? digits(evaluation[1], 4) : "–",
       best.length ? `best ${digits(Math.min(...best), 4)}` : "no evaluation");
  const rate = result.tokens_per_s || median(curves.tokens_per_s);
  tile("Tokens per second", finite(rate) ? count(Math.round(rate)) : "–",
       result.median_step_s ? `${duration(result.median_step_s)} a step` : "");
  const time = last(curves.time_s);
  tile("Time in steps", finite(time) ? duration(time) : "–",
       finite(run.compile_s) ? `compiled in ${duration(run.compile_s)}` : "");
  if (run.memory && run.memory.peak_bytes)
    tile("Peak memory", bytes(run.memory.peak_bytes), "planned, to the byte");
  else if (finite(result.peak_rss_bytes))
    tile("Peak memory", bytes(result.peak_rss_bytes), "resident, the whole process");
  tile("Parameters", finite(run.parameters) ? count(run.parameters) : "–",
       run.tokens ? `${count(run.tokens.train)} training tokens` : "");
  tile("Precision", (run.policy || "–").split(" ")[0], (run.policy || "").split(" ").slice(1).join(", ").replace("loss_scale=", "loss scale "));
}

function typeTag(name) {
  return element("span", name === "bf16" || name === "f16" ? "type low mono" : "type mono", name);
}

// Decisions that differ in their place alone are one row.
function groupsOfDecisions(list) {
  const groups = new Map();
  for (const d of list) {
    const key = [d.op, d.phase, d.compute, d.accumulate, d.store, d.reason].join("\n");
    if (!groups.has(key)) groups.set(key, { ...d, places: [] });
    groups.get(key).places.push(d.path || "(top)");
  }
  return [...groups.values()];
}

function places(list) {
  if (list.length === 1) return element("code", "", list[0]);
  const d = element("details", "", element("summary", "", `${list.length} places`));
  const inner = element("div", "places mono");
  for (const p of list) inner.append(element("div", "", p));
  d.append(inner);
  return d;
}

function row(...cells) {
  const tr = element("tr");
  for (const c of cells) tr.append(c instanceof HTMLTableCellElement ? c : element("td", "", c));
  return tr;
}

function tableHead(...names) {
  const tr = element("tr");
  for (const n of names) tr.append(element("th", "", n));
  return element("thead", "", tr);
}

function decisions() {
  const all = run.precision_decisions || [];
  byId("decisions-section").hidden = all.length === 0;
  byId("eager-note").hidden = run.mode !== "eager";
  const groups = groupsOfDecisions(all);
  for (const [id, values] of [["decisions-phase", groups.map((g) => g.phase)],
                              ["decisions-type", groups.map((g) => g.compute)]])
    for (const v of [...new Set(values)]) byId(id).append(new Option(v, v));
  const show = () => {
    const words = byId("decisions-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const phase = byId("decisions-phase").value, type = byId("decisions-type").value;
    const shown = groups.filter((g) => {
      const text = [g.op, g.reason, ...g.places].join(" ").toLowerCase();
      return (!phase || g.phase === phase) && (!type || g.compute === type) &&
             words.every((w) => text.includes(w));
    });
    const body = element("tbody");
    for (const g of shown)
      body.append(row(element("code", "", g.op), g.phase, typeTag(g.compute), typeTag(g.accumulate),
                      typeTag(g.store), places(g.places), g.reason));
    byId("decisions").replaceChildren(
      tableHead("op", "phase", "compute", "accumulate", "store", "where", "why"), body);
    byId("decisions-note").textContent =
      `${shown.length} of ${groups.length} kinds, ${all.length} places in all`;
  };
  for (const id of ["decisions-filter", "decisions-phase", "decisions-type"])
    byId(id).addEventListener("input", show);
  show();
}

function skips() {
  byId("skips-section").hidden = curves.skips.length === 0;
  const body = element("tbody");
  for (const [step, culprit] of curves.skips)
    body.append(row(whole(step), element("code", "", culprit || "the loss")));
  byId("skips").replaceChildren(tableHead("step", "parameter"), body);
}

function valueText(v) {
  return typeof v === "string" ? `"${v}"` : JSON.stringify(v);
}

// {a: {b: 1}} as [["a.b", 1]]; lists are values.
function flat(object, prefix) {
  return Object.entries(object).flatMap(([k, v]) =>
    v && typeof v === "object" && !Array.isArray(v) ? flat(v, prefix + k + ".") : [[prefix + k, v]]);
}

function recipe() {
  const origin = run.origin || {};
  for (const section of ["model", "data", "precision", "optimizer", "schedule", "train"]) {
    if (!run.recipe[section]) continue;
    const body = element("tbody");
    for (const [key, value] of flat(run.recipe[section], "")) {
      const from = origin[`${section}.${key}`] || (section === "precision" && origin.precision) || "";
      const tr = row(key, element("code", "", valueText(value)), from.split("/").pop() || "default");
      tr.lastChild.title = from;
      if (from) tr.className = "set";
      body.append(tr);
    }
    byId("recipe").append(
      element("div", "group", element("h3", "", section), element("table", "", body)));
  }
}

function sample() {
  byId("sample-section").hidden = !data.sample;
  byId("sample").textContent = data.sample;
}

header();
tiles();
decisions();
skips();
sample();
recipe();
