#include "train/acc_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/text.h"
#include "observe/compare/tensor_reader.h"
#include "observe/probe/step_folder.h"
#include "ops/evaluate.h"
#include "ops/values_of_update.h"
#include "train/call_figures.h"
#include "types/attrs.h"

namespace aloft {

namespace {

using nlohmann::json;

constexpr std::uint64_t kMostOfDump = std::uint64_t{4} << 30;

[[noreturn]] void refuse(const Path& file, const std::string& saw) {
  throw DataError("E0863", "the dump has no calls that could be made again")
      .at(file.string())
      .saw(saw)
      .need("what `aloft probe run --task acc_check` writes")
      .advice("make the dump anew");
}

// step0/rank/dump.json and its like, in order of their numbers. `unread` gets the steps, and their
// processes, that have none.
std::vector<Path> dumps_in(const Path& dump, std::vector<CheckedDump::Unread>& unread) {
  if (!is_folder(dump)) return {dump};
  std::vector<Path> found;
  if (path_exists(dump / "dump.json")) found.push_back(dump / "dump.json");
  for (const Path& step : list_folder(dump)) {
    const std::string name = step.filename().string();
    if (!name.starts_with("step") || !is_folder(step)) continue;
    const std::size_t before = found.size() + unread.size();
    for (const Path& rank : list_folder(step))
      if (path_exists(rank / "dump.json"))
        found.push_back(rank / "dump.json");
      else if (probe::step_of_folder(name) && is_folder(rank))
        unread.push_back({name, "there is no " + (rank / "dump.json").string()});
    if (probe::step_of_folder(name) && found.size() + unread.size() == before)
      unread.push_back({name, "there is no dump.json in " + step.string()});
  }
  std::ranges::sort(found, {}, [](const Path& p) {
    const std::string text = p.string();
    return std::pair(text.size(), text);
  });
  if (found.empty()) refuse(dump, "no step*/rank*/dump.json");
  return found;
}

DType dtype_of(const std::string& torch) {
  constexpr std::pair<std::string_view, DType> names[] = {
      {"torch.float64", DType::F64}, {"torch.float32", DType::F32}, {"torch.bfloat16", DType::BF16},
      {"torch.float16", DType::F16}, {"torch.int64", DType::I64},   {"torch.int32", DType::I32},
      {"torch.uint8", DType::U8},    {"torch.int8", DType::I8},     {"torch.bool", DType::Bool}};
  for (const auto& [name, type] : names)
    if (name == torch) return type;
  throw UserError("E0102", "a tensor of a type that there is not").saw(torch);
}

// The elements of a file, integers whole.
std::vector<HostNumber> numbers_of(const compare::Elements& e) {
  std::vector<HostNumber> all(e.values.begin(), e.values.end());
  for (std::size_t i = 0; i < e.rests.size(); ++i) {
    const double v = e.values[i];  // of 2^63, which only a rest makes an i64, the sum wraps back
    const auto near = v < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(v))
                            : static_cast<std::uint64_t>(v);
    const auto rest = static_cast<std::uint64_t>(static_cast<std::int64_t>(e.rests[i]));
    all[i] = HostNumber::of(static_cast<std::int64_t>(near + rest));
  }
  return all;
}

// The elements of a record, from its file beside the dump. `contradiction`: the first of a call's
// figures that its tensors are not of.
HostArray tensor_of(const json& record, const Path& folder, std::string& contradiction) {
  HostArray a;
  const std::string type = record.at("dtype").get<std::string>();
  a.dtype = dtype_of(type);
  for (const json& extent : record.at("shape")) {
    if (!extent.is_number_integer())  // 3.7e65 is no extent, and no integer holds it
      throw DataError("E0863", "a record of the dump has a shape that is none")
          .at(folder.string())
          .saw(extent.dump())
          .need("whole numbers");
    a.shape.push_back(extent.get<std::int64_t>());
  }
  const std::string name = record.at("data_name").get<std::string>();
  if (name.find('/') != std::string::npos || name.starts_with("."))
    throw DataError("E0863", "a record of the dump names a file outside of it")
        .at(folder.string())
        .saw(in_quotes(name))
        .need("the name of a file in the folder");
  a.values = numbers_of(compare::read_tensor_file(folder / name, type, a.shape));
  if (contradiction.empty())
    if (const std::string figure = contradicted_figure(record, a); !figure.empty())
      contradiction = name + " is not what dump.json says: " + figure;
  return a;
}

std::vector<HostArray> tensors_of(const json& list, const Path& folder,
                                  std::string& contradiction) {
  std::vector<HostArray> all;
  for (const json& record : list) all.push_back(tensor_of(record, folder, contradiction));
  return all;
}

std::vector<TensorType> types_of(const std::vector<HostArray>& all) {
  std::vector<TensorType> types;
  for (const HostArray& a : all) types.push_back({a.dtype, Shape::of(a.shape)});
  return types;
}

// What the op makes of the operands has the shapes that were dumped: nothing is computed, or
// allocated, before that is known.
void check_shapes(const OpDef& op, const Attrs& attrs, CallTypes in, CallTypes out) {
  const std::vector<TensorType> inferred = infer_types(op, attrs, in, current_where());
  if (inferred.size() != out.size())
    throw UserError("E0309", "the call has another number of results than the op gives")
        .saw(std::to_string(out.size()))
        .need(std::to_string(inferred.size()));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (inferred[i].shape != out[i].shape)
      throw UserError("E0309", "a result has another shape than the op gives")
          .saw(out[i].str())
          .need(inferred[i].str());
}

// The float type of an operand that has the fewest bits.
DType coarsest_of(const std::vector<TensorType>& operands) {
  DType coarsest = DType::F64;
  for (const TensorType& t : operands)
    if (is_float(t.dtype) && t.dtype != DType::F64 &&
        (coarsest == DType::F64 || t.dtype == DType::BF16 ||
         (t.dtype == DType::F16 && coarsest == DType::F32)))
      coarsest = t.dtype;
  return coarsest;
}

bool is_low(const HostArray& a) { return a.dtype == DType::BF16 || a.dtype == DType::F16; }

// A product of matrices is linear in each of its operands: of their magnitudes it is the sum of
// those of all products.
std::vector<HostArray> magnitudes_of(std::vector<HostArray> operands) {
  for (HostArray& a : operands)
    if (is_float(a.dtype))
      for (HostNumber& v : a.values) v = std::abs(static_cast<double>(v));
  return operands;
}

// Whether an op only adds its operands' elements up, each some times: what it makes of their
// positive and of their negative parts is the meaning, one less the other. Then what it makes of
// their magnitudes is the magnitudes' sum; empty: it does something else.
std::vector<double> summed_of(const OpDef& op, const Attrs& attrs, const std::vector<HostArray>& in,
                              const HostArray& meaning, std::size_t result) {
  std::vector<HostArray> parts[2] = {in, in};
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!is_float(in[k].dtype)) continue;
    for (std::size_t j = 0; j < in[k].values.size(); ++j) {
      const double v = in[k].values[j];
      parts[v < 0 ? 0 : 1][k].values[j] = 0;
      if (v < 0) parts[1][k].values[j] = -v;
    }
  }
  const std::vector<double> more = evaluate_op(op, attrs, parts[0])[result].doubles(),
                            less = evaluate_op(op, attrs, parts[1])[result].doubles();
  // Where nothing is negative that says little: of twice as much a sum is twice as much, too.
  std::vector<double> doubled;
  if (std::ranges::all_of(less, [](double v) { return v == 0; })) {
    for (HostArray& a : parts[0])
      if (is_float(a.dtype))
        for (HostNumber& v : a.values) v = 2 * static_cast<double>(v);
    doubled = evaluate_op(op, attrs, parts[0])[result].doubles();
  }
  std::vector<double> summed;
  for (std::size_t j = 0; j < more.size(); ++j) {
    if (!doubled.empty() && !(std::abs(doubled[j] - 2 * more[j]) <= 0x1p-40 * more[j])) return {};
    const double sum = more[j] + less[j], meant = meaning.values[j];
    const bool is_sum =
        more[j] >= 0 && less[j] >= 0 && std::abs(more[j] - less[j] - meant) <= 0x1p-40 * sum;
    if (!is_sum) return {};
    summed.push_back(sum);
  }
  return summed;
}

// How many terms an element of a sum has, at most: by the sizes of what it is made of, or by how
// many indices say where each term belongs.
std::int64_t terms_of(const std::vector<HostArray>& in, const HostArray& out) {
  std::size_t elements = 0, indices = 0;
  for (const HostArray& a : in) (is_float(a.dtype) ? elements : indices) += a.values.size();
  const std::size_t each = elements / std::max<std::size_t>(out.values.size(), 1);
  return static_cast<std::int64_t>(std::max({each, indices, std::size_t{1}}));
}

// Whether elements of the result may be sums over an axis, or over indices. An update of
// parameters, which has many results, is not made again to see that it is none.
bool may_be_sum(const std::vector<HostArray>& in, const std::vector<HostArray>& out) {
  const auto floats =
      std::ranges::count_if(in, [](const HostArray& a) { return is_float(a.dtype); });
  const auto is_of_all = [&](const HostArray& a) {
    return !is_float(a.dtype) && a.values.size() >= out[0].values.size();
  };
  return out.size() == 1 && terms_of(in, out[0]) > floats && std::ranges::none_of(in, is_of_all);
}

// Integers that differ by less than a double shows.
void judge_whole(const HostArray& result, const HostArray& meaning, accuracy::Accuracy& a) {
  if (is_float(result.dtype) || a.standard != accuracy::Standard::Binary || !a.is_passed) return;
  for (std::size_t j = 0; j < result.values.size(); ++j) {
    const std::int64_t seen = result.values[j].whole(), meant = meaning.values[j].whole();
    if (seen == meant) continue;
    a.is_passed = false;
    a.why = fmt::format("an element is {}, and must be {}", seen, meant);
    a.worst = j, a.worst_result = result.values[j], a.worst_meaning = meaning.values[j];
    return;
  }
}

void check(const json& entry, const Path& folder, CheckedCall& call) {
  const OpDef& op = op_named(call.op);
  const std::string words = entry.at("call").at("attrs").get<std::string>();
  const Attrs attrs = words.empty() ? Attrs() : parse_attrs(words);
  const auto in = tensors_of(entry.contains("input_args") ? entry["input_args"] : entry.at("input"),
                             folder, call.contradiction);
  const auto out = tensors_of(entry.at("output"), folder, call.contradiction);
  const std::vector<TensorType> operands = types_of(in), results = types_of(out);
  check_shapes(op, attrs, operands, results);
  const std::vector<HostArray> meaning = evaluate_op(op, attrs, in);
  std::vector<HostArray> benchmark;
  for (std::size_t i = 0; i < out.size(); ++i) {
    // What lies in bytes is judged by the values that they stand for.
    const auto meant = values_of_update(op.name, attrs, meaning, i);
    const bool is_at_random = meant && !meant->apart.empty();
    const accuracy::Standard standard = is_at_random ? accuracy::Standard::Absolute
                                        : meant      ? accuracy::Standard::Benchmark
                                                     : standard_of(op, attrs, operands, results, i);
    if (standard == accuracy::Standard::Benchmark && benchmark.empty())
      benchmark = evaluate_op(op, attrs, in, EvalRounding::ToDType);
    const auto values = [&](const std::vector<HostArray>& all) {
      return meant ? values_of_update(op.name, attrs, all, i)->values.doubles() : all[i].doubles();
    };
    std::vector<double> rounded;
    if (standard == accuracy::Standard::Benchmark) rounded = values(benchmark);
    const std::vector<double> result = values(out), exact = values(meaning);
    const DType inner = op.products                           ? coarsest_of(operands)
                        : sums_f32_in_double(op.name, out[i]) ? DType::F32
                                                              : DType::F64;
    std::vector<double> summed;
    std::int64_t terms = 0;
    if (standard == accuracy::Standard::Ulp) {
      summed = evaluate_op(op, attrs, magnitudes_of(in))[i].doubles();
      terms = op.products(attrs, operands, results)[0].k;
    } else if (standard == accuracy::Standard::Benchmark && op.eval && !meant && is_low(out[i]) &&
               may_be_sum(in, out)) {
      summed = summed_of(op, attrs, in, meaning[i], i);
      terms = terms_of(in, out[i]);
    }
    const DType type = meant ? DType::F32 : out[i].dtype;
    call.results.push_back(
        {results[i].str() + (meant ? " as f32" : ""),
         accuracy::accuracy_of(
             standard,
             {type, result, exact, rounded, inner,
              is_at_random ? std::span<const double>(meant->apart) : std::span<const double>(),
              summed, terms, meant ? std::span<const std::int64_t>() : out[i].shape})});
    if (!meant) judge_whole(out[i], meaning[i], call.results.back().accuracy);
  }
}

// "a tensor is of another type than dump.json says; at x.pt; saw torch.float16; need ...", without
// what to try: that is for who reads the whole list.
std::string in_a_line(const Error& e) {
  std::string text = e.headline();
  for (const std::string_view line : split(e.what(), '\n')) {
    const std::string_view fact = trim(line);
    const std::size_t end = fact.find(' ');
    if (line == fact || end == std::string_view::npos || fact.starts_with("try")) continue;
    text += fmt::format("; {} {}", fact.substr(0, end), trim(fact.substr(end)));
  }
  return text;
}

bool is_asked(const std::string& entry, const std::string& name,
              const std::vector<std::string>& list) {
  return list.empty() || std::ranges::any_of(list, [&](const std::string& part) {
           return entry.find(part) != std::string::npos || name.find(part) != std::string::npos;
         });
}

// Of each word of the list the nearest name that there is.
[[noreturn]] void refuse_list(const std::vector<std::string>& list,
                              const std::vector<std::string>& names) {
  UserError e("E0885", "--list names no call of the dump");
  for (const std::string& word : list) e.add_line("saw", in_quotes(word));
  e.add_line("need", "parts of names of entries, or of calls");
  bool is_near = false;
  for (const std::string& word : list)
    if (const std::string near = nearest_name(word, names); !near.empty()) {
      e.add_line("try", in_quotes(near) + " for " + in_quotes(word));
      is_near = true;
    }
  if (!is_near && !names.empty()) e.add_line("try", "such as " + names.front());
  throw e;
}

// `names`: what the list may name.
void check_dump(const Path& file, const std::vector<std::string>& list, CheckedDump& checked,
                std::vector<std::string>& names) {
  const json dump = parse_json(read_file(file, kMostOfDump));
  if (!dump.is_object() || !dump.contains("data") || !dump["data"].is_object())
    refuse(file, "no dump of msprobe's form");
  std::vector<CheckedCall>& calls = checked.calls;
  const std::size_t first = calls.size();
  const std::string step = file.parent_path().parent_path().filename().string();
  for (const auto& [name, entry] : dump["data"].items()) {
    if (!entry.is_object() || !entry.contains("call") || !entry["call"].is_object()) {
      if (is_asked(name, "", list)) checked.unjudged.push_back({step, name});
      continue;
    }
    const auto word = [&](const char* key) {
      const auto it = entry["call"].find(key);
      return it != entry["call"].end() && it->is_string() ? it->get<std::string>() : "";
    };
    const json number = entry["call"].value("instruction", json());
    CheckedCall call{step,
                     name,
                     word("op"),
                     word("kernel"),
                     word("name"),
                     word("module"),
                     word("phase"),
                     word("program"),
                     number.is_number_integer() ? number.get<std::int64_t>() : 0};
    names.insert(names.end(), {call.op, call.module, call.name, call.entry});
    if (!is_asked(call.entry, call.name, list)) continue;
    try {
      check(entry, file.parent_path() / "dump_tensor_data", call);
    } catch (const json::exception&) {
      call.unchecked = "its record in dump.json is damaged";
    } catch (const DataError& e) {
      call.unchecked = in_a_line(e);
    } catch (const UserError& e) {
      call.unchecked = in_a_line(e);
    } catch (const EnvironmentError& e) {  // a file that the system does not give
      call.unchecked = in_a_line(e);
    }
    calls.push_back(std::move(call));
  }
  std::stable_sort(calls.begin() + static_cast<std::ptrdiff_t>(first), calls.end(),
                   [](const CheckedCall& a, const CheckedCall& b) {
                     return std::tie(a.program, a.instruction) < std::tie(b.program, b.instruction);
                   });
}

// Of several dumps one that cannot be read does not end the check of the others.
void check_one_of(std::size_t count, const Path& file, const std::vector<std::string>& list,
                  CheckedDump& checked, std::vector<std::string>& names) {
  const auto leave_out = [&](const Error& e) {
    checked.unread.push_back({file.parent_path().parent_path().filename().string(), in_a_line(e)});
  };
  try {
    check_dump(file, list, checked, names);
  } catch (const DataError& e) {
    if (count == 1) throw;
    leave_out(e);
  } catch (const EnvironmentError& e) {
    if (count == 1) throw;
    leave_out(e);
  }
}

}  // namespace

bool CheckedCall::is_passed() const {
  return unchecked.empty() && contradiction.empty() && !failed();
}

const CheckedResult* CheckedCall::failed() const {
  for (const CheckedResult& r : results)
    if (!r.accuracy.is_passed) return &r;
  return nullptr;
}

// By what the op says of itself: what only moves or selects is exact, and so are integers, but for
// those that several steps in floats lead to; one product is measured in units in the last place;
// one element-wise step in its elements' sizes; whatever sums, or takes several steps, beside the
// same steps in its own type.
accuracy::Standard standard_of(const OpDef& op, const Attrs& attrs, CallTypes in, CallTypes out,
                               std::size_t result) {
  using enum accuracy::Standard;
  if (op.only_moves) return Binary;
  if (!is_float(out[result].dtype)) {
    const bool is_of_floats = std::ranges::any_of(in, is_float, &TensorType::dtype);
    return !is_of_floats || (op.numeric == Numeric::Exact && op.eval) ? Binary : Benchmark;
  }
  const bool is_step = op.fusion == Fusion::Elementwise || op.fusion == Fusion::Broadcast;
  if (op.eval && is_step) return Absolute;
  return op.products && !op.is_loss && op.products(attrs, in, out).size() == 1 ? Ulp : Benchmark;
}

CheckedDump check_calls(const Path& dump, const std::vector<std::string>& list) {
  if (!path_exists(dump)) refuse(dump, "nothing of that name");
  CheckedDump checked;
  std::vector<std::string> names;
  const std::vector<Path> files = dumps_in(dump, checked.unread);
  for (const Path& file : files) check_one_of(files.size(), file, list, checked, names);
  if (!checked.calls.empty()) return checked;
  if (!checked.unjudged.empty())
    refuse(dump,
           fmt::format("nothing but entries without a `call` ({}): {}{}", checked.unjudged.size(),
                       checked.unjudged[0].entry, checked.unjudged.size() > 1 ? ", ..." : ""));
  std::erase(names, "");
  if (!names.empty()) refuse_list(list, names);
  refuse(dump, "no entries");
}

}  // namespace aloft
