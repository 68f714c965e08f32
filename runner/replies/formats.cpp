#include <array>

#include "runner/replies/format.h"
#include "runner/replies/text.h"

namespace mote::reply {
namespace {

using enum State;
using Marks = std::string_view;

constexpr Marks kLineBreaks = "\n";

constexpr Marks kTurnEnds[] = {"<|im_end|>",
                               "<|eot_id|>",
                               "<|eom_id|>",
                               "<|endoftext|>",
                               "<|end_of_text|>",
                               "<|end|>",
                               "<|return|>",
                               "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
                               "<end_of_turn>",
                               "<turn|>",
                               "<seed:eos>",
                               "[e~[",
                               "<|END_OF_TURN_TOKEN|>",
                               "<end_of_sentence>"};
constexpr Marks kMistralEnds[] = {"</s>"};
constexpr Marks kGlmEnds[] = {"</assistant>", "<|user|>", "<|observation|>", "<|endoftext|>",
                              "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

// ---- reasoning

constexpr Rule kThink[] = {
    {kContent, "<think>", kReasoning, kFirst},
    {kContent, "</think>", kContent, kFirst},
    {kReasoning, "</think>", kContent},
};
constexpr Rule kThinkAndResponse[] = {
    {kContent, "<think>", kReasoning, kFirst}, {kReasoning, "</think>", kContent},
    {kContent, "<response>", kAnswer, kFirst}, {kAnswer, "</response>", kOutside},
    {kOutside, kAny, kContent, kAgain},
};
constexpr Rule kSeedThink[] = {
    {kContent, "<seed:think>", kReasoning, kFirst},
    {kReasoning, "</seed:think>", kContent},
};
constexpr Rule kMinimaxThink[] = {
    {kContent, "<mm:think>", kReasoning, kFirst},
    {kContent, "</mm:think>", kContent, kFirst},
    {kReasoning, "</mm:think>", kContent},
};
constexpr Rule kMistralThink[] = {
    {kContent, "[THINK]", kReasoning, kFirst},
    {kReasoning, "[/THINK]", kContent},
};
constexpr Rule kGemmaThought[] = {
    {kContent, "<|channel>thought\n", kReasoning, kFirst},
    {kReasoning, "<channel|>", kContent},
};
constexpr Rule kFinalResponse[] = {
    {kContent, "Here are my reasoning steps:", kReasoning, kFirst},
    {kReasoning, "[BEGIN FINAL RESPONSE]", kAnswer},
    {kAnswer, "[END FINAL RESPONSE]", kOutside},
    {kOutside, kAny, kContent, kAgain},
};
constexpr Rule kCohereThink[] = {
    {kContent, "<|START_THINKING|>", kReasoning, kFirst},
    {kReasoning, "<|END_THINKING|>", kContent},
    {kContent, "<|START_RESPONSE|>", kAnswer, kFirst},
    {kAnswer, "<|END_RESPONSE|>", kOutside},
    {kOutside, kAny, kContent, kAgain},
};

// ---- calls as JSON objects

constexpr Rule kHermes[] = {
    {kContent, "<tool_call>", kSection},
    {kSection, "{", kObject, kAgain},
    {kObject, "</tool_call>", kContent, kEnd},
};
constexpr Rule kToolCalls[] = {
    {kContent, "<tool_calls>", kSection},
    {kAnswer, "<tool_calls>", kSection},
    {kReasoning, "<tool_calls>", kSection},
    {kOutside, "<tool_calls>", kSection},
    {kSection, "[", kSection},
    {kSection, ",", kSection},
    {kSection, "]", kSection},
    {kSection, "{", kObject, kAgain},
    {kObject, kComplete, kSection, kEnd},
    {kSection, "</tool_calls>", kContent},
};
// A mark, and a JSON list of calls behind it.
constexpr std::array<Rule, 6> list_behind(std::string_view mark) {
  return {{{kContent, mark, kSection},
           {kSection, "[", kSection},
           {kSection, ",", kSection},
           {kSection, "]", kContent},
           {kSection, "{", kObject, kAgain},
           {kObject, kComplete, kSection, kEnd}}};
}
constexpr auto kGranite = list_behind("<|tool_call|>");
constexpr Rule kFunctools[] = {
    {kContent, "functools[", kSection},
    {kSection, ",", kSection},
    {kSection, "]", kContent},
    {kSection, "{", kObject, kAgain},
    {kObject, kComplete, kSection, kEnd},
};
constexpr auto kMistral = list_behind("[TOOL_CALLS]");
constexpr Rule kCommandR[] = {
    {kContent, "Action:\n```json", kSection},
    {kContent, "Action: ```json", kSection},
    {kSection, "[", kSection},
    {kSection, ",", kSection},
    {kSection, "]", kAfter},
    {kSection, "{", kObject, kAgain},
    {kObject, kComplete, kSection, kEnd},
    {kAfter, "```", kContent},
    {kAfter, kAny, kContent, kAgain},
};
constexpr Rule kCohereActions[] = {
    {kContent, "<|START_ACTION|>", kSection},
    {kSection, "[", kSection},
    {kSection, ",", kSection},
    {kSection, "]", kSection},
    {kSection, "{", kObject, kAgain},
    {kObject, kComplete, kSection, kEnd},
    {kSection, "<|END_ACTION|>", kContent},
};
constexpr Rule kGigachat[] = {
    {kContent, "<|message_sep|>", kOutside},
    {kOutside, "<|message_sep|>", kOutside},
    {kOutside, "function call<|role_sep|>", kSection},
    {kOutside, kAny, kContent, kAgain},
    {kSection, "{", kObject, kAgain},
    {kObject, kComplete, kOutside, kEnd},
};
constexpr Rule kLlama[] = {
    {kStart, "{", kBareObject, kAgain}, {kStart, "<|python_tag|>", kSection},
    {kStart, kAny, kContent, kAgain},   {kContent, "<|python_tag|>", kSection},
    {kSection, "{", kObject, kAgain},   {kSection, kAny, kPython, kAgain},
    {kObject, kComplete, kAfter, kEnd}, {kBareObject, kComplete, kAfter, kEnd},
    {kPython, kComplete, kAfter, kEnd}, {kAfter, ";", kAfter},
    {kAfter, "{", kBareObject, kAgain}, {kAfter, "<|python_tag|>", kSection},
    {kAfter, kAny, kContent, kAgain},
};

constexpr Rule kOneCall[] = {
    {kStart, "{", kObject, kAgain},
    {kStart, kAny, kContent, kAgain},
    {kObject, kComplete, kContent, kEnd},
};

// ---- a name, then arguments as one value

constexpr Rule kMistralArguments[] = {
    {kContent, "[TOOL_CALLS]", kName},       {kName, "[CALL_ID]", kId},
    {kName, "[ARGS]", kArguments, kBegin},   {kId, "[ARGS]", kArguments, kBegin},
    {kArguments, kComplete, kContent, kEnd},
};
constexpr Rule kFunctionary[] = {
    {kContent, "<function=", kName},
    {kContent, "<|python_tag|>", kArguments, kBegin},
    {kName, ">", kArguments, kBegin},
    {kArguments, kComplete, kAfter, kEnd},
    {kAfter, "</function>", kContent},
    {kAfter, "<function=", kName},
    {kAfter, "<|python_tag|>", kArguments, kBegin},
    {kAfter, kAny, kContent, kAgain},
};
constexpr Rule kDeepseekR1[] = {
    {kContent, "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>", kSection},
    {kSection, "<\uFF5Ctool\u2581call\u2581begin\uFF5C>", kHeader},
    {kHeader, "<\uFF5Ctool\u2581sep\uFF5C>", kName},
    {kName, "```json", kArguments, kBegin},
    {kArguments, "```", kAfter},
    {kAfter, "<\uFF5Ctool\u2581call\u2581end\uFF5C>", kSection, kEnd},
    {kSection, "<\uFF5Ctool\u2581calls\u2581end\uFF5C>", kContent},
};
constexpr Rule kDeepseek[] = {
    {kContent, "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>", kSection},
    {kSection, "<\uFF5Ctool\u2581call\u2581begin\uFF5C>", kName},
    {kName, "<\uFF5Ctool\u2581sep\uFF5C>", kArguments, kBegin},
    {kArguments, "<\uFF5Ctool\u2581call\u2581end\uFF5C>", kSection, kEnd},
    {kSection, "<\uFF5Ctool\u2581calls\u2581end\uFF5C>", kContent},
};
constexpr Rule kKimi[] = {
    {kContent, "<|tool_calls_section_begin|>", kSection},        {kSection, "<|tool_call_begin|>", kName},
    {kName, "<|tool_call_argument_begin|>", kArguments, kBegin}, {kArguments, "<|tool_call_end|>", kSection, kEnd},
    {kSection, "<|tool_calls_section_end|>", kContent},
};
constexpr Rule kGemma[] = {
    {kContent, "<|tool_call>call:", kName},
    {kName, "{", kArguments, kBegin | kAgain},
    {kArguments, "<tool_call|>", kContent, kEnd},
};
constexpr Rule kFunctionGemma[] = {
    {kContent, "<start_function_call>call:", kName},
    {kName, "{", kArguments, kBegin | kAgain},
    {kArguments, "<end_function_call>", kContent, kEnd},
};
constexpr Rule kHarmony[] = {
    {kHeader, "<|start|>", kHeader},      {kHeader, "<|message|>", kContent, kRoute},
    {kContent, "<|end|>", kOutside},      {kContent, "<|return|>", kOutside},
    {kContent, "<|start|>", kHeader},     {kContent, "<|channel|>", kHeader},
    {kReasoning, "<|end|>", kOutside},    {kReasoning, "<|start|>", kHeader},
    {kReasoning, "<|channel|>", kHeader}, {kArguments, kComplete, kOutside, kEnd},
    {kOutside, "<|start|>", kHeader},     {kOutside, "<|channel|>", kHeader},
    {kOutside, "<|end|>", kOutside},      {kOutside, "<|call|>", kOutside},
    {kOutside, "<|return|>", kOutside},   {kOutside, kAny, kContent, kAgain},
};
constexpr Route kHarmonyRoutes[] = {{"to=", kArguments}, {"analysis", kReasoning}, {"", kContent}};
constexpr Rule kSolar[] = {
    {kHeader, "<|think|>", kReasoning},
    {kHeader, "<|content|>", kContent},
    {kHeader, "<|tool_calls|>", kSection},
    {kReasoning, "<|end|>", kOutside},
    {kContent, "<|end|>", kOutside},
    {kOutside, "<|begin|>", kHeader},
    {kOutside, "<|end|>", kOutside},
    {kOutside, kAny, kContent, kAgain},
    {kSection, "<|tool_call:begin|>", kId},
    {kId, "<|tool_call:name|>", kName},
    {kName, "<|tool_call:args|>", kArguments, kBegin},
    {kArguments, "<|tool_call:end|>", kSection, kEnd},
    {kSection, "<|calls|>", kOutside},
};

// ---- a name, then parameters

constexpr Rule kQwenParameters[] = {
    {kContent, "<tool_call>", kSection},      {kContent, "<function=", kName},
    {kSection, "<function=", kName},          {kName, ">", kParameters, kBegin},
    {kParameters, "<parameter=", kKey},       {kKey, ">", kTyped},
    {kTyped, "</parameter>", kParameters},    {kParameters, "</function>", kAfter},
    {kAfter, "</tool_call>", kContent, kEnd},
};
constexpr Rule kSeed[] = {
    {kContent, "<seed:tool_call>", kSection},
    {kSection, "<function=", kName},
    {kName, ">", kParameters, kBegin},
    {kParameters, "<parameter=", kKey},
    {kKey, ">", kTyped},
    {kTyped, "</parameter>", kParameters},
    {kParameters, "</function>", kAfter},
    {kAfter, "</seed:tool_call>", kContent, kEnd},
};
constexpr Rule kGlm[] = {
    {kContent, "<tool_call>", kName},
    {kName, "<arg_key>", kKey, kBegin},
    {kName, "</tool_call>", kContent, kBegin | kEnd},
    {kKey, "</arg_key>", kBetween},
    {kBetween, "<arg_value>", kTyped},
    {kTyped, "</arg_value>", kParameters},
    {kParameters, "<arg_key>", kKey},
    {kParameters, "</tool_call>", kContent, kEnd},
};
constexpr Rule kMinimaxM2[] = {
    {kContent, "<minimax:tool_call>", kSection},
    {kSection, "<invoke name=\"", kName},
    {kName, "\">", kParameters, kBegin},
    {kParameters, "<parameter name=\"", kKey},
    {kKey, "\">", kTyped},
    {kTyped, "</parameter>", kParameters},
    {kParameters, "</invoke>", kSection, kEnd},
    {kSection, "</minimax:tool_call>", kContent},
};
constexpr Rule kMinimaxM3[] = {
    {kContent, "]<]minimax[>[<tool_call>", kSection},
    {kSection, "]<]minimax[>[<invoke name=\"", kName},
    {kName, "\">", kParameters, kBegin},
    {kParameters, "]<]minimax[>[<", kKey},
    {kParameters, "]<]minimax[>[</invoke>", kSection, kEnd},
    {kKey, ">", kNested},
    {kNested, kComplete, kParameters},
    {kSection, "]<]minimax[>[</tool_call>", kContent},
};
constexpr Rule kDsml[] = {
    {kContent, "<\uFF5CDSML\uFF5Ctool_calls>", kSection},
    {kContent, "<\uFF5CDSML\uFF5Cfunction_calls>", kSection},
    {kSection, "<\uFF5CDSML\uFF5Cinvoke name=\"", kName},
    {kName, "\">", kParameters, kBegin},
    {kParameters, "<\uFF5CDSML\uFF5Cparameter name=\"", kKey},
    {kKey, "\" string=\"true\">", kText},
    {kKey, "\" string=\"false\">", kTyped},
    {kText, "</\uFF5CDSML\uFF5Cparameter>", kParameters},
    {kTyped, "</\uFF5CDSML\uFF5Cparameter>", kParameters},
    {kParameters, "</\uFF5CDSML\uFF5Cinvoke>", kSection, kEnd},
    {kSection, "</\uFF5CDSML\uFF5Ctool_calls>", kContent},
    {kSection, "</\uFF5CDSML\uFF5Cfunction_calls>", kContent},
};

// ---- Python

constexpr Rule kLfm2[] = {
    {kContent, "<|tool_call_start|>", kSection},
    {kSection, "[", kSection},
    {kSection, ",", kSection},
    {kSection, "]", kSection},
    {kSection, "<|tool_call_end|>", kContent},
    {kSection, kAny, kPython, kAgain},
    {kPython, kComplete, kSection, kEnd},
};
constexpr Rule kToolCode[] = {
    {kContent, "```tool_code\n", kSection},
    {kSection, "[", kSection},
    {kSection, ",", kSection},
    {kSection, "]", kSection},
    {kSection, "```", kContent},
    {kSection, kAny, kPython, kAgain},
    {kPython, kComplete, kSection, kEnd},
};

constexpr Marks kHarmonySigns[] = {"<|channel|>", "<|message|>"};
constexpr Marks kSolarSigns[] = {"<|tool_call:begin|>"};
constexpr Marks kMinimaxM3Signs[] = {"]<]minimax[>["};
constexpr Marks kMinimaxM2Signs[] = {"<minimax:tool_call>"};
constexpr Marks kDsmlSigns[] = {"\uFF5CDSML\uFF5C"};
constexpr Marks kDeepseekR1Signs[] = {"<\uFF5Ctool\u2581sep\uFF5C>", "```json"};
constexpr Marks kDeepseekSigns[] = {"<\uFF5Ctool\u2581sep\uFF5C>"};
constexpr Marks kKimiSigns[] = {"<|tool_calls_section_begin|>"};
constexpr Marks kMistralArgumentsSigns[] = {"[TOOL_CALLS]", "[ARGS]"};
constexpr Marks kMistralSigns[] = {"[TOOL_CALLS]"};
constexpr Marks kGemma4Signs[] = {"<|tool_call>call:"};
constexpr Marks kFunctionGemmaSigns[] = {"<start_function_call>"};
constexpr Marks kSeedSigns[] = {"<seed:tool_call>"};
constexpr Marks kGlmSigns[] = {"<arg_key>"};
constexpr Marks kQwenParametersSigns[] = {"<function=", "<parameter="};
constexpr Marks kFunctionarySigns[] = {"<function="};
constexpr Marks kLfm2Signs[] = {"List of tools: "};
constexpr Marks kLfm2TokenSigns[] = {"<|tool_call_start|>"};
constexpr Marks kAprielSigns[] = {"[BEGIN FINAL RESPONSE]"};
constexpr Marks kToolCallsSigns[] = {"<tool_calls>"};
constexpr Marks kGraniteSigns[] = {"<|tool_call|>"};
constexpr Marks kGigachatSigns[] = {"<|role_sep|>", "function call"};
constexpr Marks kCommandRSigns[] = {"Action:", "tool_name"};
constexpr Marks kCohereSigns[] = {"<|START_ACTION|>"};
constexpr Marks kFunctoolsSigns[] = {"functools["};
constexpr Marks kHermesSigns[] = {"<tool_call>"};
constexpr Marks kLlamaSigns[] = {"<|start_header_id|>", "\"parameters\": "};
constexpr Marks kGemmaSigns[] = {"<start_of_turn>"};
// The reply is one call as JSON, because a grammar says so.
constexpr Marks kNoTemplate[] = {Marks("\0", 1)};
constexpr Marks kThinkSigns[] = {"</think>"};

constexpr Marks kBlank = " \t\r\n";

}  // namespace

std::span<const Format> formats() {
  static const Format table[] = {
      {.name = "gpt-oss",
       .signs = kHarmonySigns,
       .reasoning = {},
       .calls = kHarmony,
       .start = kHeader,
       .ends = kTurnEnds,
       .name_prefix = "functions.",
       .routes = kHarmonyRoutes},
      {.name = "solar", .signs = kSolarSigns, .reasoning = {}, .calls = kSolar, .start = kHeader, .ends = kTurnEnds},
      {.name = "minimax-m3",
       .signs = kMinimaxM3Signs,
       .reasoning = kMinimaxThink,
       .calls = kMinimaxM3,
       .ends = kTurnEnds,
       .element_prefix = "]<]minimax[>["},
      {.name = "minimax-m2",
       .signs = kMinimaxM2Signs,
       .reasoning = kThink,
       .calls = kMinimaxM2,
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .ends = kTurnEnds},
      {.name = "deepseek-v4",
       .signs = kDsmlSigns,
       .reasoning = kThink,
       .calls = kDsml,
       .trims = kLineBreaks,
       .ends = kTurnEnds},
      {.name = "deepseek-r1",
       .signs = kDeepseekR1Signs,
       .reasoning = kThink,
       .calls = kDeepseekR1,
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .ends = kTurnEnds},
      {.name = "deepseek-v3.1", .signs = kDeepseekSigns, .reasoning = kThink, .calls = kDeepseek, .ends = kTurnEnds},
      {.name = "kimi-k2",
       .signs = kKimiSigns,
       .reasoning = kThink,
       .calls = kKimi,
       .ends = kTurnEnds,
       .name_prefix = "functions.",
       .name_is_id = true},
      {.name = "mistral",
       .signs = kMistralArgumentsSigns,
       .reasoning = kMistralThink,
       .calls = kMistralArguments,
       .ends = kMistralEnds},
      {.name = "mistral-list",
       .signs = kMistralSigns,
       .reasoning = kMistralThink,
       .calls = kMistral,
       .trims = " ",
       .ends = kMistralEnds},
      {.name = "gemma-4",
       .signs = kGemma4Signs,
       .reasoning = kGemmaThought,
       .calls = kGemma,
       .ends = kTurnEnds,
       .syntax = &kGemmaSyntax},
      {.name = "functiongemma",
       .signs = kFunctionGemmaSigns,
       .reasoning = {},
       .calls = kFunctionGemma,
       .ends = kTurnEnds,
       .syntax = &kGemmaSyntax},
      {.name = "seed-oss",
       .signs = kSeedSigns,
       .reasoning = kSeedThink,
       .calls = kSeed,
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .ends = kTurnEnds,
       .syntax = &kPythonSyntax},
      {.name = "glm",
       .signs = kGlmSigns,
       .reasoning = kThink,
       .calls = kGlm,
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .trims_end = true,
       .ends = kGlmEnds},
      {.name = "qwen3-coder",
       .signs = kQwenParametersSigns,
       .reasoning = kThink,
       .calls = kQwenParameters,
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .ends = kTurnEnds,
       .syntax = &kPythonSyntax,
       .has_padded_values = true},
      {.name = "functionary",
       .signs = kFunctionarySigns,
       .reasoning = {},
       .calls = kFunctionary,
       .ends = kTurnEnds,
       .default_name = "python"},
      {.name = "lfm2",
       .signs = kLfm2Signs,
       .reasoning = kThink,
       .calls = kLfm2,
       .trims = kBlank,
       .trims_reasoning = kBlank,
       .ends = kTurnEnds},
      {.name = "lfm2",
       .signs = kLfm2TokenSigns,
       .reasoning = kThink,
       .calls = kLfm2,
       .trims = kBlank,
       .trims_reasoning = kBlank,
       .ends = kTurnEnds},
      {.name = "apriel",
       .signs = kAprielSigns,
       .reasoning = kFinalResponse,
       .calls = kToolCalls,
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .trims_end = true,
       .ends = kTurnEnds},
      {.name = "tool-calls-list",
       .signs = kToolCallsSigns,
       .reasoning = kThink,
       .calls = kToolCalls,
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .trims_end = true,
       .ends = kTurnEnds},
      {.name = "granite-3",
       .signs = kGraniteSigns,
       .reasoning = kThinkAndResponse,
       .calls = kGranite,
       .trims = kBlank,
       .trims_reasoning = kBlank,
       .ends = kTurnEnds},
      {.name = "gigachat", .signs = kGigachatSigns, .reasoning = {}, .calls = kGigachat},
      {.name = "cohere",
       .signs = kCohereSigns,
       .reasoning = kCohereThink,
       .calls = kCohereActions,
       .trims = kBlank,
       .trims_reasoning = kBlank,
       .ends = kTurnEnds},
      {.name = "command-r",
       .signs = kCommandRSigns,
       .reasoning = {},
       .calls = kCommandR,
       .trims = kBlank,
       .trims_end = true,
       .ends = kTurnEnds},
      {.name = "firefunction",
       .signs = kFunctoolsSigns,
       .reasoning = {},
       .calls = kFunctools,
       .trims = " ",
       .ends = kTurnEnds},
      {.name = "hermes",
       .signs = kHermesSigns,
       .reasoning = kThink,
       .calls = kHermes,
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .ends = kTurnEnds},
      {.name = "llama-3",
       .signs = kLlamaSigns,
       .reasoning = {},
       .calls = kLlama,
       .start = kStart,
       .trims = kBlank,
       .ends = kTurnEnds},
      {.name = "gemma",
       .signs = kGemmaSigns,
       .reasoning = {},
       .calls = kToolCode,
       .trims = kLineBreaks,
       .ends = kTurnEnds},
      {.name = "think",
       .signs = kThinkSigns,
       .reasoning = kThink,
       .calls = {},
       .trims = kLineBreaks,
       .trims_reasoning = kLineBreaks,
       .ends = kTurnEnds},
      {.name = "call", .signs = kNoTemplate, .reasoning = {}, .calls = kOneCall, .start = kStart},
      {.name = "text", .signs = {}, .reasoning = {}, .calls = {}},
  };
  return table;
}

}  // namespace mote::reply
