#include "data/tokenizers/utf8.h"

#include <gtest/gtest.h>

namespace aloft {
namespace {

TEST(Utf8, EveryCodePointGoesThereAndBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    utf8::append(text, c);
    const utf8::Step step = utf8::step(text, 0);
    ASSERT_TRUE(step.valid) << static_cast<std::uint32_t>(c);
    ASSERT_EQ(step.code, c);
    ASSERT_EQ(step.length, text.size());
    ASSERT_EQ(utf8::safe_cut(text), text.size());
    for (std::size_t part = 1; part < text.size(); ++part) {
      const std::string head = "a" + text.substr(0, part);
      ASSERT_EQ(utf8::safe_cut(head), 1u);
      ASSERT_FALSE(utf8::step(head, 1).valid);
    }
  }
}

TEST(Utf8, BrokenBytesComeOneByOne) {
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x28\xA1"}) {
    const utf8::Step step = utf8::step(bad, 0);
    EXPECT_FALSE(step.valid);
    EXPECT_EQ(step.length, 1u);
    EXPECT_EQ(step.code, static_cast<unsigned char>(bad[0]));
  }
  EXPECT_EQ(utf8::safe_cut("\x80\x80\x80\x80"), 4u);  // nothing could complete these
  EXPECT_EQ(utf8::safe_cut(""), 0u);
}

}  // namespace
}  // namespace aloft
