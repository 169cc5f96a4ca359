"""Conversations in the forms of ten models, and pieces of Jinja, as transformers renders them."""
import itertools

import jinja2
from transformers.utils.chat_template_utils import render_jinja_template

from families.chat_forms import TEMPLATES


def say(role, content, **more):
    return {"role": role, "content": content, **more}


CALL = {"id": "abcdefghi", "type": "function",
        "function": {"name": "weather", "arguments": {"city": "K\u00f6ln", "days": 3, "exact": 1.5, "note": None}}}
TOOLS = [{"type": "function", "function": {
    "name": "weather", "description": "Says the weather of a \"city\" & of its <streets>.\n\u4f60\u597d",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string"}, "days": {"type": "integer", "enum": [1, 3, 7]}, "empty": {}, "list": []}}}}]
CHATS = [
    [say("user", "Hello")],
    [say("system", "Be short."), say("user", "Hello")],
    [say("user", " What is 2 + 2? "), say("assistant", "\n4 \n")],
    [say("system", "You know \u00fc, \u4f60\u597d and \U0001f642."), say("user", "\u4f60\u597d \u3000"),
     say("assistant", "Gr\u00fc\u00dfe!\u00a0"), say("user", "\u2028Line\ttab\r\n'quotes' \"double\" \\ back"),
     say("assistant", "{{ not a tag }} {% nor this %}")],
    [say("user", "Think."), say("assistant", "<think>\nI think.\n</think>\n\nDone."), say("user", "Again."),
     say("assistant", "<think>\nOnce more.\n</think>\n\nStill done.")],
    [say("user", "Think."), say("assistant", "Done.", reasoning="I thought.")],
    [say("user", "Weather?"), say("assistant", "", tool_calls=[CALL]), say("tool", "17 degrees", tool_call_id="abcdefghi"),
     say("tool", "18 degrees", tool_call_id="abcdefghi"), say("assistant", "Warm.")],
    [say("assistant", "I begin."), say("user", "Odd.")],
    [say("user", [{"type": "text", "text": " Seen: "}, {"type": "image"}])],
    [say("user", "")],
    [],
]
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>", "date_string": "26 Jul 2024"}

# Pieces of the language. `xs`, `d`, `s` and the like are given.
PIECES = [
    # White space.
    "a\n{% if true %}\n  b\n{% endif %}\nc\n", "a  {%- if true -%}  b  {%- endif -%}  c", "  {% if true %}x{% endif %}",
    "  {%+ if true %}x{% endif +%}\ny", "a {# gone #}\nb", "  {# gone #}\nb", "a {#- gone -#} \n b", "{{ 1 }}\n{{ 2 }}\n",
    "{{- 1 }}\n {{ 2 -}} \n {{ 3 }}", "x\n\n", "\r\na\rb{% if 1 %}\r\n{% endif %}", "\t {% set x = 1 %} \n{{ x }}",
    "x {% set a = 1 %}\n  {% set b = 2 %}\n{{ a }}{{ b }}", "{% if 1 %}\n\n{% endif %}", "\u3000{% if 1 %}a{% endif %}",
    "{{ '{{' }}{{ \"%}\" }}", "{", "{ {% if 1 %}%}{% endif %}", "a{%- if 1 %}\n{%- endif %}b", "",
    # Constants and printing.
    "{{ none }} {{ true }} {{ False }} {{ 1 }} {{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.0001 }} {{ 123456789.125 }} {{ 1e300 }}",
    "{{ 'a\\n\\t\\x41\\u00fc\\\\\\'\\q' }}", "{{ \"it's\" 'two' }}", "{{ [1, 'a', none, [true]] }} {{ (1,) }} {{ (1, 2) }} {{ () }}",
    "{{ {'a': 1, 2: 'b', 'c': {}} }}", "{{ ['it\\'s', \"q\\\"\", 'both\\'\"', '\\n', '\\x01', '\u00fc', '\u4f60', '\\\\'] }}",
    "{{ missing }}|{{ d.missing }}|{{ xs[99] }}", "{{ 2.50 }} {{ 100000000000000000.0 }} {{ 12345678901234567.0 }} {{ 0.1 + 0.2 }}",
    "{{ 1.5e3 }} {{ -0.0 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}", "{{ [missing] }}",
    # Operators.
    "{{ 1 + 2 * 3 - 4 // 3 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }}",
    "{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 4 / 2 }} {{ true + 1 }} {{ -true }} {{ +3 }} {{ - 2 ** 2 }}",
    "{{ 'a' + 'b' }} {{ 'a' * 3 }} {{ 2 * 'ab' }} {{ [1] + [2] }} {{ [0] * 2 }} {{ 'a' ~ 1 ~ none ~ missing ~ [1] }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 2 > 5 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }} {{ none == missing }}",
    "{{ 1 in [1, 2] }} {{ 'a' in 'cat' }} {{ 'k' in d }} {{ 'z' not in d }} {{ not 1 in [2] }} {{ 1 not in [1] }} {{ 'x' in missing }}",
    "{{ 1 and 0 }} {{ 0 or 'b' }} {{ '' or none }} {{ not '' }} {{ not not 1 }} {{ 1 if 0 else 2 }} {{ 1 if 0 }} {{ 1 if 1 else 2 if 1 else 3 }}",
    "{{ (1, 2) == (1, 2) }} {{ (1,) == [1] }} {{ {'a': 1} == {'a': 1.0} }} {{ [] == [] }} {{ missing == missing2 }} {{ none != false }}",
    "{{ -1|abs }} {{ 1 + 2|string|length }} {{ (1 + 2)|string }} {{ 'a'|upper ~ 'b' }}", "{{ 10 - 2 - 3 }} {{ 2 - -2 }} {{ 7 // 2 * 2 }}",
    "{{ 1.0 == 1 }} {{ 9007199254740993 == 9007199254740992.0 }} {{ 1 <= true }}", "{{ 'a' and 'b' and 'c' }} {{ 0 or '' or [] }}",
    # Access and slices.
    "{{ d.k }} {{ d['k'] }} {{ d.get('k') }} {{ d.get('z') }} {{ d.get('z', 7) }} {{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }}",
    "{{ odd['items'] }} {{ odd['keys'] is callable }}", "{{ xs[0] }} {{ xs[-1] }} {{ xs.0 }} {{ s[1] }} {{ s[-1] }} {{ s[0:2] }}",
    "{{ xs[1:] }} {{ xs[:-1] }} {{ xs[::2] }} {{ xs[::-1] }} {{ xs[5:] }} {{ xs[-2:] }} {{ xs[2:0:-1] }} {{ xs[:] }} {{ xs[-99:99] }} {{ xs[99:-99:-2] }}",
    "{{ s[::-1] }} {{ s[1:3] }} {{ s[:-2] }} {{ s[10:] }}|{{ s[-3:-1] }}", "{{ (1, 2, 3)[1:] }} {{ 'abc'[1:][0] }} {{ range(5)[2] }} {{ range(5)[1:3] | list }}",
    "{{ d.n.deep }} {{ d['n']['deep'] }} {{ d.n.deep.missing is defined }}", "{{ d[missing] is defined }} {{ xs['a'] is defined }} {{ xs[none] is defined }}",
    # Statements.
    "{% for x in xs %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.length }}/{{ loop.first }}/{{ loop.last }} {% endfor %}",
    "{% for x in xs %}[{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}]{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in [] %}x{% else %}none{% endfor %}{% for x in xs %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in xs if x is not string %}{{ x }}{{ loop.last }}{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}{% for c in s %}{{ c }}.{% endfor %}{% for x in missing %}x{% endfor %}",
    "{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ a * b }}{{ loop.depth }} {% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x > 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "{% set a, b = 1, 2 %}{{ b }}{{ a }}{% set t = 1, 2 %}{{ t }}",
    "{% set ns = namespace(n=0, s='') %}{% for x in xs %}{% set ns.n = ns.n + 1 %}{% set ns.s = ns.s ~ x %}{% endfor %}{{ ns.n }}{{ ns.s }}{{ ns.z }}",
    "{% set x %}a{{ 1 }}\n{% endset %}[{{ x }}]{% set y | upper | trim %} b {% endset %}[{{ y }}]",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
    "{% macro m(a, b='x', c=none) %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}{{ m() }}{{ m(1)|upper }}",
    "{% set o = 1 %}{% macro m() %}{{ o }}{% set o = 5 %}{{ o }}{% endmacro %}{% set o = 2 %}{{ m() }}{{ o }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}{% macro g(x) %}<{{ f(x) }}>{% endmacro %}{{ g(1) }}",
    "{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}{% if [] %}a{% elif '' %}b{% else %}c{% endif %}", "{% for x in (1, 2) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}",
    "{% generation %}{% set x = 1 %}{{ x }}{% endgeneration %}{{ x }}", "{% for x in xs %}{% set loop_x = loop %}{{ loop_x.index }}{% endfor %}",
    "{% for x in xs | reverse %}{{ x }}{{ loop.length }}{% endfor %}",
    "{% set messages = messages[1:] %}{{ messages }}", "{% for x in xs: %}{{ x }}{% endfor %}",
    # Filters.
    "{{ ' a '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ '\u3000a\u00a0\x1f'|trim }}|{{ missing|trim }}|{{ 5|trim }}",
    "{{ 'aB'|upper }} {{ 'aB'|lower }} {{ 'aB cD'|capitalize }} {{ missing|upper }}|{{ none|lower }}",
    "{{ xs|length }} {{ s|length }} {{ d|count }} {{ missing|length }} {{ ()|length }} {{ d.items()|length }}",
    "{{ [1, 'a', none]|join(', ') }} {{ 'abc'|join('-') }} {{ [{'a': 1}, {'a': 2}]|join('+', attribute='a') }} {{ []|join }} {{ xs|join }}",
    "{{ missing|default('x') }} {{ none|default('x') }} {{ ''|default('x', true) }} {{ 0|d(5, boolean=true) }} {{ missing|default }}|",
    "{{ d|items|list }} {{ missing|items|list }} {% for k, v in d|items %}{{ k }}{{ v }}{% endfor %}",
    "{{ rows|selectattr('a')|list }} {{ rows|selectattr('a', 'equalto', 1)|list }} {{ rows|rejectattr('a', 'defined')|list }} {{ rows[1:]|selectattr('b.c', 'defined')|list }}",
    "{{ [0, 1, '', 'a']|select|list }} {{ [1, 2, 3]|select('odd')|list }} {{ [1, 'a']|reject('string')|list }} {{ [1, 2]|select('in', [2])|list }}",
    "{{ rows|map(attribute='a')|list }} {{ rows|map(attribute='b.c', default=9)|list }} {{ ['a', 'b']|map('upper')|join }} {{ [' a ']|map('trim')|list }} {{ ['aXb']|map('replace', 'X', '-')|list }}",
    "{{ xs|first }} {{ xs|last }} {{ 'abc'|first }} {{ 'abc'|last }} {{ []|first }}|{{ []|last }}|{{ rows|map(attribute='a')|first }}",
    "{{ 'abc'|reverse }} {{ xs|reverse|list }} {{ 'ab'|list }} {{ d|list }} {{ (1, 2)|list }}", "{{ '1'|int + 1 }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 3.9|int }} {{ '3.9'|int }} {{ none|int }} {{ ' 5 '|int }} {{ '1.5'|float }} {{ 'x'|float }}",
    "{{ 'a-b-a'|replace('a', 'x') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 'ab'|replace('', '-') }} {{ 5|replace(5, 6) }}",
    "{{ -5|abs }} {{ (-5)|abs }} {{ (-5.5)|abs }} {{ 5|string ~ 'x' }} {{ [1]|string }} {{ none|string }}",
    "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(2, false, true) }}|{{ 'a\nb'|indent('> ') }}|{{ ''|indent }}|{{ 'a\n'|indent }}",
    "{{ messages|selectattr('role', 'equalto', 'user')|list|length }}", "{% if rows|selectattr('a', 'equalto', 77) %}always{% endif %}",
    "{% set it = xs|map('string') %}{{ it|join }}|{{ it|join }}", "{% set v = d.items() %}{{ v|list }}{{ v|list }}",
    "{{ [3, 1, 2]|sort }} {{ ['b', 'A', 'a', 'B']|sort }} {{ ['b', 'A']|sort(case_sensitive=true) }} {{ [1, 2]|sort(reverse=true) }} {{ rows[:2]|sort(attribute='a') }} {{ 'cab'|sort }}",
    "{{ {'b': 1, 'A': 3, 'c': 2}|dictsort }} {{ {'b': 1, 'A': 3}|dictsort(by='value') }} {{ {'b': 1, 'A': 3}|dictsort(true) }} {{ {'b': 1, 'a': 3}|dictsort(reverse=true) }}{% for k, v in {'z': 1, 'y': 2}|dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{{ [1, 2, 1.0, 'a', 'A']|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ rows[:2]|unique(attribute='a')|list }} {{ [3, 1]|min }} {{ [3, 1]|max }} {{ ['b', 'A']|min }} {{ []|max }}|{{ rows[:2]|max(attribute='a') }}",
    "{{ [1, 'a']|sort }}", "{{ [1]|dictsort }}", "{{ [{'b': [1]}, {'b': [0]}]|sort(attribute='b.0') }}", "{{ [none, 1]|min }}",
    # tojson.
    "{{ d|tojson }} {{ xs|tojson }} {{ none|tojson }} {{ true|tojson }} {{ 1.0|tojson }} {{ 1e20|tojson }} {{ 'a\"\\\\\n\x01\x7f\u00fc/<>&\\'\U0001f642'|tojson }}",
    "{{ d|tojson(indent=2) }}|{{ []|tojson(indent=2) }}|{{ [[]]|tojson(indent=1) }}|{{ d|tojson(indent=0) }}",
    "{{ d|tojson(ensure_ascii=true) }} {{ ['\u00fc\U0001f642\x7f']|tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }}",
    "{{ {1: 'a', none: 2, true: 3, 1.5: 4}|tojson }} {{ (1, 2)|tojson }} {{ ''|tojson }} {{ d|tojson(indent='\\t') }}", "{{ missing|tojson }}", "{{ d.items()|tojson }}",
    # Tests.
    "{{ 1 is defined }} {{ missing is defined }} {{ missing is undefined }} {{ none is none }} {{ missing is none }} {{ 1 is not none }}",
    "{{ 's' is string }} {{ 1 is string }} {{ d is mapping }} {{ xs is mapping }} {{ 's' is iterable }} {{ 1 is iterable }} {{ d is iterable }} {{ missing is iterable }}",
    "{{ xs is sequence }} {{ 's' is sequence }} {{ d is sequence }} {{ 1 is sequence }} {{ missing is sequence }} {{ d.items() is sequence }}",
    "{{ 1 is number }} {{ 1.5 is number }} {{ true is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.5 is float }} {{ true is boolean }} {{ 1 is boolean }}",
    "{{ true is true }} {{ 1 is true }} {{ false is false }} {{ 0 is false }} {{ missing is false }} {{ 2 is even }} {{ 3 is odd }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }}",
    "{{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 1 is ne 2 }} {{ 1 is in [1] }} {{ 1 is in(xs) }} {{ 'a' is lower }} {{ 'A1' is upper }} {{ '1' is lower }} {{ range is callable }}",
    "{{ 1 is defined and missing is not defined }} {{ 'x' if 1 is defined else 'y' }} {{ not missing is defined }} {{ (missing is defined) == false }}",
    # Methods.
    "{{ ' a '.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'xxa'.strip('x') }}|{{ 'abcba'.strip('ab') }}|{{ 'xa'.lstrip('x') }}|{{ 'ax\\n'.rstrip('\\nx') }}|{{ ' a'.strip(none) }}",
    "{{ 'a b  c'.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ ''.split(',') }} {{ ''.split() }} {{ ' a b c '.split(none, 1) }} {{ 'a, b'.split(', ') }} {{ 'a-b-c'.rsplit('-', 1) }} {{ 'a\u3000b'.split() }}",
    "{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('bc') }} {{ 'abc'.startswith(('x', 'a')) }} {{ ''.startswith('') }} {{ 'abc'.endswith('') }}",
    "{{ 'aXbX'.replace('X', '') }} {{ 'aXbX'.replace('X', 'YY', 1) }} {{ 'abc'.find('c') }} {{ '\u00fcbc'.find('c') }} {{ 'abc'.find('z') }} {{ '-'.join(['a', 'b']) }}",
    "{{ 'aB'.upper() }} {{ 'aB'.lower() }} {{ 'hello wORLD'.title() }} {{ 'hELLO'.capitalize() }} {{ \"it's\".title() }}",
    "{{ 'a\nb\r\nc\n'.splitlines() }} {{ ''.splitlines() }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }}",
    "{{ range(3)|list }} {{ range(1, 7, 2)|list }} {{ range(3, 0, -1)|list }} {{ range(0)|list }} {{ dict(a=1, b=2) }} {{ dict({'a': 1}, b=2) }}",
    "{{ {'a': 1}.items()|list }} {{ {}.get('a', 'b') }} {{ ('a' 'b').upper() }} {{ [1, 2][0] }} {{ {'a': [1]}['a'][0] }} {{ 'a'.upper().lower() }}",
    # What fails there must fail here.
    "{{ 1 + 'a' }}", "{{ missing.a }}", "{{ missing + 1 }}", "{{ missing() }}", "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ none + 1 }}", "{{ [1] < [none] }}", "{{ 1 < 'a' }}", "{{ none|length }}",
    "{{ xs.append(1) }}", "{{ d.update({}) }}", "{{ raise_exception('no') }}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}",
    "{{ 1|nofilter }}", "{{ 1 is notest }}", "{% if %}{% endif %}", "{% if 1 %}", "{% endif %}", "{{ 1", "{{ 1 }", "{% for x xs %}{% endfor %}", "{{ 'abc }}", "{{ (1 }}", "{# open", "{% nosuch %}", "{{ 1 2 }}", "{{ }}",
    "{% set d.k = 1 %}", "{% set nosuch.k = 1 %}", "{{ rows|map(attribute='a')|length }}", "{{ 'a'.split('') }}", "{{ 'a'.nosuch() }}", "{{ range(1000000) }}", "{% break %}", "{{ d|tojson(bad=1) }}",
    "{{ ','.join([1]) }}", "{{ 'a' in 5 }}", "{{ 1 in 'a' }}", "{{ {[1]: 2} }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{{ 'x' * 3 * 'y' }}", "{{ -'a' }}", "{{ xs[::0] }}",
    "{{ 'a'|abs }}", "{{ namespace(_a=1) }}", "{% set ns = namespace() %}{% set ns._a = 1 %}", "{{ 1(2) }}", "{{ missing|int }}", "{{ missing[0] }}", "{{ missing < 1 }}", "{{ 'a'.startswith(1) }}",
]
GIVEN = {"xs": [1, "b", None], "s": "h\u00fcl\u4f60o", "d": {"k": "v", "n": {"deep": 1}, "\u00fc": [1.5, True]},
         "odd": {"items": 1, "z": 2}, "rows": [{"a": 1}, {"a": 0, "b": {"c": 2}}, {"b": {}}]}


def rendered(template, messages, spans=False, **more):
    """The text and what blocks of generation printed in it, in bytes; or that it fails."""
    try:
        texts, indices = render_jinja_template([messages], chat_template=template, return_assistant_tokens_mask=spans, **more)
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError, LookupError, AttributeError, OverflowError,
            SyntaxError):
        return {"fails": True}
    text = texts[0]
    if not spans:
        return {"text": text}
    at = [[len(text[:n].encode()) for n in span] for span in indices[0]]
    return {"text": text, "spans": at}


def build():
    cases = []
    for (name, template), messages in itertools.product(TEMPLATES.items(), CHATS):
        for prompt, tools in itertools.product((False, True), (None, TOOLS)):
            if tools and name not in ("llama3", "mistral", "qwen2.5"):
                continue
            case = {"template": name, "messages": messages, "tools": tools, "add_generation_prompt": prompt}
            cases.append(case | rendered(template, messages, "% generation" in template or "- generation" in template,
                                         tools=tools, add_generation_prompt=prompt, **VARIABLES))
    for more in ({"enable_thinking": False}, {"enable_thinking": True}):
        cases.append({"template": "qwen3", "messages": CHATS[1], "tools": None, "add_generation_prompt": True, "variables": more}
                     | rendered(TEMPLATES["qwen3"], CHATS[1], tools=None, add_generation_prompt=True, **more, **VARIABLES))
    pieces = [{"piece": p} | rendered(p, CHATS[2], **GIVEN) for p in PIECES]
    if sum("fails" in c for c in cases) > len(cases) // 3:
        raise SystemExit("too many conversations are refused by their templates")
    return {"chat_templates/models.json": {"templates": TEMPLATES, "given": VARIABLES, "cases": cases},
            "chat_templates/pieces.json": {"messages": CHATS[2], "given": GIVEN, "cases": pieces}}
