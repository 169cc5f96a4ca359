// Data of tests that is not in the tree: tools/data_folder says where it lies.
#pragma once

#include <stdio.h>

#include <array>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace aloft {

struct DataFile {
  Path path;
  std::string missing;  // why a test that needs it is skipped; "": it is there
};

// `name`: a file or folder. Like all tests, from the root of the tree.
inline DataFile data_file(const std::string& name) {
  FILE* const pipe = ::popen(("tools/data_folder " + name + " 2>&1").c_str(), "r");
  if (!pipe) return {{}, "tools/data_folder cannot be run"};
  std::string said;
  std::array<char, 1024> piece{};
  while (const std::size_t got = ::fread(piece.data(), 1, piece.size(), pipe))
    said.append(piece.data(), got);
  std::string text(trim(said));
  if (::pclose(pipe) == 0) return {text, ""};
  constexpr std::string_view kSkipped = "skipped: ";
  return {{}, text.starts_with(kSkipped) ? text.substr(kSkipped.size()) : text};
}

}  // namespace aloft
