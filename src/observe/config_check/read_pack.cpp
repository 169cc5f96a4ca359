#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "files/zip_files.h"
#include "observe/compare/foreign_json.h"
#include "observe/config_check/pack.h"
#include "observe/config_check/settings_file.h"

namespace aloft::config_check {

namespace {

using compare::ForeignJson;
using Kind = ForeignJson::Kind;

// What a pack unpacks to at most, in bytes; msprobe's own bound.
constexpr std::uint64_t kMostBytes = std::uint64_t{128} << 20;

class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) { side_.name = name; }

  Side read(const std::map<std::string, std::string>& files) {
    if (const auto it = files.find("aloft.json"); it != files.end()) read_ours(it->second);
    bool is_pack = false;
    for (const auto& [file, text] : files) {
      file_ = file;
      is_pack = read_file(file, text) || is_pack;
    }
    if (!is_pack) refuse("no file of a packed configuration");
    const auto by_place = [](const StepTensors& x, const StepTensors& y) {
      return std::pair(x.step, x.rank) < std::pair(y.step, y.rank);
    };
    std::ranges::sort(side_.batches, by_place);
    std::ranges::sort(side_.weights, by_place);
    return std::move(side_);
  }

  [[noreturn]] void refuse(std::string_view saw) const {
    throw DataError("E0845", "a packed configuration cannot be read")
        .at(file_.empty() ? name_ : name_ + ", " + file_)
        .saw(saw)
        .need(
            "the zip file that `msprobe config_check -d` or `aloft probe check-config --pack` "
            "wrote");
  }

 private:
  ForeignJson json(const std::string& text) const {
    try {
      return compare::parse_foreign_json(text, file_);
    } catch (const DataError&) {
      refuse("text that is not JSON");
    }
  }

  bool read_file(const std::string& file, const std::string& text) {
    const std::vector<std::string_view> parts = split(file, '/');
    if (file == "env") {
      read_environment(json(text));
    } else if (file == "pip") {
      read_packages(text);
    } else if (parts.size() == 2 && parts[0] == "hyperparameters") {
      const std::string_view which = parts[1] == "hyperparameters_dynamic.json"  ? "dynamic"
                                     : parts[1] == "hyperparameters_static.json" ? "static"
                                                                                 : "";
      if (which.empty()) return false;
      read_settings(json(text), side_.settings[std::string(which)]);
    } else if (parts.size() == 4 && parts[0] == "dataset" && parts[3] == "dataset.json") {
      add_step(side_.batches, parts, json(text));
    } else if (parts.size() == 4 && parts[0] == "weights" && parts[3] == "weight.json") {
      add_step(side_.weights, parts, json(text));
    } else if (parts.size() == 2 && parts[0] == "random" && parts[1].ends_with(".json")) {
      read_random(number_behind("rank", parts[1].substr(0, parts[1].size() - 5)), json(text));
    } else {
      return false;
    }
    return true;
  }

  std::int64_t number_behind(std::string_view word, std::string_view text) const {
    const auto number = text.starts_with(word) ? parse_int(text.substr(word.size()))
                                               : std::optional<std::int64_t>();
    if (!number || *number < 0) refuse("a name without a number behind \"" + std::string(word));
    return *number;
  }

  void read_environment(const ForeignJson& all) {
    if (all.kind != Kind::Object) refuse("no object");
    for (std::size_t i = 0; i < all.keys.size(); ++i)
      side_.environment[all.keys[i]] = all.items[i].text;
    if (!has_ours_) side_.is_whole_environment = true;
  }

  void read_packages(std::string_view text) {
    for (const std::string_view line : split(text, '\n')) {
      const std::size_t sign = line.find('=');
      if (sign == std::string_view::npos) continue;
      const std::string_view version = trim(line.substr(sign + 1));
      side_.packages[std::string(trim(line.substr(0, sign)))] =
          version.substr(std::min(version.size(), version.find_first_not_of('=')));
    }
  }

  void read_settings(const ForeignJson& all, std::vector<Setting>& to) {
    if (all.kind != Kind::Object) refuse("no object");
    for (std::size_t i = 0; i < all.keys.size(); ++i) add_setting(all.keys[i], all.items[i], to);
  }
  void add_setting(const std::string& key, const ForeignJson& v, std::vector<Setting>& to) {
    if (v.kind == Kind::Object) {
      // msprobe's words for a key that several files have; the last counts, as in a program.
      const ForeignJson* const several = v.find("values");
      if (several && v.find("description") && several->kind == Kind::List &&
          !several->items.empty())
        return add_setting(key, several->items.back(), to);
      for (std::size_t i = 0; i < v.keys.size(); ++i)
        add_setting(key + "." + v.keys[i], v.items[i], to);
      return;
    }
    if (v.kind == Kind::List && std::ranges::any_of(v.items, [](const ForeignJson& item) {
          return item.kind == Kind::Object;
        })) {
      for (std::size_t i = 0; i < v.items.size(); ++i)
        add_setting(key + "." + std::to_string(i), v.items[i], to);
      return;
    }
    // Of an option without a value msprobe takes the next option for it.
    const bool is_flag = !has_ours_ && v.kind == Kind::Text && v.text.starts_with("--");
    Setting s{key, is_flag ? nlohmann::ordered_json(true) : value_of(v), "",
              defaults_.contains(key)};
    if (harmless_.contains(key)) s.is_harmless = true;
    if (decisive_.contains(key)) s.is_harmless = false;
    s.is_untyped = v.kind == Kind::Text && (!untyped_ || untyped_->contains(key));
    s.is_quoted = s.is_untyped && quoted_.contains(key);
    to.push_back(std::move(s));
  }

  void add_step(std::vector<StepTensors>& to, const std::vector<std::string_view>& parts,
                const ForeignJson& all) {
    StepTensors step{number_behind("step", parts[1]), number_behind("rank", parts[2])};
    add_tensors(all, "", step);
    const std::string folder =
        join(std::vector<std::string>{std::string(parts[0]), std::string(parts[1]),
                                      std::string(parts[2])},
             "/");
    if (const auto it = hashes_.find(folder); it != hashes_.end()) {
      if (it->second.size() != step.tensors.size()) refuse("another number of tensors than hashes");
      for (std::size_t i = 0; i < step.tensors.size(); ++i) {
        NamedTensor& t = step.tensors[i];
        const NamedTensor& ours = it->second[i];
        t.name = ours.name;
        t.facts.shape = ours.facts.shape;
        t.facts.hashes = ours.facts.hashes;
      }
    }
    to.push_back(std::move(step));
  }

  void add_tensors(const ForeignJson& v, const std::string& name, StepTensors& to) {
    const auto figure = [&](const char* key) -> std::optional<double> {
      const ForeignJson* const f = v.find(key);
      if (!f) return std::nullopt;
      if (f->kind == Kind::Number) return f->number;
      return f->kind == Kind::Text ? parse_double(f->text) : std::nullopt;
    };
    const auto max = figure("max"), min = figure("min"), mean = figure("mean"),
               norm = figure("norm");
    if (max && min && mean && norm) {
      to.tensors.push_back({name, {*max, *min, *mean, *norm}});
      return;
    }
    if (v.kind != Kind::Object) return;
    for (std::size_t i = 0; i < v.keys.size(); ++i)
      add_tensors(v.items[i], name.empty() ? v.keys[i] : name + "." + v.keys[i], to);
  }

  void read_random(std::int64_t rank, const ForeignJson& all) {
    for (std::size_t i = 0; i < all.keys.size(); ++i)
      for (const ForeignJson& entry : all.items[i].items) {
        const ForeignJson *const count = entry.find("count"), *const stack = entry.find("stack");
        if (!count || !stack) refuse("a random call without a count or a stack");
        RandomCalls calls{all.keys[i], rank, {}, parse_int(count->text).value_or(0)};
        for (const ForeignJson& frame : stack->items) calls.stack.push_back(frame.text);
        side_.random.push_back(std::move(calls));
      }
  }

  void read_ours(const std::string& text) {
    file_ = "aloft.json";
    has_ours_ = true;
    const ForeignJson ours = json(text);
    if (const ForeignJson* const v = ours.find("is_whole_environment"))
      side_.is_whole_environment = v->number != 0;
    if (const ForeignJson* const v = ours.find("in_use"); v && v->kind == Kind::Object)
      for (std::size_t i = 0; i < v->items.size(); ++i) side_.in_use[v->keys[i]] = v->items[i].text;
    if (const std::string_view seed = ours.text_of("seed"); !seed.empty()) side_.seed = seed;
    side_.random_place = ours.text_of("random_place");
    const auto texts = [&](const char* key, const auto& take) {
      if (const ForeignJson* const list = ours.find(key))
        for (const ForeignJson& item : list->items) take(item.text);
    };
    texts("first_draws", [&](const std::string& t) { side_.first_draws.push_back(t); });
    texts("defaults", [&](const std::string& t) { defaults_.insert(t); });
    texts("harmless", [&](const std::string& t) { harmless_.insert(t); });
    texts("decisive", [&](const std::string& t) { decisive_.insert(t); });
    if (ours.find("untyped")) untyped_.emplace();
    texts("untyped", [&](const std::string& t) { untyped_->insert(t); });
    texts("quoted", [&](const std::string& t) { quoted_.insert(t); });
    const ForeignJson* const tensors = ours.find("tensors");
    if (!tensors) return;
    for (std::size_t i = 0; i < tensors->keys.size(); ++i)
      for (const ForeignJson& t : tensors->items[i].items)
        hashes_[tensors->keys[i]].push_back(tensor_of(t));
  }
  NamedTensor tensor_of(const ForeignJson& v) const {
    NamedTensor t{std::string(v.text_of("name")), {}};
    if (const ForeignJson* const shape = v.find("shape"))
      for (const ForeignJson& n : shape->items) {
        const auto extent = parse_int(n.text);
        if (!extent || *extent < 0) refuse("a shape that is none");
        t.facts.shape.push_back(*extent);
      }
    if (v.find("ordered")) {
      const auto hash = [&](const char* key) {
        const auto h = parse_hex16(v.text_of(key));
        if (!h) refuse("a hash that is none");
        return *h;
      };
      t.facts.hashes = {hash("ordered"), hash("any_order"), hash("transposed")};
      t.facts.hashes->any_rows = hash("any_rows");
      if (const ForeignJson* const rows = v.find("rows"))
        for (const ForeignJson& row : rows->items)
          if (const auto h = parse_hex16(row.text)) t.facts.hashes->rows.push_back(*h);
    }
    return t;
  }

  const std::string& name_;
  std::string file_;  // that is being read
  Side side_;
  bool has_ours_ = false;
  std::set<std::string> defaults_, harmless_, decisive_, quoted_;
  std::optional<std::set<std::string>> untyped_;  // not of a pack that does not say
  std::map<std::string, std::vector<NamedTensor>, std::less<>> hashes_;  // by folder
};

}  // namespace

Side parse_pack(std::span<const std::byte> file, const std::string& name) {
  Reader reader(name);
  std::map<std::string, std::string> files;
  try {
    files = read_zip(file, kMostBytes);
  } catch (const ZipError& e) {
    reader.refuse(e.what());
  }
  return reader.read(files);
}

Side read_pack(const Path& path) {
  const MappedFile file(path);
  return parse_pack(file.bytes(), path.string());
}

}  // namespace aloft::config_check
