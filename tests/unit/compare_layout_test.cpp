// Weights that two runs keep in other layouts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "observe/compare/elements.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// Frameworks keep the same weight as [in, out] and as [out, in]; of a square one no shape says it.
TEST(CompareLayout, ASquareMatrixMayLieTransposed) {
  TemporaryFolder folder;
  const Elements a{{1, 2, 3, 4}, {2, 2}, "torch.float32"}, t{{1, 3, 2, 4}, {2, 2}, a.type};
  EXPECT_EQ(figures_of(t, a, true).relative_distance, 0);
  EXPECT_TRUE(figures_of(t, a, true).is_turned);
  EXPECT_GT(figures_of(t, a).relative_distance, 0);  // such as what flows from layer to layer
  const Elements other{{1, 2.1, 3, 4}, {2, 2}, a.type};
  EXPECT_FALSE(figures_of(other, a, true).is_turned);
  EXPECT_FALSE(figures_of({{1, 2, 2, 4}, {2, 2}, a.type}, a, true).is_turned);  // as far either way

  // The layout of a weight alone is no divergence; one that was loaded so is one of what it gives.
  const auto run = [&](const char* name, const Elements& weight, double out) {
    Json w = tensor({2, 2}, 1);
    w["data_name"] = "w.npy";
    const auto [least, most] = std::ranges::minmax(weight.values);
    double sum = 0, squares = 0;
    for (const double v : weight.values) sum += v, squares += v * v;
    w["Max"] = most, w["Min"] = least, w["Mean"] = sum / 4, w["Norm"] = std::sqrt(squares);
    const Json data = {{"Module.a.Linear.forward.0",
                        forward(tensor({4, 2}, 1), tensor({4, 2}, out), {{"weight", w}})}};
    make_folder(folder / name / "dump_tensor_data");
    TemporaryFolder::put(folder / name / "dump.json",
                         Json{{"task", "tensor"}, {"data", data}}.dump());
    std::string file = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }";
    file = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(file.size()) + '\0' + file;
    for (const double v : weight.values) file.append(reinterpret_cast<const char*>(&v), sizeof v);
    TemporaryFolder::put(folder / name / "dump_tensor_data/w.npy", file);
  };
  const auto said = [&] {
    return compare_runs({folder / "x", folder / "y", folder / "out", {}})[0].sentence;
  };
  run("x", t, 1), run("y", a, 1);
  EXPECT_TRUE(said().starts_with("no divergence")) << said();
  run("x", t, 2);
  EXPECT_NE(said().find("what a gives"), std::string::npos) << said();
  EXPECT_NE(said().find("its weight is that of the other run with rows as columns"),
            std::string::npos)
      << said();
  run("x", other, 2);
  EXPECT_NE(said().find("the parameter weight of a is another one"), std::string::npos) << said();
}

// What an op takes may be a weight, too: a linear of the one run has it as [out, in], the addmm of
// the other as [in, out]. What is no parameter of either run does not lie transposed.
TEST(CompareLayout, AWeightThatAnOpTakesMayLieTransposed) {
  TemporaryFolder folder;
  const auto npy = [&](const char* run, const char* file, const std::vector<int>& shape,
                       const std::vector<double>& values) {
    const std::string text = fmt::format("({}, {})", shape[0], shape[1]);
    std::string head = "{'descr': '<f8', 'fortran_order': False, 'shape': " + text + ", }";
    std::string bytes =
        std::string("\x93NUMPY\1\0", 8) + static_cast<char>(head.size()) + '\0' + head;
    for (const double v : values) bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
    TemporaryFolder::put(folder / run / "dump_tensor_data" / file, bytes);
    Json r = tensor(shape, 1, "torch.float64");
    const auto [least, most] = std::ranges::minmax(values);
    double sum = 0, squares = 0;
    for (const double v : values) sum += v, squares += v * v;
    r["Max"] = most, r["Min"] = least, r["Mean"] = sum / static_cast<double>(values.size());
    r["Norm"] = std::sqrt(squares), r["data_name"] = file;
    return r;
  };
  const auto run = [&](const char* name, const std::vector<int>& shape,
                       const std::vector<double>& weight, bool is_parameter) {
    make_folder(folder / name / "dump_tensor_data");
    const Json w = npy(name, "w.npy", shape, weight);
    const Json x = npy(name, "x.npy", {2, 2}, {1, 2, 4, 7}),
               y = npy(name, "y.npy", {2, 2}, {5, 6, 7, 9});
    const std::string op = "Torch.linear.0.forward", module = "Module.a.Linear.forward.0";
    const Json data = {
        {op, {{"input_args", Json::array({x, w})}, {"output", Json::array({y})}}},
        {module, forward(x, y, is_parameter ? Json{{"weight", w}} : Json::object())}};
    TemporaryFolder::put(folder / name / "construct.json", Json{{op, module}}.dump());
    TemporaryFolder::put(
        folder / name / "dump.json",
        Json{{"task", "tensor"}, {"data", data}, {"taps", {{op, {"a/linear#0"}}}}}.dump());
  };
  const auto said = [&] {
    return compare_runs({folder / "x", folder / "y", folder / "out", {}})[0].sentence;
  };
  run("x", {2, 3}, {1, 2, 3, 4, 5, 9}, true), run("y", {3, 2}, {1, 4, 2, 5, 3, 9}, true);
  EXPECT_TRUE(said().starts_with("no divergence: 6 tensors")) << said();
  run("x", {2, 2}, {1, 2, 3, 9}, true), run("y", {2, 2}, {1, 3, 2, 9}, true);
  EXPECT_TRUE(said().starts_with("no divergence")) << said();
  run("x", {2, 2}, {1, 2, 3, 9}, false), run("y", {2, 2}, {1, 3, 2, 9}, false);
  EXPECT_NE(said().find("takes (1) is off by"), std::string::npos) << said();
  run("x", {2, 3}, {1, 2, 3, 4, 5, 9}, true), run("y", {3, 2}, {1, 4, 2, 5, 4, 9}, true);
  EXPECT_NE(said().find("is another one"), std::string::npos) << said();
}

}  // namespace
}  // namespace aloft::compare
