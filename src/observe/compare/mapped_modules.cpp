#include "observe/compare/mapped_modules.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace aloft::compare {

namespace {

using Names = std::map<const ModuleNode*, std::string>;

// "fc2.Dense" of the module fc2, by its class.
std::string with_class(const ModuleNode& n) { return n.path + "." + n.kind; }

// What a line makes of the name of a cell; "" where it does not fit. Of a part of a name the first
// place counts, as msprobe has it.
std::string replaced(const NameMap::Pairs::value_type& line, const std::string& name) {
  const auto& [from, to] = line;
  const std::size_t at = from.empty() ? std::string::npos : name.find(from);
  return at == std::string::npos ? "" : name.substr(0, at) + to + name.substr(at + from.size());
}

// A whole name beats a part of one.
void read_cells(const std::vector<const ModuleNode*>& npus,
                const std::vector<const ModuleNode*>& benches, const NameMap::Pairs& lines,
                Names& names, std::vector<LineFit>& fits) {
  std::map<std::string, const ModuleNode*> known;
  for (const ModuleNode* b : benches)
    if (!b->kind.empty()) known.emplace(with_class(*b), b);
  for (const ModuleNode* n : npus) {
    if (n->kind.empty()) continue;
    const std::string own = with_class(*n);
    for (const bool is_whole : {true, false})
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (is_whole && lines[i].first != own) continue;
        const std::string other = replaced(lines[i], own);
        if (other.empty()) continue;
        fits[i].in_npu = true;
        const auto it = known.find(other);
        if (it == known.end()) continue;
        fits[i].in_bench = true;
        names.emplace(n, it->second->path);
      }
  }
}

// Goes down the first run's tree with what each module is called in the second.
class Layers {
 public:
  Layers(const NameMap& map, const std::vector<const ModuleNode*>& benches, Names& names,
         std::vector<LineFit>& fits)
      : layers_(map.layers()), names_(names), fits_(fits) {
    for (const ModuleNode* b : benches) benches_.insert(b->path);
  }

  void walk(const ModuleNode& node, const std::string& other, bool is_other) {
    around_.push_back({&node, other});
    for (const auto& child : node.children) {
      const std::string by_line = named_by_line(*child);
      const std::string name = by_line.empty() ? below(other, child->name()) : by_line;
      const bool is_said = is_other || !by_line.empty();
      if (is_said) names_.emplace(child.get(), name);
      walk(*child, name, is_said);
    }
    around_.pop_back();
  }

 private:
  static std::string below(const std::string& path, std::string_view name) {
    return path.empty() ? std::string(name) : path + "." + std::string(name);
  }
  // msprobe calls what lies around all modules TopLayer, or by the first word of entries' names.
  static bool is_of(const ModuleNode& node, std::string_view kind) {
    if (node.path.empty()) return kind == "TopLayer" || kind == "Cell" || kind == "Module";
    return node.kind == kind;
  }
  bool is_known(const std::string& path) const {
    return benches_.contains(path) || std::ranges::any_of(benches_, [&](const std::string& b) {
             return b.ends_with("." + path);  // behind what all paths begin with
           });
  }

  // By the line of the nearest module around it; "" where none names it.
  std::string named_by_line(const ModuleNode& node) {
    for (auto it = around_.rbegin(); it != around_.rend(); ++it) {
      const std::string& path = it->first->path;
      const std::string_view rest =
          std::string_view(node.path).substr(path.empty() ? 0 : path.size() + 1);
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        if (layers_[i].from != rest || !is_of(*it->first, layers_[i].kind)) continue;
        const std::string name = below(it->second, layers_[i].to);
        fits_[i].in_npu = true;
        fits_[i].in_bench = fits_[i].in_bench || is_known(name);
        return name;
      }
    }
    return "";
  }

  const std::vector<NameMap::Layer>& layers_;
  std::set<std::string> benches_;                                  // their paths
  std::vector<std::pair<const ModuleNode*, std::string>> around_;  // with their other names
  Names& names_;
  std::vector<LineFit>& fits_;
};

void read_patterns(const std::vector<const ModuleNode*>& npus,
                   const std::vector<const ModuleNode*>& benches, const NameMap& map, Names& names,
                   std::vector<LineFit>& fits) {
  std::set<std::string_view> known;
  for (const ModuleNode* b : benches) known.insert(b->path);
  for (const ModuleNode* n : npus)
    for (std::size_t i = 0; i < map.modules().size(); ++i) {
      const auto other = NameMap::other_name_by(map.modules()[i], n->path);
      if (!other) continue;
      fits[i].in_npu = true;
      fits[i].in_bench = fits[i].in_bench || known.contains(*other);
      names.emplace(n, *other);  // the first that fits
    }
}

}  // namespace

MappedModules::MappedModules(const ModuleNode& npu, const ModuleNode& bench, const NameMap& map) {
  const auto npus = all_below(npu), benches = all_below(bench);
  if (!map.cells().empty()) {
    fits_.resize(map.cells().size());
    read_cells(npus, benches, map.cells(), names_, fits_);
  } else if (!map.layers().empty()) {
    fits_.resize(map.layers().size());
    Layers(map, benches, names_, fits_).walk(npu, "", false);
  } else {
    fits_.resize(map.modules().size());
    read_patterns(npus, benches, map, names_, fits_);
  }
}

std::optional<std::string> MappedModules::other_name_of(const ModuleNode& npu) const {
  const auto it = names_.find(&npu);
  return it == names_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace aloft::compare
