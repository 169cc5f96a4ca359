#include "files/linked_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <span>
#include <vector>

namespace aloft {

namespace {

// False where there is no link.
bool is_linked(const Path& file, const Path& name) {
  // Called as AtomicFile calls its own, by which leftovers of killed programs are known, and by no
  // number that one of those has: what is written there would go into the linked file.
  static std::atomic<unsigned> count{1U << 30};
  const Path temporary = name.parent_path() / fmt::format(".{}.{}-{}.tmp", name.filename().string(),
                                                          ::getpid(), count.fetch_add(1));
  if (::link(system_path(file), system_path(temporary)) != 0) return false;
  const bool is_there = std::rename(temporary.c_str(), system_path(name)) == 0;
  // Where `name` is this file already, the system renames nothing.
  ::unlink(temporary.c_str());
  return is_there;
}

}  // namespace

void link_file(const Path& file, const Path& name) {
  if (is_linked(file, name)) return;
  const InputFile from(file);
  AtomicFile to(name);
  std::vector<char> piece(std::size_t{1} << 20);
  for (std::uint64_t at = 0;;) {
    const std::size_t count = from.read_at(at, piece);
    if (count == 0) break;
    to.write(std::as_bytes(std::span(piece).first(count)));
    at += count;
  }
  to.commit_unflushed();
}

}  // namespace aloft
