#include "data/array_loader.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "data_file.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

std::shared_ptr<const ArrayData> numbered(std::int64_t samples) {
  auto data = std::make_shared<ArrayData>();
  data->features = 2;
  for (std::int64_t i = 0; i < samples; ++i) {
    data->values.insert(data->values.end(), {static_cast<float>(i), static_cast<float>(-i)});
    data->labels.push_back(static_cast<std::int32_t>(i));
  }
  return data;
}

std::vector<std::int32_t> labels_of(ArrayLoader& loader, int batches) {
  std::vector<std::int32_t> all;
  while (batches-- > 0) {
    const ArrayBatch* batch = loader.next();
    if (!batch) break;
    for (std::size_t i = 0; i < batch->labels.size(); ++i) {
      const std::int32_t label = batch->labels[i];
      const float expected = label == kIgnoredLabel ? 0 : static_cast<float>(label);
      EXPECT_EQ(batch->features[2 * i], expected);
      EXPECT_EQ(batch->features[2 * i + 1], -expected);
      EXPECT_EQ(label == kIgnoredLabel, static_cast<std::int64_t>(i) >= batch->rows);
    }
    all.insert(all.end(), batch->labels.begin(), batch->labels.end());
  }
  return all;
}

TEST(ArrayLoader, EachEpochIsAnotherPermutation) {
  ArrayLoader loader(numbered(10), {.batch = 4, .seed = 1, .epochs = 2});
  const std::vector<std::int32_t> first = labels_of(loader, 3), second = labels_of(loader, 3);
  EXPECT_EQ(first.size(), 12u);
  EXPECT_NE(first, second);
  for (const auto& epoch : {first, second}) {
    EXPECT_EQ(std::set<std::int32_t>(epoch.begin(), epoch.end()).size(), 11u);  // and the padding
    EXPECT_EQ(epoch[10], kIgnoredLabel);
  }
  EXPECT_EQ(loader.next(), nullptr);
}

TEST(ArrayLoader, HandsOutTargetsWhereTheDataHasThem) {
  const auto all = std::make_shared<ArrayData>();
  all->features = 2, all->outputs = 3;
  for (int i = 0; i < 10; ++i)
    for (int k = 0; k < 5; ++k)
      (k < 2 ? all->values : all->targets).push_back(static_cast<float>(10 * i + k));
  EXPECT_EQ(all->samples(), 10);
  ArrayLoader loader(all, {.batch = 4, .seed = 1, .epochs = 1});
  std::set<float> seen;
  while (const ArrayBatch* b = loader.next()) {
    EXPECT_TRUE(b->labels.empty());
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t k = 0; k < 3; ++k) {
        const bool is_there = static_cast<std::int64_t>(r) < b->rows;
        const float expected = is_there ? b->features[2 * r] + 2 + static_cast<float>(k) : 0;
        EXPECT_EQ(b->targets[3 * r + k], expected);
        if (is_there) seen.insert(expected);
      }
  }
  EXPECT_EQ(seen.size(), 30u);
  const ArraySplit split = split_arrays(*all, 4, 1);
  EXPECT_EQ(split.held_out.samples(), 4);
  EXPECT_EQ(split.train.samples(), 6);
  EXPECT_EQ(split.train.targets[0], split.train.values[0] + 2);
}

TEST(ArrayLoader, RefusesNumbersThatDoNotFit) {
  const auto refused = [](const ArrayData& data) {
    try {
      ArrayLoader(std::make_shared<const ArrayData>(data), {});
    } catch (const UserError& e) {
      return e.code();
    }
    return std::string();
  };
  EXPECT_EQ(refused({.features = 1, .values = {1, 2}, .labels = {0, 1}}), "");
  EXPECT_EQ(refused({.features = 2, .values = {1, 2}, .labels = {0, 1}}), "E0313");
  EXPECT_EQ(refused({.features = 1, .values = {1, 2}, .outputs = 2, .targets = {0, 1, 2}}),
            "E0313");
  EXPECT_EQ(refused({.features = 1, .values = {1}, .labels = {1}, .outputs = 1, .targets = {0}}),
            "E0313");
}

TEST(ArrayLoader, ResumesAnywhereAndKeepsOrderWhenAsked) {
  ArrayLoader whole(numbered(10), {.batch = 3, .seed = 4});
  const std::vector<std::int32_t> all = labels_of(whole, 12);
  ArrayLoader rest(numbered(10), {.batch = 3, .seed = 4});
  rest.seek(0);
  labels_of(rest, 5);
  ArrayLoader resumed(numbered(10), {.batch = 3, .seed = 4, .position = rest.position()});
  EXPECT_EQ(labels_of(resumed, 7), std::vector<std::int32_t>(all.begin() + 15, all.end()));
  ArrayLoader in_order(numbered(4), {.batch = 4, .shuffle = false});
  EXPECT_EQ(labels_of(in_order, 1), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_THROW(ArrayLoader(numbered(0), {}), UserError);
}

TEST(LabelledCsv, ReadsTheDigits) {
  const DataFile file = data_file("digits.csv");
  if (!file.missing.empty()) GTEST_SKIP() << file.missing;
  const ArrayData digits = read_labelled_csv(file.path, 1.0f / 16);
  EXPECT_EQ(digits.samples(), 1797);
  EXPECT_EQ(digits.features, 64);
  EXPECT_EQ(digits.labels[0], 0);
  EXPECT_EQ(digits.values[2], 5.0f / 16);
  EXPECT_EQ(std::set<std::int32_t>(digits.labels.begin(), digits.labels.end()).size(), 10u);
  const ArraySplit split = split_arrays(digits, 360, 1);
  EXPECT_EQ(split.held_out.samples(), 360);
  EXPECT_EQ(split.train.samples(), 1437);
  EXPECT_EQ(split.train.values.size(), 1437u * 64);
  EXPECT_NE(split.held_out.labels, split_arrays(digits, 360, 2).held_out.labels);
}

TEST(LabelledCsv, OddFilesAreReadOrRefusedByLine) {
  TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    TemporaryFolder::put(folder / "a.csv", text);
    return read_labelled_csv(folder / "a.csv");
  };
  EXPECT_EQ(read("x,y,label\r\n1, 2.5 ,3\r\n\r\n-4e1,5,6").values,
            (std::vector<float>{1, 2.5f, -40, 5}));
  for (const char* bad :
       {"", "\n\n", "a,b,c\n", "1\n", "1,2\n1,2,3\n", "1,x,3\n", "1,2,3.5\n", "1,2,-1\n",
        "1,2,99999999999\n", "1,,2\n", "inf,1\n", "1e300,1\n", "1,2,3\nx,y,z\n"})
    EXPECT_THROW(read(bad), DataError) << bad;
  // Numbers in quotes are no heading, which would be left out; nor are columns parted otherwise.
  for (const char* bad : {"\"5.0\",\"1\",\"0\"\n1,2,0\n", "x;y;label\n1;2;0\n"})
    EXPECT_THROW(read(bad), DataError) << bad;
  EXPECT_EQ(read("\"x\",\"label\"\n1,0\n").samples(), 1);
  TemporaryFolder::put(folder / "large.csv", "1e38,1,0\n");
  EXPECT_THROW(read_labelled_csv(folder / "large.csv", 1000), DataError);
  try {
    read("1,2\n1,2\n1,oops\n");
    FAIL();
  } catch (const DataError& e) {
    EXPECT_NE(std::string(e.what()).find("a.csv:3"), std::string::npos) << e.what();
  }
}

TEST(SplitArrays, DividesEverySampleOnce) {
  const auto data = numbered(50);
  for (std::int64_t held_out : {0, 1, 25, 49}) {
    const ArraySplit split = split_arrays(*data, held_out, 3);
    std::set<std::int32_t> all(split.train.labels.begin(), split.train.labels.end());
    all.insert(split.held_out.labels.begin(), split.held_out.labels.end());
    EXPECT_EQ(all.size(), 50u);
    EXPECT_EQ(split.held_out.samples(), held_out);
  }
  EXPECT_THROW(split_arrays(*data, 50, 3), UserError);
  EXPECT_THROW(split_arrays(*data, -1, 3), UserError);
}

}  // namespace
}  // namespace aloft
