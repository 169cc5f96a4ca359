// Normalizers and pre-tokenizers of tokenizer.json, each by what it makes of a text.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/tokenizer_json.h"
#include "data/tokenizers/parts/base64.h"
#include "data/tokenizers/parts/normalizers.h"
#include "data/tokenizers/parts/pre_tokenizers.h"
#include "data/tokenizers/parts/unicode.h"

namespace aloft::parts {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string kFile = "tokenizer.json";

std::string normal(const Json& normalizer, const std::string& text) {
  MatchSpace space;
  NormalText t{text, {}, false};
  normalize(read_normalizers(JsonPlace(normalizer, kFile, "normalizer")), t, space);
  return t.text;
}

Words words(const Json& pre_tokenizer, std::string_view text, bool is_first = true) {
  MatchSpace space;
  const PreTokenizer made = read_pre_tokenizer(JsonPlace(pre_tokenizer, kFile, "pre_tokenizer"));
  Pieces pieces;
  pieces.start(text, is_first);
  for (const auto& step : made.steps) step->apply(pieces, space);
  Words all;
  for (const Piece& piece : pieces.all()) all.emplace_back(pieces.of(piece));
  return all;
}

Json split(const std::string& regex, const std::string& behavior = "Isolated",
           bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", behavior},
          {"invert", invert}};
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0519");
    return e.what();
  }
  return "";
}

TEST(Normalizers, NormalForms) {
  const std::string composed = "\xC3\xA9", decomposed = "e\xCC\x81", ligature = "\xEF\xAC\x81";
  EXPECT_EQ(normal({{"type", "NFC"}}, decomposed), composed);
  EXPECT_EQ(normal({{"type", "NFD"}}, composed), decomposed);
  EXPECT_EQ(normal({{"type", "NFC"}}, ligature), ligature);
  EXPECT_EQ(normal({{"type", "NFKC"}}, ligature + decomposed), "fi" + composed);
  EXPECT_EQ(normal({{"type", "NFKD"}}, ligature + composed), "fi" + decomposed);
  // Hangul is composed by rule, and marks are put in order: the dot below stands first.
  EXPECT_EQ(normal({{"type", "NFC"}}, "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), "\xED\x95\x9C");
  EXPECT_EQ(normal({{"type", "NFD"}}, "a\xCC\x88\xCC\xA3"), "a\xCC\xA3\xCC\x88");
  EXPECT_EQ(normal({{"type", "NFC"}}, "plain"), "plain");
}

TEST(Normalizers, LettersAndAccents) {
  EXPECT_EQ(normal({{"type", "Lowercase"}}, "AbC \xC3\x84\xCE\xA3"), "abc \xC3\xA4\xCF\x83");
  EXPECT_EQ(normal({{"type", "Lowercase"}}, "\xC4\xB0"), "i\xCC\x87");  // a dotted capital I
  EXPECT_EQ(normal({{"type", "StripAccents"}}, "e\xCC\x81\xCC\x84o"), "eo");
  EXPECT_EQ(normal({{"type", "StripAccents"}}, "\xC3\xA9"), "\xC3\xA9");  // composed: one letter
}

// Hugging Face's library asks tables of Unicode 9 for these, and of Unicode 8 in BERT's.
TEST(UnicodeOfParts, CharactersThatCameLaterAreNotAssigned) {
  const std::string vowel = "\xF0\x91\xA4\xB8";  // U+11938, of Unicode 13: U+11935 U+11930
  const std::string parts = "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0";
  EXPECT_EQ(normal({{"type", "NFD"}}, vowel), vowel);
  EXPECT_EQ(normal({{"type", "NFC"}}, parts), parts);
  const std::string era = "\xE3\x8B\xBF";  // U+32FF, of Unicode 12.1
  EXPECT_EQ(normal({{"type", "NFKC"}}, era + "\xEF\xBC\xA1"), era + "A");
  EXPECT_EQ(normal({{"type", "NFKD"}}, era), era);
  // No mark of Unicode 10 goes; one of Unicode 9 does, and one that was a mark up to Unicode 11.
  const std::string of_9 = "\xE0\xA3\x94", of_10 = "\xE0\xAB\xBA", until_11 = "\xE1\xB3\xB2";
  EXPECT_EQ(normal({{"type", "StripAccents"}}, "a" + of_9 + of_10 + until_11), "a" + of_10);
  const Json bert{{"type", "BertNormalizer"},
                  {"clean_text", true},
                  {"handle_chinese_chars", false},
                  {"strip_accents", true},
                  {"lowercase", false}};
  const std::string of_8 = "\xE0\xA3\xA3", until_13 = "\xE1\x9C\xB4", since_9 = "\xE1\xA2\x85";
  EXPECT_EQ(normal(bert, "a" + of_8 + of_9 + until_13 + since_9), "a" + of_9 + since_9);
  const std::string format_of_9 = "\xE0\xA3\xA2";  // U+08E2
  EXPECT_EQ(normal(bert, "a" + format_of_9), "a" + format_of_9);
  const Json punctuation{{"type", "Punctuation"}};
  EXPECT_EQ(words(punctuation, "a\xE2\xB9\x83"), Words{"a\xE2\xB9\x83"});        // of Unicode 9
  EXPECT_EQ(words(punctuation, "a\xE1\x99\xAD"), (Words{"a", "\xE1\x99\xAD"}));  // until 11
}

TEST(Normalizers, StripTakesWhiteSpaceAway) {
  const auto strip = [](bool left, bool right) {
    return normal({{"type", "Strip"}, {"strip_left", left}, {"strip_right", right}},
                  " \t\xE3\x80\x80x y\n ");
  };
  EXPECT_EQ(strip(true, true), "x y");
  EXPECT_EQ(strip(true, false), "x y\n ");
  EXPECT_EQ(strip(false, true), " \t\xE3\x80\x80x y");
  EXPECT_EQ(strip(false, false), " \t\xE3\x80\x80x y\n ");
  EXPECT_EQ(normal({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}}, "  "), "");
}

TEST(Normalizers, ReplaceAndPrepend) {
  const Json plain{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "_"}};
  EXPECT_EQ(normal(plain, "a  b "), "a__b_");
  const Json regex{{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}};
  EXPECT_EQ(normal(regex, "a    b c"), "a b c");
  EXPECT_EQ(normal({{"type", "Prepend"}, {"prepend", "_"}}, "a"), "_a");
  EXPECT_EQ(normal({{"type", "Prepend"}, {"prepend", "_"}}, ""), "");
  const Json both{{"type", "Sequence"},
                  {"normalizers", {{{"type", "Prepend"}, {"prepend", " "}}, plain}}};
  EXPECT_EQ(normal(both, "a b"), "_a_b");
}

TEST(Normalizers, Bert) {
  const auto bert = [](bool clean, bool ideographs, const Json& accents, bool lower) {
    return Json{{"type", "BertNormalizer"},
                {"clean_text", clean},
                {"handle_chinese_chars", ideographs},
                {"strip_accents", accents},
                {"lowercase", lower}};
  };
  EXPECT_EQ(normal(bert(true, false, false, false), std::string("a\0\x01\tb\xEF\xBF\xBD\r", 9)),
            "a b ");
  EXPECT_EQ(normal(bert(false, true, false, false), "a\xE4\xBD\xA0z"), "a \xE4\xBD\xA0 z");
  // Without a word about accents they go where letters are lowered.
  EXPECT_EQ(normal(bert(false, false, nullptr, true), "\xC3\x89"), "e");
  EXPECT_EQ(normal(bert(false, false, nullptr, false), "\xC3\x89"), "\xC3\x89");
  EXPECT_EQ(normal(bert(false, false, false, true), "\xC3\x89"), "\xC3\xA9");
  EXPECT_EQ(normal(bert(false, false, true, false), "\xC3\x89"), "E");
}

TEST(Normalizers, Nmt) {
  EXPECT_EQ(normal({{"type", "Nmt"}},
                   "\x01"
                   "a\tb\xE2\x80\x8B"
                   "c\xC2\x8F\xEF\xBB\xBF"),
            "a b c ");
}

TEST(Normalizers, ByteLevelWritesLetters) {
  EXPECT_EQ(normal({{"type", "ByteLevel"}}, "a \xC3\xA9"), "a\xC4\xA0\xC3\x83\xC2\xA9");
}

// A double array of one entry, "A" for "bc". Units: offset << 10 | leaf << 8 | label. The root's
// children lie at offset ^ label; a leaf's value at the node's own offset.
TEST(Normalizers, PrecompiledCharsmap) {
  std::vector<std::uint32_t> units(512, 0);
  units[0] = 256u << 10;                          // root: children at 256 ^ label
  units[256 ^ 'A'] = (2u << 10) | 1u << 8 | 'A';  // ends a text; its value at node ^ 2
  units[(256 ^ 'A') ^ 2] = 0x80000000u;           // 0: where "bc" begins
  const std::uint32_t size = static_cast<std::uint32_t>(units.size() * 4);
  std::string bytes;
  const auto put = [&](std::uint32_t v) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(v >> 8 * i & 0xFF);
  };
  put(size);
  for (std::uint32_t u : units) put(u);
  bytes += std::string("bc\0", 3);
  const Json map{{"type", "Precompiled"}, {"precompiled_charsmap", base64_of(bytes)}};
  EXPECT_EQ(normal(map, "xAy"), "xbcy");
  // What is seen as one character is looked up as one: its beginning decides.
  EXPECT_EQ(normal(map, "A\xCC\x81z"), "bcz");
  for (const char* bad : {"", "AAAA", "!", "/////wAA"})
    EXPECT_NE(refusal([&] {
                normal({{"type", "Precompiled"}, {"precompiled_charsmap", bad}}, "");
              }),
              "")
        << bad;
}

TEST(Normalizers, WhatIsNotKnownIsRefusedByName) {
  const auto refused = [](const Json& j) { return refusal([&] { normal(j, "text"); }); };
  const auto expect_names = [](const std::string& text, std::string_view name) {
    EXPECT_NE(text.find(name), std::string::npos) << text;
  };
  expect_names(refused({{"type", "Unheard"}}), "Unheard");
  expect_names(refused({{"type", "NFC"}, {"strict", true}}), "strict");
  expect_names(refused({{"type", "Sequence"}, {"normalizers", {{{"type", "NFQ"}}}}}),
               "normalizer.normalizers[0]");
  expect_names(refused({{"type", "Prepend"}}), "prepend");
  expect_names(refused({{"type", "Strip"}, {"strip_left", 1}, {"strip_right", true}}),
               "strip_left");
  const auto replace = [&](const Json& pattern, const std::string& content) {
    return refused({{"type", "Replace"}, {"pattern", pattern}, {"content", content}});
  };
  expect_names(replace({{"Glob", "x"}}, "y"), "Glob");
  expect_names(replace({{"String", ""}}, "y"), "empty");
  expect_names(replace({{"Regex", "(a"}}, "y"), "(a");
  expect_names(replace({{"Regex", "(a)"}}, "$1"), "$");
  Json doubling = Json::array();
  for (int i = 0; i < 40; ++i)
    doubling.push_back({{"type", "Replace"}, {"pattern", {{"String", "t"}}}, {"content", "tt"}});
  expect_names(refused({{"type", "Sequence"}, {"normalizers", doubling}}), "64 times");
}

TEST(PreTokenizers, SplitBehaviors) {
  const std::string text = "the-final--countdown";
  const auto by = [&](const std::string& behavior, bool invert = false) {
    Json s = split("-", behavior, invert);
    s["pattern"] = {{"String", "-"}};
    return words(s, text);
  };
  EXPECT_EQ(by("Removed"), (Words{"the", "final", "countdown"}));
  EXPECT_EQ(by("Isolated"), (Words{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(by("MergedWithPrevious"), (Words{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(by("MergedWithNext"), (Words{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(by("Contiguous"), (Words{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(by("Removed", true), (Words{"-", "-", "-"}));
  EXPECT_EQ(words(split("[a-z]+", "Removed", true), "ab, cd"), (Words{"ab", "cd"}));
}

TEST(PreTokenizers, ExpressionsMeanWhatTheirAuthorsMeant) {
  // Llama 3.
  const std::string llama = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                            R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  EXPECT_EQ(words(split(llama), "I'M 12345 x!\n\n  y"),
            (Words{"I", "'M", " ", "123", "45", " x", "!\n\n", " ", " y"}));
  // A Mongolian vowel separator is no white space, nor is it for \S.
  EXPECT_EQ(words(split(R"(\s+)"),
                  "a\xE1\xA0\x8E"
                  "b\xC2\x85"
                  "c"),
            (Words{"a\xE1\xA0\x8E"
                   "b",
                   "\xC2\x85", "c"}));
  EXPECT_EQ(words(split(R"([^\S\n]+)"), "a \nb"), (Words{"a", " ", "\nb"}));
  EXPECT_EQ(words(split(R"(\w+)", "Removed", true), "e\xCC\x81x-y_z"),
            (Words{"e\xCC\x81x", "y_z"}));
  EXPECT_EQ(words(split(R"(\w+)", "Removed", true), "x\xC2\xB2y-\xE2\x81\xB4"),  // a square, a 4th
            (Words{"x\xC2\xB2y"}));
  EXPECT_EQ(words(split(R"(\h+)", "Removed", true), "xafF0g"), (Words{"afF0"}));
  EXPECT_EQ(words(split(R"(^a)"), "a\na"), (Words{"a", "\n", "a"}));      // of every line
  EXPECT_EQ(words(split(R"((?m:a.b))"), "xa\nb"), (Words{"x", "a\nb"}));  // Ruby's m
  EXPECT_EQ(words(split(R"(a{,2}b)"), "caab"), (Words{"c", "aab"}));
  EXPECT_EQ(words(split(R"(\p{Han}+)"), "a\xE4\xBD\xA0\xE5\xA5\xBD"),
            (Words{"a", "\xE4\xBD\xA0\xE5\xA5\xBD"}));
  // The prolonged sound mark is used by Hiragana too, and is neither's alone.
  EXPECT_EQ(words(split(R"(\p{^Hiragana}+)", "Removed"), "\xE3\x81\x82\xE3\x83\xBC"),
            (Words{"\xE3\x81\x82"}));
  EXPECT_EQ(words(split(R"(\bb)"), "ab b"), (Words{"ab ", "b"}));
  EXPECT_EQ(words(split(R"(x*)"), "axxb"), (Words{"a", "xx", "b"}));
}

TEST(PreTokenizers, ExpressionsThatMayMeanSomethingElseAreRefused) {
  for (const char* regex :
       {R"(a{2}+)", R"(a{2}?)", R"([a&&b])", R"([a[bc]])", R"([[:alpha:]])", R"((?x: a))",
        R"(a(?i)b)", R"(\Ka)", R"(\R)", R"((a)\1)", R"(\p{Alpha})", R"((?<n>a))", R"((*FAIL))",
        R"([])", R"([^\W])", R"(\xFF)", R"(a**)", R"(\)", R"([a)"}) {
    const std::string text = refusal([&] { words(split(regex), "a"); });
    EXPECT_NE(text.find("pre_tokenizer.pattern.Regex"), std::string::npos) << regex << text;
  }
}

TEST(PreTokenizers, ByteLevel) {
  const auto level = [](bool prefix, bool regex) {
    return Json{{"type", "ByteLevel"},
                {"add_prefix_space", prefix},
                {"trim_offsets", true},
                {"use_regex", regex}};
  };
  EXPECT_EQ(words(level(false, true), "Hi  you"), (Words{"Hi", " ", " you"}));
  EXPECT_EQ(words(level(true, true), "Hi"), (Words{" Hi"}));
  EXPECT_EQ(words(level(true, false), " Hi you"), (Words{" Hi you"}));
  EXPECT_TRUE(read_pre_tokenizer(JsonPlace(level(false, true), kFile)).ends_in_byte_letters);
  // Behind another step of its own it writes letters for it.
  const Json digits{{"type", "Digits"}, {"individual_digits", true}};
  const Json both{{"type", "Sequence"}, {"pretokenizers", {level(false, false), digits}}};
  EXPECT_EQ(words(both, " 1a"), (Words{"\xC4\xA0", "1", "a"}));
}

TEST(PreTokenizers, Metaspace) {
  const std::string mark = "\xE2\x96\x81";
  const auto meta = [&](const std::string& scheme, bool cuts) {
    return Json{
        {"type", "Metaspace"}, {"replacement", mark}, {"prepend_scheme", scheme}, {"split", cuts}};
  };
  EXPECT_EQ(words(meta("always", true), "Hey  you", false),
            (Words{mark + "Hey", mark, mark + "you"}));
  EXPECT_EQ(words(meta("always", true), " Hey"), (Words{mark + "Hey"}));
  EXPECT_EQ(words(meta("first", true), "Hey you", true), (Words{mark + "Hey", mark + "you"}));
  EXPECT_EQ(words(meta("first", true), "Hey you", false), (Words{"Hey", mark + "you"}));
  EXPECT_EQ(words(meta("never", false), "Hey you"), (Words{"Hey" + mark + "you"}));
  // As earlier versions write it.
  const auto old = [&](bool prefix) {
    return Json{{"type", "Metaspace"},
                {"replacement", "_"},
                {"str_rep", "_"},
                {"add_prefix_space", prefix}};
  };
  EXPECT_EQ(words(old(true), "a b"), (Words{"_a", "_b"}));
  EXPECT_EQ(words(old(false), "a b"), (Words{"a", "_b"}));
  EXPECT_NE(refusal([&] {
              Json both = meta("first", true);
              both["add_prefix_space"] = false;
              words(both, "a");
            }),
            "");
}

TEST(PreTokenizers, ByCharacters) {
  EXPECT_EQ(words({{"type", "Whitespace"}}, "Hi, e\xCC\x81_1!? \xE3\x80\x80x"),
            (Words{"Hi", ",", "e\xCC\x81_1", "!?", "x"}));
  EXPECT_EQ(words({{"type", "WhitespaceSplit"}},
                  " a,\tb\xC2\xA0"
                  "c "),
            (Words{"a,", "b", "c"}));
  EXPECT_EQ(words({{"type", "BertPreTokenizer"}}, "a-b  c\xE3\x80\x82$"),
            (Words{"a", "-", "b", "c", "\xE3\x80\x82", "$"}));
  EXPECT_EQ(words({{"type", "Punctuation"}}, "a!!b"), (Words{"a", "!", "!", "b"}));
  EXPECT_EQ(words({{"type", "Punctuation"}, {"behavior", "Contiguous"}}, "a!!b"),
            (Words{"a", "!!", "b"}));
  const auto digits = [](bool each) {
    return Json{{"type", "Digits"}, {"individual_digits", each}};
  };
  EXPECT_EQ(words(digits(true), "a12\xC2\xBD"), (Words{"a", "1", "2", "\xC2\xBD"}));
  EXPECT_EQ(words(digits(false), "a12b"), (Words{"a", "12", "b"}));
  EXPECT_EQ(words({{"type", "CharDelimiterSplit"}, {"delimiter", "-"}}, "-a--b"),
            (Words{"a", "b"}));
  EXPECT_EQ(words({{"type", "FixedLength"}, {"length", 2}},
                  "a\xC3\xA9"
                  "bcd"),
            (Words{"a\xC3\xA9", "bc", "d"}));
}

TEST(PreTokenizers, WhatIsNotKnownIsRefusedByName) {
  const auto expect_names = [](const Json& j, std::string_view name) {
    const std::string text = refusal([&] { words(j, "a"); });
    EXPECT_NE(text.find(name), std::string::npos) << text;
  };
  expect_names({{"type", "UnicodeScripts"}}, "UnicodeScripts");
  expect_names({{"type", "Digits"}, {"groups", 3}}, "groups");
  expect_names({{"type", "Sequence"}, {"pretokenizers", {{{"type", "X"}}}}}, "pretokenizers[0]");
  expect_names({{"pretokenizers", Json::array()}}, "type");
  expect_names(split("a", "Dropped"), "Dropped");
}

TEST(Repair, OneMarkForAsMuchAsMayBeRight) {
  const auto repaired = [](std::string_view text) {
    std::string out;
    return unicode::repair(text, out) ? out : "as it is";
  };
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(repaired("plain \xC3\xA9"), "as it is");
  EXPECT_EQ(repaired("a\xFF"
                     "b"),
            "a" + bad + "b");
  EXPECT_EQ(repaired("\xF0\x9F\x99"), bad);  // cut short: one
  EXPECT_EQ(repaired("\xF0\x9F\x99x"), bad + "x");
  EXPECT_EQ(repaired("\xED\xA0\x80"),
            bad + bad + bad);  // a surrogate: no beginning of one is right
  EXPECT_EQ(repaired("\xC0\xAF"), bad + bad);
  EXPECT_EQ(repaired("\xE0\x80\x80"), bad + bad + bad);
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(repaired("\x80"), bad);
}

TEST(Base64, GivesBytesOrNothing) {
  EXPECT_EQ(from_base64(""), "");
  EXPECT_EQ(from_base64("YQ=="), "a");
  EXPECT_EQ(from_base64("YWI="), "ab");
  EXPECT_EQ(from_base64("YWI"), "ab");
  EXPECT_EQ(from_base64("YWJj"), "abc");
  EXPECT_EQ(from_base64("+/8="), "\xFB\xFF");
  for (const char* bad : {"Y", "YW I", "YQ===", "Y=Q=", "\xC3\xA9=="})
    EXPECT_FALSE(from_base64(bad)) << bad;
}

}  // namespace
}  // namespace aloft::parts
