// fmt::print("{}", tensor) and std::cout << tensor: type, shape and values
// (frontend/tensor_text.h). Not part of <aloft/aloft.h>: it needs fmt, where a program uses that,
// and the streams.
#pragma once

#include <ostream>
#include <string_view>

#include "frontend/tensor_text.h"

namespace aloft {

// What to_text() says.
inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << to_text(tensor);
}

}  // namespace aloft

#if __has_include(<fmt/format.h>)
#include <fmt/format.h>

// Any width and alignment of a text.
template <>
struct fmt::formatter<aloft::Tensor> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const aloft::Tensor& tensor, Context& context) const {
    return fmt::formatter<std::string_view>::format(aloft::to_text(tensor), context);
  }
};
#endif
