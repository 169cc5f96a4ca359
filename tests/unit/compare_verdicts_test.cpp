// msprobe's table and its Result, where its program does otherwise than its documents, or numbers.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "dump_records.h"
#include "observe/compare/difference.h"
#include "observe/compare/divergence.h"
#include "observe/compare/msprobe_table.h"
#include "observe/compare/msprobe_verdicts.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

class CompareVerdicts : public ::testing::Test {
 protected:
  DumpFile dump(const std::string& name, const Json& data, const char* task = "statistics") {
    const Path file = folder_ / (name + ".json");
    TemporaryFolder::put(file, Json{{"task", task}, {"data", data}}.dump());
    return read_dump(file);
  }
  void pair(const Json& npu, const Json& bench, const char* task = "statistics") {
    npu_ = dump("npu", npu, task), bench_ = dump("bench", bench);
    pairs_ = pair_dumps(npu_, bench_, {});
    table_ = msprobe_table(pairs_, npu_, mode_of(npu_, bench_),
                           [](const RecordPair&) { return nullptr; });
  }
  std::string cell(std::size_t row, const char* column) const {
    return table_.rows.at(row).at(table_.column(column));
  }
  std::string agreed() const {
    return agreement(compare_all(pairs_, [](const RecordPair&) { return nullptr; }), 0);
  }

  TemporaryFolder folder_;
  DumpFile npu_, bench_;
  Pairs pairs_;
  Table table_;
};

Json hashed(const char* hash) {
  Json t = tensor({4}, 2);
  t["md5"] = hash;
  return t;
}

// Dumps of Aloft once said that they are of tensors; the first tensor may have no checksum.
TEST_F(CompareVerdicts, ChecksumsAreComparedWhateverTheTaskIsCalled) {
  for (const char* task : {"statistics", "tensor"}) {
    pair({{"Module.a.A.forward.0", forward(tensor({4}, 2), hashed("0000000a"))}},
         {{"Module.a.A.forward.0", forward(tensor({4}, 2), hashed("0000000b"))}}, task);
    EXPECT_EQ(mode_of(npu_, bench_), Mode::Hash) << task;
    EXPECT_EQ(cell(1, "NPU MD5"), "0000000a");
    EXPECT_EQ(cell(1, "BENCH MD5"), "0000000b");
    EXPECT_EQ(cell(1, "Result"), "error");
    EXPECT_NE(cell(1, "Err_message").find("CRC-32 value of NPU differs"), std::string::npos);
    // No checksum of it is no agreement in bytes.
    EXPECT_EQ(cell(0, "NPU MD5"), "N/A");
    EXPECT_EQ(cell(0, "Result"), "warning");
  }
}

TEST_F(CompareVerdicts, TheSentenceSaysWhatChecksumsSay) {
  pair({{"Module.a.A.forward.0", forward(hashed("01"), hashed("02"))}},
       {{"Module.a.A.forward.0", forward(hashed("01"), hashed("03"))}});
  EXPECT_NE(agreed().find("; of 2 that have checksums 1 are not the same to the byte"),
            std::string::npos)
      << agreed();
  pair({{"Module.a.A.forward.0", forward(hashed("01"), hashed("02"))}},
       {{"Module.a.A.forward.0", forward(hashed("01"), hashed("02"))}});
  EXPECT_NE(agreed().find("; 2 have checksums, and the same bytes"), std::string::npos) << agreed();
  EXPECT_EQ(cell(1, "Result"), "pass");
}

// msprobe looks at neither the sign nor the place of what is no number.
TEST_F(CompareVerdicts, InfinitiesOfOtherSignAreAnError) {
  const auto of = [](Json max, Json min) {
    Json t = tensor({4}, 2);
    t["Max"] = std::move(max), t["Min"] = std::move(min);
    return Json{{"Module.a.A.forward.0", forward(tensor({4}, 2), t)}};
  };
  const auto result = [&](const Json& npu, const Json& bench) {
    pair(npu, bench);
    return cell(1, "Result");
  };
  EXPECT_EQ(result(of("inf", 1), of("-inf", 1)), "error");
  EXPECT_NE(cell(1, "Err_message").find("nan/inf/-inf"), std::string::npos);
  EXPECT_EQ(result(of(1, "-inf"), of(1, "inf")), "error");
  EXPECT_EQ(result(of("inf", "-inf"), of("inf", -1)), "error");  // the other extreme
  EXPECT_EQ(result(of("nan", "nan"), of("inf", "-inf")), "error");
  EXPECT_EQ(result(of("inf", "-inf"), of("inf", "-inf")), "pass");
  EXPECT_EQ(result(of("nan", "nan"), of("NaN", "NaN")), "pass");
  EXPECT_EQ(result(of(1, -1), of("inf", "-inf")), "pass");  // of the first run alone, as documented
}

// What msprobe leaves out for a part of a name is compared here.
TEST_F(CompareVerdicts, TypesOfFusedProjectionsAreCompared) {
  for (const char* name : {"Torch.attention_qkv.0.forward", "Module.gate_up.A.forward.0"}) {
    pair({{name, forward(tensor({4}, 2), tensor({4}, 2, "torch.bfloat16"))}},
         {{name, forward(tensor({4}, 2), tensor({4}, 2))}});
    EXPECT_EQ(cell(1, "Result"), "error") << name;
    EXPECT_NE(cell(1, "Err_message").find("The dtype"), std::string::npos);
  }
}

TEST_F(CompareVerdicts, WhatIsMatchedByOtherThanItsNameIsSaid) {
  const Json weights = {{"weight", tensor({4, 4}, 1)}}, gamma = {{"gamma", tensor({4}, 1)}},
             plain = {{"weight", tensor({4}, 1)}};
  const auto call = [&](const Json& w) { return forward(tensor({2, 4}, 1), tensor({2, 4}, 1), w); };
  pair({{"Module.h.up.Linear.forward.0", call(weights)},
        {"Module.h.norm.LayerNorm.forward.0", call(plain)},
        {"Module.h.Block.forward.0", call(Json::object())}},
       {{"Module.net.h.w1.Linear.forward.0", call(weights)},
        {"Module.net.h.norm.LayerNorm.forward.0", call(gamma)},
        {"Module.net.h.Block.forward.0", call(Json::object())}});
  std::map<std::string, std::string> by;
  for (const EntryPair& p : pairs_.entries)
    for (const RecordPair& r : p.records) by[r.npu->name] = r.matched_by;
  EXPECT_EQ(by["Module.h.up.Linear.forward.0.parameters.weight"], "structure");
  EXPECT_EQ(by["Module.h.up.Linear.forward.0.input.0"], "structure");
  EXPECT_EQ(by["Module.h.norm.LayerNorm.forward.0.parameters.weight"], "synonym");
  EXPECT_EQ(by["Module.h.norm.LayerNorm.forward.0.input.0"], "name");
  ASSERT_EQ(pairs_.renamed.size(), 2u);
  EXPECT_EQ(pairs_.renamed[0].npu, "h.up");
  EXPECT_EQ(pairs_.renamed[0].bench, "net.h.w1");
  EXPECT_EQ(pairs_.renamed[0].by, "structure");
  EXPECT_EQ(pairs_.renamed[1].npu, "h.norm.weight");
  EXPECT_EQ(pairs_.renamed[1].bench, "net.h.norm.gamma");
}

// A call with an input and an output, of which one figure is known: what is said of the output.
std::pair<std::string, std::string> judged(Mode mode, const std::string& figure,
                                           const std::string& in, const std::string& out) {
  Table t;
  t.columns = {"NPU Name",
               "Bench Name",
               "NPU Dtype",
               "Bench Dtype",
               "NPU Tensor Shape",
               "Bench Tensor Shape",
               "NPU max",
               "NPU min",
               "Bench max",
               "Bench min",
               "NPU Requires_grad",
               "Result",
               "Err_message",
               "Bench Requires_grad",
               "One Thousandth Err Ratio",
               "Cosine",
               "NormRelativeErr"};
  for (const auto& [name, value] : {std::pair("Torch.add.0.forward.input.0", in),
                                    std::pair("Torch.add.0.forward.output.0", out)}) {
    std::vector<std::string> row(t.columns.size(), "1");
    row[t.column("NPU Name")] = row[t.column("Bench Name")] = name;
    for (const char* none : {"One Thousandth Err Ratio", "Cosine", "NormRelativeErr"})
      row[t.column(none)] = "N/A";
    row[t.column(figure)] = value;
    t.rows.push_back(std::move(row));
  }
  give_verdicts(t, 0, mode);
  EXPECT_EQ(t.rows[0][t.column("Result")], "pass");
  return {t.rows[1][t.column("Result")], t.rows[1][t.column("Err_message")]};
}

// The documents say 0.6, msprobe's program 0.1.
TEST(MsprobeVerdicts, OfElementsWithinAThousandthSixTenthsOfTheOutputAreNeeded) {
  const auto result = [](const char* in, const char* out) {
    return judged(Mode::Tensor, "One Thousandth Err Ratio", in, out);
  };
  EXPECT_EQ(result("0.91", "0.59").first, "error");
  EXPECT_EQ(result("0.91", "0.59").second,
            "[\"error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < "
            "0.6.\"]");
  EXPECT_EQ(result("0.91", "0.6").first, "pass");
  EXPECT_EQ(result("0.9", "0.59").first, "pass");
  EXPECT_EQ(result("0.89", "0.0").first, "pass");
}

TEST(MsprobeVerdicts, AnOutputWhoseCosineIsATenthBelowTheInputsIsWarnedOf) {
  const auto result = [](const char* in, const char* out) {
    return judged(Mode::Tensor, "Cosine", in, out);
  };
  EXPECT_EQ(result("0.91", "0.8").first, "warning");
  EXPECT_EQ(result("0.91", "0.8").second,
            "[\"warning: The input/parameters of Cosine > 0.9, and input/parameters - output > "
            "0.1\"]");
  EXPECT_EQ(result("0.91", "0.82").first, "pass");
  EXPECT_EQ(result("0.9", "0.5").first, "pass");
  EXPECT_EQ(result("1", "0.91").first, "pass");
}

TEST(MsprobeVerdicts, AnOutputWhoseNormIsTenTimesAsFarOffAsTheInputsIsWarnedOf) {
  const auto result = [](const char* in, const char* out) {
    return judged(Mode::Statistics, "NormRelativeErr", in, out);
  };
  EXPECT_EQ(result("1%", "10.5%").first, "warning");
  EXPECT_EQ(result("1%", "10.5%").second,
            "[\"warning: The norm relative error of output is 10 times that of input.\"]");
  EXPECT_EQ(result("1%", "9.5%").first, "pass");
  EXPECT_EQ(result("20%", "210%").first, "warning");
  // Beside nothing a tenth.
  EXPECT_EQ(result("0%", "10.5%").first, "warning");
  EXPECT_EQ(result("0%", "9.5%").first, "pass");
  // Half of the size is an error, where the input is less than a tenth off.
  EXPECT_EQ(result("9%", "50.5%").first, "error");
  EXPECT_EQ(result("9%", "49.5%").first, "pass");
  EXPECT_EQ(result("10%", "60%").first, "pass");
}

}  // namespace
}  // namespace aloft::compare
