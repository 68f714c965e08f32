// A text that grows, in top-level blocks of Markdown. What cannot change any more is not read again.

/** Offsets at which lines begin. */
function lineStarts(text) {
  const found = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) found.push(at + 1);
  return found;
}

/** The top-level blocks of a text: their tokens, and where they begin. */
export function split(parser, text, env = {}) {
  const tokens = parser.parse(text, env);
  const starts = lineStarts(text);
  const blocks = [];
  let first = 0;
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index];
    if (token.level !== 0 || token.nesting === 1) continue;
    const line = tokens[first].map?.[0] ?? 0;
    blocks.push({ begin: starts[line] ?? text.length, tokens: tokens.slice(first, index + 1) });
    first = index + 1;
  }
  return blocks.map((block, index) => ({ ...block, source: text.slice(block.begin, blocks[index + 1]?.begin) }));
}

export class GrowingText {
  #parser;
  #settled = 0; // how much of the text is in blocks that stay
  #numSettled = 0;

  constructor(parser) {
    this.#parser = parser;
    this.numRead = 0; // characters given to the parser
  }

  /**
   * Reads a longer version of the text. Returns the blocks that are not settled, and the index of the first of them.
   * A block is settled when another follows whose first line is complete: until then that line may turn out to be
   * part of it, as the "2" of "2. next item".
   */
  read(text) {
    const rest = text.slice(this.#settled);
    this.numRead += rest.length;
    const blocks = split(this.#parser, rest);
    const from = this.#numSettled;
    const last = blocks.at(-1);
    const numOpen = last?.source.includes("\n") ? 1 : 2;
    if (blocks.length > numOpen) {
      const open = blocks[blocks.length - numOpen];
      this.#settled += open.begin;
      this.#numSettled += blocks.length - numOpen;
    }
    return { from, blocks };
  }
}
