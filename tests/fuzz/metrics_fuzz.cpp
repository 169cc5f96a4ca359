// metrics.jsonl from any bytes: what a resumed run keeps of it is whole lines, and the same when it
// is cut again; the report draws curves of whatever is left.
#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/json.h"
#include "observe/report/curves.h"
#include "train/metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const KeptLines kept = lines_up_to(text, {3, false});
  ensure(kept.text.empty() || kept.text.ends_with('\n'), "whole lines are kept");
  const KeptLines again = lines_up_to(kept.text, {3, false});
  ensure(again.text == kept.text && again.damaged == 0, "what is kept stays");
  for (const std::size_t most : {2, 2000}) {
    const auto curves = curves_of(text, {}, most);
    ensure(curves["loss"].size() == curves["step"].size(), "columns are of one length");
    ensure(!json_text(curves).empty(), "it can be written into a page");
  }
  return 0;
}
