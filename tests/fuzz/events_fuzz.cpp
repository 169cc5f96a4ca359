// The reader of TensorBoard's event files on arbitrary bytes: as they are, and as the contents of
// records with right checksums, which no fuzzer finds by itself.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "files/tensorboard.h"

namespace {

using namespace aloft;

void append(std::string& file, const auto& value) {
  file.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Lines become records.
std::string records_of(std::string_view text) {
  std::string file;
  while (!text.empty()) {
    const std::string_view event = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), event.size() + 1));
    const std::uint64_t length = event.size();
    std::string head;
    append(head, length);
    file += head;
    append(file, masked_crc32c(head));
    file += event;
    append(file, masked_crc32c(event));
  }
  return file;
}

void cut(std::string_view file) {
  const std::string kept = events_up_to(file, 300, "validation/");
  ensure(kept.size() <= file.size(), "nothing is added");
  ensure(events_up_to(kept, 300, "validation/") == kept, "what is kept stays");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  cut(text);
  cut(records_of(text) + std::string(text.substr(0, 20)));
  return 0;
}
