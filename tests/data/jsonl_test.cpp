// JSON lines: what is read of them, what is refused, and the tokens that they come to, held to
// transformers (tests/fixtures/jsonl, which tools/judge makes).
#include "data/jsonl.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/ordered_json.h"
#include "data/jsonl_set.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;

class JsonLines : public ::testing::Test {
 protected:
  Path put(const std::string& name, std::string_view text) {
    TemporaryFolder::put(folder_ / name, text);
    return folder_ / name;
  }
  std::vector<JsonlLine> lines(std::string_view text) {
    JsonlReader reader(put("a.jsonl", text));
    std::vector<JsonlLine> all;
    for (JsonlLine line; reader.next(line);) all.push_back(line);
    return all;
  }
  // The message of the refusal; "" where there is none.
  std::string refusal(std::string_view text) {
    try {
      lines(text);
    } catch (const DataError& e) {
      return e.what();
    }
    return "";
  }
  JsonlSet set_of(const std::vector<Path>& paths, JsonlSetOptions options) {
    std::vector<CorpusFile> files;
    for (const Path& path : paths)
      files.push_back({path, path.filename().string(), size_of_file(path), 0});
    encoder_.emplace(*tokenizer_, nullptr);
    return read_jsonl(
        files, [&](JsonlKind) -> JsonlEncoder& { return *encoder_; }, options);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_ = make_byte_tokenizer();
  std::optional<JsonlEncoder> encoder_;
};

TEST_F(JsonLines, EmptyLinesAndOtherKeysAreLeftUnread) {
  const auto all = lines(
      "\xEF\xBB\xBF{\"text\": \"a\", \"id\": 7}\r\n\n   \n{\"text\": \"b\\n\\u00e9\"}\n{\"text\": "
      "\"\"}");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].text, "a");
  EXPECT_EQ(all[1].text, "b\n\xC3\xA9");
  EXPECT_EQ(all[2].text, "");
  EXPECT_EQ(all[1].number, 4u);
  EXPECT_EQ(all[1].offset, 3u + 24u + 1u + 4u);
  EXPECT_TRUE(lines("").empty());
  EXPECT_TRUE(lines("\n \n").empty());
}

TEST_F(JsonLines, LinesLongerThanAPieceAreWhole) {
  const std::string text(3 << 20, 'x');
  const auto all = lines("{\"prompt\": \"" + text + "\", \"completion\": \"" + text +
                         "\"}\n{\"prompt\": \"p\", \"completion\": \"c\"}\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text, text);
  EXPECT_EQ(all[0].completion, text);
  EXPECT_EQ(all[1].text + all[1].completion, "pc");
  EXPECT_EQ(all[1].number, 2u);
}

TEST_F(JsonLines, AFileThatIsCutWhileItIsReadIsRefused) {
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += R"({"text": "the quick brown fox"})"
            "\n";
  const Path path = put("cut.jsonl", text);
  JsonlReader reader(path);
  JsonlLine line;
  ASSERT_TRUE(reader.next(line));
  std::filesystem::resize_file(path, text.size() / 2 / 32 * 32);  // whole lines
  try {
    while (reader.next(line)) {
    }
    FAIL() << "half of the file was taken for the whole";
  } catch (const EnvironmentError& e) {
    EXPECT_EQ(e.code(), "E0608");
  }
}

TEST_F(JsonLines, APointerOfGitLfsIsNamed) {
  EXPECT_NE(refusal("version https://git-lfs.github.com/spec/v1\n"
                    "oid sha256:7b6f\nsize 988097824\n")
                .find("error E0616"),
            std::string::npos);
}

TEST_F(JsonLines, WhatIsRefusedIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"text\": \"a\"", "text that is not JSON"},
      {"{\"text\": \"\xC3\xA4\\x\"}",
       "invalid string: forbidden character after backslash at character 13: "},
      {"  {\"text\": oops}", "invalid literal at character 12: \"{\\\"text\\\": oops}\""},
      {"{\"text\": \"a\",}", "at character 14"},
      {"{\"text\": \"the quick brown fox jumps over the lazy dog the quick brown fox\", no}",
       ": ...\"ver the lazy dog the quick brown fox\\\", no}\""},
      {"{\"text\": \"\xFF\"}", "not UTF-8"},
      {"[{\"text\": \"a\"}]", "jq -c '.[]'"},
      {"7", "a number"},
      {"{}", "an object without keys"},
      {"{\"instruction\": \"a\", \"output\": \"b\"}", "what is answered as \"completion\""},
      {"{\"conversations\": []}", "write \"messages\""},
      {"{\"text\": 7}", "\"text\" that is a number"},
      {"{\"text\": null}", "\"text\" that is null"},
      {"{\"text\": \"a\", \"prompt\": \"b\"}", "keys of one kind"},
      {"{\"prompt\": \"a\"}", "no \"completion\""},
      {"{\"completion\": \"a\"}", "no \"prompt\""},
      {"{\"prompt\": [], \"completion\": []}", "\"prompt\" that is an array"},
      {"{\"messages\": []}", "an empty list"},
      {"{\"messages\": {}}", "an object"},
      {"{\"messages\": [7]}", "message 1 that is a number"},
      {"{\"messages\": [{\"content\": \"a\"}]}", "without a \"role\""},
      {"{\"messages\": [{\"role\": 1}]}", "whose \"role\" is a number"},
      {"{\"messages\": [{\"role\": \"user\", \"content\": 1}]}", "whose \"content\" is a number"},
      {"{\"messages\": [{\"role\": \"user\"}], \"tools\": {}}", "\"tools\" that is an object"},
  };
  for (const auto& [text, want] : cases) {
    const std::string said = refusal("\n" + std::string(text) + "\n");
    EXPECT_NE(said.find("error E0534"), std::string::npos) << text << said;
    EXPECT_NE(said.find("a.jsonl:2"), std::string::npos) << said;
    EXPECT_NE(said.find(want), std::string::npos) << said;
  }
  const std::string mixed =
      refusal("{\"text\": \"a\"}\n{\"prompt\": \"a\", \"completion\": \"\"}\n");
  EXPECT_NE(mixed.find("a.jsonl:2"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("behind lines of text"), std::string::npos) << mixed;
}

TEST_F(JsonLines, TokensAndWhatIsLearntAreThoseOfTransformers) {
  std::size_t seen = 0;
  for (const char* name : {"bytes", "fallback"}) {
    const Path folder = Path("tests/fixtures/jsonl") / name;
    const auto tokenizer = load_tokenizer(folder);
    const ordered_json config = parse_ordered_json(read_file(folder / "tokenizer_config.json"));
    JsonlEncoder plain(*tokenizer, nullptr);
    const ordered_json cases = parse_ordered_json(read_file(folder / "cases.json"));
    for (const ordered_json& one : cases["cases"]) {
      std::optional<LoadedChatTemplate> form;
      std::optional<JsonlEncoder> chat;
      if (one["template"].is_string()) {
        form.emplace(LoadedChatTemplate{ChatTemplate(one["template"].get<std::string>(), "fixture"),
                                        ordered_json::object()});
        for (const char* token : {"bos_token", "eos_token"})
          if (config.contains(token)) form->variables[token] = config[token];
        chat.emplace(*tokenizer, &*form);
      }
      JsonlReader reader(put("one.jsonl", one["line"].dump()));
      JsonlLine line;
      ASSERT_TRUE(reader.next(line));
      std::vector<std::int64_t> ids, learnt;
      for (const std::uint32_t token :
           (chat ? *chat : plain).tokens_of(line, *reader.kind(), reader.place())) {
        ids.push_back(token & ~kLearntToken);
        learnt.push_back(token >= kLearntToken);
      }
      EXPECT_EQ(ordered_json(ids).dump(), one["ids"].dump()) << name << one["line"];
      EXPECT_EQ(ordered_json(learnt).dump(), one["learnt"].dump()) << name << one["line"];
      ++seen;
    }
    const auto joined = std::ranges::count_if(
        cases["cases"], [](const ordered_json& one) { return one["joined"] == true; });
    EXPECT_GT(joined, 0) << name;
    EXPECT_EQ(plain.joined(), static_cast<std::uint64_t>(joined)) << name;
  }
  EXPECT_GT(seen, 30u);
}

// Another one, which counts the bytes that it has encoded.
class Counting : public Tokenizer {
 public:
  explicit Counting(const Tokenizer& own) : own_(own) {}
  std::string_view kind() const override { return own_.kind(); }
  std::int32_t vocab_size() const override { return own_.vocab_size(); }
  void encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const override {
    count_ += bytes.size();
    own_.encode_to(bytes, ids);
  }
  std::vector<std::int32_t> encode_with_seams(std::string_view bytes,
                                              std::vector<Seam>& seams) const override {
    count_ += bytes.size();
    return own_.encode_with_seams(bytes, seams);
  }
  std::uint64_t fingerprint() const override { return own_.fingerprint(); }
  void save(const Path& folder) const override { own_.save(folder); }
  std::size_t count() const { return count_; }

 protected:
  std::string_view piece(std::int32_t id) const override { return own_.bytes_of(id); }

 private:
  const Tokenizer& own_;
  mutable std::size_t count_ = 0;
};

TEST_F(JsonLines, ALongConversationIsEncodedAFewTimesAndNotForEachTurn) {
  const Path folder = "tests/fixtures/jsonl/fallback";
  const auto tokenizer = load_tokenizer(folder);
  const LoadedChatTemplate form{
      ChatTemplate("{% for m in messages %}{{ '<s>[' + m.role + '] ' + m.content + ' </s>' }}"
                   "{% endfor %}{% if add_generation_prompt %}<s>[assistant] {% endif %}",
                   "turns"),
      ordered_json::object()};
  JsonlLine line;
  constexpr std::size_t kTurns = 40;
  std::size_t bytes = 0, learnt = 0;
  for (std::size_t i = 0; i < kTurns; ++i) {
    const std::string said = "a word " + std::to_string(i);
    line.messages.push_back({{"role", i % 2 ? "assistant" : "user"}, {"content", said}});
    bytes += said.size() + std::string("<s>[assistant]  </s>").size();
  }
  const Counting counting(*tokenizer);
  JsonlEncoder encoder(counting, &form);
  for (const std::uint32_t token : encoder.tokens_of(line, JsonlKind::Messages, "a.jsonl:1"))
    learnt += token >= kLearntToken;
  EXPECT_GT(learnt, kTurns);
  EXPECT_LT(counting.count(), 4 * bytes);
}

TEST_F(JsonLines, ATemplateOfAnotherTokenizerIsRefused) {
  const LoadedChatTemplate form{ChatTemplate("{{ messages }}", "theirs"),
                                {{"eos_token", "<|im_end|>"}}};
  try {
    JsonlEncoder(*tokenizer_, &form);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0523");
    EXPECT_NE(std::string(e.what()).find("<|im_end|>"), std::string::npos);
  }
}

TEST_F(JsonLines, LongLinesAreCutAndWhatIsNotLearntIsLeftOut) {
  const Path path = put("a.jsonl",
                        "{\"prompt\": \"abcdef\", \"completion\": \"gh\"}\n"  // all of it cut off
                        "{\"prompt\": \"ab\", \"completion\": \"cdefgh\"}\n"  // cut
                        "{\"prompt\": \"ab\", \"completion\": \"cde\"}\n"     // just as long
                        "{\"prompt\": \"ab\", \"completion\": \"\"}\n");      // nothing
  const JsonlSet set = set_of({path}, {.length = 4});
  ASSERT_EQ(set.train->size(), 2u);
  EXPECT_EQ(set.cut, 1u);
  EXPECT_EQ(set.left_out, 2u);
  EXPECT_EQ(set.cut_off, 1u);
  EXPECT_EQ(set.lines, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(set.sequences->token(0, 4), std::uint32_t{'e'} | kLearntToken);
  EXPECT_EQ(set.sequences->targets(0), 3);
  EXPECT_EQ(set.sequences->inputs(0), 4);
  try {
    set_of({path}, {.length = 1});
    FAIL();
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0511");
    EXPECT_NE(std::string(e.what()).find("a larger data.length"), std::string::npos) << e.what();
  }
}

TEST_F(JsonLines, ValidationIsTheTailOfAFileOrWholeFiles) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "{\"text\": \"line " + std::to_string(10 + i) + "\"}\n";
  const Path path = put("a.jsonl", text);
  const JsonlSet one = set_of({path}, {.length = 16, .validation = 0.2});
  EXPECT_EQ(one.train->size(), 16u);
  EXPECT_EQ(one.lines[one.validation->front()], 17u);
  EXPECT_EQ(set_of({path}, {.length = 16}).validation->size(), 0u);
  const JsonlSet least = set_of({path}, {.length = 16, .validation = 0.001});
  EXPECT_EQ(*least.validation, (std::vector<std::uint32_t>{19}));
  const Path other = put("b.jsonl", "{\"text\": \"another\"}\n");
  const JsonlSet two = set_of({path, other}, {.length = 16, .validation = 0.05});
  EXPECT_EQ(*two.validation, (std::vector<std::uint32_t>{20}));
  EXPECT_EQ(two.file_ends, (std::vector<std::size_t>{20, 21}));
  const Path mixed = put("c.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  EXPECT_THROW(set_of({path, mixed}, {.length = 16}), DataError);
}

TEST_F(JsonLines, AShareForValidationThatHoldsNothingIsRefused) {
  const Path path = put("a.jsonl",
                        "{\"prompt\": \"ab\", \"completion\": \"cd\"}\n"
                        "{\"prompt\": \"ab\", \"completion\": \"\"}\n");  // nothing is learnt of it
  try {
    set_of({path}, {.length = 4, .validation = 0.5});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0512");
    EXPECT_NE(std::string(e.what()).find("a.jsonl"), std::string::npos) << e.what();
  }
  EXPECT_EQ(set_of({path}, {.length = 4}).train->size(), 1u);
}

TEST_F(JsonLines, AShareForValidationThatLeavesNothingIsRefused) {
  const std::string line = "{\"prompt\": \"ab\", \"completion\": \"cd\"}\n";
  for (const auto& [text, count] : {std::pair{line, "one line"}, {line + line, "2 lines"}}) {
    const Path path = put("a.jsonl", text);
    try {
      set_of({path}, {.length = 4, .validation = 0.99});
      FAIL();
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0512");
      EXPECT_NE(std::string(e.what()).find("0.99 of " + std::string(count)), std::string::npos)
          << e.what();
    }
  }
}

TEST_F(JsonLines, FilesAreNamedOrMatched) {
  put("b.jsonl", "");
  put("a.jsonl", "");
  put("a.txt", "");
  const std::vector<std::string> entries{"*.jsonl", "b.jsonl"};
  const auto files = list_jsonl(entries, folder_.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name, "a.jsonl");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.jsonl").c_str(), 0600), 0);
  for (const char* wrong : {"", "c.jsonl", "*.json", ".", "pipe.jsonl"}) {
    const std::vector<std::string> entry{wrong};
    try {
      list_jsonl(entry, folder_.path());
      ADD_FAILURE() << wrong;
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0510") << wrong;
      const bool says_pipe = std::string(e.what()).find("a pipe or a device") != std::string::npos;
      EXPECT_EQ(says_pipe, wrong == std::string("pipe.jsonl")) << e.what();
    }
  }
}

}  // namespace
}  // namespace aloft
