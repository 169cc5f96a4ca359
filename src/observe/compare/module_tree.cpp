#include "observe/compare/module_tree.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "observe/compare/mapped_modules.h"

namespace aloft::compare {

namespace {

using Nodes = std::vector<const ModuleNode*>;

void collect(const ModuleNode& node, Nodes& all) {
  for (const auto& c : node.children) {
    all.push_back(c.get());
    collect(*c, all);
  }
}

double add_up(ModuleNode& node) {
  for (const auto& c : node.children) node.weights += add_up(*c);
  return node.weights;
}

// Pairs modules of two trees, and remembers which have a partner.
class Pairing {
 public:
  Pairing(const ModuleNode& npu, const ModuleNode& bench, const NameMap& map) {
    const Nodes npus = all_below(npu), benches = all_below(bench);
    const MappedModules mapped(npu, bench, map);
    std::map<std::string_view, const ModuleNode*> by_path;
    for (const ModuleNode* b : benches) by_path[b->path] = b;
    const auto pair_if_there = [&](const ModuleNode* n, const std::string& path) {
      if (const auto it = by_path.find(path); it != by_path.end()) pair(*n, *it->second);
    };
    for (const ModuleNode* n : npus)
      if (const auto other = mapped.other_name_of(*n)) pair_if_there(n, *other);
    const auto [ours, theirs] = beginnings(npus, benches);
    const auto without = [&ours = ours](std::string_view path) {
      if (path.starts_with(ours)) path.remove_prefix(ours.size());
      return std::string(path);
    };
    for (const ModuleNode* n : npus)
      if (const auto other = mapped.other_name_of(*n)) pair_if_there(n, theirs + without(*other));
    for (const ModuleNode* n : npus) {
      const std::string path = without(n->path);
      pair_if_there(n, theirs + path);
      pair_if_there(n, path);
      pair_if_there(n, n->path);
    }
    align(below(npu, ours), below(bench, theirs));
  }

  std::map<std::string, std::string> result() const {
    std::map<std::string, std::string> paths;
    for (const auto& [n, b] : partners_) paths[n->path] = b->path;
    return paths;
  }

 private:
  void pair(const ModuleNode& n, const ModuleNode& b) {
    if (partners_.contains(&n) || taken_.contains(&b)) return;
    partners_[&n] = &b;
    taken_.insert(&b);
  }

  // What is to be taken off paths, of each side, so that the most are the same.
  static std::pair<std::string, std::string> beginnings(const Nodes& npus, const Nodes& benches) {
    const auto candidates = [](const Nodes& nodes) {
      std::set<std::string> found{""};
      for (const ModuleNode* n : nodes)
        if (std::ranges::count(n->path, '.') < 3 && !n->children.empty())
          found.insert(n->path + ".");
      return found;
    };
    const auto without = [](const Nodes& nodes, const std::string& beginning) {
      std::set<std::string_view> paths;
      for (const ModuleNode* n : nodes)
        if (n->path.starts_with(beginning))
          paths.insert(std::string_view(n->path).substr(beginning.size()));
      return paths;
    };
    std::pair<std::string, std::string> best;
    std::size_t most = 0;
    const auto consider = [&](const std::string& ours, const std::string& theirs) {
      const auto a = without(npus, ours), b = without(benches, theirs);
      const auto same = static_cast<std::size_t>(
          std::ranges::count_if(a, [&](std::string_view path) { return b.contains(path); }));
      if (same > most) most = same, best = {ours, theirs};
    };
    // One of the two sides has something before the other's paths, never both.
    for (const std::string& theirs : candidates(benches)) consider("", theirs);
    for (const std::string& ours : candidates(npus)) consider(ours, "");
    return best;
  }

  // The module whose path, and a dot, that is; the root where it is empty.
  static const ModuleNode& below(const ModuleNode& root, const std::string& beginning) {
    const ModuleNode* at = &root;
    for (const std::string_view part : split(beginning, '.'))
      for (const auto& child : at->children)
        if (child->name() == part) {
          at = child.get();
          break;
        }
    return *at;
  }

  static bool is_alike(const ModuleNode& n, const ModuleNode& b) {
    return n.weights > 0 && n.weights == b.weights && n.children.empty() == b.children.empty();
  }

  // Pairs what lies below two modules that are the same, or the roots.
  void align(const ModuleNode& n, const ModuleNode& b) {
    for (const auto& child : n.children)
      for (const auto& other : b.children)
        if (child->name() == other->name() && child->weights == other->weights)
          pair(*child, *other);
    std::size_t next = 0;
    for (const auto& child : n.children) {
      if (partners_.contains(child.get())) continue;
      for (std::size_t i = next; i < b.children.size(); ++i) {
        const ModuleNode& other = *b.children[i];
        if (taken_.contains(&other) || !is_alike(*child, other)) continue;
        pair(*child, other);
        next = i + 1;
        break;
      }
    }
    for (const auto& child : n.children)
      if (const auto it = partners_.find(child.get()); it != partners_.end())
        align(*child, *it->second);
  }

  std::map<const ModuleNode*, const ModuleNode*> partners_;
  std::set<const ModuleNode*> taken_;
};

// The node of a path; made where there is none.
ModuleNode* node_at(ModuleNode& root, std::string_view path) {
  ModuleNode* at = &root;
  for (const std::string_view part : split(path, '.')) {
    ModuleNode* next = at->child(part);
    if (!next) {
      next = at->children.emplace_back(std::make_unique<ModuleNode>()).get();
      next->path = at->path.empty() ? std::string(part) : at->path + "." + std::string(part);
    }
    at = next;
  }
  return at;
}

}  // namespace

std::vector<const ModuleNode*> all_below(const ModuleNode& node) {
  Nodes all;
  collect(node, all);
  return all;
}

ModuleNode* ModuleNode::child(std::string_view name) {
  const auto it = std::ranges::find_if(children, [&](const auto& c) { return c->name() == name; });
  return it == children.end() ? nullptr : it->get();
}

std::string_view ModuleNode::name() const {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string_view(path) : std::string_view(path).substr(dot + 1);
}

std::unique_ptr<ModuleNode> module_tree(const DumpFile& dump) {
  auto root = std::make_unique<ModuleNode>();
  for (const Entry& e : dump.entries) {
    if (e.direction != Direction::Forward) continue;
    // A dump of functions alone may say by which modules they are called.
    if (!e.is_module && e.caller && !e.caller->empty()) node_at(*root, *e.caller);
    if (!e.is_module || e.path.empty()) continue;
    ModuleNode* const at = node_at(*root, e.path);
    if (!at->kind.empty()) continue;  // a further call
    at->kind = e.kind;
    for (const Record& r : e.records)
      if (r.part == Part::Parameter && r.is_tensor) at->weights += r.elements();
  }
  add_up(*root);
  return root;
}

std::map<std::string, std::string> pair_modules(const ModuleNode& npu, const ModuleNode& bench,
                                                const NameMap& map) {
  return Pairing(npu, bench, map).result();
}

}  // namespace aloft::compare
