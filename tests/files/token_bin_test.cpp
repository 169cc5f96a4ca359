#include "files/token_bin.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

// As llm.c's data_common.py writes it.
std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t count, int width) {
  std::int32_t header[256] = {magic, version, count};
  std::string file(reinterpret_cast<const char*>(header), sizeof header);
  for (std::int32_t i = 0; i < count; ++i) file.append(reinterpret_cast<const char*>(&i), width);
  return file;
}

TokenBin parse(const std::string& file) {
  return parse_token_bin(std::as_bytes(std::span(file)), "test");
}

TEST(TokenBin, ReadsBothHeadersAndNone) {
  const std::string gpt2 = llmc(20240520, 1, 100, 2), llama = llmc(20240801, 7, 100, 4);
  EXPECT_EQ(parse(gpt2).count, 100u);
  EXPECT_EQ(parse(gpt2).token_bytes, 2);
  EXPECT_TRUE(parse(gpt2).has_header);
  EXPECT_EQ(parse(llama).count, 100u);
  EXPECT_EQ(parse(llama).token_bytes, 4);
  EXPECT_EQ(static_cast<int>(parse(llama).tokens[4]), 1);
  const std::string plain = gpt2.substr(1024);
  EXPECT_EQ(parse(plain).count, 100u);
  EXPECT_FALSE(parse(plain).has_header);
  EXPECT_EQ(static_cast<int>(parse(plain).tokens[2]), 1);
  EXPECT_EQ(parse("").count, 0u);
  TemporaryFolder folder;
  TemporaryFolder::put(folder / "a.bin", gpt2);
  const TokenBin mapped = open_token_bin(folder / "a.bin");
  EXPECT_EQ(mapped.tokens.size(), 200u);
  EXPECT_THROW(open_token_bin(folder / "b.bin"), DataError);
}

TEST(TokenBin, EveryCutIsFound) {
  const std::string good = llmc(20240520, 1, 20, 2);
  for (std::size_t length = 4; length < good.size(); ++length)
    EXPECT_THROW(parse(good.substr(0, length)), DataError) << length;
  EXPECT_THROW(parse(good + "ab"), DataError);
}

TEST(TokenBin, RefusesWrongFields) {
  for (std::int32_t version : {0, 2, 7, -1})
    EXPECT_THROW(parse(llmc(20240520, version, 20, 2)), DataError);
  std::string file = llmc(20240520, 1, 20, 2);
  for (std::int32_t count : {-1, 0, 19, 21, INT32_MAX, INT32_MIN}) {
    file.replace(8, 4, reinterpret_cast<const char*>(&count), 4);
    EXPECT_THROW(parse(file), DataError) << count;
  }
  EXPECT_THROW(parse(llmc(20240522, 1, 20, 2)), DataError);  // questions, not text
  EXPECT_THROW(parse("odd"), DataError);
}

}  // namespace
}  // namespace aloft
