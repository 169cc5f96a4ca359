#include "data/shard.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "data/open_tokens.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

std::vector<std::int32_t> some_ids(std::size_t count, std::int32_t vocab) {
  std::vector<std::int32_t> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<std::int32_t>(i * 2654435761u % static_cast<std::uint32_t>(vocab));
  return ids;
}

ShardInfo write_shard(const Path& path, const std::vector<std::int32_t>& ids, std::int32_t vocab) {
  ShardWriter writer(path, vocab, 0x1234);
  writer.write(std::span(ids).first(ids.size() / 3));
  writer.write(std::span(ids).subspan(ids.size() / 3));
  return writer.finish();
}

TEST(Shard, ReadsWhatWasWrittenInBothWidths) {
  TemporaryFolder folder;
  for (std::int32_t vocab : {1, 256, 65536, 65537, 0x7FFFFFFF}) {
    const auto ids = some_ids(100'000, vocab);
    const ShardInfo written = write_shard(folder / "a", ids, vocab);
    const Shard shard = Shard::open(folder / "a");
    EXPECT_EQ(shard.info().tokens, ids.size());
    EXPECT_EQ(shard.info().token_bytes, vocab <= 65536 ? 2 : 4);
    EXPECT_EQ(shard.info().fingerprint, 0x1234u);
    EXPECT_EQ(shard.info().payload_hash, written.payload_hash);
    std::vector<std::int32_t> back(ids.size());
    shard.tokens().read(0, back);
    EXPECT_EQ(back, ids);
    EXPECT_THROW(shard.tokens().read(ids.size() - 1, std::span(back).first(2)), UserError);
  }
}

TEST(Shard, EmptyIsAShardToo) {
  TemporaryFolder folder;
  write_shard(folder / "a", {}, 10);
  EXPECT_EQ(Shard::open(folder / "a").tokens().size(), 0u);
}

TEST(Shard, WriterRefusesForeignIdsAndLeavesNothing) {
  TemporaryFolder folder;
  for (std::int32_t bad : {-1, 10}) {
    ShardWriter writer(folder / "a", 10, 0);
    EXPECT_THROW(writer.write(std::vector<std::int32_t>{1, bad}), UserError);
  }
  for (const std::int32_t vocab : {INT32_MIN, -1, 0})
    EXPECT_THROW(ShardWriter(folder / "a", vocab, 0), UserError) << vocab;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Shard, EveryCutAndEveryFlippedByteIsFound) {
  TemporaryFolder folder;
  write_shard(folder / "a", some_ids(40, 300), 300);
  const std::string good = read_file(folder / "a");
  for (std::size_t length = 0; length < good.size(); ++length) {
    TemporaryFolder::put(folder / "b", good.substr(0, length));
    EXPECT_THROW(Shard::open(folder / "b"), DataError) << length;
  }
  TemporaryFolder::put(folder / "b", good + "x");
  EXPECT_THROW(Shard::open(folder / "b", Verify::HeaderOnly), DataError);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    TemporaryFolder::put(folder / "b", bad);
    EXPECT_THROW(Shard::open(folder / "b"), DataError) << at;
    if (at < 64) {
      EXPECT_THROW(Shard::open(folder / "b", Verify::HeaderOnly), DataError) << at;
    }
  }
}

TEST(Shard, AnIdOutsideTheVocabularyIsRefusedWhereItIsRead) {
  TemporaryFolder folder;
  write_shard(folder / "a", {1, 2, 3, 4}, 10);
  std::string bad = read_file(folder / "a");
  bad[64 + 4] = 77;
  TemporaryFolder::put(folder / "a", bad);
  const Shard shard = Shard::open(folder / "a", Verify::HeaderOnly);
  std::vector<std::int32_t> two(2);
  EXPECT_NO_THROW(shard.tokens().read(0, two));
  EXPECT_THROW(shard.tokens().read(2, two), DataError);
  EXPECT_THROW(shard.tokens().with_vocab(2).read(0, two), DataError);
}

TEST(OpenTokens, TakesShardsAndOtherProgramsFiles) {
  TemporaryFolder folder;
  write_shard(folder / "a", {5, 6, 7}, 10);
  TemporaryFolder::put(folder / "b.bin", std::string_view("\5\0\6\0\7\0", 6));
  for (const char* name : {"a", "b.bin"}) {
    std::vector<std::int32_t> ids(3);
    open_tokens(folder / name).read(0, ids);
    EXPECT_EQ(ids, (std::vector<std::int32_t>{5, 6, 7}));
  }
  EXPECT_EQ(open_tokens(folder / "b.bin").vocab(), 65536);
  TemporaryFolder::put(folder / "c.bin", "odd");
  EXPECT_THROW(open_tokens(folder / "c.bin"), DataError);
}

}  // namespace
}  // namespace aloft
