// Inside: channels of a convolution in groups.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace aloft::nn {

// UserError E0211, `headline`, where they do not divide both numbers of channels.
inline void need_groups(std::int64_t in, std::int64_t out, std::int64_t groups,
                        const std::string& headline) {
  if (in % groups == 0 && out % groups == 0) return;
  throw UserError("E0211", headline)
      .saw(std::to_string(in) + " to " + std::to_string(out) + " channels in " +
           std::to_string(groups) + " groups")
      .need("groups that divide both numbers of channels");
}

}  // namespace aloft::nn
