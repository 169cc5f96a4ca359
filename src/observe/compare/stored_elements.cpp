#include "observe/compare/stored_elements.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>

#include "files/little_endian.h"
#include "files/npy.h"
#include "files/zip_entry.h"
#include "scalar/float_formats.h"

namespace aloft::compare {

namespace {

using Bytes = std::span<const std::byte>;

// An element of so many bytes, as a number.
struct StoredType {
  const char* storage;  // torch's word
  const char* numpy;    // numpy's; "" where it has none
  const char* type;
  std::size_t bytes;
  double (*number)(std::uint64_t bits);
};

template <class T>
double whole(std::uint64_t bits) {
  return static_cast<double>(static_cast<T>(bits));
}

constexpr StoredType kTypes[] = {
    {"torch FloatStorage", "<f4", "torch.float32", 4,
     [](std::uint64_t b) -> double { return std::bit_cast<float>(static_cast<std::uint32_t>(b)); }},
    {"torch DoubleStorage", "<f8", "torch.float64", 8,
     [](std::uint64_t b) { return std::bit_cast<double>(b); }},
    {"torch BFloat16Storage", "", "torch.bfloat16", 2,
     [](std::uint64_t b) { return scalar::f64_of(scalar::Bf16{static_cast<std::uint16_t>(b)}); }},
    {"torch HalfStorage", "<f2", "torch.float16", 2,
     [](std::uint64_t b) { return scalar::f64_of(scalar::F16{static_cast<std::uint16_t>(b)}); }},
    {"torch LongStorage", "<i8", "torch.int64", 8, whole<std::int64_t>},
    {"torch IntStorage", "<i4", "torch.int32", 4, whole<std::int32_t>},
    {"torch ShortStorage", "<i2", "torch.int16", 2, whole<std::int16_t>},
    {"torch CharStorage", "|i1", "torch.int8", 1, whole<std::int8_t>},
    {"torch ByteStorage", "|u1", "torch.uint8", 1, whole<std::uint8_t>},
    {"torch BoolStorage", "|b1", "torch.bool", 1, whole<std::uint8_t>},
};

// Elements lie as their strides say; each is looked up in the storage that there is.
template <class Layout>  // with shape and strides
Elements elements_in(const Layout& t, std::int64_t begin, const StoredType& type, Bytes storage) {
  Elements e{{}, t.shape, type.type};
  if (std::ranges::find(t.shape, 0) != t.shape.end()) return e;
  std::uint64_t count = 1;
  for (const std::int64_t n : t.shape) {
    // A tensor that is expanded is larger than what is stored; dumps have none.
    if (count > storage.size() / static_cast<std::uint64_t>(n))
      throw NoElements("a shape that is larger than the elements");
    count *= static_cast<std::uint64_t>(n);
  }
  const bool is_long = e.type == "torch.int64";
  std::vector<double>& values = e.values;
  values.reserve(count);
  std::vector<std::int64_t> at(t.shape.size(), 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto place = static_cast<std::uint64_t>(begin);
    for (std::size_t d = 0; d < at.size(); ++d)
      place += static_cast<std::uint64_t>(at[d]) * static_cast<std::uint64_t>(t.strides[d]);
    const auto bits =
        place < storage.size() ? little(storage, place * type.bytes, type.bytes) : std::nullopt;
    if (!bits) throw NoElements("elements beyond the end of its storage");
    values.push_back(type.number(*bits));
    const double rest = is_long ? rest_of(static_cast<std::int64_t>(*bits)) : 0;
    if (rest != 0) {
      e.rests.resize(count, 0);
      e.rests[i] = rest;
    }
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < t.shape[d]) break;
      at[d] = 0;
    }
  }
  return e;
}

}  // namespace

Elements torch_elements(const TorchFile& saved, TorchFile::Value value, Bytes bytes,
                        const std::string& file) {
  const auto tensor = saved.tensor(value);
  if (!tensor) throw NoElements("no dense tensor, or one that is kept negated or conjugated");
  const auto* const type = std::ranges::find(kTypes, tensor->storage, &StoredType::storage);
  if (type == std::end(kTypes)) throw NoElements("elements of the kind " + tensor->storage);
  const auto storage = zip_entry(bytes, "/data/" + tensor->key, file);
  if (!storage) throw NoElements("no storage " + tensor->key);
  return elements_in(*tensor, tensor->begin, *type, *storage);
}

Elements numpy_elements(Bytes bytes) {
  const auto array = parse_npy(bytes);
  if (!array) throw NoElements("a damaged file of numpy");
  const auto* const type = std::ranges::find(kTypes, array->type, &StoredType::numpy);
  if (type == std::end(kTypes) || array->type.empty())
    throw NoElements("elements of the kind " + array->type);
  return elements_in(*array, 0, *type, array->data);
}

}  // namespace aloft::compare
