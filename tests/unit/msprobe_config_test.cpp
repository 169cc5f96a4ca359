// msprobe's config.json: what it asks for, and what is refused before memory is spent on it.
#include "recipe/msprobe_config.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace aloft {
namespace {

std::string steps_of(const std::string& steps) {
  const MsprobeConfig config = parse_msprobe_config("{\"step\": " + steps + "}", "config.json");
  for (const Override& o : config.probe)
    if (o.key == "probe.at") return o.value;
  return "all";
}

TEST(MsprobeConfig, Steps) {
  EXPECT_EQ(steps_of("[0, \"3\", \"5-7\"]"), "[0,3,5,6,7]");
  EXPECT_EQ(steps_of("2"), "[2]");
  EXPECT_EQ(steps_of("[]"), "all");
}

TEST(MsprobeConfig, StepsBeyondMeasureAreRefused) {
  std::string many = "\"0-99999\"";
  for (int i = 0; i < 3; ++i) many += ", \"0-99999\"";  // each of them might pass
  for (const std::string& steps :
       {std::string("[\"9-1\"]"), std::string("[\"-1\"]"), std::string("[\"0-100001\"]"),
        "[" + many + "]", std::string("[\"9223372036854775807\"]"),
        std::string("[\"9223372036854775806-9223372036854775807\"]")})
    try {
      static_cast<void>(steps_of(steps));
      ADD_FAILURE() << steps;
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0729") << steps;
    }
}

}  // namespace
}  // namespace aloft
