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

}  // namespace
}  // namespace aloft::compare
