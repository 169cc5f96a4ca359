#include "data/corpus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "data/tokenizers/utf8.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using Entries = std::vector<std::string>;

std::vector<std::string> names(const Corpus& corpus) {
  std::vector<std::string> all;
  for (const CorpusFile& file : corpus.files) all.push_back(file.name);
  return all;
}

class CorpusTest : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) {
    std::filesystem::create_directories((folder / name).parent_path());
    TemporaryFolder::put(folder / name, text);
  }
  Corpus open(const Entries& entries) { return open_corpus(entries, folder.path()); }
  // Named, and found in a folder.
  void expect_taken_without_a_word(std::string_view text) {
    put("named", text);
    put("found/file", text);
    for (const char* entry : {"named", "found"}) {
      const Corpus corpus = open({entry});
      EXPECT_EQ(corpus.files.size(), 1u) << text;
      EXPECT_TRUE(corpus.doubtful.empty()) << text;
    }
  }
  std::string code_of(const Entries& entries) {
    try {
      open(entries);
      return "accepted";
    } catch (const Error& e) {
      return e.code();
    }
  }
  TemporaryFolder folder;
};

TEST_F(CorpusTest, FoldersAreWalkedInOrderAndOddFilesSkipped) {
  put("t/b.txt", "bb");
  put("t/a/z.txt", "z");
  put("t/a/y.bin", std::string_view("y\0y", 3));
  put("t/empty", "");
  put("t/.hidden", "h");
  put("t/.git/x", "h");
  std::filesystem::create_symlink(folder / "t", folder / "t" / "circle");
  std::filesystem::create_symlink(folder / "t" / "b.txt", folder / "t" / "b2.txt");
  const Corpus corpus = open({"t"});
  EXPECT_EQ(names(corpus), (Entries{"a/z.txt", "b.txt"}));  // b2.txt is b.txt again
  EXPECT_EQ(corpus.bytes(), 3u);
  ASSERT_EQ(corpus.skipped.size(), 2u);
  EXPECT_EQ(corpus.skipped[0].why, "binary (it has zero bytes)");
  EXPECT_EQ(corpus.skipped[1].why, "empty");
}

TEST_F(CorpusTest, Globs) {
  for (const char* name : {"s/a.h", "s/b.cpp", "s/sub/c.h", "s/sub/deep/d.h", "s/sub/e.txt"})
    put(name, "x");
  EXPECT_EQ(names(open({"s/*.h"})), (Entries{"a.h"}));
  EXPECT_EQ(names(open({"s/**/*.h"})), (Entries{"a.h", "sub/c.h", "sub/deep/d.h"}));
  EXPECT_EQ(names(open({"s/?.cpp"})), (Entries{"b.cpp"}));
  EXPECT_EQ(names(open({"s/*/c.h"})), (Entries{"sub/c.h"}));
  EXPECT_EQ(names(open({"s/su*"})), (Entries{"sub/c.h", "sub/deep/d.h", "sub/e.txt"}));
  EXPECT_EQ(open({"s/**"}).files.size(), 5u);
  EXPECT_EQ(names(open({"s/sub/e.txt", "s/*.h", "s/**/*.h"})),
            (Entries{"e.txt", "a.h", "sub/c.h", "sub/deep/d.h"}));
  EXPECT_EQ(code_of({"s/*.rs"}), "E0510");
}

TEST_F(CorpusTest, AFolderWithAStarInItsNameIsThatFolder) {
  put("a*b/c/x.txt", "ours");
  put("aZb/c/x.txt", "another's");
  put("aZb/text", "another's");
  EXPECT_EQ(open({"a*b/c/*.txt"}).files.size(), 1u);
  EXPECT_EQ(open_corpus(Entries{"c/*"}, folder / "a*b").bytes(), 4u);
  EXPECT_EQ(code_of({"a*b/text"}), "E0510");
}

TEST_F(CorpusTest, WhatIsFoundAndMayBeNoTextIsSaid) {
  put("s/text", "caf\xC3\xA9");
  put("s/latin", "caf\xE9 cr\xE8me");
  put("s/zero", std::string_view("a\0", 2));
  for (const char* entry : {"s", "s/*"}) {
    const Corpus corpus = open({entry});
    EXPECT_EQ(names(corpus), (Entries{"latin", "text"}));
    ASSERT_EQ(corpus.doubtful.size(), 1u);
    EXPECT_EQ(corpus.doubtful[0].path, folder / "s/latin");
  }
}

TEST_F(CorpusTest, WhatIsNamedItselfIsTaken) {
  put("data.bin", std::string_view("\0\1\2", 3));
  put("none", "");
  EXPECT_EQ(open({"data.bin"}).bytes(), 3u);
  EXPECT_EQ(code_of({"none"}), "E0511");
  EXPECT_EQ(code_of({}), "E0511");
  EXPECT_EQ(code_of({"data.bin", "missing"}), "E0510");
  EXPECT_EQ(code_of({"/dev/null"}), "E0510");
  std::filesystem::create_directories(folder / "empty_folder");
  EXPECT_EQ(code_of({"empty_folder"}), "E0511");
  // Said, where it does not read as text; what does is not.
  put("short", "caf\xC3\xA9");
  put("cut",
      std::string(8191, 'x') + "\xE2\x82\xAC");  // a character across the end of what is seen
  put("latin", "caf\xE9 cr\xE8me");
  put("list.json", " [\n{ \"text\": \"one\"}]");
  put("under.json", "{\n  \"data\": [\n    { \"text\": \"one\"}]}");
  put("brackets", "[1] {\"a\"} is no list");
  const Corpus corpus = open(
      {"data.bin", "short", "cut", "latin", "list.json", "under.json", "brackets", "data.bin"});
  ASSERT_EQ(corpus.doubtful.size(), 4u);
  EXPECT_EQ(corpus.doubtful[0].path, folder / "data.bin");
  EXPECT_EQ(corpus.doubtful[0].why, "byte 0 is zero");
  EXPECT_EQ(corpus.doubtful[1].why,
            "20 % of its first 10 bytes are no UTF-8, or control characters");
  EXPECT_EQ(corpus.doubtful[2].path, folder / "list.json");
  EXPECT_EQ(corpus.doubtful[3].path, folder / "under.json");
  try {
    open({"none", "empty_folder"});
    ADD_FAILURE();
  } catch (const DataError& e) {
    EXPECT_NE(std::string(e.what()).find("none: empty\n"), std::string::npos) << e.what();
  }
}

TEST_F(CorpusTest, APointerOfGitLfsIsNoText) {
  put("found/pointer",
      "version https://git-lfs.github.com/spec/v1\noid sha256:7b6f\nsize 988097824\n");
  EXPECT_EQ(code_of({"found/pointer"}), "E0516");
  put("found/text", "a text");
  ASSERT_EQ(open({"found"}).skipped.size(), 1u);
  EXPECT_EQ(open({"found"}).skipped[0].why, "a pointer of Git LFS, not plain text");
}

TEST_F(CorpusTest, AnEmptyNameIsNotTheFolderOfTheRecipe) {
  put("a.txt", "ours");
  for (const Entries& entries : {Entries{""}, Entries{"a.txt", ""}}) {
    try {
      open(entries);
      ADD_FAILURE();
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0510");
      EXPECT_NE(std::string(e.what()).find("\".\" is the whole folder"), std::string::npos)
          << e.what();
    }
  }
  EXPECT_EQ(open({"."}).bytes(), 4u);
}

TEST_F(CorpusTest, JsonLinesAreSeenBehindAMarkAndInLongLines) {
  const std::string object = R"({"text": "one"})", mark = "\xEF\xBB\xBF";
  const std::string far =
      R"({"text": ")" + std::string(9000, 'x') + "\"}\n";  // beyond what is seen
  for (const std::string& text :
       {object + "\n" + object + "\n", mark + object + "\n" + object + "\n",
        object + "\r\n\r\n" + object, object + "\n" + far + far, object + "\n" + object + "\n{"}) {
    put("named", text);
    EXPECT_EQ(code_of({"named"}), "E0516") << text.substr(0, 40);
  }
  put("named.jsonl", object);
  EXPECT_EQ(code_of({"named.jsonl"}), "E0516");
}

std::string many(std::string_view line, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += std::string(line) + "\n";
  return all;
}

TEST_F(CorpusTest, JsonLinesThatAStrictParserRefusesAreJsonLines) {
  const std::string good = R"({"text": "one"})";
  for (const std::string_view odd :
       {R"({"score": NaN, "text": "one"})"sv, R"({"score": -Infinity, "text": "one"})"sv,
        R"({"text": "half of a pair: \ud83d", "list": [1, {"a": null}]})"sv, R"({"x": 1e999})"sv,
        "{\"text\": \"caf\xE9\"}"sv, "\x1E{\"text\": \"one\"}"sv, R"({"text": "\" {"})"sv}) {
    put("named", many(odd, 30));
    EXPECT_EQ(code_of({"named"}), "E0516") << odd;
  }
  // A writer that was killed, a line of another kind.
  for (const std::string_view bad : {R"({"text": "on)", "# a comment", "{'text': 'one'}"}) {
    put("named", many(good, 15) + std::string(bad) + "\n" + many(good, 15));
    EXPECT_EQ(code_of({"named"}), "E0516") << bad;
    put("named", many(good, 3) + std::string(bad) + "\n" + many(good, 3));
    EXPECT_EQ(open({"named"}).doubtful.size(), 1u) << bad;
  }
  put("named", many(good, 3) + many("What is said in prose, with a {\"key\": 1} in it.", 40));
  EXPECT_TRUE(open({"named"}).doubtful.empty());
}

TEST_F(CorpusTest, WhatReadsAsJsonIsSaid) {
  const std::string far(9000, 'x');
  for (const std::string_view line : {R"({"a": 1},)", R"([1, "text"])", R"(["a", [NaN, {}]],)"}) {
    put("named", many(line, 40) + "no JSON\n");
    EXPECT_EQ(open({"named"}).doubtful.size(), 1u) << line;
  }
  put("named", many(R"("a \"string\" alone")", 40) + "no JSON\n");
  EXPECT_EQ(open({"named"}).doubtful.size(), 1u);
  for (const std::string& text : std::vector<std::string>{
           R"({"text": "one"})", R"({"text": ")" + far + "\"}\n{}\n",
           "\xEF\xBB\xBF{\n  \"data\": 1}", R"({"a": {"b": [1, -2e3, null]}, "c": ")" + far,
           R"(["one", "two"])", "[\n  \"" + far + "\"]", "[[\"one\"]]\n", "[\"one\"]\n[\"two\"]\n",
           "{\n \"a\": 1\n}\n{\n \"a\": 2\n}\n", "[\"" + std::string(8189, 'x') + "\xC3\xA9\"]",
           "[[0, \"" + far + "\"]]", "{\n \"a\": [NaN, 1e999],\n \"b\": \"" + far}) {
    put("named", text);
    EXPECT_EQ(open({"named"}).doubtful.size(), 1u) << text.substr(0, 40);
  }
}

TEST_F(CorpusTest, ProseAndProgramsThatBeginWithBracketsAreTakenWithoutAWord) {
  for (const std::string_view text : {"[project]\nname = \"x\"\n",
                                      "[[bug]]\nname = \"x\"\n",
                                      "[\"a\".\"b\"]\nkey = 1\n",
                                      "[\"tool\"]\nkey = 1\n",
                                      "[1] the first note\n[2] the second\n",
                                      "[12]\n",
                                      "[\"A link\"](a.md)\n",
                                      "[ ] to do\n[x] done\n",
                                      "{\n  int x = 0;\n  {\n  }\n}\n",
                                      "{\"PAR1\", \"Parquet\"},\n{\"PK\", \"zip\"},\n",
                                      "{\"a\": 1}[\"a\"]\nprint(1)\n",
                                      "{\"a\": x for x in y}\n",
                                      "[\"a\" + b]\n",
                                      "{% include \"x\" %}\n",
                                      "{\"quoted\": so the story begins.\n",
                                      "{}\n",
                                      "[]\n",
                                      "{",
                                      "[",
                                      "\xEF\xBB\xBFprose\n",
                                      "\"a\"\n",
                                      "{'a': 'b'}\n",
                                      "[\"Enter, a ghost.\" says the page.]\n",
                                      "[Enter a ghost]\n[\"Who's there?\"]\nNay, answer.\nI.\n",
                                      "\"Who's there?\"\n\"Nay.\"\n\"Stand.\"\n",
                                      "\"a\",\"b\"\n\"c\",\"d\"\n",
                                      "{\"a\": 1, \"b\"}\n",
                                      "{\"a\" \"b\": 1}\n",
                                      "{\"a\": true ? 1 : 2}\n",
                                      "[\"a\"}\n",
                                      "{\"a\": }\n",
                                      "{ 1: \"a\" }\n"}) {
    expect_taken_without_a_word(text);
  }
}

TEST_F(CorpusTest, Utf16WithoutAMarkIsRecognised) {
  const std::string prose = "What is written once is read many times; caf\xE9.\n";
  for (const bool big : {false, true}) {
    std::string text;
    for (const char c : prose) text += big ? std::string{'\0', c} : std::string{c, '\0'};
    text += big ? "\x20\xAC" : "\xAC\x20";  // a character above U+0100
    put("t/file", text);
    const std::string name = big ? "UTF-16BE" : "UTF-16LE";
    const Corpus named = open({"t/file"});
    ASSERT_EQ(named.doubtful.size(), 1u);
    EXPECT_EQ(named.doubtful[0].why, "it looks like " + name + " without a byte order mark");
    EXPECT_NE(named.doubtful[0].advice.find("iconv -f " + name + " -t UTF-8"), std::string::npos);
    put("t/other", "x");
    EXPECT_EQ(open({"t"}).skipped.at(0).why, named.doubtful[0].why);
  }
  std::string ids;  // of characters in a vocabulary of 65
  for (int i = 0; i < 500; ++i) ids += {static_cast<char>(i * 7 % 65), '\0'};
  put("ids", ids);
  EXPECT_EQ(open({"ids"}).doubtful.at(0).why, "byte 0 is zero");
}

TEST_F(CorpusTest, WhatIsKnownToBeNoUtf8TextIsRefused) {
  const std::string name(257, 'x');
  // Each as programs write it: pyarrow with and without rows, bzip2 of something and of nothing.
  for (const std::string& text : std::vector<std::string>{
           "\xFF\xFEh\0i\0"s, "\xFE\xFF\0h\0i"s, "\xFF\xFE\0\0h\0\0\0"s, "\0\0\xFE\xFF\0\0\0h"s,
           name + "ustar\0"
                  "00"s,
           name + "ustar  \0root"s, "SQLite format 3\x00\x10\x00\x01\x01\x00@  "s,
           "BZh91AY&SYwK\xb0\x14"s, "BZh9\x17rE8P\x90\x00\x00\x00\x00"s,
           "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x00"s, "\xfd\x37zXZ\x00\x00\x04"s,
           "PK\x03\x04\x14\x00\x00\x00"s, "%PDF-1.4\x0a%\xe2\xe3\xcf\xd3\x0a"s,
           "%PDF-1.3%\xe2\xe3\xcf\xd3 1 0 obj"s, "%PDF-2.0 \x0d\x0a\x31 0 obj"s,
           "ALOFTSHD\x01\x00\x00\x00\x02\x00\x00\x00"s,
           "PAR1\x15\x04\x15\x14\x15\x18L\x15\x02\x15\x00\x12"s, "PAR1\x15\x04\x19,5\x00\x18"s,
           "ARROW1\x00\x00\xff\xff\xff\xffx\x00\x00\x00"s}) {
    put("named", text);
    EXPECT_EQ(code_of({"named"}), "E0516") << text.substr(0, 16);
  }
  put("t/a.txt", "found");
  put("t/b.txt", "\xFF\xFE\x41\x04");  // no zero byte among these
  const Corpus corpus = open({"t"});
  EXPECT_EQ(names(corpus), (Entries{"a.txt"}));
  ASSERT_EQ(corpus.skipped.size(), 1u);
  EXPECT_EQ(corpus.skipped[0].why, "UTF-16, not plain text");
}

TEST_F(CorpusTest, ProseAboutOtherKindsOfFilesIsTaken) {
  const std::string spanish = std::string(256, 'a') + "gustar mucho, y algo de vino.\n";
  for (const std::string_view text :
       {std::string_view(spanish), "PAR1 is a thrombin receptor.\n"sv, "PAR1\n"sv,
        "BZh9 is how\n"sv, "SQLite format 3 is the header string of every database file.\n"sv,
        "BZh begins bzip2.\n"sv, "BZhuk, a name\n"sv, "ARROW1 begins a file of Arrow.\n"sv,
        "%PDF-1.7 is the newest.\n"sv, "%PDF-\n"sv, "ALOFTSHD begins the header of a shard.\n"sv}) {
    expect_taken_without_a_word(text);
  }
}

TEST_F(CorpusTest, SplitByFileComesNearTheShareAndIgnoresTheOrder) {
  std::uint64_t total = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string text(static_cast<std::size_t>(50 + i * 7919 % 400), 'x');
    put("t/" + std::to_string(i), text);
    total += text.size();
  }
  const Corpus corpus = open({"t"});
  std::set<std::string> earlier;
  for (std::uint64_t seed : {1, 2}) {
    const CorpusSplit split = split_corpus(corpus, 0.1, seed);
    EXPECT_EQ(split.train.size() + split.validation.size(), 200u);
    EXPECT_EQ(bytes_of(split.train) + bytes_of(split.validation), total);
    // Whole files, of at most 450 bytes: one more or less.
    EXPECT_NEAR(static_cast<double>(bytes_of(split.validation)), 0.1 * static_cast<double>(total),
                300);
    Corpus reversed = corpus;
    std::reverse(reversed.files.begin(), reversed.files.end());
    std::set<std::string> chosen, again;
    for (const TextPart& p : split.validation) chosen.insert(corpus.files[p.file].name);
    for (const TextPart& p : split_corpus(reversed, 0.1, seed).validation)
      again.insert(reversed.files[p.file].name);
    EXPECT_EQ(chosen, again);
    EXPECT_NE(chosen, earlier);
    earlier = chosen;
  }
  EXPECT_EQ(split_corpus(corpus, 0, 1).validation.size(), 0u);
}

TEST_F(CorpusTest, EachSideGetsAFile) {
  put("t/a", std::string(1000, 'a'));
  put("t/b", std::string(10, 'b'));
  for (double fraction : {0.001, 0.5, 0.999}) {
    const CorpusSplit split = split_corpus(open({"t"}), fraction, 0);
    EXPECT_EQ(split.train.size(), 1u);
    EXPECT_EQ(split.validation.size(), 1u);
  }
  for (double bad : {-0.1, 1.0, std::nan("")})
    EXPECT_THROW(split_corpus(open({"t"}), bad, 0), UserError);
}

TEST_F(CorpusTest, ASingleFileGivesItsTailBetweenCharacters) {
  put("a", std::string(1115394, 'x'));
  const CorpusSplit split = split_corpus(open({"a"}), 0.1, 0);
  EXPECT_EQ(split.train[0].end, 1003854u);  // int(0.9 * n), where the published split lies
  EXPECT_EQ(split.validation[0].begin, 1003854u);
  EXPECT_EQ(split.validation[0].end, 1115394u);
  put("b", "12345678\xE2\x82\xAC!");
  for (double fraction : {0.3, 0.25, 0.2}) {
    const CorpusSplit cut = split_corpus(open({"b"}), fraction, 0);
    EXPECT_TRUE(cut.train[0].end == 8 || cut.train[0].end == 11) << cut.train[0].end;
  }
}

TEST_F(CorpusTest, PiecesMakeUpThePart) {
  std::string text;
  for (int i = 0; i < 400000; ++i) text += "line " + std::to_string(i) + "\n";
  put("a", text);
  const Corpus corpus = open({"a"});
  std::string whole;
  int pieces = 0;
  read_part(
      corpus, {0, 7, text.size() - 3}, [](std::string_view t) { return t.rfind('\n') + 1; },
      [&](std::string_view piece) {
        ++pieces;
        EXPECT_TRUE(piece.ends_with('\n') || whole.size() + piece.size() == text.size() - 10);
        whole += piece;
      });
  EXPECT_EQ(whole, text.substr(7, text.size() - 10));
  EXPECT_GT(pieces, 3);

  std::string stretch;  // without any place to cut: memory stays bounded, characters whole
  while (stretch.size() < (std::size_t{34} << 20)) stretch += "\xE2\x82\xAC";
  put("b", stretch);
  whole.clear();
  std::size_t longest = 0;
  read_part(
      open({"b"}), {0, 0, stretch.size()}, [](std::string_view) { return std::size_t{0}; },
      [&](std::string_view piece) {
        EXPECT_EQ(utf8::safe_cut(piece), piece.size());
        longest = std::max(longest, piece.size());
        whole += piece;
      });
  EXPECT_TRUE(whole == stretch);
  EXPECT_LE(longest, std::size_t{18} << 20);
  put("a", "short now");
  EXPECT_THROW(read_part(
                   corpus, {0, 0, text.size()}, [](std::string_view t) { return t.size(); },
                   [](std::string_view) {}),
               DataError);
}

}  // namespace
}  // namespace aloft
