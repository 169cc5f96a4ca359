// Operators and their gradients against PyTorch's float64 results: convolution, pooling, norms,
// losses, attention and what else has conventions that can be got wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "autodiff/differentiate.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/reduce.h"
#include "parity/fixture.h"
#include "parity/op_builders.h"

namespace aloft::parity {
namespace {

const Fixture& ops() {
  static const Fixture fixture("ops");
  return fixture;
}

// The arrays of one case: "in.x" -> values.
Arrays arrays_of(const Json& c) {
  const std::string prefix = c.at("name").get<std::string>() + "/";
  Arrays own;
  for (const auto& [name, array] : ops().arrays)
    if (name.starts_with(prefix)) own.emplace(name.substr(prefix.size()), array);
  return own;
}

// sum over the outputs that have a cotangent of <output, cotangent>.
Tensor objective(const Named& out, const Named& cotangents) {
  Tensor total;
  for (const auto& [name, dy] : cotangents) {
    const Tensor part = sum(mul(out.at(name), dy));
    total = total.is_defined() ? add(total, part) : part;
  }
  return total;
}

// Outputs "out.y" and gradients "grad.x" of a case, every op by its meaning in double.
Arrays run_in_double(const Json& c, const Arrays& given) {
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  std::map<Name, HostArray> values;
  const auto input = [&](const std::string& name) {
    HostArray a = given.at(name);
    if (is_float(a.dtype)) a.dtype = DType::F64;
    const ValueId id = graph.add_input(name, {a.dtype, Shape::of(a.shape)});
    values[name] = std::move(a);
    return emitter.handle(id);
  };
  Named in, cotangents;
  for (const Json& name : c.at("inputs")) in[name] = input("in." + name.get<std::string>());
  for (const Json& name : c.at("outputs"))
    if (given.contains("dy." + name.get<std::string>()))
      cotangents[name] = input("dy." + name.get<std::string>());
  const Named out = op_builders().at(c.at("op"))(c.at("attrs"), in);
  for (const auto& [name, y] : out) graph.set_output("out." + name, y.id());

  std::vector<Tensor> wrt;
  for (const Json& name : c.at("grads")) wrt.push_back(in.at(name));
  const Tensor target = objective(out, cotangents);
  const auto grads = differentiate(graph, emitter, target, full({}, 1, target.dtype()), wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i)
    graph.set_output("grad." + c.at("grads")[i].get<std::string>(), grads[i].id());

  Arrays results;
  for (auto& [name, array] : interpret(graph, values).outputs) results[name.str()] = array;
  return results;
}

// Every output and gradient of the case is there and within `limit`.
void expect_close(const Json& c, const Arrays& got, const Arrays& want, double limit) {
  int compared = 0;
  for (const auto& [name, array] : want) {
    if (!name.starts_with("out.") && !name.starts_with("grad.")) continue;
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_LE(error_of(got.at(name), array), limit) << name;
    ++compared;
  }
  EXPECT_EQ(compared, static_cast<int>(c.at("outputs").size() + c.at("grads").size()));
}

class Operators : public ::testing::TestWithParam<int> {
 protected:
  const Json& info() const { return ops().cases().at(GetParam()); }
};

TEST_P(Operators, MeaningIsPyTorchs) {
  const Arrays arrays = arrays_of(info());
  expect_close(info(), run_in_double(info(), arrays), arrays, 1e-10);
}

std::vector<int> cases_with_builder() {
  std::vector<int> which;
  for (int i = 0; i < static_cast<int>(ops().cases().size()); ++i)
    if (op_builders().contains(ops().cases().at(i).at("op"))) which.push_back(i);
  return which;
}

INSTANTIATE_TEST_SUITE_P(PyTorch, Operators, ::testing::ValuesIn(cases_with_builder()),
                         [](const auto& info) {
                           std::string name = ops().cases().at(info.param).at("name");
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace aloft::parity
