"""What the probe says behind a step: recipe changes that are tried, calls made again, steps made again."""
import csv
import json
import shutil
import struct
import zipfile
import zlib

from arrays import CLASSES
from program import ProgramTest, main

PRECISIONS = ("O0", "O2:bf16", "O2:fp16", "O1:bf16")


class Checks(ProgramTest):
    def checked(self, folder):
        return json.loads((self.folder / folder / "accuracy_checking.json").read_text())

    def test_all_calls_of_a_step_are_what_their_ops_mean(self):
        lines = [",".join([*(str((i * j) % 7) for j in range(16)), str(i % 3)]) for i in range(64)]
        (self.folder / "classes.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "classes.toml").write_text(CLASSES)
        resnet = CLASSES.replace('family = "lenet"\nfilters = 8\nhidden = 16', 'family = "resnet"')
        (self.folder / "resnet.toml").write_text(resnet)
        for recipe, op in (("tiny", "linear"), ("classes", "conv2d"), ("resnet", "batch_norm")):
            for precision in PRECISIONS:
                with self.subTest(recipe=recipe, precision=precision):
                    self.aloft("probe", "run", f"{recipe}.toml", "--out", "calls", "--task", "acc_check",
                               "--set", "optimizer.lr=0.0001", "--set", f'precision="{precision}"')
                    self.aloft("probe", "acc-check", "calls", "--out", "well")
                    calls = self.checked("well")
                    self.assertIn(op, {call["op"] for call in calls})
                    self.assertEqual({call["phase"] for call in calls}, {"forward", "backward", "update"})
                    self.assertEqual({call["step"] for call in calls}, {"step0"})
                    for call in calls:
                        self.assertEqual((call["result"], call["message"]), ("pass", ""), call["name"])
                        self.assertTrue(call["results"])
                    numbers = [call["entry"] for call in calls if call["step"] == "step0"]
                    self.assertEqual(len(numbers), len(set(numbers)))
                shutil.rmtree(self.folder / "calls")

    def test_updates_are_judged_by_what_their_bytes_stand_for(self):
        for keys in (['optimizer.master="split"'], ['optimizer.states="8bit"'], ['optimizer.states="bf16"'],
                     ['optimizer.kind="lamb"', 'precision="O0"'], ['optimizer.kind="lars"'],
                     ['optimizer.kind="bert_adam"']):
            with self.subTest(keys=keys):
                given = [word for key in keys for word in ("--set", key)]
                self.aloft("probe", "run", "tiny.toml", "--out", "calls", "--task", "acc_check", "--at", "1",
                           "--steps", "2", *given)
                self.aloft("probe", "acc-check", "calls", "--out", "well")
                updates = [call for call in self.checked("well") if call["phase"] == "update"]
                self.assertTrue(updates)
                self.assertEqual({(call["result"], call["message"]) for call in updates}, {("pass", "")})
            shutil.rmtree(self.folder / "calls")

    def test_a_call_that_is_wrong_is_named(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "damaged", "--task", "acc_check")
        folder = self.folder / "damaged/step0/rank"
        dump = json.loads((folder / "dump.json").read_text())
        for call, message in (("linear.0", "ulp"), ("layer_norm.0", "benchmark"), ("embedding.0", "must be")):
            entry = next(name for name in dump["data"] if name.startswith(f"Torch.{call}."))
            path = folder / "dump_tensor_data" / dump["data"][entry]["output"][0]["data_name"]
            whole = path.read_bytes()
            with zipfile.ZipFile(path) as archive:
                place = whole.index(archive.read("archive/data/0"))
                size = archive.getinfo("archive/data/0").file_size
            wrong = bytearray(whole)
            for i in range(place, place + size // 4):  # a quarter of its elements
                wrong[i] ^= 0x21
            crc = [zlib.crc32(b[place:place + size]).to_bytes(4, "little") for b in (whole, bytes(wrong))]
            path.write_bytes(bytes(wrong).replace(*crc))
            said = self.aloft("probe", "acc-check", "damaged", "--out", "wrong", exit_code=5)
            self.assertIn(b"E0864", said.stderr)
            first = next(call for call in self.checked("wrong") if call["result"] == "error")
            self.assertEqual(first["entry"], entry)
            self.assertEqual(first["kernel"], dump["data"][entry]["call"]["kernel"])
            self.assertIn(message, first["message"])
            self.assertIn(entry.encode(), said.stdout)
            with (self.folder / "wrong/accuracy_checking_result.csv").open() as file:
                rows = {row["API Name"]: row for row in csv.DictReader(file)}
            self.assertEqual(rows[entry]["Result"], "error")
            path.write_bytes(whole)
        self.aloft("probe", "acc-check", "damaged", "--out", "wrong")

    def test_a_single_element_of_a_product_that_is_wrong_is_named(self):
        # No share of elements shows it.
        self.aloft("probe", "run", "tiny.toml", "--out", "single", "--task", "acc_check",
                   "--set", 'probe.list=["h.0.mlp.c_fc"]', "--set", 'precision="O0"')
        folder = self.folder / "single/step0/rank"
        dump = json.loads((folder / "dump.json").read_text())
        entry = next(name for name in dump["data"] if name.startswith("Torch.linear."))
        path = folder / "dump_tensor_data" / dump["data"][entry]["output"][0]["data_name"]
        whole = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            right = archive.read("archive/data/0")
        wrong = right[:20] + struct.pack("<f", 1e6) + right[24:]
        crc = [zlib.crc32(b).to_bytes(4, "little") for b in (right, wrong)]
        path.write_bytes(whole.replace(right, wrong).replace(*crc))
        self.aloft("probe", "acc-check", "single", "--out", "wrong", exit_code=5)
        calls = {call["entry"]: call for call in self.checked("wrong")}
        self.assertEqual(calls[entry]["result"], "error")
        self.assertIn("an element is 1000000", calls[entry]["message"])
        self.assertEqual(calls[entry]["results"][0]["worst"], 5)

    def test_a_single_small_element_in_a_low_type_is_named(self):
        # Beside elements that are many times as large. The files of all results are copies, which no call takes.
        for precision, low in (("O2:bf16", "bf16["), ("O2:fp16", "f16[")):
            self.aloft("probe", "run", "tiny.toml", "--out", "low", "--task", "acc_check",
                       "--set", f'precision="{precision}"', "--set", "optimizer.lr=0.0001")
            self.aloft("probe", "acc-check", "low", "--out", "well")
            folder = self.folder / "low/step0/rank"
            dump = json.loads((folder / "dump.json").read_text())
            altered = {}
            for call in self.checked("well"):
                for i, result in enumerate(call["results"]):
                    if result["standard"] == "benchmark" and result["type"].startswith(low):
                        record = dump["data"][call["entry"]]["output"][i]
                        where = self.alter_small_element(folder / "dump_tensor_data", record, low == "f16[")
                        if where is not None:
                            altered[call["entry"], i] = where
            self.assertGreater(len(altered), 20)
            (folder / "dump.json").write_text(json.dumps(dump))
            self.aloft("probe", "acc-check", "low", "--out", "wrong", exit_code=5)
            for call in self.checked("wrong"):
                for i, result in enumerate(call["results"]):
                    where = altered.get((call["entry"], i))
                    with self.subTest(call["name"], kind=precision):
                        self.assertEqual(result["result"], "pass" if where is None else "error", result)
                        if where is not None:
                            self.assertEqual(result["worst"], where)
            shutil.rmtree(self.folder / "low")

    @staticmethod
    def alter_small_element(folder, record, is_f16):
        """Doubles one that is a quarter of the root mean square, or nearest to that, in a copy of its file. Which."""
        path = folder / record["data_name"]
        whole = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            right = archive.read("archive/data/0")
        words = struct.unpack(f"<{len(right) // 2}H", right)
        values = struct.unpack(f"<{len(words)}e", right) if is_f16 else struct.unpack(
            f"<{len(words)}f", struct.pack(f"<{len(words)}I", *(w << 16 for w in words)))
        size = (sum(v * v for v in values) / len(values)) ** 0.5
        where = min(range(len(values)), key=lambda i: abs(abs(values[i]) - size / 4))
        if len(values) < 2 or not size > 0 or not values[where]:
            return None
        step = 1 << (10 if is_f16 else 7)  # twice it: one more in the exponent
        wrong = right[:2 * where] + struct.pack("<H", words[where] + step) + right[2 * where + 2:]
        crc = [zlib.crc32(b).to_bytes(4, "little") for b in (right, wrong)]
        record["data_name"] = "altered-" + record["data_name"]
        (folder / record["data_name"]).write_bytes(whole.replace(right, wrong).replace(*crc))
        return where

    @staticmethod
    def alter(folder, record, change):
        """A copy of a record's file in which `change` made other bytes: other calls name the file, too."""
        path = folder / "dump_tensor_data" / record["data_name"]
        whole = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            right = archive.read("archive/data/0")
        wrong = change(right)
        crc = [zlib.crc32(b).to_bytes(4, "little") for b in (right, wrong)]
        record["data_name"] = "altered-" + record["data_name"]
        path.with_name(record["data_name"]).write_bytes(whole.replace(right, wrong).replace(*crc))

    def test_integers_and_what_is_moved_are_judged_to_the_bit(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "bits", "--task", "acc_check",
                   "--set", 'precision="O0"', "--set", "model.dropout=0.1")
        folder = self.folder / "bits/step0/rank"
        good = (folder / "dump.json").read_text()

        def found_wrong(of, changes):
            """`changes`: of the records of the first such call. What is said of the call, alone of all."""
            dump = json.loads(good)
            entry, parts = next((name, parts) for name, parts in dump["data"].items() if of(parts))
            for kind, number, change in changes:
                self.alter(folder, parts["input" if kind == "input" and "input" in parts else
                                         "input_args" if kind == "input" else kind][number], change)
            (folder / "dump.json").write_text(json.dumps(dump))
            self.aloft("probe", "acc-check", "bits", "--out", "wrong", exit_code=5)
            [wrong] = [call for call in self.checked("wrong") if call["result"] == "error"]
            self.assertEqual((wrong["entry"], wrong["results"][0]["standard"]), (entry, "binary"))
            return wrong

        def put(number):
            return lambda right: right[:8] + struct.pack("<q", number) + right[16:]

        def counts(parts):
            return parts["call"]["op"] == "add" and parts["output"][0]["dtype"] == "torch.int64"

        wrong = found_wrong(counts, [("output", 0, lambda right: put(struct.unpack("<q", right[8:16])[0] + 1)(right))])
        self.assertRegex(wrong["message"], "^an element is 2, and must be 1$")
        # Numbers so large that doubles do not tell them apart.
        large = 1 << 60
        wrong = found_wrong(counts, [("input", 0, put(large)), ("input", 1, put(0)), ("output", 0, put(large + 1))])
        self.assertEqual(wrong["message"], f"an element is {large + 1}, and must be {large}")
        wrong = found_wrong(lambda parts: parts["call"]["op"] == "embedding",
                            [("output", 0, lambda right: right[:8] + bytes([right[8] ^ 1]) + right[9:])])
        self.assertEqual(wrong["results"][0]["worst"], 2)

    def test_a_list_that_means_no_call_is_refused(self):
        said = self.aloft("probe", "run", "tiny.toml", "--out", "nobody", "--task", "acc_check",
                          "--set", 'probe.list=["h.0.mlp.c_fx"]', exit_code=2).stderr
        for part in (b"E0327", b"saw h.0.mlp.c_fx", b'try "h.0.mlp.c_fc" for "h.0.mlp.c_fx"'):
            self.assertIn(part, b" ".join(said.split()))
        self.assertFalse((self.folder / "nobody").exists())

    def test_what_cannot_be_checked_is_an_error_of_its_call(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "half", "--task", "acc_check",
                   "--set", 'probe.list=["h.0.mlp"]')
        folder = self.folder / "half/step0/rank"
        dump = json.loads((folder / "dump.json").read_text())
        self.assertTrue(all("h.0.mlp" in entry["call"]["name"] for entry in dump["data"].values()))
        entry = next(iter(dump["data"]))
        good = (folder / "dump.json").read_text()

        def damage(change):
            data = json.loads(good)
            change(data["data"][entry])
            (folder / "dump.json").write_text(json.dumps(data))
            self.aloft("probe", "acc-check", "half", "--out", "odd", exit_code=5)
            wrong = [call for call in self.checked("odd") if call["result"] == "error"]
            self.assertEqual([call["entry"] for call in wrong], [entry])
            return wrong[0]["message"]

        # Another type than the file's, which has as many elements, or as many bytes.
        for part in ("input_args", "output"):
            for other in ("torch.float32", "torch.float16", "torch.int64"):
                said = damage(lambda e: e[part][0].update(dtype=other))
                for word in ("saw torch.bfloat16", f"need {other}", f"{part.removesuffix('_args')}.0.pt"):
                    self.assertIn(word, said)
        damage(lambda e: e["call"].update(op="no_such_op"))
        damage(lambda e: e["call"].update(attrs="{"))
        damage(lambda e: e["output"][0].update(shape=[1 << 40, 1 << 40]))
        for extent in (3.7e65, 2.5, "8", None):
            said = damage(lambda e: e["output"][0].update(shape=[2, extent]))
            self.assertIn("a shape that is none", said)
        damage(lambda e: e["output"][0].update(data_name="../../../run/run.json"))
        damage(lambda e: e["output"][0].update(data_name="gone.pt"))
        # What the system does not give, as a name that is too long, or a circle of links.
        (folder / "dump_tensor_data/circle.pt").symlink_to("circle.pt")
        self.assertIn("circle.pt", damage(lambda e: e["output"][0].update(data_name="circle.pt")))
        self.assertIn("n" * 200, damage(lambda e: e["output"][0].update(data_name="n" * 300)))
        # Figures that the tensor does not have.
        for key in ("Max", "Min", "Mean", "Norm"):
            for wrong in (1e3, "nan", "inf"):
                said = damage(lambda e: e["output"][0].update({key: wrong}))
                self.assertRegex(said, f'^[^ ]*output.0.pt is not what dump.json says: {key} is .*, and in dump.json')
        damage(lambda e: e["output"].clear())
        damage(lambda e: e.pop("output"))
        (folder / "dump.json").write_text(good)
        self.aloft("probe", "acc-check", "half", "--list", "c_fc")
        for bad in ("{}", "[", '{"data": []}', '{"data": {"a": 1}}'):
            (folder / "dump.json").write_text(bad)
            self.assertIn(b"E0863", self.aloft("probe", "acc-check", "half", exit_code=3).stderr)
        self.assertIn(b"E0863", self.aloft("probe", "acc-check", "nothing", exit_code=3).stderr)

    def test_steps_that_were_not_checked_are_said(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "steps", "--task", "acc_check", "--steps", "2", "--at", "0,1",
                   "--set", 'probe.list=["h.0.mlp.c_fc"]')
        second = self.folder / "steps/step1/rank/dump.json"
        whole = second.read_text()
        (self.folder / "steps/step7").mkdir()

        def said():
            done = self.aloft("probe", "acc-check", "steps", "--out", "left", exit_code=3)
            self.assertIn(b"E0940", done.stderr)
            unread = {call["step"]: call["message"] for call in self.checked("left") if not call["entry"]}
            for step in unread:
                self.assertIn(f"{step}: not checked: ".encode(), done.stdout)
            with (self.folder / "left/accuracy_checking_result.csv").open() as file:
                rows = {row["Step"]: row["Result"] for row in csv.DictReader(file)}
            self.assertEqual({step: rows[step] for step in unread}, dict.fromkeys(unread, "error"))
            self.assertEqual(rows["step0"], "pass")
            return unread

        self.assertEqual(list(said()), ["step7"])
        second.unlink()
        self.assertEqual(set(said()), {"step1", "step7"})
        second.write_text(whole[:-10])  # of a program that was ended
        self.assertIn("saw no dump of msprobe's form", said()["step1"])
        second.write_text(whole)
        (self.folder / "steps/step7").rmdir()
        self.aloft("probe", "acc-check", "steps", "--out", "left")

    def test_names_are_cells_of_the_tables(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "named", "--task", "acc_check",
                   "--set", 'probe.list=["h.0.mlp.c_fc"]')
        path = self.folder / "named/step0/rank/dump.json"
        dump = json.loads(path.read_text())
        entries = list(dump["data"])
        names = ['a,b "c"', "=1+2", "+x", "@SUM(A1)", "-y", "two\nlines"]
        for i, name in enumerate(names):
            dump["data"][name] = json.loads(json.dumps(dump["data"][entries[0]]))
            dump["data"][name]["call"].update(kernel=name, phase=name, name=name)
        dump["data"]["no, call"] = {}
        path.write_text(json.dumps(dump))
        self.aloft("probe", "acc-check", "named", "--out", "cells")
        shown = {name: "'" + name if name[0] in "=+@-" else name for name in names}
        for table in ("result", "details"):
            with (self.folder / f"cells/accuracy_checking_{table}.csv").open(newline="") as file:
                rows = {row["API Name"]: row for row in csv.DictReader(file)}
            for name in shown.values():
                self.assertEqual([rows[name][key] for key in ("Kernel", "Name", "Phase", "Result")],
                                 [name, name, name, "pass"])
                self.assertNotIn(None, rows[name])  # no cell too many
            self.assertEqual("no, call" in rows, table == "result")

    def test_entries_without_a_call_are_counted_and_named(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "few", "--task", "acc_check")
        path = self.folder / "few/step0/rank/dump.json"
        dump = json.loads(path.read_text())
        entries = list(dump["data"])
        kept = next(name for name in entries if name.startswith("Torch.linear."))
        for name in entries:
            if name != kept:
                del dump["data"][name]["call"]
        path.write_text(json.dumps(dump))
        others = [name for name in entries if name != kept]
        said = self.aloft("probe", "acc-check", "few").stdout.decode()
        self.assertIn(f"{len(entries)} entries, 1 of them with a `call`; not judged: ", said)
        self.assertIn(f" and {len(others) - 5} more", said)
        self.assertIn("1 calls, 0 of them not as their ops mean", said)
        found = json.loads(self.aloft("probe", "acc-check", "few", "--json").stdout)
        self.assertEqual({call["entry"]: call["result"] for call in found},
                         {kept: "pass", **dict.fromkeys(others, "skip")})
        self.assertEqual(found, self.checked("checked"))
        with (self.folder / "checked/accuracy_checking_result.csv").open() as file:
            rows = {row["API Name"]: row["Result"] for row in csv.DictReader(file)}
        self.assertEqual(rows, {call["entry"]: call["result"] for call in found})
        # One that --list asks for, and nothing else.
        (alone,) = (c for c in json.loads(self.aloft(
            "probe", "acc-check", "few", "--list", f"{kept},{others[0]}", "--json").stdout) if c["result"] == "skip")
        self.assertEqual(alone["entry"], others[0])
        # Where nothing is judged, nothing has passed.
        refused = self.aloft("probe", "acc-check", "few", "--list", others[0], exit_code=3).stderr
        self.assertIn(b"E0863", refused)
        self.assertIn(f"nothing but entries without a `call` (1): {others[0]}".encode(), refused)
        del dump["data"][kept]["call"]
        path.write_text(json.dumps(dump))
        self.assertIn(f"without a `call` ({len(entries)})".encode(),
                      self.aloft("probe", "acc-check", "few", exit_code=3).stderr)

    def test_writing_calls_changes_no_bit(self):
        self.aloft("train", "tiny.toml", "--out", "unseen")
        self.aloft("train", "tiny.toml", "--out", "seen", "--set", 'probe.task="acc_check"')
        for name in ("model.safetensors", "state.safetensors"):
            one, other = (self.folder / run / "checkpoints/step-000004" / name for run in ("unseen", "seen"))
            self.assertEqual(one.read_bytes(), other.read_bytes())
        self.assertEqual(len(list((self.folder / "seen/probe").glob("step*/rank/dump.json"))), 4)

    def test_changes_are_tried_on_the_step(self):
        # A scale that is too large: what lowers it works, and so does what has the range.
        scale = 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}'
        said = self.aloft("probe", "run", "tiny.toml", "--out", "scale", "--task", "overflow", "--set", scale)
        (step,) = json.loads((self.folder / "scale/overflow.json").read_text())["found"]
        self.assertEqual(step["first"]["dtype"], "torch.float16")
        self.assertEqual(step["decision"]["type"], "fp16")
        self.assertTrue(step["decision"]["reason"])
        values = step["values"]
        self.assertIn(values["value"], ("inf", "-inf", "nan"))
        self.assertEqual(values["largest_of_type"], 65504)
        self.assertGreater(abs(values["in_double"]), 1000)
        self.assertTrue(values["operands"])
        # They are of the result that is named, and a product is of no element of an operand.
        named = step.get("origin", step["first"])
        self.assertEqual(len(values["index"]), len(named["shape"]), named["name"])
        self.assertNotIn(named["op"], ("add", "mul", "cast"))
        for operand in values["operands"]:
            self.assertNotIn("there", operand)
        tried = {t["change"].split(" = ")[0]: t for t in step["tried"]}
        self.assertLessEqual({"precision.level", "precision.loss_scale", "precision"}, set(tried))
        # What leaves the call as it was is not offered; nor is a list of ops with a cast, which goes by what it feeds.
        for key in {"precision.fp32_layers", "precision.deny_ops"} & set(tried):
            self.assertFalse(tried[key].get("instead", "").startswith(step["first"]["name"] + ":"), tried[key])
            self.assertNotIn('"cast"', tried[key]["change"])
        for key in ("precision.level", "precision.loss_scale", "precision"):
            self.assertTrue(tried[key]["works"], tried[key])
            self.assertNotIn("instead", tried[key])
        for t in step["tried"]:
            self.assertTrue(t["means"])
            self.assertEqual(t["works"], "instead" not in t)
            self.assertIn(t["change"].encode(), said.stdout)
        self.assertIn(b"works: precision.level", said.stdout)
        # What is said to work does, and what is not does not.
        for t in step["tried"]:
            key, value = t["change"].split(" = ", 1)
            changed = {"level": '"O2:fp16"', "loss_scale": '{kind = "dynamic", init = 16777216}'}
            if "cannot be" in t.get("instead", ""):
                continue
            if key != "precision":
                changed[key.removeprefix("precision.")] = value
            if "bf16" in value:
                del changed["loss_scale"]
            whole = "{" + ", ".join(f"{k} = {v}" for k, v in changed.items()) + "}"
            self.aloft("probe", "run", "tiny.toml", "--out", "again", "--task", "overflow", "--set",
                       f"precision={value if key == 'precision' else whole}")
            found = json.loads((self.folder / "again/overflow.json").read_text())["found"]
            self.assertEqual(not found, t["works"], t["change"])
            shutil.rmtree(self.folder / "again")

    def test_changes_that_change_nothing_are_not_offered(self):
        self.aloft("probe", "run", "tiny.toml", "--out", "static", "--task", "overflow", "--set",
                   'precision={level = "O2:fp16", loss_scale = {kind = "static", init = 1e9}}', exit_code=None)
        found = json.loads((self.folder / "static/overflow.json").read_text())["found"][0]
        # The sweep stays in fp16 whatever is said of its layer or its op; a scale is a power of two.
        self.assertEqual([t["change"] for t in found["tried"]],
                         ['precision.level = "O2:bf16"', 'precision.loss_scale = { kind = "dynamic", init = 32768 }',
                          'precision = "O0"'])

    def test_a_call_that_is_named_otherwise_within_micro_batches_is_the_same(self):
        said = self.aloft("probe", "run", "tiny.toml", "--out", "batches", "--task", "overflow", "--set",
                          "train.accumulate=2", "--set", 'precision={level = "O2:fp16", loss_scale = 16777216}',
                          exit_code=None)
        found = json.loads((self.folder / "batches/overflow.json").read_text())["found"][0]
        self.assertEqual(found["first"]["op"], "linear_cross_entropy_sweep", said)
        self.assertEqual([t["change"].split(" = ")[0] for t in found["tried"]],
                         ["precision.level", "precision.loss_scale", "precision"])

    def test_a_gradient_that_a_sum_took_in_is_of_its_own_layer(self):
        # The program computes it with the sum behind it, and looks at it by computing it once more.
        (self.folder / "norms.toml").write_text(
            self.RECIPE.replace("layers = 1", "layers = 3").replace("dim = 16", "dim = 64").replace(
                "heads = 2", "heads = 4").replace("context = 8", "context = 32").replace(
                    "steps = 4", "steps = 25").replace("validation = 0.2", "validation = 0.05")
            + "[optimizer]\nlr = 0.3\nclip_norm = 0\n[schedule]\nwarmup = 20\n")
        of_norms = []
        for warmup, scale in ((20, 32768), (40, 32768), (40, 65536)):  # of several, for processors round differently
            out = f"norms-{warmup}-{scale}"
            self.aloft("probe", "run", "norms.toml", "--out", out, "--task", "overflow", "--steps", 16, "--set",
                       f'precision={{level = "O2:fp16", loss_scale = {{kind = "dynamic", init = {scale}}}}}',
                       "--set", f"schedule.warmup={warmup}", exit_code=None)
            found = json.loads((self.folder / out / "overflow.json").read_text())["found"]
            of_norms += [f for f in found[:1] if f["first"]["op"] == "layer_norm_grad"]
        self.assertTrue(of_norms)
        for entry in of_norms:
            module = entry["first"]["name"].split("/")[0]
            self.assertEqual(entry["first"]["module"], module)
            self.assertEqual(entry["decision"]["op"], "layer_norm_grad")
            self.assertEqual([t["change"] for t in entry["tried"] if "fp32_layers" in t["change"]],
                             [f'precision.fp32_layers = ["{module}"]'])
            self.assertFalse([t for t in entry["tried"] if "cannot be" in t.get("instead", "")], entry["tried"])

    def test_changes_are_tried_in_the_middle_of_a_run(self):
        # Weights that an update made too large: in the forward pass no scale is of use.
        wild = ["--set", 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 1024}}',
                "--set", "optimizer.lr=3000"]
        self.aloft("probe", "run", "tiny.toml", "--out", "wild", "--task", "overflow", "--steps", 3, *wild, exit_code=5)
        first, *rest = json.loads((self.folder / "wild/overflow.json").read_text())["found"]
        self.assertEqual(first["first"]["phase"], "forward")
        self.assertFalse(any(t["change"].startswith("precision.loss_scale") for t in first["tried"]))
        self.assertTrue(any(t["works"] for t in first["tried"] if t["change"].startswith("precision.level")))
        self.assertTrue(all("tried" not in other for other in rest))
        # The same of eager steps, which compiled programs make again.
        self.aloft("probe", "run", "tiny.toml", "--out", "eager", "--task", "overflow", "--steps", 3, *wild,
                   "--set", 'train.mode="eager"', exit_code=5)
        eager = json.loads((self.folder / "eager/overflow.json").read_text())["found"][0]
        self.assertEqual(eager["first"]["name"], first["first"]["name"])
        self.assertNotIn("instruction", eager["first"])
        for key in ("decision", "values", "tried"):
            self.assertTrue(first[key])
            self.assertEqual(eager[key], first[key])

    # The search of the scale comes first, and is harmless; what comes to stay has its explanation, too.
    def test_what_lasts_is_explained_beside_the_search_of_the_scale(self):
        late = ["--set", 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 16777216}}',
                "--set", "optimizer.lr=3000"]
        said = self.aloft("probe", "run", "tiny.toml", "--out", "late", "--task", "overflow", "--steps", 16, *late,
                          exit_code=5).stdout.decode()
        found = json.loads((self.folder / "late/overflow.json").read_text())["found"]
        lasting = next(i for i, one in enumerate(found) if one["first"]["phase"] == "forward")
        self.assertGreater(lasting, 0)
        self.assertGreater(len(found), lasting + 2)  # and all of them are in the file
        self.assertEqual([i for i, one in enumerate(found) if "tried" in one], [0, lasting])
        self.assertTrue(all(found[lasting][key] for key in ("decision", "values", "tried")))
        for one in (found[0], found[lasting]):
            step, first = one["step"], one["first"]
            self.assertIn(f"step {step} (in metrics {step + 1}), {first['name']}: {first['op']}:\n", said)
        again = [one["step"] for one in found[lasting + 1:]]
        self.assertIn(f"  the same in steps {again[0]}-{again[-1]}\n", said)
        self.assertEqual(said.count(f": {found[lasting]['first']['name']}: "), 1)
        self.assertIn("a skipped step changes no weight", said)

    def test_of_a_step_that_was_undone_no_change_is_tried(self):
        wild = ["--set", 'precision={level = "O2:fp16", loss_scale = {kind = "dynamic", init = 1024}}',
                "--set", "optimizer.lr=3000", "--set", 'train.on_nonfinite="rollback"']
        said = self.aloft("probe", "run", "tiny.toml", "--out", "undone", "--task", "overflow", "--steps", 3, *wild,
                          exit_code=5)
        self.assertIn(b"E0835", said.stderr)
        found = json.loads((self.folder / "undone/overflow.json").read_text())["found"]
        self.assertTrue(any("undone" in step for step in found))
        self.assertTrue(all("tried" not in step for step in found if "undone" in step))
        self.assertIn(b", undone: ", said.stdout)

    def test_a_step_is_made_again(self):
        self.aloft("train", "tiny.toml", "--out", "run", "--set", "train.checkpoint_every=2")
        said = self.aloft("probe", "redo", "run", "--step", 3, "--json")
        report = json.loads(said.stdout)
        self.assertEqual((report["step"], report["begins_at"], report["fault"]), (3, 2, None))
        self.assertEqual(report["recorded"], {"comparable": True, "steps": 2, "unrecorded": [], "parted_at": None,
                                              "numbers": [], "state_compared": True, "variables": [], "damaged": []})
        self.assertEqual(len(report["repeats"]), 3)
        text = self.aloft("probe", "redo", "run", "--step", 1, "--times", 2, "--same-memory").stdout
        self.assertIn(b"the same bits each time", text)
        self.assertIn(b"E0862", self.aloft("probe", "redo", "run", "--step", 4, exit_code=2).stderr)
        # A record that is another.
        path = self.folder / "run/metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if line["step"] == 3 and "loss" in line:
                line["loss"] *= 1 + 2e-7
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        said = self.aloft("probe", "redo", "run", "--step", 3, exit_code=5)
        self.assertIn(b"E0861", said.stderr)
        self.assertIn(b"step 2 (in metrics 3) has other numbers", said.stdout)
        # The checkpoint behind the step has its bits: it is the line that was changed.
        self.assertIn(b"the state behind it is that of the run's checkpoint, to the bit", said.stdout)
        self.assertIn(b"can be gone on from", said.stderr)
        self.assertNotIn(b"do not go on", said.stderr)
        self.assertIn(b"do not go on", self.aloft("probe", "redo", "run", "--step", 2, exit_code=5).stderr)

    def test_a_record_of_other_types_is_no_crash(self):
        self.aloft("train", "tiny.toml", "--out", "typed", "--set", "train.checkpoint_every=2")
        path = self.folder / "typed/metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]

        def said(key, value, exit_code=5):
            of = [dict(line) for line in lines]
            for line in of:
                if line["step"] == 4 and "loss" in line:
                    line.pop(key) if value is None else line.update({key: value})
            path.write_text("".join(json.dumps(line) + "\n" for line in of))
            return self.aloft("probe", "redo", "typed", "--step", 3, exit_code=exit_code).stdout

        self.assertIn(b'skipped was "x", which is neither', said("skipped", "x"))
        self.assertIn(b"skipped was 1, which is neither", said("skipped", 1))
        self.assertIn(b"grad_norm is", said("grad_norm", None))
        said("skipped", False, exit_code=0)
        record = self.folder / "typed/run.json"
        whole = json.loads(record.read_text())
        for key in ("mode", "signature", "aloft", "machine"):
            record.write_text(json.dumps({**whole, key: 7}))
            self.aloft("probe", "redo", "typed", "--step", 3, exit_code=0)
        record.write_text(json.dumps({**whole, "history": [{"changed": {"a": 1}, "step": "x"}]}))
        self.assertIn(b"E0643", self.aloft("probe", "redo", "typed", "--step", 3, exit_code=3).stderr)

    def test_a_damaged_overflow_file_is_kept(self):
        self.aloft("train", "tiny.toml", "--out", "kept", "--probe", "overflow", "--set", "train.checkpoint_every=2")
        path = self.folder / "kept/probe/overflow.json"
        damaged = path.read_bytes()[:-3]
        path.write_bytes(damaged)
        said = self.aloft("train", "tiny.toml", "--out", "kept", "--probe", "overflow", "--resume", "--steps", 6)
        self.assertIn(b"overflow.json.damaged", said.stderr)
        self.assertEqual((path.parent / "overflow.json.damaged").read_bytes(), damaged)
        self.assertEqual(json.loads(path.read_text())["steps"], 2)


if __name__ == "__main__":
    main()
