// Operators and their gradients against PyTorch's float64 results: convolution, pooling, norms,
// losses, attention and what else has conventions that can be got wrong. Three times: the meanings
// in double, the cpu back end in fp32 compiled, and op by op.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "frontend/eager.h"
#include "parity/case_runs.h"
#include "types/tolerance.h"

namespace aloft::parity {
namespace {

// Relative to the largest element. No bound of roundings: PyTorch's own float64 functions are some
// hundred roundoffs off. What went through an f32 anywhere would be off by 1e-8.
constexpr double kDoubleLimit = 1e-12;
// No operand has more elements, so no case sums more terms.
constexpr std::int64_t kMostTerms = 336;
double single_limit() {
  const Tolerance sums = tolerance_of(DType::F32, kMostTerms);
  return sums.relative + sums.absolute;
}

const Fixture& ops() {
  static const Fixture fixture("ops");
  return fixture;
}

// Every output and gradient of the case is there and within `limit`.
void expect_close(const Case& c, const Arrays& got, double limit) {
  std::size_t compared = 0;
  for (const auto& [name, want] : c.arrays) {
    if (!name.starts_with("out.") && !name.starts_with("grad.")) continue;
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_LE(error_of(got.at(name), want), limit) << name;
    ++compared;
  }
  EXPECT_EQ(compared, c.info.at("outputs").size() + c.info.at("grads").size());
}

class Operators : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
  Case case_{ops(), ops().cases().at(GetParam())};
};

TEST_P(Operators, MeaningIsPyTorchs) { expect_close(case_, run_in_double(case_), kDoubleLimit); }

TEST_P(Operators, CompiledForTheProcessor) {
  expect_close(case_, run_compiled(case_), single_limit());
}

TEST_P(Operators, OpByOp) { expect_close(case_, run_eagerly(case_), single_limit()); }

INSTANTIATE_TEST_SUITE_P(PyTorch, Operators,
                         ::testing::Range(0, static_cast<int>(ops().cases().size())),
                         [](const auto& info) { return test_name(ops().cases().at(info.param)); });

}  // namespace
}  // namespace aloft::parity
