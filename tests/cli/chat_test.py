"""`aloft generate --chat` and `--message`: what is said, what is kept, and what ends what."""
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time

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
        for words in ("/clear  forgets", "there is no /nothing; /help"):
            self.assertIn(words, talk)

    def test_the_last_line_may_have_no_end(self):
        self.assertEqual(len(self.turns("fox", "--tokens", 3)), 1)
        self.assertEqual(self.turns("", "--tokens", 3), [])

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
        self.assertIn(b"no --chat", self.aloft("generate", "model", "--prompt", "a", "--context", 9,
                                               exit_code=2).stderr)

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

    def test_a_terminal(self):
        ours, its = pty.openpty()
        child = subprocess.Popen([ALOFT, "generate", "model", "--chat", "--temperature", "0", "--tokens", "5"],
                                 cwd=self.folder, env=self.environment, stdin=its, stdout=its, stderr=its)
        os.close(its)
        shown = b""

        def until(words):
            nonlocal shown
            end = time.monotonic() + 60
            while words not in shown:
                self.assertLess(time.monotonic(), end, shown)
                if select.select([ours], [], [], 0.2)[0]:
                    shown += os.read(ours, 1 << 12)

        until(b"> ")
        shown = b""
        child.send_signal(signal.SIGINT)  # nothing is answered: it says how to leave
        until(b"/exit ends the conversation")
        until(b"> ")
        shown = b""
        os.write(ours, b"refuse\n")
        until(b"not this")
        until(b"> ")
        shown = b""
        os.write(ours, b"fox\n")
        [said] = self.turns("fox\n", "--tokens", 5)
        until(said["text"].encode().replace(b"\n", b"\r\n") + b"\r\n> ")
        os.write(ours, b"\x04")  # Ctrl-D
        self.assertEqual(child.wait(60), 0)
        os.close(ours)


if __name__ == "__main__":
    main()
