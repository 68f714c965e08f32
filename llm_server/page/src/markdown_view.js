// An element that shows Markdown while it is written. Only blocks that have changed are drawn again.
import { GrowingText, split } from "./blocks.js";
import { h } from "./dom.js";
import { draw, parser } from "./markdown.js";

export class MarkdownView {
  #growing = new GrowingText(parser);
  #blocks = []; // {source, element} of what is shown
  #text = "";

  constructor() {
    this.element = h("div", { class: "markdown" });
  }

  /** Shows a longer version of the text. */
  grow(text) {
    if (text === this.#text) return;
    this.#text = text;
    const { from, blocks } = this.#growing.read(text);
    this.#show(from, blocks);
  }

  /** Shows the text as it stays: links to definitions further down are known only now. */
  finish(text) {
    const env = {};
    const blocks = split(parser, text, env);
    if (Object.keys(env.references ?? {}).length > 0) this.#trim(0);
    this.#show(0, blocks);
    this.#text = text;
    this.#growing = new GrowingText(parser);
  }

  #show(from, blocks) {
    blocks.forEach(({ source, tokens }, offset) => {
      const index = from + offset;
      if (this.#blocks[index]?.source === source) return;
      const element = h("div", { class: "block" }, draw(tokens));
      if (index < this.#blocks.length) this.#blocks[index].element.replaceWith(element);
      else this.element.append(element);
      this.#blocks[index] = { source, element };
    });
    this.#trim(from + blocks.length);
  }

  #trim(length) {
    for (const { element } of this.#blocks.splice(length)) element.remove();
  }
}
