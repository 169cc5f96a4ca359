// Texts with labels: what a line becomes, what is cut, and the rows of batches.
#include "data/labelled_texts.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "data/tokenizer_json.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

using Json = nlohmann::json;

// Words a to f are 3 to 8; 1 stands before a text, 2 behind each of two.
std::unique_ptr<Tokenizer> words() {
  Json file = tokenizer_json(word_level({"<s>", "</s>", "a", "b", "c", "d", "e", "f"}));
  file["pre_tokenizer"] = {{"type", "Whitespace"}};
  file["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}};
  return made_of(file);
}

class Labelled : public testing::Test {
 protected:
  LabelledTexts read(const std::string& text, std::int64_t length = 8) {
    TemporaryFolder::put(folder_ / "t.jsonl", text);
    return read_labelled_texts(folder_ / "t.jsonl", *words(), length);
  }
  std::string refusal(const std::string& text, std::int64_t length = 8) {
    try {
      read(text, length);
    } catch (const Error& e) {
      return std::string(e.code()) + " " + e.what();
    }
    return "none";
  }
  TemporaryFolder folder_;
};

TEST_F(Labelled, ALineIsATextOrTwoWithWhatStandsAround) {
  const LabelledTexts t = read(
      "\xEF\xBB\xBF{\"text\": \"a b\", \"label\": 5, \"id\": 7, \"label\": 2}\n \t\n"
      "{\"text\": \"c\", \"text_pair\": \"d e\", \"label\": 0}\r\n"
      "{\"text\": \"\", \"text_pair\": null, \"label\": 1}");
  EXPECT_EQ(t.labels, (Ids{2, 0, 1}));
  EXPECT_EQ(t.tokens, (Ids{1, 3, 4, 2, 1, 5, 2, 6, 7, 2, 1, 2}));
  EXPECT_EQ(t.types, (Ids{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(t.starts, (std::vector<std::uint64_t>{0, 4, 10, 12}));
  EXPECT_EQ(t.cut, 0);
}

// As transformers' "longest_first": what stands around stays.
TEST_F(Labelled, WhatIsTooLongIsCutAndCounted) {
  const LabelledTexts t = read(
      "{\"text\": \"a b c d e\", \"label\": 0}\n"
      "{\"text\": \"a b c d\", \"text_pair\": \"e f\", \"label\": 0}\n"
      "{\"text\": \"a\", \"label\": 0}\n",
      6);
  EXPECT_EQ(t.tokens, (Ids{1, 3, 4, 5, 6, 2, 1, 3, 2, 7, 8, 2, 1, 3, 2}));
  EXPECT_EQ(t.cut, 2);
}

TEST_F(Labelled, LinesThatAreNoneAreRefusedByNumber) {
  const std::string good = "{\"text\": \"a\", \"label\": 0}\n";
  for (const char* line :
       {"a,0", "[1]", "{\"text\": \"a\"}", "{\"label\": 1}", "{\"text\": 1, \"label\": 1}",
        "{\"text\": \"a\", \"label\": -1}", "{\"text\": \"a\", \"label\": 1.5}",
        "{\"text\": \"a\", \"label\": 99999999999}", "{\"text\": \"a\", \"label\": \"b\"}",
        "{\"text\": \"a\", \"text_pair\": [], \"label\": 1}"}) {
    const std::string said = refusal(good + line);
    EXPECT_TRUE(said.starts_with("E0515")) << line << ": " << said;
    EXPECT_NE(said.find("t.jsonl:2"), std::string::npos) << said;
  }
  EXPECT_TRUE(refusal("\n\n").starts_with("E0515"));
  EXPECT_EQ(refusal("").find("t.jsonl:"), std::string::npos);  // it has no line 0
  EXPECT_TRUE(refusal(good, 2).starts_with("E0512"));
  TemporaryFolder::put(folder_ / "p.jsonl", R"({"text": "a", "text_pair": "b", "label": 0})");
  EXPECT_THROW(read_labelled_texts(folder_ / "p.jsonl", *make_byte_tokenizer(), 8), DataError);
}

Ids ints(std::span<const std::byte> bytes) {
  Ids out(bytes.size() / sizeof(std::int32_t));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST_F(Labelled, RowsAreFilledUpAndTheLastBatchToo) {
  const auto texts = std::make_shared<const LabelledTexts>(
      read("{\"text\": \"a\", \"label\": 4}\n{\"text\": \"b c\", \"label\": 5}\n"
           "{\"text\": \"d\", \"text_pair\": \"e\", \"label\": 6}\n",
           5));
  ArrayLoaderOptions in_order;
  in_order.batch = 2, in_order.shuffle = false, in_order.epochs = 1;
  LabelledExamples examples(texts, 5, in_order);
  const ExampleBatch* b = examples.next();
  ASSERT_TRUE(b);
  EXPECT_EQ(b->rows, 2);
  EXPECT_EQ(ints(b->columns[0]), (Ids{1, 3, 2, 0, 0, 1, 4, 5, 2, 0}));
  EXPECT_EQ(ints(b->columns[2]), (Ids{3, 4}));
  EXPECT_EQ(ints(b->columns[3]), (Ids{4, 5}));
  b = examples.next();
  ASSERT_TRUE(b);
  EXPECT_EQ(std::pair(b->rows, b->counted_targets), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_EQ(ints(b->columns[0]), (Ids{1, 6, 2, 7, 2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ints(b->columns[1]), (Ids{0, 0, 0, 1, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ints(b->columns[2]), (Ids{5, 0}));
  EXPECT_EQ(ints(b->columns[3]), (Ids{6, kIgnoredLabel}));
  EXPECT_FALSE(examples.next());
  // From any position on the same, in an order that each epoch draws anew.
  ArrayLoaderOptions drawn;
  drawn.batch = 2, drawn.last = LastBatch::Wrap;
  LabelledExamples whole(texts, 5, drawn);
  for (int k = 0; k < 4; ++k) {
    drawn.position = whole.position();
    const Ids want = ints(LabelledExamples(texts, 5, drawn).next()->columns[3]);
    EXPECT_EQ(ints(whole.next()->columns[3]), want);
  }
}

TEST_F(Labelled, RowsOfAPartAreThoseOfTheWhole) {
  const LabelledTexts all = read(
      "{\"text\": \"a\", \"label\": 4}\n{\"text\": \"b c\", \"label\": 5}\n"
      "{\"text\": \"d\", \"label\": 6}\n");
  const LabelledTexts part = texts_of_rows(all, {2, 1});
  EXPECT_EQ(part.tokens, (Ids{1, 6, 2, 1, 4, 5, 2}));
  EXPECT_EQ(part.starts, (std::vector<std::uint64_t>{0, 3, 7}));
  EXPECT_EQ(part.labels, (Ids{6, 5}));
}

}  // namespace
}  // namespace aloft
