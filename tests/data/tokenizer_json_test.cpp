// Tokenizers that are made here, as tokenizer.json: read as Hugging Face's library reads it (the
// kind `hf`, which is held to that library), they give the same ids.
#include "data/tokenizers/tokenizer_json.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/round_trip.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/hf_tokenizer.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

// Of few letters, so that pieces overlap in all the ways in which they can.
std::vector<std::string> texts_of(std::string_view letters, std::size_t longest, int count) {
  std::mt19937 random(7);
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) {
    std::string text(random() % longest, ' ');
    for (char& c : text) c = letters[random() % letters.size()];
    all.push_back(text);
  }
  return all;
}

std::string json_of(const Tokenizer& own) {
  return find_tokenizer_kind(own.kind())->as_tokenizer_json(own);
}

std::unique_ptr<Tokenizer> published(const Tokenizer& own) {
  return make_hf_tokenizer(json_of(own), "tokenizer.json");
}

void expect_same_ids(const Tokenizer& own, const std::vector<std::string>& texts) {
  const auto theirs = published(own);
  ASSERT_EQ(theirs->vocab_size(), own.vocab_size());
  std::size_t seen = 0;
  for (const std::string& text : texts) {
    if (!is_utf8(text)) continue;
    const auto ids = own.encode(text);
    ASSERT_EQ(theirs->encode(text), ids) << own.kind() << ": " << in_quotes(text);
    ASSERT_EQ(theirs->decode(ids), text) << own.kind();
    ++seen;
  }
  EXPECT_GT(seen, 100u);
}

std::unique_ptr<Tokenizer> trained(const std::string& text, std::int32_t vocab) {
  BpeSample sample(text.size(), 1 << 20);
  sample.add(text);
  return train_bpe(sample, vocab);
}

TEST(TokenizerJson, BytesAreBytes) { expect_same_ids(*make_byte_tokenizer(), difficult_strings()); }

TEST(TokenizerJson, PairsMergeAsSentencePieceMergesThem) {
  std::string code;
  for (int i = 0; i < 400; ++i)
    code += "template <class T>\n  inline T value_" + std::to_string(i % 17) +
            "(const T& x) {\n\treturn x + " + std::to_string(i) + "; // <unk> caf\xC3\xA9\n  }\n\n";
  const auto of_code = trained(code, 600);
  expect_same_ids(*of_code, difficult_strings());
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < code.size(); at += 300) lines.push_back(code.substr(at, 311));
  expect_same_ids(*of_code, lines);
  // Pieces like "aba", which is "ab" + "a" and "a" + "ba".
  for (const char* letters : {"ab", "aab", "ab ", "abc", " \n"}) {
    std::string text;
    for (const std::string& line : texts_of(letters, 60, 400)) text += line + "\n";
    expect_same_ids(*trained(text, 330), texts_of(letters, 200, 2000));
  }
}

TEST(TokenizerJson, CharactersAreCharacters) {
  CharAlphabet alphabet;
  alphabet.add("na\xC3\xAFve caf\xC3\xA9\n\t\xE4\xBD\xA0\xF0\x9F\x99\x82 <0x41>");
  expect_same_ids(*alphabet.build(ByteFallback::Always), difficult_strings());
  const auto strict = alphabet.build(ByteFallback::WhereNeeded);
  expect_same_ids(*strict, texts_of("nave f\n\t<0x41>", 80, 200));
  EXPECT_THROW(published(*strict)->encode("b"), DataError);
}

}  // namespace
}  // namespace aloft
