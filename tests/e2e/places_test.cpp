// Errors of ops that take a list of tensors name the line that called them.
#include <gtest/gtest.h>

#include <string>

#include "e2e/training.h"
#include "numbers.h"
#include "ops/cast.h"
#include "ops/concat.h"
#include "refusal.h"

namespace aloft::e2e {
namespace {

std::string line(int number) { return "places_test.cpp:" + std::to_string(number); }

TEST(Places, JoinedTensorsAreJoinedAtTheCallersLine) {
  use_cpu();
  const Tensor x = numbers({2, 3}), y = numbers({2, 4}), whole = cast(x, DType::I32);
  const auto expect_here = [](const std::string& said, int number) {
    EXPECT_NE(said.find(line(number)), std::string::npos) << said;
  };
  expect_here(refusal([&] { concat({x, y}); }), __LINE__);
  expect_here(refusal([&] { stack({x, y}); }), __LINE__);
  expect_here(refusal([&] { concat({whole, y}); }), __LINE__);  // types meet first
  expect_here(refusal([&] { concat({}); }), __LINE__);
  expect_here(refusal([&] { stack({}); }), __LINE__);
  const auto joined = [&](Tensor a, Tensor b) { return concat({a, b}); };
  const int there = __LINE__ - 1;
  expect_here(refusal([&] { compile(joined)(x, y); }), there);
}

}  // namespace
}  // namespace aloft::e2e
