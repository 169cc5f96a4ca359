"""`aloft generate --chat` and `--message`: what is said, what is kept, and what ends what."""
import fcntl
import json
import os
import pty
import resource
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from contextlib import contextmanager

from program import ALOFT, ProgramTest, main

TEMPLATE = """\
{%- for message in messages -%}
{%- if message.role == 'system' -%}[{{ message.content }}]
{% elif message.role == 'user' and message.content == 'refuse' -%}{{ raise_exception('not this') }}
{%- else -%}{{ message.role[0] }}:{{ message.content }}
{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}a:{%- endif -%}
"""


class Talk:
    """What a program at a terminal shows, and what is typed there."""

    def __init__(self, test, child, terminal):
        self.test, self.child, self.terminal, self.shown = test, child, terminal, b""

    def until(self, words):
        """Waits for words, and forgets what came up to their end."""
        end = time.monotonic() + 60
        while words not in self.shown:
            self.test.assertLess(time.monotonic(), end, self.shown)
            if select.select([self.terminal], [], [], 0.2)[0]:
                self.shown += os.read(self.terminal, 1 << 12)
        self.shown = self.shown[self.shown.index(words) + len(words):]

    def type(self, text):
        data = text.encode()
        while data:  # a terminal holds 4 KiB
            data = data[os.write(self.terminal, data[:1024]):]
            while select.select([self.terminal], [], [], 0.05)[0]:
                self.shown += os.read(self.terminal, 1 << 16)

    def end(self):
        """By Ctrl-D."""
        os.write(self.terminal, b"\x04")
        while self.child.poll() is None:
            try:
                os.read(self.terminal, 1 << 12)
            except OSError:  # it has closed its side
                break
        self.test.assertEqual(self.child.wait(60), 0)


class Chat(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.aloft("train", "tiny.toml", "--set", "model.family=llama", "--set", "model.context=256", "--set",
                  "optimizer.lr=1e-2", "--steps", 60, "--out", "base")
        cls.aloft("export", "hf", "base", "folder")
        (cls.folder / "chat.jinja").write_text(TEMPLATE)
        shutil.copytree(cls.folder / "folder", cls.folder / "model")
        shutil.copy(cls.folder / "chat.jinja", cls.folder / "model" / "chat_template.jinja")

    def chat(self, said, *options, exit_code=0):
        done = subprocess.run([ALOFT, "generate", "model", "--chat", *map(str, options)], cwd=self.folder,
                              input=said.encode(), capture_output=True, env=self.environment, timeout=300)
        self.assertEqual(done.returncode, exit_code, done.stderr.decode())
        return done

    def turns(self, said, *options):
        done = self.chat(said, "--temperature", 0, "--json", *options)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def go_on(self, prompt, *options):
        [text] = self.parsed("generate", "folder", "--prompt", prompt, "--temperature", 0, "--json", *options)
        return text["text"]

    def test_a_message_too_long_for_beams_is_a_conversation_too_long(self):
        said = self.aloft("generate", "model", "--message", "x" * 400, "--beams", 4, exit_code=2).stderr.decode()
        self.assertIn("a conversation is longer than the context", said)
        self.assertNotIn("beams", said)

    def test_the_history_is_what_the_template_makes_of_it(self):
        first, second = self.turns("the quick\nover\n", "--tokens", 9)
        self.assertEqual(first["text"], self.go_on("u:the quick\na:", "--tokens", 9))
        history = f"u:the quick\na:{first['text']}\nu:over\na:"
        self.assertEqual(second["text"], self.go_on(history, "--tokens", 9))
        self.assertEqual([t["index"] for t in (first, second)], [0, 1])
        # What the first turn left in the cache is not computed again: its prompt, and its answer but for the last.
        self.assertEqual((first["kept"], second["kept"]), (0, len("u:the quick\na:") + 8))
        shown = self.chat("the quick\nover\n", "--temperature", 0, "--tokens", 9)
        self.assertEqual(shown.stdout.decode(), f"{first['text']}\n{second['text']}\n")

    def test_the_system_speaks_first_and_stays(self):
        first, second, again = self.turns("fox\n/clear\nfox\n/clear\ndog\n", "--tokens", 5, "--system", "Be brief.")
        self.assertEqual(first["text"], self.go_on("[Be brief.]\nu:fox\na:", "--tokens", 5))
        self.assertEqual(second["text"], first["text"])
        self.assertEqual(again["text"], self.go_on("[Be brief.]\nu:dog\na:", "--tokens", 5))

    def test_draws_are_those_of_the_turn(self):
        asked = ["--tokens", 20, "--json", "--seed", 4]
        one, two = (self.chat("fox\n/clear\nfox\n", *asked).stdout for _ in range(2))
        texts = [[json.loads(line)["text"] for line in said.splitlines()] for said in (one, two)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0][0], texts[0][1])

    def test_what_begins_with_a_slash(self):
        done = self.chat("/help\n/nothing\n /nothing\n\n/exit\nnever\n", "--tokens", 3, "--json")
        [said] = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(said["prompt"], " /nothing")
        talk = done.stderr.decode()
        self.assertIn("(forgotten)", self.chat("/clear\n").stderr.decode())
        for words in ("/clear  forgets", "there is no /nothing; /help"):
            self.assertIn(words, talk)

    def test_the_last_line_may_have_no_end(self):
        self.assertEqual(len(self.turns("fox", "--tokens", 3)), 1)
        self.assertEqual(self.turns("", "--tokens", 3), [])

    def test_a_stdin_that_fails_is_no_end(self):
        folder = os.open(self.folder, os.O_RDONLY)  # reading one fails
        done = subprocess.run([ALOFT, "generate", "model", "--chat"], cwd=self.folder, stdin=folder,
                              capture_output=True, env=self.environment, timeout=300)
        os.close(folder)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn(b"error E0606", done.stderr)
        self.assertIn(b"stdin", done.stderr)

    def test_a_signal_ends_no_line(self):
        asked = [ALOFT, "generate", "model", "--chat", "--temperature", "0", "--tokens", "3", "--json"]
        with subprocess.Popen(asked, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            child.stdin.write(b"fox\nfo")
            child.stdin.flush()
            first = json.loads(child.stdout.readline())  # it waits for the rest of the second line
            child.send_signal(signal.SIGUSR1)
            shown, talk = child.communicate(b"x\n", timeout=300)
            self.assertEqual(child.returncode, 0, talk)
        self.assertEqual([first["prompt"], json.loads(shown)["prompt"]], ["fox", "fox"])

    def test_a_line_takes_time_by_its_length(self):
        """Eight times the line, not 64 times the time."""
        def seconds(size):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.chat("x" * size + "\n", "--tokens", 1)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        start = seconds(1)
        self.assertLess(seconds(16 << 20) - start, 20 * (seconds(2 << 20) - start) + 1)

    def test_stop_strings(self):
        [whole] = self.turns("fox\n", "--tokens", 40)
        stop = whole["text"][5:8]
        [said] = self.turns("fox\n", "--tokens", 40, "--stop", stop)
        self.assertEqual((said["text"], said["finish"]), (whole["text"][:whole["text"].index(stop)], "stop"))

    def test_a_full_context_is_said_and_ends_nothing(self):
        done = self.chat("fox\n" + "x" * 60 + "\n/clear\nfox\n", "--context", 40, "--temperature", 0, "--json")
        first, second = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual((first["finish"], len(first["tokens"])), ("context", 40 - len("u:fox\na:")))
        self.assertEqual(second["text"], first["text"])
        talk = done.stderr.decode()
        self.assertIn("the 40 tokens of the context are full", talk)
        self.assertIn("there is room for 40: this was not said. /clear forgets it", talk)
        self.assertIn(b"at most 256", self.chat("", "--context", 300, exit_code=2).stderr)

    def test_a_template_that_refuses(self):
        self.assertIn(b"not this", self.chat("refuse\n", exit_code=3).stderr)

    def test_a_model_without_a_template(self):
        for way in (["--chat"], ["--message", "fox"]):
            said = self.aloft("generate", "folder", *way, exit_code=3).stderr.decode()
            self.assertIn("error E0540", said)
            self.assertIn("--chat-template FILE", said)
        for model in ("folder", "base"):
            [said] = self.parsed("generate", model, "--message", "fox", "--chat-template", "chat.jinja", "--tokens", 5,
                                 "--temperature", 0, "--json")
            self.assertEqual(said["text"], self.go_on("u:fox\na:", "--tokens", 5))
        (self.folder / "beyond.jinja").write_text("{% import 'x' as y %}")
        said = self.aloft("generate", "folder", "--message", "fox", "--chat-template", "beyond.jinja", exit_code=3)
        self.assertIn(b"import", said.stderr)

    def test_a_message_and_a_file_of_conversations(self):
        asked = ["--tokens", 5, "--temperature", 0]
        [said] = self.turns("fox\n", "--tokens", 5, "--system", "Hm.")
        done = self.aloft("generate", "model", "--message", "fox", "--system", "Hm.", *asked)
        self.assertEqual(done.stdout.decode(), said["text"])
        talks = [[{"role": "user", "content": "fox"}],
                 [{"role": "system", "content": "No."}, {"role": "user", "content": "the lazy dog"}],
                 [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                  {"role": "user", "content": "c"}]]
        (self.folder / "talks.jsonl").write_text("".join(json.dumps({"messages": t}) + "\n" for t in talks))
        texts = self.parsed("generate", "model", "--prompts", "talks.jsonl", "--system", "Hm.", *asked, "--json")
        prompts = ["[Hm.]\nu:fox\na:", "[No.]\nu:the lazy dog\na:", "[Hm.]\nu:a\na:b\nu:c\na:"]
        self.assertEqual([t["prompt"] for t in texts], prompts)
        for text, prompt in zip(texts, prompts):
            self.assertEqual(text["text"], self.go_on(prompt, "--tokens", 5))
        long = self.aloft("generate", "model", "--message", "x" * 300, *asked, exit_code=2)
        self.assertEqual(long.stdout, b"")
        self.assertIn(b"longer than the context", long.stderr)
        self.assertIn(b"no conversation", self.aloft("generate", "model", "--prompt", "a", "--system", "b",
                                                     exit_code=2).stderr)

    def test_a_line_that_the_template_refuses_is_named(self):
        talks = [[{"role": "user", "content": said}] for said in ("fox", "refuse")]
        (self.folder / "refused.jsonl").write_text("".join(json.dumps({"messages": t}) + "\n" for t in talks))
        said = self.aloft("generate", "model", "--prompts", "refused.jsonl", exit_code=3).stderr.decode()
        self.assertIn("not this", said)
        self.assertIn("refused.jsonl:2", said)
        long = [{"role": "user", "content": "x" * 300}]
        (self.folder / "refused.jsonl").write_text("\n" + json.dumps({"messages": long}) + "\n")
        said = self.aloft("generate", "model", "--prompts", "refused.jsonl", exit_code=2).stderr.decode()
        self.assertIn("refused.jsonl:2", said)

    def test_an_answer_ends_with_the_context(self):
        """As the help says, where nobody says how many tokens; and each by its own room."""
        (self.folder / "two.jsonl").write_text("".join(
            json.dumps({"messages": [{"role": "user", "content": "x" * n}]}) + "\n" for n in (3, 200)))
        asked = ["generate", "model", "--prompts", "two.jsonl", "--past-end", "--temperature", 0, "--json"]
        for options in ([], ["--batch", 1], ["--beams", 2]):
            if "--beams" in options:
                asked = [word for word in asked if word not in ("--temperature", 0)]
            for text in self.parsed(*asked, *options):
                self.assertEqual((len(text["tokens"]), text["finish"]), (256 - len(text["prompt"]), "context"))
        [more] = self.parsed("generate", "model", "--message", "x", "--past-end", "--tokens", 300, "--json")
        self.assertEqual((len(more["tokens"]), more["finish"]), (300, "tokens"))
        words = " ".join(self.aloft("generate", "--help").stdout.decode().split())
        self.assertIn("no more than the context has room for", words)

    def test_lines_are_read_as_those_that_are_learnt(self):
        """By the rules of data.jsonl: a mark of UTF-8, ends of any kind, space, keys that stand twice, and others."""
        line = '{"messages": 3, "id": 7, "tools": null, "messages": [{"role": "user", "content": "fox"}]}'
        (self.folder / "odd.jsonl").write_bytes(f"\ufeff  {line} \r\n \t \n{line}".encode())
        asked = ["generate", "model", "--prompts", "odd.jsonl", "--tokens", 3, "--temperature", 0]
        texts = self.parsed(*asked, "--json")
        self.assertEqual([t["prompt"] for t in texts], ["u:fox\na:"] * 2)
        self.assertIn(b"1 empty line is passed over", self.aloft(*asked).stderr)
        for line, words in (({"messages": [{"content": "a"}]}, 'message 1 without a "role"'),
                            ({"messages": [{"role": "user", "content": 3}]}, '"content" is a number'),
                            ({"messages": [{"role": "user"}], "tools": {}}, '"tools" that is an object')):
            (self.folder / "odd.jsonl").write_text(json.dumps(line))
            said = self.aloft(*asked, exit_code=3).stderr.decode()
            self.assertIn("error E0547", said)
            self.assertIn("odd.jsonl:1", said)
            self.assertIn(words, said)

    def test_prompts_from_a_pipe(self):
        asked = ["--tokens", 3, "--temperature", 0, "--json"]
        for name, text in (("p.jsonl", b'{"messages": [{"role": "user", "content": "fox"}]}\n'), ("p.txt", b"u:fox\\na:")):
            os.mkfifo(self.folder / name)
            child = subprocess.Popen([ALOFT, "generate", "model", "--prompts", name, *map(str, asked)], cwd=self.folder,
                                     env=self.environment, stdout=subprocess.PIPE)
            time.sleep(0.5)  # it waits for the writer
            with open(self.folder / name, "wb", buffering=0) as pipe:
                pipe.write(text[:5])
                time.sleep(0.1)
                pipe.write(text[5:])
            shown, _ = child.communicate(timeout=300)
            self.assertEqual(json.loads(shown)["text"], self.go_on("u:fox\na:", "--tokens", 3))
        shell = subprocess.run(["bash", "-c", '"$0" generate model --prompts <(printf "u:fox") "$@"', ALOFT,
                                *map(str, asked)], cwd=self.folder, env=self.environment, capture_output=True,
                               timeout=300)
        self.assertEqual(json.loads(shell.stdout)["prompt"], "u:fox", shell.stderr)

    def test_a_stop_string_of_nothing_is_refused_at_once(self):
        said = self.aloft("generate", "absent", "--prompt", "a", "--stop", "", exit_code=2).stderr.decode()
        self.assertIn("a string that ends the text is empty", said)

    def test_what_the_template_ends_an_answer_with(self):
        """The token that tokenizer_config.json calls its end, where it is one."""
        [whole] = self.turns("fox\n", "--tokens", 30)
        end = whole["text"][4]
        shutil.copytree(self.folder / "model", self.folder / "ends")
        (self.folder / "ends" / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": end}}))
        [said] = self.parsed("generate", "ends", "--message", "fox", "--temperature", 0, "--json")
        self.assertEqual((said["text"], said["finish"]), (whole["text"][:whole["text"].index(end)], "end"))

    def test_options_that_make_no_sense(self):
        for options in (["--samples", 2], ["--batch", 3], ["--past-end"]):
            said = self.chat("", *options, exit_code=2).stderr.decode()
            self.assertIn(f"--chat and {options[0]} do not go together", said)
        self.assertIn(b"--context is of a conversation", self.aloft("generate", "model", "--prompt", "a", "--context", 9,
                                                                    exit_code=2).stderr)

    def test_the_room_of_a_message(self):
        asked = ["generate", "model", "--message", "fox", "--context", 40, "--past-end", "--json"]
        for more in ([], ["--tokens", 100]):
            [said] = self.parsed(*asked, *more)
            self.assertEqual((len(said["tokens"]), said["finish"]), (40 - len("u:fox\na:"), "context"))
        self.assertIn(b"at most 256", self.aloft(*asked[:4], "--context", 300, exit_code=2).stderr)

    def test_what_generation_config_says_of_drawing(self):
        """As defaults: the command line comes first, and what is taken is said once."""
        shutil.copytree(self.folder / "model", self.folder / "drawn")
        file = self.folder / "drawn" / "generation_config.json"
        said = {"do_sample": True, "temperature": 0.5, "top_k": 9, "top_p": 0.8, "min_p": 0.01, "typical_p": 0.9,
                "repetition_penalty": 1.25, "max_new_tokens": 7}
        options = [word for key, value in said.items() if key not in ("do_sample", "max_new_tokens")
                   for word in ("--" + key.replace("_", "-"), value)]

        def texts(model, *more):
            done = self.aloft("generate", model, "--message", "fox", "--samples", 4, "--json", *more)
            return [json.loads(line)["tokens"] for line in done.stdout.splitlines()], done.stderr.decode()
        file.write_text(json.dumps(said))
        taken, talk = texts("drawn")
        self.assertEqual(taken, texts("model", *options, "--tokens", 7)[0])
        self.assertIn("generation_config.json: --tokens 7 --repetition-penalty 1.25 --temperature 0.5 --top-k 9 "
                      "--top-p 0.8 --min-p 0.01 --typical-p 0.9\n", talk)
        mine, talk = texts("drawn", "--temperature", 2, "--tokens", 9)
        self.assertEqual(mine, texts("model", *options[2:], "--temperature", 2, "--tokens", 9)[0])
        self.assertNotIn("--temperature", talk)
        file.write_text(json.dumps({**said, "do_sample": False}))
        taken, talk = texts("drawn")
        self.assertEqual(taken, texts("model", "--repetition-penalty", 1.25, "--tokens", 7)[0])
        self.assertEqual(talk.count("--"), 2, talk)
        one = ["--message", "fox", "--json", "--tokens", 7]
        self.assertEqual(self.parsed("generate", "drawn", *one)[0]["tokens"],
                         self.parsed("generate", "model", *one, "--repetition-penalty", 1.25,
                                     "--temperature", 0)[0]["tokens"])
        self.assertIn(b"--temperature 0\n", self.aloft("generate", "drawn", *one).stderr)
        file.write_text(json.dumps({key: value for key, value in said.items() if key != "do_sample"}))
        self.assertEqual(texts("drawn")[0], texts("model", "--repetition-penalty", 1.25, "--tokens", 7)[0])
        beams = ["--message", "fox", "--beams", 2, "--json"]
        [best] = self.parsed("generate", "drawn", *beams)
        self.assertEqual(best["tokens"], self.parsed("generate", "model", *beams, "--tokens", 7)[0]["tokens"])
        file.write_text(json.dumps({**said, "top_p": 1.5}))
        wrong = self.aloft("generate", "drawn", "--message", "fox", exit_code=3).stderr.decode()
        for words in ("error E0631", "top_p", "1.5", "generation_config.json"):
            self.assertIn(words, wrong)

    def test_lines_of_json_by_any_name(self):
        line = json.dumps({"messages": [{"role": "user", "content": "fox"}]}) + "\n"
        asked = ["--tokens", 3, "--temperature", 0, "--json"]
        for name in ("a.ndjson", "a.json", "a"):
            (self.folder / name).write_text(line)
            [said] = self.parsed("generate", "model", "--prompts", name, *asked)
            self.assertEqual(said["prompt"], "u:fox\na:")
        for piped, prompt in ((line, "u:fox\na:"), ("u:fox", "u:fox")):
            done = subprocess.run([ALOFT, "generate", "model", "--prompts", "-", *map(str, asked)], cwd=self.folder,
                                  input=piped.encode(), env=self.environment, capture_output=True, timeout=300)
            self.assertEqual(json.loads(done.stdout)["prompt"], prompt, done.stderr)
        (self.folder / "a.txt").write_text(line)
        self.assertIn(b"look like JSON", self.aloft("generate", "model", "--prompts", "a.txt", *asked).stderr)

    def test_a_closed_stdin_is_no_end(self):
        for way in (["--chat"], ["--prompts", "-"]):
            done = subprocess.run([ALOFT, "generate", "model", *way], cwd=self.folder, capture_output=True,
                                  env=self.environment, timeout=300, preexec_fn=lambda: os.close(0))
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn(b"error E0606", done.stderr)
            self.assertIn(b"closed", done.stderr)

    def stopped(self):
        """One that is interrupted once its answer has begun: what it says of it."""
        asked = [ALOFT, "generate", "model", "--chat", "--temperature", "1"]
        with subprocess.Popen(asked, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            child.stdin.write(b"fox\n")
            child.stdin.flush()
            os.read(child.stdout.fileno(), 1)
            child.send_signal(signal.SIGINT)
            shown, talk = child.communicate(b"fox\n", timeout=300)
            self.assertEqual(child.returncode, 0, talk)
            self.assertIn(b"\n", shown)  # the second answer came
        return talk

    def test_ctrl_c_ends_the_answer_and_not_the_program(self):
        for _ in range(20):  # an answer may be whole before the key is heard
            if b"(stopped)" in self.stopped():
                return
        self.fail("no answer was stopped")

    @contextmanager
    def at_terminal(self, *options, **streams):
        """One at a terminal, whose streams are the terminal's but for `streams`."""
        ours, its = pty.openpty()
        where = {name: its for name in ("stdin", "stdout", "stderr")} | streams
        child = subprocess.Popen([ALOFT, "generate", "model", "--chat", "--temperature", "0", *map(str, options)],
                                 cwd=self.folder, env={**self.environment, "TERM": "xterm"}, **where,
                                 preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)))
        os.close(its)
        try:
            yield Talk(self, child, ours)
        finally:
            child.kill()
            child.wait()
            os.close(ours)

    def prompts_at_terminal(self, *typed):
        """The messages that what is typed, text after text, makes; stdout is a file."""
        with open(self.folder / "said.jsonl", "wb") as out, self.at_terminal("--tokens", 3, "--json", stdout=out) as talk:
            for text in typed:
                talk.until(b"> ")
                talk.type(text)
            talk.until(b"> ")
            talk.end()
        return [json.loads(line)["prompt"] for line in (self.folder / "said.jsonl").read_bytes().splitlines()]

    def test_a_terminal(self):
        with self.at_terminal("--tokens", 5) as talk:
            talk.until(b"> ")
            talk.child.send_signal(signal.SIGINT)  # nothing is answered: it says how to leave
            talk.until(b"/exit ends the conversation")
            talk.until(b"> ")
            talk.type("refuse\r")
            talk.until(b"not this")
            talk.until(b"> ")
            talk.type("fox\r")
            [said] = self.turns("fox\n", "--tokens", 5)
            talk.until(said["text"].encode().replace(b"\n", b"\r\n") + b"\r\n")
            talk.until(b"> ")
            talk.type("\x03")
            talk.until(b"/exit ends the conversation")
            talk.until(b"> ")
            talk.end()

    def test_talk_keeps_words_whole_on_a_narrow_terminal(self):
        with self.at_terminal("--context", 40) as talk:
            talk.until(b"> ")
            fcntl.ioctl(talk.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
            talk.type("x" * 60 + "\r")
            talk.until(b"the conversation would have 65\r\n")
            talk.until(b"> ")
            talk.end()

    def test_results_of_a_terminal_hold_no_prompt(self):
        self.assertEqual(self.prompts_at_terminal("fox\r", "dog\r"), ["fox", "dog"])
        with open(self.folder / "said.txt", "wb") as out, \
                self.at_terminal("--tokens", 5, stdout=out, stderr=subprocess.DEVNULL) as talk:
            talk.until(b"> ")
            talk.type("fox\r")
            talk.until(b"> ")
            talk.end()
        [said] = self.turns("fox\n", "--tokens", 5)
        self.assertEqual((self.folder / "said.txt").read_text(), said["text"] + "\n")

    def test_a_line_is_edited(self):
        left, up, home, f5, word_left = "\x1b[D", "\x1b[A", "\x1b[H", "\x1b[15~", "\x1b[1;5D"
        typed = [f"fx{left}o\r", f"{up}\r", f"dög{f5}\x7f{home}a \r", f"b c{word_left}x\r", "gone\x03", "\x1bOx€\r"]
        self.assertEqual(self.prompts_at_terminal(*typed), ["fox", "fox", "a dö", "b xc", "€"])

    def test_a_long_line_is_whole(self):
        with self.at_terminal("--tokens", 3) as talk:
            talk.until(b"> ")
            talk.type("x" * 6000 + "\r")
            talk.until(f"the conversation would have {len('u:') + 6000 + len(chr(10) + 'a:')} tokens".encode())
            talk.until(b"> ")
            talk.end()

    def test_a_paste_is_one_message(self):
        """Where the terminal marks it; nothing in it commands anything."""
        begins, ends = "\x1b[200~", "\x1b[201~"
        said = self.prompts_at_terminal(f"a {begins}fox\ndog\r\n\tover{ends}!\r",
                                        f"{begins}\x1b[31mred\x7f{ends}\r", f"{begins}{'y' * 60}\r{ends}\r")
        self.assertEqual(said, ["a fox\ndog\n\tover!", "[31mred", "y" * 60 + "\n"])


if __name__ == "__main__":
    main()
