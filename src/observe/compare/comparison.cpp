#include "observe/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/leftovers.h"
#include "base/log.h"
#include "observe/compare/divided_loss.h"
#include "observe/compare/dump_pairs.h"
#include "observe/compare/gradient_factor.h"
#include "observe/compare/results.h"
#include "observe/compare/steps.h"
#include "observe/compare/tensor_reader.h"

namespace aloft::compare {

namespace {

std::string with_step(const std::string& sentence, const DumpPair& dumps) {
  const std::string place =
      dumps.step + (dumps.step.empty() || dumps.rank.empty() ? "" : " ") + dumps.rank;
  return place.empty() ? sentence : place + ": " + sentence;
}

// What the sentence ends with where one dump has functions alone, and the other modules, too:
// their calls. Of functions alone there may be what becomes of parameters, too.
std::string modules_text(const DumpFile& npu, const DumpFile& bench) {
  const auto has_modules = [](const DumpFile& dump) {
    return std::ranges::any_of(dump.entries, [](const Entry& e) {
      return e.is_module &&
             (e.direction == Direction::Forward || e.direction == Direction::Backward);
    });
  };
  const bool ours = has_modules(npu), theirs = has_modules(bench);
  if (ours == theirs) return "";
  return fmt::format("; modules are in the {} run's dump alone: functions are compared",
                     ours ? "first" : "second");
}

// What the sentence of a first divergence ends with where a step has others before it and neither
// run's dump says what these added to parameters: then nothing is allowed for what rounding made of
// that, and the runs may be right.
std::string updates_text(const DumpFile& npu, const DumpFile& bench, std::int64_t step) {
  const auto has_updates = [](const DumpFile& dump) {
    return std::ranges::any_of(
        dump.entries, [](const Entry& e) { return e.direction == Direction::ParametersUpdate; });
  };
  if (step <= 0 || has_updates(npu) || has_updates(bench)) return "";
  return "; neither dump has updates of parameters, so that nothing is allowed for what the steps "
         "before have rounded otherwise: compare a first step, or dumps of level module or mix";
}

// Of a dump what stands in it in place of figures, or of a shape.
void add_unreadable(const DumpFile& dump, std::vector<Unreadable>& all) {
  for (const Entry& e : dump.entries)
    for (const Record& r : e.records)
      if (!r.unreadable.empty()) all.push_back({r.name, dump.file, r.unreadable});
}

// What the sentence begins with where figures, or files of elements, cannot be read; "" where all
// can.
std::string unread_text(const Comparison& c) {
  const std::vector<Unreadable>& all = c.unreadable;
  if (all.empty()) return "";
  const auto figures = std::ranges::count_if(
      all, [&](const Unreadable& u) { return u.file == c.npu.file || u.file == c.bench.file; });
  const bool are_all = static_cast<std::size_t>(figures) == all.size();
  return fmt::format("of {} {} the {} cannot be read ({}: {}{}), beside that: ", all.size(),
                     all.size() == 1 ? "tensor" : "tensors",
                     figures == 0 ? "elements"
                     : are_all    ? "figures"
                                  : "figures or elements",
                     all[0].name, all[0].why, all.size() == 1 ? "" : ", and others");
}

// How much of the two is behind a divergence: what agrees says it itself.
std::string part_text(const Coverage& c) {
  if (c.compared >= c.all) return "";
  return fmt::format("; {} of {} tensors were compared", c.compared, c.all);
}

// "compare_result_step0_rank1.csv" of "compare_result.csv".
std::string file_of(const Path& name, const DumpPair& dumps) {
  std::string own = name.stem().string();
  for (const std::string& part : {dumps.step, dumps.rank})
    if (!part.empty()) own += "_" + part;
  return own + name.extension().string();
}

// What the steps before say of a process.
struct Before {
  Drift drift;
  double scales = 0;        // the ratio of the loss scales at the first step
  double losses = 0;        // the quotient of the losses so far
  bool has_parted = false;  // what parts behind that is no first divergence
};

// Which lines of the map have an effect in a step, of all that were compared.
class MapWatch {
 public:
  explicit MapWatch(const NameMap& map) : map_(map) {}
  void add(const std::vector<LineFit>& fits) {
    if (fits_.empty()) fits_.resize(fits.size());
    for (std::size_t i = 0; i < fits.size(); ++i)
      if (!(fits_[i].in_npu && fits_[i].in_bench)) fits_[i] = fits[i];
  }
  void tell() const {
    const auto count =
        std::ranges::count_if(fits_, [](const LineFit& f) { return !f.in_npu || !f.in_bench; });
    if (count > 0)
      log_warning("lines of {} without an effect, {} of {}: {}", map_.name(), count, fits_.size(),
                  without_effect(map_, fits_));
  }

 private:
  const NameMap& map_;
  std::vector<LineFit> fits_;
};

// The dumps hold nothing that could be held against one another.
[[noreturn]] void refuse_nothing(const DumpPair& dumps, const Pairs& pairs) {
  const std::string at = dumps.npu.string() + " and " + dumps.bench.string();
  if (const std::size_t bare = count_bare(pairs, {}))
    throw DataError("E0651", "nothing to compare")
        .at(at)
        .saw(std::to_string(bare) + " tensors that both have, and no figures of one in both")
        .need("statistics, elements or checksums, in both dumps the same")
        .advice("make them with task \"statistics\" or \"tensor\"; \"structure\" has no numbers");
  throw DataError("E0651", "nothing to compare")
      .at(at)
      .saw("no tensor that both have")
      .advice("check that both are of the same level; name what belongs together with --map");
}

// `without`: what the sentence ends with, of steps that are not compared. `written`: the folder in
// which files wait until all are there.
StepResult compare_step(const DumpPair& dumps, const NameMap& map, const Request& request,
                        const std::string& without, const Path& written, Before& before,
                        MapWatch& watch) {
  Comparison c;
  c.npu = read_dump(dumps.npu), c.bench = read_dump(dumps.bench);
  c.mode = mode_of(c.npu, c.bench);
  c.pairs = pair_dumps(c.npu, c.bench, map);
  watch.add(c.pairs.fits);
  TensorReader reader(c.npu, c.bench);
  const bool has_elements = c.mode == Mode::Tensor;
  const ElementsOf elements_of = [&](const RecordPair& r) {
    return has_elements ? reader.figures(r) : nullptr;
  };
  before.drift.begin(c.npu, c.bench, dumps.number);
  const Training &ours = c.npu.training, &theirs = c.bench.training;
  Circumstances known{gradient_factor(ours, theirs, c.pairs), &before.drift, {}};
  if (ours.loss && theirs.loss) known.loss = std::max(std::abs(*ours.loss), std::abs(*theirs.loss));
  double noise = 0, of_loss = 0;
  c.compared = compare_all(c.pairs, elements_of, known, &noise, &of_loss);
  c.loop = training_differences(ours, theirs, noise, before.scales, of_loss);
  c.remark = take_divided_loss(ours, theirs, c.compared, c.loop, before.losses);
  if (before.scales == 0) before.scales = ratio_of_scales(ours, theirs);
  before.drift.end(c.compared, dumps.number);
  if (c.compared.empty()) refuse_nothing(dumps, c.pairs);
  c.divergence = first_divergence(c.compared, c.npu, c.loop, &c.bench, &c.pairs);
  c.coverage = coverage_of(c.npu, c.bench, c.pairs, c.compared);
  c.table = msprobe_table(c.pairs, c.npu, c.mode, elements_of);
  add_unreadable(c.npu, c.unreadable), add_unreadable(c.bench, c.unreadable);
  c.unreadable.insert(c.unreadable.end(), reader.unreadable().begin(), reader.unreadable().end());
  StepResult result{dumps.step, dumps.rank, c.divergence.has_value(), "", c.unreadable.size(), {}};
  if (c.divergence) {
    result.finding = c.divergence->sentence;
    c.sentence = (before.has_parted ? "also: " : "first divergence: ") + result.finding +
                 part_text(c.coverage);
    if (!before.has_parted) c.sentence += updates_text(c.npu, c.bench, dumps.number);
    before.has_parted = true;
  } else {
    c.sentence = agreement(c.compared, count_bare(c.pairs, c.compared), c.coverage);
    result.lacks = c.coverage.lacks;
  }
  result.remark = c.remark;
  if (!c.remark.empty()) c.sentence += "; no divergence: " + c.remark;
  result.sentence = c.sentence =
      with_step(unread_text(c) + c.sentence + modules_text(c.npu, c.bench), dumps) + without;
  const auto place_of = [&](const Path& name) {
    const std::string file = file_of(name, dumps);
    result.files.push_back(request.out / file);
    return written / file;
  };
  const auto put = [&](const Path& name, const std::string& text) {
    write_file_atomic(place_of(name), text);
  };
  const WholeTable table = whole_table(c, elements_of);
  put("compare_result.csv", csv_of(table));
  if (request.xlsx) write_xlsx(place_of("compare_result.xlsx"), {sheet_of(table)});
  put("compare_result.json", json_text(json_of(c), 1));
  put("compare_result.html", page_of(c));
  return result;
}

}  // namespace

std::vector<StepResult> compare_runs(const Request& request, std::string* alone_in) {
  const NameMap map = request.map.empty() ? NameMap() : NameMap::read(request.map);
  std::string alone;
  const std::vector<DumpPair> pairs = pair_dump_files(request.npu, request.bench, &alone);
  // What an earlier comparison has left stays until this one is through.
  remove_leftovers_beside(request.out / kResults);
  const ScratchFolder written(request.out / kResults);
  std::vector<StepResult> results;
  std::map<std::string, Before> before;  // by process
  MapWatch watch(map);
  // Of one pair its own sentence says it, of several that of all.
  const std::string without = pairs.size() == 1 ? without_text(alone) : "";
  for (const DumpPair& dumps : pairs)
    results.push_back(
        compare_step(dumps, map, request, without, written.path(), before[dumps.rank], watch));
  if (results.size() > 1) {
    const auto all = steps_json(results, alone);
    write_file_atomic(written.path() / "compare_result.json", json_text(all, 1));
    write_file_atomic(written.path() / "compare_result.html", page_of(all));
  }
  replace_results(written.path(), request.out);
  watch.tell();
  if (alone_in) *alone_in = alone;
  return results;
}

}  // namespace aloft::compare
