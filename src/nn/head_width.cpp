#include "nn/head_width.h"

#include "base/error.h"
#include "nn/init.h"

namespace aloft::nn {

std::int64_t head_width(std::int64_t dim, std::int64_t heads, std::int64_t kv_heads,
                        const std::string& what, std::int64_t width) {
  need_positive(dim, what + ": dim");
  need_positive(heads, what + ": heads");
  if (kv_heads < 0)
    throw UserError("E0210", what + ": kv_heads is out of range")
        .saw(std::to_string(kv_heads))
        .need("1 or more, or 0: as many as heads");
  if (width < 0)
    throw UserError("E0210", what + ": the width of a head is out of range")
        .saw(std::to_string(width))
        .need("1 or more, or 0: the width by the heads");
  if (width == 0 && dim % heads != 0)
    throw UserError("E0211", what + ": the heads do not divide the width")
        .saw("width " + std::to_string(dim) + " in " + std::to_string(heads) + " heads")
        .need("a width that is a multiple of the heads");
  if (kv_heads > 0 && heads % kv_heads != 0)
    throw UserError("E0211", what + ": kv_heads does not divide heads")
        .saw(std::to_string(kv_heads) + " and " + std::to_string(heads))
        .need("heads that are a multiple of kv_heads");
  return width > 0 ? width : dim / heads;
}

}  // namespace aloft::nn
