#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <chrono>

#include "base/error.h"
#include "data/build.h"
#include "data/round_trip.h"
#include "data/tokenizers/bpe_escape.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"
#include "data/tokenizers/tokenizer_kind.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

std::string some_code() {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "template <class T>\n  inline T value_" + std::to_string(i % 17) +
            "(const T& x) {\n\treturn x + " + std::to_string(i) + ";\n  }\n\n";
  return text + "caf\xC3\xA9 caf\xC3\xA9 caf\xC3\xA9\n";
}

std::unique_ptr<Tokenizer> train(const std::string& text, std::int32_t vocab) {
  BpeSample sample(text.size(), 1 << 20);
  sample.add(text);
  return train_bpe(sample, vocab);
}

TEST(BpeEscape, IsABijectionOfBytes) {
  std::set<std::string> seen;
  for (int b = 0; b < 256; ++b) {
    const std::string_view escape = escape_of(static_cast<unsigned char>(b));
    EXPECT_TRUE(seen.emplace(escape).second);
    EXPECT_EQ(unescape(escape), std::string(1, static_cast<char>(b)));
  }
  EXPECT_EQ(unescape("\xE2\x96\x81"), " ");
  EXPECT_EQ(unescape("\t"), std::nullopt);
  EXPECT_EQ(unescape("\xFF"), std::nullopt);
}

TEST(BpeTokenizer, GivesEveryByteStringBack) {
  const auto tokenizer = train(some_code(), 400);
  expect_round_trips(*tokenizer);
  EXPECT_LT(tokenizer->encode(some_code()).size(), some_code().size() / 2);
}

TEST(BpeTokenizer, LearnsIndentationAndLineEnds) {
  const auto tokenizer = train(some_code(), 400);
  bool spaces = false, line_end = false;
  for (std::int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
    const std::string_view bytes = tokenizer->bytes_of(id);
    spaces |= bytes == "  ";
    line_end |= bytes.size() > 1 && bytes.ends_with('\n');
  }
  EXPECT_TRUE(spaces);
  EXPECT_TRUE(line_end);
}

TEST(BpeTokenizer, CutsAtLineEndsChangeNothing) {
  const auto tokenizer = train(some_code(), 400);
  expect_safe_cuts(*tokenizer, some_code().substr(0, 500) + "\n\n  \n x");
}

TEST(BpeTokenizer, SameTextSameTokenizerAndReloads) {
  const auto a = train(some_code(), 350), b = train(some_code(), 350);
  EXPECT_EQ(a->fingerprint(), b->fingerprint());
  TemporaryFolder folder;
  a->save(folder.path());
  const auto loaded = load_tokenizer(folder.path());
  EXPECT_EQ(loaded->kind(), "bpe");
  EXPECT_EQ(loaded->fingerprint(), a->fingerprint());
  EXPECT_EQ(loaded->encode(some_code()), a->encode(some_code()));
  TemporaryFolder::put(folder / "tokenizer.model", "not a model");
  EXPECT_THROW(load_tokenizer(folder.path()), DataError);
  TemporaryFolder::put(folder / "tokenizer.model", "");
  EXPECT_THROW(load_tokenizer(folder.path()), DataError);
  std::filesystem::remove(folder / "tokenizer.model");
  EXPECT_THROW(load_tokenizer(folder.path()), DataError);
}

TEST(BpeTokenizer, SmallTextsAndVocabularies) {
  const auto tiny = train("a", 300);  // a soft limit: there are no pairs to merge
  EXPECT_EQ(tiny->vocab_size(), 257);
  expect_round_trips(*tiny);
  EXPECT_EQ(train(some_code(), 257)->vocab_size(), 257);
  EXPECT_THROW(train(some_code(), 256), UserError);
  EXPECT_THROW(train(some_code(), -1), UserError);
  EXPECT_THROW(train("", 300), DataError);
}

TEST(BpeSample, IsSpreadAndDoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += std::to_string(i) + "\n";
  BpeSample whole(text.size(), 5000), pieces(text.size(), 5000);
  whole.add(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', std::min(text.size() - 1, at + 777)) + 1;
    pieces.add(std::string_view(text).substr(at, end - at));
    at = end;
  }
  EXPECT_EQ(whole.lines(), pieces.lines());
  std::size_t bytes = 0;
  for (const std::string& line : whole.lines())
    bytes += line.size() - 2;                         // the escape's three bytes
  EXPECT_NEAR(static_cast<double>(bytes), 5000, 10);  // whole lines, of at most ten bytes
  EXPECT_EQ(whole.lines().front(), "0\xE2\x90\x8A");
  EXPECT_GT(std::stoi(whole.lines().back()), 9980);
}

// A model as others make them, from the library alone.
std::string foreign_model(const std::string& options) {
  TemporaryFolder folder;
  TemporaryFolder::put(folder / "text", "the quick brown fox jumps over the lazy dog\nthe end\n");
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--input=" + (folder / "text").string() + " --model_prefix=" + (folder / "m").string() +
      " --hard_vocab_limit=false --minloglevel=2 --model_type=bpe " + options);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return read_file(folder / "m.model");
}

TEST(ForeignModel, GivesEveryByteStringBackWhereItCan) {
  const std::string plain = "--byte_fallback --add_dummy_prefix=false --vocab_size=330 ";
  for (const char* more : {"--remove_extra_whitespaces=false --normalization_rule_name=identity",
                           "--normalization_rule_name=nmt_nfkc"})
    expect_round_trips(*load_bpe(foreign_model(plain + more), false, "test"));
  TemporaryFolder folder;
  TemporaryFolder::put(folder / "a.model", foreign_model(plain));
  const auto tokenizer = load_tokenizer(folder / "a.model");
  EXPECT_LT(tokenizer->encode("the quick brown fox").size(), 19u);
  tokenizer->save(folder / "saved");
  EXPECT_EQ(load_tokenizer(folder / "saved")->fingerprint(), tokenizer->fingerprint());
}

TEST(ForeignModel, IsNotWrittenAsAnotherForm) {
  const auto model = load_bpe(
      foreign_model("--byte_fallback --add_dummy_prefix=false --vocab_size=330"), false, "theirs");
  EXPECT_EQ(find_tokenizer_kind("bpe")->as_tokenizer_json(*model), "");
}

TEST(ForeignModel, IsRefusedWhereItCannot) {
  EXPECT_THROW(load_bpe(foreign_model("--vocab_size=60 --add_dummy_prefix=false"), false, "test"),
               DataError);
  EXPECT_THROW(load_bpe(foreign_model("--vocab_size=330 --byte_fallback"), false, "test"),
               DataError);
  EXPECT_THROW(load_bpe("", false, "test"), DataError);
}

// SentencePiece's own table of pieces throws at such a one.
TEST(ForeignModel, IsRefusedWithAPieceThatBeginsWithAZero) {
  const auto model = [](const std::string& piece) {
    const std::string body = "\x0A" + std::string(1, static_cast<char>(piece.size())) + piece;
    return "\x0A\x09\x0A\x05<unk>\x18\x02\x0A" + std::string(1, static_cast<char>(body.size())) +
           body;
  };
  EXPECT_EQ(make_sentencepiece_tokenizer(model("ab"), "test")->vocab_size(), 2);
  const std::string zero("\0b", 2);
  EXPECT_THROW(make_sentencepiece_tokenizer(model(zero), "test"), DataError);
  EXPECT_THROW(load_bpe(model(zero), false, "test"), DataError);
}

// Those that drop or add spaces are read all the same, as SentencePiece itself has them.
TEST(SentencepieceTokenizer, GivesTheIdsOfItsLibrary) {
  const TemporaryFolder folder, saved;
  TemporaryFolder::put(folder / "b.model", foreign_model("--vocab_size=330 --byte_fallback"));
  const auto tokenizer = load_tokenizer(folder / "b.model");
  EXPECT_EQ(tokenizer->kind(), "sentencepiece");
  sentencepiece::SentencePieceProcessor library;
  ASSERT_TRUE(library.Load((folder / "b.model").string()).ok());
  for (const std::string& text : difficult_strings()) {
    std::vector<int> expected;
    ASSERT_TRUE(library.Encode(text, &expected).ok());
    ASSERT_EQ(tokenizer->encode(text), std::vector<std::int32_t>(expected.begin(), expected.end()));
  }
  const auto ids = tokenizer->encode(" return  x");
  EXPECT_EQ(tokenizer->decode(ids), "return x");  // a space added, and one dropped
  EXPECT_EQ(tokenizer->bytes_of(3 + 0xC3), "\xC3");
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_TRUE(tokenizer->is_special(1));
  tokenizer->save(saved.path());
  EXPECT_EQ(load_tokenizer(saved.path())->fingerprint(), tokenizer->fingerprint());
  EXPECT_EQ(load_tokenizer(saved.path())->kind(), "sentencepiece");
  TemporaryFolder::put(folder / "b.model", "no model");
  EXPECT_THROW(load_tokenizer(folder / "b.model"), DataError);
}

TEST(BpeTokenizer, LearnsRealCodeInSeconds) {
  const std::vector<std::string> entries = {"/usr/include/c++"};
  if (!std::filesystem::exists(entries[0])) GTEST_SKIP() << "no C++ headers in /usr/include";
  const auto start = std::chrono::steady_clock::now();
  const Corpus corpus = open_corpus(entries);
  const CorpusSplit split = split_corpus(corpus, 0.05, 0);
  const auto tokenizer = make_tokenizer({.kind = "bpe"}, corpus, split);
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  EXPECT_LT(time.count(),
            120);  // 3 s alone on a 2-core machine; sanitizers and neighbours count too
}

}  // namespace
}  // namespace aloft
