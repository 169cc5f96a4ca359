// The table that msprobe 26.2 makes of two dumps: its columns, its figures, its verdicts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "observe/compare/difference.h"
#include "observe/compare/pairing.h"

namespace aloft::compare {

enum class Mode { Statistics, Tensor, Hash };

// How two dumps are compared: by what both have.
Mode mode_of(const DumpFile& npu, const DumpFile& bench);

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  // Of each row, the call that it is of; rows of one call follow one another.
  std::vector<const EntryPair*> calls;
  std::map<std::size_t, std::string> unreadable = {};  // of a row, why its elements are not there

  std::size_t column(std::string_view name) const;  // there is one
};

// A row for each record of `pairs`, in the order of the first run.
Table msprobe_table(const Pairs& pairs, const DumpFile& npu, Mode mode,
                    const ElementsOf& elements_of);

}  // namespace aloft::compare
