#include "files/torch_file.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>

#include "base/error.h"

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

// Numbers in little endian; nothing behind the end.
std::optional<std::uint64_t> little(Bytes b, std::size_t at, std::size_t bytes) {
  if (at > b.size() || b.size() - at < bytes) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(b[at + i]);
  return value;
}

std::string_view text(Bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

// --- zip

constexpr std::uint64_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;

bool is_zip(Bytes file) { return little(file, 0, 4) == kLocalMark; }

// Where the directory of a zip file ends, which a comment may follow.
std::optional<std::size_t> end_record(Bytes file) {
  if (file.size() < kEndBytes) return std::nullopt;
  constexpr std::size_t kLongestComment = 65535;
  const std::size_t last = file.size() - kEndBytes;
  for (std::size_t back = 0; back <= std::min(last, kLongestComment); ++back)
    if (little(file, last - back, 4) == kEndMark) return last - back;
  return std::nullopt;
}

// The checksum that a zip file has of each entry.
std::uint32_t crc32(Bytes bytes) {
  std::uint32_t crc = ~0u;
  for (const std::byte b : bytes) {
    crc ^= static_cast<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

// The bytes of the entry ".../data.pkl", which torch.save does not compress. DataError E0832 where
// they are not those that were written.
std::optional<Bytes> pickle_in_zip(Bytes file, const std::string& file_name) {
  const std::optional<std::size_t> end = end_record(file);
  if (!end) return std::nullopt;
  std::size_t at = little(file, *end + 16, 4).value_or(file.size());
  while (little(file, at, 4) == kEntryMark && file.size() - at >= kEntryBytes) {
    const auto of = [&](std::size_t offset, std::size_t n) {
      return *little(file, at + offset, n);
    };
    const std::size_t name = of(28, 2), extra = of(30, 2), comment = of(32, 2);
    if (file.size() - at - kEntryBytes < name) return std::nullopt;
    if (text(file.subspan(at + kEntryBytes, name)).ends_with("/data.pkl")) {
      const std::size_t size = of(24, 4), local = of(42, 4);
      if (of(10, 2) != 0 || little(file, local, 4) != kLocalMark) return std::nullopt;
      const auto its_name = little(file, local + 26, 2), its_extra = little(file, local + 28, 2);
      if (!its_name || !its_extra) return std::nullopt;
      const std::size_t begin = local + kLocalBytes + *its_name + *its_extra;
      if (begin > file.size() || file.size() - begin < size) return std::nullopt;
      const Bytes pickle = file.subspan(begin, size);
      if (crc32(pickle) != of(16, 4))
        refuse(file_name, "a damaged zip file: its data.pkl has another checksum (CRC-32)");
      return pickle;
    }
    at += kEntryBytes + name + extra + comment;
  }
  return std::nullopt;
}

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
    push(module == "collections" && name == "OrderedDict" ? Kind::OrderedDict : Kind::Other);
  }
  void push_named(Value module, Value name) {
    push_named(file_.nodes_[module].word, file_.nodes_[name].word);
  }
  void call() {
    pop();  // arguments
    const bool is_dict = file_.nodes_[pop()].kind == Kind::OrderedDict;
    push(is_dict ? Kind::Dict : Kind::Other);
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
    // Bytes, None, lists, sets and tuples: not known.
    {'C', [](PickleReader& r) { r.take_text(r.take(1)), r.push(Kind::Other); }},
    {'B', [](PickleReader& r) { r.take_text(r.take(4)), r.push(Kind::Other); }},
    {'N', [](PickleReader& r) { r.push(Kind::Other); }},
    {')', [](PickleReader& r) { r.push(Kind::Other); }},
    {']', [](PickleReader& r) { r.push(Kind::Other); }},
    {0x8f, [](PickleReader& r) { r.push(Kind::Other); }},
    {'a', [](PickleReader& r) { r.pop(); }},          // an element of the list below it
    {'e', [](PickleReader& r) { r.pop_to_mark(); }},  // elements
    {0x90, [](PickleReader& r) { r.pop_to_mark(); }},
    {'t', [](PickleReader& r) { r.pop_to_mark(), r.push(Kind::Other); }},
    {0x85, [](PickleReader& r) { r.forget(1); }},
    {0x86, [](PickleReader& r) { r.forget(2); }},
    {0x87, [](PickleReader& r) { r.forget(3); }},
    // Dictionaries.
    {'}', [](PickleReader& r) { r.push(Kind::Dict); }},
    {'s', [](PickleReader& r) { r.put_one_into_top(); }},
    {'u', [](PickleReader& r) { r.put_into_top(r.pop_to_mark()); }},
    // What is named, called and built: nothing is, but for a dictionary that keeps its order.
    {'c', [](PickleReader& r) { const auto m = r.take_line(); r.push_named(m, r.take_line()); }},
    {0x93, [](PickleReader& r) { const Value n = r.pop(), m = r.pop(); r.push_named(m, n); }},
    {'R', [](PickleReader& r) { r.call(); }},
    {0x81, [](PickleReader& r) { r.forget(2); }},
    {'b', [](PickleReader& r) { r.pop(); }},
    {'Q', [](PickleReader& r) { r.forget(1); }},
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
    const std::optional<Bytes> inside = pickle_in_zip(file, name);
    if (!inside) refuse(name, "a zip file without a data.pkl that is not compressed");
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

std::optional<double> TorchFile::number(Value v) const {
  if (nodes_[v].kind != Kind::Number) return std::nullopt;
  return nodes_[v].number;
}

}  // namespace aloft
