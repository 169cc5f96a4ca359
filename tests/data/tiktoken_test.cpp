#include <gtest/gtest.h>

#include "base/error.h"
#include "data/round_trip.h"
#include "data/tokenizer_json.h"
#include "data/tokenizers/tiktoken_tokenizer.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

// The 256 bytes by their own values, and tokens from 256 on.
std::string ranks(const std::vector<std::string>& tokens) {
  std::string file;
  for (int b = 0; b < 256; ++b)
    file += base64_of(std::string(1, static_cast<char>(b))) + " " + std::to_string(b) + "\n";
  for (std::size_t i = 0; i < tokens.size(); ++i)
    file += base64_of(tokens[i]) + " " + std::to_string(256 + i) + "\n";
  return file;
}

TEST(Tiktoken, MergesWhateverMakesATokenOfTheLowestRank) {
  // ab 256, bc 257, abc 258, " x" 259, abcd 260
  const auto t =
      make_tiktoken_tokenizer(ranks({"ab", "bc", "abc", " x", "abcd"}), "r50k_base", "f");
  EXPECT_EQ(t->encode("bc"), (Ids{257}));
  EXPECT_EQ(t->encode("abc"), (Ids{258}));
  EXPECT_EQ(t->encode("abcb x"), (Ids{258, 'b', 259}));
  EXPECT_EQ(t->encode("abcd"), (Ids{260}));
  // No two tokens make abcd in "abcde" but abc and d.
  EXPECT_EQ(t->encode("abcde"), (Ids{260, 'e'}));
  EXPECT_EQ(t->encode("<|endoftext|>ab"), (Ids{50256, 256}));
  EXPECT_EQ(t->vocab_size(), 50257);
  EXPECT_EQ(t->end_of_text(), 50256);
  EXPECT_EQ(t->decode(Ids{258, 259, 50256}), "abc x<|endoftext|>");
  EXPECT_EQ(t->bytes_of(0xC3), "\xC3");
  EXPECT_TRUE(t->bytes_of(300).empty());  // a rank that nothing has
}

TEST(Tiktoken, TheNameSaysHowTextIsSplit) {
  const std::string file = ranks({"12", "1234", " a"});
  const auto ids = [&](const char* name) {
    return make_tiktoken_tokenizer(file, name, "f")->encode("1234 a");
  };
  EXPECT_EQ(ids("r50k_base"), (Ids{257, 258}));
  EXPECT_EQ(ids("cl100k_base"), (Ids{256, '3', '4', 258}));  // three digits at most
  EXPECT_EQ(ids("qwen"), (Ids{'1', '2', '3', '4', 258}));
  EXPECT_EQ(ids("o200k_base"), ids("cl100k_base"));
}

TEST(Tiktoken, MayBeCutAndIsSaved) {
  const std::string file = ranks({"ab", " a"});
  const TemporaryFolder folder, saved;
  TemporaryFolder::put(folder / "cl100k_base.tiktoken", file);
  const auto t = load_tokenizer(folder / "cl100k_base.tiktoken");
  EXPECT_EQ(t->kind(), "tiktoken");
  expect_safe_cuts(*t, "ab a 12 a's !\n\n ab  a a\xC3\xA9 a");
  EXPECT_GT(t->safe_cut("ab ab ab"), 0u);
  t->save(saved.path());
  const auto loaded = load_tokenizer(saved.path());
  EXPECT_EQ(loaded->fingerprint(), t->fingerprint());
  EXPECT_EQ(loaded->encode("ab a"), t->encode("ab a"));
}

TEST(Tiktoken, WhatDoesNotFitIsRefused) {
  const auto refused = [](const std::string& file, const char* name = "cl100k_base") {
    try {
      make_tiktoken_tokenizer(file, name, "f");
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0519");
      return std::string(e.what());
    }
    return std::string("made");
  };
  const std::string good = ranks({});
  EXPECT_EQ(refused(good), "made");
  EXPECT_NE(refused(good, "unheard").find("unheard"), std::string::npos);
  EXPECT_NE(refused("").find("byte 0"), std::string::npos);
  for (const char* line : {"YQ==", "YQ== x", "!!!! 300", "YWI= -1", "YWI= 1", " 300", "YWI= 300 1",
                           "YWI= 8855555", "YWI= 99999999999999999999"})
    EXPECT_NE(refused(good + line + "\n").find("line 257"), std::string::npos) << line;
  EXPECT_NE(refused(good + "YWI= 50256\n", "r50k_base").find("free for <|endoftext|>"),
            std::string::npos);
}

}  // namespace
}  // namespace aloft
