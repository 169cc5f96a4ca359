// The elements of records, from the files that a dump keeps them in.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observe/compare/dump_file.h"
#include "observe/compare/elements.h"

namespace aloft::compare {

// A file of elements that is not what its dump says, or cannot be read.
struct Unreadable {
  std::string name;  // of the record
  Path file;
  std::string why;
};

// Looks up what the elements of pairs say, each once. Both dumps outlive it.
class TensorReader {
 public:
  TensorReader(const DumpFile& npu, const DumpFile& bench) : npu_(npu), bench_(bench) {}

  // Null where a side has no file of elements. Of a file that is not what the dump says of it, or
  // that cannot be read, the figures say that alone.
  const ElementFigures* figures(const RecordPair& pair);
  // Those so far, in the order in which they were met.
  const std::vector<Unreadable>& unreadable() const { return unreadable_; }

 private:
  ElementFigures compared(const RecordPair& pair, const Path& ours, const Path& theirs);
  // Whether runs may keep it in either layout: a parameter, its gradient or update, or what an op
  // takes that is one.
  bool may_be_turned(const RecordPair& pair);

  const DumpFile &npu_, &bench_;
  std::optional<std::vector<const Record*>> matrices_;  // parameters of both, once one asks
  // By the first run's record, and what it is multiplied by.
  std::map<std::pair<const Record*, double>, std::unique_ptr<ElementFigures>> known_;
  std::vector<Unreadable> unreadable_;
};

// The elements of a file that torch.save or numpy.save wrote, of a tensor of that type
// ("torch.bfloat16") and shape, as dump.json says. DataError E0650 where it holds another.
Elements read_tensor_file(const Path& file, const std::string& type,
                          const std::vector<std::int64_t>& shape);

}  // namespace aloft::compare
