// How the heads of an attention share its width.
#pragma once

#include <cstdint>
#include <string>

namespace aloft::nn {

// Inside: dim / heads, or `width` where that is not 0. UserError E0210 where dim or heads is not
// positive or kv_heads or width is below 0, E0211 where heads does not divide dim and no width is
// given, or kv_heads, above 0, does not divide heads; `what` is whose.
std::int64_t head_width(std::int64_t dim, std::int64_t heads, std::int64_t kv_heads,
                        const std::string& what, std::int64_t width = 0);

}  // namespace aloft::nn
