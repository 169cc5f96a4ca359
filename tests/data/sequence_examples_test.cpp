// Sequences of different lengths as batches: padding, order, and the weights of micro-batches.
#include "data/sequence_examples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace aloft {
namespace {

// Sequence i: i % 5 + 2 tokens 100 i, 100 i + 1, ..., of which the last i % 3 + 1 are learnt, the
// first never.
std::shared_ptr<const Sequences> some_sequences(std::uint32_t count) {
  auto all = std::make_shared<Sequences>();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t size = i % 5 + 2, learnt = std::min(i % 3 + 1, size - 1);
    std::vector<std::uint32_t> tokens;
    for (std::uint32_t k = 0; k < size; ++k)
      tokens.push_back((100 * i + k) | (k + learnt >= size ? kLearntToken : 0));
    all->add(tokens);
  }
  all->finish();
  return all;
}

std::shared_ptr<const std::vector<std::uint32_t>> all_of(std::uint32_t count) {
  std::vector<std::uint32_t> which;
  for (std::uint32_t i = 0; i < count; ++i) which.push_back(i);
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(which));
}

template <class T>
std::vector<T> column(const ExampleBatch& batch, std::size_t i) {
  std::vector<T> values(batch.columns[i].size() / sizeof(T));
  std::memcpy(values.data(), batch.columns[i].data(), batch.columns[i].size());
  return values;
}

using Ids = std::vector<std::int32_t>;

TEST(SequenceExamples, ShortOnesArePaddedAndWhatIsNotLearntIsNoTarget) {
  SequenceOptions o;
  o.order = {.batch = 4, .shuffle = false, .last = LastBatch::Keep, .epochs = 1};
  o.length = 5;
  SequenceExamples examples(some_sequences(3), all_of(3), o);
  const ExampleBatch* b = examples.next();
  ASSERT_TRUE(b);
  EXPECT_EQ(b->rows, 3);
  EXPECT_EQ(b->units, 1 + 2 + 3);
  EXPECT_EQ(b->counted_targets, 1 + 2 + 3);
  ASSERT_EQ(b->columns.size(), 2u);
  EXPECT_EQ(column<std::int32_t>(*b, 0),
            (Ids{0, 0, 0, 0, 0, 100, 101, 0, 0, 0, 200, 201, 202, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(column<std::int32_t>(*b, 1),
            (Ids{1,   -100, -100, -100, -100, 101,  102,  -100, -100, -100,
                 201, 202,  203,  -100, -100, -100, -100, -100, -100, -100}));
  EXPECT_EQ(examples.position(), 3u);
  EXPECT_FALSE(examples.next());
}

TEST(SequenceExamples, AnEpochHasEachOnceInAnotherOrder) {
  SequenceOptions o;
  o.order = {.batch = 5, .seed = 3, .last = LastBatch::Wrap};
  o.length = 6;
  SequenceExamples examples(some_sequences(40), all_of(40), o);
  std::vector<Ids> epochs(2);
  for (Ids& epoch : epochs)
    for (int i = 0; i < 8; ++i) {
      const Ids inputs = column<std::int32_t>(*examples.next(), 0);
      for (std::size_t row = 0; row < 5; ++row) epoch.push_back(inputs[row * 6]);
    }
  EXPECT_NE(epochs[0], epochs[1]);
  for (Ids& epoch : epochs) {
    std::ranges::sort(epoch);
    for (std::int32_t i = 0; i < 40; ++i) EXPECT_EQ(epoch[static_cast<std::size_t>(i)], 100 * i);
  }
}

TEST(SequenceExamples, GoOnFromAnyStep) {
  SequenceOptions o;
  o.order = {.batch = 3, .seed = 7, .last = LastBatch::Wrap};
  o.length = 6;
  o.micro_batches = 4;
  o.has_weights = true;
  SequenceExamples whole(some_sequences(29), all_of(29), o);
  for (int i = 0; i < 8; ++i) whole.next();
  o.order.position = whole.position();
  o.order.prefetch = 9;
  SequenceExamples rest(some_sequences(29), all_of(29), o);
  for (int i = 0; i < 30; ++i) {
    const ExampleBatch *a = whole.next(), *b = rest.next();
    for (std::size_t c = 0; c < 3; ++c)
      EXPECT_TRUE(std::ranges::equal(a->columns[c], b->columns[c])) << i;
  }
}

TEST(SequenceExamples, MicroBatchesWeighWhatTheyHaveOfAStepsTargets) {
  SequenceOptions o;
  o.order = {.batch = 2, .seed = 5, .last = LastBatch::Wrap};
  o.length = 6;
  o.micro_batches = 3;
  o.has_weights = true;
  SequenceExamples examples(some_sequences(17), all_of(17), o);
  bool any_unequal = false;
  for (int step = 0; step < 20; ++step) {
    std::vector<std::int64_t> targets;
    std::vector<float> weights;
    std::int64_t all = 0;
    for (int part = 0; part < 3; ++part) {
      const ExampleBatch* b = examples.next();
      const std::vector<float> rows = column<float>(*b, 2);
      ASSERT_EQ(rows.size(), 2u);
      EXPECT_EQ(rows[0], rows[1]);
      weights.push_back(rows[0]);
      targets.push_back(b->counted_targets);
      all += b->counted_targets;
    }
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_FLOAT_EQ(weights[i], 3.0f * static_cast<float>(targets[i]) / static_cast<float>(all));
    any_unequal |= targets[0] != targets[1];
  }
  EXPECT_TRUE(any_unequal);
}

TEST(Sequences, HashSeesTokensBoundsAndWhatIsLearnt) {
  const auto hash = [](std::vector<std::vector<std::uint32_t>> sequences) {
    Sequences all;
    for (const auto& tokens : sequences) all.add(tokens);
    const auto which = all_of(static_cast<std::uint32_t>(sequences.size()));
    return all.hash_of(*which);
  };
  const std::uint64_t plain = hash({{1, 2, 3}, {4, 5}});
  EXPECT_EQ(plain, hash({{1, 2, 3}, {4, 5}}));
  EXPECT_NE(plain, hash({{1, 2}, {3, 4, 5}}));
  EXPECT_NE(plain, hash({{1, 2, 3 | kLearntToken}, {4, 5}}));
  EXPECT_NE(plain, hash({{1, 2, 3}}));
  EXPECT_THROW(Sequences().add(std::vector<std::uint32_t>{1}), UserError);
}

}  // namespace
}  // namespace aloft
