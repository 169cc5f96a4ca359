// A dump.json of any bytes: refused with its line, or compared with itself, of which nothing
// differs, and with a small one. The same bytes as a mapping of names, between two small ones, and
// as the construct.json and stack.json of a small one.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "observe/compare/comparison.h"
#include "observe/compare/name_map.h"
#include "observe/compare/results.h"
#include "temporary_folder.h"

namespace {

using namespace aloft;
using namespace aloft::compare;

constexpr std::string_view kSmall =
    R"({"task": "statistics", "level": "L0", "framework": "pytorch", "data": {
"Module.a.Linear.forward.0": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32",
"shape": [2, 3], "Max": 1.5, "Min": -1, "Mean": NaN, "Norm": 2, "requires_grad": true}, null],
"input_kwargs": {}, "output": [{"type": "int", "value": 3}], "parameters": {}}}})";

void compare_with(const DumpFile& npu, const DumpFile& bench) {
  Comparison c;
  c.npu = npu, c.bench = bench;
  c.mode = mode_of(npu, bench);
  c.pairs = pair_dumps(npu, bench, {});
  const ElementsOf none = [](const RecordPair&) { return nullptr; };
  c.compared = compare_all(c.pairs, none);
  c.divergence = first_divergence(c.compared, c.npu);
  c.sentence = c.divergence ? c.divergence->sentence : agreement(c.compared);
  c.table = msprobe_table(c.pairs, c.npu, c.mode, none);
  ensure(!csv_of(whole_table(c, none)).empty() && !page_of(c).empty(), "there are results");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TemporaryFolder::put(folder / "dump.json", text);
  TemporaryFolder::put(folder / "small.json", kSmall);
  static const DumpFile small = read_dump(folder / "small.json");
  for (const MapFormat format : {MapFormat::Json, MapFormat::Toml, MapFormat::Yaml}) try {
      const NameMap map = NameMap::parse(text, "fuzz", format);
      static_cast<void>(map.other_name_of("h.0.mlp"));
      const Pairs pairs = pair_dumps(small, small, map);
      ensure(pairs.fits.size() == map.lines().size(), "each line fits, or does not");
    } catch (const Error& e) {
      if (dynamic_cast<const InternalError*>(&e)) throw;
    }
  for (const char* const name : {"construct.json", "stack.json"}) {
    const Path beside = folder / std::string(name).substr(0, 5);
    make_folder(beside);
    TemporaryFolder::put(beside / "dump.json", kSmall);
    TemporaryFolder::put(beside / name, text);
    try {
      compare_with(read_dump(beside / "dump.json"), small);
    } catch (const DataError&) {
    }
  }
  try {
    const DumpFile dump = read_dump(folder / "dump.json");
    compare_with(dump, small);
    compare_with(small, dump);
    compare_with(dump, dump);
  } catch (const DataError&) {
  }
  return 0;
}
