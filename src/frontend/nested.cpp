#include "frontend/nested.h"

namespace aloft::nested {

std::string Outputs::name_of(const std::string& path) {
  const std::size_t end = path.find(']');
  const bool is_numbered = end != std::string::npos && path[0] == '[' && path[1] != '"';
  const std::string own = path.starts_with('.') ? path.substr(1)
                          : is_numbered ? "result" + path.substr(1, end - 1) + path.substr(end + 1)
                                        : "result" + path;
  std::string name = own;
  for (int k = 2; !names_.insert(name).second; ++k) name = own + "#" + std::to_string(k);
  return name;
}

}  // namespace aloft::nested
