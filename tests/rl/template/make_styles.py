"""Records in template_style_cases.json what transformers (5.23.0, Jinja2 3.1.6) renders of templates in the styles that published models ship."""
import json, pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather at a place", "parameters": {
        "type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Name of the city"}, "units": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "days": {"type": "array", "items": {"type": "integer"}}, "where": {"type": "object", "properties": {"lat": {"type": "number"}}}}}}},
    {"type": "function", "function": {"name": "add", "description": "Sums <two> & more", "parameters": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}}}},
]
CHAT = [
    {"role": "system", "content": "  Be brief.\n"},
    {"role": "user", "content": "What is the weather in Oslo?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Oslo", "days": [1, 2]}}}]},
    {"role": "tool", "tool_call_id": "call_1", "name": "get_weather", "content": "{\"t\": -3}"},
    {"role": "assistant", "content": "<think>\nIt is cold.\n</think>\n\nMinus three: été ✓.", "reasoning_content": "It is cold."},
    {"role": "user", "content": [{"type": "text", "text": "Thanks! "}, {"type": "image"}, {"type": "text", "text": "And tomorrow?"}]},
]

STYLES = {}
STYLES["llama_tools"] = r"""{{- bos_token }}
{%- if custom_tools is defined %}{%- set tools = custom_tools %}{%- endif %}
{%- if not tools_in_user_message is defined %}{%- set tools_in_user_message = true %}{%- endif %}
{%- if not date_string is defined %}{%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content']|trim %}{%- set messages = messages[1:] %}{%- else %}{%- set system_message = "" %}{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}{{- "Environment: ipython\n" }}{%- endif %}
{%- if builtin_tools is defined %}{{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\n\n"}}{%- endif %}
{{- "Today Date: " + date_string + "\n\n" }}{{- system_message }}{{- "<|eot_id|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}{%- set first_user_message = messages[0]['content']|trim %}{%- set messages = messages[1:] %}{%- else %}{{- raise_exception("no user message") }}{%- endif %}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\n\n" }}{%- endfor %}{{- first_user_message + "<|eot_id|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | string | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("This model only supports single tool-calls at once!") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", ' }}{{- '"parameters": ' }}{{- tool_call.arguments | tojson }}{{- "}" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {%- if message.content is mapping or message.content is iterable %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}"""

STYLES["typescript_tools"] = r"""{%- macro render_type(spec, required, level=0) -%}
  {%- if spec.type is string and spec.type == "string" -%}{%- if spec.enum -%}{{- spec.enum | map('tojson') | join(' | ') -}}{%- else -%}string{%- endif -%}
  {%- elif spec.type in ["number", "integer"] -%}number
  {%- elif spec.type is sequence and spec.type is not string -%}{{- spec.type | join(" | ") -}}
  {%- elif spec.type == "array" -%}{{- render_type(spec['items'], [], level + 1) + "[]" -}}
  {%- elif spec.type == "object" -%}
    {{- "{\n" -}}{%- for name, prop in (spec.properties or {}).items() -%}
      {{- "  " * (level + 1) + name + ("" if name in (required or []) else "?") + ": " -}}{{- render_type(prop, prop.required, level + 1) -}}
      {%- if prop.default is defined -%}{{- ", // default: " + prop.default|tojson -}}{%- endif -%}{{- "\n" -}}
    {%- endfor -%}{{- "  " * level + "}" -}}
  {%- else -%}any{%- endif -%}
{%- endmacro -%}
namespace functions {
{% for tool in tools | map(attribute='function') -%}
// {{ tool.description }}
type {{ tool.name }} = (_: {{ render_type(tool.parameters, tool.parameters.required) }}) => any;
{% endfor -%}
}
{%- set ns = namespace(n=0, roles=[]) -%}
{%- for m in messages -%}{%- set ns.n = ns.n + 1 -%}{%- set ns.roles = ns.roles + [m.role] -%}{%- endfor %}
{{ ns.n }}: {{ ns.roles | unique | join(",") }}; {{ ns.roles | groupby(0) | list | length if false else ns.roles[::-1][:2] }}"""

STYLES["mistral_calls"] = r"""{%- set user_messages = messages | selectattr("role", "equalto", "user") | list %}
{%- set loop_messages = messages | rejectattr("role", "in", ["system"]) | list %}
{%- for message in loop_messages | rejectattr("role", "equalto", "tool") | rejectattr("tool_calls", "defined") %}
    {%- if (message["role"] == "user") != (loop.index0 % 2 == 0) %}{{- "(odd at " ~ loop.index0 ~ ")" }}{%- endif %}
{%- endfor %}
{{- bos_token }}{%- for message in loop_messages %}
    {%- if message.role == "user" %}{%- if tools is not none and (message == user_messages[-1]) %}{{- "[AVAILABLE_TOOLS] [" }}
        {%- for tool in tools %}{%- set tool = tool.function %}{{- '{"type": "function", "function": {' }}
            {%- for key, val in tool.items() if key != "return" %}{%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                {%- if not loop.last %}{{- ", " }}{%- endif %}{%- endfor %}{{- "}}" }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}{%- endfor %}{{- "[/AVAILABLE_TOOLS]" }}{%- endif %}
        {{- "[INST] " ~ (message.content if message.content is string else message.content | selectattr('type', 'eq', 'text') | map(attribute='text') | join('')) ~ "[/INST]" }}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}{{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}{%- set out = tool_call.function|tojson %}{{- out[:-1] }}{%- if not tool_call.id is defined or tool_call.id|length != 9 %}{{- ', "id": "' ~ tool_call.id[:9] ~ '"}' }}{%- endif %}{%- endfor %}{{- "]" + eos_token }}
    {%- elif message["role"] == "assistant" %}{{- " " + message["content"]|trim + eos_token }}
    {%- elif message["role"] in ["tool_results", "tool"] %}{%- if message.content is defined and message.content.content is defined %}{%- set content = message.content.content %}{%- else %}{%- set content = message.content %}{%- endif %}{{- '[TOOL_RESULTS] {"content": ' + content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}{{- raise_exception("Only user and assistant roles are supported") }}{%- endif %}
{%- endfor %}"""

STYLES["reasoning"] = r"""{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}{%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and not(message.content is string and message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}{%- set ns.multi_step_tool = false %}{%- set ns.last_query_index = index %}{%- endif %}
{%- endfor %}
{%- for message in messages %}{%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if message.role == "assistant" %}{%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}{%- set reasoning_content = message.reasoning_content %}{%- elif '</think>' in content %}{%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}{%- endif %}
        {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- if loop.index0 > ns.last_query_index or loop.last or (not loop.last and reasoning_content) %}{{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}{%- else %}{{- '<|im_start|>' + message.role + '\n' + content }}{%- endif %}
    {%- elif message.role == "tool" %}{%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}{{- '\n<tool_response>\n' ~ content ~ '\n</tool_response>' }}{%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\n' }}{%- endif %}
    {%- else %}{{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %}"""

STYLES["loops"] = r"""{% for m in messages %}{{ loop.cycle('a', 'b', 'c') }}{{ loop.index }}/{{ loop.length }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.previtem.role if loop.previtem is defined else '-' }}>{{ loop.nextitem.role|default('end') }} {{ loop.changed(m.role) }} {{ loop.depth }}{{ loop.depth0 }} {{ loop.first }} {{ loop.last }}
{% else %}none{% endfor %}{% for x in [] %}{{ x }}{% else %}empty{% endfor %}
{% for m in messages if m.role != 'tool' %}{% if loop.index == 2 %}{% continue %}{% endif %}{{ m.role }}{% if loop.index == 4 %}{% break %}{% endif %} {% endfor %}
{% for i in range(10, 0, -3) %}{{ i }},{% endfor %}{% for a, b in [[1, 2], (3, 4)] %}{{ a + b }};{% endfor %}{% for k in {'x': 1, 'y': [2]} %}{{ k }}{% endfor %}{% for k, v in {'b': 2, 'a': 1}|dictsort %}{{ k }}{{ v }}{% endfor %}
{% for k, v in {'b': 2, 'a': 3, 'c': 1}|dictsort(by='value', reverse=true) %}{{ k }}{{ v }}{% endfor %}{% for outer in [1, 2] %}{% for inner in 'xy' %}{{ outer }}{{ inner }}{{ loop.depth }}{% endfor %}{% endfor %}"""

STYLES["filters"] = r"""{{ [1, 2, 3, 4, 5] | batch(2, '-') | list }} {{ [1, 2, 3, 4, 5] | slice(2) | list }} {{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A', 'c'] | sort(case_sensitive=true, reverse=true) }}
{{ messages | map(attribute='role') | unique | list }} {{ messages | map(attribute='name', default='?') | join('|') }} {{ messages | groupby('role') | map('first') | list }}
{% for role, group in messages | groupby('role') %}{{ role }}={{ group | length }} {% endfor %}{% for g in messages | groupby('role') %}{{ g.grouper }}:{{ g.list | map(attribute='content') | list | length }} {% endfor %}
{{ "a\nb\n\nc" | indent }}|{{ "a\nb\n\nc" | indent(2, first=true, blank=true) }}|{{ "a\nb" | indent('>> ') }}
{{ "hello world" | title }} {{ "hello World" | capitalize }} {{ "a b c" | wordcount }} {{ "abc" | center(9) }}| {{ "%s is %d" | format("x", 3) }} {{ "hello" | replace("l", "L", 1) }} {{ "<b> & 'c'" | escape }} 
{{ "a long text that is cut somewhere" | truncate(12) }} {{ "a long text" | truncate(8, true, '…', 0) }} {{ 3.7 | round }} {{ 3.14159 | round(2, 'floor') }} {{ "3.9" | float | int }} {{ "x" | int(7) }} {{ -5 | abs }} {{ [1, 2] | sum }} {{ messages | sum(attribute='n', start=1) if false else '' }}
{{ {'a': 1, 'b': [true, none, 1.0]} | tojson }} {{ {'b': 1, 'a': "é<>&'"} | tojson(sort_keys=true, separators=(',', ':')) }} {{ {'a': []} | tojson(indent=2) }} {{ "é" | tojson(ensure_ascii=true) }} {{ [1, 'a', none, true, 1.5, {'k': 'v'}] }}
{{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ [] | first is undefined }} {{ [4, 9, 2] | max }} {{ ['b', 'a'] | min }} {{ 'abc' | reverse }} {{ [1, 2] | reverse | list }} {{ 'abc' | list }} {{ none | default('d') }} {{ none | default('d', true) }} {{ nothing | default('u') }} {{ '' | d('e', true) }}
{{ {'a': 1} | items | list }} {{ [[1, 'a'], [2, 'b']] | map('last') | join }} {{ ['a', 'b'] | map('upper') | list }} {{ [0, 1, '', 'x'] | select | list }} {{ [1, 2, 3, 4] | select('even') | list }} {{ [1, 2, 3] | reject('gt', 1) | list }} {{ 'a,b' | upper | lower }} {{ ' x ' | trim }} {{ 'xxaxx' | trim('x') }} {{ 'a b&c/' | urlencode }}"""

STYLES["methods"] = r"""{{ "a-b-c".split("-") }} {{ "a  b".split() }} {{ "a-b-c".rsplit("-", 1) }} {{ "k=v=w".partition("=") }} {{ "k=v=w".rpartition("=") }} {{ "a\nb\r\nc".splitlines() }} {{ "abc".startswith(("x", "a")) }} {{ "abc".endswith("c", 1) }} {{ "xaybz".removeprefix("xa").removesuffix("z") }} {{ "Hello".upper().lower().title().swapcase() }} {{ "abcabc".find("c") }} {{ "abcabc".rfind("z") }} {{ "abcabc".count("b") }} {{ "abcabc".index("b", 2) }} {{ "a{}b{x}{0!r}".format(1, x=2) if false else "" }} {{ "{} {name} {0}".format("p", name="q") if false else "" }}{{ "abcabc".rindex("b", 0, 3) }} {{ "abcabc".count("b", 2) }} {{ "abc".find("c", -1) }}
{{ "12".isdigit() }} {{ "a1".isalnum() }} {{ "ab".isalpha() }} {{ " ".isspace() }} {{ "AB".isupper() }} {{ "ab".islower() }} {{ "x".join(["a", "b"]) }} {{ "a".ljust(3) }}|{{ "a".rjust(3, "*") }} {{ "é".encode("utf-8") | length if false else "" }} {{ "abc".replace("b", "") }} {{ "ß".casefold() }} {{ "abc"[-2:] }} {{ "abcdef"[::2] }} {{ "abcdef"[4:1:-1] }} {{ [1, 2, 3, 4][1:-1] }} {{ (1, 2, 3)[::-1] }} {{ "abc"[10:] }}|
{{ {'a': 1}.get('b', 'none') }} {{ {'a': 1}.get('b') }} {{ {'a': 1, 'b': 2}.keys() | list }} {{ {'a': 1}.values() | list }} {{ {'a': 1}.items() | list }} {{ {'a': {'b': 1}}['a'].b }} {{ {'items': 5}['items'] }} {{ {'items': 5}.items is callable }} {{ [1, 2].index(2) }} {{ [1, 1].count(1) }} {{ [1, 2] + [3] }} {{ [0] * 3 }} {{ 'ab' * 2 }} {{ dict(a=1, **{'b': 2}) }} {{ 7 // 2 }} {{ 7 % 3 }} {{ 2 ** 3 }} {{ 'a' ~ 1 ~ none ~ true }} {{ 1 < 2 < 3 }} {{ 1 in [1] and 2 not in [1] }} {{ not [] }} {{ (1 if true else 2) }} {{ 'x' if false }}|{{ "a" "b" }} {{ 0x1f }} {{ 1_000 }} {{ 1.5e3 }} {{ 'a\'b\\n' }} {{ [1, 2,] }} {{ (1,) }} {{ () }} {{ {} }}"""

STYLES["blocks"] = r"""{#- a comment -#}
{%- set intro %}  Tools:
{%- for tool in tools %}
 * {{ tool.function.name }}
{%- endfor %}
{% endset %}[{{ intro }}]
{%- set shout | upper | trim %} hello {{ messages[1].role }} {% endset %}
{{ shout }}
{% filter replace('o', '0') | upper %}follow the road{% endfilter %}
{% macro box(title, width=3, tag='b') %}{{ caller is defined }}{% endmacro %}
{%- macro wrap(tag) %}<{{ tag }}>{{ caller('inner') }}</{{ tag }}>{% endmacro %}
{%- call(x) wrap('i') %}{{ x }} of {{ messages | length }}{% endcall %}
{% macro many(a, b='B') %}{{ a }}{{ b }}{% endmacro %}{{ many(1) }} {{ many(1, 2) }} {{ many(b=1, a=2) }} {{ many.name }}
{% raw %}{{ not rendered }} {% no %}{% endraw %}
{%- with a = 1, b = messages[0].role %} {{ a }}{{ b }}{% endwith %}
{%- if true %} yes {%- elif x %} no {% else %} never {% endif %}
{%- generation %} made here {% endgeneration %}
    {% if true -%}   stripped   {%- endif %}
   {%+ if true %}kept{% endif +%}
{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set d = {'k': 1} %}{{ d.k }}{% set ns = namespace(a=1, b={}) %}{% set ns.a = ns.a + 1 %}{{ ns.a }}{{ ns.missing is defined }}
"""

STYLES["tests"] = r"""{{ 1 is number }} {{ 'a' is string }} {{ [] is sequence }} {{ {} is mapping }} {{ 'a' is iterable }} {{ 5 is divisibleby 5 }} {{ 3 is odd }} {{ 4 is even }} {{ none is none }} {{ x is undefined }} {{ messages is defined }} {{ true is boolean }} {{ false is false }} {{ 1 is true }} {{ 1.0 is float }} {{ 1 is integer }} {{ 1 is sameas 1 }} {{ 2 is eq 2 }} {{ 2 is ne 3 }} {{ 2 is gt 1 }} {{ 2 is lessthan 3 }} {{ 'a' is in 'abc' }} {{ 'A' is upper }} {{ 'a' is lower }} {{ raise_exception is callable }} {{ 'trim' is filter }} {{ 'odd' is test }} {{ '<' is escaped }} {{ 1 is not string }}
{% if messages[-1].content is not string %}list of {{ messages[-1].content | length }}: {% for part in messages[-1].content %}{% if part.type == 'image' %}<img>{% elif part['type'] == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endif %}
{{ messages[5].content[0].nope is defined }} {{ messages[5]['content'][0]['nope'] | default('-') }} {{ (messages | selectattr('tool_calls') | list)[0].tool_calls[0].function.arguments.city }} {{ messages | selectattr('content', 'none') | list | length }} {{ messages | selectattr('content', 'string') | map(attribute='content') | map('length') | sum }} {{ messages | map('attr', 'role') | list if false else '' }} {{ messages[2].tool_calls | map(attribute='function.name') | list }} {{ messages | map(attribute='content.0.text') | list if false else '' }}"""

STYLES["documents"] = r"""{%- if documents %}{% for doc in documents %}<doc id="{{ doc.doc_id | default(loop.index0) }}">{{ doc.title | e if doc.title else '' }}
{{ doc.text | indent(4, true) }}</doc>
{% endfor %}{% endif %}{%- set date = strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %p %I %y %%') %}{{ date }}
{%- set roles = {'user': 'Human', 'assistant': 'AI'} %}{% for m in messages %}{% if roles.get(m.role) %}{{ '\n\n' }}{{ roles[m.role] }}: {{ m.content if m.content is string else (m.content or []) | tojson }}{% endif %}{% endfor %}
{%- if messages | length > 40 %}{{ raise_exception('Too long: ' ~ messages | length) }}{% endif %}"""

ERRORS = ["{{ raise_exception('no: ' ~ messages | length) }}", "{{ nope.x }}", "{{ messages.nope() }}", "{{ messages[99].role.x }}", "{{ 'a' + 1 }}", "{{ [] + {} }}", "{{ nope() }}", "{{ 1 / 0 }}", "{{ {'a': 1} | first }} {{ 5 | first }}",
          "{% for x in 5 %}{% endfor %}", "{{ [3, 'a'] | sort }}", "{{ {}.update({'a': 1}) }}", "{{ [].append(1) }}", "{{ ''.__class__ }}", "{% macro m(a) %}{{ a.b.c }}{% endmacro %}{{ m() }}", "{{ 'x'.join([1]) }}",
          "{{ 'abc'.index('z') }}", "{% set a, b = [1] %}", "{{ [1, 2] | batch }}", "{{ {1: 2}[nope] }}", "{{ none.x }}", "{{ none | length }}"]

variables = {"messages": CHAT, "tools": TOOLS, "documents": [{"title": "A & B", "text": "one\ntwo"}, {"doc_id": "d7", "text": "three"}], "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>",
             "now": "2026-03-09T07:05:00"}


def render(template, given):
    from datetime import datetime
    compiled = _compile_jinja_template(template)
    now = datetime.fromisoformat(given["now"])
    return compiled.render(**{k: v for k, v in given.items() if k != "now"}, strftime_now=lambda format: now.strftime(format))


CHANGES = [{}, {"tools": None, "messages": CHAT[1:2]}, {"messages": CHAT[:2], "add_generation_prompt": False, "documents": None, "enable_thinking": False}]


def outcome(template, given):
    try:
        return {"text": render(template, given)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


written = {"variables": variables, "changes": CHANGES,
           "styles": [{"style": name, "template": template, "expected": [outcome(template, variables | change) for change in CHANGES]} for name, template in STYLES.items()]
           + [{"style": "error", "template": template, "expected": [outcome(template, variables)]} for template in ERRORS]}
pathlib.Path(__file__).with_name("template_style_cases.json").write_text(json.dumps(written, ensure_ascii=False, indent=0) + "\n")
