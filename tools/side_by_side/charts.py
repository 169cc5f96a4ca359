"""Horizontal bars as SVG, legible on light and dark pages: median, spread, target."""
from xml.sax.saxutils import escape

KINDS = {
    "speed": ("Speed, times the best PyTorch (longer is better)", "{:.2f}x"),
    "limit": ("Share of the machine's limit (longer is better)", "{:.0f} %"),
    "memory": ("Peak memory, times the best PyTorch's (shorter is better)", "{:.2f}x"),
}
WIDTH, LABELS, RIGHT, TOP, BAR, GAP = 760, 150, 80, 56, 16, 12

STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #24292f; }
.title { font-size: 15px; font-weight: 600; }
.small { font-size: 11px; fill: #57606a; }
.page { fill: #ffffff; }
.met { fill: #2f7ed8; } .missed { fill: #d9822b; } .free { fill: #8c959f; }
.grid { stroke: #d0d7de; } .spread { stroke: #24292f; stroke-width: 1.5; }
.target { stroke: #1a7f37; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9da7b3; } .page { fill: #0d1117; }
  .met { fill: #4493f8; } .missed { fill: #e0913a; } .free { fill: #7d8590; }
  .grid { stroke: #30363d; } .spread { stroke: #e6edf3; } .target { stroke: #3fb950; }
}
"""


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def text(x, y, words, kind="", anchor="start"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
            f"{escape(words)}</text>")


def ticks(top):
    """Round numbers from 0 to the top, five to ten of them."""
    for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50):
        if top / step <= 8:
            return [i * step for i in range(int(top / step) + 1)]
    return [0, top]


def bar(y, scale, label, f, form):
    target = float(f["target"].split()[1]) if f["target"] else None
    kind = {True: "met", False: "missed", None: "free"}[f["met"]]
    middle = y + BAR / 2
    parts = [text(LABELS - 8, middle + 4, label, anchor="end"),
             f'<rect x="{LABELS}" y="{y:.1f}" width="{scale(f["median"]) - LABELS:.1f}" '
             f'height="{BAR}" rx="2" class="{kind}"/>',
             line(scale(f["low"]), middle, scale(f["high"]), middle, "spread")]
    for end in (f["low"], f["high"]):
        parts.append(line(scale(end), middle - 4, scale(end), middle + 4, "spread"))
    if target is not None:
        parts.append(line(scale(target), y - 4, scale(target), y + BAR + 4, "target"))
    return parts + [text(WIDTH - 16, middle + 4, form.format(f["median"]), anchor="end")]


def chart(kind, bars):
    title, form = KINDS[kind]
    values = [v for _, f in bars for v in (f["high"], float((f["target"] or "x 0").split()[1]))]
    top = max([*values, 0.001]) * 1.02
    height = TOP + len(bars) * (BAR + GAP) + 30

    def scale(value):
        return LABELS + (WIDTH - LABELS - RIGHT) * value / top

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             f'width="{WIDTH}" height="{height}" role="img">', f"<title>{escape(title)}</title>",
             f"<style>{STYLE}</style>",
             f'<rect width="{WIDTH}" height="{height}" class="page"/>',
             text(16, 24, title, "title"),
             text(16, 42, "bar: median of the rounds; thin line: smallest to largest; green mark: "
                          "target; blue: met, orange: missed, grey: no target", "small")]
    for tick in ticks(top):
        parts += [line(scale(tick), TOP - 2, scale(tick), height - 24, "grid"),
                  text(scale(tick), height - 8, f"{tick:g}", "small", "middle")]
    for i, (label, f) in enumerate(bars):
        parts += bar(TOP + 4 + i * (BAR + GAP), scale, label, f, form)
    return "\n".join([*parts, "</svg>", ""])


def label_of(row, figure):
    """A row's name; where it has several bars of a kind, what tells them apart."""
    return row["name"] + (" split" if "split" in figure["name"] else "")


def of(results):
    """{kind: (title, SVG)} of the kinds that have a figure."""
    drawn = {}
    for kind, (title, _) in KINDS.items():
        bars = [(label_of(row, f), f) for row in results["rows"] for f in row["figures"]
                if f["plot"] == kind and "median" in f]
        if bars:
            drawn[kind] = (title, chart(kind, bars))
    return drawn
