// What is asked of the server: the shown messages and the settings, as fields of /v1/chat/completions.

/** The longest run of backticks decides the fence, so that a file cannot end its own. */
function fenced({ name, text }) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${name}:\n${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}

export function questionText(node) {
  return [...(node.attachments ?? []).map(fenced), node.content].filter(Boolean).join("\n\n");
}

/**
 * The messages of a path. A question whose reply never came is joined with the next one, because many chat templates
 * refuse two questions in a row.
 */
export function messagesOf(path, system) {
  const found = [];
  for (const node of path) {
    if (node.role === "assistant") {
      if (!node.content && !node.reasoning) continue;
      found.push({
        role: "assistant",
        content: node.content,
        ...(node.reasoning && { reasoning_content: node.reasoning }),
      });
    } else if (found.at(-1)?.role === "user") {
      found.at(-1).content += `\n\n${questionText(node)}`;
    } else {
      found.push({ role: "user", content: questionText(node) });
    }
  }
  return system?.trim() ? [{ role: "system", content: system }, ...found] : found;
}

/** `settings`: values by name, as settings.js keeps them; what is not set is left to the model. */
export function requestBody(model, path, settings, isContinued = false) {
  const { system, thinking, stop, ...numbers } = settings;
  const stops = (stop ?? "").split("\n").filter(Boolean);
  return {
    ...(model && { model }),
    messages: messagesOf(path, system),
    stream: true,
    stream_options: { include_usage: true },
    ...numbers,
    ...(stops.length > 0 && { stop: stops }),
    ...(thinking && { chat_template_kwargs: { enable_thinking: thinking === "on" } }),
    ...(isContinued && { continue_final_message: true }),
  };
}
