// Two tensors, element by element: the ends of their types, small numbers as well as large ones.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dump_records.h"
#include "observe/compare/divergence.h"
#include "observe/compare/elements.h"
#include "observe/compare/msprobe_table.h"
#include "observe/compare/noise.h"
#include "observe/compare/stored_elements.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// What is said of two dumps without elements; "" where nothing parts.
class CompareSmall : public ::testing::Test {
 protected:
  DumpFile dump(const char* name, const Json& data) {
    TemporaryFolder::put(folder_ / name, Json{{"task", "statistics"}, {"data", data}}.dump());
    return read_dump(folder_ / name);
  }
  std::string parted(const Json& npu, const Json& bench) {
    const DumpFile n = dump("npu.json", npu), b = dump("bench.json", bench);
    const Pairs pairs = pair_dumps(n, b, {});
    const auto all = compare_all(pairs, [](const RecordPair&) { return nullptr; });
    const auto d = first_divergence(all, n);
    return d ? d->sentence : "";
  }

  TemporaryFolder folder_;
};

// Down to the smallest numbers, and through 0.
TEST(CompareElements, UlpsAreStepsFromNumberToNumber) {
  const auto ulps = [](double n, double b, const char* type) {
    return figures_of({{n}, {1}, type}, {{b}, {1}, type}).max_ulps.value_or(-1);
  };
  struct Row {
    const char* type;
    double least, next;  // the smallest number, and that behind 1
  };
  const Row rows[] = {{"torch.float16", 0x1p-24, 1 + 0x1p-10},
                      {"torch.bfloat16", 0x1p-133, 1 + 0x1p-7},
                      {"torch.float32", 0x1p-149, 1 + 0x1p-23},
                      {"torch.float64", 0x1p-1074, 1 + 0x1p-52}};
  for (const Row& row : rows) {
    EXPECT_EQ(ulps(6 * row.least, 7 * row.least, row.type), 1) << row.type;
    EXPECT_EQ(ulps(0, row.least, row.type), 1) << row.type;
    EXPECT_EQ(ulps(-row.least, row.least, row.type), 2) << row.type;
    EXPECT_EQ(ulps(row.next, 1, row.type), 1) << row.type;
    EXPECT_EQ(ulps(1, (3 - row.next) / 2, row.type), 1) << row.type;  // the one before
    EXPECT_EQ(ulps(1, 4, row.type), 2 / (row.next - 1)) << row.type;
  }
  EXPECT_TRUE(std::isfinite(ulps(1e-310, 1.2e-310, "torch.float64")));
  EXPECT_EQ(ulps(2.8f, 0, "torch.float32"), 0x40333333);  // its bits as a number
  EXPECT_EQ(figures_of({{1}, {1}, "torch.bfloat16"}, {{1 + 0x1p-7}, {1}, "torch.float32"}).max_ulps,
            1);
}

// As msprobe counts them: 0.005 as float32 is less than 0.005, and is not less than itself.
TEST(CompareElements, WhatIsExactlyAtAShareOfFloat32IsNotWithinIt) {
  const auto share = [](double n, double b, const char* type) {
    return figures_of({{n, 1}, {2}, type}, {{b, 1}, {2}, type}).five_thousandths;
  };
  float n = 0, b = 0;  // that are just so far apart
  for (float x = 1; x < 2 && b == 0; x += 0x1p-12F)
    for (float y = x * 1.0049F; y < x * 1.0051F; y = std::nextafter(y, 3.0F))
      if ((y - x) / x == 0.005F) n = y, b = x;
  ASSERT_GT(b, 0);
  EXPECT_EQ(share(static_cast<double>(n), static_cast<double>(b), "torch.float32"), 0.5);
  EXPECT_EQ(share(1 + static_cast<double>(0.005F), 1, "torch.float64"), 1);
}

// Masks hold the end of the type in which they were made.
TEST(CompareElements, EndsOfTypesAreTheSame) {
  const double low = -65504, single = -std::numeric_limits<float>::max(),
               wide = -std::numeric_limits<double>::max();
  const auto distance = [](double n, const char* ours, double b, const char* theirs) {
    return figures_of({{0, n, 1}, {3}, ours}, {{0, b, 1}, {3}, theirs}).relative_distance;
  };
  EXPECT_EQ(distance(low, "torch.float16", single, "torch.float32"), 0);
  EXPECT_EQ(distance(single, "torch.float32", wide, "torch.float64"), 0);
  EXPECT_EQ(distance(wide, "torch.float64", single, "torch.float32"), 0);
  EXPECT_EQ(distance(-kInf, "torch.float32", low, "torch.float16"), 0);
  EXPECT_EQ(distance(-0x1.fep127, "torch.bfloat16", single, "torch.float32"), 0);
  EXPECT_EQ(distance(-low, "torch.float16", single, "torch.float32"), 1);    // the other side
  EXPECT_GT(distance(-60000, "torch.float16", low, "torch.float16"), 0.08);  // large, and no end
  EXPECT_GE(distance(-1e4, "torch.float16", single, "torch.float32"), 1);
  EXPECT_EQ(distance(-kInf, "torch.float32", -1e4, "torch.float32"), kInf);
  // msprobe's figures are what msprobe makes of it.
  EXPECT_EQ(figures_of({{-kInf}, {1}, "torch.float32"}, {{low}, {1}, "torch.float16"}).problem,
            "N/A");
}

// A mask hides what is low; what is too large at the other end is no mask.
TEST(CompareElements, WhatIsInfiniteAboveIsNotTheLargestNumber) {
  const auto distance = [](double n, double b, const char* type) {
    return figures_of({{0, n, 1}, {3}, type}, {{0, b, 1}, {3}, type}).relative_distance;
  };
  EXPECT_EQ(distance(kInf, 65504, "torch.float16"), kInf);
  EXPECT_EQ(distance(65000, kInf, "torch.float16"), kInf);
  EXPECT_EQ(distance(kInf, 3.39e38, "torch.float32"), kInf);
  EXPECT_GT(distance(65504, 65000, "torch.float16"), 0.005);
  EXPECT_EQ(distance(-kInf, -65504, "torch.float16"), 0);
}

// Squares of float64 may be no doubles.
TEST(CompareElements, NumbersWhoseSquaresAreNoneAreMeasured) {
  for (const double size : {1e200, 1.5e307, 1e-200, 1e-300}) {
    const Elements b{{size, -2 * size, 3 * size}, {3}, "torch.float64"};
    Elements n = b;
    EXPECT_EQ(figures_of(n, b).relative_distance, 0) << size;
    for (double& v : n.values) v *= 1.25;
    const ElementFigures f = figures_of(n, b);
    EXPECT_NEAR(f.relative_distance, 0.25, 1e-12) << size;
    EXPECT_NEAR(f.relative_worst, 0.25, 1e-12) << size;
    EXPECT_NEAR(f.relative_typical, 0.5 / std::sqrt(14.0 / 3), 0.3) << size;
    EXPECT_NEAR(f.difference / size, 0.25 * std::sqrt(14), 1e-12) << size;
    EXPECT_NEAR(f.distance.value_or(0) / size, 0.25 * std::sqrt(14), 1e-12) << size;
    EXPECT_EQ(f.cosine, 1) << size;
    n.values = {0, 0, 0};
    EXPECT_EQ(figures_of(n, b).relative_distance, 1) << size;
    EXPECT_EQ(figures_of(b, n).relative_distance, 1) << size;
  }
  const Elements one{{1e200, 0}, {2}, "torch.float64"}, other{{0, 1e-200}, {2}, one.type};
  EXPECT_EQ(figures_of(one, other).cosine, 0);
  EXPECT_EQ(figures_of(one, one).max_absolute, 0);
}

// msprobe says 1 of any two tensors that are short.
TEST(CompareElements, DirectionsOfShortTensorsAreTheirs) {
  const Elements up{{1e-17, 0}, {2}, "torch.float32"}, right{{0, 1e-17}, {2}, up.type};
  EXPECT_EQ(figures_of(up, right).cosine, 0);
  EXPECT_EQ(figures_of(up, {{-1e-17, 0}, {2}, up.type}).cosine, -1);
  EXPECT_EQ(figures_of(up, {{1, 0}, {2}, up.type}).cosine, 1);
  EXPECT_EQ(figures_of({{0, 0}, {2}, up.type}, {{0, 0}, {2}, up.type}).cosine, 1);
  EXPECT_EQ(figures_of(up, {{0, 0}, {2}, up.type}).problem, "Nan");
}

// Heads before positions or behind them, positions before the batch or behind it.
TEST(CompareElements, AxesThatAreExchangedAreFound) {
  std::vector<double> behind(2 * 3 * 4 * 5), before(behind.size());
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t h = 0; h < 4; ++h)
        for (std::size_t d = 0; d < 5; ++d)
          before[((b * 4 + h) * 3 + t) * 5 + d] = behind[((b * 3 + t) * 4 + h) * 5 + d] =
              static_cast<double>(1000 * b + 100 * t + 10 * h + d);
  const Elements ours{behind, {2, 3, 4, 5}, "torch.float32"},
      theirs{before, {2, 4, 3, 5}, "torch.float32"};
  EXPECT_EQ(figures_of(ours, theirs).relative_distance, 0);
  EXPECT_EQ(figures_of(theirs, ours).relative_distance, 0);
  EXPECT_GT(figures_of(ours, {before, {2, 3, 4, 5}, "torch.float32"}).relative_distance, 0.1);
  EXPECT_GT(figures_of(ours, {before, {4, 2, 3, 5}, "torch.float32"}).relative_distance, 0.1);
  const Elements batch_first{{1, 2, 3, 4, 5, 6}, {2, 3, 1}, "torch.float32"},
      batch_behind{{1, 4, 2, 5, 3, 6}, {3, 2, 1}, "torch.float32"};
  EXPECT_EQ(figures_of(batch_first, batch_behind).relative_distance, 0);
}

// A file of numpy with whole numbers of 64 bits.
std::string longs(const std::vector<std::int64_t>& values) {
  std::string head = "{'descr': '<i8', 'fortran_order': False, 'shape': (" +
                     std::to_string(values.size()) + ",), }";
  head.append(117 - head.size(), ' ');
  std::string file = std::string("\x93NUMPY\x01\x00v\x00", 10) + head + "\n";
  for (const std::int64_t v : values)
    for (int byte = 0; byte < 8; ++byte)
      file += static_cast<char>(static_cast<std::uint64_t>(v) >> (8 * byte));
  return file;
}

// Beyond 2^53 not every whole number is a double.
TEST(CompareElements, WholeNumbersAreComparedAsSuch) {
  constexpr std::int64_t large = std::int64_t{1} << 53;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(rest_of(large), 0);
  EXPECT_EQ(rest_of(large + 1), 1);
  EXPECT_EQ(rest_of(-large - 1), -1);
  EXPECT_EQ(rest_of(most), -1);
  EXPECT_EQ(rest_of(-most - 1), 0);
  const auto figures = [](const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
    const std::string x = longs(a), y = longs(b);
    return figures_of(numpy_elements(std::as_bytes(std::span(x))),
                      numpy_elements(std::as_bytes(std::span(y))));
  };
  EXPECT_EQ(figures({large, large + 1}, {large, large + 1}).relative_distance, 0);
  EXPECT_GT(figures({large, large + 1}, {large, large}).relative_distance, 0);
  EXPECT_EQ(figures({large, large + 1}, {large, large}).max_absolute, 1);
  EXPECT_EQ(figures({large, large}, {large, large + 1}).max_absolute, 1);
  EXPECT_EQ(figures({most, 1}, {most - 2, 1}).max_absolute, 2);
  EXPECT_EQ(figures({large + 1, 1}, {1, large + 1}).max_absolute, 0x1p53);
  // Where they lie in another order of axes, what is beyond a double moves with them.
  const Elements rows{{0x1p53, 1, 2, 3, 4, 5}, {2, 3, 1}, "torch.int64", {1, 0, 0, 0, 0, 0}};
  Elements columns{{0x1p53, 3, 1, 4, 2, 5}, {3, 2, 1}, "torch.int64", {1, 0, 0, 0, 0, 0}};
  EXPECT_EQ(figures_of(rows, columns).relative_distance, 0);
  columns.rests = {0, 1, 0, 0, 0, 0};
  EXPECT_GT(figures_of(rows, columns).relative_distance, 0);
}

// As Python reads it: the last value, at the place of the first.
TEST_F(CompareSmall, OfAnEntryThatStandsThereTwiceTheLastCounts) {
  const std::string one = forward(tensor({4}, 1), tensor({4}, 1)).dump();
  const std::string two = forward(tensor({4}, 2), tensor({4}, 2)).dump();
  TemporaryFolder::put(folder_ / "twice.json",
                       R"({"task": "statistics", "data": {"Module.a.A.forward.0": )" + one +
                           R"(, "Module.b.B.forward.0": )" + one + R"(, "Module.a.A.forward.0": )" +
                           two + "}}");
  testing::internal::CaptureStderr();
  const DumpFile read = read_dump(folder_ / "twice.json");
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_EQ(read.entries.size(), 2u);
  EXPECT_EQ(read.entries[0].path, "a");
  EXPECT_EQ(*read.entries[0].records[0].norm.number, 2);
  EXPECT_NE(said.find("Module.a.A.forward.0 twice, of 1 such in all"), std::string::npos) << said;
}

// In float32 where neither is wider, as numpy does it.
TEST(CompareElements, RelativeErrorsAreMadeInTheTypeOfTheTwo) {
  const float n = 7.1F, b = 0.3F;
  const auto relative = [&](const char* type) {
    return *figures_of({{n}, {1}, type}, {{b}, {1}, type}).max_relative;
  };
  EXPECT_EQ(relative("torch.float32"), std::round(double{(n - b) / b} * 1e12) / 1e12);
  EXPECT_EQ(relative("torch.float64"), std::round((double{n} - b) / b * 1e12) / 1e12);
  EXPECT_NE(relative("torch.float32"), relative("torch.float64"));
  EXPECT_EQ(figures_of({{}, {0}, "torch.float32"}, {{}, {0}, "torch.float32"}).problem,
            "unsupported");
}

// Gradients of some steps of 2^-24 have few digits in float16, and so has what is made of them.
TEST_F(CompareSmall, GradientsOfFewDigitsAreNoDivergence) {
  const double small = 4 * 0x1p-24;  // of which half a step is an eighth
  const char *const low = "torch.float16", *const high = "torch.float32";
  // Of 64 elements each, some times as long as they should be.
  const auto run = [&](double reaches, double gives, const char* type, double size) {
    const auto gradient = [&](double times, double typical) {
      Json t = tensor({64}, 8 * typical * times, type);
      t["Max"] = 3 * typical, t["Min"] = -3 * typical;
      return t;
    };
    Json data = {{"Module.a.Linear.forward.0", forward(tensor({64}, 1), tensor({64}, 1))}};
    data["Module.a.Linear.backward.0"] = {{"input", Json::array({gradient(reaches, size)})},
                                          {"output", Json::array({gradient(gives, 1)})}};
    return data;
  };
  EXPECT_EQ(parted(run(1.1, 1, low, small), run(1, 1, high, small)), "");
  EXPECT_EQ(parted(run(1.1, 1.15, low, small), run(1, 1, high, small)), "");
  EXPECT_NE(parted(run(1.5, 1, low, small), run(1, 1, high, small)), "");
  EXPECT_NE(parted(run(1.1, 1.5, low, small), run(1, 1, high, small)), "");
  EXPECT_NE(parted(run(1.1, 1, high, small), run(1, 1, high, small)), "");
  EXPECT_NE(parted(run(1.1, 1, low, 1), run(1, 1, high, 1)), "");  // of many digits
  EXPECT_NE(parted(run(1, 1.15, low, 1), run(1, 1, high, 1)), "");
}

// In bfloat16 the gradient of queries may be off by more than all calls before explain: by so much
// more as what reaches the attention is.
TEST_F(CompareSmall, AKernelOfAttentionAddsToWhatItTakes) {
  const auto run = [](double reaches, double query, const char* type) {
    const auto call = [&](double in) {
      return Json{{"input", Json::array({tensor({64}, in, type)})},
                  {"output", Json::array({tensor({64}, in, type)})}};
    };
    Json data;
    for (const char* name : {"Module.attn.A.forward.0", "Module.attn.q.Linear.forward.0"})
      data[name] = forward(tensor({64}, 1, type), tensor({64}, 1, type));
    data["Module.attn.q.Linear.backward.0"] = call(query);
    data["Module.attn.A.backward.0"] = call(reaches);
    return data;
  };
  const char *const low = "torch.bfloat16", *const high = "torch.float32";
  EXPECT_EQ(parted(run(1.01, 1.14, low), run(1, 1, high)), "");
  EXPECT_NE(parted(run(1, 1.14, low), run(1, 1, high)), "");
  EXPECT_NE(parted(run(1.01, 1.3, low), run(1, 1, high)), "");
  EXPECT_NE(parted(run(1.00001, 1.00005, high), run(1, 1, high)), "");
}

// Limits of bfloat16 are those of its unit, as of every type.
TEST(CompareElements, UnitsAreHalfTheStepBehindOne) {
  EXPECT_EQ(unit_of("torch.bfloat16"), 0x1p-8);
  EXPECT_EQ(unit_of("torch.float16"), 0x1p-11);
  EXPECT_EQ(unit_of("Float32"), 0x1p-24);
  EXPECT_EQ(unit_of("torch.float64"), 0x1p-53);
  EXPECT_EQ(unit_of("torch.int64"), 0);
}

// A share of infinity is one, of either sign.
TEST_F(CompareSmall, WhatIsInfiniteInTheSecondRunAloneIsAnError) {
  const auto result = [&](const Json& norm) {
    Json out = tensor({64}, 1);
    out["Norm"] = norm;
    return Json{{"Module.a.Linear.forward.0", forward(tensor({64}, 1), out)}};
  };
  const DumpFile n = dump("npu.json", result(3)), b = dump("bench.json", result("inf"));
  const Pairs pairs = pair_dumps(n, b, {});
  const Table t =
      msprobe_table(pairs, n, Mode::Statistics, [](const RecordPair&) { return nullptr; });
  EXPECT_EQ(t.rows[1][t.column("NormRelativeErr")], "-inf");
  EXPECT_EQ(t.rows[1][t.column("Result")], "error");
}

// That of the first less the second, as msprobe has it.
TEST_F(CompareSmall, AnInfiniteDifferenceHasASign) {
  const auto difference = [&](const Json& ours, const Json& theirs) {
    const auto result = [](const Json& most) {
      Json out = tensor({64}, 1);
      out["Max"] = most;
      return Json{{"Module.a.Linear.forward.0", forward(tensor({64}, 1), out)}};
    };
    const DumpFile n = dump("npu.json", result(ours)), b = dump("bench.json", result(theirs));
    const Pairs pairs = pair_dumps(n, b, {});
    const Table t =
        msprobe_table(pairs, n, Mode::Statistics, [](const RecordPair&) { return nullptr; });
    EXPECT_EQ(t.rows[1][t.column("Max diff")], t.rows[1][t.column("MaxRelativeErr")]);
    return t.rows[1][t.column("Max diff")];
  };
  for (const double finite : {5.0, 0.0, -3.0}) {
    EXPECT_EQ(difference(finite, "-inf"), "inf") << finite;
    EXPECT_EQ(difference(finite, "inf"), "-inf") << finite;
    EXPECT_EQ(difference("inf", finite), "inf") << finite;
    EXPECT_EQ(difference("-inf", finite), "-inf") << finite;
  }
  EXPECT_EQ(difference("inf", "-inf"), "inf");
  EXPECT_EQ(difference("-inf", "inf"), "-inf");
  EXPECT_EQ(difference("inf", "inf"), "0");
  // What is no number, or is there in one run alone.
  EXPECT_EQ(difference(true, false), "Diff");
  EXPECT_EQ(difference(true, true), "0");
  EXPECT_EQ(difference(nullptr, 1), "Diff");
  EXPECT_EQ(difference(1, nullptr), "Diff");
}

}  // namespace
}  // namespace aloft::compare
