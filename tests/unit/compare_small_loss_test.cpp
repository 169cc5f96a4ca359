// A loss that is nearly 0, and the gradients that come from it.
#include <gtest/gtest.h>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

class CompareSmallLoss : public ::testing::Test {
 protected:
  // A module that gives logits as large as that, and the gradient that reaches it.
  static Json run(double loss, double gradient, const char* type = "torch.float32") {
    const Json logits = tensor({64, 10}, 20, type);
    const auto flows = [&](double norm) { return tensor({64, 10}, norm, type); };
    return {{"data",
             {{"Module.fc.Linear.forward.0", forward(tensor({64, 10}, 1, type), logits)},
              {"Module.fc.Linear.backward.0",
               {{"input", {flows(gradient)}}, {"output", {flows(3 * gradient)}}}}}},
            {"training", {{"loss", loss}}}};
  }
  std::string sentence(const Json& npu, const Json& bench) {
    TemporaryFolder::put(folder_ / "npu.json", npu.dump());
    TemporaryFolder::put(folder_ / "bench.json", bench.dump());
    return compare_runs({folder_ / "npu.json", folder_ / "bench.json", folder_ / "out", {}})
        .at(0)
        .sentence;
  }
  bool is_right(const Json& npu, const Json& bench) {
    return sentence(npu, bench).starts_with("no divergence");
  }
  TemporaryFolder folder_;
};

TEST_F(CompareSmallLoss, IsRoundedAsTheLogitsAre) {
  EXPECT_TRUE(is_right(run(7.874527e-05, 1e-4), run(7.875182e-05, 1e-4)));
  EXPECT_TRUE(is_right(run(0, 0, "torch.bfloat16"), run(0.00085, 1e-4, "torch.float32")));
  EXPECT_NE(sentence(run(7e-3, 1e-4), run(7.1e-3, 1e-4)).find("loss: the loss is"),
            std::string::npos);
  EXPECT_FALSE(is_right(run(2.30, 1), run(2.31, 1)));
}

TEST_F(CompareSmallLoss, GradientsLoseItsDigits) {
  EXPECT_TRUE(is_right(run(1.8e-5, 1e-5 * (1 + 3e-3)), run(1.8e-5, 1e-5)));
  // More than that, or of a loss that has its digits.
  EXPECT_FALSE(is_right(run(1.8e-5, 1e-5 * 1.5), run(1.8e-5, 1e-5)));
  EXPECT_FALSE(is_right(run(2.3, 1 + 3e-3), run(2.3, 1)));
  EXPECT_FALSE(is_right(run(0.1, 1 + 3e-3), run(0.1, 1)));
  // A loss may be below 0.
  EXPECT_FALSE(is_right(run(-2.3, 1 + 3e-3), run(-2.3, 1)));
}

// Gradients behind the last module that has a matrix, which has the loss behind it, are held to
// what is measured there; `last`: of its class, `error`: of the gradient that it gives.
class CompareBehindASmallLoss : public CompareSmallLoss {
 protected:
  static Json behind(const char* last, double error, double wrong) {
    const char* const type = "torch.bfloat16";
    const auto flows = [&](double norm) { return Json::array({tensor({64, 64}, norm, type)}); };
    const Json one = tensor({64, 64}, 1, type);
    const Json weights = {{"weight", tensor({64, 64}, 1, type)}};
    const auto is = [](const std::string& path, const char* pass) {
      return "Module." + path + "." + pass + ".0";
    };
    const std::string first = "fc.Linear", second = std::string("last.") + last;
    const bool has_matrix = std::string_view(last) == "Linear";
    return {{"data",
             {{is(first, "forward"), forward(one, one, weights)},
              {is(second, "forward"), forward(one, one, has_matrix ? weights : Json::object())},
              {is(second, "backward"), {{"input", flows(1)}, {"output", flows(error)}}},
              {is(first, "backward"), {{"input", flows(error)}, {"output", flows(wrong)}}}}},
            {"training", {{"loss", 1e-3}}}};
  }
};

TEST_F(CompareBehindASmallLoss, GradientsAreHeldToWhatIsMeasured) {
  const Json right = behind("Linear", 1, 1);
  EXPECT_NE(sentence(behind("Linear", 1.001, 1.8), right).find("of what fc takes (0) is off"),
            std::string::npos);
  EXPECT_TRUE(is_right(behind("Linear", 1.001, 1.02), right));
  // The first of them may be off by as much as the loss makes it, and the others then, too.
  EXPECT_TRUE(is_right(behind("Linear", 1.8, 1.8), right));
}

TEST_F(CompareBehindASmallLoss, WhatASoftmaxTakesSaysNothing) {
  const Json right = behind("LogSoftmax", 1, 1);
  EXPECT_TRUE(is_right(behind("LogSoftmax", 1.001, 1.8), right));
}

}  // namespace
}  // namespace aloft::compare
