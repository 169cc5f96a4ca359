// The curves. Drawn anew when the colour scheme changes.
"use strict";
(() => {
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const xy = (ys) => curves.step.map((x, i) => ({ x, y: ys[i] }));

  function line(label, points, name, more) {
    return { label, data: points, borderColor: colour(name), backgroundColor: colour(name),
             borderWidth: 1.6, pointHitRadius: 6,
             pointRadius: points.filter((p) => finite(p.y)).length < 3 ? 3 : 0,  // no line to see
             spanGaps: false, clip: 4, ...more };  // markers at the edge stay whole
  }

  const compact = (v) =>
    v !== 0 && (Math.abs(v) < 1e-5 || Math.abs(v) >= 1e6) ? v.toExponential(1)
      : Number(v.toPrecision(4)).toLocaleString("en-US", { maximumSignificantDigits: 4 });

  function axes(yOptions, xOptions) {
    const base = (text) => ({
      grid: { color: colour("line"), drawBorder: false },
      ticks: { color: colour("quiet"), maxTicksLimit: 8 },
      title: { display: true, text, color: colour("quiet"), font: { size: 11 } } });
    const { ticks, title, ...rest } = yOptions, { title: below, ...xRest } = xOptions;
    return {
      x: { type: "linear", ...base(below), ...xRest,
           ticks: { ...base().ticks, maxRotation: 0, precision: 0, maxTicksLimit: 11 } },
      y: { ...base(title), ...rest, ticks: { ...base().ticks, callback: compact, ...ticks } },
    };
  }

  function options(scales, tooltip, legend) {
    return {
      animation: false, maintainAspectRatio: false, parsing: false, normalized: true,
      interaction: { mode: "index", intersect: false },
      scales,
      plugins: {
        legend: { display: !!legend, align: "end",
                  labels: { color: colour("ink"), boxWidth: 14, boxHeight: 2, font: { size: 12 } } },
        tooltip: { backgroundColor: colour("ink"), titleColor: colour("panel"),
                   bodyColor: colour("panel"), ...tooltip },
      },
    };
  }

  const stepTitle = { title: (items) => (items.length ? "step " + whole(items[0].parsed.x) : "") };
  const stepTooltip = { callbacks: stepTitle };
  const steps = () => ({ title: "step", min: 0, max: Math.max(1, curves.last.step || 0) });

  // What a curve leaves out: an empty frame says why it is empty.
  function missing(ys, what) {
    const known = ys.filter(finite).length, of = whole(ys.length), n = whole(ys.length - known);
    return known === ys.length ? "" : known === 0 ? "never finite"
      : curves.group > 1 ? `${what} finite in no step of ${n} of ${of} points`
        : `${what} not finite in ${n} of ${of} steps`;
  }
  const note = (...parts) => parts.filter(Boolean).join("; ");

  function lossChart() {
    const evaluations = curves.evaluations.map(([x, y]) => ({ x, y }));
    const unknown = curves.evaluations.filter((e) => !finite(e[1])).map((e) => whole(e[0]));
    byId("loss-note").textContent = note(
      resumes.length ? "dotted: where the run was gone on with" : "",
      curves.group > 1 ? `each point is the mean of ${curves.group} steps` : "", missing(curves.loss, "loss"),
      unknown.length ? `validation not finite at step ${unknown.slice(0, 4).join(", ")}` +
        (unknown.length > 4 ? ` and ${unknown.length - 4} more` : "") : "");
    const validation = line("validation", evaluations, "second",
                            { pointRadius: 3.5, borderWidth: 1.6, order: 0, clip: 8 });
    const ofMeans = curves.evaluations.map(([x, , m]) => ({ x, y: finite(m.average_loss) ? m.average_loss : null }));
    const average = line("validation, mean weights", ofMeans, "third", { pointRadius: 3, order: 0, clip: 8 });
    return ["loss", [
      ...(ofMeans.some((e) => finite(e.y)) ? [average] : []),
      ...(evaluations.some((e) => finite(e.y)) ? [validation] : []),
      line("training, smoothed", xy(curves.loss_smoothed), "accent",
           { order: 1, borderWidth: 2.2, spanGaps: true }),
      line("training", xy(curves.loss), "raw", { order: 2, borderWidth: 1 }),
    ], options(axes({ title: (run.unit || "tokens") === "tokens" ? "nats a token" : "loss", min: 0 }, steps()),
               { ...stepTooltip, mode: "nearest", axis: "x" }, true)];
  }

  // What the validation measures besides its loss, unless that follows from the loss: accuracy.
  function measureChart() {
    const name = curves.evaluations.flatMap(([, , measures]) => Object.keys(measures))
      .find((key) => !kFollowsFromLoss.includes(key));
    byId("measure-figure").hidden = !name;
    if (!name) return null;
    const isShare = name === "accuracy";
    const values = curves.evaluations.map(([x, , m]) => ({ x, y: finite(m[name]) ? m[name] : null }));
    const best = values.filter((p) => finite(p.y)).sort((a, b) => b.y - a.y)[0];
    byId("measure-name").textContent = name;
    byId("measure-note").textContent =
      isShare && best ? `best at step ${whole(best.x)}: ${percent(best.y)}` : "";
    return ["measure", [line(name, values, "second", { pointRadius: 3.5, clip: 8 })],
      options(axes({ title: isShare ? "share of examples" : name,
                     ...(isShare ? { min: 0, suggestedMax: 1, ticks: { callback: percent } } : {}) }, steps()),
              { ...stepTooltip, mode: "nearest", axis: "x" })];
  }

  const lrChart = () => ["lr", [line("learning rate", xy(curves.lr), "accent", { borderWidth: 2 })],
    options(axes({ title: "learning rate", min: 0 }, steps()), stepTooltip)];

  const throughputChart = () => ["throughput", [
    line("smoothed", xy(curves.rate_smoothed), "third", { borderWidth: 2.2, order: 0 }),
    line(`${run.unit || "tokens"}/s`, xy(curves.rate), "line", { order: 1, borderWidth: 1 }),
  ], options(axes({ title: `${run.unit || "tokens"} per second`, min: 0 }, steps()), stepTooltip)];

  function normChart() {
    const clip = run.recipe.optimizer && run.recipe.optimizer.clip_norm;
    byId("norm-note").textContent = note("before clipping", missing(curves.grad_norm, "norm"));
    const sets = [line("gradient norm", xy(curves.grad_norm), "fourth", { borderWidth: 1.4 })];
    if (clip > 0 && curves.step.length > 1)
      sets.push(line(`clipped to ${clip}`, [{ x: curves.step[0], y: clip },
                                            { x: last(curves.step), y: clip }], "quiet",
                     { borderDash: [5, 4], borderWidth: 1.2, pointRadius: 0 }));
    return ["norm", sets, options(axes({ title: "norm, logarithmic", type: "logarithmic",
                                          afterBuildTicks: powersOfTen }, steps()),
                                  { ...stepTooltip, mode: "nearest", axis: "x" }, sets.length > 1)];
  }

  // Powers of ten, with their halves and fifths where there are few.
  function powersOfTen(axis) {
    const ticks = (parts) => {
      const out = [];
      for (let e = Math.floor(Math.log10(axis.min)); 10 ** e <= axis.max; ++e)
        for (const part of parts) {
          const value = Number((part * 10 ** e).toPrecision(1));
          if (value >= axis.min && value <= axis.max) out.push({ value });
        }
      return out;
    };
    axis.ticks = [[1, 2, 5], [1, 3], [1]].map(ticks).find((t) => t.length <= 6) || ticks([1]);
    const stride = Math.ceil(axis.ticks.length / 6);
    axis.ticks = axis.ticks.filter((_, i) => i % stride === 0);
  }

  // At most six ticks, each a power of two.
  function powersOfTwo(axis) {
    const lo = Math.ceil(Math.log2(axis.min)), hi = Math.floor(Math.log2(axis.max));
    const stride = Math.max(1, Math.ceil((hi - lo) / 5));
    axis.ticks = [];
    for (let e = lo; e <= hi; e += stride) axis.ticks.push({ value: 2 ** e });
  }

  // About five ticks from zero, each a round number of its binary unit.
  function roundBytes(axis) {
    let stride = 2 ** Math.floor(Math.log2(Math.max(1, axis.max / 4)));
    if (axis.max / stride > 7) stride *= 2;
    axis.ticks = [];
    for (let v = 0; v <= axis.max; v += stride) axis.ticks.push({ value: v });
  }

  function scaleChart() {
    const marks = curves.skips.map(([x, , y]) => ({ x, y }));
    byId("scale-note").textContent = curves.skipped
      ? `${curves.skipped} skipped` : "nothing skipped";
    const scales = curves.loss_scale.filter(finite);
    const constant = new Set(scales).size <= 1;
    return ["scale", [
      line("loss scale", xy(curves.loss_scale), "accent", { stepped: true, borderWidth: 2, order: 1 }),
      line("skipped", marks, "bad", { showLine: false, clip: 8, pointRadius: 4.5,
                                      pointStyle: "crossRot", borderWidth: 2, order: 0,
                                      hidden: marks.length === 0 }),
    ], options(axes(constant ? { title: "factor", min: 0, ticks: { maxTicksLimit: 4 } }
                             : { title: "factor, logarithmic", type: "logarithmic",
                                 afterBuildTicks: powersOfTwo, ticks: { callback: (v) => count(v) } },
                    steps()),
               { ...stepTooltip, mode: "nearest", axis: "x" }, marks.length > 0)];
  }

  function memoryChart() {
    const memory = run.memory || {}, steps = memory.over_step || [];
    byId("memory-figure").hidden = steps.length === 0;
    if (!steps.length) return null;
    const activations = (memory.arenas || {}).activations || 0;
    const fixed = (memory.peak_bytes || 0) - activations;
    byId("memory-note").textContent = `${steps.length} instructions; planned peak ${bytes(memory.peak_bytes)}`;
    const tint = { forward: "accent", backward: "fourth", update: "third" };
    const all = steps.map((s, i) => ({ x: i, y: s.bytes }));
    const sets = Object.entries(tint).map(([phase, name]) => ({
      ...line(phase, all.map((p, i) => ({ x: p.x,
        y: steps[i].phase === phase || (i > 0 && steps[i - 1].phase === phase) ? p.y : null })), name),
      stepped: "before", fill: { value: fixed }, backgroundColor: colour(name) + "40", order: 1,
      pointHitRadius: 0 }));
    sets.push(line("parameters, moments, gradients, inputs",
                   [{ x: 0, y: fixed }, { x: steps.length - 1, y: fixed }], "quiet",
                   { fill: "origin", backgroundColor: colour("quiet") + "26", borderWidth: 1, order: 3,
                     pointRadius: 0 }));
    sets.push(line("planned peak", [{ x: 0, y: memory.peak_bytes },
                                    { x: steps.length - 1, y: memory.peak_bytes }], "bad",
                   { borderDash: [5, 4], borderWidth: 1.2, pointRadius: 0, order: 0 }));
    byId("arenas").replaceChildren(...Object.entries(memory.arenas || {})
      .sort((a, b) => b[1] - a[1])
      .map(([name, n]) => element("span", "chip", name + " ", element("b", "", bytes(n)))));
    const scales = axes({ title: "bytes alive", min: 0, afterBuildTicks: roundBytes,
                          ticks: { callback: bytes } },
                        { title: "instruction of the step", min: 0, max: Math.max(1, steps.length - 1) });
    return ["memory", sets, options(scales, {
      mode: "index", filter: (item) => item.datasetIndex < 3,
      callbacks: {
        title: (items) => {
          if (!items.length) return "";
          const s = steps[Math.round(items[0].parsed.x)];
          return s ? `${s.op}  ${s.path}` : "";
        },
        label: (item) => `${item.dataset.label}: ${bytes(item.parsed.y)}`,
      } }, true)];
  }

  // A line down every chart of steps where the run was gone on with.
  const resumed = {
    id: "resumed",
    beforeDatasetsDraw({ ctx, chartArea, scales, canvas }) {
      if (canvas.id === "memory") return;
      ctx.save();
      ctx.strokeStyle = colour("quiet");
      ctx.setLineDash([2, 4]);
      for (const { step } of resumes) {
        const x = scales.x.getPixelForValue(step);
        ctx.beginPath();
        ctx.moveTo(x, chartArea.top);
        ctx.lineTo(x, chartArea.bottom);
        ctx.stroke();
      }
      ctx.restore();
    },
  };

  const drawn = new Map();
  function draw() {
    for (const make of [lossChart, measureChart, lrChart, throughputChart, normChart, scaleChart, memoryChart]) {
      const chart = make();
      if (!chart) continue;
      const [id, datasets, chartOptions] = chart;
      if (drawn.has(id)) drawn.get(id).destroy();
      drawn.set(id, new Chart(byId(id), { type: "line", data: { datasets }, options: chartOptions,
                                         plugins: [resumed] }));
    }
  }
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
