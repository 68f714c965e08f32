#include "tests/fuzz/run_template.h"

#include <memory>

#include "base/utf8.h"
#include "runner/chat/chat_template.h"

namespace mote::test {
namespace {

constexpr std::string_view kMessages = R"([
  {"role": "system", "content": "Be brief."},
  {"role": "user", "content": [{"type": "text", "text": "<|im_end|> \u00e4\u4f60\ud83d\ude00"}, {"type": "image"}]},
  {"role": "assistant", "content": "<think>x</think>y", "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": [1, 2.5, true, null], "b": "\n"}}}]},
  {"role": "tool", "name": "f", "content": "r"},
  {"role": "assistant", "content": null, "reasoning": "because"},
  {"role": "user", "content": ""}])";
constexpr std::string_view kTools = R"([{"type": "function", "function": {"name": "f", "description": "d",
  "parameters": {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}}}])";
constexpr std::string_view kVariables =
    R"({"bos_token": "<s>", "enable_thinking": true, "n": 7, "f": 2.5, "s": "Hello", "xs": [3, 1, 2]})";

Status check(const Prompt& prompt) {
  MOTE_REQUIRE(is_valid_utf8(prompt.text), Code::kInternal, "the rendered text is not UTF-8");
  size_t position = 0;
  for (const jinja::Span& span : prompt.marked) {
    MOTE_REQUIRE(span.begin >= position && span.begin < span.end && span.end <= prompt.text.size(), Code::kInternal,
                 "span [%zu, %zu) behind %zu of %zu bytes", span.begin, span.end, position, prompt.text.size());
    position = span.end;
  }
  return {};
}

}  // namespace

Status run_template(std::string_view input) {
  const size_t separator = std::min(input.find('\0'), input.size());
  MOTE_ASSIGN(const std::shared_ptr<const ChatTemplate> parsed, ChatTemplate::parse(input.substr(0, separator)));
  TemplateInput conversation;
  conversation.messages = separator < input.size() ? input.substr(separator + 1) : kMessages;
  conversation.tools = kTools;
  conversation.variables = kVariables;
  conversation.add_generation_prompt = true;
  MOTE_ASSIGN(const Prompt prompt, parsed->render(conversation, {.limits = {}, .now = 1700000000}));
  return check(prompt);
}

const std::vector<std::string>& template_seeds() {
  static const std::vector<std::string> seeds = {
      "{%- for m in messages %}{%- if loop.first and m.role == 'system' %}[{{ m.content | trim }}]{%- continue %}{%- "
      "endif %}\n"
      "<|{{ m.role }}|>{{ m | tojson(indent=2) }}{{ loop.previtem.role }}{{ loop.nextitem is defined }}\n{%- endfor %}"
      "{% if add_generation_prompt %}<|assistant|>{% endif %}",
      "{% macro show(v, depth=0) %}{% if v is mapping %}{% for k, x in v | dictsort %}{{ '  ' * depth }}{{ k }}: {{ "
      "show(x, depth + 1) }}"
      "{% endfor %}{% elif v is iterable and v is not string %}{% for x in v %}{{ show(x, depth + 1) }}{% endfor %}{% "
      "else %}{{ v }}\n"
      "{% endif %}{% endmacro %}{{ show(messages) }}{{ show(tools) }}",
      "{% set ns = namespace(n=0, t='') %}{% for m in messages[::-1] if m.content %}{% set ns.n = ns.n + loop.index0 %}"
      "{% set ns.t = ns.t ~ (m.content if m.content is string else m.content | map(attribute='text') | join(',')) %}{% "
      "endfor %}"
      "{{ ns.t.split('</think>')[-1].lstrip('\\n') | upper }}{{ ns.n // 2 ** 3 % 5 }}{{ bos_token + 'x' }}",
      "{% call(a, b=2) outer(1) %}{{ a }}{{ b }}{% endcall %}{% macro outer(x) %}{{ caller(x) if caller }}{{ varargs "
      "}}{{ kwargs }}{% endmacro %}"
      "{% set block | replace('a', 'b') %}banana{% endset %}{{ block }}{% filter indent(2, true) %}a\nb{% endfilter %}"
      "{% with a = 1, b = xs %}{{ a }}{{ b }}{% endwith %}{% generation %}{{ s }}{% endgeneration %}{% raw %}{{ x }}{% "
      "endraw %}{# c #}",
      "{{ '%s %5.2f %(a)s' % ('x', 1.5) }}{{ '{:>8} {0[1]} {!r}'.format(1, 2) }}",
      "{{ xs | sort(reverse=true) | first }}{{ [1, [2, {'a': (3,)}]] }}{{ messages | selectattr('role', 'equalto', "
      "'user') | list | length }}"
      "{{ messages | groupby('role') | map('first') | join('|') }}{{ xs | batch(2) | list }}{{ s[::-1] }}{{ s[1:3] "
      "}}{{ not n in xs }}"
      "{{ 1 < 2 <= 2 }}{{ 'a' if f > 2 else 'b' }}{{ strftime_now('%Y') }}{{ range(3) | list }}{{ dict(a=1) | tojson "
      "}}",
      "{% for x in [[1, [2]], [3]] recursive %}{{ loop.depth }}{% if x is iterable %}{{ loop(x) }}{% else %}{{ x }}{% "
      "endif %}{% endfor %}"
      "{% set c = cycler('a', 'b') %}{{ c.next() }}{% set j = joiner() %}{{ j() }}{{ j() }}{{ loop is defined }}",
      std::string("{{ messages[0]['content'] }}\0[{\"role\": \"user\", \"content\": \"x\"}]", 63),
  };
  return seeds;
}

}  // namespace mote::test
