#include "data/pack.h"

#include <gtest/gtest.h>

#include <future>

#include "base/error.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

std::string text_of(const TokenSource& source, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids(source.size());
  source.read(0, ids);
  return tokenizer.decode(ids);
}

class PackTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder / "t");
    for (int i = 0; i < 20; ++i) {
      texts.push_back("file " + std::to_string(i) + "\n" + std::string(100, 'x') + "\n");
      TemporaryFolder::put(folder / "t" / std::to_string(i), texts.back());
    }
    spec.text = {"t"};
    spec.base = folder.path();
    spec.cache = folder / "cache";
  }
  Path file(const Dataset& dataset, const char* name) { return dataset.info.folder / name; }
  TemporaryFolder folder;
  std::vector<std::string> texts;
  DatasetSpec spec;
};

TEST_F(PackTest, EveryKindKeepsTheText) {
  for (const char* kind : {"byte", "char", "bpe"}) {
    spec.tokenizer = {.kind = kind, .settings = {{"vocab", std::int64_t{300}}}};
    const Dataset dataset = open_dataset(spec);
    ASSERT_TRUE(dataset.validation);
    EXPECT_EQ(dataset.tokenizer->kind(), kind);
    EXPECT_EQ(dataset.info.train_files + dataset.info.validation_files, 20u);
    const std::string train = text_of(dataset.train, *dataset.tokenizer);
    const std::string validation = text_of(*dataset.validation, *dataset.tokenizer);
    EXPECT_EQ(train.size(), dataset.info.train_bytes);
    EXPECT_EQ(validation.size(), dataset.info.validation_bytes);
    for (const std::string& text : texts)
      EXPECT_NE(train.find(text) == std::string::npos, validation.find(text) == std::string::npos);
  }
}

TEST_F(PackTest, ReusesWhatIsWholeAndRebuildsWhatChanged) {
  spec.tokenizer = {.kind = "char"};
  int calls = 0;
  const auto count = [&](const PackProgress& p) {
    ++calls;
    EXPECT_LE(p.done_bytes, p.total_bytes);
  };
  const Dataset first = open_dataset(spec, count);
  EXPECT_FALSE(first.info.reused);
  EXPECT_GT(calls, 2);
  calls = 0;
  EXPECT_TRUE(open_dataset(spec, count).info.reused);
  EXPECT_EQ(calls, 0);

  TemporaryFolder::put(folder / "t" / "7", texts[7] + "longer");
  const Dataset changed = open_dataset(spec);
  EXPECT_FALSE(changed.info.reused);
  EXPECT_NE(changed.info.signature, first.info.signature);
  spec.seed = 5;
  EXPECT_FALSE(open_dataset(spec).info.reused);
  spec.seed = 0;
  EXPECT_TRUE(open_dataset(spec).info.reused);
  for (const auto& entry : std::filesystem::directory_iterator(spec.cache))
    EXPECT_EQ(entry.path().filename().string().size(), 16u) << entry.path();  // no leftovers
}

TEST_F(PackTest, DamageIsRepaired) {
  spec.tokenizer = {.kind = "byte"};
  const std::string text = text_of(open_dataset(spec).train, *make_byte_tokenizer());
  for (const char* name :
       {"train.shard", "validation.shard", "dataset.json", "aloft_tokenizer.json"}) {
    for (int damage = 0; damage < 3; ++damage) {
      const Dataset before = open_dataset(spec);
      EXPECT_TRUE(before.info.reused);
      const std::string good = read_file(file(before, name));
      if (damage == 0) TemporaryFolder::put(file(before, name), good.substr(0, good.size() / 2));
      if (damage == 1) TemporaryFolder::put(file(before, name), "");
      if (damage == 2) std::filesystem::remove(file(before, name));
      const Dataset after = open_dataset(spec);
      EXPECT_FALSE(after.info.reused) << name << damage;
      EXPECT_EQ(text_of(after.train, *after.tokenizer), text);
    }
  }
}

TEST_F(PackTest, ANumberThatWasChangedIsDamage) {
  spec.tokenizer = {.kind = "byte"};
  const Dataset made = open_dataset(spec);
  const Path record = file(made, "dataset.json");
  const std::string good = read_file(record);
  const auto opened = open_packed(made.info.folder);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->info.files, 20u);
  EXPECT_EQ(opened->info.train_bytes, made.info.train_bytes);
  EXPECT_EQ(opened->info.validation_tokens, made.validation->size());
  std::size_t digits = 0;
  for (std::size_t at = good.find("\"files\""); at < good.find("\"xxh3\""); ++at) {
    if (good[at] < '0' || good[at] > '9') continue;
    std::string changed = good;
    changed[at] = good[at] == '9' ? '8' : '9';
    TemporaryFolder::put(record, changed);
    EXPECT_THROW(open_packed(made.info.folder), DataError) << changed;
    ++digits;
  }
  EXPECT_GT(digits, 8u);
  // As versions before wrote it.
  const std::size_t hash = good.find(",\n  \"xxh3\"");
  ASSERT_NE(hash, std::string::npos);
  TemporaryFolder::put(record, good.substr(0, hash) + "\n}\n");
  EXPECT_TRUE(open_packed(made.info.folder));
  std::filesystem::remove(record);
  EXPECT_FALSE(open_packed(made.info.folder));
}

TEST_F(PackTest, AFailedBuildLeavesNothing) {
  CharAlphabet alphabet;
  alphabet.add("abc");
  alphabet.build()->save(folder / "tokenizer");
  spec.tokenizer = {.kind = "char", .path = (folder / "tokenizer").string()};
  EXPECT_THROW(open_dataset(spec), DataError);  // E0501: characters that it does not know
  EXPECT_TRUE(std::filesystem::is_empty(spec.cache));
}

// Each finds the damage, and each mends it: none is in another's way.
TEST_F(PackTest, SeveralMendOneDataSetAtOnce) {
  spec.tokenizer = {.kind = "byte"};
  const std::string wanted = text_of(open_dataset(spec).train, *make_byte_tokenizer());
  for (int round = 0; round < 20; ++round) {
    TemporaryFolder::put(file(open_dataset(spec), "dataset.json"), "{}");
    std::vector<std::future<std::string>> found;
    for (int i = 0; i < 4; ++i)
      found.push_back(std::async(std::launch::async, [&] {
        return text_of(open_dataset(spec).train, *make_byte_tokenizer());
      }));
    for (auto& text : found) EXPECT_EQ(text.get(), wanted);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(spec.cache), {}), 1);
}

TEST_F(PackTest, SpecsThatCannotBe) {
  const auto code = [&] {
    try {
      open_dataset(spec);
      return std::string("accepted");
    } catch (const Error& e) {
      return e.code();
    }
  };
  spec.tokenizer = {.kind = "bqe"};
  EXPECT_EQ(code(), "E0505");
  spec.tokenizer = {.kind = "gpt2"};
  EXPECT_EQ(code(), "E0505");
  spec.tokenizer = {.kind = "bpe", .settings = {{"vocab", std::int64_t{100}}}};
  EXPECT_EQ(code(), "E0506");
  make_byte_tokenizer()->save(folder / "tokenizer");
  spec.tokenizer = {.kind = "char", .path = (folder / "tokenizer").string()};
  EXPECT_EQ(code(), "E0505");
  spec.tokenizer.kind = "";
  EXPECT_EQ(code(), "accepted");
  spec.tokenizer.path = "tokenizer";  // relative to the base, as the text is
  EXPECT_EQ(code(), "accepted");
  spec.validation = 1;
  EXPECT_EQ(code(), "E0512");
  spec.text = {"nowhere"};
  EXPECT_EQ(code(), "E0510");
}

TEST_F(PackTest, WithoutValidation) {
  spec.tokenizer = {.kind = "byte"};
  spec.validation = 0;
  const Dataset dataset = open_dataset(spec);
  EXPECT_FALSE(dataset.validation);
  EXPECT_EQ(dataset.info.train_files, 20u);
  EXPECT_TRUE(open_dataset(spec).info.reused);
}

}  // namespace
}  // namespace aloft
