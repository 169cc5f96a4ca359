#include "observe/compare/tensor_reader.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "files/little_endian.h"
#include "files/torch_file.h"
#include "files/zip_entry.h"
#include "scalar/float_formats.h"

namespace aloft::compare {

namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void refuse(const Path& file, std::string_view saw) {
  throw DataError("E0650", "a file of a dump cannot be read")
      .at(file.string())
      .saw(saw)
      .need("a dense tensor that torch.save wrote, as dump.json describes it")
      .advice("make the dump again");
}

// An element of so many bytes, as a number.
struct StoredType {
  const char* storage;
  const char* type;
  std::size_t bytes;
  double (*number)(std::uint64_t bits);
};

template <class T>
double whole(std::uint64_t bits) {
  return static_cast<double>(static_cast<T>(bits));
}

constexpr StoredType kTypes[] = {
    {"torch FloatStorage", "torch.float32", 4,
     [](std::uint64_t b) -> double { return std::bit_cast<float>(static_cast<std::uint32_t>(b)); }},
    {"torch DoubleStorage", "torch.float64", 8,
     [](std::uint64_t b) { return std::bit_cast<double>(b); }},
    {"torch BFloat16Storage", "torch.bfloat16", 2,
     [](std::uint64_t b) { return scalar::f64_of(scalar::Bf16{static_cast<std::uint16_t>(b)}); }},
    {"torch HalfStorage", "torch.float16", 2,
     [](std::uint64_t b) { return scalar::f64_of(scalar::F16{static_cast<std::uint16_t>(b)}); }},
    {"torch LongStorage", "torch.int64", 8, whole<std::int64_t>},
    {"torch IntStorage", "torch.int32", 4, whole<std::int32_t>},
    {"torch ShortStorage", "torch.int16", 2, whole<std::int16_t>},
    {"torch CharStorage", "torch.int8", 1, whole<std::int8_t>},
    {"torch ByteStorage", "torch.uint8", 1, whole<std::uint8_t>},
    {"torch BoolStorage", "torch.bool", 1, whole<std::uint8_t>},
};

// Elements lie as their strides say; each is looked up in the storage that there is.
std::vector<double> elements_in(const TorchFile::Tensor& t, const StoredType& type, Bytes storage,
                                const Path& file) {
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
    auto place = static_cast<std::uint64_t>(t.begin);
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

Elements read_elements(const Path& file, const Record& record) {
  const MappedFile mapped(file);
  const Bytes bytes = mapped.bytes();
  if (!is_zip(bytes)) refuse(file, "no zip file of torch.save");
  const TorchFile saved = TorchFile::parse(bytes, file.string());
  const auto tensor = saved.tensor(saved.root());
  if (!tensor) refuse(file, "no dense tensor");
  const StoredType* type = nullptr;
  for (const StoredType& t : kTypes)
    if (tensor->storage == t.storage) type = &t;
  if (!type) refuse(file, "elements of the kind " + tensor->storage);
  const auto storage = zip_entry(bytes, "/data/" + tensor->key, file.string());
  if (!storage) refuse(file, "no storage " + tensor->key);
  Elements e{elements_in(*tensor, *type, *storage, file), tensor->shape, type->type};
  if (static_cast<double>(e.values.size()) != record.elements())
    refuse(file, "another shape than dump.json says");
  return e;
}

}  // namespace

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
