// A chat over /v1/chat/completions. What the model writes is only ever set as text.
"use strict";

const byId = (id) => document.getElementById(id);
const messages = [];
let modelName = "";
let running = null; // the AbortController of the reply under way

function headers() {
  const key = byId("key").value;
  return { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
}

function add(parent, kind, className, text = "") {
  const element = document.createElement(kind);
  element.className = className;
  element.textContent = text;
  parent.append(element);
  return element;
}

function keepBottomInView() {
  const main = byId("messages");
  main.scrollTop = main.scrollHeight;
}

function request() {
  const system = byId("system").value.trim();
  const temperature = byId("temperature").value;
  const maxTokens = byId("max-tokens").value;
  return {
    model: modelName,
    messages: [...(system ? [{ role: "system", content: system }] : []), ...messages],
    stream: true,
    stream_options: { include_usage: true },
    ...(temperature !== "" && { temperature: Number(temperature) }),
    ...(maxTokens !== "" && { max_completion_tokens: Number(maxTokens) }),
  };
}

// Yields the objects of a stream of server-sent events.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

async function errorText(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `${response.status} ${response.statusText}`;
  }
}

class ReplyView {
  constructor() {
    this.article = add(byId("messages"), "article", "assistant");
    this.reasoning = add(this.article, "div", "reasoning");
    this.content = add(this.article, "div", "content");
    this.message = { role: "assistant", content: "" };
  }

  show(delta) {
    if (delta.reasoning_content) {
      this.reasoning.append(delta.reasoning_content);
      this.message.reasoning_content = this.reasoning.textContent;
    }
    if (delta.content) {
      this.content.append(delta.content);
      this.message.content = this.content.textContent;
    }
    for (const call of delta.tool_calls ?? []) {
      add(this.article, "div", "call", `${call.function.name}(${call.function.arguments})`);
    }
    keepBottomInView();
  }

  note(text, className = "note") {
    add(this.article, "div", className, text);
    keepBottomInView();
  }
}

async function read(response, view) {
  const began = performance.now();
  for await (const event of events(response.body)) {
    if (event.error) throw new Error(event.error.message);
    if (event.choices.length > 0) {
      view.show(event.choices[0].delta);
      if (event.choices[0].finish_reason === "length") view.note("cut off at the limit of tokens or time");
    } else if (event.usage) {
      const seconds = (performance.now() - began) / 1000;
      view.note(`${event.usage.completion_tokens} tokens in ${seconds.toFixed(1)} s`);
    }
  }
}

async function reply() {
  const view = new ReplyView();
  running = new AbortController();
  setRunning(true);
  try {
    const response = await fetch("v1/chat/completions", {
      method: "POST", headers: headers(), body: JSON.stringify(request()), signal: running.signal,
    });
    if (!response.ok) throw new Error(await errorText(response));
    await read(response, view);
  } catch (error) {
    if (error.name === "AbortError") view.note("stopped");
    else view.note(error.message, "error");
  }
  if (view.message.content || view.message.reasoning_content) messages.push(view.message);
  else messages.pop(); // the question that has no answer
  running = null;
  setRunning(false);
}

function setRunning(isRunning) {
  byId("send").hidden = isRunning;
  byId("stop").hidden = !isRunning;
}

function submit(event) {
  event.preventDefault();
  const text = byId("text").value.trim();
  if (!text || running) return;
  byId("text").value = "";
  messages.push({ role: "user", content: text });
  add(byId("messages"), "article", "user", text);
  keepBottomInView();
  reply();
}

function clear() {
  running?.abort();
  messages.length = 0;
  byId("messages").replaceChildren();
}

async function start() {
  const health = await (await fetch("health")).json();
  modelName = health.model;
  byId("model").textContent = document.title = modelName;
}

byId("form").addEventListener("submit", submit);
byId("stop").addEventListener("click", () => running?.abort());
byId("new").addEventListener("click", clear);
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});
start();
