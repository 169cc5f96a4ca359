"""Rounds of programs, one after the other in alternating order, and what the rounds say."""
import statistics

import random_folder
from programs import Missing, run

KEPT = ("step_ms", "tokens_per_s", "peak_rss_bytes", "planned_peak_bytes", "limit_fraction",
        "limit_ms", "limit_normal_fraction", "limit_normal_ms", "compile_ms", "startup_ms",
        "matmul_ms", "update_limit_ms", "stream_gb_s", "update_sweep_gb_s", "matmul_gflops", "loss",
        "sweep_ms", "first_token_ms", "prompt_ms", "token_ms", "share_of_stream", "read_gb_s", "ratio", "ratio_quartiles", "share", "peer_share",
        "others_share")
NOTABLE = 0.05  # of the machine in other hands: said


def brief(result):
    """What the results keep of a program's JSON."""
    return {key: result[key] for key in KEPT if result.get(key) is not None}


def times(name, result):
    others = result.get("others_share", 0)
    return f"{name} {result['step_ms']:.1f} ms" + (
        f" (others took {100 * others:.0f} % of the machine)" if others > NOTABLE else "")


def tried(program, tools, missing):
    """Its result, or None; a program that failed once is not tried again."""
    if program.name in missing:
        return None
    try:
        return run(program, tools)
    except Missing as why:
        missing[program.name] = str(why)
        return None


def verdict(figure, rounds, missing, has_amx):
    """The median over the rounds with its spread; or why there is none."""
    target = figure.amx if has_amx else figure.plain
    got = {"name": figure.name, "unit": figure.unit, "plot": figure.plot,
           "target": str(target) if target else None,
           "targets": [str(t) if t else None for t in (figure.amx, figure.plain)]}
    try:
        values = [figure.of(round_) for round_ in rounds]
    except KeyError as key:
        name = key.args[0]
        why = missing.get(name) or next(iter(missing.values()), f"nothing says {name}")
        return got | {"missing": f"{name}: {why}" if name in missing else str(why)}
    except ZeroDivisionError:
        return got | {"missing": "a divisor was 0"}
    if not values:
        why = "; ".join(f"{name}: {words}" for name, words in missing.items())
        return got | {"missing": why or "no round ended"}
    if figure.least is not None and min(values) < figure.least:
        return got | {"missing": f"{min(values):.4g} {figure.unit} is below {figure.least:g}: a program's "
                                 "times are wrong"}
    if figure.most is not None and max(values) > figure.most:
        got["beaten"] = sum(value > figure.most for value in values)
    middle = statistics.median(values)
    return got | {"median": middle, "low": min(values), "high": max(values), "values": values,
                  "met": target.met(middle) if target else None}


def compare(row, tools, rounds, has_amx, say):
    """Everything about a row: commands, rounds, figures. What is missing is said, not raised."""
    missing, once, results = {}, {}, []
    for shape, has_weights in row.folders:
        random_folder.make(shape, has_weights)
    for program in row.once:
        say(f"  {program.shown()}")
        if (got := tried(program, tools, missing)) is not None:
            once[program.name] = got
    for i in range(rounds):
        order = row.programs if i % 2 == 0 else row.programs[::-1]
        got = {}
        for program in order:
            if (result := tried(program, tools, missing)) is not None:
                got[program.name] = result
        if not got:
            break
        results.append(got)
        say(f"  round {i + 1}: " + ", ".join(times(p.name, got[p.name]) for p in row.programs
                                             if p.name in got))
    versions = {r["torch"] for got in results for r in got.values() if "torch" in r}
    return {"name": row.name, "title": row.title, "torch": " ".join(sorted(versions)),
            "commands": {p.name: p.shown() for p in [*row.programs, *row.once]},
            "missing": missing,
            "once": {name: brief(r) for name, r in once.items()},
            "rounds": [{name: brief(r) for name, r in got.items()} for got in results],
            "figures": [verdict(f, [got | once for got in results], missing, has_amx)
                        for f in row.figures]}
