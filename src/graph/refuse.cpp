#include "graph/refuse.h"

#include <string>

namespace aloft {

void refuse(UserError refusal, const Tensor& value) {
  if (const std::string origin = emitter_of(value).origin_of(value); !origin.empty())
    refusal.add_line("from", origin);
  throw refusal;
}

}  // namespace aloft
