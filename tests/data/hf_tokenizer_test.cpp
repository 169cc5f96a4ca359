// tokenizer.json as a whole: each model, added tokens, what stands around a text, the way back.
// Ids are worked out by hand from what Hugging Face's documentation says of each part.
#include "data/tokenizers/hf_tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/round_trip.h"
#include "data/text_stream.h"
#include "data/tokenizer_json.h"
#include "data/tokenizers/parts/byte_letters.h"
#include "data/tokenizers/parts/pipeline_tokenizer.h"
#include "data/tokenizers/parts/unicode.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

using Json = nlohmann::json;

const std::string kMark = "\xE2\x96\x81";  // SentencePiece's space

Json bpe(const std::vector<std::string>& tokens, const Json& merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", vocab_of(tokens)},
          {"merges", merges}};
}

std::string refusal(const Json& file) {
  try {
    made_of(file);
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0519");
    return e.what();
  }
  return "made";
}

void expect_names(const std::string& text, std::string_view name) {
  EXPECT_NE(text.find(name), std::string::npos) << text;
}

TEST(HfBpe, MergesByRankAndFromTheLeft) {
  // b+c ranks before a+b; of equal ones the left pair merges first.
  const Json model = bpe({"a", "b", "c", "bc", "ab", "abc", "aa"}, {"b c", "a b", "a bc", "a a"});
  const auto t = made_of(tokenizer_json(model));
  EXPECT_EQ(t->encode("abc"), (Ids{5}));
  EXPECT_EQ(t->encode("ab"), (Ids{4}));
  EXPECT_EQ(t->encode("aaa"), (Ids{6, 0}));
  EXPECT_EQ(t->encode("aabc"), (Ids{0, 5}));  // a+bc ranks before a+a
  // What has no token, and no token for what is unknown, is left out; then neighbours meet.
  EXPECT_EQ(t->encode("axb"), (Ids{4}));
  Json pairs = model;
  pairs["merges"] = Json::array();
  for (const auto& [left, right] :
       {std::pair("b", "c"), std::pair("a", "b"), std::pair("a", "bc"), std::pair("a", "a")})
    pairs["merges"].push_back(Json::array({left, right}));
  EXPECT_EQ(made_of(tokenizer_json(pairs))->encode("aabc"), (Ids{0, 5}));
}

TEST(HfBpe, LongWordsAreMergedAsShortOnes) {
  const auto t = made_of(tokenizer_json(bpe({"a", "aa", "aaaa"}, {"a a", "aa aa"})));
  // 101 letters: 50 pairs and one; 25 fours and one.
  Ids expected(25, 2);
  expected.push_back(0);
  EXPECT_EQ(t->encode(std::string(101, 'a')), expected);
  EXPECT_EQ(t->encode(std::string(7, 'a')), (Ids{2, 1, 0}));
  const std::string million(1 << 20, 'a');
  EXPECT_EQ(t->encode(million).size(), million.size() / 4);
}

TEST(HfBpe, UnknownCharacters) {
  Json model = bpe({"<unk>", "a", "<0xC3>", "<0xA9>"}, Json::array());
  model["unk_token"] = "<unk>";
  EXPECT_EQ(made_of(tokenizer_json(model))->encode("xya\xC3\xA9"), (Ids{0, 0, 1, 0}));
  model["fuse_unk"] = true;
  EXPECT_EQ(made_of(tokenizer_json(model))->encode("xya\xC3\xA9"), (Ids{0, 1, 0}));
  model["byte_fallback"] = true;  // where all bytes have a token
  EXPECT_EQ(made_of(tokenizer_json(model))->encode("xya\xC3\xA9"), (Ids{0, 1, 2, 3}));
  model["unk_token"] = "<none>";
  EXPECT_THROW(made_of(tokenizer_json(model))->encode("x"), DataError);
}

TEST(HfBpe, PrefixesAndSuffixes) {
  // "##" before what goes on is not repeated where it merges; "</w>" ends a word.
  Json model = bpe({"a", "##b", "##c</w>", "ab", "abc</w>", "a</w>"}, {"a ##b", "ab ##c</w>"});
  model["continuing_subword_prefix"] = "##";
  model["end_of_word_suffix"] = "</w>";
  Json file = tokenizer_json(model);
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  file["decoder"] = {{"type", "BPEDecoder"}, {"suffix", "</w>"}};
  const auto t = made_of(file);
  EXPECT_EQ(t->encode("abc a"), (Ids{4, 5}));
  EXPECT_EQ(t->decode(Ids{4, 5}), "abc a");
}

TEST(HfBpe, IgnoreMergesTakesAWholeWord) {
  Json model = bpe({"a", "b", "c", "ab", "abc"}, {"a b"});
  EXPECT_EQ(made_of(tokenizer_json(model))->encode("abc"), (Ids{3, 2}));
  model["ignore_merges"] = true;
  EXPECT_EQ(made_of(tokenizer_json(model))->encode("abc"), (Ids{4}));
  EXPECT_EQ(made_of(tokenizer_json(model))->encode("abcc"), (Ids{3, 2, 2}));
}

// As Llama 2's: no words, spaces are marks, bytes stand for what has no token.
Json like_llama() {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
  for (int b = 0; b < 256; ++b) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + kDigits[b >> 4] + kDigits[b & 15] + ">");
  }
  // 259 and on.
  for (const std::string& token :
       {kMark, std::string("h"), std::string("i"), kMark + "h", kMark + "hi", kMark + kMark})
    tokens.push_back(token);
  Json model = bpe(tokens, {kMark + " h", kMark + "h i", kMark + " " + kMark});
  model["unk_token"] = "<unk>";
  model["fuse_unk"] = true;
  model["byte_fallback"] = true;
  Json file = tokenizer_json(model);
  for (int id = 0; id < 3; ++id)
    file["added_tokens"].push_back(added_token(id == 0 ? "<unk>" : id == 1 ? "<s>" : "</s>", id));
  file["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "Prepend"}, {"prepend", kMark}},
        {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMark}}}}};
  file["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
        {{"SpecialToken", {{"id", "<s>"}, {"type_id", 1}}}},
        {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}};
  file["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {{{"type", "Replace"}, {"pattern", {{"String", kMark}}}, {"content", " "}},
                       {{"type", "ByteFallback"}},
                       {{"type", "Fuse"}},
                       {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  return file;
}

TEST(HfLlama, EncodesAndDecodes) {
  const auto t = made_of(like_llama());
  EXPECT_EQ(t->kind(), "hf");
  EXPECT_EQ(t->vocab_size(), 265);
  EXPECT_EQ(t->encode("hi"), (Ids{263}));
  EXPECT_EQ(t->encode("hi hi"), (Ids{263, 263}));
  EXPECT_EQ(t->encode("hi  hi"), (Ids{263, 259, 263}));  // mark+h ranks before mark+mark
  EXPECT_EQ(t->encode("\n"), (Ids{259, 3 + 10}));
  EXPECT_EQ(t->encode("\xC3\xA9"), (Ids{259, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(t->encode("\xFF"), (Ids{259, 3 + 0xEF, 3 + 0xBF, 3 + 0xBD}));  // U+FFFD
  // A part behind an added token is a text of its own.
  EXPECT_EQ(t->encode("hi</s>hi"), (Ids{263, 2, 263}));
  EXPECT_EQ(t->encode("</s>"), (Ids{2}));
  EXPECT_TRUE(t->encode("").empty());
  EXPECT_EQ(t->framed(t->encode("hi")), (Ids{1, 263}));
  EXPECT_EQ(t->decode(Ids{263, 263}), "hi hi");
  EXPECT_EQ(t->decode(Ids{263, 3 + 0xC3, 3 + 0xA9}), "hi\xC3\xA9");
  EXPECT_EQ(t->decode(Ids{3 + 0xC3, 263}), "\xEF\xBF\xBD hi");
  EXPECT_TRUE(t->is_special(2));
  EXPECT_FALSE(t->is_special(263));
  // One by one, inside of a text.
  EXPECT_EQ(t->bytes_of(263), " hi");
  EXPECT_EQ(t->bytes_of(3 + 0xC3), "\xC3");
  EXPECT_EQ(t->bytes_of(1), "<s>");
  EXPECT_THROW(t->bytes_of(265), UserError);
  EXPECT_THROW(t->decode(Ids{-1}), UserError);
  EXPECT_EQ(t->safe_cut("hi hi hi"), 0u);  // a text begins otherwise than it goes on
}

TEST(HfLlama, PairsOfTextsHaveTypes) {
  const auto t = made_of(like_llama());
  const auto& pipeline = static_cast<const parts::PipelineTokenizer&>(*t);
  const Framed framed = *pipeline.framed_pair(Ids{5}, Ids{6, 7});
  EXPECT_EQ(framed.ids, (Ids{1, 5, 1, 6, 7}));
  EXPECT_EQ(framed.types, (Ids{0, 0, 1, 1, 1}));
}

TEST(HfLlama, WordsAreFoundOnlyWhereNoTokenReachesAcross) {
  // With "i▁h" a token, parts of a text are not words any more.
  Json file = like_llama();
  file["model"]["vocab"]["i" + kMark] = 265;
  file["model"]["merges"].insert(file["model"]["merges"].begin(), "i " + kMark);
  EXPECT_EQ(made_of(file)->encode("hi hi"), (Ids{262, 265, 260, 261}));
}

// The letters of bytes, and some merges.
Json like_gpt2() {
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) {
    std::string letter;
    parts::append_letters(letter, std::string(1, static_cast<char>(b)));
    tokens.push_back(letter);
  }
  tokens.insert(tokens.end(), {"\xC4\xA0"
                               "a",
                               "aa", "<|end|>"});  // 256, 257, 258
  Json file = tokenizer_json(bpe(tokens, {"\xC4\xA0 a", "a a"}));
  file["added_tokens"].push_back(added_token("<|end|>", 258));
  file["pre_tokenizer"] = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  file["decoder"] = {{"type", "ByteLevel"}};
  return file;
}

TEST(HfByteLevel, GivesTextsBackAndMayBeCut) {
  const auto t = made_of(like_gpt2());
  EXPECT_EQ(t->encode("aa aa"), (Ids{257, 256, 'a'}));
  EXPECT_EQ(t->encode("\xC3\xA9\n"), (Ids{0xC3, 0xA9, '\n'}));
  EXPECT_EQ(t->encode("a<|end|>a"), (Ids{'a', 258, 'a'}));
  EXPECT_EQ(t->decode(Ids{257, 256, 258}), "aa a<|end|>");
  EXPECT_EQ(t->decode(Ids{0xC3, 'a'}),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(t->bytes_of(0xC3), "\xC3");
  EXPECT_EQ(t->bytes_of(256), " a");
  expect_safe_cuts(*t, "aa b2 aa  \n\n aa! <|end|> x. a y\xC3\xA9 z  a");
  EXPECT_EQ(t->safe_cut("aa b2 aa"), 5u);
  EXPECT_EQ(t->safe_cut("aa.  "), 0u);
  for (const std::string& text : difficult_strings()) {
    std::string valid;
    if (!unicode::repair(text, valid)) valid = text;
    ASSERT_EQ(t->decode(t->encode(text)), valid);
    // Twice: words that are known are found again.
    ASSERT_EQ(t->encode(text), t->encode(text));
  }
}

TEST(HfWordPiece, LongestTokensFirst) {
  Json file = tokenizer_json({{"type", "WordPiece"},
                              {"unk_token", "[UNK]"},
                              {"continuing_subword_prefix", "##"},
                              {"max_input_chars_per_word", 6},
                              {"vocab", vocab_of({"[UNK]", "[CLS]", "[SEP]", "un", "##aff",
                                                  "##able", "una", "##a", "##b", "."})}});
  file["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  file["post_processor"] = {
      {"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}};
  file["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  const auto t = made_of(file);
  EXPECT_EQ(t->encode("unaff"), (Ids{0}));  // "una" first, then nothing for "ff"
  EXPECT_EQ(t->encode("unab."), (Ids{6, 8, 9}));
  EXPECT_EQ(t->encode("unable"), (Ids{0}));
  EXPECT_EQ(t->encode("unbb un"), (Ids{3, 8, 8, 3}));
  EXPECT_EQ(t->encode("unaaaa"), (Ids{6, 7, 7, 7}));
  EXPECT_EQ(t->encode("unaaaaa"), (Ids{0}));  // seven characters
  EXPECT_EQ(t->encode("unz"), (Ids{0}));
  EXPECT_EQ(t->framed(Ids{3}), (Ids{1, 3, 2}));
  EXPECT_EQ(t->decode(Ids{6, 8, 9, 3}), "unab. un");
  EXPECT_EQ(t->bytes_of(8), "b");
  EXPECT_EQ(t->bytes_of(3), " un");
}

TEST(HfUnigram, TheLikeliestWay) {
  Json model{
      {"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", false}, {"vocab", Json::array()}};
  for (const auto& [token, score] :
       {std::pair("<unk>", 0.0), std::pair("a", -1.0), std::pair("b", -1.5), std::pair("ab", -2.4),
        std::pair("abc", -6.0), std::pair("c", -3.0)})
    model["vocab"].push_back(Json::array({token, score}));
  const auto t = made_of(tokenizer_json(model));
  EXPECT_EQ(t->encode("ab"), (Ids{3}));          // -2.4, not -2.5
  EXPECT_EQ(t->encode("abc"), (Ids{3, 5}));      // -5.4, not -6
  EXPECT_EQ(t->encode("axyb"), (Ids{1, 0, 2}));  // neighbours that are unknown are one
  EXPECT_EQ(t->encode("x"), (Ids{0}));
  model["unk_id"] = nullptr;
  EXPECT_THROW(made_of(tokenizer_json(model))->encode("x"), DataError);
  model["unk_id"] = 0;
  model["byte_fallback"] = true;
  model["vocab"].push_back(Json::array({"<0x78>", -9.0}));  // x, 6
  EXPECT_EQ(made_of(tokenizer_json(model))->encode("axa"), (Ids{1, 6, 1}));
  EXPECT_EQ(made_of(tokenizer_json(model))->encode("axya"), (Ids{1, 0, 1}));  // y has no byte
}

TEST(HfWordLevel, WordsOrUnknown) {
  Json file = tokenizer_json(word_level({"one", "two"}));
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  const auto t = made_of(file);
  EXPECT_EQ(t->encode("two three one"), (Ids{2, 0, 1}));
  EXPECT_EQ(t->decode(Ids{2, 1}), "two one");  // without a decoder tokens are words
  EXPECT_EQ(t->bytes_of(2), " two");
}

TEST(HfAddedTokens, OptionsSayWhereTheyAreFound) {
  Json file = tokenizer_json(word_level({"a", "b", " ", "x"}));  // 1 to 4
  file["normalizer"] = {{"type", "Lowercase"}};
  const auto with = [&](const std::string& content, const Json& options) {
    Json token = added_token(content, 5);
    token.update(options);
    Json whole = file;
    whole["added_tokens"].push_back(token);
    return made_of(whole);
  };
  EXPECT_EQ(with("<m>", Json::object())->encode("a<m>b"), (Ids{1, 5, 2}));
  EXPECT_EQ(with("<m>", Json::object())->encode("a <m> b"), (Ids{0, 5, 0}));  // "a " is no word
  EXPECT_EQ(with("<m>", {{"lstrip", true}})->encode("a \t<m>b"), (Ids{1, 5, 2}));
  EXPECT_EQ(with("<m>", {{"rstrip", true}})->encode("a<m>\xE3\x80\x80 b"), (Ids{1, 5, 2}));
  const auto single = with("<m>", {{"single_word", true}});
  EXPECT_EQ(single->encode("a<m>b"), (Ids{0}));
  EXPECT_EQ(single->encode("<m>"), (Ids{5}));
  EXPECT_EQ(single->encode("<m> <m>"), (Ids{5, 3, 5}));
  EXPECT_EQ(single->encode("\xCC\x81<m>"), (Ids{0}));  // a mark is of a word
  // In the text as it is, or in its normal form and their own.
  EXPECT_EQ(with("<M>", Json::object())->encode("a<M>b"), (Ids{1, 5, 2}));
  EXPECT_EQ(with("<M>", Json::object())->encode("a<m>b"), (Ids{0}));
  EXPECT_EQ(with("<M>", {{"normalized", true}})->encode("A<m>B"), (Ids{1, 5, 2}));
}

TEST(HfAddedTokens, TheLongestAtTheLeftmostPlace) {
  Json file = tokenizer_json(word_level({"a", "b", "d"}));
  for (const auto& [content, id] :
       {std::pair("ab", 4), std::pair("abc", 5), std::pair("bcd", 6), std::pair("b", 2)})
    file["added_tokens"].push_back(added_token(content, id));
  const auto t = made_of(file);
  EXPECT_EQ(t->encode("abcd"), (Ids{5, 3}));
  EXPECT_EQ(t->encode("aabd"), (Ids{1, 4, 3}));
  EXPECT_EQ(t->encode("bcdb"), (Ids{6, 2}));
}

// Parts of a text, from its beginning, are what the text is up to the last seam and what is encoded
// from there on: whatever the tokens' options make of their neighbours.
TEST(HfAddedTokens, EncodingGoesOnBehindSeams) {
  Json file = tokenizer_json(bpe({"a", "b", " ", "<", ">", "m", "n", "ab", kMark},
                                 Json::array({Json::array({"a", "b"})})));
  file["normalizer"] = {{"type", "Prepend"}, {"prepend", kMark}};
  const std::string pieces[] = {"<m>", "<n>", "<mn>", "a", "b", "ab", " ", "  ", "<", "m", "<m"};
  std::size_t seams_seen = 0;
  for (const char* option : {"", "single_word", "lstrip", "rstrip", "normalized"}) {
    Json whole = file;
    for (const auto& [content, id] : {std::pair("<m>", 9), std::pair("<n>", 10)})
      whole["added_tokens"].push_back(added_token(content, id));
    whole["added_tokens"].push_back(added_token("<m>a", 11));
    if (*option) whole["added_tokens"][1][option] = true;
    const auto t = made_of(whole);
    std::uint32_t state = 1;
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (int i = 0; i < 12; ++i)
        text += pieces[(state = state * 1664525 + 1013904223) / 65536 % std::size(pieces)];
      std::vector<Tokenizer::Seam> seams;
      const Ids ids = t->encode_with_seams(text, seams);
      ASSERT_EQ(ids, t->encode(text)) << option << text;
      seams_seen += seams.size();
      for (const auto& seam : seams)
        for (std::size_t end = seam.end; end <= text.size(); ++end) {
          Ids parts(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(seam.ids));
          t->encode_to(std::string_view(text).substr(seam.byte, end - seam.byte), parts);
          ASSERT_EQ(parts, t->encode(text.substr(0, end)))
              << option << ": " << text << " to " << end;
        }
    }
  }
  EXPECT_GT(seams_seen, 1000u);
}

TEST(HfMetaspace, TheFirstWordOfTheText) {
  Json file = tokenizer_json(word_level({"a", kMark + "a", "<x>"}));  // 1, 2, 3
  file["added_tokens"].push_back(added_token("<x>", 3));
  file["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", "first"}, {"split", true}};
  file["decoder"] = file["pre_tokenizer"];
  const auto t = made_of(file);
  EXPECT_EQ(t->encode("a a"), (Ids{2, 2}));
  EXPECT_EQ(t->encode("a<x>a a"), (Ids{2, 3, 1, 2}));
  EXPECT_EQ(t->encode("<x>a"), (Ids{3, 1}));
  EXPECT_EQ(t->decode(Ids{2, 2, 1}), "a aa");
}

TEST(HfPostProcessors, RobertaAndSequences) {
  Json file = tokenizer_json(word_level({"a"}));
  file["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}},
        {{"type", "RobertaProcessing"},
         {"sep", {"</s>", 1}},
         {"cls", {"<s>", 0}},
         {"trim_offsets", true},
         {"add_prefix_space", false}}}}};
  const auto t = made_of(file);
  EXPECT_EQ(t->framed(Ids{1, 1}), (Ids{0, 1, 1, 1}));
  const auto& pipeline = static_cast<const parts::PipelineTokenizer&>(*t);
  const Framed framed = *pipeline.framed_pair(Ids{7}, Ids{8});
  EXPECT_EQ(framed.ids, (Ids{0, 7, 1, 1, 8, 1}));
  EXPECT_EQ(framed.types, (Ids(6, 0)));
}

TEST(HfTokenizer, TextCanBeShownWhileItComes) {
  const auto llama = made_of(like_llama()), gpt2 = made_of(like_gpt2());
  const auto shown = [](const Tokenizer& t, const Ids& ids) {
    TextStream stream(t);
    std::vector<std::string> parts;
    for (std::int32_t id : ids) parts.push_back(stream.push(id));
    parts.push_back(stream.finish());
    return parts;
  };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(shown(*llama, {263, 263, 3 + 0xC3, 3 + 0xA9, 263}),
            (Parts{"hi", " hi", "", "\xC3\xA9", " hi", ""}));
  EXPECT_EQ(shown(*gpt2, {257, 0xC3, 0xA9, 256, 0xC3}),
            (Parts{"aa", "", "\xC3\xA9", " a", "", "\xEF\xBF\xBD"}));
}

TEST(HfTokenizer, SavesAndReloads) {
  const TemporaryFolder folder;
  const Json file = like_gpt2();
  TemporaryFolder::put(folder / "tokenizer.json", file.dump(1));
  TemporaryFolder::put(folder / "tokenizer_config.json",
                       R"({"eos_token": {"content": "<|end|>"}})");
  EXPECT_TRUE(is_tokenizer(folder.path()));
  const auto t = load_tokenizer(folder.path());
  EXPECT_EQ(t->kind(), "hf");
  EXPECT_EQ(t->end_of_text(), 258);
  EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->fingerprint(), t->fingerprint());
  const TemporaryFolder saved;
  t->save(saved.path());
  const auto loaded = load_tokenizer(saved.path());
  EXPECT_EQ(loaded->kind(), "hf");
  EXPECT_EQ(loaded->end_of_text(), 258);
  EXPECT_EQ(loaded->fingerprint(), t->fingerprint());
  EXPECT_EQ(loaded->encode("aa a<|end|>"), t->encode("aa a<|end|>"));
  EXPECT_EQ(read_file(saved / "tokenizer.json"), file.dump(1));
  // How batches are cut and padded is no part of it; another merge is another tokenizer.
  Json same = file, other = file;
  same["truncation"] = {{"max_length", 8}};
  other["model"]["merges"].erase(std::size_t{1});
  EXPECT_EQ(made_of(same)->fingerprint(), made_of(file)->fingerprint());
  EXPECT_NE(made_of(other)->fingerprint(), made_of(file)->fingerprint());
  TemporaryFolder::put(saved / "tokenizer.json", other.dump());
  EXPECT_THROW(load_tokenizer(saved.path()), DataError);
}

TEST(HfTokenizer, WhatIsNotKnownOrDoesNotFitIsRefusedByName) {
  const Json good = like_llama();
  EXPECT_EQ(refusal(good), "made");
  const auto with = [&](const char* pointer, const Json& value) {
    Json file = good;
    file[Json::json_pointer(pointer)] = value;
    return refusal(file);
  };
  expect_names(with("/unheard", 1), "unheard");
  expect_names(with("/version", "2.0"), "1.0");
  expect_names(with("/padding", 3), "padding");
  expect_names(with("/model/type", "Neural"), "Neural");
  expect_names(with("/model/cache", 1), "cache");
  expect_names(with("/model/dropout", 0.1), "model.dropout");
  EXPECT_EQ(with("/model/dropout", 0), "made");
  expect_names(with("/model/merges/0", "h"), "model.merges[0]");
  expect_names(with("/model/merges/0", "h zz"), "zz");
  expect_names(with("/model/merges/0", {"h"}), "model.merges[0]");
  expect_names(with("/model/vocab/h", 261), "261");
  expect_names(with("/model/vocab/h", -1), "-1");
  expect_names(with("/model/vocab/h", 4294967296), "4294967296");
  expect_names(with("/model/vocab/h", "1"), "model.vocab");
  expect_names(with("/added_tokens/1/id", 300), "added_tokens[1]");
  expect_names(with("/added_tokens/1/trim", true), "trim");
  expect_names(with("/added_tokens/1/special", nullptr), "special");
  expect_names(with("/post_processor/single/0/Piece", 1), "Piece");
  expect_names(with("/post_processor/special_tokens", Json::object()), "<s>");
  expect_names(with("/post_processor/special_tokens/<s>/ids/0", 265), "below 265");
  expect_names(with("/post_processor/type", "Other"), "Other");
  expect_names(with("/decoder/decoders/1/type", "CTC"), "decoder.decoders[1]");
  expect_names(with("/model", nullptr), "model");
  EXPECT_THROW(make_hf_tokenizer("{", "x"), DataError);
  EXPECT_THROW(make_hf_tokenizer("[]", "x"), DataError);
  EXPECT_THROW(make_hf_tokenizer(std::string(100000, '['), "x"), DataError);
}

}  // namespace
}  // namespace aloft
