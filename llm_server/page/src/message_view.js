// A message: what was said, by whom, and what can be done with it.
import { copyButton, h, iconButton } from "./dom.js";
import { MarkdownView } from "./markdown_view.js";

/** `actions`: edit(node, text), again(node), resume(node), move(node, step) */
export function messageView(node, siblings, actions) {
  return node.role === "user" ? new QuestionView(node, siblings, actions) : new ReplyView(node, siblings, actions);
}

function branches(node, siblings, { move }) {
  if (siblings.length < 2) return null;
  const index = siblings.indexOf(node);
  const label = `${index + 1} / ${siblings.length}`;
  return h(
    "span",
    { class: "branches", role: "group", "aria-label": "Versions" },
    iconButton("left", "Previous version", () => move(node, -1), { disabled: index === 0 }),
    h("span", { class: "branch", "aria-label": `Version ${index + 1} of ${siblings.length}` }, label),
    iconButton("right", "Next version", () => move(node, 1), { disabled: index === siblings.length - 1 }),
  );
}

class QuestionView {
  #actions;

  constructor(node, siblings, actions) {
    this.node = node;
    this.#actions = actions;
    this.body = h(
      "div",
      { class: "bubble" },
      ...(node.attachments ?? []).map(attachment),
      h("div", { class: "said" }, node.content),
    );
    this.foot = h(
      "div",
      { class: "actions" },
      branches(node, siblings, actions),
      copyButton("Copy question", () => node.content),
      iconButton("edit", "Edit question", () => this.#edit()),
    );
    this.element = h(
      "article",
      { class: "message user", "data-id": node.id, "aria-label": "You" },
      h("h2", { class: "visually-hidden" }, "You"),
      this.body,
      this.foot,
    );
  }

  draw() {}

  #edit() {
    const text = h("textarea", { "aria-label": "Edit question", rows: 1 });
    text.value = this.node.content;
    const close = () => {
      form.replaceWith(this.body);
      this.foot.hidden = false;
      this.element.querySelector('[aria-label="Edit question"]').focus();
    };
    const submit = (event) => {
      event.preventDefault();
      if (text.value.trim() || this.node.attachments) this.#actions.edit(this.node, text.value.trim());
    };
    const form = h(
      "form",
      { class: "edit", onsubmit: submit },
      text,
      h(
        "div",
        { class: "edit-foot" },
        h("button", { type: "button", onclick: close }, "Cancel"),
        h("button", { class: "primary" }, "Send"),
      ),
    );
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation(); // it stops no reply
        close();
      } else if (isSending(event) && event.target === text) submit(event);
    });
    this.body.replaceWith(form);
    this.foot.hidden = true;
    text.focus();
  }
}

/** Whether a key press means "send". Fingers have no Shift for a new line. */
export function isSending(event) {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(pointer: coarse)").matches;
}

function attachment({ name, text }) {
  return h("details", { class: "attachment" }, h("summary", {}, name), h("pre", { tabindex: "0" }, text));
}

class ReplyView {
  #reasoning = new MarkdownView();
  #content = new MarkdownView();

  constructor(node, siblings, actions) {
    this.node = node;
    this.author = node.model || "Assistant";
    this.summary = h("summary");
    this.reasoning = h(
      "details",
      { class: "reasoning", ontoggle: () => this.#drawReasoning() },
      this.summary,
      this.#reasoning.element,
    );
    this.waiting = h(
      "div",
      { class: "waiting" },
      h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")),
      (this.waitingText = h("span")),
    );
    this.calls = h("div", { class: "calls" });
    this.note = h("span", { class: "note" });
    this.error = h(
      "div",
      { class: "error", role: "alert" },
      (this.errorText = h("span")),
      h("button", { type: "button", onclick: () => actions.again(node) }, "Try again"),
    );
    this.resume = h("button", { type: "button", class: "resume", onclick: () => actions.resume(node) }, "Continue");
    this.buttons = h(
      "span",
      { class: "buttons" },
      branches(node, siblings, actions),
      (this.copy = copyButton("Copy reply", () => node.content)),
      (this.again = iconButton("again", "Make the reply again", () => actions.again(node))),
    );
    this.element = h(
      "article",
      { class: "message assistant", "data-id": node.id, "aria-label": this.author },
      h("h2", { class: "author" }, this.author),
      this.reasoning,
      this.#content.element,
      this.calls,
      this.waiting,
      this.error,
      h("div", { class: "actions" }, this.buttons, this.resume, this.note),
    );
  }

  /** `reply`: the one under way, if it is this message's. */
  draw(reply) {
    const { node } = this;
    const isRunning = reply?.isRunning ?? false;
    this.element.setAttribute("aria-busy", isRunning);
    this.isRunning = isRunning;
    if (isRunning) this.#content.grow(node.content);
    else this.#content.finish(node.content);
    this.reasoning.hidden = !node.reasoning;
    this.summary.textContent = reasoningTitle(node, isRunning);
    this.reasoning.classList.toggle("is-thinking", isRunning && !node.content);
    this.#drawReasoning();
    this.calls.replaceChildren(...(node.calls ?? []).map((call) => h("code", {}, `${call.name}(${call.arguments})`)));
    this.waiting.hidden = !isRunning || Boolean(node.content || node.reasoning);
    this.waitingText.textContent = reply?.waitsFor ?? "";
    this.error.hidden = isRunning || !node.error;
    this.errorText.textContent = node.error ?? "";
    this.buttons.hidden = isRunning;
    this.copy.hidden = !node.content;
    this.again.hidden = Boolean(node.error);
    this.resume.hidden = isRunning || !node.content || node.finish === "stop" || Boolean(node.error);
    this.note.textContent = isRunning ? speedText(reply.speed) : noteText(node);
    this.note.title = isRunning ? "" : noteTitle(node);
  }

  /** What a screen reader is told when the reply is complete. */
  get spoken() {
    return `${this.author}: ${this.#content.element.innerText} ${this.node.error ?? ""}`;
  }

  #drawReasoning() {
    if (!this.reasoning.open || !this.node.reasoning) return;
    if (this.isRunning) this.#reasoning.grow(this.node.reasoning);
    else this.#reasoning.finish(this.node.reasoning);
  }
}

function reasoningTitle({ content, reasoningSeconds }, isRunning) {
  if (isRunning && !content) return "Thinking";
  return reasoningSeconds ? `Thought for ${reasoningSeconds.toFixed(1)} s` : "Thought";
}

function speedText(speed) {
  return speed === undefined ? "" : `${speed.toFixed(1)} tokens/s`;
}

const ENDS = { stop: "", tool_calls: "", length: "Cut off at the limit of tokens or time", stopped: "Stopped" };

function noteText({ stats, finish, error }) {
  return [
    error ? "" : (ENDS[finish] ?? "Interrupted"),
    stats?.tokens !== undefined && `${stats.tokens} ${stats.tokens === 1 ? "token" : "tokens"}`,
    speedText(stats?.perSecond),
  ]
    .filter(Boolean)
    .join(" · ");
}

function noteTitle({ stats }) {
  if (!stats?.seconds) return "";
  const prompt =
    stats.promptTokens === undefined
      ? ""
      : `\nPrompt: ${stats.promptTokens} tokens, ${stats.cachedTokens} of them read before`;
  return `First token after ${stats.firstToken.toFixed(2)} s, the last after ${stats.seconds.toFixed(2)} s${prompt}`;
}
