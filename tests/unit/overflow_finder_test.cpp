// Which value of a step is named as the first that is not finite, and what is said of what its op
// took: of steps made up value by value.
#include <gtest/gtest.h>

#include <limits>

#include "observe/probe/overflow.h"

namespace aloft::probe {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class MadeUpStep {
 public:
  void add_outside(const std::string& name, double number) {
    put({.looked_at = {.name = name}}, number);
  }
  void add_made(const std::string& name, double number, std::vector<std::string> operands,
                std::vector<std::string> unseen = {}) {
    put({.looked_at = {.name = name},
         .made_by = made_++,
         .op = "linear",
         .has_operands = true,
         .operands = std::move(operands),
         .unseen = std::move(unseen)},
        number);
  }
  nlohmann::ordered_json first() const { return OverflowFinder(values_).first(all_); }

 private:
  void put(MadeValue value, double x) {
    value.looked_at.type = {DType::F32, Shape{1}};
    value.looked_at.at = all_.size();
    TensorStatistics s{.max = x, .min = x, .mean = x, .norm = x, .elements = 1};
    s.nan = x != x;
    s.positive_inf = x == kInf;
    s.negative_inf = x == -kInf;
    all_.resize(all_.size() + TensorStatistics::kNumbers);
    s.put(all_.data() + value.looked_at.at);
    values_.push_back(std::move(value));
  }
  std::vector<MadeValue> values_;
  std::vector<double> all_;
  int made_ = 0;
};

// An operand at which nobody looked is no finite one.
TEST(OverflowFinder, SaysWhatWasNotLookedAt) {
  MadeUpStep step;
  step.add_outside("input:y", 1);
  step.add_made("/mse_loss#0", kInf, {"input:y"}, {"f32[200,1] of 1/linear#0"});
  step.add_made("/mse_loss.backward#0", kInf, {"/mse_loss#0"});
  const auto first = step.first();
  EXPECT_EQ(first.at("name"), "/mse_loss#0");
  EXPECT_TRUE(first.at("operands_are_finite").is_null()) << first;
  EXPECT_EQ(first.at("not_looked_at").at(0), "f32[200,1] of 1/linear#0");
  const std::string text = overflow_text(first);
  EXPECT_EQ(text.find("what it took is finite,"), std::string::npos) << text;
  EXPECT_NE(text.find("not looked at: f32[200,1] of 1/linear#0"), std::string::npos) << text;
}

TEST(OverflowFinder, NamesAnOpAllOfWhoseOperandsAreFinite) {
  MadeUpStep step;
  step.add_outside("input:x", 1);
  step.add_made("/linear#0", kInf, {"input:x"});
  const auto first = step.first();
  EXPECT_EQ(first.at("operands_are_finite"), true);
  EXPECT_FALSE(first.contains("not_looked_at"));
  EXPECT_NE(overflow_text(first).find("what it took is finite, input:x up to 1"),
            std::string::npos);
}

// What came from outside comes before an op that may have taken what came of it, but for the
// infinities of a mask; and behind one that took finite numbers alone.
TEST(OverflowFinder, TellsWhatComesFromOutsideFromWhatAnOpMakes) {
  for (const double outside : {kNan, kInf, -kInf}) {
    MadeUpStep step;
    step.add_outside("input:x", outside);
    step.add_made("/linear#0", kNan, {}, {"f32[2] of /mul#0"});
    EXPECT_EQ(step.first().at("name"), outside == -kInf ? "/linear#0" : "input:x") << outside;
    step.add_made("/linear#1", kInf, {});
    EXPECT_EQ(step.first().at("name"), outside == -kInf ? "/linear#0" : "/linear#1") << outside;
  }
}

TEST(OverflowFinder, TellsWhatEarlierMicroBatchesLeft) {
  MadeUpStep step;
  step.add_outside("variable:accumulated.w", -kInf);
  step.add_made("/add.backward#0", -kInf, {"variable:accumulated.w"});
  const auto first = step.first();
  EXPECT_EQ(first.at("name"), "variable:accumulated.w");
  EXPECT_EQ(first.at("earlier_micro_batches"), true);
  EXPECT_NE(overflow_text(first).find("earlier micro-batches"), std::string::npos);
}

}  // namespace
}  // namespace aloft::probe
