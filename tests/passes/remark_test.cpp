#include "passes/remark.h"

#include <gtest/gtest.h>

namespace aloft {
namespace {

// A record keeps a remark by its kind's name, and no two have the same.
TEST(Remarks, KindsHaveNames) {
  for (int i = 0; i <= static_cast<int>(RemarkKind::UpdatesHoisted); ++i) {
    const auto kind = static_cast<RemarkKind>(i);
    EXPECT_EQ(parse_remark_kind(name_of(kind)), kind) << i;
  }
  EXPECT_EQ(parse_remark_kind("one loop"), std::nullopt);
}

TEST(Remarks, WordsAreMadeOfTheFields) {
  EXPECT_EQ(text_of({"a/mul#0", RemarkKind::LoopMade, "a/mul#0, a/add#0"}),
            "one loop of a/mul#0, a/add#0");
  EXPECT_EQ(text_of({"a/mul#0", RemarkKind::LoopOfPhases, "", "b/add#0"}),
            "not fused with b/add#0: it belongs to another phase");
  EXPECT_EQ(text_of({"a/mul#0", RemarkKind::LoopRefused, "cpu.fused: {}"}),
            "not fused: cpu.fused: {}");
  EXPECT_TRUE(stays_apart(RemarkKind::LoopRefused));
  EXPECT_FALSE(stays_apart(RemarkKind::LoopMade));
}

}  // namespace
}  // namespace aloft
