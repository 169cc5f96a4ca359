"""The report as a reader meets it: what its text holds, and, where there is a browser, what it shows at
the width of a telephone: axes, what sits where, and that nothing is wider than the page."""
import html
import json
import re
import shutil
import subprocess
import unittest

from program import ProgramTest, main, report_data

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHARTS = ["loss", "lr", "throughput", "norm", "scale", "memory"]
NARROW, WIDE = 500, 1400

# Behind the page's own scripts: what is seen, as JSON in an element of its own.
PROBE = """<script>
(() => {
  const charts = {};
  for (const canvas of document.querySelectorAll("canvas")) {
    const chart = Chart.getChart(canvas);
    if (!chart) continue;
    const axis = (s) => ({ min: s.min, max: s.max, type: s.type, title: s.options.title.text,
                           titled: s.options.title.display, ticks: s.ticks.length });
    charts[canvas.id] = {
      x: axis(chart.scales.x), y: axis(chart.scales.y), width: chart.width,
      sets: chart.data.datasets.map((set, i) => ({
        label: set.label, hidden: !chart.isDatasetVisible(i),
        points: set.data.map((p, n) => ({ x: p.x, y: p.y, at: chart.getDatasetMeta(i).data[n]?.y })) })),
    };
  }
  const scrolls = (e) => e && (/(auto|scroll|hidden)/.test(getComputedStyle(e).overflowX) ||
                               scrolls(e.parentElement));
  const tooWide = [...document.body.querySelectorAll("*")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.right > innerWidth + 1 && !scrolls(e.parentElement);
  }).map((e) => `${e.tagName} ${e.id} ${e.className} ${e.textContent.slice(0, 40)}`);
  const small = [...document.querySelectorAll("main *, header *")].filter((e) =>
    e.childElementCount === 0 && e.textContent.trim() && e.offsetParent &&
    parseFloat(getComputedStyle(e).fontSize) < 11).length;
  // Names in the tables of the recipe that are drawn in more than one line, or cut.
  const lines = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size;
  };
  const broken = [...document.querySelectorAll("#recipe tr")].flatMap((tr) => [tr.firstChild, tr.lastChild])
    .filter((cell) => lines(cell) > 1 || cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent);
  const text = (id) => document.getElementById(id).textContent;
  // Of the heat map's last column: the upper edge of its first cell, and the middle.
  const map = document.getElementById("trends");
  const pixel = (y) => map.width > 40 && map.height > 20
    ? [...map.getContext("2d").getImageData(map.width - 32, y, 1, 1).data].join() : "";
  const modules = [...document.querySelectorAll("#decisions details.module")];
  document.body.append(Object.assign(document.createElement("pre"), { id: "probe", hidden: true,
    textContent: JSON.stringify({ charts, tooWide, small, broken, page: document.documentElement.scrollWidth,
      window: innerWidth, lossNote: text("loss-note"), scaleNote: text("scale-note"),
      title: document.getElementById("title").getBoundingClientRect().height,
      error: document.getElementById("error").offsetParent !== null,
      alerts: [...document.querySelectorAll("#alerts tbody tr")].map((row) =>
        [...row.children].map((cell) => [cell.textContent, cell.getBoundingClientRect().width])),
      heat: [text("trends-least"), text("trends-most"), pixel(5), pixel(11)],
      tiles: text("tiles"), decisionsNote: text("decisions-note"),
      folded: modules.filter((m) => !m.open).length, modules: modules.length,
      layers: [...document.querySelectorAll("#layers tbody tr")].map((row) =>
        [...row.children].map((cell) => cell.textContent)),
      sections: document.querySelectorAll("section:not([hidden]) h2").length }) }));
})();
</script>"""


class Report(ProgramTest):
    shown = {}  # by width

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A scale that must come down first: its steps are skipped.
        scale = 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}'
        cls.aloft("train", "tiny.toml", "--out", "run", "--steps", 40, "--set", scale, "--set",
                  "train.eval_every=10")
        run = cls.folder / "run"
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        cls.skipped = [line for line in lines if line.get("skipped")]
        # An evaluation that was no number.
        evaluated = [line for line in lines if "val_loss" in line]
        cls.lost_step = evaluated[1]["step"]
        evaluated[1].update(val_loss=None, val_perplexity=None, val_bits_per_byte=None)
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        cls.aloft("report", "run")
        cls.page = (run / "report.html").read_text()
        cls.data = report_data(run)

    def test_it_needs_nothing_from_elsewhere(self):
        markup = re.sub(r"<script.*?</script>|<style.*?</style>", "", self.page, flags=re.S)
        self.assertNotRegex(markup, r"\b(src|href)\s*=")
        self.assertNotRegex(self.page, r"@import|url\(\s*['\"]?http")
        self.assertNotRegex(self.page, r"\{\{\w+\}\}")

    def test_every_chart_has_a_caption_and_a_canvas(self):
        figures = re.findall(r"<figure.*?</figure>", self.page, re.S)
        # Hidden where an evaluation measures nothing that does not follow from its loss.
        shown = [re.search(r'<canvas id="(\w+)"', f)[1] for f in figures]
        self.assertEqual(shown, [CHARTS[0], "measure", *CHARTS[1:]])
        for figure in figures:
            self.assertRegex(figure, r"<figcaption>\w+")
        self.assertIn('<meta name="viewport" content="width=device-width, initial-scale=1">', self.page)

    def test_a_skipped_step_has_the_scale_it_was_skipped_at(self):
        self.assertGreater(len(self.skipped), 3)
        curves = self.data["curves"]
        self.assertEqual(curves["skips"], [[s["step"], s.get("culprit", ""), s["loss_scale"]]
                                           for s in self.skipped])
        self.assertEqual(curves["skipped"], len(self.skipped))

    def test_an_evaluation_that_is_no_number_stays(self):
        lost = [e for e in self.data["curves"]["evaluations"] if e[1] is None]
        self.assertEqual([e[0] for e in lost], [self.lost_step])

    def test_every_axis_has_a_title_and_starts_at_zero_or_is_logarithmic(self):
        axes = re.findall(r'\{ title: "[^}]*', self.page)
        self.assertGreater(len(axes), len(CHARTS))
        for axis in axes:
            self.assertRegex(axis, r'^\{ title: "[a-z ,]+", (min: 0|type: "logarithmic")', axis)

    def seen(self, width):
        """What a browser shows of the page in a window of that width."""
        if not BROWSER:
            self.skipTest("no chromium is installed")
        if width not in self.shown:
            self.shown[width] = self.show(width, self.page, "seen")
        return self.shown[width]

    def show(self, width, text, name):
        page = self.folder / f"{name}-{width}.html"
        page.write_text(text.replace("</body>", PROBE + "</body>"))
        profile = self.folder / f"{name}-browser-{width}"
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", f"--user-data-dir={profile}", f"--window-size={width},1000", "--dump-dom",
             page.as_uri()], capture_output=True, text=True, timeout=120)
        if not done.stdout.strip():
            self.skipTest(f"{BROWSER} does not start")
        probe = re.search(r'<pre id="probe"[^>]*>(.*?)</pre>', done.stdout, re.S)
        self.assertTrue(probe, f"the page's scripts failed: {done.stderr[-2000:]}")
        return json.loads(html.unescape(probe[1]))

    def test_nothing_is_wider_than_a_narrow_page(self):
        for width in (NARROW, WIDE):
            seen = self.seen(width)
            self.assertEqual(seen["window"], width)
            self.assertLessEqual(seen["page"], width)
            self.assertEqual(seen["tooWide"], [], width)
            self.assertEqual(seen["small"], 0, "text smaller than 11 px")
        self.assertGreater(min(c["width"] for c in self.seen(NARROW)["charts"].values()), 400)

    def test_names_in_the_recipe_are_whole(self):
        for width in (NARROW, 1280, WIDE):
            self.assertEqual(self.seen(width)["broken"], [], width)

    def test_axes_start_at_zero_and_say_what_they_count(self):
        charts = self.seen(NARROW)["charts"]
        self.assertEqual(sorted(charts), sorted(CHARTS))
        for name, chart in charts.items():
            for axis in (chart["x"], chart["y"]):
                self.assertTrue(axis["titled"] and axis["title"], name)
                self.assertGreaterEqual(axis["ticks"], 2, name)
                if axis["type"] == "logarithmic":  # has no zero, and says so
                    self.assertIn("logarithmic", axis["title"])
                else:
                    self.assertEqual(axis["min"], 0, name)
        titles = {name: chart["y"]["title"] for name, chart in charts.items()}
        self.assertEqual((titles["loss"], titles["throughput"], titles["memory"]),
                         ("nats a token", "tokens per second", "bytes alive"))
        self.assertEqual({name: c["x"]["title"] for name, c in charts.items() if name != "memory"},
                         dict.fromkeys(CHARTS[:-1], "step"))

    def test_skips_sit_on_the_line(self):
        seen = self.seen(NARROW)
        line, marks = [{p["x"]: p["at"] for p in s["points"]} for s in seen["charts"]["scale"]["sets"]]
        self.assertEqual(sorted(marks), [s["step"] for s in self.skipped])
        for step, at in marks.items():
            self.assertAlmostEqual(at, line[step], delta=1, msg=step)
        self.assertEqual(seen["scaleNote"], f"{len(self.skipped)} skipped")

    def test_an_evaluation_that_is_no_number_is_named(self):
        seen = self.seen(NARROW)
        self.assertIn(f"validation not finite at step {self.lost_step}", seen["lossNote"])
        shown = {s["label"]: s["points"] for s in seen["charts"]["loss"]["sets"]}["validation"]
        self.assertIn(self.lost_step, [p["x"] for p in shown if p["y"] is None])

    def test_layers_that_were_measured_are_shown_with_their_types(self):
        if not BROWSER:
            self.skipTest("no chromium is installed")
        self.assertEqual(self.seen(NARROW)["layers"], [])
        self.aloft("train", "tiny.toml", "--out", "adaptive", "--steps", 2, "--set", 'precision.level="adaptive"')
        record = json.loads((self.folder / "adaptive/run.json").read_text())
        seen = self.show(NARROW, (self.folder / "adaptive/report.html").read_text(), "adaptive")
        self.assertEqual({row[0]: row[1] for row in seen["layers"]}, record["layer_types"])
        self.assertEqual({row[0] for row in seen["layers"]}, set(record["choices"]["precision"]["figures"]))
        for row in seen["layers"]:
            self.assertTrue(all(re.fullmatch(r"\d+\.\d{3} %|overflow", cell) for cell in row[2:]), row)
        self.assertEqual(seen["tooWide"], [])

    def test_an_error_leaves_room_for_the_name_and_alerts_can_be_read(self):
        if not BROWSER:
            self.skipTest("no chromium is installed")
        data = json.loads(json.dumps(self.data))
        data["run"]["error"] = {"code": "E0822", "text": "error E0822: it has ended\n  try   " + "another rate " * 20}
        alerts = [[1, "nan", layer, what] for layer, what in (
            ("", "the loss is not finite"), *((f"h.{i}", "3 NaN in what it gives") for i in range(4)))]
        alerts.append([1, "saturation", "0", "100 % of what it gives lies at the largest number of its type"])
        data["trends"].update(alerts=alerts, alert_count=len(alerts))
        text = json.dumps(data).replace("<", "\\u003c")
        page = re.sub(r'(<script type="application/json" id="data">).*?(</script>)',
                      lambda m: m[1] + text + m[2], self.page, flags=re.S)
        self.assertFalse(self.seen(WIDE)["error"])
        for width in (NARROW, WIDE):
            seen = self.show(width, page, "ended")
            self.assertTrue(seen["error"])
            self.assertEqual(seen["title"], self.seen(width)["title"])  # one line
            self.assertEqual(seen["tooWide"], [])
            nan, saturation = seen["alerts"]
            self.assertIn("5 places, the first: the loss is not finite", nan[2][0])
            self.assertIn("h.1: 3 NaN in what it gives", nan[2][0])
            self.assertTrue(saturation[2][0].startswith("0: 100 % of what"), saturation)
            self.assertGreater(saturation[2][1], 0.3 * width)

    def test_the_heat_map_has_a_scale_and_alerts_are_seen_on_it(self):
        if not BROWSER:
            self.skipTest("no chromium is installed")

        def shown(last, alerts):
            data = json.loads(json.dumps(self.data))
            data["trends"].update(
                steps=[1, 2], layers=["h.0"], names=["grad_norm", "gradient_saturated"], group=1, alerts=alerts,
                alert_count=len(alerts), numbers={"grad_norm": [[0.0125, last]], "gradient_saturated": [[0.5, 1]]})
            text = json.dumps(data).replace("<", "\\u003c")
            page = re.sub(r'(<script type="application/json" id="data">).*?(</script>)',
                          lambda m: m[1] + text + m[2], self.page, flags=re.S)
            seen = self.show(NARROW, page, "heat")
            self.assertEqual(seen["tooWide"], [])  # the longest of the numbers' names is cut
            return seen["heat"]

        least, most, edge, middle = shown(80, [])
        self.assertEqual((least, most), ("0.0125", "80, by its logarithm"))
        self.assertEqual(edge, middle)
        for last in (80, None):  # what is not finite is red, as frames are
            _, _, edge, middle = shown(last, [[2, "nan", "h.0", "NaN"]])
            self.assertNotEqual(edge, middle, last)

    def test_precision_decisions_are_folded_by_module(self):
        seen = self.seen(NARROW)
        places = len(json.loads((self.folder / "run" / "run.json").read_text())["precision_decisions"])
        self.assertGreater(places, seen["modules"])
        self.assertGreater(seen["modules"], 2)
        self.assertEqual(seen["folded"], seen["modules"])
        self.assertIn(f"{places} of {places} places, in {seen['modules']} modules", seen["decisionsNote"])


del ProgramTest  # has no tests of its own

if __name__ == "__main__":
    main()
