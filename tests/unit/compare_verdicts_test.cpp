// msprobe's table and its Result, where its program does otherwise than its documents, or numbers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "dump_records.h"
#include "observe/compare/difference.h"
#include "observe/compare/divergence.h"
#include "observe/compare/msprobe_table.h"
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

}  // namespace
}  // namespace aloft::compare
