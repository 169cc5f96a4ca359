// The results of a comparison, as files: a table, JSON, a page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "files/xlsx.h"
#include "observe/compare/divergence.h"
#include "observe/compare/msprobe_table.h"
#include "observe/compare/tensor_reader.h"

namespace aloft::compare {

// Everything that is known of a pair of dumps.
struct Comparison {
  DumpFile npu, bench;
  Pairs pairs;
  Mode mode = Mode::Statistics;
  Table table;
  std::vector<Compared> compared;
  std::vector<TrainingDifference> loop;  // what the training loops say that is not the same
  std::vector<Unreadable> unreadable;    // files of elements
  std::optional<Divergence> divergence;
  Coverage coverage;
  std::string remark;  // what differs and is no divergence (divided_loss.h); "" of nothing
  std::string sentence;
};

// msprobe's table with columns of ours behind: how far a value is off, in what, what is allowed,
// units in the last place, and by what the two were found to belong together.
struct WholeTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
WholeTable whole_table(const Comparison& c, const ElementsOf& elements_of);

// As msprobe's compare_result_*.csv, and as its workbook, with the cells of Result coloured.
std::string csv_of(const WholeTable& table);
XlsxSheet sheet_of(const WholeTable& table);

// docs/compare.md says what each key is.
nlohmann::ordered_json json_of(const Comparison& c);

// A page that needs nothing else; its first line is the sentence.
std::string page_of(const Comparison& c);
// The same of what compare_result.json says, of one pair of dumps or of several steps (steps.h).
std::string page_of(const nlohmann::ordered_json& results);

}  // namespace aloft::compare
