// What is refused of Jinja, by name and place, and what ends a template that does too much.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/chat/chat_template.h"

namespace aloft {
namespace {

std::string refusal(std::string_view source, const RenderLimits& limits = {}) {
  try {
    return "gives " + ChatTemplate(source, "t.jinja").render({}, limits).text;
  } catch (const DataError& e) {
    return e.what();
  }
}

void expect_refusal(std::string_view source, std::string_view code, std::string_view place,
                    std::string_view said, const RenderLimits& limits = {}) {
  const std::string text = refusal(source, limits);
  for (const std::string_view part : {code, place, said})
    EXPECT_NE(text.find(part), std::string::npos) << source << "\n" << text << "\nlacks " << part;
}

TEST(ChatLanguage, WhatIsNotDoneIsRefusedByNameAndPlace) {
  expect_refusal("a\n {% include 'x' %}", "E0540", "t.jinja:2:5", "include");
  expect_refusal("{% raw %}{% endraw %}", "E0540", "t.jinja:1:1", "raw");
  expect_refusal("{{ x|safe }}", "E0540", "t.jinja:1:6", "the filter \"safe\"");
  expect_refusal("{{ x is sameas 1 }}", "E0540", "t.jinja:1:9", "the test \"sameas\"");
  expect_refusal("\xC3\xBC{{ 1 2 }}", "E0540", "t.jinja:1:7", "\"2\"");
  expect_refusal("{% for x in y recursive %}{% endfor %}", "E0540", "t.jinja:1:15", "recursive");
  expect_refusal("{{ f(*x) }}", "E0540", "t.jinja:1:6", "one by one");
  expect_refusal("{{ '\\N{DASH}' }}", "E0540", "t.jinja:1:5", "by its name");
  expect_refusal("{{ 0x1F }}", "E0540", "t.jinja:1:4", "decimal");
  expect_refusal("{% for i in x %}{% macro m() %}{% endmacro %}{% endfor %}", "E0540",
                 "t.jinja:1:20", "a macro outside of loops");
  expect_refusal("{{ cycler(1) }}", "E0541", "t.jinja:1:4", "cycler");
  expect_refusal("{{ 'a'.encode() }}", "E0541", "t.jinja:1:8", "str.encode");
  expect_refusal("{{ '%s' % 1 }}", "E0541", "t.jinja:1:9", "join the parts with ~");
  expect_refusal("{{ '\xC3\xBC'|upper }}", "E0541", "t.jinja:1:8", "beyond ASCII");
  expect_refusal("{{ [1].append(2) }}", "E0541", "t.jinja:1:8", "list.append");
  expect_refusal("{{ 'x'.__class__ }}", "E0541", "t.jinja:1:8", "__class__");
  expect_refusal("{% set x %}{% generation %}{% endgeneration %}{% endset %}", "E0541",
                 "t.jinja:1:15", "generation");
  expect_refusal("{{ 9223372036854775807 + 1 }}", "E0541", "t.jinja:1:24", "64 bits");
  expect_refusal("{{ raise_exception('not so') }}", "E0542", "t.jinja:1:19", "not so");
  expect_refusal("\xFF", "E0540", "t.jinja", "UTF-8");
}

TEST(ChatLanguage, NoTemplateRunsOrGrowsWithoutEnd) {
  const std::string deep(100000, '('), closed(100000, ')');
  expect_refusal("{{ " + deep + "1" + closed + " }}", "E0540", "t.jinja", "nested too deeply");
  std::string tags, sum = "{{ 1", words = "{{ not", signs = "{{ -";
  for (int i = 0; i < 100000; ++i) tags += "{% if 1 %}", sum += "+1", words += " not", signs += "-";
  expect_refusal(tags, "E0540", "t.jinja", "nested less deeply");
  expect_refusal(sum + " }}", "E0540", "t.jinja", "nested too deeply");
  expect_refusal(words + " 1 }}", "E0540", "t.jinja", "nested too deeply");
  expect_refusal(signs + "1 }}", "E0540", "t.jinja", "nested too deeply");
  expect_refusal("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "E0541", "t.jinja:1",
                 "one another too deeply");
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}";
  expect_refusal(loops, "E0541", "t.jinja:1", "more than it may");
  const std::string grow = "{% set ns = namespace(x='0123456789') %}{% for i in range(99) %}";
  expect_refusal(grow + "{% set ns.x = ns.x + ns.x %}{% endfor %}", "E0541", "t.jinja:1",
                 "more than it may");
  expect_refusal(grow + "{% set ns.x = [ns.x, ns.x] %}{% endfor %}", "E0541", "t.jinja:1",
                 "holds more");
  expect_refusal(
      "{% set ns = namespace(x=1) %}{% for i in range(200) %}{% set ns.x = [ns.x] %}{% endfor %}",
      "E0541", "t.jinja:1", "deeper than 100");
  expect_refusal("{{ 'a' * 9999999999 }}", "E0541", "t.jinja:1", "too long");
  expect_refusal("{% for i in range(99) %}{{ i }}{% endfor %}", "E0541", "t.jinja:1",
                 "more than it may", {.work = 100});
}

// A namespace may hold itself: nothing of it is left behind, and nothing goes around in it.
TEST(ChatLanguage, ANamespaceMayHoldItself) {
  EXPECT_EQ(refusal("{% set n = namespace() %}{% set n.n = [n] %}{{ n.n[0].n[0] == n }}"),
            "gives True");
  expect_refusal("{% set n = namespace() %}{% set n.n = n %}{{ n }}", "E0541", "t.jinja:1",
                 "namespace");
}

TEST(ChatLanguage, TheTimeIsTheClocksInItsOwnPlace) {
  const ChatTemplate form("{{ strftime_now('%Y') }}|{{ strftime_now('') }}|", "t");
  const std::string text = form.render({}, {.now = 1700000000}).text;
  EXPECT_EQ(text, "2023||");
}

}  // namespace
}  // namespace aloft
