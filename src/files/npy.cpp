#include "files/npy.h"

#include <string_view>

#include "base/text.h"
#include "files/little_endian.h"

namespace aloft {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

std::string_view text(std::span<const std::byte> b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

// What stands behind a key of the header, a Python dictionary: {'descr': '<f4', ...}.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return trim(header.substr(at + key.size()));
}

}  // namespace

bool is_npy(std::span<const std::byte> file) { return text(file).starts_with(kMagic); }

std::optional<NpyArray> parse_npy(std::span<const std::byte> file) {
  const auto version = little(file, kMagic.size(), 1);
  if (!is_npy(file) || !version) return std::nullopt;
  const std::size_t bytes = *version == 1 ? 2 : 4, begin = kMagic.size() + 2 + bytes;
  const auto length = little(file, kMagic.size() + 2, bytes);
  if (!length || file.size() < begin || file.size() - begin < *length) return std::nullopt;
  const std::string_view header = text(file.subspan(begin, *length));
  const auto type = value_of(header, "'descr':"), order = value_of(header, "'fortran_order':");
  const auto shape = value_of(header, "'shape':");
  if (!type || !order || !shape || !type->starts_with('\'') || !shape->starts_with('('))
    return std::nullopt;
  NpyArray array;
  array.type = type->substr(1, type->find('\'', 1) - 1);
  const std::size_t end = shape->find(')');
  if (end == std::string_view::npos) return std::nullopt;
  double elements = 1;
  for (const std::string_view part : split(shape->substr(1, end - 1), ',')) {
    if (trim(part).empty()) continue;  // "(3,)", "()"
    const auto extent = parse_int(trim(part));
    if (!extent || *extent < 0) return std::nullopt;
    elements *= static_cast<double>(*extent);
    array.shape.push_back(*extent);
  }
  constexpr std::size_t kMostAxes = 64;  // numpy's own limit
  if (array.shape.size() > kMostAxes || elements > 0x1p53) return std::nullopt;
  array.strides.assign(array.shape.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    const std::size_t d = order->starts_with("True") ? i : array.shape.size() - 1 - i;
    array.strides[d] = stride;
    if (elements > 0) stride *= array.shape[d];
  }
  array.data = file.subspan(begin + *length);
  return array;
}

}  // namespace aloft
