#include "files/sharded_safetensors.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace aloft {
namespace {

using Index = std::map<std::string, std::string>;  // tensor -> file

DataError bad_index(const std::string& name) {
  return DataError("E0615", "the files of a model and their index do not belong together").at(name);
}

// A file beside the index, so that it cannot point elsewhere.
bool is_beside(const std::string& file) {
  return !file.empty() && file[0] != '.' && file.find('/') == std::string::npos &&
         file.find('\0') == std::string::npos;
}

void refuse(const std::vector<std::string>& problems, const std::string& name) {
  if (problems.empty()) return;
  DataError e = bad_index(name);
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < std::min(kShown, problems.size()); ++i)
    e.add_line("saw", problems[i]);
  if (problems.size() > kShown)
    e.add_line("saw", "and " + std::to_string(problems.size() - kShown) + " more");
  e.add_line("try", "fetch the folder again: a download may have been cut short");
  throw e;
}

std::set<std::string> files_of(const Index& index) {
  std::set<std::string> files;
  for (const auto& [tensor, file] : index) files.insert(file);
  return files;
}

void refuse_missing_files(const Index& index, const Path& folder, const std::string& name) {
  std::vector<std::string> problems;
  for (const std::string& file : files_of(index)) {
    if (path_exists(folder / file)) continue;
    std::int64_t count = 0;
    for (const auto& [tensor, of] : index) count += of == file;
    problems.push_back("'" + file + "' is missing, with " + counted(count, "tensor"));
  }
  refuse(problems, name);
}

// `files`: those of the index, by name, as files_of() has them.
std::vector<std::string> differences(const Index& index, const std::vector<Safetensors>& files) {
  std::vector<std::string> problems;
  std::map<std::string, std::string> found;  // tensor -> the first file that has it
  std::size_t i = 0;
  for (const std::string& file : files_of(index)) {
    for (const TensorView& t : files[i].tensors()) {
      const auto [it, is_new] = found.emplace(t.name, file);
      if (!is_new)
        problems.push_back("'" + t.name + "' is in '" + it->second + "' and in '" + file + "'");
      else if (!index.contains(t.name))
        problems.push_back("'" + t.name + "' is in '" + file + "', and the index does not name it");
    }
    ++i;
  }
  for (const auto& [tensor, file] : index) {
    const auto it = found.find(tensor);
    if (it == found.end())
      problems.push_back("'" + tensor + "' is not in '" + file + "', which the index names");
    else if (it->second != file)
      problems.push_back("'" + tensor + "' is in '" + it->second + "', and the index names '" +
                         file + "'");
  }
  return problems;
}

}  // namespace

Index parse_safetensors_index(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_json(text);
  if (json.is_discarded()) throw bad_index(name).saw(std::string(json_problem(text)));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object() || map->empty())
    throw bad_index(name).saw("no weight_map").need("{\"weight_map\": {TENSOR: FILE, ...}}");
  Index index;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_beside(file.get<std::string>()))
      throw bad_index(name)
          .saw("tensor " + in_quotes(tensor) + " in " + json_text(file))
          .need("the name of a file beside the index");
    index.emplace(tensor, file.get<std::string>());
  }
  return index;
}

ShardedSafetensors ShardedSafetensors::of_file(const Path& path) {
  ShardedSafetensors out;
  out.files_ = std::make_shared<const std::vector<Safetensors>>(1, Safetensors::open(path));
  out.name_ = path.string();
  return out;
}

ShardedSafetensors ShardedSafetensors::of_index(const Path& path) {
  constexpr std::uint64_t kLimit = std::uint64_t{64} << 20;
  ShardedSafetensors out;
  out.name_ = path.string();
  const Index index = parse_safetensors_index(read_file(path, kLimit), out.name_);
  const Path folder = path.parent_path();
  refuse_missing_files(index, folder, out.name_);
  std::vector<Safetensors> files;
  for (const std::string& file : files_of(index)) files.push_back(Safetensors::open(folder / file));
  refuse(differences(index, files), out.name_);
  out.files_ = std::make_shared<const std::vector<Safetensors>>(std::move(files));
  return out;
}

const TensorView* ShardedSafetensors::find(std::string_view name) const& {
  for (const Safetensors& file : *files_)
    if (const TensorView* found = file.find(name)) return found;
  return nullptr;
}

const TensorView& ShardedSafetensors::at(std::string_view name) const& {
  if (const TensorView* found = find(name)) return *found;
  throw DataError("E0613", "safetensors files lack a tensor")
      .at(name_)
      .need("a tensor named " + in_quotes(name));
}

std::vector<const TensorView*> ShardedSafetensors::tensors() const& {
  std::vector<const TensorView*> all;
  for (const Safetensors& file : *files_)
    for (const TensorView& t : file.tensors()) all.push_back(&t);
  return all;
}

}  // namespace aloft
