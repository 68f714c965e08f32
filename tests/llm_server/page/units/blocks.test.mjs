import assert from "node:assert/strict";
import { test } from "node:test";
import { GrowingText, split } from "../../../../llm_server/page/src/blocks.js";
import MarkdownIt from "../../../../llm_server/page/node_modules/markdown-it/index.mjs";

const parser = new MarkdownIt();

function grown(text, step) {
  const growing = new GrowingText(parser);
  let sources = [];
  for (let end = step; end < text.length + step; end += step) {
    const { from, blocks } = growing.read(text.slice(0, end));
    sources = [...sources.slice(0, from), ...blocks.map((block) => block.source)];
  }
  return { sources, numRead: growing.numRead };
}

const TEXTS = [
  "# T\n\npara\nmore\n\n- a\n- b\n\n  c\n\n1. x\n\n2. y\n\n10. z\n\nend",
  "```py\n\n# not a title\n\n- no list\n```\n\nafter\n\n> quote\nlazy\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\ntail",
  "Title\n===\n\nother\n---\n\n***\n\n    code\n\n    more code\n\nend\n",
];

for (const [index, text] of TEXTS.entries()) {
  test(`text ${index} that grows ends in the blocks that it has as a whole`, () => {
    for (const step of [1, 2, 7]) {
      assert.deepEqual(
        grown(text, step).sources,
        split(parser, text).map((block) => block.source),
      );
    }
  });
}

test("a text of many blocks is read about once", () => {
  const text = "A paragraph of some words, as they are.\n\n".repeat(500);
  assert.ok(text.length > 20_000);
  const { numRead } = grown(text, 5);
  assert.ok(numRead < 20 * text.length, `${numRead} characters were read`);
});
