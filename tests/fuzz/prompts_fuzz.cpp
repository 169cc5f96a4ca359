// Files of prompts of any bytes, as JSON lines and as plain lines: prompts of one kind, each with
// the line that asks it, or a refusal.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "infer/prompt_file.h"
#include "temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  static const TemporaryFolder folder;
  set_log_level(LogLevel::Error);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"p.jsonl", "p.txt"}) {
    const Path path = folder / name;
    TemporaryFolder::put(path, text);
    try {
      const auto asked = read_prompts(path);
      ensure(!asked.empty(), "there is a prompt");
      for (const AskedPrompt& a : asked) {
        ensure(a.is_chat() == asked[0].is_chat(), "all are of one kind");
        ensure(a.place.starts_with(path.string() + ":"), "each says where it is asked");
        if (a.is_chat()) ensure(a.messages.is_array() && !a.messages.empty(), "somebody speaks");
      }
    } catch (const DataError& e) {
      ensure(e.code() == "E0547", "what is refused is a line");
    } catch (const UserError& e) {
      ensure(e.code() == "E0812", "there is none, or they are of two kinds");
    }
  }
  return 0;
}
