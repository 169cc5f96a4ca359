// A table of numbers (CSV) from any bytes: refused with its line, or samples of finite numbers,
// each with a label; and what text files of other kinds are taken for.
#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "data/array_loader.h"
#include "data/text_kind.h"
#include "temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  static const TemporaryFolder folder;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& kind :
       {foreign_kind("fuzz.txt", text), other_encoding(text), doubt_of_text(text)})
    if (kind) ensure(!kind->name.empty() && !kind->advice.empty(), "it is said what to do");
  const Path table = folder / "table.csv";
  TemporaryFolder::put(table, text);
  try {
    const ArrayData read = read_labelled_csv(table);
    ensure(read.features > 0 && read.samples() > 0, "a table has samples");
    ensure(read.values.size() == static_cast<std::size_t>(read.features * read.samples()),
           "every sample has its features");
    for (const float v : read.values) ensure(std::isfinite(v), "features are finite");
    for (const std::int32_t label : read.labels) ensure(label >= 0, "labels begin at 0");
  } catch (const DataError&) {
  }
  return 0;
}
