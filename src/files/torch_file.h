// The numbers, words and dictionaries in a file that torch.save or pickle.dump wrote. A pickle is a
// program that builds objects, by calls of whatever functions it names; this reader calls none: it
// follows what builds dictionaries, lists, words and numbers, and takes everything else (tensors,
// objects of classes) for something that it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aloft {

class TorchFile {
 public:
  // A value of the file.
  using Value = std::size_t;

  // Of the zip files that torch.save has written since version 1.6, of what it wrote before, and of
  // one pickle. DataError E0832 where it is nothing of these, or damaged.
  static TorchFile parse(std::span<const std::byte> file, const std::string& name);

  Value root() const { return root_; }  // what was saved
  // Of a dictionary: how many entries it has, and the value of a key; nothing where there is none.
  std::size_t size(Value v) const { return nodes_[v].items.size(); }
  std::optional<Value> find(Value v, std::string_view key) const;
  // The keys of a dictionary that are words, as long as this lives.
  std::vector<std::string_view> keys(Value v) const;
  // The number that it is, true and false included; nothing where it is none.
  std::optional<double> number(Value v) const;

 private:
  friend class PickleReader;
  enum class Kind : std::uint8_t { Other, Number, Word, Dict, OrderedDict };  // the last: the class
  struct Node {
    Kind kind = Kind::Other;
    double number = 0;
    std::string word = {};
    std::vector<std::pair<Value, Value>> items = {};
  };
  std::vector<Node> nodes_;
  Value root_ = 0;
};

}  // namespace aloft
