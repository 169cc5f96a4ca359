#include "data/loader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "data/prefetch.h"

namespace aloft {
namespace {

TokenSource counting(std::int32_t n) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return TokenSource::from_ids(std::move(ids), n);
}

struct Copy {
  std::vector<std::int32_t> inputs, targets;
  std::int64_t rows;
  std::uint64_t epoch, position_after;
  friend bool operator==(const Copy&, const Copy&) = default;
};

std::vector<Copy> take(TokenLoader& loader, int count, int slow_microseconds = 0) {
  std::vector<Copy> all;
  while (count-- > 0) {
    const Batch* b = loader.next();
    if (!b) break;
    if (slow_microseconds)
      std::this_thread::sleep_for(std::chrono::microseconds(slow_microseconds * (count % 3)));
    all.push_back({{b->inputs.begin(), b->inputs.end()},
                   {b->targets.begin(), b->targets.end()},
                   b->rows,
                   b->epoch,
                   b->position_after});
    EXPECT_EQ(loader.position(), b->position_after);
  }
  return all;
}

TEST(TokenLoader, TargetsAreTheInputsOneLater) {
  TokenLoader loader(counting(1000), {.batch = 4, .context = 8, .order = {.seed = 1}});
  for (const Copy& b : take(loader, 100)) {
    ASSERT_EQ(b.rows, 4);
    for (std::size_t i = 0; i < b.inputs.size(); ++i) ASSERT_EQ(b.targets[i], b.inputs[i] + 1);
  }
}

TEST(TokenLoader, SameBatchesWhateverTheTiming) {
  const TokenLoaderOptions options{.batch = 3, .context = 5, .order = {.seed = 9}};
  TokenLoader fast(counting(200), options);
  TokenLoaderOptions deep = options;
  deep.prefetch = 7;
  TokenLoader slow(counting(200), deep);
  EXPECT_EQ(take(fast, 60), take(slow, 60, 200));
}

TEST(TokenLoader, ResumesAtAnyPosition) {
  for (const LastBatch last : {LastBatch::Wrap, LastBatch::Keep, LastBatch::Drop}) {
    for (const Sampling sampling : {Sampling::Windows, Sampling::Random}) {
      const TokenLoaderOptions options{
          .batch = 4, .context = 7, .order = {.sampling = sampling, .seed = 2}, .last = last};
      TokenLoader whole(counting(150), options);
      const std::vector<Copy> all = take(whole, 40);
      for (std::size_t stop : {1, 5, 6, 17, 39}) {
        TokenLoaderOptions resumed = options;
        resumed.position = all[stop - 1].position_after;
        TokenLoader rest(counting(150), resumed);
        EXPECT_EQ(take(rest, static_cast<int>(40 - stop)),
                  std::vector<Copy>(all.begin() + static_cast<std::ptrdiff_t>(stop), all.end()));
      }
      whole.seek(0);
      EXPECT_EQ(take(whole, 40), all);
    }
  }
}

TEST(TokenLoader, EvaluationSeesEveryTargetOnceAndPadsTheRest) {
  for (int tokens : {2, 8, 9, 33, 60, 65}) {
    TokenLoader loader(counting(tokens), evaluation_options(3, 8));
    std::map<std::int32_t, int> times;
    std::int64_t counted = 0;
    while (const Batch* b = loader.next()) {
      counted += b->counted_targets;
      for (std::size_t i = 0; i < b->targets.size(); ++i) {
        if (b->targets[i] == kIgnoredTarget) {
          EXPECT_EQ(b->inputs[i], 0);
          continue;
        }
        EXPECT_EQ(b->targets[i], b->inputs[i] + 1);
        EXPECT_LT(static_cast<std::int64_t>(i), b->rows * 8);
        ++times[b->targets[i]];
      }
    }
    EXPECT_EQ(counted, tokens - 1);
    EXPECT_EQ(times.size(), static_cast<std::size_t>(tokens - 1));
    EXPECT_EQ(loader.next(), nullptr);  // and stays at the end
  }
}

TEST(TokenLoader, ErrorsOfTheThreadReachTheConsumerAfterTheGoodBatches) {
  std::vector<std::int32_t> ids(100, 1);
  ids[50] = 7;
  TokenLoader loader(TokenSource::from_ids(ids, 5), evaluation_options(1, 10));
  for (int i = 0; i < 4; ++i) ASSERT_NE(loader.next(), nullptr);
  EXPECT_THROW(loader.next(), DataError);
  EXPECT_THROW(loader.next(), DataError);
  loader.seek(0);
  EXPECT_NE(loader.next(), nullptr);
}

TEST(TokenLoader, BuffersAreTheSameFewAgainAndAgain) {
  TokenLoader loader(counting(1000), {.batch = 2, .context = 16, .prefetch = 2});
  std::map<const std::int32_t*, int> buffers;
  for (int i = 0; i < 50; ++i) ++buffers[loader.next()->inputs.data()];
  EXPECT_EQ(buffers.size(), 3u);
}

TEST(TokenLoader, BadOptionsAreRefused) {
  EXPECT_THROW(TokenLoader(counting(10), {.batch = 0, .context = 4}), UserError);
  EXPECT_THROW(TokenLoader(counting(10), {.batch = -1, .context = 4}), UserError);
  EXPECT_THROW(TokenLoader(counting(10), {.batch = 1, .context = 0}), DataError);
  EXPECT_THROW(TokenLoader(counting(10), {.batch = 1, .context = 10}), DataError);
  EXPECT_THROW(TokenLoader(counting(10), {.batch = 8, .context = 4, .last = LastBatch::Drop}),
               UserError);
}

template <class Call>
std::string code_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

// Of a machine that has 2^46 bytes for batches, none.
TEST(TokenLoader, BatchesThatNoMemoryHoldsAreRefused) {
  for (const std::int64_t batch :
       {std::int64_t{1} << 40, std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max()})
    for (const int prefetch : {1, std::numeric_limits<int>::max()})
      EXPECT_EQ(code_of([&] {
                  TokenLoader(counting(100), {.batch = batch, .context = 90, .prefetch = prefetch});
                }),
                "E0401")
          << batch;
  auto whole = evaluation_options(1, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(code_of([&] { TokenLoader(counting(100), whole); }), "E0401");
}

TEST(TokenLoader, MakesAFewBatchesAheadWhateverIsAskedFor) {
  for (const int prefetch :
       {std::numeric_limits<int>::min(), -1, 0, std::numeric_limits<int>::max()}) {
    TokenLoader loader(counting(1000), {.batch = 2, .context = 4, .prefetch = prefetch});
    EXPECT_EQ(loader.next()->rows, 2) << prefetch;
  }
}

TEST(TokenSource, RefusesWhatItDoesNotHave) {
  const TokenSource source = counting(10);
  std::vector<std::int32_t> ids(11);
  EXPECT_EQ(code_of([&] { source.read(0, ids); }), "E0532");
  EXPECT_EQ(code_of([&] { source.read(8, std::span(ids).first(3)); }), "E0532");
  EXPECT_EQ(code_of([&] { source.read(~std::uint64_t{0}, std::span(ids).first(1)); }), "E0532");
  EXPECT_EQ(code_of([&] { source.read(10, std::span(ids).first(0)); }), "");
  for (const int width : {-4, 0, 1, 3, 8}) {
    EXPECT_EQ(code_of([&] { TokenSource(nullptr, {}, width, 10, "none"); }), "E0532") << width;
    EXPECT_EQ(code_of([&] { TokenSource::from_file("none", 0, 0, width, 10); }), "E0532") << width;
  }
}

TEST(Prefetcher, StopsWhileWaitingOnEitherSide) {
  for (int consumed : {0, 1, 5}) {
    int filled = 0;
    Prefetcher<int> ring(std::vector<int>(3), [&](int& slot) {
      slot = filled++;
      return true;
    });
    for (int i = 0; i < consumed; ++i) EXPECT_EQ(*ring.next(), i);
  }
  Prefetcher<int> failing(std::vector<int>(2), [](int&) -> bool { throw std::runtime_error("x"); });
  EXPECT_THROW(failing.next(), std::runtime_error);
}

}  // namespace
}  // namespace aloft
