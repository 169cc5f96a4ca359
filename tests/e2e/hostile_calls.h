// Calls with arguments that nobody sane would pass, and what is expected of them: a result, or an
// error with a code and what is needed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "aloft/aloft.h"
#include "frontend/eager_emitter.h"
#include "ops/last_try.h"

namespace aloft::e2e {

using I = std::int64_t;

// Of axes, counts and places. None that a machine could grant at great cost.
constexpr I kLarge = I{1} << 44;
constexpr I kInts[] = {
    INT64_MIN, INT64_MIN + 1, INT32_MIN - I{1}, -1000000000,   -7,       -2, -1, 0, 1, 2, 3, 4,
    7,         kLarge,        I{1} << 62,       INT64_MAX - 1, INT64_MAX};
constexpr double kDoubles[] = {-1,    -0.0,   0,      0.5, 1,        2,
                               1e300, -1e300, 1e-300, NAN, INFINITY, -INFINITY};

inline int tries = 0, refused = 0;

// What is not read cannot fail late.
inline void read(const Tensor& t) {
  if (t.is_defined() && t.shape().max_numel() < 1'000'000) t.to_vector();
}
inline void read(const std::vector<Tensor>& all) {
  for (const Tensor& t : all) read(t);
}

template <class Call>
void check(const std::string& what, const Call& call) {
  testing::LastTry::begin(what, 60);
  ++tries;
  try {
    call();
  } catch (const Error& e) {
    ++refused;
    const std::string text = e.what();
    EXPECT_TRUE(e.exit_code() == ExitCode::Usage || e.code() == "E0401" || e.code() == "E0531")
        << what << "\n"
        << text;
    EXPECT_NE(text.find("\n  need"), std::string::npos) << what << "\n" << text;
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << "\n" << e.what();
  }
  eager().clear_tape();
  testing::LastTry::end();
}

using OfOne = std::function<void(I)>;
using OfTwo = std::function<void(I, I)>;
using OfDouble = std::function<void(double)>;

inline void with_ints(const std::vector<std::pair<const char*, OfOne>>& calls) {
  for (const auto& [name, call] : calls)
    for (const I v : kInts)
      check(std::string(name) + " of " + std::to_string(v), [&, &f = call] { f(v); });
}
inline void with_pairs(const std::vector<std::pair<const char*, OfTwo>>& calls) {
  for (const auto& [name, call] : calls)
    for (const I a : kInts)
      for (const I b : kInts)
        check(std::string(name) + " of " + std::to_string(a) + ", " + std::to_string(b),
              [&, &f = call] { f(a, b); });
}
inline void with_doubles(const std::vector<std::pair<const char*, OfDouble>>& calls) {
  for (const auto& [name, call] : calls)
    for (const double v : kDoubles)
      check(std::string(name) + " of " + std::to_string(v), [&, &f = call] { f(v); });
}

class HostileArguments : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    use_device(chosen_device);
    testing::LastTry::watch();
  }
  void SetUp() override { tries = refused = 0; }
  void TearDown() override {
    RecordProperty("tries", tries);
    EXPECT_GT(tries, 0);
    EXPECT_GT(refused, 0) << "nothing was hostile";
  }

  const Tensor x = full({2, 3, 4}, 1.5), image = full({2, 4, 6, 5}, 0.5),
               ids = full({2, 3}, 1, DType::I32);
  const Tensor one = full({4}, 1), logits = full({3, 5}, 0.25), targets = full({3}, 2, DType::I32);
  const Tensor index = full({2, 3, 4}, 1, DType::I32), list = full({3}, 1, DType::I32);
};

inline int narrow(I v) { return static_cast<int>(std::clamp<I>(v, INT32_MIN, INT32_MAX)); }

}  // namespace aloft::e2e
