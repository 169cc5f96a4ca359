// A generation_config.json of any bytes, beside a config.json of any: refused, or tokens that end a
// text.
//
// The part up to the first zero byte is the one, the rest the other; without one there is no
// config.json.
#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "models/published_files.h"
#include "temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  static const TemporaryFolder folder;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = all.find('\0');
  TemporaryFolder::put(folder / "generation_config.json", all.substr(0, end));
  const Path config = folder / "config.json";
  if (end != std::string_view::npos)
    TemporaryFolder::put(config, all.substr(end + 1));
  else
    std::filesystem::remove(config);
  try {
    const auto ends = models::published_ends(folder.path());
    for (const std::int32_t id : ends) ensure(id >= 0, "a token has a number");
    ensure(models::published_ends(folder.path()) == ends, "the same is read again");
    const models::PublishedDrawing drawing = models::published_drawing(folder.path());
    ensure(drawing.temperature.value_or(0) >= 0 && drawing.top_k.value_or(0) >= 0 &&
               drawing.top_p.value_or(0) <= 1 && drawing.max_new_tokens.value_or(0) >= 0,
           "what is taken can be drawn by");
  } catch (const DataError& e) {
    ensure(e.code() == "E0631" || e.code() == "E0602", "what is refused is a published file");
  }
  return 0;
}
