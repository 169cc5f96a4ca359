"""`aloft generate` as a user meets it: what is text and what is talk, ends, contexts, many texts."""
import array
import json
import re
import signal
import subprocess
import time

from program import ALOFT, ROOT, ProgramTest, main


class Generate(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.aloft("train", "tiny.toml", "--out", "run", "--set", "optimizer.lr=1e-2", "--steps", 60)

    def text(self, *arguments):
        return self.aloft("generate", "run", *arguments).stdout

    def test_a_pipe_gets_the_text_and_nothing_else(self):
        arguments = ["--prompt", "the\n", "--tokens", 12, "--seed", 5]
        done = self.aloft("generate", "run", *arguments)
        [drawn] = self.parsed("generate", "run", *arguments, "--json")
        self.assertEqual(done.stdout, bytes(drawn["tokens"]))  # a byte a token: exact
        self.assertEqual(len(done.stdout), 12)
        self.assertEqual((drawn["prompt"], drawn["seed"], drawn["ended"]), ("the\n", 5, False))
        talk = done.stderr.decode()
        self.assertIn(r"prompt $'the\n' (4 tokens)", talk)
        self.assertIn("12 tokens, ", talk)

    def test_a_terminal_shows_the_prompt_and_obeys_nothing(self):
        shown = self.on_terminal("generate", "run", "--prompt", "the\x1b[2J", "--tokens", 5, "--seed", 5)
        self.assertTrue(shown.startswith(b"the\\x1b[2J"), shown)
        shown = self.on_terminal("generate", "run", "--prompt", "a", "--tokens", 200,
                                 "--temperature", 100)  # any of the 256 bytes
        self.assertFalse(set(shown) & (set(range(32)) - {9, 10, 13} | {127}), shown)
        self.assertIn(b"\\x", shown)

    def test_the_means_of_the_weights_write_another_text(self):
        self.aloft("train", "tiny.toml", "--out", "average", "--set", "optimizer.lr=1e-2", "--set",
                   "optimizer.average=ema", "--steps", 60)
        arguments = ["--prompt", "the", "--tokens", 40, "--seed", 5]
        live = self.aloft("generate", "average", *arguments).stdout
        self.assertEqual(live, self.text(*arguments))  # means change nothing that is learnt
        means = self.aloft("generate", "average", "--average", *arguments).stdout
        self.assertNotEqual(means, live)
        self.assertIn("error E0830", self.aloft("generate", "run", "--average", *arguments,
                                                exit_code=2).stderr.decode())

    def test_beyond_the_context_it_goes_on_and_says_so(self):
        done = self.aloft("generate", "run", "--prompt", "the", "--tokens", 60)
        self.assertEqual(len(done.stdout), 60)
        self.assertRegex(done.stderr.decode(), r"the context of 8 tokens was full \d+ times")
        self.assertNotIn("context", self.aloft("generate", "run", "--prompt", "a", "--tokens",
                                               5).stderr.decode())

    def test_a_prompt_longer_than_the_context_is_said(self):
        said = self.aloft("generate", "run", "--prompt", "the quick brown fox", "--tokens", 1).stderr.decode()
        self.assertRegex(said, r"prompt .*the quick.* has 19 tokens: the last 7 are read")
        self.assertNotIn("are read", self.aloft("generate", "run", "--prompt", "the qui", "--tokens", 0).stderr.decode())

    def test_of_a_long_prompt_the_beginning_is_said(self):
        for more in ([], ["--samples", 2]):
            said = self.aloft("generate", "run", "--prompt", "w\u00f6rd" * 5000, "--tokens", 1, *more).stderr.decode()
            self.assertLess(max(map(len, said.splitlines())), 300)
            self.assertIn("w\u00f6rdw\u00f6rd", said)
            self.assertIn("has 25000 tokens", said)

    def test_a_signal_ends_a_text_where_it_is(self):
        endless = ["--tokens", 1 << 24]
        (self.folder / "endless.txt").write_text("the\nquick\n")
        asked = (("--prompt", "the", *endless), ("--prompt", "the", *endless, "--json"),
                 ("--prompts", "endless.txt", *endless))
        for number, words in zip((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), asked):
            status, out, said = self.ended_by(number, "generate", "run", *words)
            self.assertEqual(status, 130, said)
            self.assertIn(f"interrupted by {number.name}: what was written stays", said)
            self.assertEqual(len(out) > 0, words == asked[0])

    def test_a_signal_ends_beams_and_an_evaluation(self):
        self.aloft("train", "tiny.toml", "--out", "roomy", "--set", "model.context=100000", "--set", "data.length=8",
                   "--set", "model.family=llama", "--steps", 1)
        status, out, said = self.ended_by(signal.SIGTERM, "generate", "roomy", "--prompt", "the", "--beams", 8,
                                          "--tokens", 90000)
        self.assertEqual((status, out), (130, b""), said)
        (self.folder / "vast.txt").write_text("the quick brown fox\n" * 200000)
        with open(self.folder / "vast.jsonl", "w") as lines:
            lines.write(json.dumps({"text": "the quick brown fox" * 20}) + "\n" + 200000 * '{"text": "the fox"}\n')
        for file in ("vast.txt", "vast.jsonl"):
            status, out, said = self.ended_by(signal.SIGINT, "eval", "run", "--data", file)
            self.assertEqual((status, out), (130, b""), said)
            self.assertRegex(said, r"interrupted by SIGINT: (nothing is left|nothing was evaluated|behind window )")

    def ended_by(self, number, *words):
        """Signalled two seconds after it has opened the model."""
        running = subprocess.Popen([ALOFT, *map(str, words)], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # in a shell's `&`, too
        first = running.stderr.readline()  # "reading run/..."
        time.sleep(2)
        self.assertIsNone(running.poll(), first)
        running.send_signal(number)
        try:
            out, said = running.communicate(timeout=60)
        finally:
            running.kill()
        return running.returncode, out, (first + said).decode()

    def test_windows_at_a_time_have_an_end(self):
        said = self.aloft("eval", "run", "--data", "text.txt", "--windows", 1 << 62, exit_code=2).stderr.decode()
        self.assertIn("error E0700", said)
        self.assertIn("--windows", said)

    def test_a_stop_string_ends_the_text_before_it(self):
        whole = self.text("--prompt", "the", "--tokens", 60, "--seed", 5).decode("utf-8", "replace")
        stop = whole[20:23]
        before = whole[:whole.index(stop)]
        asked = ["--prompt", "the", "--tokens", 60, "--seed", 5, "--stop", "never there", "--stop", stop]
        self.assertEqual(self.text(*asked).decode("utf-8", "replace"), before)
        [said] = self.parsed("generate", "run", *asked, "--json")
        self.assertEqual((said["text"], said["ended"]), (before, True))
        two = self.parsed("generate", "run", *asked, "--samples", 2, "--json")
        self.assertEqual(two[0]["text"], before)

    def test_penalties_and_filters(self):
        greedy = ["--prompt", "the", "--tokens", 40, "--temperature", 0]
        plain = self.text(*greedy)
        self.assertNotEqual(self.text(*greedy, "--repetition-penalty", 1.5), plain)
        self.assertNotEqual(self.text(*greedy, "--presence-penalty", 5), plain)
        drawn = ["--prompt", "the", "--tokens", 40, "--seed", 5]
        for only_the_likeliest in (["--min-p", 1], ["--top-k", 1]):
            self.assertEqual(self.text(*drawn, *only_the_likeliest), plain)
        self.aloft("generate", "run", *drawn, "--min-p", 1.5, exit_code=2)

    def test_many_texts_at_once(self):
        several = self.parsed("generate", "run", "--prompt", "the", "--samples", 3, "--tokens", 20,
                              "--seed", 7, "--json")
        self.assertEqual([t["seed"] for t in several], [7, 8, 9])
        for text in several:
            [alone] = self.parsed("generate", "run", "--prompt", "the", "--tokens", 20, "--seed",
                                  text["seed"], "--json")
            self.assertEqual(text["tokens"], alone["tokens"])
        (self.folder / "prompts.txt").write_bytes(b"the\\nquick\r\nover\n")
        texts = self.parsed("generate", "run", "--prompts", "prompts.txt", "--tokens", 4, "--json")
        self.assertEqual([t["prompt"] for t in texts], ["the\nquick", "over"])
        plain = self.text("--prompts", "prompts.txt", "--tokens", 4, "--temperature", 0)
        self.assertEqual(plain.count(b"---\n"), 1)

    def jsonl(self, name, *lines):
        (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def test_a_prompt_in_a_batch_gets_the_answer_that_it_gets_alone(self):
        prompts = ["the", "quick brown fox", "o", "over the lazy dog", "a\nb", "jumps"]
        self.jsonl("batch.jsonl", *({"prompt": p, "note": 1} for p in prompts))
        for options in (["--temperature", 0], ["--seed", 9], ["--seed", 9, "--samples", 2]):
            asked = ["generate", "run", "--prompts", "batch.jsonl", "--tokens", 30, *options, "--json", "--batch"]
            one, four, many = (self.parsed(*asked, n) for n in (1, 4, 64))
            samples = 2 if "--samples" in options else 1
            self.assertEqual([t["index"] for t in one], [i for i in range(6) for _ in range(samples)])
            self.assertEqual([t["prompt"] for t in one[::samples]], prompts)
            for texts in (four, many):
                self.assertEqual([t["tokens"] for t in texts], [t["tokens"] for t in one], options)
            for text in one:
                self.assertEqual(text["finish"], "tokens")
                self.assertGreater(text["seconds"], 0)
        texts = self.parsed("generate", "run", "--prompts", "batch.jsonl", "--tokens", 30, "--temperature", 0, "--json")
        for p, text in zip(prompts, texts):
            [alone] = self.parsed("generate", "run", "--prompt", p, "--tokens", 30, "--temperature", 0, "--json")
            self.assertEqual(text["text"], alone["text"])
        said = self.aloft("generate", "run", "--prompts", "batch.jsonl", "--tokens", 3, "--batch", 4).stderr.decode()
        self.assertRegex(said, r"6 texts, 4 at once: .*; of it \S+ \S+ of keys and values, for up to \d+ tokens")

    def test_a_row_of_json_that_is_no_prompt_is_named(self):
        good = {"prompt": "the"}
        for bad in ({"text": "a"}, {"prompt": "a", "messages": [{}]}, {"prompt": 3}, {"messages": []}, [1],
                    {"messages": ["a"]}):
            self.jsonl("bad.jsonl", good, bad)
            said = self.aloft("generate", "run", "--prompts", "bad.jsonl", exit_code=3).stderr.decode()
            self.assertIn("error E0547", said)
            self.assertIn("bad.jsonl:2", said)
        (self.folder / "bad.jsonl").write_text('{"prompt": "a"\n')
        self.assertIn(b"bad.jsonl:1", self.aloft("generate", "run", "--prompts", "bad.jsonl", exit_code=3).stderr)
        self.jsonl("mixed.jsonl", good, {"messages": [{"role": "user", "content": "a"}]})
        self.assertIn(b"E0812", self.aloft("generate", "run", "--prompts", "mixed.jsonl", exit_code=2).stderr)

    def test_beams(self):
        self.aloft("train", "tiny.toml", "--out", "wide", "--set", "model.context=64", "--set", "optimizer.lr=1e-2",
                   "--steps", 40)
        asked = ["generate", "wide", "--prompt", "the", "--tokens", 12]
        [best] = self.parsed(*asked, "--beams", 4, "--json")
        self.assertEqual((best["beams"], len(best["tokens"]), best["finish"]), (4, 12, "tokens"))
        self.assertLess(best["score"], 0)
        [more] = self.parsed(*asked, "--beams", 4, "--length-penalty", 2, "--json")
        self.assertAlmostEqual(more["score"] * 12, best["score"], places=4)
        self.assertEqual(self.aloft(*asked, "--beams", 4).stdout, best["text"].encode())
        (self.folder / "two.txt").write_text("quick\nthe\n")
        both = self.parsed("generate", "wide", "--prompts", "two.txt", "--tokens", 12, "--beams", 4, "--json")
        self.assertEqual(both[1]["tokens"], best["tokens"])
        for penalty in (-5, 5):
            [far] = self.parsed(*asked[:-1], 60, "--beams", 4, "--length-penalty", penalty, "--json")
            self.assertEqual(len(far["tokens"]), 60)
        (self.folder / "long.txt").write_text("quick\n" + "x" * 70 + "\n")
        late = self.aloft("generate", "wide", "--prompts", "long.txt", "--tokens", 12, "--beams", 4, "--json", exit_code=2)
        self.assertEqual(late.stdout, b"")  # refused before the first text
        self.assertIn("x" * 60, late.stderr.decode())
        for option in (["--temperature", 1], ["--samples", 2], ["--stop", "a"], ["--repetition-penalty", 2]):
            said = self.aloft(*asked, "--beams", 4, *option, exit_code=2).stderr.decode()
            self.assertIn(f"--beams and {option[0]} do not go together", said)
        self.assertIn(b"--beams 2 or more", self.aloft(*asked, "--length-penalty", 2, exit_code=2).stderr)
        self.assertEqual(len(self.parsed("generate", "wide", "--prompt", "the", "--beams", 2, "--json")[0]["tokens"]),
                         64 - 3)  # what there is room for, where nobody says how many
        self.assertIn(b"beams forget nothing", self.aloft(*asked[:-1], 100, "--beams", 2, exit_code=2).stderr)

    def test_how_far_it_is(self):
        """Where no text is seen to grow: of beams, and of several. What is written stands on lines of its own."""
        (self.folder / "three.txt").write_text("quick\nthe\nfox\n")
        talk = self.on_terminal("generate", "run", "--prompts", "three.txt", "--tokens", 40, "--json", stream="stderr")
        self.assertRegex(talk.decode(), r"\rtext 0/3  1 tokens  \d+\.\d tokens/s  left ")
        talk = self.on_terminal("generate", "run", "--prompt", "the", "--tokens", 5, "--beams", 3, stream="stderr")
        self.assertRegex(talk.decode(), r"\rtext 0/1  token 1/5  left ")
        self.assertRegex(talk.decode(), r"\r +\r\d+ tokens, ")
        talk = self.on_terminal("generate", "run", "--prompt", "the", "--tokens", 5, stream="stderr")
        self.assertNotIn(b"text 0/1", talk)

    def test_empty_lines_of_prompts_are_passed_over_and_counted(self):
        (self.folder / "gaps.txt").write_bytes(b"\nthe\n\r\n \n\nover\n")
        done = self.aloft("generate", "run", "--prompts", "gaps.txt", "--tokens", 3, "--json")
        prompts = [json.loads(line)["prompt"] for line in done.stdout.splitlines()]
        self.assertEqual(prompts, ["the", " ", "over"])  # a space is a prompt
        self.assertIn(b"warning: gaps.txt: 3 empty lines are passed over", done.stderr)
        for text, said in ((b"the\n\n", True), (b"the\n", False), (b"the", False)):
            (self.folder / "gaps.txt").write_bytes(text)
            done = self.aloft("generate", "run", "--prompts", "gaps.txt", "--tokens", 3)
            self.assertEqual(b"1 empty line is passed over" in done.stderr, said, text)
        self.assertIn("empty lines are passed over", self.words_of_help())

    def words_of_help(self):
        return " ".join(self.aloft("generate", "--help").stdout.decode().split())

    def test_one_kind_of_prompt(self):
        for arguments in ([], ["--prompt", "a", "--prompts", "prompts.txt"]):
            done = self.aloft("generate", "run", *arguments, exit_code=2)
            self.assertIn(b"--prompts FILE", done.stderr)
            self.assertEqual(done.stdout, b"")
        (self.folder / "empty.txt").write_text("\n\n")
        self.assertIn(b"E0812", self.aloft("generate", "run", "--prompts", "empty.txt",
                                           exit_code=2).stderr)
        self.aloft("generate", "run", "--prompts", "absent.txt", exit_code=3)

    def test_a_text_ends_where_the_document_ends(self):
        words = self.folder / "words"
        words.mkdir()
        for name in ("vocab.json", "merges.txt"):
            (words / name).write_bytes((ROOT / "tests/fixtures/tokenizer" / name).read_bytes())
        end = json.loads((words / "vocab.json").read_text())["<|endoftext|>"]
        # Documents of one word: every other token is an end.
        documents = self.folder / "documents"
        documents.mkdir()
        for i in range(60):
            (documents / f"{i:02}.txt").write_text("the")
        common = ["--set", "data.tokenizer.kind=gpt2", "--set", "data.tokenizer.path=words",
                  "--set", "data.text=documents"]
        self.aloft("train", "tiny.toml", "--out", "short", "--steps", 150, "--set",
                   "optimizer.lr=1e-2", *common)
        texts = self.parsed("generate", "short", "--prompt", "the", "--tokens", 90, "--samples", 3,
                            "--json")
        for drawn in texts:
            self.assertTrue(drawn["ended"], drawn)
            self.assertNotIn(end, drawn["tokens"])
            self.assertLess(len(drawn["tokens"]), 90)
        done = self.aloft("generate", "short", "--prompt", "the")
        self.assertEqual(done.stdout.decode(), texts[0]["text"])
        self.assertIn(b"1 ended before --tokens", done.stderr)
        [on] = self.parsed("generate", "short", "--prompt", "the", "--past-end", "--json")
        self.assertEqual((len(on["tokens"]), on["ended"]), (100, False))
        self.assertIn(end, on["tokens"])

    def test_help_shows_defaults(self):
        for verb in (["generate"], ["bench", "step"]):
            text = re.sub(r"\s+", " ", self.aloft(*verb, "--help").stdout.decode())
            options = re.split(r" (?=--[a-z-]+ [A-Z]+[: =])", text)[1:]
            self.assertGreater(len(options), 8)
            for option in options:
                if not re.match(r"--(init|message|prompt|prompts|set|system) ", option):
                    self.assertRegex(option, r"^--\S+ .*?=\S+ |\(default: ", verb)


if __name__ == "__main__":
    main()
