// IDX files: what the format says, and what is none.
#include "data/idx.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

// Big-endian, as the header has its extents.
std::string word(std::uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}
std::string header(char type, std::initializer_list<std::uint32_t> extents) {
  std::string out{'\0', '\0', type, static_cast<char>(extents.size())};
  for (const std::uint32_t e : extents) out += word(e);
  return out;
}

class IdxFiles : public testing::Test {
 protected:
  ArrayData read(const std::string& images, const std::string& labels, float scale = 1) const {
    TemporaryFolder::put(folder_ / "x", images);
    TemporaryFolder::put(folder_ / "y", labels);
    return read_idx(folder_ / "x", folder_ / "y", scale);
  }
  // What is refused as damaged: the message.
  std::string refused(const std::string& images, const std::string& labels) const {
    try {
      read(images, labels);
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0533");
      return e.what();
    }
    return "";
  }
  TemporaryFolder folder_;
  const std::string labels_ = header(8, {2}) + std::string("\3\0", 2);
};

TEST_F(IdxFiles, OfEveryType) {
  const ArrayData bytes = read(header(8, {2, 1, 2}) + "\x01\xff\x02\x80", labels_, 0.5f);
  EXPECT_EQ(bytes.values, (std::vector<float>{0.5f, 127.5f, 1, 64}));
  EXPECT_EQ(bytes.labels, (std::vector<std::int32_t>{3, 0}));
  EXPECT_EQ(bytes.shape, (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_EQ(bytes.features, 2);
  EXPECT_EQ(read(header(9, {2, 1, 1}) + "\xff\x02", labels_).values, (std::vector<float>{-1, 2}));
  EXPECT_EQ(read(header(11, {2, 1, 1}) + std::string("\xff\xfe\x01\x00", 4), labels_).values,
            (std::vector<float>{-2, 256}));
  EXPECT_EQ(read(header(12, {2, 1, 1}) + word(7) + word(0xffffffff), labels_).values,
            (std::vector<float>{7, -1}));
  EXPECT_EQ(read(header(13, {2, 1, 1}) + word(0x3fc00000) + word(0xc0000000), labels_).values,
            (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(
      read(header(14, {2, 1, 1}) + word(0x3ff80000) + word(0) + word(0xc0000000) + word(0), labels_)
          .values,
      (std::vector<float>{1.5f, -2}));
  // Channels, too.
  EXPECT_EQ(read(header(8, {2, 3, 1, 1}) + "abcdef", labels_).shape,
            (std::vector<std::int64_t>{3, 1, 1}));
}

TEST_F(IdxFiles, WhatIsNoneIsRefused) {
  const std::string images = header(8, {2, 1, 1}) + "ab";
  EXPECT_EQ(refused(images, labels_), "");
  for (const std::string& bad :
       {std::string(), std::string("no"), std::string("\0\0\7\1", 4), header(8, {2, 1, 1}),
        images + "c", images.substr(0, 9), header(8, {2}) + "ab", header(8, {0, 1, 1}),
        header(8, {0xffffffff, 0xffffffff, 0xffffffff}) + "ab",
        header(13, {2, 1, 1}) + word(0x7f800000) + word(0)}) {
    EXPECT_NE(refused(bad, labels_), "") << bad.size();
  }
  for (const std::string& bad : {std::string(), header(8, {1}) + "a", header(8, {2}) + "abc",
                                 header(8, {2, 1}) + "ab", header(8, {})})
    EXPECT_NE(refused(images, bad), "") << bad.size();
  EXPECT_NE(refused("\x1f\x8b 123", labels_).find("gunzip"), std::string::npos);
  EXPECT_NE(refused(images, header(8, {3}) + "abc").find("3 labels"), std::string::npos);
  EXPECT_NE(refused(images, header(9, {2}) + "\x01\xff").find("label 1 is -1"), std::string::npos);
  EXPECT_NE(refused(images, header(13, {2}) + word(0) + word(0x3fc00000)).find("1.5"),
            std::string::npos);
}

}  // namespace
}  // namespace aloft
