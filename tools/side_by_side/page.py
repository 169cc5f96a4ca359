"""docs/benchmarks.md from docs/benchmarks/*.json, and the same figures in words for a terminal."""
import json
import sys

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
- **Decoders of Hugging Face** are read from folders with their published `config.json` and random weights, which are
  made here: what they cost does not depend on what they say. Ours is `aloft bench step` and `aloft bench generate`
  of the folder, the peer transformers; compiled, a token has a static cache.
- **Memory** is the peak resident set by the kernel's count, interpreter and libraries included.
- **The machine's limit** is measured in the same process, in turns with the steps: every product of
  the Plan alone in oneDNN at its best layout on zeros, and the bytes that the update cannot avoid,
  each counted once, at the best rate that memory showed. What was faster inside a step than alone
  counts as it was there, so no step can beat the limit; where a figure is above 100 % all the same,
  the limit is wrong. Numbers that toggle few bits draw little power, and matrix units then run at a
  higher clock (a fifth in bf16), so no training reaches this limit; the second share takes the same
  products of normal numbers. fp16 has no limit here: the library has no fp16 product on a processor.
- **An optimizer's limit** is a stream over the arrays of its sweep that loads and stores each as the
  sweep does, on as many threads, and computes nothing; it takes turns with the sweep. So do
  torch.optim's step and our sweep, turn by turn within a program, because memory is faster in one
  minute than in the next. (A page that calls it the *stream rate* is older: that stream read two bytes for
  each that it wrote, and was no limit of sweeps in another mix.)
- **A page is one run**: all rows in one sitting, one clean revision, every round shown.
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
    return text + (f", **above what can be in {figure['beaten']} rounds**" if figure.get("beaten") else "")


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
            lines.append(f"| {row['title'] if i == 0 else ''} | {f['name']} | {f['target'] or ''} | "
                         f"{got} | {met_word(f)} |")
    return lines


def machine_lines(results):
    m, run = results["machine"], results["run"]
    when = " to ".join(dict.fromkeys(date[:16].replace("T", " ") for date in run["dates"]))
    facts = {"processor": m["processor"], "instruction sets": ", ".join(m["features"]),
             "cores": m["cores"], "memory": f"{m['memory_gib']} GiB",
             "system": m["system"], "compiler": run["compiler"], "oneDNN": run.get("oneDNN"),
             "PyTorch": run.get("torch"), "revision": run["revision"],
             "measured": f"{when} UTC", "threads": run["threads"],
             "others' share of the processors": others_taken(results), "rounds": run["rounds"]}
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


def rounds_table(results):
    """Every round's value of every figure: nothing is left out."""
    lines = ["| row | figure | rounds, in their order |", "| --- | --- | --- |"]
    for row in results["rows"]:
        for f in row["figures"]:
            values = ", ".join(number(v, f["unit"]) for v in f.get("values", []))
            lines.append(f"| {row['name']} | {f['name']} | {values or 'missing'} |")
    return lines


def later_rows(results):
    """Rows that came behind the revision of a page are said, and count neither way."""
    later = results.get("later", [])
    return [f"Rows that its revision did not have yet: {', '.join(later)}.", ""] if later else []


def folded(title, lines):
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def section(name, results, plots):
    met = [f.get("met") for row in results["rows"] for f in row["figures"]]
    verdict = results.get("notice") or [
        f"{met.count(True)} of {met.count(True) + met.count(False)} targets that were measured are met.", ""]
    verdict += later_rows(results)
    lines = [f"## {name}: {results['machine']['processor']}", "", *verdict, *machine_lines(results), "",
             *table(results), ""]
    for title, file in plots:
        lines += [f"![{title}](benchmarks/{file})", ""]
    lines += folded("Every round", rounds_table(results))
    lines += folded("Every program's own figures (medians; for ratios use the table above)",
                    steps_table(results))
    commands = [line for row in results["rows"]
                for line in (f"# {row['name']}", *dict.fromkeys(row["commands"].values()))]
    return lines + folded("Commands", ["```", *commands, "```"])


def as_one_run(results):
    """A file of the old schema, with what it lacks said in words: its rows come from several revisions,
    so that no target counts as met, and its limit, which counted the update's bytes twice, is left out."""
    rows_ = results["rows"]

    def all_of(key):
        return ", ".join(sorted({str(row[key]) for row in rows_ if row.get(key)}))

    for row in rows_:
        row["figures"] = [f | {"met": None} for f in row["figures"] if "limit" not in f["name"]]
    run = {key: all_of(key) for key in ("revision", "compiler", "oneDNN", "torch", "threads")}
    dates = sorted(row["date"] for row in rows_)
    run |= {"dates": [dates[0], dates[-1]], "quick": False,
            "rounds": ", ".join(sorted({str(len(row["rounds"])) for row in rows_}, key=int))}
    notice = ["**These rows are not one run**: they come from several revisions (a + had changes that were not "
              "committed), and some rows were measured more than once, the last run shown, before a page had "
              "to be one run of one clean revision. So no target counts as met here. Shares of the machine's "
              "limit are left out, because they counted the update's bytes twice. The page is measured again "
              "when such a processor is at hand.", ""]
    return results | {"run": run, "notice": notice}


def load(file, order):
    results = json.loads(file.read_text())
    if results["schema"] == results_file.OLD_SCHEMA:
        results = as_one_run(results)
    elif why := results_file.why_no_page(results, results_file.table_of(results)):
        sys.exit(f"bench_peers: {file} is no page: {why}")
    else:
        results["later"] = [name for name in order if name not in results_file.table_of(results)]
    results["rows"].sort(key=lambda row: order.index(row["name"]))
    return results


def write(folder):
    order = [row.name for row in rows.all_rows()]
    pages = {file.stem: load(file, order) for file in sorted(folder.glob("*.json"))}
    parts = [HEAD]
    for stem, results in pages.items():
        plots = []
        for kind, (title, svg) in charts.of(results).items():
            results_file.write(folder / f"{stem}-{kind}.svg", svg)
            plots.append((title, f"{stem}-{kind}.svg"))
        parts.append("\n".join(section(stem, results, plots)))
    results_file.write(folder.parent / "benchmarks.md", "\n".join(parts).rstrip() + "\n")
