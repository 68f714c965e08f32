import assert from "node:assert/strict";
import { test } from "node:test";
import { messagesOf, requestBody } from "../../../../llm_server/page/src/request.js";
import { fileName, fromJson, newOnes, toJson } from "../../../../llm_server/page/src/transfer.js";
import { Chat } from "../../../../llm_server/page/src/tree.js";

const say = (chat, parent, role, content) => chat.add(parent?.id ?? null, { role, content });
const contents = (chat) => chat.path().map((node) => node.content);

function branched() {
  const chat = new Chat({ title: "t" });
  const first = say(chat, null, "user", "q");
  say(chat, say(chat, first, "assistant", "a1"), "user", "more");
  return { chat, first, second: say(chat, first, "assistant", "a2") };
}

test("a sibling is shown, and moving brings back what followed", () => {
  const { chat, second } = branched();
  assert.deepEqual(contents(chat), ["q", "a2"]);
  chat.move(second.id, -1);
  assert.deepEqual(contents(chat), ["q", "a1", "more"]);
  assert.equal(chat.move(second.id, 1), second);
  assert.equal(chat.siblings(second.id).length, 2);
});

test("the path to a message is the one it was said in", () => {
  const { chat } = branched();
  const more = chat.messages().find((node) => node.content === "more");
  assert.deepEqual(
    chat.pathTo(more.id).map((node) => node.content),
    ["q", "a1", "more"],
  );
});

test("a chat comes back from its file with the same branch shown", () => {
  const { chat, second } = branched();
  chat.move(second.id, -1);
  const [back] = fromJson(toJson([chat]));
  assert.deepEqual(contents(back), contents(chat));
  assert.deepEqual(back.toJSON(), chat.toJSON());
});

test("messages that cannot be are refused", () => {
  const file = (message) => ({ ...new Chat({ title: "t" }).toJSON(), messages: [message] });
  const good = { id: "a", role: "user", content: "c", created: 1 };
  assert.equal(Chat.fromJSON(file(good)).path().length, 1);
  for (const [change, words] of [
    [{ parent: "b" }, /no message b/],
    [{ role: "system" }, /role: must be user or assistant/],
    [{ content: 1 }, /content: must be a text/],
    [{ created: "x" }, /created: must be a number/],
  ])
    assert.throws(() => Chat.fromJSON(file({ ...good, ...change })), words);
  assert.throws(() => Chat.fromJSON({ ...file(good), messages: [good, good] }), /twice/);
  assert.equal({}.polluted, undefined);
  assert.equal(Chat.fromJSON(file({ ...good, id: "__proto__" })).path().length, 1);
});

test("an imported chat that has changed stands beside the one that is there", () => {
  const { chat } = branched();
  const [same] = fromJson(toJson([chat]));
  assert.deepEqual(newOnes([same], [chat]), []);
  same.title = "other";
  const [beside] = newOnes([same], [chat]);
  assert.notEqual(beside.id, chat.id);
  assert.deepEqual(contents(beside), contents(chat));
});

test("replies that never came are left out, and questions are joined", () => {
  const path = [
    { role: "user", content: "a" },
    { role: "assistant", content: "", error: "busy" },
    { role: "user", content: "b" },
    { role: "assistant", content: "c", reasoning: "r" },
  ];
  assert.deepEqual(messagesOf(path, " "), [
    { role: "user", content: "a\n\nb" },
    { role: "assistant", content: "c", reasoning_content: "r" },
  ]);
  assert.equal(messagesOf(path, "s")[0].content, "s");
});

test("settings that are not set are left to the model", () => {
  assert.deepEqual(Object.keys(requestBody("m", [], {})), ["model", "messages", "stream", "stream_options"]);
  const body = requestBody("m", [], { top_k: 5, thinking: "on", stop: "a\n\nb\n" });
  assert.deepEqual([body.top_k, body.chat_template_kwargs, body.stop], [5, { enable_thinking: true }, ["a", "b"]]);
});

test("names of files are plain", () => {
  assert.equal(fileName("../a/b: c?", "md"), "a-b-c.md");
  assert.equal(fileName("?", "md"), "chat.md");
});
