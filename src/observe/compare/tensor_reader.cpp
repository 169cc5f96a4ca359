#include "observe/compare/tensor_reader.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error.h"
#include "files/little_endian.h"
#include "files/npy.h"
#include "files/torch_file.h"
#include "files/zip_entry.h"
#include "observe/compare/noise.h"
#include "scalar/float_formats.h"

namespace aloft::compare {

namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void refuse(const Path& file, std::string_view saw) {
  throw DataError("E0650", "a file of a dump cannot be read")
      .at(file.string())
      .saw(saw)
      .need("a dense tensor that torch.save or numpy.save wrote, as dump.json describes it")
      .advice("make the dump again");
}

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
std::vector<double> elements_in(const Layout& t, std::int64_t begin, const StoredType& type,
                                Bytes storage, const Path& file) {
  std::uint64_t count = 1;
  for (const std::int64_t n : t.shape) {
    // A tensor that is expanded is larger than what is stored; dumps have none.
    if (n > 0 && count > storage.size() / static_cast<std::uint64_t>(n))
      refuse(file, "a shape that is larger than the elements");
    count *= static_cast<std::uint64_t>(n);
  }
  std::vector<double> values;
  values.reserve(count);
  std::vector<std::int64_t> at(t.shape.size(), 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto place = static_cast<std::uint64_t>(begin);
    for (std::size_t d = 0; d < at.size(); ++d)
      place += static_cast<std::uint64_t>(at[d]) * static_cast<std::uint64_t>(t.strides[d]);
    const auto bits =
        place < storage.size() ? little(storage, place * type.bytes, type.bytes) : std::nullopt;
    if (!bits) refuse(file, "elements beyond the end of its storage");
    values.push_back(type.number(*bits));
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < t.shape[d]) break;
      at[d] = 0;
    }
  }
  return values;
}

Elements of_torch(Bytes bytes, const Path& file) {
  const TorchFile saved = TorchFile::parse(bytes, file.string());
  const auto tensor = saved.tensor(saved.root());
  if (!tensor) refuse(file, "no dense tensor");
  const auto* const type = std::ranges::find(kTypes, tensor->storage, &StoredType::storage);
  if (type == std::end(kTypes)) refuse(file, "elements of the kind " + tensor->storage);
  const auto storage = zip_entry(bytes, "/data/" + tensor->key, file.string());
  if (!storage) refuse(file, "no storage " + tensor->key);
  return {elements_in(*tensor, tensor->begin, *type, *storage, file), tensor->shape, type->type};
}

Elements of_numpy(Bytes bytes, const Path& file) {
  const auto array = parse_npy(bytes);
  if (!array) refuse(file, "a damaged file of numpy");
  const auto* const type = std::ranges::find(kTypes, array->type, &StoredType::numpy);
  if (type == std::end(kTypes) || array->type.empty())
    refuse(file, "elements of the kind " + array->type);
  return {elements_in(*array, 0, *type, array->data, file), array->shape, type->type};
}

Elements read_elements(const Path& file, const Record& record) {
  const MappedFile mapped(file);
  const Bytes bytes = mapped.bytes();
  if (!is_zip(bytes) && !is_npy(bytes)) refuse(file, "neither torch.save's file nor numpy's");
  Elements e = is_zip(bytes) ? of_torch(bytes, file) : of_numpy(bytes, file);
  if (static_cast<double>(e.values.size()) != record.elements())
    refuse(file, "another shape than dump.json says");
  // What is kept wider than it was computed, as bfloat16 by MindSpore, is as exact as it was.
  if (unit_of(record.type) > unit_of(e.type)) e.type = record.type;
  return e;
}

}  // namespace

Elements read_tensor_file(const Path& file, const std::vector<std::int64_t>& shape) {
  Record record;
  record.shape = shape;
  Elements e = read_elements(file, record);
  if (e.shape != shape) refuse(file, "another shape than dump.json says");
  return e;
}

const ElementFigures* TensorReader::figures(const RecordPair& pair) {
  if (!pair.npu || !pair.bench) return nullptr;
  const auto known = known_.find(pair.npu);
  if (known != known_.end()) return known->second.get();
  std::unique_ptr<ElementFigures>& figures = known_[pair.npu];
  const Path ours = npu_.elements_of(*pair.npu), theirs = bench_.elements_of(*pair.bench);
  if (!ours.empty() && !theirs.empty() && path_exists(ours) && path_exists(theirs))
    figures = std::make_unique<ElementFigures>(
        figures_of(read_elements(ours, *pair.npu), read_elements(theirs, *pair.bench)));
  return figures.get();
}

}  // namespace aloft::compare
