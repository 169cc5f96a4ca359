// A model's tensors in one safetensors file, or in several that an index binds together, as Hugging
// Face keeps what is large: beside the files lies
//   model.safetensors.index.json  {"metadata": ..., "weight_map": {TENSOR: FILE, ...}}
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "files/safetensors.h"

namespace aloft {

// Which file has each tensor, by the text of an index. DataError E0615 where it is none, or names a
// file that does not lie beside it.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text,
                                                           const std::string& name);

// The files are mapped, and nothing is copied; copies share the maps.
class ShardedSafetensors {
 public:
  // One file, with all tensors. DataErrors of Safetensors::open().
  static ShardedSafetensors of_file(const Path& path);
  // Those that an index names. DataError E0615 with every problem: a file that is missing, a tensor
  // that two files have, or that none has, or another one than the index says, or that the index
  // does not name; and the DataErrors of each file.
  static ShardedSafetensors of_index(const Path& path);

  // As of one file (safetensors.h); what they give lives as long as this does.
  const TensorView* find(std::string_view name) const&;   // null where there is none
  const TensorView& at(std::string_view name) const&;     // DataError E0613
  std::vector<const TensorView*> tensors() const&;        // file by file, by name in each
  const std::string& name() const& { return name_; }      // of the file or the index, for messages
  void release(std::span<const std::byte> bytes) const {  // as of one file
    for (const Safetensors& file : *files_) file.release(bytes);
  }
  void find(std::string_view name) const&& = delete;
  void at(std::string_view name) const&& = delete;
  void tensors() const&& = delete;
  void name() const&& = delete;

 private:
  std::shared_ptr<const std::vector<Safetensors>> files_;
  std::string name_;
};

}  // namespace aloft
