#include "base/build_id.h"

#include <link.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/hash.h"

namespace aloft {
namespace {

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// The description of the note "GNU" of the kind build id in a segment of notes.
std::string_view id_among_notes(const char* at, std::size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const std::size_t name = sizeof note, text = name + padded(note.n_namesz);
    const std::size_t end = text + padded(note.n_descsz);
    if (end > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID &&
        std::string_view(at + name, note.n_namesz) == std::string_view("GNU\0", 4))
      return {at + text, note.n_descsz};
    at += end;
    bytes -= end;
  }
  return {};
}

std::string_view id_of(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& header = object.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(object.dlpi_addr + header.p_vaddr);
    if (const auto id = id_among_notes(notes, header.p_memsz); !id.empty()) return id;
  }
  return {};
}

std::optional<std::string> id_of_file(const char* path) {
  struct stat file {};
  if (::stat(path, &file) != 0) return std::nullopt;
  return std::string(path) + " " + std::to_string(file.st_size) + " " +
         std::to_string(file.st_mtim.tv_sec) + "." + std::to_string(file.st_mtim.tv_nsec);
}

struct Code {
  Hasher hash;
  bool is_known = true;
};

int add_object(dl_phdr_info* object, std::size_t, void* data) {
  auto& code = *static_cast<Code*>(data);
  const std::string_view name = object->dlpi_name;
  if (name.starts_with("linux-vdso")) return 0;  // the kernel's
  if (const std::string_view id = id_of(*object); !id.empty()) {
    code.hash.update(id).update("\n");
  } else if (const auto file = id_of_file(name.empty() ? "/proc/self/exe" : object->dlpi_name)) {
    code.hash.update(*file).update("\n");
  } else {
    code.is_known = false;
  }
  return 0;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    Code code;
    dl_iterate_phdr(add_object, &code);
    return code.is_known ? hex16(code.hash.digest()) : std::string();
  }();
  return id;
}

}  // namespace aloft
