#include "base/library_files.h"

namespace aloft {

bool is_of_library(std::string_view file) {
  constexpr std::string_view kHere = __FILE__, kOwn = "base/library_files.cpp";
  static_assert(kHere.ends_with(kOwn));
  constexpr std::string_view kInstalled = "/include/aloft/";  // cmake/install_headers.cmake
  return file.starts_with(kHere.substr(0, kHere.size() - kOwn.size())) ||
         file.find(kInstalled) != std::string_view::npos;
}

}  // namespace aloft
