#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/terminal.h"

namespace aloft {
namespace {

TEST(Hash, KnownValuesAndPieces) {
  EXPECT_EQ(hex16(hash64("")), "2d06800538d394c2");  // XXH3's published value of nothing
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 31);
  for (std::size_t cut : {0u, 1u, 240u, 1024u, 4999u, 5000u}) {
    Hasher h;
    h.update(std::string_view(text).substr(0, cut)).update(std::string_view(text).substr(cut));
    EXPECT_EQ(h.digest(), hash64(text)) << cut;
  }
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
}

TEST(Hash, HexRoundTrip) {
  EXPECT_EQ(hex16(0xabc), "0000000000000abc");
  EXPECT_EQ(parse_hex16("0000000000000abc"), 0xabcu);
  EXPECT_EQ(parse_hex16("ffffffffffffffff"), ~std::uint64_t{0});
  for (const char* bad : {"", "abc", "0000000000000ABC", "00000000000000abcd", "000000000000xabc"})
    EXPECT_FALSE(parse_hex16(bad)) << bad;
}

TEST(Clock, TimestampsAndMonotony) {
  EXPECT_EQ(utc_timestamp(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_timestamp(1795223764), "2026-11-21T01:16:04Z");
  EXPECT_EQ(utc_timestamp().size(), 20u);
  const double a = monotonic_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GT(monotonic_seconds(), a + 0.001);
}

TEST(Log, LevelsAndWholeLines) {
  testing::internal::CaptureStderr();
  log_info("step {}", 3);
  log_debug("not shown");
  log_warning("slow");
  set_log_level(LogLevel::Error);
  log_warning("not shown either");
  log_error("bad {}", "file");
  set_log_level(LogLevel::Info);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "step 3\nwarning: slow\nerror: bad file\n");
}

TEST(Terminal, WidthIsPositive) { EXPECT_GT(terminal_width(Output::Err), 0); }

}  // namespace
}  // namespace aloft
