#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/round_trip.h"
#include "data/tokenizers/gpt2_tokenizer.h"
#include "data/tokenizers/gpt2_words.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

const Path kFixture = "tests/fixtures/tokenizer";

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size(); at += all.back().size())
    all.emplace_back(text.substr(at, gpt2::word_length(text, at)));
  return all;
}

TEST(Gpt2Words, FollowTheExpression) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(words("a  b"), (Words{"a", " ", " b"}));
  EXPECT_EQ(words("a \n b"), (Words{"a", " \n", " b"}));
  EXPECT_EQ(words("a\n\nb"), (Words{"a", "\n", "\n", "b"}));
  EXPECT_EQ(words("x1 22,  "), (Words{"x", "1", " 22", ",", "  "}));
  EXPECT_EQ(words("don't 'LL can't've"), (Words{"don", "'t", " '", "LL", " can", "'t", "'ve"}));
  EXPECT_EQ(words("''s!'"), (Words{"''", "s", "!'"}));
  EXPECT_EQ(words("caf\xC3\xA9\xC2\xA0x"), (Words{"caf\xC3\xA9", "\xC2\xA0", "x"}));
  EXPECT_EQ(words("a\xFF\xC3z"), (Words{"a", "\xFF\xC3", "z"}));
}

TEST(Gpt2Words, Classes) {
  using gpt2::CharClass;
  EXPECT_EQ(gpt2::class_of('Z'), CharClass::Letter);
  EXPECT_EQ(gpt2::class_of(0x4F60), CharClass::Letter);  // a Han character
  EXPECT_EQ(gpt2::class_of(0xBD), CharClass::Number);    // one half
  EXPECT_EQ(gpt2::class_of(0x2167), CharClass::Number);  // Roman eight
  EXPECT_EQ(gpt2::class_of(0x3000), CharClass::Space);
  EXPECT_EQ(gpt2::class_of(0x1C), CharClass::Other);   // a separator, not white space
  EXPECT_EQ(gpt2::class_of(0x301), CharClass::Other);  // a combining accent
  EXPECT_EQ(gpt2::class_of(0x1F642), CharClass::Other);
  EXPECT_EQ(gpt2::class_of(0x10FFFF), CharClass::Other);
  // As many code points as Unicode 16.0 lists.
  int letters = 0, numbers = 0, spaces = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    letters += gpt2::class_of(c) == CharClass::Letter;
    numbers += gpt2::class_of(c) == CharClass::Number;
    spaces += gpt2::class_of(c) == CharClass::Space;
  }
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(spaces, 25);
}

// What else lies beside the two files says whose words the ids are of.
TEST(Gpt2Tokenizer, TokenizersThatSplitOtherwiseAreRefused) {
  using Json = nlohmann::json;
  const auto opened_beside = [](const char* name, const Json& said) -> std::string {
    const TemporaryFolder folder;
    for (const char* file : {"vocab.json", "merges.txt"})
      TemporaryFolder::put(folder / file, read_file(kFixture / file));
    TemporaryFolder::put(folder / name, said.dump());
    try {
      load_tokenizer(folder.path());
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0509");
      return e.what();
    }
    return "opened";
  };
  for (const char* name : {"tokenizer_config.json", "config.json"}) {
    EXPECT_EQ(opened_beside(name, {{"tokenizer_class", "GPT2TokenizerFast"}}), "opened");
    EXPECT_EQ(opened_beside(name, {{"tokenizer_class", nullptr}}), "opened");
    EXPECT_NE(opened_beside(name, {{"tokenizer_class", "Qwen2Tokenizer"}}).find("Qwen2Tokenizer"),
              std::string::npos);
  }
}

// A tokenizer.json beside them that says more than they do is what counts.
TEST(Gpt2Tokenizer, LeavesFoldersWhoseTokenizerJsonSaysMore) {
  using Json = nlohmann::json;
  const auto kind_of = [](const Json& said, const Json& config) {
    const TemporaryFolder folder;
    for (const char* file : {"vocab.json", "merges.txt"})
      TemporaryFolder::put(folder / file, read_file(kFixture / file));
    TemporaryFolder::put(folder / "tokenizer.json", said.dump());
    TemporaryFolder::put(folder / "tokenizer_config.json", config.dump());
    return std::string(load_tokenizer(folder.path())->kind());
  };
  const Json model{{"type", "BPE"}, {"vocab", {{"a", 0}}}, {"merges", Json::array()}};
  const auto said = [&](const Json& words) {
    return Json{{"pre_tokenizer", words}, {"model", model}};
  };
  const Json plain{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  const Json digits{{"type", "Digits"}, {"individual_digits", true}};
  const Json both{{"type", "Sequence"}, {"pretokenizers", {digits, plain}}};
  EXPECT_EQ(kind_of(said(plain), Json::object()), "gpt2");
  EXPECT_EQ(kind_of(Json::array(), Json::object()), "gpt2");
  EXPECT_EQ(kind_of(said(both), Json::object()), "hf");
  EXPECT_EQ(kind_of(said(nullptr), Json::object()), "hf");
  EXPECT_EQ(kind_of(said(plain), {{"tokenizer_class", "Qwen2Tokenizer"}}), "hf");
  Json normal = said(plain);
  normal["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(kind_of(normal, Json::object()), "hf");
}

TEST(Gpt2Tokenizer, AgreesWithHuggingFace) {
  const auto tokenizer = load_tokenizer(kFixture);
  EXPECT_EQ(tokenizer->kind(), "gpt2");
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  const auto fixture = nlohmann::json::parse(read_file(kFixture / "cases.json"));
  ASSERT_GT(fixture.at("cases").size(), 150u);
  for (const auto& item : fixture.at("cases")) {
    const std::string text = item.at("text");
    EXPECT_EQ(tokenizer->encode(text), item.at("ids").get<std::vector<std::int32_t>>())
        << in_quotes(text);
  }
}

TEST(Gpt2Tokenizer, GivesEveryByteStringBackAndMayBeCutWhereItSays) {
  const auto tokenizer = load_tokenizer(kFixture);
  expect_round_trips(*tokenizer);
  expect_safe_cuts(*tokenizer,
                   "Don't  cut \n\n  here. caf\xC3\xA9\xE3\x80\x80 \xE4\xBD\xA0\xE3\x80\x82\n \xFF "
                   "x \xC2\xA0 y\t\tz 'll  ");
  EXPECT_EQ(tokenizer->safe_cut("words words\n"), 11u);
  EXPECT_EQ(tokenizer->safe_cut("   "), 0u);
}

TEST(Gpt2Tokenizer, SavesAndReloads) {
  const auto tokenizer = load_tokenizer(kFixture);
  EXPECT_EQ(tokenizer->bytes_of(*tokenizer->end_of_text()), "<|endoftext|>");
  TemporaryFolder folder;
  tokenizer->save(folder.path());
  const auto loaded = load_tokenizer(folder.path());
  EXPECT_EQ(loaded->fingerprint(), tokenizer->fingerprint());
  EXPECT_EQ(loaded->encode("The weights, again"), tokenizer->encode("The weights, again"));
}

TEST(Gpt2Tokenizer, LongWordsDoNotTakeForEver) {
  const auto tokenizer = load_tokenizer(kFixture);
  const std::string word(1 << 20, 'e');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(word)), word);
}

TEST(Gpt2Tokenizer, DamagedFilesAreRefused) {
  const std::string vocab = read_file(kFixture / "vocab.json");
  const std::string merges = read_file(kFixture / "merges.txt");
  const auto make = [](const std::string& v, const std::string& m) {
    return make_gpt2_tokenizer(v, m, "test");
  };
  EXPECT_NO_THROW(make(vocab, merges));
  EXPECT_NO_THROW(make(vocab, ""));
  const std::string line = "\n" + merges.substr(merges.rfind('\n', merges.size() - 2) + 1);
  for (const std::string& bad : {merges + "only_one\n", merges + "a b c\n", merges + "zz qq\n",
                                 merges + "\xFF \xFE\n", merges + line.substr(1, 2) + " \n"})
    EXPECT_THROW(make(vocab, bad), DataError);
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"a":0})"),
        std::string(R"({"a":1})"), std::string(R"({"a":-1})"), std::string(R"({"a":"0"})"),
        std::string(R"({"a":0,"b":0})"), std::string(R"({"a":4294967296})"),
        std::string(100000, '[')})
    EXPECT_THROW(make(bad, ""), DataError) << bad.substr(0, 50);
  for (std::size_t length = 0; length < vocab.find_last_of('}'); length += 97)
    EXPECT_THROW(make(vocab.substr(0, length), merges), DataError);
}

}  // namespace
}  // namespace aloft
