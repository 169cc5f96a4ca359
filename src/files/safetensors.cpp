#include "files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/lfs_pointer.h"
#include "base/text.h"
#include "files/safetensors_header.h"

namespace aloft {
namespace {

constexpr std::pair<DType, std::string_view> kNames[] = {
    {DType::F64, "F64"}, {DType::F32, "F32"}, {DType::BF16, "BF16"},
    {DType::F16, "F16"}, {DType::I64, "I64"}, {DType::I32, "I32"},
    {DType::U8, "U8"},   {DType::I8, "I8"},   {DType::Bool, "BOOL"}};

DataError bad_header(const std::string& file, const std::string& saw, const std::string& need) {
  return DataError("E0610", "not a usable safetensors file")
      .at(file)
      .saw(saw)
      .need(need)
      .advice("fetch or write the file again; a download may have been cut short");
}

DataError bad_tensor(const std::string& file, const SafetensorsHeader::Entry& entry,
                     const std::string& saw, const std::string& need) {
  return DataError("E0611", "a tensor's entry in a safetensors file is wrong")
      .at(file + ", tensor " + in_quotes(entry.name))
      .saw(saw)
      .need(need);
}

// Bytes of the entry's elements; nullopt where they overflow 63 bits.
std::optional<std::uint64_t> bytes_of(const SafetensorsHeader::Entry& entry, DType dtype) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  bool zero = false;  // a zero extent makes the product zero, but may not hide an overflow
  for (std::uint64_t extent : entry.shape) {
    if (extent == 0) {
      zero = true;
      continue;
    }
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return zero ? 0 : static_cast<std::uint64_t>(bytes);
}

TensorView checked_view(const SafetensorsHeader::Entry& entry, std::span<const std::byte> data,
                        const std::string& file) {
  const auto dtype = parse_safetensors_dtype(entry.dtype);
  if (!dtype)
    throw bad_tensor(file, entry, "dtype " + in_quotes(entry.dtype),
                     "one of F64 F32 BF16 F16 I64 I32 U8 I8 BOOL");
  if (entry.begin > entry.end || entry.end > data.size())
    throw bad_tensor(file, entry, fmt::format("data from {} to {}", entry.begin, entry.end),
                     fmt::format("a range inside the {} bytes of data", data.size()));
  const auto bytes = bytes_of(entry, *dtype);
  if (!bytes || *bytes != entry.end - entry.begin)
    throw bad_tensor(file, entry,
                     fmt::format("{} [{}] and {} bytes", entry.dtype, fmt::join(entry.shape, ","),
                                 entry.end - entry.begin),
                     "as many bytes as type and shape make");
  const std::vector<std::int64_t> extents(entry.shape.begin(), entry.shape.end());
  return {entry.name,
          {*dtype, Shape::of(extents)},
          data.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(*bytes))};
}

// The ranges, laid end to end, must be the data.
void check_layout(std::vector<SafetensorsHeader::Entry>& entries, std::uint64_t size,
                  const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const auto wrong = [&](const std::string& saw) {
    return DataError("E0612", "the data of a safetensors file is laid out wrongly")
        .at(file)
        .saw(saw)
        .need("tensors that fill the data exactly, without overlap or gap");
  };
  std::uint64_t at = 0;
  for (const auto& entry : entries) {
    if (entry.begin != at)
      throw wrong(fmt::format("tensor {} begins at {}, the one before it ends at {}",
                              in_quotes(entry.name), entry.begin, at));
    at = entry.end;
  }
  if (at != size) throw wrong(fmt::format("{} bytes of data, {} in tensors", size, at));
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const auto& [known, name] : kNames)
    if (known == dtype) return name;
  throw InternalError("an element type without a safetensors name");
}

std::optional<DType> parse_safetensors_dtype(std::string_view name) {
  for (const auto& [dtype, known] : kNames)
    if (known == name) return dtype;
  return std::nullopt;
}

Safetensors Safetensors::open(const Path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  Safetensors parsed = parse(file->bytes(), path.string());
  parsed.file_ = std::move(file);
  return parsed;
}

void Safetensors::release(std::span<const std::byte> bytes) const {
  if (!file_ || bytes.empty()) return;
  const std::less<const std::byte*> before;  // pointers of several files have an order, too
  const std::span<const std::byte> all = file_->bytes();
  if (before(bytes.data(), all.data()) || !before(bytes.data(), all.data() + all.size())) return;
  const auto at = static_cast<std::size_t>(bytes.data() - all.data());
  // Where one page is read the system brings in those around it, which may be given back already.
  constexpr std::size_t kAround = std::size_t{1} << 17;
  file_->release(at - std::min(at, kAround), at + bytes.size());
}

Safetensors Safetensors::parse(std::span<const std::byte> file, std::string name) {
  std::uint64_t length = 0;
  if (is_lfs_pointer({reinterpret_cast<const char*>(file.data()), file.size()}))
    throw lfs_pointer(name);
  if (file.size() < sizeof length)
    throw bad_header(name, fmt::format("{} bytes", file.size()), "a header length of 8 bytes");
  std::memcpy(&length, file.data(), sizeof length);
  if (length > file.size() - sizeof length || length > kSafetensorsHeaderLimit)
    throw bad_header(
        name, fmt::format("a header of {} bytes in a file of {}", length, file.size()),
        fmt::format("a header inside the file, of at most {} bytes", kSafetensorsHeaderLimit));
  const auto header_bytes = file.subspan(sizeof length, static_cast<std::size_t>(length));
  const auto data = file.subspan(sizeof length + header_bytes.size());
  SafetensorsHeader header = parse_safetensors_header(
      {reinterpret_cast<const char*>(header_bytes.data()), header_bytes.size()});
  if (!header.mistake.empty())
    throw bad_header(name, header.mistake,
                     "a JSON object of tensors, each with dtype, shape and data_offsets");

  Safetensors result;
  result.name_ = std::move(name);
  result.metadata_ = std::move(header.metadata);
  result.tensors_.reserve(header.entries.size());
  for (const auto& entry : header.entries)
    result.tensors_.push_back(checked_view(entry, data, result.name_));
  check_layout(header.entries, data.size(), result.name_);
  std::sort(result.tensors_.begin(), result.tensors_.end(),
            [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
  return result;
}

const TensorView* Safetensors::find(std::string_view name) const& {
  const auto it = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorView& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

const TensorView& Safetensors::at(std::string_view name) const& {
  if (const TensorView* found = find(name)) return *found;
  std::vector<std::string> known;
  for (const TensorView& tensor : tensors_) known.push_back(tensor.name);
  const std::string nearest = nearest_name(name, known);
  throw DataError("E0613", "a safetensors file lacks a tensor")
      .at(name_)
      .need("a tensor named " + in_quotes(name))
      .saw(fmt::format("{} tensors{}", known.size(),
                       nearest.empty() ? "" : ", the nearest name is " + in_quotes(nearest)));
}

}  // namespace aloft
