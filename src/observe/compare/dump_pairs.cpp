#include "observe/compare/dump_pairs.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/folder.h"
#include "base/terminal.h"
#include "base/text.h"

namespace aloft::compare {

namespace {

constexpr const char* kDump = "dump.json";

struct Found {
  std::string step, rank;
  Path file;
};

void find_processes(const Path& folder, const std::string& step, std::vector<Found>& found) {
  if (path_exists(folder / kDump)) {
    found.push_back({step, "", folder / kDump});
    return;
  }
  for (const Path& inner : list_folder(folder)) {
    const std::string name = inner.filename().string();
    const bool is_process = name.starts_with("rank") || name.starts_with("proc");
    if (is_process && path_exists(inner / kDump)) found.push_back({step, name, inner / kDump});
  }
}

// `empty`: the folders of steps that have no dump in them.
std::vector<Found> dumps_of_folder(const Path& path, std::vector<std::string>& empty) {
  std::vector<Found> found;
  find_processes(path, "", found);
  for (const Path& inner : list_folder(path))
    if (const std::string name = inner.filename().string();
        name.starts_with("step") && is_folder(inner)) {
      const std::size_t before = found.size();
      find_processes(inner, name, found);
      if (found.size() == before) empty.push_back(name);
    }
  return found;
}

// Of a run's directory what its probe wrote there.
std::vector<Found> dumps_in(const Path& path, std::vector<std::string>& empty) {
  if (is_file(path) && path.extension() == ".toml")
    throw DataError("E0651", "nothing to compare")
        .at(path.string())
        .saw("a recipe, which is no dump")
        .advice("aloft probe run " + in_shell(path.string()) +
                " --out DIR makes one; two recipes: aloft probe check-config A B");
  if (is_file(path)) return {{"", "", path}};
  if (!is_folder(path))
    throw DataError("E0651", "nothing to compare").at(path.string()).saw("no such file or folder");
  std::vector<Found> found = dumps_of_folder(path, empty);
  if (found.empty() && is_folder(path / "probe")) found = dumps_of_folder(path / "probe", empty);
  if (found.empty() && path_exists(path / "run.json"))
    throw DataError("E0651", "nothing to compare")
        .at(path.string())
        .saw("a run whose steps were not probed")
        .advice("aloft probe run " + in_shell(path.string()) +
                " --at N --out DIR makes a dump of a step that it has made");
  if (found.empty())
    throw DataError("E0651", "nothing to compare")
        .at(path.string())
        .saw("no dump.json in it, nor in step*/rank*/")
        .advice("name what `aloft probe run --out`, aloft_probe or msprobe wrote");
  return found;
}

// Of run/step12/rank0/dump.json, or step12/dump.json, 12; 0 of other folders.
std::int64_t number_of_step(const Path& dump_json) {
  constexpr std::string_view kStep = "step";
  Path folder = std::filesystem::absolute(dump_json).lexically_normal().parent_path();
  for (int outer = 0; outer < 2; ++outer, folder = folder.parent_path()) {
    const std::string name = folder.filename().string();
    if (!name.starts_with(kStep)) continue;
    const auto number = parse_int(std::string_view(name).substr(kStep.size()));
    return number && *number > 0 ? *number : 0;
  }
  return 0;
}

// Where each side has but one, the names say nothing.
void forget_single(std::vector<Found>& npu, std::vector<Found>& bench, std::string Found::*name) {
  const auto is_single = [&](const std::vector<Found>& all) {
    return std::ranges::all_of(all, [&](const Found& f) { return f.*name == all[0].*name; });
  };
  if (!is_single(npu) || !is_single(bench)) return;
  for (Found& f : npu) f.*name = "";
  for (Found& f : bench) f.*name = "";
}

std::vector<std::string> without_partner(const std::vector<Found>& ours,
                                         const std::vector<Found>& theirs) {
  std::vector<std::string> names;
  for (const Found& f : ours)
    if (std::ranges::none_of(theirs, [&](const Found& other) {
          return f.step == other.step && f.rank == other.rank;
        }))
      names.push_back(f.step + (f.step.empty() || f.rank.empty() ? "" : " ") + f.rank);
  return names;
}

// "step1, step2, step3 and 4 more of ported"; "" of none.
std::string names_of(std::vector<std::string> all, const Path& dump) {
  constexpr std::size_t kNamed = 3;
  std::ranges::sort(all, {}, [](const std::string& name) { return std::pair(name.size(), name); });
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kNamed); ++i)
    text += (text.empty() ? "" : ", ") + all[i];
  if (all.size() > kNamed) text += " and " + std::to_string(all.size() - kNamed) + " more";
  return text.empty() ? "" : text + " of " + dump.string();
}

}  // namespace

std::vector<DumpPair> pair_dump_files(const Path& npu, const Path& bench, std::string* alone) {
  std::vector<std::string> our_empty, their_empty;
  std::vector<Found> ours = dumps_in(npu, our_empty), theirs = dumps_in(bench, their_empty);
  forget_single(ours, theirs, &Found::step);
  forget_single(ours, theirs, &Found::rank);
  std::vector<DumpPair> pairs;
  for (const Found& n : ours)
    for (const Found& b : theirs)
      if (n.step == b.step && n.rank == b.rank) {
        const std::int64_t number = number_of_step(n.file);
        const bool is_one = number == number_of_step(b.file);
        pairs.push_back({n.file, b.file, n.step, n.rank, is_one ? number : 0});
      }
  if (pairs.empty())
    throw DataError("E0651", "nothing to compare")
        .at(npu.string() + " and " + bench.string())
        .saw("no step and process that both have")
        .advice("name the folders of single steps");
  // "step10" behind "step9".
  std::ranges::stable_sort(pairs, [](const DumpPair& a, const DumpPair& b) {
    return std::pair(a.step.size(), a.step) < std::pair(b.step.size(), b.step);
  });
  if (!alone) return pairs;
  const auto say = [&](const std::string& names, const char* what) {
    if (!names.empty()) *alone += (alone->empty() ? "" : "; ") + names + what;
  };
  alone->clear();
  say(names_of(without_partner(ours, theirs), npu), "");
  say(names_of(without_partner(theirs, ours), bench), "");
  for (const auto& [empty, dump] : {std::pair(our_empty, npu), std::pair(their_empty, bench)})
    say(names_of(empty, dump), empty.size() == 1 ? " has no dump.json" : " have no dump.json");
  return pairs;
}

}  // namespace aloft::compare
