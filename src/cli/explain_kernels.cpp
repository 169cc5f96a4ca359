#include "cli/explain_kernels.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/output.h"
#include "cli/table.h"
#include "passes/pass.h"
#include "plan/plan.h"
#include "runtime/current_device.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

struct Row {
  const Instruction* first;
  int count = 0;
};

std::vector<Row> rows_of(const Program& program, bool each) {
  std::map<std::string, std::size_t> known;
  std::vector<Row> rows;
  for (const Instruction& i : program.instructions) {
    std::string key = i.kernel + i.call.op.str();
    for (const BufferRef& r : i.in) key += " " + r.type.str();
    for (const BufferRef& r : i.out) key += " " + r.type.str();
    if (i.call.op == Name("fused")) key += i.call.attrs.str();
    if (each) key += " " + std::to_string(rows.size());
    const auto [at, is_new] = known.try_emplace(key, rows.size());
    if (is_new) rows.push_back({&i});
    ++rows[at->second].count;
  }
  return rows;
}

// What passes said of ops that they left alone, by identity: the last remark on each.
std::map<std::string, Remark> remarks_on_alone(const Programs& programs, const std::string& name) {
  std::map<std::string, Remark> alone;
  for (const PassTime& t : programs.pass_times(name))
    for (const Remark& r : t.report.remarks)
      if (stays_apart(r.kind)) alone[r.node] = r;
  return alone;
}

std::vector<std::string> types_of(const std::vector<BufferRef>& list) {
  std::vector<std::string> out;
  out.reserve(list.size());
  for (const BufferRef& r : list) out.push_back(r.type.str());
  return out;
}

// The first few; an update of all parameters has thousands.
std::string short_list(const std::vector<BufferRef>& list) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> types = types_of(list);
  const std::size_t all = types.size();
  if (all > kShown) types.resize(kShown);
  std::string text = fmt::format("{}", fmt::join(types, ", "));
  return all > kShown ? text + fmt::format(", and {} more", all - kShown) : text;
}

std::string how_of(const Instruction& i) {
  const PreparedKernel k = current_device().kernels().get(i.call, i.kernel);
  return k.prepared ? k.prepared->how() : "";
}

}  // namespace

void explain_kernels(const Programs& programs, const std::string& program, bool each,
                     bool as_json) {
  const std::map<std::string, Remark> remarks = remarks_on_alone(programs, program);
  json list = json::array();
  for (const Row& r : rows_of(*programs.plan().find(program), each)) {
    const Instruction& i = *r.first;
    const std::string how = how_of(i);
    const auto remark = remarks.find(i.identity);
    const bool is_alone = i.members.empty() && remark != remarks.end();
    if (as_json) {
      list.push_back({{"op", i.call.op.str()},
                      {"kernel", i.kernel},
                      {"how", how},
                      {"calls", r.count},
                      {"phase", name_of(i.phase)},
                      {"first", i.identity},
                      {"in", types_of(i.in)},
                      {"out", types_of(i.out)},
                      {"refused", i.refusals},
                      {"members", i.members}});
      if (i.call.form != ProductForm::Plain) {
        list.back()["asked_form"] = name_of(i.call.form);
        list.back()["form"] = name_of(i.form);
      }
      if (is_alone) {
        list.back()["alone"] = text_of(remark->second);
        list.back()["alone_kind"] = name_of(remark->second.kind);
      }
      continue;
    }
    std::string text = fmt::format("{:>4} x {:<28} {}  ({}) -> ({})\n", r.count, i.kernel,
                                   i.identity, short_list(i.in), short_list(i.out));
    if (!how.empty()) text += fmt::format("       by: {}\n", how);
    if (!i.members.empty())
      text += fmt::format("       stands for: {}\n", fmt::join(i.members, ", "));
    for (const std::string& why : i.refusals) text += fmt::format("       refused: {}\n", why);
    if (i.call.form != ProductForm::Plain)
      text += fmt::format("       products: {} asked for, {} computed\n", name_of(i.call.form),
                          name_of(i.form));
    if (is_alone) text += fmt::format("       {}\n", text_of(remark->second));
    print_result("{}", fitted(text));
  }
  if (as_json) print_result("{}\n", list.dump(2));
}

}  // namespace aloft::cli
