// Chats as files: JSON that can be imported again, and Markdown to read.
import { questionText } from "./request.js";
import { Chat, newId } from "./tree.js";

const FORMAT = "mote-chats";

export function toJson(chats) {
  return JSON.stringify({ format: FORMAT, version: 1, chats }, null, 1);
}

/** Errors: SyntaxError, TypeError or RangeError in words for the reader. */
export function fromJson(text) {
  const file = JSON.parse(text);
  if (file?.format !== FORMAT) throw new TypeError(`the file is not an export of this page: no "format": "${FORMAT}"`);
  if (file.version !== 1) throw new RangeError(`version ${file.version} is not known: version 1 is`);
  if (!Array.isArray(file.chats)) throw new TypeError("chats: must be a list");
  return file.chats.map((chat, index) => {
    try {
      return Chat.fromJSON(chat);
    } catch (error) {
      throw new TypeError(`chats[${index}]: ${error.message}`);
    }
  });
}

/** Returns the chats that are not there yet; one that has changed since gets an id of its own beside the other. */
export function newOnes(imported, existing) {
  const text = (chat) => JSON.stringify(Chat.fromJSON(chat.toJSON())); // fields in one order
  const known = new Map(existing.map((chat) => [chat.id, text(chat)]));
  return imported
    .filter((chat) => known.get(chat.id) !== text(chat))
    .map((chat) => (known.has(chat.id) ? Chat.fromJSON({ ...chat.toJSON(), id: newId() }) : chat));
}

/** The shown branch of a chat. */
export function toMarkdown(chat) {
  const parts = chat.path().map((node) => {
    if (node.role === "user") return `## You\n\n${questionText(node)}\n`;
    const reasoning = node.reasoning
      ? `<details><summary>Reasoning</summary>\n\n${node.reasoning}\n\n</details>\n\n`
      : "";
    return `## ${node.model || "Assistant"}\n\n${reasoning}${node.content}\n`;
  });
  return [`# ${chat.title || "Chat"}\n`, ...parts].join("\n");
}

export function fileName(title, suffix) {
  const name = title
    .normalize()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 60);
  return `${name || "chat"}.${suffix}`;
}
