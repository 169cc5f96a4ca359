// The files in a pack of msprobe's config_check, of any names and bytes: each line that begins with
// "== " begins the file that it names. Refused with its code, or held against itself, of which
// nothing is an error.
#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/text.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/pack.h"
#include "observe/config_check/results.h"
#include "stored_zip.h"

namespace {

std::vector<std::pair<std::string, std::string_view>> files_in(std::string_view text) {
  std::vector<std::pair<std::string, std::string_view>> files;
  constexpr std::string_view kMark = "== ";
  while (text.starts_with(kMark)) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string name(text.substr(kMark.size(), end - std::min(end, kMark.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t next = text.starts_with(kMark) ? 0 : text.find("\n== ");
    if (next != 0) next = next == text.npos ? text.size() : next + 1;
    files.emplace_back(name.substr(0, 0xffff), text.substr(0, next));
    text.remove_prefix(next);
  }
  return files;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  using namespace aloft::config_check;
  const std::string zip = stored_zip(files_in({reinterpret_cast<const char*>(data), size}));
  try {
    const Side side = parse_pack(std::as_bytes(std::span(zip)), "a.zip");
    const std::vector<Section> sections = check_sides(side, side);
    for (const Section& s : sections)
      if (s.name == "env" || s.name == "pip" || s.name == "random")
        ensure(s.level() == Level::Pass, "a side is like itself");
    ensure(!page_of(side, side, sections).empty(), "there is a page");
  } catch (const DataError& e) {
    ensure(e.code() == "E0845", "what is refused has its code");
  }
  return 0;
}
