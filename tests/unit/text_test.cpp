#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/terminal.h"

namespace aloft {
namespace {

TEST(Text, SplitJoinTrimLower) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,,b", ','), (Parts{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (Parts{""}));
  EXPECT_EQ(split(",", ','), (Parts{"", ""}));
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", ""}, ", "), "a, b, ");
  EXPECT_EQ(trim(" \t x y\r\n"), "x y");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(lower("O2:BF16"), "o2:bf16");
  EXPECT_TRUE(is_identifier("_b2"));
  for (const char* text : {"", "2b", "a-b", "a b", "\xc3\xa4"})
    EXPECT_FALSE(is_identifier(text)) << text;
}

TEST(Text, Globs) {
  EXPECT_TRUE(glob_match("h.*.attn.*", "h.11.attn.qkv.weight"));
  EXPECT_FALSE(glob_match("h.*.attn.*", "h.11.mlp.up.weight"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_TRUE(glob_match("*.bias", "h.0.bias"));
  EXPECT_FALSE(glob_match("*.bias", "h.0.bias2"));
  EXPECT_TRUE(glob_match("a?c*", "abc"));
  EXPECT_FALSE(glob_match("h.[0]", "h.0"));  // brackets are plain characters
  EXPECT_FALSE(glob_match(std::string(200, '*') + "b", std::string(20000, 'a')));
}

bool plain_match(std::string_view p, std::string_view t) {
  if (p.empty()) return t.empty();
  if (p[0] == '*')
    return plain_match(p.substr(1), t) || (!t.empty() && plain_match(p, t.substr(1)));
  return !t.empty() && (p[0] == '?' || p[0] == t[0]) && plain_match(p.substr(1), t.substr(1));
}

TEST(Text, GlobsEqualThePlainDefinition) {
  std::mt19937 random(1);
  int matches = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string p, t;
    for (unsigned n = random() % 7; n > 0; --n) p += "ab*?"[random() % 4];
    for (unsigned n = random() % 9; n > 0; --n) t += "ab"[random() % 2];
    ASSERT_EQ(glob_match(p, t), plain_match(p, t)) << p << " " << t;
    matches += glob_match(p, t);
  }
  EXPECT_GT(matches, 1000);
}

TEST(Text, Numbers) {
  EXPECT_EQ(parse_int("-12"), -12);
  for (const char* bad : {"", " 1", "1 ", "1x", "99999999999999999999", "0x10", "+1"})
    EXPECT_FALSE(parse_int(bad)) << bad;
  EXPECT_EQ(parse_double("1e-3"), 1e-3);
  EXPECT_FALSE(parse_double("1e-3,"));
  EXPECT_FALSE(parse_double("1e999"));
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(1572864), "1.50 MiB");
  EXPECT_EQ(human_bytes(1048575), "1.00 MiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::uint64_t>::max()), "16.00 EiB");
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(0.25), "0.25");
  EXPECT_EQ(human_count(124439808), "124M");
  EXPECT_EQ(human_count(-1240), "-1.24k");
  EXPECT_EQ(human_count(999600), "1.00M");
  EXPECT_EQ(human_seconds(7), "7 s");
  EXPECT_EQ(human_seconds(187), "3:07");
  EXPECT_EQ(human_seconds(7387.4), "2:03:07");
  EXPECT_EQ(human_seconds(std::nan("")), "nan s");
  EXPECT_EQ(grouped(-12345678), "-12,345,678");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(1200, "step"), "1,200 steps");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(-std::nan("")), "nan");
}

TEST(Text, OneWordOfAShell) {
  const std::pair<std::string, std::string> words[] = {
      {"plain-word_1.txt", "plain-word_1.txt"},
      {"", "''"},
      {"#include <", "'#include <'"},
      {"it's $HOME", R"('it'\''s $HOME')"},
      {"a\n\tb\\c'd\x1b[2J", R"($'a\n\tb\\c\'d\x1b[2J')"},
      {"gr\xc3\xbc\xc3\x9f", "'gr\xc3\xbc\xc3\x9f'"}};
  for (const auto& [text, word] : words) EXPECT_EQ(in_shell(text), word);
}

TEST(Text, HarmlessOnATerminal) {
  EXPECT_EQ(harmless("a\tb\n\x1b[2J\r\x7f"), "a\tb\n\\x1b[2J\\x0d\\x7f");
}

TEST(Text, QuotedIsPrintable) {
  EXPECT_EQ(in_quotes("a\"b\\\n\x01\xff"), "\"a\\\"b\\\\\\n\\x01\\xff\"");
  EXPECT_EQ(in_quotes("abcdef", 3), "\"abc\"...");
}

}  // namespace
}  // namespace aloft
