// What a dump's files of elements say beside its statistics.
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// As numpy.save writes it.
std::string npy(const std::vector<float>& values, const std::string& shape) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize(117, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header +
         std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size());
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

}  // namespace
}  // namespace aloft::compare
