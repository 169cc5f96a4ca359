// The loader of a program's own loop.
#include "aloft/loader.h"

#include <gtest/gtest.h>

#include "training.h"

namespace aloft::e2e {
namespace {

ArrayData samples(int count) {
  ArrayData data;
  data.features = 1;
  for (int s = 0; s < count; ++s) {
    data.values.push_back(static_cast<float>(s));
    data.labels.push_back(s % 3);
  }
  return data;
}

// A loop that begins inside an epoch hands out the rest of it.
TEST(Loader, GoesOnFromAPosition) {
  use_cpu();
  const auto epoch = [](Loader& loader) {
    std::vector<std::vector<float>> batches;
    for (const auto& [x, y] : loader) batches.push_back(x.to_floats());
    return batches;
  };
  const ArrayLoaderOptions options{.batch = 8, .seed = 1};
  Loader whole(samples(28), options), resumed(samples(28), options);
  const auto first = epoch(whole), second = epoch(whole);
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(whole.position(), 56u);
  EXPECT_EQ(whole.epoch(), 2u);
  resumed.seek(16);
  EXPECT_EQ(resumed.epoch(), 0u);
  EXPECT_EQ(epoch(resumed), (std::vector<std::vector<float>>{first[2], first[3]}));
  EXPECT_EQ(epoch(resumed), second);
}

}  // namespace
}  // namespace aloft::e2e
