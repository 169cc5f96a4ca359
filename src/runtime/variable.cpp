// A variable's values for the host.
#include "types/variable.h"

#include <string>

#include "base/error.h"
#include "runtime/buffer.h"
#include "scalar/block_float.h"
#include "scalar/float_formats.h"

namespace aloft {
namespace {

const Buffer& buffer_of(const Variable& v) {
  if (v.buffer) return *v.buffer;
  throw UserError("E0325", "the variable '" + v.name.str() + "' has no memory")
      .saw("a " + v.type.str() + " without a buffer")
      .need("one that a module has made, by add_parameter() or add_buffer()");
}

template <class T>
std::vector<float> widened(const Variable& v) {
  std::vector<float> floats;
  for (const T& x : buffer_of(v).read<T>(0, static_cast<std::size_t>(v.type.shape.max_numel())))
    floats.push_back(scalar::f32_of(x));
  return floats;
}

std::vector<float> of_blocks(const Variable& v) {
  const auto bytes = static_cast<std::int64_t>(v.type.max_bytes());
  const std::int64_t n = scalar::elements_of_blocks(bytes);
  const auto read = buffer_of(v).read<std::uint8_t>(0, static_cast<std::size_t>(bytes));
  const scalar::ConstBlocks blocks(read.data(), n);
  std::vector<float> floats;
  for (std::int64_t i = 0; i < n; ++i)
    floats.push_back(scalar::block_value(blocks.codes[i], blocks.scales[i / scalar::kBlock],
                                         {v.layout == Layout::Blocks}));
  return floats;
}

}  // namespace

std::vector<float> Variable::to_floats() const {
  if (layout == Layout::Blocks || layout == Layout::BlocksNotNegative) return of_blocks(*this);
  switch (type.dtype) {
    case DType::F64:
      return widened<double>(*this);
    case DType::F32:
      return widened<float>(*this);
    case DType::BF16:
      return widened<scalar::Bf16>(*this);
    case DType::F16:
      return widened<scalar::F16>(*this);
    default:
      throw UserError("E0323", "the values of '" + name.str() + "' are asked for as floats")
          .saw(type.str())
          .need("a floating-point type");
  }
}

std::vector<std::byte> Variable::bytes() const {
  const auto all = buffer_of(*this).read<std::byte>(0, type.max_bytes());
  return {all.begin(), all.end()};
}

}  // namespace aloft
