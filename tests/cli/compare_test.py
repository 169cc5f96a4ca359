"""aloft probe compare: from recipes to a sentence, and what is refused."""
import csv
import html
import json
import os
import re
import shutil
import struct
import subprocess
import zipfile

from program import ROOT, ProgramTest, main

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NARROW = 500
# Behind the page's own script: what is seen of its tables, as JSON in an element of its own.
SEEN = """<script>
const rows = (id) => [...document.querySelectorAll(`#${id} tr:not(.head)`)].map((row) =>
  [...row.children].map((cell) => cell.textContent));
document.body.append(Object.assign(document.createElement("pre"), { id: "probe", hidden: true,
  textContent: JSON.stringify({ inputs: rows("inputs"), compared: rows("compared"), loop: rows("loop-table"),
    labels: [...document.querySelectorAll("#loop-table td")].map((cell) => getComputedStyle(cell, "::before").content),
    runs: document.getElementById("runs").textContent, steps: rows("steps-table"),
    links: [...document.querySelectorAll("#steps a")].map((a) => a.getAttribute("href")),
    sections: [...document.querySelectorAll("section:not([hidden])")].map((s) => s.id),
    page: document.documentElement.scrollWidth,
    words: [...document.querySelectorAll("td.mono > span")].filter((name) => {
      const line = document.createRange();  // a word that is broken has two boxes
      return [...name.childNodes].some((word) => (line.selectNodeContents(word), line.getClientRects().length > 1));
    }).map((name) => name.textContent) }) }));
</script>"""


class Compare(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for out, said in (("right", ["precision=\"O0\""]), ("low", ["precision=\"O2:bf16\""]),
                          ("eps", ["precision=\"O0\"", "model.norm_eps=1e-3"])):
            cls.aloft("probe", "run", "tiny.toml", "--out", out, "--steps", 2,
                      *(word for key in said for word in ("--set", key)))

    def compare(self, *arguments, exit_code=0):
        return self.aloft("probe", "compare", *arguments, exit_code=exit_code)

    def test_precision_is_no_divergence(self):
        lines = self.compare("low", "right", "-o", "low_right").stdout.decode().splitlines()
        # Behind an update that was made of rounded gradients parameters are others, by so much.
        for step, line in enumerate(lines[:2]):
            self.assertTrue(line.startswith(f"step{step}: no divergence"), lines)
        self.assertEqual(lines[2:], ["no divergence in 2 steps"])
        self.assertEqual({path.name for path in (self.folder / "low_right").iterdir()},
                         {f"compare_result_step{step}.{kind}" for step in (0, 1) for kind in ("csv", "json", "html")} |
                         {"compare_result.json", "compare_result.html"})

    def test_the_first_wrong_module_is_named(self):
        line = self.compare("eps/step0", "right/step0", "-o", "eps_right", "--xlsx").stdout.decode()
        self.assertTrue(line.startswith("first divergence: forward, h.0.ln_1 (LayerNorm), behind "), line)
        said = json.loads((self.folder / "eps_right/compare_result.json").read_text())
        self.assertEqual(said["divergence"]["module"], "h.0.ln_1")
        # A recipe's model is called by Aloft itself: a line of that says nothing.
        self.assertEqual(said["divergence"]["line"], "")
        self.assertNotIn("called at", line)
        # What it was given is there, and agrees.
        self.assertEqual([record["npu"]["name"].split("forward.0.")[1] for record in said["divergence"]["inputs"]],
                         ["input.0", "parameters.bias", "parameters.weight"])
        self.assertEqual({record["diverges"] for record in said["divergence"]["inputs"]}, {False})
        page = (self.folder / "eps_right/compare_result.html").read_text()
        self.assertIn(json.dumps(said["sentence"]), page)
        with open(self.folder / "eps_right/compare_result.csv", newline="", encoding="utf-8") as file:
            rows = {row["NPU Name"]: row for row in csv.DictReader(file)}
        row = rows["Module.h.0.ln_1.LayerNorm.forward.0.output.0"]
        self.assertEqual(row["Bench Name"], row["NPU Name"])
        self.assertGreater(float(row["Difference"]), float(row["Allowed"]))

        with zipfile.ZipFile(self.folder / "eps_right/compare_result.xlsx") as book:
            sheet, styles = (book.read(f"xl/{part}.xml").decode() for part in ("worksheets/sheet1", "styles"))
        self.assertEqual(sheet.count("<row "), len(rows) + 1)
        self.assertIn(row["NPU Name"], sheet)
        self.assertIn("FFC6EFCE", styles)  # green: msprobe's rules let these pass

    def test_eager_ops_are_those_of_the_compiled_step(self):
        # An eager step has calls that a compiled one fuses away: what is behind them has other numbers.
        def run(out, level, mode, *changes):
            self.aloft("probe", "run", "tiny.toml", "--out", out, "--level", level, "--set", f'train.mode="{mode}"',
                       "--set", "model.layers=2", *(word for change in changes for word in ("--set", change)))

        def compared(npu, bench):
            [line] = self.compare(npu, bench, "-o", "of_ops").stdout.decode().splitlines()
            return line, json.loads((self.folder / "of_ops/compare_result.json").read_text())

        for level in ("op", "mix"):
            for precision in ('precision="O0"', 'precision="O2:bf16"', 'precision="O1:bf16"'):
                with self.subTest(level=level, precision=precision):
                    for mode in ("graph", "eager"):
                        shutil.rmtree(self.folder / mode, ignore_errors=True)
                        run(mode, level, mode, precision)
                    for npu, bench in (("eager", "graph"), ("graph", "eager")):
                        line, said = compared(npu, bench)
                        self.assertIn("no divergence", line)
                        # What the compiled step has, the eager one has, too, but for the head and the loss in one op.
                        only = said["only_npu" if npu == "graph" else "only_bench"]
                        self.assertEqual([name for name in only if "cross_entropy" not in name], [])
                    if level == "op" and "O0" in precision:
                        self.assertNotEqual(said["only_bench"], [])  # else this shows nothing
            shutil.rmtree(self.folder / "graph")
            run("graph", level, "graph", 'precision="O0"')
            run("wrong", level, "eager", 'precision="O0"', "model.norm_eps=1e-3")
            line, said = compared("wrong", "graph")
            self.assertEqual(said["divergence"]["module"], "h.0.ln_1", line)
            self.assertEqual(said["divergence"]["kind"], "layer_norm")
            self.assertNotIn("called at", line)
            for out in ("graph", "wrong"):
                shutil.rmtree(self.folder / out)

    def test_a_loss_scale_is_no_divergence_of_ops(self):
        # The backward pass reshapes activations, which the scale leaves as they are.
        def run(out, level, mode, precision):
            self.aloft("probe", "run", "tiny.toml", "--out", out, "--level", level, "--set", f'train.mode="{mode}"',
                       "--set", f'precision="{precision}"')

        for level in ("op", "mix"):
            for mode in ("graph", "eager"):
                run(f"half-{level}-{mode}", level, mode, "O2:fp16")
            run(f"full-{level}", level, "graph", "O0")
            for mode in ("graph", "eager"):
                for npu, bench in ((f"half-{level}-{mode}", f"full-{level}"), (f"full-{level}", f"half-{level}-{mode}")):
                    line = self.compare(npu, bench, "-o", "scaled").stdout.decode()
                    self.assertIn("no divergence", line, (npu, bench))
            dump = json.loads((self.folder / f"half-{level}-graph/step0/rank/dump.json").read_text())
            self.assertGreater(dump["training"]["loss_scale"], 1)  # else this shows nothing

    def test_parameters_that_were_trained_apart_are_told_from_others(self):
        # One step, some way into a run, with its tensors: nothing is known of the steps before it.
        def run(out, *changes, mode="graph", precision="O0", rate=0.001):
            self.aloft("probe", "run", "tiny.toml", "--out", out, "--task", "tensor", "--steps", 4, "--at", 3,
                       "--set", f'train.mode="{mode}"', "--set", f'precision="{precision}"',
                       "--set", f"optimizer.lr={rate}", *(word for change in changes for word in ("--set", change)))
            path = self.folder / out / "step3/rank/dump.json"
            dump = json.loads(path.read_text())
            del dump["training"]  # which says the rate
            path.write_text(json.dumps(dump))

        run("whole")
        run("rounded", precision="O2:bf16")
        run("rate", rate=0.00101)
        # Sums over micro-batches are added up in another order.
        parts = ("train.batch=1", "train.accumulate=2")
        run("parts", *parts)
        run("eager-parts", *parts, mode="eager")
        for npu, bench in (("whole", "whole"), ("rounded", "whole"), ("whole", "rounded"), ("parts", "eager-parts")):
            line = self.compare(npu, bench, "-o", "trained").stdout.decode()
            self.assertIn("no divergence", line, (npu, bench))
        for npu, bench in (("rate", "whole"), ("whole", "rate")):
            line = self.compare(npu, bench, "-o", "trained").stdout.decode()
            self.assertIn("is another one before the step: it is off by", line)
            self.assertIn("in a typical element", line)

    def test_strict_is_an_exit_status(self):
        said = self.compare("eps/step0", "right/step0", "-o", "strict", "--strict", exit_code=5).stderr
        self.assertIn(b"E0842", said)
        self.assertTrue((self.folder / "strict/compare_result.html").exists())
        self.compare("right", "right", "-o", "strict_same", "--strict")
        # So is a pass that one run lacks: what is left agrees.
        shutil.copytree(self.folder / "right/step0", self.folder / "half")
        path = self.folder / "half/rank/dump.json"
        dump = json.loads(path.read_text())
        dump["data"] = {name: call for name, call in dump["data"].items() if ".forward." in name}
        path.write_text(json.dumps(dump))
        for arguments in (("half", "right/step0"), ("right/step0", "half")):
            said = self.compare(*arguments, "-o", "strict_half", "--strict", exit_code=5).stderr
            self.assertIn(b"run has no backward pass", said)
            self.assertIn(b"no divergence", self.compare(*arguments, "-o", "strict_half").stdout)
        self.compare("half", "half", "-o", "strict_half", "--strict")
        # So is a step of which one run has no dump.
        for run in ("all", "ended"):
            shutil.copytree(self.folder / "right", self.folder / run)
        (self.folder / "ended/step1/rank/dump.json").unlink()
        for arguments in (("ended", "all"), ("all", "ended")):
            done = self.compare(*arguments, "-o", "strict_ended", "--strict", exit_code=5)
            self.assertIn(b"E0842", done.stderr)
            for said in (done.stderr, done.stdout):
                self.assertIn(b"step1 of ended has no dump.json", b" ".join(said.split()))
            self.assertIn(b"no divergence", done.stdout)

    def page(self, path, width):
        """What a browser shows of a page in a window of that width."""
        if not BROWSER:
            self.skipTest("no chromium is installed")
        page = self.folder / "seen.html"
        page.write_text(path.read_text().replace("</body>", SEEN + "</body>"))
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={self.folder / 'browser'}", f"--window-size={width},1000", "--dump-dom", page.as_uri()],
            capture_output=True, text=True, timeout=120)
        if not done.stdout.strip():
            self.skipTest(f"{BROWSER} does not start")
        probe = re.search(r'<pre id="probe"[^>]*>(.*?)</pre>', done.stdout, re.S)
        self.assertTrue(probe, f"the page's scripts failed: {done.stderr[-2000:]}")
        return json.loads(html.unescape(probe[1]))

    def test_the_page_shows_what_parts_first(self):
        text = (self.folder / "right/step0/rank/dump.json").read_text()
        (self.folder / "other.names.json").write_text(text.replace("Module.", "Cell.network."))
        self.compare("eps/step0", "other.names.json", "-o", "page")
        for width in (NARROW, 1280):
            seen = self.page(self.folder / "page/compare_result.html", width)
            self.assertLessEqual(seen["page"], width)
            self.assertEqual(seen["words"], [])
            self.assertEqual(seen["sections"][:3], ["divergence", "loop", "all"])
            # Where no head of a table is shown, a cell says what it is.
            for label in ("place", "what", "off by", "rounding explains"):
                self.assertEqual(any(label in said for said in seen["labels"]), width == NARROW, seen["labels"])
            name = "h.0.ln_1.LayerNorm.forward.0.output.0"
            for rows in (seen["inputs"], seen["compared"]):
                self.assertEqual(rows[0][0], f"Module.{name}Cell.network.{name}")
                self.assertRegex(rows[0][5], r"^norm\d+\.\d+max\d+\.\d+min-\d+\.\d+mean-?\d+\.\d+(e-\d+)?$")
            self.assertEqual([row[2] for row in seen["inputs"][1:]], ["0"] * 3)  # what the call was given

    def test_the_page_of_all_steps_leads_to_each(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "faster", "--steps", 2, "--set", 'precision="O0"',
                   "--set", "optimizer.lr=0.02")
        last = self.compare("faster", "right", "-o", "many").stdout.decode().splitlines()[-1]
        self.assertTrue(last.startswith("first at step0: schedule: the learning rate"), last)
        seen = self.page(self.folder / "many/compare_result.html", NARROW)
        self.assertLessEqual(seen["page"], NARROW)
        self.assertEqual(seen["sections"], ["steps"])
        self.assertEqual(seen["links"], [f"compare_result_step{i}.html" for i in range(2)])
        self.assertTrue(seen["steps"][0][1].startswith("first divergence: schedule: "), seen["steps"])
        self.assertTrue(seen["steps"][1][1].startswith("also: "), seen["steps"])
        # What the loops say has its figures on the page.
        [row] = [row for row in self.page(self.folder / "many/compare_result_step0.html", 1280)["loop"]
                 if row[0] == "schedule"]
        self.assertIn("the learning rate is 0.02 against", row[1])

    def test_the_page_says_what_one_run_lacks_beside_a_divergence(self):
        shutil.copytree(self.folder / "eps/step0", self.folder / "eps-half")
        path = self.folder / "eps-half/rank/dump.json"
        dump = json.loads(path.read_text())
        dump["data"] = {name: call for name, call in dump["data"].items() if ".forward." in name}
        path.write_text(json.dumps(dump))
        self.assertIn(b"first divergence", self.compare("eps-half", "right/step0", "-o", "page_half").stdout)
        runs = self.page(self.folder / "page_half/compare_result.html", 1280)["runs"]
        self.assertRegex(runs, r" \d+ of \d+ tensors compared; the first run has no backward pass$")

    def test_another_step_is_other_parameters(self):
        line = self.compare("right/step1", "right/step0", "-o", "steps").stdout.decode()
        self.assertIn("is another one before the step", line)

    def test_names_are_mapped(self):
        text = (self.folder / "right/step0/rank/dump.json").read_text()
        (self.folder / "renamed.json").write_text(text.replace("Module.h.0.drop_attn.", "Module.x.y."))
        name = "Module.h.0.drop_attn.Dropout.forward.0"
        (self.folder / "map.toml").write_text('[modules]\n"*.0.drop_attn" = "x.y"\n')
        (self.folder / "map.json").write_text('{"modules": {"h.*.drop_attn": "x.y"}}')
        (self.folder / "map.yaml").write_text("modules:\n  h.*.drop_attn: x.y\n")
        # msprobe's --data_mapping.
        (self.folder / "data.yml").write_text(f"{name}.output.0: Module.x.y.Dropout.forward.0.output.0\n")
        for arguments, alone in (([], [name]), *((["--map", f"map.{kind}"], []) for kind in ("toml", "json", "yaml")),
                                 (["--map", "data.yml"], [])):
            self.compare("right/step0", "renamed.json", "-o", "mapped", *arguments)
            said = json.loads((self.folder / "mapped/compare_result.json").read_text())
            self.assertEqual([n for n in said["only_npu"] if ".forward." in n], alone)

    def test_lines_of_a_map_without_effect_are_named(self):
        def said(text, exit_code=0):
            (self.folder / "lines.toml").write_text("[modules]\n" + text)
            return self.compare("right", "right", "--map", "lines.toml", "-o", "lines", exit_code=exit_code).stderr

        # Of two steps each line is named once.
        told = said('"h.0.mlp" = "h.0.mlp"\n"h.0.mpl" = "x"\n')
        self.assertEqual(told.count(b"h.0.mpl"), 1, told)
        self.assertIn(b'warning: lines of lines.toml without an effect, 1 of 2: "h.0.mpl: x" (not in the first', told)
        told = said('"h.0.mlp" = "h.0.mpl"\n', exit_code=2)
        self.assertIn(b"E0728", told)
        self.assertIn(b"not in the second dump", told)

    def test_dumps_without_figures_are_no_agreement(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "structure", "--task", "structure")
        for other in ("structure", "right/step0"):
            said = self.compare("structure/step0", other, "-o", "bare", "--strict", exit_code=3).stderr
            self.assertIn(b"E0651", said)
            self.assertIn(b"no figures", said)

    def test_what_is_no_dump_is_refused(self):
        (self.folder / "cut.json").write_text((self.folder / "right/step0/rank/dump.json").read_text()[:2000])
        (self.folder / "other.json").write_text('{"data": []}')
        (self.folder / "empty").mkdir()
        for path, code in (("cut.json", b"E0650"), ("other.json", b"E0650"), ("empty", b"E0651"), ("none", b"E0651"),
                           ("text.txt", b"E0650")):
            said = self.compare(path, "right/step0", "-o", "refused", exit_code=3).stderr
            self.assertIn(code, said)
            self.assertFalse([p.name for p in (self.folder / "refused").glob("*")])
        self.compare("right", "right", "--map", "text.txt", "-o", "refused", exit_code=2)
        self.compare("right", exit_code=2)
        os.mkfifo(self.folder / "pipe.yaml")
        for no_file in ("empty", "pipe.yaml"):
            said = self.compare("right", "right", "--map", no_file, "-o", "refused", exit_code=2).stderr
            self.assertIn(b"E0728", said)
            self.assertIn(b"no regular file", said)

    def test_elements_are_compared(self):
        # Of torch.save and of numpy: a vector of 32 numbers, and the same in double with one that is other.
        path = ROOT / "tests/fuzz/corpus/torch_file/tensor.pt"
        torch_file = path.read_bytes()
        with zipfile.ZipFile(path) as packed:
            [stored] = [name for name in packed.namelist() if name.endswith("/data/0")]
            values = struct.unpack("<32f", packed.read(stored))
        head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (32,), }"
        off = (values[0] * 1.25, *values[1:])
        numpy_file = b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + struct.pack("<32d", *off)
        for side, name, content in (("torch", "x.pt", torch_file), ("numpy", "x.npy", numpy_file)):
            record = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [32], "data_name": name}
            data = {"Module.a.A.forward.0": {"input_args": [], "input_kwargs": {}, "output": [record]}}
            (self.folder / side / "dump_tensor_data").mkdir(parents=True)
            (self.folder / side / "dump_tensor_data" / name).write_bytes(content)
            (self.folder / side / "dump.json").write_text(json.dumps({"task": "tensor", "data": data}))
        self.assertIn(b"no divergence", self.compare("torch", "torch", "-o", "same").stdout)
        line = self.compare("numpy", "torch", "-o", "elements").stdout.decode()
        self.assertIn("what a gives (0) is off by", line)
        with open(self.folder / "elements/compare_result.csv", newline="", encoding="utf-8") as file:
            [row] = csv.DictReader(file)
        self.assertAlmostEqual(float(row["MaxAbsErr"]), abs(values[0]) / 4, delta=1e-6)
        self.assertAlmostEqual(float(row["MaxRelativeErr"]), 0.25, delta=1e-6)
        self.assertAlmostEqual(float(row["One Thousandth Err Ratio"]), 31 / 32, delta=1e-9)

    def test_checksums_are_compared(self):
        tiny = ("probe", "run", "tiny.toml", "--task", "tensor", "--set", 'probe.summary="md5"')
        self.aloft(*tiny, "--out", "sums")
        self.aloft(*tiny, "--out", "sums-eps", "--set", "model.norm_eps=1e-3")
        for npu, bad in (("sums", "pass"), ("sums-eps", "error")):
            said = self.compare(npu, "sums", "-o", "of_sums").stdout.decode()
            self.assertEqual("the same bytes" in said, npu == "sums", said)
            with open(self.folder / "of_sums/compare_result.csv", newline="", encoding="utf-8") as file:
                rows = {row["NPU Name"]: row for row in csv.DictReader(file)}
            row = rows["Module.h.0.ln_1.LayerNorm.forward.0.output.0"]
            self.assertEqual(row["Result"], bad)
            self.assertEqual(row["NPU MD5"] == row["BENCH MD5"], npu == "sums")
            self.assertRegex(row["NPU MD5"], "^[0-9a-f]{8}$")
            self.assertEqual(rows["Module.wte.Embedding.forward.0.output.0"]["Result"], "pass")

    def test_a_file_that_cannot_be_read_is_a_row_of_its_own(self):
        # Of two files of elements the first run's one is none; all else is compared.
        path = ROOT / "tests/fuzz/corpus/torch_file/tensor.pt"
        for side in ("a", "b"):
            shutil.copytree(self.folder / "right/step0", self.folder / side)
            path_of_dump = self.folder / side / "rank/dump.json"
            dump = json.loads(path_of_dump.read_text())
            dump["task"] = "tensor"
            (path_of_dump.parent / "dump_tensor_data").mkdir()
            for name in ("Module.ln_f.LayerNorm.forward.0", "Module.h.0.ln_1.LayerNorm.forward.0"):
                record = dump["data"][name]["output"][0]
                record["data_name"] = f"{name}.pt"
                if "ln_1" in name:
                    record.update(shape=[32], Max=1.4507277011871338, Min=0.41979336738586426,
                                  Mean=0.976774730719626, Norm=5.6818370077390785)
                    (path_of_dump.parent / "dump_tensor_data" / f"{name}.pt").write_bytes(path.read_bytes())
                else:
                    content = b"PK\3\4 nothing" if side == "a" else path.read_bytes()
                    (path_of_dump.parent / "dump_tensor_data" / f"{name}.pt").write_bytes(content)
            path_of_dump.write_text(json.dumps(dump))
        done = self.compare("a", "b", "-o", "bad_elements", "--strict", exit_code=3)
        self.assertIn(b"E0652", done.stderr)
        name = "Module.ln_f.LayerNorm.forward.0.output.0"
        line = done.stdout.decode().splitlines()[0]
        self.assertTrue(line.startswith("of 2 tensors the elements cannot be read"), line)  # the second's is too small
        self.assertIn(name, line)
        self.assertIn("no divergence", line.partition(";")[0])  # of the page the first line has it
        said = json.loads((self.folder / "bad_elements/compare_result.json").read_text())
        self.assertEqual([(one["name"], one["file"].split("/")[0]) for one in said["unreadable"]], [(name, "a"), (name, "b")])
        self.assertTrue(all(one["why"] for one in said["unreadable"]))
        with open(self.folder / "bad_elements/compare_result.csv", newline="", encoding="utf-8") as file:
            rows = {row["NPU Name"]: row for row in csv.DictReader(file)}
        self.assertEqual((rows[name]["Cosine"], rows[name]["Result"]), ("unreadable", "error"))
        self.assertIn("cannot be read", rows[name]["Err_message"])
        self.assertNotEqual(rows[name]["Difference"], "")  # by the statistics
        self.assertEqual(rows["Module.h.0.ln_1.LayerNorm.forward.0.output.0"]["Cosine"], "1")
        self.assertIn("cannot be read", (self.folder / "bad_elements/compare_result.html").read_text())

    def test_names_of_others_neither_colour_the_terminal_nor_make_a_line(self):
        """A name may hold what a terminal obeys, a line break, or what a program of tables computes."""
        name, formula = "Functional.evil\x1b[31m\x07\nno divergence.0.forward", "=HYPERLINK(1).x.0.forward"
        for folder, size in (("evil", 2.0), ("good", 1.0)):
            tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "requires_grad": False,
                      **dict.fromkeys(("Max", "Min", "Mean", "Norm"), size)}
            call = {"input_args": [], "input_kwargs": {}, "output": [tensor]}
            (self.folder / folder).mkdir()
            (self.folder / folder / "dump.json").write_text(json.dumps(
                {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
                 "data": {name: call, formula: call}}))
        said = self.compare("evil/dump.json", "good/dump.json", "-o", "evil_good", "--strict", exit_code=5)
        self.assertIn(b"evil\\x1b[31m\\x07\\nno divergence", said.stdout)
        for text in (said.stdout, said.stderr):
            self.assertEqual(set(text) & {0x1b, 0x07}, set())
            self.assertNotRegex(text, rb"(?m)^no divergence")
        with (self.folder / "evil_good/compare_result.csv").open(newline="") as table:
            cells = [row[0] for row in csv.reader(table)]
        self.assertEqual([cell for cell in cells if "HYPERLINK" in cell], ["'" + formula + ".output.0"])

    def test_what_is_matched_by_structure_is_said(self):
        text = (self.folder / "right/step0/rank/dump.json").read_text()
        (self.folder / "other_names.json").write_text(text.replace(".mlp.c_fc.", ".mlp.up."))
        self.compare("right/step0", "other_names.json", "-o", "other_names")
        said = json.loads((self.folder / "other_names/compare_result.json").read_text())
        self.assertIn({"npu": "h.0.mlp.c_fc", "bench": "h.0.mlp.up", "by": "structure"}, said["renamed"])
        self.assertTrue(all(one["npu"].endswith(".c_fc") for one in said["renamed"]), said["renamed"])
        with open(self.folder / "other_names/compare_result.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["Bench Name"] != "N/A":
                    self.assertEqual(row["Matched by"], "structure" if ".c_fc." in row["NPU Name"] else "name", row)
        self.assertIn("Matched by other than the name", (self.folder / "other_names/compare_result.html").read_text())


if __name__ == "__main__":
    main()
