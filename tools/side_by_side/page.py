"""docs/benchmarks.md from docs/benchmarks/*.json, and the same figures in words for a terminal."""
import json

import charts
import results_file
import rows

HEAD = """# Benchmarks

Aloft beside PyTorch, and beside what the machine can do. Written by `tools/bench_peers --page` from
the runs in [docs/benchmarks](benchmarks); nothing on this page is typed by hand.

## How it is measured

- A **round** runs each program of a row once, one after the other, never at the same time, in an
  order that turns from round to round. A figure is the median over the rounds of the ratio *within*
  a round, with the smallest and the largest beside it: machines drift by more than programs differ,
  so seconds of different rounds are never compared.
- **The best PyTorch** is the fastest of eager and `torch.compile` in the same round, both with fused
  optimizers, as PyPI ships it (for images also with channels last); low precision through
  `torch.autocast`. fp16 is run without a scaler, which
  flatters PyTorch. Its programs are in [tools/peers](../tools/peers), ours is `aloft bench step`:
  the training Plan of a recipe with clipping, loss scaling and masters, nothing lighter.
- A **step** is the median of the timed ones after the first (PyTorch: after the first two).
- **Memory** is the peak resident set by the kernel's count, interpreter and libraries included.
- **The machine's limit** is measured in the same process: every product of the Plan alone in oneDNN
  at its best layout on zeros, and the optimizer's unavoidable bytes at the rate of memory. Numbers
  that toggle few bits draw little power, and matrix units then run at a higher clock (a fifth in
  bf16), so no training reaches this limit; the second share takes the same products of normal
  numbers. A round whose limit is longer than the shortest one by a quarter was disturbed there; its
  share is left out.
- **Targets** differ where one kind of processor has matrix units (AMX) and another has not; the page
  shows the one that holds for the processor of the run.

Repeat it: `tools/bench_peers` (all rows), `tools/bench_peers --only gpt2-bf16` (some),
`tools/bench_peers --list` (rows with both targets). It makes a virtual environment with PyPI's
current torch, or takes `JUDGE_PYTHON`.
"""


def number(value, unit):
    if unit == "x":
        return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
    return f"{value:,.0f}"


def spread(figure):
    unit = figure["unit"]
    text = number(figure["median"], unit)
    low, high = number(figure["low"], unit), number(figure["high"], unit)
    text += (f" ({low} to {high})" if low != high else "") + ("" if unit == "x" else f" {unit}")
    return text + (f", {figure['disturbed']} disturbed left out" if figure.get("disturbed") else "")


def met_word(figure):
    return {True: "met", False: "**missed**", None: ""}[figure.get("met")]


def figure_text(figure):
    if "missing" in figure:
        return f"{figure['name']}: missing ({figure['missing']})"
    wanted = f", wanted {figure['target']}: {met_word(figure).strip('*')}" if figure["target"] else ""
    return f"{figure['name']}: {spread(figure)}{wanted}"


def summary(results):
    """A table for a terminal."""
    lines = [f"{'row':14}{'median':>9}  {'low to high':17}{'wanted':>9}  {'':8}figure"]
    for row in results:
        for f in row["figures"]:
            if "missing" in f:
                lines.append(f"{row['name']:14}{'-':>9}  {'':17}{f['target'] or '':>9}  {'missing':8}"
                             f"{f['name']}: {f['missing']}")
                continue
            ends = f"{number(f['low'], f['unit'])} to {number(f['high'], f['unit'])}"
            lines.append(f"{row['name']:14}{number(f['median'], f['unit']):>9}  {ends:17}"
                         f"{f['target'] or '':>9}  {met_word(f).strip('*'):8}{f['name']}"
                         + (f", {f['unit']}" if f["unit"] != "x" else ""))
    return "\n".join(lines)


def table(results):
    lines = ["| row | figure | target | median (low to high) | |", "| --- | --- | --- | --- | --- |"]
    for row in results["rows"]:
        for i, f in enumerate(row["figures"]):
            got = f"missing: {f['missing']}" if "missing" in f else spread(f)
            few = f" (only {len(row['rounds'])} of 5 rounds)" if len(row["rounds"]) < 5 else ""
            lines.append(f"| {row['title'] + few if i == 0 else ''} | {f['name']} | {f['target'] or ''} | "
                         f"{got} | {met_word(f)} |")
    return lines


def one_or_all(results, key):
    """The value that the rows share, or every one that occurs."""
    return ", ".join(sorted({str(row[key]) for row in results["rows"] if row.get(key)}))


def machine_lines(results):
    m = results["machine"]
    dates = sorted(row["date"][:16].replace("T", " ") for row in results["rows"])
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    facts = {"processor": m["processor"], "instruction sets": ", ".join(m["features"]),
             "cores": m["cores"], "memory": f"{m['memory_gib']} GiB",
             "system": m["system"],
             "compiler": one_or_all(results, "compiler"), "oneDNN": one_or_all(results, "oneDNN"),
             "PyTorch": one_or_all(results, "torch"), "revision": one_or_all(results, "revision"),
             "measured": f"{when} UTC", "threads": one_or_all(results, "threads"),
             "others' share of the processors": others_taken(results),
             "rounds": ", ".join(sorted({str(len(r["rounds"])) for r in results["rows"]}, key=int))}
    return ["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in facts.items() if v)]


def others_taken(results):
    """Other processes' and other machines' share of the processors while programs ran."""
    shares = sorted(r["others_share"] for row in results["rows"] for round_ in row["rounds"]
                    for r in round_.values() if "others_share" in r)
    if not shares:
        return ""
    return f"{100 * shares[len(shares) // 2]:.1f} % (median), {100 * shares[-1]:.0f} % (largest)"


def steps_table(results):
    """Milliseconds a step of every program, median over rounds: how the ratios came about."""
    lines = ["| row | program | step, ms | peak memory, MiB |", "| --- | --- | --- | --- |"]
    for row in results["rows"]:
        for name in row["commands"]:
            seen = [r[name] for r in [*row["rounds"], row["once"]] if name in r]
            if name in row["missing"] or not seen:
                lines.append(f"| {row['name']} | {name} | missing: {row['missing'].get(name)} | |")
                continue
            ms = sorted(s["step_ms"] for s in seen)[len(seen) // 2]
            peak = sorted(s.get("peak_rss_bytes", 0) for s in seen)[len(seen) // 2] / 2**20
            lines.append(f"| {row['name']} | {name} | {ms:,.{1 if ms < 1000 else 0}f} | {peak:,.0f} |")
    return lines


def section(name, results, plots):
    met = [f.get("met") for row in results["rows"] for f in row["figures"]]
    quick = any(row["quick"] for row in results["rows"])
    lines = [f"## {name}: {results['machine']['processor']}", "",
             f"{met.count(True)} of {met.count(True) + met.count(False)} targets that were measured "
             "are met." + (" Some rows are of a quick run, which proves nothing." if quick else ""),
             "", *machine_lines(results), "", *table(results), ""]
    for title, file in plots:
        lines += [f"![{title}](benchmarks/{file})", ""]
    lines += ["<details><summary>Every program's own figures (medians; for ratios use the table "
              "above)</summary>", "", *steps_table(results), "", "</details>", "",
              "<details><summary>Commands</summary>", "", "```"]
    for row in results["rows"]:
        lines += [f"# {row['name']}", *dict.fromkeys(row["commands"].values())]
    return lines + ["```", "", "</details>", ""]


def write(folder):
    parts = [HEAD]
    order = [row.name for row in rows.all_rows()]
    for file in sorted(folder.glob("*.json")):
        results = json.loads(file.read_text())
        results["rows"].sort(key=lambda row: order.index(row["name"]))
        plots = []
        for kind, (title, svg) in charts.of(results).items():
            results_file.write(folder / f"{file.stem}-{kind}.svg", svg)
            plots.append((title, f"{file.stem}-{kind}.svg"))
        parts.append("\n".join(section(file.stem, results, plots)))
    results_file.write(folder.parent / "benchmarks.md", "\n".join(parts).rstrip() + "\n")
