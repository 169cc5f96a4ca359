#include "train/written_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace aloft {

namespace {

constexpr const char* kFile = "written.json";

}  // namespace

std::string WrittenByProbe::text() const {
  std::string text = fmt::format("{}, {}", counted(static_cast<std::int64_t>(dumps), "step"),
                                 human_bytes(dump_bytes));
  if (files > 0)
    text += fmt::format(", and {}, {}", counted(static_cast<std::int64_t>(files), "tensor"),
                        human_bytes(bytes));
  if (waited_s >= 0.05) text += fmt::format(", for which training waited {:.1f} s", waited_s);
  return text + (dropped > 0 ? fmt::format("; {} not written",
                                           counted(static_cast<std::int64_t>(dropped), "file"))
                             : "; nothing was dropped");
}

nlohmann::ordered_json json_of(const WrittenByProbe& w) {
  return {{"dumps", w.dumps}, {"dump_bytes", w.dump_bytes}, {"files", w.files},
          {"bytes", w.bytes}, {"dropped", w.dropped},       {"waited_s", w.waited_s}};
}

void write_written(const Path& folder, const WrittenByProbe& w) {
  AtomicFile file(folder / kFile);
  file.write(json_of(w).dump(1));
  file.commit_unflushed();
}

std::optional<WrittenByProbe> read_written(const Path& folder) {
  if (!path_exists(folder / kFile)) return std::nullopt;
  const nlohmann::json json = parse_json(read_file(folder / kFile));
  if (!json.is_object()) return std::nullopt;
  const auto number = [&](const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
  };
  WrittenByProbe w{number("dumps"), number("dump_bytes"), number("files"), number("bytes"),
                   number("dropped")};
  if (const auto it = json.find("waited_s"); it != json.end() && it->is_number())
    w.waited_s = it->get<double>();
  return w;
}

}  // namespace aloft
