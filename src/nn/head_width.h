// How the heads of an attention share its width.
#pragma once

#include <cstdint>
#include <string>

namespace aloft::nn {

// Inside: dim / heads. UserError E0210 where dim or heads is not positive or kv_heads is below 0,
// E0211 where heads does not divide dim, or kv_heads, above 0, does not divide heads; `what` is
// whose.
std::int64_t head_width(std::int64_t dim, std::int64_t heads, std::int64_t kv_heads,
                        const std::string& what);

}  // namespace aloft::nn
