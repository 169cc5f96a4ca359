// safetensors: Hugging Face's format for named tensors, read through a memory map and written in
// one step. Layout: 8 bytes header length N (little endian), N bytes of JSON
//   {"__metadata__": {text: text}, NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
//   24]}}
// then the data, to which the offsets are relative. Nothing in a file is believed before it is
// checked against the file's real size; the tensors must fill the data without overlap or gap.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/file_seal.h"
#include "base/hash.h"
#include "types/shape.h"

namespace aloft {

// What a file says about itself, free text by name: its "__metadata__".
using Metadata = std::map<std::string, std::string>;

// A tensor's bytes, row-major, little endian. Not necessarily aligned to the element: other
// programs' files need not be. Constant dimensions only.
struct TensorView {
  std::string name;                  // in the file
  TensorType type;                   // constant dimensions
  std::span<const std::byte> bytes;  // type.max_bytes() of them, the file's own memory
};

// The longest header that is read, in bytes, as in Hugging Face's own reader.
inline constexpr std::uint64_t kSafetensorsHeaderLimit = 100'000'000;

// The name of an element type in the format, such as "F32" and "BOOL"; the type of a name, or
// nothing where Aloft has none for it.
std::string_view safetensors_name(DType dtype);
std::optional<DType> parse_safetensors_dtype(std::string_view name);

// A file of named tensors to read, checked as a whole when it is opened. Copies share the map.
class Safetensors {
 public:
  // Maps the file; nothing is copied. DataError E0601, E0610 (the header), E0611 (a tensor's
  // entry), E0612 (the layout of the data).
  static Safetensors open(const Path& path);
  // The same checks on bytes in memory, which must outlive the result. `name` is for messages.
  static Safetensors parse(std::span<const std::byte> file, std::string name);

  // What these give lives as long as the file does: `Safetensors::open(path).tensors()` would hand
  // out what is gone with the end of the expression, and does not compile. Give the file a name.
  const std::vector<TensorView>& tensors() const& { return tensors_; }  // by name, ascending
  const Metadata& metadata() const& { return metadata_; }               // free text by name
  const TensorView* find(std::string_view name) const&;                 // null where there is none
  const TensorView& at(std::string_view name) const&;  // DataError E0613 names the nearest
  const std::string& name() const& { return name_; }   // the path, for messages
  // These bytes of the file are not needed any more: the memory that holds them is given back, and
  // reading them again reads the file. Other bytes are none of this one's and stay.
  void release(std::span<const std::byte> bytes) const;
  void tensors() const&& = delete;
  void metadata() const&& = delete;
  void find(std::string_view name) const&& = delete;
  void at(std::string_view name) const&& = delete;
  void name() const&& = delete;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::string name_;
  std::vector<TensorView> tensors_;
  Metadata metadata_;
};

// A tensor that is to be written.
struct TensorEntry {
  std::string name;  // UTF-8, its own
  TensorType type;   // constant dimensions
};

// Writes tensor after tensor in the order of the data: larger elements first, so that all are
// aligned, and by name among equals. The same tensors and metadata give the same bytes.
// UserError E0614: names that repeat or are not UTF-8, symbolic dimensions, bytes that are not
// those of the types.
class SafetensorsWriter {
 public:
  // What is at `path` stays until finish(). EnvironmentError E0603.
  SafetensorsWriter(const Path& path, std::vector<TensorEntry> tensors, const Metadata& metadata);

  // The tensors in the order in which write() takes their bytes.
  const std::vector<TensorEntry>& order() const { return order_; }
  // Bytes of order()[0], then order()[1], ...; cut as one likes.
  void write(std::span<const std::byte> bytes);
  // The file appears here, on the disk; what it is known by. UserError E0614 where bytes are
  // missing, EnvironmentError E0603.
  FileSeal finish();

 private:
  struct Freed {
    void operator()(std::byte* block) const;
  };
  void put(std::span<const std::byte> bytes);

  AtomicFile file_;
  Hasher hasher_;
  // Of large files: what waits until there is a whole block of it, which the disk takes best.
  std::unique_ptr<std::byte, Freed> block_;
  std::size_t in_block_ = 0;
  std::vector<TensorEntry> order_;
  std::uint64_t remaining_ = 0;
};

// The whole at once: what lies in memory already. UserError E0614 and EnvironmentError E0603 as
// above.
FileSeal write_safetensors(const Path& path, std::span<const TensorView> tensors,
                           const Metadata& metadata = {});

}  // namespace aloft
