// The elements of records, from the files that a dump keeps them in.
#pragma once

#include <map>
#include <memory>

#include "observe/compare/dump_file.h"
#include "observe/compare/elements.h"

namespace aloft::compare {

// Looks up what the elements of pairs say, each once. Both dumps outlive it.
class TensorReader {
 public:
  TensorReader(const DumpFile& npu, const DumpFile& bench) : npu_(npu), bench_(bench) {}

  // Null where a side has no file of elements. DataError E0650 where a file is not what the dump
  // says of it.
  const ElementFigures* figures(const RecordPair& pair);

 private:
  const DumpFile &npu_, &bench_;
  std::map<const Record*, std::unique_ptr<ElementFigures>> known_;  // by the first run's record
};

// The elements of a file that torch.save or numpy.save wrote, of a tensor of that type
// ("torch.bfloat16") and shape, as dump.json says. DataError E0650 where it holds another.
Elements read_tensor_file(const Path& file, const std::string& type,
                          const std::vector<std::int64_t>& shape);

}  // namespace aloft::compare
