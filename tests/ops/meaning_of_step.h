// What a step of an optimizer means, in double: its ops, evaluated by the host without rounding.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/update.h"
#include "optim/spec.h"

namespace aloft {

class MeaningOfStep {
 public:
  // For parameters of these shapes; `rest`: 1 for each that OptimizerSpec::rest names; `decay`: 1
  // for each that decays, all of them where it is empty.
  MeaningOfStep(const OptimizerSpec& spec, const std::vector<Shape>& shapes, const Ints& rest = {},
                const Ints& decay = {})
      : spec_(spec), count_(shapes.size()) {
    GraphEmitter emitter(graph_);
    EmitterScope scope(emitter);
    const auto input = [&](const std::string& name, DType type, const Shape& shape) {
      return emitter.handle(graph_.add_input(name, {type, shape}));
    };
    UpdateOperands o{input("lr", DType::F32, {}),
                     input("multiplier", DType::F32, {}),
                     input("finite", DType::I32, {}),
                     input("applied", DType::I64, {}),
                     {},
                     {},
                     {},
                     {}};
    const optim::FormulaRecord& formula = *spec.rule.formula;
    for (std::size_t i = 0; i < count_; ++i) {
      o.parameters.push_back(input(kept_name(i), DType::F32, shapes[i]));
      o.gradients.push_back(input("g" + std::to_string(i), DType::F32, shapes[i]));
    }
    for (std::size_t k = 0; k < formula.states.size(); ++k) {
      auto& list = o.states.emplace_back();
      for (std::size_t i = 0; i < count_; ++i) {
        const Shape shape = formula.state_shape(k, shapes[i], !rest.empty() && rest[i] != 0);
        list.push_back(input(kept_name((k + 1) * count_ + i), DType::F32, shape));
        states_.push_back(shape);
      }
    }
    const UpdateForm form{.decay = decay.empty() ? Ints(count_, 1) : decay,
                          .weight_decay = spec.weight_decay,
                          .rest = rest};
    const UpdateResults r = emit_update(spec.rule, o, form);
    std::size_t at = 0;
    const auto put = [&](const Tensor& t) { graph_.set_output(kept_name(at++), t.id()); };
    for (const Tensor& t : r.parameters) put(t);
    for (const auto& list : r.states)
      for (const Tensor& t : list) put(t);
  }

  // Parameters and states as they are before the first step.
  std::vector<HostArray> start(std::vector<HostArray> parameters) const {
    for (const Shape& shape : states_)
      parameters.push_back(HostArray::zeros(DType::F32, shape.max_extents()));
    return parameters;
  }
  // Those behind step t, from 0 on.
  std::vector<HostArray> operator()(const std::vector<HostArray>& kept,
                                    const std::vector<HostArray>& gradients, std::int64_t t) const {
    const auto scalar = [](DType type, double value) { return HostArray{type, {}, {value}}; };
    std::map<Name, HostArray> values = {{"lr", scalar(DType::F32, spec_.lr)},
                                        {"multiplier", scalar(DType::F32, spec_.maximize ? -1 : 1)},
                                        {"finite", scalar(DType::I32, 1)},
                                        {"applied", scalar(DType::I64, static_cast<double>(t))}};
    for (std::size_t i = 0; i < kept.size(); ++i) values[kept_name(i)] = kept[i];
    for (std::size_t i = 0; i < count_; ++i) values["g" + std::to_string(i)] = gradients[i];
    const auto outputs = interpret(graph_, values).outputs;
    std::vector<HostArray> out;
    for (std::size_t i = 0; i < kept.size(); ++i) out.push_back(outputs.at(kept_name(i)));
    return out;
  }

 private:
  static std::string kept_name(std::size_t i) { return "kept" + std::to_string(i); }

  OptimizerSpec spec_;
  std::size_t count_;
  std::vector<Shape> states_;
  Graph graph_;
};

}  // namespace aloft
