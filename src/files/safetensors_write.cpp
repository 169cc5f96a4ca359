// The writing half of safetensors.h.
#include <algorithm>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/safetensors.h"

namespace aloft {
namespace {

constexpr std::uint64_t kLarge = std::uint64_t{64} << 20;
constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr std::align_val_t kBlockAlignment{4096};  // of a file system's blocks

UserError cannot_write(const std::string& saw, const std::string& need) {
  return UserError("E0614", "tensors that cannot be written as safetensors").saw(saw).need(need);
}

bool data_order(const TensorEntry& a, const TensorEntry& b) {
  const std::size_t size_a = size_of(a.type.dtype), size_b = size_of(b.type.dtype);
  return size_a != size_b ? size_a > size_b : a.name < b.name;
}

std::uint64_t bytes_of(const std::vector<TensorEntry>& tensors) {
  std::uint64_t bytes = 0;
  for (const TensorEntry& tensor : tensors) bytes += tensor.type.max_bytes();
  return bytes;
}

// The JSON, padded with spaces so that the data begins at a multiple of 8.
std::string header_text(const std::vector<TensorEntry>& tensors, const Metadata& metadata) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const TensorEntry& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw cannot_write("the name " + in_quotes(*twice) + " twice",
                       "a name of its own for each tensor");

  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorEntry& tensor : tensors) {
    if (!tensor.type.shape.is_constant())
      throw cannot_write(tensor.name + " " + tensor.type.str(), "constant dimensions");
    if (tensor.name.empty() || tensor.name == "__metadata__")
      throw cannot_write("the name " + in_quotes(tensor.name), "another name");
    const std::uint64_t end = at + tensor.type.max_bytes();
    nlohmann::ordered_json entry;
    entry["dtype"] = safetensors_name(tensor.type.dtype);
    entry["shape"] = tensor.type.shape.max_extents();
    entry["data_offsets"] = {at, end};
    json.push_back({tensor.name, std::move(entry)});  // not json[name], which searches all names
    at = end;
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::type_error&) {
    throw cannot_write("a name or metadata with bytes that are not UTF-8", "UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const Path& path, std::vector<TensorEntry> tensors,
                                     const Metadata& metadata)
    : file_(path), order_(std::move(tensors)) {
  std::sort(order_.begin(), order_.end(), data_order);
  const std::string header = header_text(order_, metadata);
  remaining_ = bytes_of(order_);
  if (remaining_ >= kLarge)
    block_.reset(static_cast<std::byte*>(::operator new(kBlock, kBlockAlignment)));
  const std::uint64_t length = header.size();
  put(std::as_bytes(std::span(&length, 1)));
  put(std::as_bytes(std::span(header)));
}

void SafetensorsWriter::put(std::span<const std::byte> bytes) {
  hasher_.update(bytes);
  while (block_ && !bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kBlock - in_block_);
    // Not std::copy: of std::byte it is a loop over single bytes.
    std::memcpy(block_.get() + in_block_, bytes.data(), count);
    in_block_ += count;
    bytes = bytes.subspan(count);
    if (in_block_ == kBlock) file_.write(std::span(block_.get(), std::exchange(in_block_, 0)));
  }
  file_.write(bytes);
}

void SafetensorsWriter::Freed::operator()(std::byte* block) const {
  ::operator delete(block, kBlockAlignment);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > remaining_)
    throw cannot_write(
        std::to_string(bytes.size()) + " bytes",
        "no more than the " + std::to_string(remaining_) + " that are left to write");
  remaining_ -= bytes.size();
  put(bytes);
}

FileSeal SafetensorsWriter::finish() {
  if (remaining_ != 0)
    throw cannot_write("an end " + std::to_string(remaining_) + " bytes too early",
                       "the bytes of every tensor");
  file_.write(std::span(block_.get(), std::exchange(in_block_, 0)));
  file_.commit();
  return {file_.written(), hasher_.digest()};
}

FileSeal write_safetensors(const Path& path, std::span<const TensorView> tensors,
                           const Metadata& metadata) {
  std::map<std::string_view, std::span<const std::byte>> bytes;
  std::vector<TensorEntry> entries;
  for (const TensorView& tensor : tensors) {
    if (tensor.bytes.size() != tensor.type.max_bytes())
      throw cannot_write(std::to_string(tensor.bytes.size()) + " bytes of " +
                             in_quotes(tensor.name) + ", " + tensor.type.str(),
                         std::to_string(tensor.type.max_bytes()) + " bytes");
    bytes[tensor.name] = tensor.bytes;
    entries.push_back({tensor.name, tensor.type});
  }
  SafetensorsWriter writer(path, std::move(entries), metadata);
  for (const TensorEntry& entry : writer.order()) writer.write(bytes.at(entry.name));
  return writer.finish();
}

}  // namespace aloft
