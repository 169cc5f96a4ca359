#include "observe/compare/dump_file.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/text.h"
#include "observe/compare/foreign_json.h"

namespace aloft::compare {

namespace {

using Kind = ForeignJson::Kind;

constexpr std::uint64_t kLargestDump = std::uint64_t{1} << 29;

[[noreturn]] void refuse(const Path& file, std::string_view saw) {
  throw DataError("E0650", "a file of a dump cannot be read")
      .at(file.string())
      .saw(saw)
      .need("dump.json as `aloft probe run`, aloft_probe or msprobe write it");
}

// Statistics that are words: "nan", "inf", "-inf", as Aloft writes them, and what Python's JSON
// has.
std::optional<double> number_of(const ForeignJson& v) {
  if (v.kind == Kind::Number || v.kind == Kind::Bool) return v.number;
  if (v.kind == Kind::Text) return parse_double(lower(v.text));
  return std::nullopt;
}

Figure figure_of(const ForeignJson& tensor, std::string_view key) {
  Figure f;
  const ForeignJson* const v = tensor.find(key);
  if (!v || v->kind == Kind::Null) return f;
  f.number = number_of(*v);
  f.text = v->kind == Kind::Bool ? (v->number != 0 ? "True" : "False") : v->text;
  return f;
}

// Of a tensor: what is no number, and no word for that there is none, is said.
Figure number_in(const ForeignJson& tensor, std::string_view key, Record& r) {
  constexpr std::string_view kNone[] = {"", "None", "N/A", "null"};
  Figure f = figure_of(tensor, key);
  const ForeignJson* const v = tensor.find(key);
  if (!v || v->kind == Kind::Null || f.number) return f;
  if (v->kind == Kind::Text && std::ranges::find(kNone, v->text) != std::end(kNone))
    return Figure();
  r.unreadable += (r.unreadable.empty() ? "" : ", ") + std::string(key) + " is " +
                  (v->kind == Kind::Text ? "\"" + harmless(v->text) + "\"" : "no number");
  return f;
}

// Of a shape that no tensor has nothing is taken: another would be as good.
void read_shape(const ForeignJson& shape, Record& r) {
  constexpr double kMost = 0x1p53;  // elements, of which there are fewer in any memory
  double elements = 1;
  r.has_shape = shape.kind == Kind::List;
  for (const ForeignJson& n : shape.items) {
    const bool is_extent =
        n.kind == Kind::Number && n.is_whole && n.number >= 0 && n.number < kMost;
    r.has_shape = r.has_shape && is_extent;
    if (!r.has_shape) break;
    r.shape.push_back(static_cast<std::int64_t>(n.number));
    elements *= std::max(1.0, n.number);
  }
  r.has_shape = r.has_shape && elements < kMost;
  if (r.has_shape) return;
  r.shape.clear();
  std::string text;
  for (const ForeignJson& n : shape.items) text += (text.empty() ? "" : ", ") + harmless(n.text);
  r.unreadable = "its shape is [" + text + "]";
}

// What Python takes a value for: of a device, say, a dump has its name.
const char* class_of(const ForeignJson& v) {
  if (v.kind == Kind::Bool) return "bool";
  if (v.kind == Kind::Text) return "str";
  if (v.kind == Kind::List) return "list";
  if (v.kind == Kind::Object) return "dict";
  if (v.kind == Kind::Null) return "NoneType";
  return v.is_whole ? "int" : "float";
}

bool is_typed(const ForeignJson& v) { return v.find("type") != nullptr; }

bool is_tensor(std::string_view type) {
  return type == "torch.Tensor" || type == "mindspore.Tensor" || type == "numpy.ndarray";
}

// Reads what stands in an entry's lists, however deep it lies in lists and dictionaries.
class Records {
 public:
  explicit Records(Entry& entry) : entry_(entry) {}

  void add(const ForeignJson& v, Part part, const std::string& name, const std::string& own) {
    if ((v.kind == Kind::Object && !is_typed(v)) || v.kind == Kind::List) {
      for (std::size_t i = 0; i < v.items.size(); ++i) {
        const std::string at = v.kind == Kind::List ? std::to_string(i) : v.keys[i];
        add(v.items[i], part, name + "." + at, own.empty() ? at : own + "." + at);
      }
      return;
    }
    Record r;
    r.part = part, r.name = name, r.own = own;
    if (v.kind != Kind::Object)
      r.type = "N/A";
    else if (is_tensor(v.text_of("type")))
      read_tensor(v, r);
    else
      read_value(v, r);
    entry_.records.push_back(std::move(r));
  }

 private:
  static void read_tensor(const ForeignJson& v, Record& r) {
    r.is_tensor = true;
    r.type = v.text_of("dtype");
    r.is_exact = v.find("underflowed") != nullptr;
    if (const ForeignJson* const shape = v.find("shape"))
      read_shape(*shape, r);
    else
      r.has_shape = false, r.unreadable = "it has no shape";
    r.max = number_in(v, "Max", r), r.min = number_in(v, "Min", r);
    r.mean = number_in(v, "Mean", r), r.norm = number_in(v, "Norm", r);
    r.nan = number_in(v, "nan", r), r.inf = number_in(v, "inf", r);
    r.minus_inf = number_in(v, "-inf", r);
    const ForeignJson* const grad = v.find("requires_grad");
    if (grad && grad->kind == Kind::Bool) r.requires_grad = grad->number != 0;
    r.data_name = v.text_of("data_name");
    r.hash = v.text_of("md5");
  }
  // Other values show themselves in place of statistics, as msprobe has it.
  static void read_value(const ForeignJson& v, Record& r) {
    const ForeignJson* const value = v.find("value");
    r.type = "<class '" + std::string(value ? class_of(*value) : "NoneType") + "'>";
    r.max = r.min = r.mean = r.norm = figure_of(v, "value");
    if (value && value->kind == Kind::Number && !value->is_whole)
      if (r.max.text.find_first_of(".en") == std::string::npos)  // as Python prints a float
        r.max.text = r.min.text = r.mean.text = r.norm.text = r.max.text + ".0";
  }

  Entry& entry_;
};

void read_entry(const ForeignJson& v, Entry& entry) {
  if (v.kind != Kind::Object) return;
  Records records(entry);
  const bool is_update = entry.direction == Direction::ParametersUpdate;
  if (entry.direction == Direction::ParametersGrad || is_update) {
    const Part part = is_update ? Part::Update : Part::Gradient;
    for (std::size_t i = 0; i < v.items.size(); ++i)
      for (const ForeignJson& g : v.items[i].items)
        records.add(g, part, entry.name + "." + v.keys[i], v.keys[i]);
    return;
  }
  struct Place {
    std::string_view key;
    Part part;
    const char* word;
  };
  // Parameters stand behind what was given; they are taken before.
  constexpr Place kPlaces[] = {{"input_args", Part::Input, ".input"},
                               {"input", Part::Input, ".input"},
                               {"input_kwargs", Part::Input, ".input"},
                               {"parameters", Part::Parameter, ".parameters"},
                               {"output", Part::Output, ".output"}};
  for (const Place& place : kPlaces)
    if (const ForeignJson* const list = v.find(place.key))
      if (list->kind == Kind::List || list->kind == Kind::Object)
        records.add(*list, place.part, entry.name + place.word, "");
}

// A tap's name taken apart: the module's path, and the number behind '#'; nothing of another text.
struct TapPlace {
  std::string_view module;
  std::int64_t number = 0;
};
std::optional<TapPlace> place_in(std::string_view tap) {
  const std::size_t count = tap.rfind('#');
  const std::size_t slash = count == std::string_view::npos ? count : tap.rfind('/', count);
  if (slash == std::string_view::npos) return std::nullopt;
  const auto number = parse_int(tap.substr(count + 1));
  if (!number || *number < 0) return std::nullopt;
  return TapPlace{tap.substr(0, slash), *number};
}

std::map<std::string, std::string> read_parents(const Path& file) {
  std::map<std::string, std::string> parents;
  if (!path_exists(file)) return parents;
  const ForeignJson v = parse_foreign_json(read_file(file, kLargestDump), file.string());
  for (std::size_t i = 0; i < v.keys.size(); ++i)
    if (v.items[i].kind == Kind::Text || v.items[i].kind == Kind::Null)
      parents[v.keys[i]] = v.items[i].text;
  return parents;
}

// Of {"Torch.layer_norm.0.forward": ["h.0/layer_norm#0", "h.0/layer_norm#0.1"]} each name to its
// entry, and to each result which of the call's it is: a program may not have all.
void read_taps(const ForeignJson* taps, std::vector<Entry>& entries) {
  if (!taps || taps->kind != Kind::Object) return;
  std::map<std::string_view, const ForeignJson*> names;
  for (std::size_t i = 0; i < taps->keys.size(); ++i) names.emplace(taps->keys[i], &taps->items[i]);
  for (Entry& e : entries) {
    const auto it = names.find(e.name);
    if (it == names.end() || e.is_module || it->second->items.empty()) continue;
    auto name = it->second->items.begin();
    for (Record& r : e.records) {
      if (r.part != Part::Output || name == it->second->items.end()) continue;
      const std::string& text = (name++)->text;
      const std::size_t end = text.find('.', std::min(text.rfind('#'), text.size()));
      if (!place_in(std::string_view(text).substr(0, end))) continue;
      e.tap = text.substr(0, end);
      r.own = end == std::string::npos ? "0" : text.substr(end + 1);
    }
  }
}

bool is_of_framework(std::string_view line) {
  constexpr std::string_view kPlaces[] = {
      "/torch/nn/modules/", "/mindspore/nn/cell.py", "-packages/torch/", "-packages/mindspore/",
      "-packages/msprobe/"};  // site-packages; dist-packages of Debian
  return std::ranges::any_of(
      kPlaces, [&](std::string_view p) { return line.find(p) != std::string_view::npos; });
}

// Of {"0": [[entries], [lines]]} the first line that is not within a framework.
std::map<std::string, std::string> read_lines(const Path& file) {
  std::map<std::string, std::string> lines;
  if (!path_exists(file)) return lines;
  const ForeignJson v = parse_foreign_json(read_file(file, kLargestDump), file.string());
  for (const ForeignJson& group : v.items) {
    if (group.items.size() != 2) continue;
    std::string first;
    for (const ForeignJson& line : group.items[1].items) {
      const bool is_inside = is_of_framework(line.text);
      if (line.kind == Kind::Text && (first.empty() || !is_inside)) {
        first = line.text;
        if (!is_inside) break;
      }
    }
    for (const ForeignJson& entry : group.items[0].items) lines[entry.text] = first;
  }
  return lines;
}

std::optional<Direction> direction_of(std::string_view word) {
  if (word == "forward") return Direction::Forward;
  if (word == "backward") return Direction::Backward;
  if (word == "parameters_grad") return Direction::ParametersGrad;
  if (word == "parameters_update") return Direction::ParametersUpdate;
  return std::nullopt;
}

std::string joined(const std::vector<std::string_view>& parts, std::size_t from, std::size_t to) {
  std::string out;
  for (std::size_t i = from; i < to; ++i) (i > from ? out += '.' : out) += parts[i];
  return out;
}

std::optional<std::string> caller_of(const Entry& function,
                                     const std::map<std::string, std::string>& parents) {
  if (const auto place = place_in(function.tap)) return std::string(place->module);
  const auto parent = parents.find(function.name);
  if (parent == parents.end()) return std::nullopt;
  const Entry caller = parse_entry_name(parent->second);
  return caller.is_module ? caller.path : "";
}

// What is inside of attentions is computed beside them, and stands behind all else: it belongs
// before what comes of it, the k-th attention of its module.
void place_insides(std::vector<Entry>& entries) {
  const auto is_inside = [](const Entry& e) {
    return !e.tap.empty() && (e.kind == "attention_scores" || e.kind == "attention_probabilities");
  };
  using Place = std::pair<std::string, std::int64_t>;
  std::map<Place, std::vector<Entry>> insides;
  for (Entry& e : entries)
    if (is_inside(e)) insides[{e.caller.value_or(""), e.number()}].push_back(e);
  if (insides.empty()) return;
  std::vector<Entry> placed;
  placed.reserve(entries.size());
  const auto put = [&](const Place& place) {
    auto found = insides.extract(place);
    if (!found.empty()) std::ranges::move(found.mapped(), std::back_inserter(placed));
  };
  std::map<std::string, std::int64_t> attentions;  // of each module
  for (Entry& e : entries) {
    if (is_inside(e)) continue;
    if (!e.tap.empty() && e.direction == Direction::Forward && e.kind.starts_with("attention")) {
      const std::string module = e.caller.value_or("");
      put({module, attentions[module]++});
    }
    placed.push_back(std::move(e));
  }
  while (!insides.empty()) put(insides.begin()->first);
  entries = std::move(placed);
}

// Programs write an entry once: a file was put together, or edited.
void warn_of_repeated(const ForeignJson& data, std::size_t different, const Path& file) {
  if (different == data.keys.size()) return;
  std::set<std::string_view> seen;
  for (const std::string& key : data.keys)
    if (!seen.insert(key).second)
      return log_warning("{} has the entry {} twice, of {} such in all: the last of each counts",
                         file.string(), harmless(key), data.keys.size() - different);
}

}  // namespace

double Record::elements() const {
  double n = 1;
  for (const std::int64_t extent : shape) n *= static_cast<double>(extent);
  return n;
}

bool is_same_value(const Record& a, const Record& b) {
  if (a.type != b.type || a.elements() != b.elements()) return false;
  if (!a.hash.empty() && !b.hash.empty()) return a.hash == b.hash;
  const auto is_same = [](const Figure& x, const Figure& y) {
    return x.number && y.number && *x.number == *y.number;
  };
  return is_same(a.max, b.max) && is_same(a.min, b.min) && is_same(a.mean, b.mean) &&
         is_same(a.norm, b.norm);
}

Entry parse_entry_name(std::string_view name) {
  Entry e;
  e.name = name;
  e.path = name;
  const std::vector<std::string_view> parts = split(name, '.');
  const std::size_t n = parts.size();
  constexpr std::size_t kMostParts = 128;  // of a path of modules, which trees are made of
  if (n < 3 || n > kMostParts) return e;
  const bool is_module = parts[0] == "Module" || parts[0] == "Cell";
  // The number of the call stands behind the direction of modules, and before that of functions.
  const auto direction = direction_of(parts[is_module ? n - 2 : n - 1]);
  const auto call = parse_int(parts[is_module ? n - 1 : n - 2]);
  if (!direction || !call || *call < 0 || (is_module && n < 4)) return e;
  e.is_module = is_module;
  e.direction = *direction;
  e.call = *call;
  e.kind = parts[n - 3];
  e.path = is_module ? joined(parts, 1, n - 3) : joined(parts, 0, n - 2);
  return e;
}

std::int64_t Entry::number() const {
  const auto place = place_in(tap);
  return place ? place->number : call;
}

bool DumpFile::has_elements() const {
  return task == "tensor" && std::ranges::any_of(entries, [](const Entry& e) {
           return std::ranges::any_of(e.records,
                                      [](const Record& r) { return !r.data_name.empty(); });
         });
}

bool DumpFile::has_hashes() const {
  return std::ranges::any_of(entries, [](const Entry& e) {
    return std::ranges::any_of(e.records,
                               [](const Record& r) { return r.is_tensor && !r.hash.empty(); });
  });
}

Path DumpFile::elements_of(const Record& record) const {
  // A name, not a way to another folder.
  if (record.data_name.empty() || record.data_name.find('/') != std::string::npos) return {};
  return file.parent_path() / "dump_tensor_data" / record.data_name;
}

DumpFile read_dump(const Path& dump_json) {
  const ForeignJson v = parse_foreign_json(read_file(dump_json, kLargestDump), dump_json.string());
  const ForeignJson* const data = v.find("data");
  if (!data || data->kind != Kind::Object) refuse(dump_json, "no object `data` in it");
  DumpFile dump;
  dump.file = dump_json;
  dump.task = v.text_of("task"), dump.level = v.text_of("level");
  dump.framework = v.text_of("framework");
  dump.training = read_training(v.find("training"));
  // Of a key that stands there twice the last value counts, at the first one's place, as in Python.
  std::map<std::string_view, std::size_t> last;
  for (std::size_t i = 0; i < data->items.size(); ++i) last[data->keys[i]] = i;
  warn_of_repeated(*data, last.size(), dump_json);
  dump.entries.reserve(last.size());
  for (const std::string& key : data->keys) {
    const auto value = last.extract(key);
    if (value.empty()) continue;
    dump.entries.push_back(parse_entry_name(key));
    read_entry(data->items[value.mapped()], dump.entries.back());
  }
  read_taps(v.find("taps"), dump.entries);
  dump.parents = read_parents(dump_json.parent_path() / "construct.json");
  for (Entry& e : dump.entries)
    if (!e.is_module) e.caller = caller_of(e, dump.parents);
  place_insides(dump.entries);
  dump.lines = read_lines(dump_json.parent_path() / "stack.json");
  return dump;
}

}  // namespace aloft::compare
