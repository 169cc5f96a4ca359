// What a dump's files of elements say beside its statistics.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// As numpy.save writes it.
template <class T>
std::string npy(const std::vector<T>& values, const std::string& shape) {
  const std::string type = std::is_same_v<T, std::int64_t> ? "<i8" : "<f4";
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize(117, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header +
         std::string(reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size());
}

class CompareFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* run : {"a", "b"})
      std::filesystem::create_directories(folder_ / run / "dump_tensor_data");
  }
  // A dump of a call that gives this tensor and has it as a weight.
  void put(const std::string& run, const std::vector<float>& values, std::vector<int> shape,
           const Json& figures = Json::object()) {
    Json record = tensor(shape, 0);
    record["Max"] = 5, record["Min"] = 0, record["Mean"] = 2.5, record["Norm"] = 7.41619849;
    record["data_name"] = "t.npy";
    for (const auto& [key, value] : figures.items()) record[key] = value;
    const Json call = is_weight_ ? forward(tensor({2}, 1), tensor({2}, 1), {{"weight", record}})
                                 : forward(tensor({2}, 1), record);
    const Json dump = {{"task", "tensor"}, {"data", {{"Module.a.A.forward.0", call}}}};
    TemporaryFolder::put(folder_ / run / "dump.json", dump.dump());
    TemporaryFolder::put(folder_ / run / "dump_tensor_data" / "t.npy",
                         npy(values, std::to_string(shape[0]) + ", " + std::to_string(shape[1])));
  }
  // One of a call that takes and gives these whole numbers.
  void put_whole(const std::string& run, const std::vector<std::int64_t>& taken,
                 const std::vector<std::int64_t>& given) {
    const auto record = [&](const char* name, const std::vector<std::int64_t>& values) {
      Json r = tensor({1, 3}, 0, "torch.int64");
      r["Max"] = std::ranges::max(values), r["Min"] = std::ranges::min(values);
      r["Mean"] = r["Norm"] = nullptr;
      r["data_name"] = name;
      TemporaryFolder::put(folder_ / run / "dump_tensor_data" / name, npy(values, "1, 3"));
      return r;
    };
    const Json dump = {
        {"task", "tensor"},
        {"data",
         {{"Module.a.A.forward.0", forward(record("in.npy", taken), record("out.npy", given))}}}};
    TemporaryFolder::put(folder_ / run / "dump.json", dump.dump());
  }
  // The sentence of two runs in which a call gives tensors of these norms, without files.
  std::string said(const char* type, double npu, double bench) {
    for (const auto& [run, norm] : {std::pair{"a", npu}, {"b", bench}}) {
      Json out = tensor({2, 3}, 1, type);
      out["Norm"] = norm;
      const Json dump = {{"data", {{"Module.a.A.forward.0", forward(tensor({2}, 1, type), out)}}}};
      TemporaryFolder::put(folder_ / run / "dump.json", dump.dump());
    }
    return compared().sentence;
  }
  StepResult compared() {
    return compare_runs(
               {folder_ / "a" / "dump.json", folder_ / "b" / "dump.json", folder_ / "out", {}})
        .at(0);
  }

  TemporaryFolder folder_;
  bool is_weight_ = false;
};

const std::vector<float> kRows{0, 1, 2, 3, 4, 5}, kColumns{0, 3, 1, 4, 2, 5};

// Runs may keep weights in either layout; what calls give has one.
TEST_F(CompareFiles, WeightsAloneMayLieTransposed) {
  for (const bool is_weight : {false, true}) {
    is_weight_ = is_weight;
    put("a", kRows, {2, 3}), put("b", kColumns, {3, 2});
    EXPECT_EQ(compared().has_divergence, !is_weight) << compared().sentence;
  }
  is_weight_ = false;
  put("a", kRows, {2, 3}), put("b", kRows, {3, 2});  // in another shape, in the same order
  EXPECT_FALSE(compared().has_divergence) << compared().sentence;
}

TEST_F(CompareFiles, ThatAreNotWhatTheirRecordSaysAreNamed) {
  put("a", kRows, {2, 3});
  for (const Json& wrong :
       {Json{{"Max", 1e9}}, Json{{"Min", -7}}, Json{{"Norm", "nan"}}, Json{{"Max", "inf"}}}) {
    put("b", kRows, {2, 3}, wrong);
    const StepResult said = compared();
    EXPECT_EQ(said.unreadable, 1u) << wrong;
    EXPECT_NE(said.sentence.find("dump.json"), std::string::npos) << said.sentence;
  }
  // Statistics in low types, and norms beyond them, are as programs write them.
  for (const Json& rounded :
       {Json{{"Max", 5.0000005}}, Json{{"Norm", "inf"}}, Json{{"Max", nullptr}}}) {
    put("b", kRows, {2, 3}, rounded);
    EXPECT_EQ(compared().unreadable, 0u) << compared().sentence;
  }
}

// As Python's dictionaries have it, and so msprobe.
TEST_F(CompareFiles, OfAKeyThatStandsThereTwiceTheLastCounts) {
  const auto dump = [&](const char* run, double first, double last) {
    const auto call = [](double norm) { return forward(tensor({2}, 1), tensor({2}, norm)).dump(); };
    const std::string key = "\"Module.a.A.forward.0\": ";
    TemporaryFolder::put(folder_ / run / "dump.json",
                         "{\"data\": {" + key + call(first) + ", " + key + call(last) + "}}");
  };
  dump("a", 2, 2), dump("b", 3, 2);
  EXPECT_FALSE(compared().has_divergence) << compared().sentence;
  dump("b", 2, 3);
  EXPECT_TRUE(compared().has_divergence) << compared().sentence;
}

// Beyond 2^53 too, where not each of them is a double.
TEST_F(CompareFiles, WholeNumbersAreSaidInAllTheirDigits) {
  constexpr std::int64_t large = (std::int64_t{1} << 53) + 1;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  put_whole("b", {3, large, 7}, {most, 2, 0});
  put_whole("a", {3, large - 1, 9}, {most, 2, 0});
  std::string said = compared().sentence;
  EXPECT_NE(said.find("data: what a takes (0) is other (9007199254740992 against 9007199254740993 "
                      "at [0, 1], and 1 more such): other examples"),
            std::string::npos)
      << said;
  put_whole("a", {3, large, 7}, {most - 1, 2, 0});
  said = compared().sentence;
  EXPECT_NE(said.find("what a gives (0) has 9223372036854775806 against 9223372036854775807 at "
                      "[0, 0]"),
            std::string::npos)
      << said;
  put_whole("a", {3, large, 7}, {most, 2, 0});
  EXPECT_FALSE(compared().has_divergence) << compared().sentence;
}

// Of statistics alone, too: float64 is compared to its last digits, and its figures show them.
TEST_F(CompareFiles, FiguresHaveTheDigitsInWhichTheyDiffer) {
  const std::string wide = said("torch.float64", 1.0000000000001, 1.0000000000002);
  EXPECT_NE(wide.find("(1.0000000000001 against 1.0000000000002)"), std::string::npos) << wide;
  const std::string single = said("torch.float32", 1.0000000000001, 1.0625);
  EXPECT_NE(single.find("(1 against 1.0625)"), std::string::npos) << single;
}

// Their figures are those of magnitudes, which are rounded as the parts are.
TEST_F(CompareFiles, ComplexNumbersAreRoundedAsTheirPartsAre) {
  EXPECT_TRUE(said("torch.complex64", 1.0000001, 1).starts_with("no divergence"));
  EXPECT_TRUE(said("torch.complex64", 1.001, 1).starts_with("first divergence: forward"));
  EXPECT_TRUE(said("torch.complex128", 1.0000001, 1).starts_with("first divergence: forward"));
  EXPECT_TRUE(said("torch.complex32", 1.001, 1).starts_with("no divergence"));
}

// Of bytes alone there is a checksum, and no figure that could be said.
TEST_F(CompareFiles, TokensWithOtherChecksumsAreSaidWithoutFigures) {
  for (const auto& [run, sum] : {std::pair{"a", "00000001"}, {"b", "00000002"}}) {
    Json tokens = tensor({8}, 0, "torch.int64");
    for (const char* key : {"Max", "Min", "Mean", "Norm"}) tokens[key] = nullptr;
    tokens["md5"] = sum;
    const Json dump = {{"data", {{"Module.a.A.forward.0", forward(tokens, tensor({8}, 1))}}}};
    TemporaryFolder::put(folder_ / run / "dump.json", dump.dump());
  }
  const std::string said = compared().sentence;
  EXPECT_NE(said.find("data: what a takes (0) is other: other examples"), std::string::npos)
      << said;
}

}  // namespace
}  // namespace aloft::compare
