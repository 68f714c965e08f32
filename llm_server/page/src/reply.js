// A reply under way. It writes into the message that it was begun for, whatever the page shows meanwhile.
import { chunks } from "./api.js";

const MIN_SECONDS = 0.1;

export class Reply {
  #abort = new AbortController();
  #began = performance.now();
  #firstToken;
  #lastToken;
  #tokens = 0;

  /**
   * `chat`, `node`: where it writes; `body`: the request; `onChange(reply)`: after every piece; `onEnd(reply, error)`:
   * once, with what went wrong, if anything.
   */
  constructor(chat, node, body, { onChange, onEnd }) {
    Object.assign(this, { chat, node, isRunning: true });
    this.#run(body, onChange)
      .catch((error) => error)
      .then((error) => {
        this.#end(error);
        onEnd(this, error);
      });
  }

  stop() {
    this.#abort.abort();
  }

  /**
   * Tokens a second after the first one; undefined before there is something to measure. What came at once, as very
   * short replies do, is measured from the request on.
   */
  get speed() {
    if (this.#tokens < 3 || this.isWaiting) return undefined;
    const seconds = (this.#lastToken - this.#firstToken) / 1000;
    if (seconds >= MIN_SECONDS) return (this.#tokens - 1) / seconds;
    return this.#tokens / ((this.#lastToken - this.#began) / 1000);
  }

  get isWaiting() {
    return this.#firstToken === undefined;
  }

  async #run(body, onChange) {
    for await (const { choices, usage } of chunks(body, this.#abort.signal)) {
      for (const { delta, finish_reason } of choices) {
        this.#take(delta);
        if (finish_reason) this.node.finish = finish_reason;
      }
      if (usage) this.#count(usage);
      onChange(this);
    }
  }

  #take(delta) {
    const { node } = this;
    if (!delta.content && !delta.reasoning_content && !delta.tool_calls) return;
    const now = performance.now();
    this.#firstToken ??= now;
    this.#lastToken = now;
    this.#tokens += 1;
    if (delta.reasoning_content) node.reasoning = (node.reasoning ?? "") + delta.reasoning_content;
    if (delta.content) {
      if (node.reasoning && !node.content) node.reasoningSeconds = (now - this.#firstToken) / 1000;
      node.content += delta.content;
    }
    for (const { function: called } of delta.tool_calls ?? []) {
      node.calls = [...(node.calls ?? []), { name: called.name, arguments: called.arguments }];
    }
  }

  #count(usage) {
    this.#tokens = usage.completion_tokens;
    this.node.stats = {
      ...this.node.stats,
      tokens: usage.completion_tokens,
      promptTokens: usage.prompt_tokens,
      cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    };
  }

  #end(error) {
    const { node, speed } = this;
    this.isRunning = false;
    if (error?.name === "AbortError") node.finish = "stopped";
    else if (error) node.error = error.message;
    if (this.isWaiting) return;
    node.stats = {
      tokens: this.#tokens,
      ...node.stats,
      firstToken: (this.#firstToken - this.#began) / 1000,
      seconds: (this.#lastToken - this.#began) / 1000,
      ...(speed && { perSecond: speed }),
    };
  }
}
