"""Records in template_corner_cases.json what Jinja2 makes of constructs that few templates have: the text, or that it is an error.

Jinja2 is set up as transformers (5.23) sets it up. Run with a Python that has transformers and jinja2. `raw` is the text of the variables, so that numbers keep their digits on the way.
"""
import copy, json, pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template

RAW = """{"big": 12345678901234567890, "huge": -123456789012345678901234567890, "two63": 9223372036854775808, "low": -9223372036854775808, "items": [{"k": "b", "v": 1}, {"k": "A", "v": 2},
 {"k": "a", "v": 1}, {"v": 0}], "text": "Hello World foo_bar and more", "list": [3, 1, 2], "nested": [{"a": {"b": 1}}, {"a": {}}, {}], "letters": "ǅßİ ﬁŉ ΟΔΟΣ ΑΣΑ"}"""

TEMPLATES = """
{{ big }} {{ huge }} {{ two63 }} {{ low }} {{ [big, {'a': huge}] }}
{{ big|tojson }} {{ [huge, two63]|tojson(indent=2) }} {{ {huge: 1}|tojson }}
{{ big == 12345678901234567890 }} {{ big != huge }} {{ big > huge }} {{ huge < 0 }} {{ big >= 9223372036854775807 }} {{ big == 1 }} {{ huge < big < 1e30 }} {{ big == 'x' }}
{{ big is number }} {{ big is integer }} {{ big is float }} {{ big is string }} {{ big|string|length }} {{ '%d|%s'|format(big, huge) }} {{ big|int }} {{ huge|abs }} {{ -big }} {{ +huge }} {{ -low }}
{{ 18446744073709551616 }} {{ '123456789012345678901'|int }} {{ big|float }} {{ 'yes' if big else 'no' }} {{ big in [1, big] }} {{ [big, 1, huge]|sort }} {{ [1, big]|max }} {{ '%5.1f'|format(2.25) }}
{{ big.x is defined }} {{ big|length }}
{{ 1e400 }} {{ -1e400 }} {{ 1e-400 }}
{{ list|truncate }} {{ items|truncate(3)|length }} {{ {'a': 1}|truncate(3) }}
{{ list|truncate(1, true, '', 0) }}
{{ [1,2,3,4,5,6,7,8,9]|truncate(3) }}
{{ text|truncate(2) }}
{{ text|truncate(5) }}|{{ text|truncate(9, true) }}|{{ text|truncate(11, false, '..', 0) }}|{{ text|truncate(20, leeway=none) }}|{{ text|truncate(200) }}|{{ nope|truncate }}
{{ none|truncate }}
{{ letters|upper }} {{ letters|lower }} {{ letters|title }} {{ letters|capitalize }} {{ 'ﬁx'|capitalize }} {{ 'ﬂ ﬃ'.title() }} {{ 'ὈΔΥΣΣΕΎΣ'|lower }} {{ 'ᾳ ᾼ ŉ'|upper }} {{ 'ǆ'|capitalize }} {{ 'ΣΑΣ Σ'|lower }}
{{ range(3) }} {{ range(1, 5) }} {{ range(5, 0, -2) }} {{ range(10)[2:5] }} {{ range(10)[::3] }} {{ range(3)|list }} {{ range(4)|length }} {{ range(3)[1] }} {{ 2 in range(3) }} {{ range(3) is sequence }} {{ range(3)|join('-') }} {{ [range(2)] }}
{{ range(3)|tojson }}
{{ range(2) + range(2) }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}|{{ m(1, 2, 3) }}|{{ m(1, x=2) }}|{{ m(x=1) }}
{% macro m() %}{% for v in varargs %}[{{ v }}]{% endfor %}{% for k, v in kwargs.items() %}{{ k }}={{ v }};{% endfor %}{% endmacro %}{{ m(1, 'b', c=3, d=none) }}{{ m(*list, **{'z': 1}) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, b=2) }}
{% macro m() %}{{ varargs }}{% endmacro %}{{ m(x=1) }}
{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(1) }}
{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}x{% endcall %}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}x{% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m() %}{{ caller(1, 2, x=3) }}{% endmacro %}{% call(a) m() %}{{ a }}{{ varargs }}{{ kwargs }}{% endcall %}
{% macro m(a, b=2) %}{{ varargs }}{% endmacro %}{{ m.name }} {{ m.arguments }} {{ m.catch_varargs }} {{ m.catch_kwargs }} {{ m.caller }}
{% macro o() %}{% macro i() %}{{ varargs }}{% endmacro %}{{ i(1, 2) }}{% endmacro %}{{ o() }}
{{ items[:3]|sort(attribute='v,k')|map(attribute='k')|join }} {{ items[:3]|sort(attribute='v,k', reverse=true)|map(attribute='k')|join }} {{ nested|sort(attribute='zz')|length }} {{ [none, none]|sort }}
{{ items|sort(attribute='k') }}
{{ items|sort(attribute='v')|map(attribute='v')|list }}
{{ [1, none]|sort }}
{{ '0x1f'|int(0, 16) }} {{ '1f'|int(base=16) }} {{ 'ff'|int(7, 10) }} {{ '0b11'|int(0, 2) }} {{ '0o17'|int(0, 0) }} {{ '0x1F'|int(0, 0) }} {{ '-0x1f'|int(0, 16) }} {{ ' 1_000 '|int }} {{ '_1'|int(5) }} {{ '1__0'|int(5) }} {{ 'z'|int(0, 36) }} {{ '12'|int(3, 1) }} {{ '010'|int(3, 0) }} {{ '1.9'|int(0, 16) }}
{% for g in items|groupby('k', default='none') %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}
{% for g, l in items[:3]|groupby('k') %}{{ g }}:{{ l|length }} {% endfor %}|{% for g, l in items[:3]|groupby('k', case_sensitive=true) %}{{ g }}:{{ l|length }} {% endfor %}
{{ items|groupby('k') }}
{{ nested|map(attribute='a.b', default='d')|list }} {{ nested|map(attribute='a.b')|list|length }}
{% for g in nested|groupby('a.b', default=0) %}{{ g.grouper }}{% endfor %}
{{ [3, none]|max }}
{{ nope is callable }} {{ range is callable }} {{ 'a' is callable }} {{ 'upper' is filter }} {{ 'odd' is test }} {{ 1 is filter }}
{{ [] is filter }}
{{ 'a' % [1] }} {{ 'a' % {'b': 1} }} {{ '%s' % [1, 2] }} {{ '%s %s' % (1, 2) }}
{{ 'a' % (1,) }}
{{ 2 * range(3) }}
{{ 0 ** -1 }}
{{ 3.0 is divisibleby 1.5 }} {{ 2.0 is even }} {{ 3.0 is odd }} {{ big is even }} {{ huge is odd }} {{ '%s' is even }}
{{ 'a' is odd }}
{{ i[1:] is defined }}{{ list[1:] }}{{ text[::2] }}
{{ 5|int|list }}
{{ (list|length)[1:] }}
{{ {'a': list}[1:] }}
{% filter length %}abc{% endfilter %}
{% filter upper %}abc{{ list }}{% endfilter %}
{% macro m() %}{{ caller }}{% endmacro %}{% call m() %}{% endcall %}{{ m }}
""".strip().split("\n")


def outcome(template):
    try:
        return {"text": _compile_jinja_template(template).render(**copy.deepcopy(json.loads(RAW)))}
    except Exception:
        return {"error": True}


cases = [{"template": template, **outcome(template)} for template in TEMPLATES]
path = pathlib.Path(__file__).parent / "template_corner_cases.json"
path.write_text('{"raw":' + json.dumps(RAW) + ',\n"cases":[\n' + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]}\n")
