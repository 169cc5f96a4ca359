#include "files/torch_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>

#include "base/error.h"
#include "files/little_endian.h"
#include "files/zip_entry.h"

namespace aloft {
namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void refuse(const std::string& name, std::string_view saw) {
  throw DataError("E0832", "not a usable file of torch.save")
      .at(name)
      .saw(saw)
      .need("a file that torch.save wrote, whole, with words and numbers in dictionaries")
      .advice("write what is needed of it as JSON, in Python");
}

std::string_view text(Bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

}  // namespace

// --- pickle

// The machine that a pickle is a program for: a stack of values, marks in it, and a memory.
class PickleReader {
 public:
  PickleReader(Bytes bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  bool is_number(TorchFile::Value v) const { return file_.number(v).has_value(); }
  // One pickle; what it leaves.
  TorchFile::Value read() {
    stack_.clear(), marks_.clear(), memory_.clear();
    constexpr std::uint64_t kStop = '.';
    for (std::uint64_t code = take(1); code != kStop; code = take(1)) run(code);
    return pop();
  }
  TorchFile result(TorchFile::Value root) {
    file_.root_ = root;
    return std::move(file_);
  }

 private:
  using Kind = TorchFile::Kind;
  using Value = TorchFile::Value;
  // More than any name, and any call that is known, has.
  static constexpr std::size_t kLongestName = 1000, kMostParts = 64;

  std::uint64_t take(std::size_t bytes) {
    const auto value = little(bytes_, at_, bytes);
    if (!value) refuse(name_, "a pickle that ends too early");
    at_ += bytes;
    return *value;
  }
  // Eight bytes, the highest first, as numbers with a fraction alone are written.
  std::uint64_t take_big() {
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | take(1);
    return bits;
  }
  std::string_view take_text(std::uint64_t size) {
    if (bytes_.size() - at_ < size) refuse(name_, "a pickle that ends too early");
    const Bytes taken = bytes_.subspan(at_, size);
    at_ += size;
    return text(taken);
  }
  std::string_view take_line() {
    const std::string_view rest = text(bytes_.subspan(at_));
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) refuse(name_, "a pickle that ends too early");
    return take_text(end + 1).substr(0, end);
  }

  Value add(Kind kind) {
    file_.nodes_.push_back({kind});
    return file_.nodes_.size() - 1;
  }
  void push(Kind kind) { stack_.push_back(add(kind)); }
  void push_number(double number) {
    push(Kind::Number);
    file_.nodes_.back().number = number;
  }
  void push_word(std::string_view word) {
    push(Kind::Word);
    file_.nodes_.back().word = word;
  }
  Value pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse(name_, "a damaged pickle");
    const Value v = stack_.back();
    stack_.pop_back();
    return v;
  }
  // What is above the last mark.
  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) refuse(name_, "a damaged pickle");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value> all(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return all;
  }
  void put_into_top(const std::vector<Value>& keys_and_values) {
    const Value into = pop();
    for (std::size_t i = 0; i + 1 < keys_and_values.size(); i += 2)
      file_.nodes_[into].items.emplace_back(keys_and_values[i], keys_and_values[i + 1]);
    stack_.push_back(into);
  }
  void append_to_top(const std::vector<Value>& values) {
    const Value into = pop();
    if (file_.nodes_[into].kind == Kind::List)
      file_.nodes_[into].parts.insert(file_.nodes_[into].parts.end(), values.begin(), values.end());
    stack_.push_back(into);
  }
  void put_one_into_top() {
    const Value value = pop(), key = pop();
    put_into_top({key, value});
  }
  void recall(std::uint64_t place) {
    const auto it = memory_.find(place);
    if (it == memory_.end()) refuse(name_, "a damaged pickle");
    stack_.push_back(it->second);
  }
  void remember(std::uint64_t place) {
    const Value v = pop();
    memory_[place] = v;
    stack_.push_back(v);
  }
  // Of `count` values something that is not known.
  void forget(int count) {
    for (int i = 0; i < count; ++i) pop();
    push(Kind::Other);
  }
  void push_named(std::string_view module, std::string_view name) {
    const bool is_dict = module == "collections" && name == "OrderedDict";
    push(is_dict ? Kind::OrderedDict : Kind::Named);
    if (!is_dict) file_.nodes_.back().word = std::string(module) + " " + std::string(name);
  }
  // Of words alone: what is named once more would double its length each time.
  void push_named(Value module, Value name) {
    const auto is_word = [&](Value v) {
      return file_.nodes_[v].kind == Kind::Word && file_.nodes_[v].word.size() <= kLongestName;
    };
    if (!is_word(module) || !is_word(name)) refuse(name_, "a name that is none");
    const std::string own_module = file_.nodes_[module].word, own_name = file_.nodes_[name].word;
    push_named(own_module, own_name);  // nodes move where one is added
  }
  void push_tuple(std::vector<Value> parts) {
    push(Kind::Tuple);
    file_.nodes_.back().parts = std::move(parts);
  }
  void push_tuple_of(std::size_t count) {
    std::vector<Value> parts(count);
    for (std::size_t i = count; i-- > 0;) parts[i] = pop();
    push_tuple(std::move(parts));
  }
  // What is called, and with what, is kept; nothing runs.
  void call() {
    const Value arguments = pop(), callee = pop();
    if (file_.nodes_[callee].kind == Kind::OrderedDict) return push(Kind::Dict);
    if (file_.nodes_[callee].kind != Kind::Named) return push(Kind::Other);
    push_with_parts(Kind::Call, arguments);
    file_.nodes_.back().word = file_.nodes_[callee].word;
  }
  // What lies beside the pickle.
  void push_stored() { push_with_parts(Kind::Stored, pop()); }
  // Of few parts: each call would copy all that a long tuple has.
  void push_with_parts(Kind kind, Value tuple) {
    const bool is_known = file_.nodes_[tuple].parts.size() <= kMostParts;
    push(is_known ? kind : Kind::Other);
    if (is_known) file_.nodes_.back().parts = file_.nodes_[tuple].parts;
  }
  void push_long(std::uint64_t bytes) {
    const std::string_view digits = take_text(bytes);
    double number = 0, unit = 1;
    for (const char c : digits) number += unit * static_cast<std::uint8_t>(c), unit *= 256;
    if (!digits.empty() && static_cast<std::uint8_t>(digits.back()) >= 128) number -= unit;
    push_number(number);
  }

  struct Instruction;
  static const Instruction kInstructions[];
  void run(std::uint64_t code);

  Bytes bytes_;
  std::string name_;
  std::size_t at_ = 0;
  TorchFile file_;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, Value> memory_;
};

// What each instruction does; those that there are in files of torch.save, of any protocol.
struct PickleReader::Instruction {
  std::uint64_t code;
  void (*run)(PickleReader&);
};

// clang-format off
const PickleReader::Instruction PickleReader::kInstructions[] = {
    // Numbers and words.
    {'K', [](PickleReader& r) { r.push_number(static_cast<double>(r.take(1))); }},
    {'M', [](PickleReader& r) { r.push_number(static_cast<double>(r.take(2))); }},
    {'J', [](PickleReader& r) { r.push_number(static_cast<std::int32_t>(r.take(4))); }},
    {'G', [](PickleReader& r) { r.push_number(std::bit_cast<double>(r.take_big())); }},
    {0x8a, [](PickleReader& r) { r.push_long(r.take(1)); }},
    {0x88, [](PickleReader& r) { r.push_number(1); }},  // true
    {0x89, [](PickleReader& r) { r.push_number(0); }},  // false
    {'X', [](PickleReader& r) { r.push_word(r.take_text(r.take(4))); }},
    {0x8c, [](PickleReader& r) { r.push_word(r.take_text(r.take(1))); }},
    {'U', [](PickleReader& r) { r.push_word(r.take_text(r.take(1))); }},
    {'T', [](PickleReader& r) { r.push_word(r.take_text(r.take(4))); }},
    // Lists.
    {']', [](PickleReader& r) { r.push(Kind::List); }},
    {'a', [](PickleReader& r) { const Value v = r.pop(); r.append_to_top({v}); }},
    {'e', [](PickleReader& r) { r.append_to_top(r.pop_to_mark()); }},
    // Bytes, None and sets: not known.
    {'C', [](PickleReader& r) { r.take_text(r.take(1)), r.push(Kind::Other); }},
    {'B', [](PickleReader& r) { r.take_text(r.take(4)), r.push(Kind::Other); }},
    {'N', [](PickleReader& r) { r.push(Kind::Other); }},
    {0x8f, [](PickleReader& r) { r.push(Kind::Other); }},
    {0x90, [](PickleReader& r) { r.pop_to_mark(); }},
    // Tuples, which arguments are.
    {')', [](PickleReader& r) { r.push_tuple({}); }},
    {'t', [](PickleReader& r) { r.push_tuple(r.pop_to_mark()); }},
    {0x85, [](PickleReader& r) { r.push_tuple_of(1); }},
    {0x86, [](PickleReader& r) { r.push_tuple_of(2); }},
    {0x87, [](PickleReader& r) { r.push_tuple_of(3); }},
    // Dictionaries.
    {'}', [](PickleReader& r) { r.push(Kind::Dict); }},
    {'s', [](PickleReader& r) { r.put_one_into_top(); }},
    {'u', [](PickleReader& r) { r.put_into_top(r.pop_to_mark()); }},
    // What is named, called and built: nothing is; calls are kept for those who know them.
    {'c', [](PickleReader& r) { const auto m = r.take_line(); r.push_named(m, r.take_line()); }},
    {0x93, [](PickleReader& r) { const Value n = r.pop(), m = r.pop(); r.push_named(m, n); }},
    {'R', [](PickleReader& r) { r.call(); }},
    {0x81, [](PickleReader& r) { r.forget(2); }},
    {'b', [](PickleReader& r) { r.pop(); }},
    {'Q', [](PickleReader& r) { r.push_stored(); }},
    // The stack and the memory; a version, and a length that is not needed.
    {'(', [](PickleReader& r) { r.marks_.push_back(r.stack_.size()); }},
    {'0', [](PickleReader& r) { r.pop(); }},
    {'1', [](PickleReader& r) { r.pop_to_mark(); }},
    {'q', [](PickleReader& r) { r.remember(r.take(1)); }},
    {'r', [](PickleReader& r) { r.remember(r.take(4)); }},
    {0x94, [](PickleReader& r) { r.remember(r.memory_.size()); }},
    {'h', [](PickleReader& r) { r.recall(r.take(1)); }},
    {'j', [](PickleReader& r) { r.recall(r.take(4)); }},
    {0x80, [](PickleReader& r) { r.take(1); }},
    {0x95, [](PickleReader& r) { r.take(8); }},
};
// clang-format on

void PickleReader::run(std::uint64_t code) {
  const auto* const found = std::ranges::find(kInstructions, code, &Instruction::code);
  if (found == std::end(kInstructions)) refuse(name_, "an unknown instruction");
  found->run(*this);
}

TorchFile TorchFile::parse(Bytes file, const std::string& name) {
  Bytes pickle = file;
  if (is_zip(file)) {
    const std::optional<Bytes> inside = zip_entry(file, "/data.pkl", name);
    if (!inside) refuse(name, "a zip file without a data.pkl that is not compressed");
    if (const auto order = zip_entry(file, "/byteorder", name); order && text(*order) != "little")
      refuse(name, "elements whose highest byte comes first (byteorder)");
    pickle = *inside;
  }
  PickleReader reader(pickle, name);
  Value root = reader.read();
  // Before version 1.6 a number that says so, a version and the system come first, each in a
  // pickle.
  if (!is_zip(file) && reader.is_number(root))
    for (int i = 0; i < 3; ++i) root = reader.read();
  return reader.result(root);
}

std::optional<TorchFile::Value> TorchFile::find(Value v, std::string_view key) const {
  // The last of those that have the key, as in Python.
  for (std::size_t i = nodes_[v].items.size(); i-- > 0;)
    if (const auto& [k, value] = nodes_[v].items[i];
        nodes_[k].kind == Kind::Word && nodes_[k].word == key)
      return value;
  return std::nullopt;
}

std::vector<std::string_view> TorchFile::keys(Value v) const {
  std::vector<std::string_view> words;
  for (const auto& [k, value] : nodes_[v].items)
    if (nodes_[k].kind == Kind::Word) words.emplace_back(nodes_[k].word);
  return words;
}

std::vector<TorchFile::Member> TorchFile::members(Value v) const {
  std::vector<Member> all;
  const Node& node = nodes_[v];
  for (const auto& [k, value] : node.items) {
    const Node& key = nodes_[k];
    const bool is_whole = key.kind == Kind::Number && std::abs(key.number) <= 0x1p53 &&
                          std::trunc(key.number) == key.number;
    all.push_back({key.kind == Kind::Word ? key.word
                   : is_whole             ? std::to_string(static_cast<std::int64_t>(key.number))
                                          : std::string(),
                   value});
  }
  const bool is_list = node.kind == Kind::List || node.kind == Kind::Tuple;
  for (std::size_t i = 0; i < node.parts.size() && (is_list || node.kind == Kind::Call); ++i)
    all.push_back({is_list ? std::to_string(i) : std::string(), node.parts[i]});
  return all;
}

std::optional<double> TorchFile::number(Value v) const {
  if (nodes_[v].kind != Kind::Number) return std::nullopt;
  return nodes_[v].number;
}

std::string_view TorchFile::built_by(Value v) const {
  return nodes_[v].kind == Kind::Call ? std::string_view(nodes_[v].word) : std::string_view();
}

std::optional<TorchFile::Tensor> TorchFile::tensor(Value v) const {
  constexpr int kDeepest = 4;  // a parameter, of a class of its own, with attributes
  for (int depth = 0; depth < kDeepest && nodes_[v].kind == Kind::Call; ++depth) {
    std::string_view function = nodes_[v].word;
    const std::vector<Value>* arguments = &nodes_[v].parts;
    // (function, class, its arguments, attributes)
    if (function == "torch._tensor _rebuild_from_type_v2" && arguments->size() >= 3) {
      const Node &own = nodes_[(*arguments)[0]], &its = nodes_[(*arguments)[2]];
      if (own.kind != Kind::Named || its.kind != Kind::Tuple) return std::nullopt;
      function = own.word, arguments = &its.parts;
    }
    if (function == "torch._utils _rebuild_tensor_v2") return dense(*arguments);
    if (function != "torch._utils _rebuild_parameter" || arguments->empty()) return std::nullopt;
    v = (*arguments)[0];
  }
  return std::nullopt;
}

std::optional<TorchFile::Tensor> TorchFile::dense(const std::vector<Value>& arguments) const {
  if (arguments.size() < 4) return std::nullopt;
  // Behind shape, strides and what backward passes need: that the elements are to be negated or
  // conjugated, in a dictionary.
  constexpr std::size_t kNotes = 6;
  if (arguments.size() > kNotes && !nodes_[arguments[kNotes]].items.empty()) return std::nullopt;
  // ("storage", class, key, device, elements), where they begin, shape, strides.
  const Node& stored = nodes_[arguments[0]];
  if (stored.kind != Kind::Stored || stored.parts.size() < 5) return std::nullopt;
  Tensor t;
  t.storage = nodes_[stored.parts[1]].word;
  t.key = nodes_[stored.parts[2]].word;
  // Beyond 2^53 numbers are not exact, and no file is as long.
  const auto whole = [&](Value n) -> std::optional<std::int64_t> {
    const Node& node = nodes_[n];
    if (node.kind != Kind::Number || !(node.number >= 0 && node.number <= 0x1p53))
      return std::nullopt;
    return static_cast<std::int64_t>(node.number);
  };
  const auto begin = whole(arguments[1]);
  if (!begin) return std::nullopt;
  t.begin = *begin;
  for (const auto& [part, list] : {std::pair{2, &t.shape}, std::pair{3, &t.strides}})
    for (const Value n : nodes_[arguments[static_cast<std::size_t>(part)]].parts) {
      const auto extent = whole(n);
      if (!extent) return std::nullopt;
      list->push_back(*extent);
    }
  if (t.shape.size() != t.strides.size()) return std::nullopt;
  return t;
}

}  // namespace aloft
