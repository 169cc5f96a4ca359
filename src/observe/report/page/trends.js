// What the monitor has found: alerts in words, and a number of all layers over the run as colours.
"use strict";
(() => {
  const trends = data.trends;
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // What each number is, and whether its colours go by its logarithm.
  const kNumbers = {
    weight_norm: ["norm of the weights", true],
    grad_norm: ["norm of the gradients of the weights", true],
    update_ratio: ["norm of the update / norm of the weights", true],
    output_rms: ["outputs: root of the mean square", true],
    output_outlier: ["outputs: largest / root of the mean square", true],
    output_zeros: ["outputs: share of zeros", false],
    output_saturated: ["outputs: share at the largest number of the type or beyond", false],
    output_underflowed: ["outputs: share below the normal numbers of the type", false],
    output_nan: ["outputs: NaN", true],
    output_exponent_low: ["outputs: lowest exponent in use", false],
    output_exponent_high: ["outputs: highest exponent in use", false],
    gradient_saturated: ["gradients of outputs: share at the largest number of the type or beyond", false],
    gradient_underflowed: ["gradients of outputs: share below the normal numbers of the type", false],
    gradient_nan: ["gradients: NaN", true],
    gradient_exponent_low: ["gradients of outputs: lowest exponent in use", false],
    gradient_exponent_high: ["gradients of outputs: highest exponent in use", false],
  };
  // Shares and counts that are 0 are written nowhere.
  const isOften0 = (name) => /zeros|saturated|underflowed|nan$/.test(name);

  // Alerts of one rule at one step are one row.
  function alertRows() {
    const rows = new Map();
    for (const [step, rule, layer, text] of trends.alerts) {
      const key = step + rule;
      if (!rows.has(key)) rows.set(key, { step, rule, places: [] });
      rows.get(key).places.push(layer ? [element("code", "", layer), ": " + text] : [text]);
    }
    return [...rows.values()];
  }

  function where(list) {
    const one = (place) => element("div", "", ...place);
    if (list.length <= 3) return element("div", "", ...list.map(one));
    const fold = element("details", "", element("summary", "", `${list.length} places, the first: `,
                                                ...list[0].map((part) => part.cloneNode?.(true) ?? part)));
    fold.append(...list.map(one));
    return fold;
  }

  function alerts() {
    byId("alerts-section").hidden = trends.alerts.length === 0 && trends.steps.length === 0;
    if (trends.alerts.length === 0) {  // that nothing was found is said of what was watched
      byId("alerts").parentElement.hidden = true;
      byId("alerts-note").textContent = `no alerts, from step ${whole(trends.steps[0])} to ${whole(trends.steps.at(-1))}`;
      return;
    }
    const body = element("tbody");
    for (const { step, rule, places } of alertRows())
      body.append(row(whole(step), element("span", "badge bad", rule), where(places), trends.advice[rule] || ""));
    byId("alerts").replaceChildren(tableHead("step", "rule", "where, and what", "what to do"), body);
    byId("alerts-note").textContent = trends.alert_count > trends.alerts.length
      ? `the first ${whole(trends.alerts.length)} of ${whole(trends.alert_count)}` : whole(trends.alert_count);
  }

  // The least and the largest value, and where one lies between them: 0 to 1.
  function scaleOf(values, isLog, has0) {
    const known = values.flat().filter((x) => finite(x) && (!isLog || x > 0));
    if (has0 && !isLog) known.push(0);
    const least = known.reduce((a, b) => Math.min(a, b), Infinity);
    const most = known.reduce((a, b) => Math.max(a, b), -Infinity);
    const lo = isLog ? Math.log(least) : least, hi = isLog ? Math.log(most) : most;
    const at = (x) => (isLog && !(x > 0) ? 0 : hi > lo ? ((isLog ? Math.log(x) : x) - lo) / (hi - lo) : 1);
    return { least, most, at };
  }

  const ofScale = (x) => (finite(x) ? String(Number(x.toPrecision(3))) : "");

  const kRow = 15, kTop = 4, kBottom = 38;
  let cells = null;  // of the drawing that is shown

  function draw() {
    const name = byId("trends-number").value, values = trends.numbers[name];
    const shown = trends.layers.map((layer, i) => i).filter((i) => values[i].some((x) => x !== false));
    const canvas = byId("trends"), context = canvas.getContext("2d");
    const font = "11px " + getComputedStyle(document.body).fontFamily;
    context.font = font;
    const left = 12 + shown.reduce((w, i) => Math.max(w, context.measureText(trends.layers[i]).width), 0);
    const width = Math.max(canvas.parentElement.clientWidth - 2, left + 120);
    const height = kTop + shown.length * kRow + kBottom, ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    context.scale(ratio, ratio);
    context.font = font;
    context.textBaseline = "middle";
    const column = (width - left - 12) / trends.steps.length;
    const isLog = kNumbers[name][1], scale = scaleOf(values, isLog, isOften0(name));
    byId("trends-least").textContent = ofScale(scale.least);
    byId("trends-most").textContent = ofScale(scale.most) + (isLog ? ", by its logarithm" : "");
    const raised = new Set(trends.alerts.map(([step, , layer]) => layer + " " + lookOf(step)));
    shown.forEach((i, r) => {
      const y = kTop + r * kRow;
      context.globalAlpha = 1;
      context.fillStyle = colour("ink");
      context.fillText(trends.layers[i], 6, y + kRow / 2);
      values[i].forEach((x, c) => {
        if (x === false && !isOften0(name)) return;
        context.globalAlpha = x === null ? 1 : 0.08 + 0.92 * (x === false ? 0 : scale.at(x));
        context.fillStyle = colour(x === null ? "bad" : "accent");
        context.fillRect(left + c * column, y + 1, Math.max(column - (column > 4 ? 1 : 0), 0.5), kRow - 2);
        if (!raised.has(trends.layers[i] + " " + c)) return;
        context.globalAlpha = 1;
        context.strokeStyle = colour(x === null ? "ink" : "bad");  // a red frame on red is none
        context.lineWidth = 2;
        context.strokeRect(left + c * column, y + 1, Math.max(column - 1, 2), kRow - 2);
      });
    });
    context.globalAlpha = 1;
    context.fillStyle = colour("quiet");
    const marks = Math.max(1, Math.ceil(trends.steps.length / Math.max(1, Math.floor((width - left) / 70))));
    for (let c = 0; c < trends.steps.length; c += marks)
      context.fillText(whole(trends.steps[c]), left + c * column, height - kBottom + 11);
    context.fillText("step", left, height - 9);
    cells = { shown, values, left, column };
  }

  // The column of the look in which a step lies, or which came before it.
  function lookOf(step) {
    const at = trends.steps.findIndex((s) => s >= step);
    return at < 0 ? trends.steps.length - 1 : at;
  }

  function say(event) {
    const { shown, values, left, column } = cells;
    const c = Math.floor((event.offsetX - left) / column), r = Math.floor((event.offsetY - kTop) / kRow);
    const x = c >= 0 && c < trends.steps.length && r >= 0 && r < shown.length ? values[shown[r]][c] : undefined;
    byId("trends-value").textContent = x === undefined ? "" :
      `${trends.layers[shown[r]]}, step ${whole(trends.steps[c])}: ` +
      (x === null ? "not finite" : x === false ? "0" : String(x));
  }

  byId("trends-section").hidden = trends.steps.length === 0;
  alerts();
  if (trends.alert_count)
    tile("Alerts", whole(trends.alert_count), alertRows().slice(0, 1).map((a) => `first: ${a.rule} at step ${whole(a.step)}`)[0],
         true);
  if (trends.steps.length === 0) return;
  for (const name of trends.names) byId("trends-number").append(new Option((kNumbers[name] || [name])[0], name));
  if (trends.names.includes("grad_norm")) byId("trends-number").value = "grad_norm";
  byId("trends-note").textContent = "darker: larger; red: not finite, framed: an alert" +
    (trends.group > 1 ? `; each column is the largest of ${whole(trends.group)} looks` : "");
  byId("trends-number").addEventListener("input", draw);
  byId("trends").addEventListener("mousemove", say);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
