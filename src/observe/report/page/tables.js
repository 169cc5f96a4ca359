// The parts of the page that are text: header, tiles, layers, precision decisions, skips, recipe.
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
  if (s < 1) return digits(s * 1000, s < 0.001 ? 3 : s < 0.1 ? 1 : 0) + " ms";
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
  if (run.device && run.device !== "cpu")
    byId("status").append(element("br"), `device ${run.device}` +
      (run.device_is_simulated ? ", simulated: rates and times are the simulation's" : ""));
  byId("error").hidden = !run.error;
  byId("error").textContent = run.error ? run.error.text : "";
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

const percent = (share) => `${digits(100 * share, 2)} %`;

// What an evaluation measured besides the loss, and what of that the loss says as well.
const kFollowsFromLoss = ["perplexity", "bits_per_byte", "rmse", "average_loss", "average_rmse"];
const kMeasures = {
  perplexity: (x) => `perplexity ${Number(x.toPrecision(4))}`,
  bits_per_byte: (x) => `${digits(x, 3)} bits per byte`,
  accuracy: (x) => `accuracy ${percent(x)}`,
  average_loss: (x) => `${digits(x, 4)} of the mean weights`,
  average_accuracy: (x) => `accuracy ${percent(x)} of the mean weights`,
};
const measureText = (name, x) => !finite(x) ? "" :
  kMeasures[name] ? kMeasures[name](x) : `${name} ${digits(x, 4)}`;

function validationTile() {
  const evaluation = last(curves.evaluations);
  if (!evaluation) return tile("Validation loss", "–", "no evaluation");
  const [step, loss, measures] = evaluation;
  const best = curves.evaluations.filter((e) => finite(e[1])).sort((a, b) => a[1] - b[1])[0];
  const more = [finite(loss) ? "" : `at step ${whole(step)}`,
                ...Object.keys(measures).map((name) => measureText(name, measures[name])),
                best && best[0] !== step ? `best ${digits(best[1], 4)} at step ${whole(best[0])}` : ""];
  tile("Validation loss", finite(loss) ? digits(loss, 4) : "not finite", more.filter(Boolean).join("; "),
       !finite(loss));
}

// "loss_scale=dynamic(init=1024.0,growth_interval=10)" as "dynamic loss scale: init 1024, growth interval 10".
const policyText = (words) => words.map((w) => w.replace(/^(\w+)=(\w+)(?:\((.*)\))?$/, (_, name, kind, rest) =>
  `${kind} ${name.replace(/_/g, " ")}` +
  (rest ? ": " + rest.replace(/[_=]/g, " ").replace(/,/g, ", ").replace(/\.0\b/g, "") : ""))).join(", ");

function tiles() {
  const result = run.result || {};
  const steps = result.steps ?? curves.last.step ?? 0;
  const planned = run.recipe.train && run.recipe.train.steps;
  const skipped = result.skipped ?? curves.skipped;
  const unit = run.unit || "tokens";
  tile("Steps", planned && planned !== steps ? [whole(steps), `of ${whole(planned)}`] : whole(steps),
       skipped ? `${whole(skipped)} skipped: gradients not finite` : "none skipped");
  const loss = result.last_loss !== undefined ? result.last_loss : curves.last.loss;
  const first = curves.first_loss;
  tile("Training loss", finite(loss) ? digits(loss, 4) : curves.steps ? "not finite" : "–",
       finite(first) ? `of the last step; from ${digits(first, 4)}` : "", curves.steps > 0 && !finite(loss));
  validationTile();
  const rate = result[`${unit}_per_s`] || median(curves.rate);
  tile(`${unit[0].toUpperCase()}${unit.slice(1)} per second`, finite(rate) ? count(Math.round(rate)) : "–",
       result.median_step_s ? `${duration(result.median_step_s)} a step` : "");
  const time = curves.last.time_s;
  tile("Time in steps", finite(time) ? duration(time) : "–",
       finite(run.compile_s) ? `compiled in ${duration(run.compile_s)}` : "");
  if (run.memory && run.memory.peak_bytes)
    tile("Peak memory", bytes(run.memory.peak_bytes), "planned, to the byte");
  else if (finite(result.peak_rss_bytes))
    tile("Peak memory", bytes(result.peak_rss_bytes), "resident, the whole process");
  tile("Parameters", finite(run.parameters) ? count(run.parameters) : "–",
       run[unit] ? `${count(run[unit].train)} training ${unit}` +
                   (run[unit].learnt < run[unit].train ? `, ${count(run[unit].learnt)} of them learnt` : "") : "");
  if (data.probe) {
    const p = data.probe, number = (key) => (finite(p[key]) ? p[key] : 0), lost = number("dropped");
    tile("Written by the probe", bytes(number("dump_bytes") + number("bytes")),
         [`${whole(number("dumps"))} steps`, number("files") && `${whole(number("files"))} tensors`,
          number("waited_s") >= 0.05 && `training waited ${duration(number("waited_s"))}`,
          lost ? `${whole(lost)} files lost` : "nothing dropped"].filter(Boolean).join(", "), lost > 0);
  }
  tile("Precision", (run.policy || "–").split(" ")[0], policyText((run.policy || "").split(" ").slice(1)));
}

function typeTag(name) {
  return element("span", name === "bf16" || name === "fp16" ? "type low mono" : "type mono", name);
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

// "h.3.attn.c_attn" belongs to "h.*.attn", "wte" to itself: blocks that repeat are one module.
function moduleOf(path) {
  const parts = (path || "").split(".").map((p) => (/^\d+$/.test(p) ? "*" : p));
  const block = parts.lastIndexOf("*");
  return parts.slice(0, block < 0 ? 1 : block + 2).join(".") || "(top)";
}

function decisionRows(groups) {
  const body = element("tbody");
  for (const g of groups)
    body.append(row(element("code", "", g.op), g.phase, typeTag(g.compute), typeTag(g.accumulate),
                    typeTag(g.store), places(g.places), g.reason));
  const table = element("table", "", tableHead("op", "phase", "compute", "accumulate", "store",
                                               "where", "why"), body);
  return element("div", "scroll", table);
}

// What a module computes in, most first: "bf16 36, f32 12".
function typesOf(decisions) {
  const counts = new Map();
  for (const d of decisions) counts.set(d.compute, (counts.get(d.compute) || 0) + 1);
  return [...counts.entries()].sort((a, b) => b[1] - a[1])
    .map(([type, n]) => element("span", "", typeTag(type), ` ${n} `));
}

// Types as recipes write them: "f32 as bf16x6" is fp32 as bf16x6.
const inRecipeWords = (text) => text.replace(/\bf(16|32)\b/g, "fp$1");

// What adaptive precision measured of each layer, and the type that it took.
function layers() {
  const chosen = (run.choices || {}).precision || {}, figures = chosen.figures || {};
  const types = run.layer_types || {};
  const budget = Number((/error_budget=(\S+)/.exec(chosen.asked || "") || [])[1] || Infinity);
  const measured = [...new Set(Object.values(figures).flatMap((errors) => Object.keys(errors)))];
  byId("layers-section").hidden = measured.length === 0;
  const cell = (error) => {
    if (error === undefined) return element("td", "number", "");
    const over = error === "inf" || error > budget;
    return element("td", over ? "number over" : "number",
                   error === "inf" ? "overflow" : digits(100 * error, 3) + " %");
  };
  const body = element("tbody");
  for (const [layer, errors] of Object.entries(figures))
    body.append(row(element("code", "", layer), typeTag(types[layer] || "–"),
                    ...measured.map((name) => cell(errors[name]))));
  byId("layers").replaceChildren(tableHead("layer", "type", ...measured), body);
  byId("layers-note").textContent = (chosen.asked ? `${chosen.asked}; ` : "") +
    "largest error of a layer's results (forward) and gradients (backward) beside fp32" +
    (finite(budget) ? "; beyond the budget in red" : "");
}

function decisions() {
  const all = (run.precision_decisions || []).map((d) => ({
    ...d, compute: inRecipeWords(d.compute), accumulate: inRecipeWords(d.accumulate),
    store: inRecipeWords(d.store), reason: inRecipeWords(d.reason) }));
  byId("decisions-section").hidden = all.length === 0;
  byId("eager-note").hidden = run.mode !== "eager";
  for (const [id, key] of [["decisions-phase", "phase"], ["decisions-type", "compute"]])
    for (const v of [...new Set(all.map((d) => d[key]))]) byId(id).append(new Option(v, v));
  const show = () => {
    const words = byId("decisions-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const phase = byId("decisions-phase").value, type = byId("decisions-type").value;
    const shown = all.filter((d) => {
      const text = [d.op, d.reason, d.path].join(" ").toLowerCase();
      return (!phase || d.phase === phase) && (!type || d.compute === type) &&
             words.every((w) => text.includes(w));
    });
    const modules = new Map();
    for (const d of shown) {
      const name = moduleOf(d.path);
      if (!modules.has(name)) modules.set(name, []);
      modules.get(name).push(d);
    }
    byId("decisions").replaceChildren(...[...modules].map(([name, list]) => {
      const fold = element("details", "module", element("summary", "", element("code", "", name),
                                                         element("span", "types", ...typesOf(list))));
      fold.open = words.length > 0;
      fold.append(decisionRows(groupsOfDecisions(list)));
      return fold;
    }));
    byId("decisions-note").textContent =
      `${whole(shown.length)} of ${whole(all.length)} places, in ${modules.size} modules; open one to see why`;
  };
  for (const id of ["decisions-filter", "decisions-phase", "decisions-type"])
    byId(id).addEventListener("input", show);
  show();
}

// Of the steps that were timed, op by op.
function profile() {
  const p = data.profile;
  byId("profile-section").hidden = !p;
  if (!p) return;
  const body = element("tbody");
  const figure = (x, text) => element("td", "number", finite(x) ? text(x) : "");
  const rate = (x) => digits(x, x < 10 ? 2 : x < 100 ? 1 : 0);
  for (const [op, phase, calls, ms, share, flops, bandwidth, reached] of p.ops)
    body.append(row(element("code", "", op), phase, figure(calls, (x) => digits(x, x % 1 ? 1 : 0)),
                    figure(ms, (x) => digits(x, 3)), figure(share, (x) => digits(100 * x, 1) + " %"),
                    figure(flops, rate), figure(bandwidth, rate),
                    figure(reached, (x) => digits(100 * x, 0) + " %")));
  byId("profile").replaceChildren(tableHead("op", "phase", "calls", "ms", "share", "GFLOP/s", "GB/s",
                                            "of rates"), body);
  byId("profile-note").textContent =
    `a step, the mean of ${whole(p.steps)} on ${p.device}, ${whole(p.threads)} threads; of rates: what ` +
    "the work would take at the device's, above 100 % where operands lay in the caches; profile.json has each call";
}

// Steps in a row with the same culprit are one row.
function runsOfSkips() {
  const runs = [];
  for (const [step, culprit] of curves.skips) {
    const before = last(runs);
    if (before && before.culprit === culprit && before.to + 1 === step) before.to = step;
    else runs.push({ from: step, to: step, culprit });
  }
  return runs;
}

function skips() {
  byId("skips-section").hidden = curves.skips.length === 0;
  const body = element("tbody");
  for (const { from, to, culprit } of runsOfSkips())
    body.append(row(from === to ? whole(from) : `${whole(from)} to ${whole(to)}`, whole(to - from + 1),
                    element("code", "", culprit || "the loss")));
  byId("skips").replaceChildren(tableHead("step", "skipped", "parameter"), body);
  byId("skips-note").textContent = (curves.skipped > curves.skips.length
    ? `the last ${whole(curves.skips.length)} of ${whole(curves.skipped)}` : whole(curves.skipped)) +
    "; the first gradient that was not finite";
}

function rollbacks() {
  byId("rollbacks-section").hidden = curves.rollbacks.length === 0;
  const body = element("tbody");
  for (const [from, to, examples, reason] of curves.rollbacks)
    body.append(row(whole(from), whole(to), whole(examples), reason));
  byId("rollbacks").replaceChildren(tableHead("from step", "to", "examples passed over", "why"), body);
}

// Where the run was gone on with, and what was changed there.
const resumes = (run.history || []).filter((h) => finite(h.step));

function history() {
  byId("history-section").hidden = resumes.length === 0;
  const body = element("tbody");
  for (const h of resumes) {
    const changes = Object.entries(h.changed || {}).map(([key, [before, now]]) =>
      element("div", "", element("code", "", key), ` ${valueText(before)} → ${valueText(now)}`));
    if (h.data_before) changes.push(element("div", "", "other data"));
    body.append(row(whole(h.step), (h.at || "").replace("T", " ").replace("Z", " UTC"),
                    element("div", "", ...(changes.length ? changes : ["nothing"]))));
  }
  byId("history").replaceChildren(tableHead("behind step", "when", "changed"), body);
}

function valueText(v) {
  return typeof v === "string" ? `"${v}"` : v === undefined ? "–" : JSON.stringify(v);
}

// {a: {b: 1}} as [["a.b", 1]]; lists are values.
function flat(object, prefix) {
  return Object.entries(object).flatMap(([k, v]) =>
    v && typeof v === "object" && !Array.isArray(v) ? flat(v, prefix + k + ".") : [[prefix + k, v]]);
}

function recipe() {
  const origin = run.origin || {}, unused = new Set(run.unused || []);
  for (const section of ["model", "data", "precision", "optimizer", "schedule", "train"]) {
    if (!run.recipe[section]) continue;
    const body = element("tbody");
    for (const [key, value] of flat(run.recipe[section], "")) {
      if (unused.has(`${section}.${key}`)) continue;
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
profile();
layers();
decisions();
skips();
rollbacks();
history();
sample();
recipe();
