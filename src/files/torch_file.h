// The numbers, words, dictionaries and tensors in a file that torch.save or pickle.dump wrote. A
// pickle is a program that builds objects, by calls of whatever functions it names; this reader
// calls none: it follows what builds dictionaries, tuples, words and numbers, knows the call that
// stands for a tensor, and takes everything else (objects of classes) for something that it does
// not know.
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
  // What it holds, in its order: of a dictionary by its keys, of a list or a tuple by places; of
  // keys that are neither words nor whole numbers, and of what is made by a call, no name.
  struct Member {
    std::string name;
    Value value = 0;
  };
  std::vector<Member> members(Value v) const;
  // A tensor that was saved: which elements it has of a storage, a file beside the pickle.
  struct Tensor {
    std::string storage;  // the class that holds its elements: "torch FloatStorage"
    std::string key;      // of the zip file's entry ".../data/KEY"
    std::int64_t begin = 0;
    std::vector<std::int64_t> shape, strides;  // of one length
  };
  // Nothing where it is none, or one that is built otherwise than torch.save builds dense tensors,
  // or whose elements are to be negated or conjugated.
  std::optional<Tensor> tensor(Value v) const;
  // The function that makes it when Python reads the file, "module name"; empty where none does.
  std::string_view built_by(Value v) const;
  // The number that it is, true and false included; nothing where it is none.
  std::optional<double> number(Value v) const;

 private:
  friend class PickleReader;
  enum class Kind : std::uint8_t {
    Other,
    Number,
    Word,
    Dict,
    OrderedDict,  // the class
    Tuple,
    List,
    Named,   // a function or class, "module name"
    Call,    // of one, with its arguments
    Stored,  // what lies beside the pickle
  };
  struct Node {
    Kind kind = Kind::Other;
    double number = 0;
    std::string word = {};
    std::vector<std::pair<Value, Value>> items = {};
    std::vector<Value> parts = {};
  };
  std::optional<Tensor> dense(const std::vector<Value>& arguments) const;

  std::vector<Node> nodes_;
  Value root_ = 0;
};

}  // namespace aloft
