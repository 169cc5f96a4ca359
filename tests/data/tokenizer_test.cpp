#include "data/tokenizer.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "data/build.h"
#include "data/round_trip.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/tokenizer_kind.h"
#include "data_file.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

std::unique_ptr<Tokenizer> char_tokenizer_of(std::string_view text,
                                             ByteFallback fallback = ByteFallback::WhereNeeded) {
  CharAlphabet alphabet;
  alphabet.add(text);
  return alphabet.build(fallback);
}

void expect_same_after_reload(const Tokenizer& tokenizer) {
  TemporaryFolder folder;
  tokenizer.save(folder.path());
  const auto loaded = load_tokenizer(folder.path());
  EXPECT_EQ(loaded->kind(), tokenizer.kind());
  EXPECT_EQ(loaded->vocab_size(), tokenizer.vocab_size());
  EXPECT_EQ(loaded->fingerprint(), tokenizer.fingerprint());
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    ASSERT_EQ(loaded->bytes_of(id), tokenizer.bytes_of(id));
}

TEST(ByteTokenizer, IsTheBytes) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(tokenizer->encode("a\xFF"), (std::vector<std::int32_t>{97, 255}));
  expect_round_trips(*tokenizer);
  expect_same_after_reload(*tokenizer);
  EXPECT_THROW(tokenizer->bytes_of(256), UserError);
  EXPECT_THROW(tokenizer->bytes_of(-1), UserError);
}

TEST(CharTokenizer, IdsFollowTheCodePoints) {
  const auto tokenizer = char_tokenizer_of("hello w\xC3\xB6rld");
  EXPECT_EQ(tokenizer->vocab_size(), 9);  // " dehlorwö" less what repeats
  EXPECT_EQ(tokenizer->encode(" d\xC3\xB6"), (std::vector<std::int32_t>{0, 1, 8}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("hello")), "hello");
  expect_safe_cuts(*tokenizer, "w\xC3\xB6w\xC3\xB6");
  expect_same_after_reload(*tokenizer);
}

TEST(CharTokenizer, AnUnknownCharacterIsRefusedByNameWithoutFallback) {
  const auto tokenizer = char_tokenizer_of("abc");
  try {
    tokenizer->encode("ab\xE2\x82\xAC");
    FAIL();
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0501");
    EXPECT_NE(std::string(e.what()).find("U+20AC"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("byte 2"), std::string::npos) << e.what();
  }
  EXPECT_THROW(tokenizer->encode("\xFF"), DataError);
}

TEST(CharTokenizer, WithFallbackEverythingGoesThrough) {
  const auto asked = char_tokenizer_of("abc \n", ByteFallback::Always);
  EXPECT_EQ(asked->vocab_size(), 5 + 256);
  expect_round_trips(*asked);
  expect_same_after_reload(*asked);
  const auto needed = char_tokenizer_of("ab\xFF");
  EXPECT_EQ(needed->vocab_size(), 2 + 256);
  expect_round_trips(*needed);
  EXPECT_NE(needed->fingerprint(), char_tokenizer_of("ab")->fingerprint());
}

TEST(CharTokenizer, TinyShakespeareHas65Characters) {
  const DataFile file = data_file("tinyshakespeare.txt");
  if (!file.missing.empty()) GTEST_SKIP() << file.missing;
  const std::string text = read_file(file.path);
  const auto tokenizer = char_tokenizer_of(text);
  EXPECT_EQ(tokenizer->vocab_size(), 65);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(CharTokenizer, NothingToLearnFrom) {
  EXPECT_THROW(CharAlphabet().build(), DataError);
  EXPECT_THROW(char_tokenizer_of("\xFF\xFE"), DataError);
}

TEST(LoadTokenizer, DamagedFilesAreRefused) {
  TemporaryFolder folder;
  EXPECT_THROW(load_tokenizer(folder.path()), DataError);
  const std::string start = R"({"format":"aloft-tokenizer","version":1)";
  const std::string with_kind = start + R"(,"kind":"char","byte_fallback":)";
  const std::string good = with_kind + R"(false,"code_points":[97,98]})";
  const Path file = folder.path() / kTokenizerFile;
  TemporaryFolder::put(file, good);
  EXPECT_EQ(load_tokenizer(folder.path())->vocab_size(), 2);
  for (std::size_t length = 0; length < good.size(); ++length) {
    TemporaryFolder::put(file, good.substr(0, length));
    EXPECT_THROW(load_tokenizer(folder.path()), DataError) << length;
  }
  const std::string bad[] = {
      "[]",
      R"({"format":1})",
      R"({"format":"aloft-tokenizer","version":2,"kind":"byte"})",
      start + R"(,"kind":"word"})",
      start + "}",
      with_kind + R"(false,"code_points":[]})",
      with_kind + R"(false,"code_points":[98,97]})",
      with_kind + R"(false,"code_points":[-1]})",
      with_kind + R"(false,"code_points":[1114112]})",
      with_kind + R"(1,"code_points":[97]})",
  };
  for (const std::string& text : bad) {
    TemporaryFolder::put(file, text);
    EXPECT_THROW(load_tokenizer(folder.path()), DataError) << text;
  }
}

// One digit is another: the files are whole, but of a tokenizer that was never saved.
TEST(LoadTokenizer, AnotherOneThanWasSavedIsRefused) {
  TemporaryFolder folder;
  const Path file = folder.path() / kTokenizerFile;
  char_tokenizer_of("ab")->save(folder.path());
  std::string text = read_file(file);
  EXPECT_EQ(load_tokenizer(folder.path())->vocab_size(), 2);
  text.replace(text.find("97"), 2, "96");
  TemporaryFolder::put(file, text);
  EXPECT_THROW(load_tokenizer(folder.path()), DataError);
}

// A text for every kind that is made of one.
struct SmallCorpus {
  SmallCorpus() {
    for (const char* word : {"one two three\n", "two three four\n", "caf\xC3\xA9\n"})
      for (int i = 0; i < 50; ++i) text += word;
    TemporaryFolder::put(folder / "text.txt", text);
    const std::vector<std::string> entries = {(folder / "text.txt").string()};
    corpus = open_corpus(entries);
    split = split_corpus(corpus, 0.1, 0);
  }
  TemporaryFolder folder;
  std::string text;
  Corpus corpus;
  CorpusSplit split;
};

TEST(TokenizerKinds, AreMadeSavedAndReadBack) {
  const SmallCorpus c;
  for (const TokenizerKind& kind : tokenizer_kinds()) {
    SCOPED_TRACE(kind.name);
    ASSERT_TRUE(kind.read);
    EXPECT_FALSE(kind.meaning.empty());
    EXPECT_EQ(find_tokenizer_kind(kind.name), &kind);
    if (!kind.make) {
      EXPECT_TRUE(kind.published) << "neither made nor published: there is no way to one";
      continue;
    }
    const SettingValues settings = kind.settings_of({});
    EXPECT_FALSE(kind.misfit && kind.misfit(settings));
    const auto made = kind.make(settings, c.corpus, c.split);
    EXPECT_EQ(made->kind(), kind.name);
    EXPECT_EQ(made->decode(made->encode(c.text)), c.text);
    if (kind.ids) EXPECT_LE(made->vocab_size(), kind.ids(settings).value());
    const Path saved = c.folder / std::string(kind.name);
    EXPECT_FALSE(is_tokenizer(saved));
    made->save(saved);
    EXPECT_TRUE(is_tokenizer(saved));
    EXPECT_EQ(load_tokenizer(saved)->fingerprint(), made->fingerprint());
    EXPECT_EQ(load_tokenizer(saved)->kind(), kind.name);
  }
}

TEST(TokenizerKinds, MeanTheSameByTheSameKey) {
  std::map<std::string_view, const Setting*> known;
  for (const TokenizerKind& kind : tokenizer_kinds())
    for (const Setting& s : kind.settings) {
      const auto [it, is_new] = known.emplace(s.key, &s);
      if (is_new) continue;
      EXPECT_EQ(it->second->fallback, s.fallback) << s.key;
      EXPECT_EQ(it->second->limits.range(), s.limits.range()) << s.key;
    }
  EXPECT_EQ(tokenizer_settings().size(), known.size());
}

}  // namespace
}  // namespace aloft
