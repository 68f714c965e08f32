// A chat is a tree of messages: a question asked otherwise, or a reply made again, stands beside the first one.

// Not crypto.randomUUID, which browsers offer to https and localhost only.
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * A message: {id, parent, role, content, created} and, where there is any, reasoning, calls, attachments, model, stats,
 * finish, error. The parent of the first ones is null.
 */
export class Chat {
  #nodes = new Map();
  #selected = new Map(); // parent -> the child that is shown

  constructor({ id = newId(), title = "", created = Date.now(), updated = created } = {}) {
    Object.assign(this, { id, title, created, updated });
  }

  get isEmpty() {
    return this.#nodes.size === 0;
  }

  node(id) {
    return this.#nodes.get(id);
  }

  /** Adds a message below `parent`, and shows it. */
  add(parent, message) {
    if (parent !== null && !this.#nodes.has(parent)) throw new RangeError(`no message ${parent} in this chat`);
    const node = { id: newId(), created: Date.now(), ...message, parent };
    if (this.#nodes.has(node.id)) throw new RangeError(`message ${node.id} is there twice`);
    this.#nodes.set(node.id, node);
    this.#selected.set(parent, node.id);
    return node;
  }

  /** All messages, of every branch, in the order in which they were written. */
  messages() {
    return [...this.#nodes.values()];
  }

  /** The messages that are shown, from the first to the last. */
  path() {
    const found = [];
    for (let id = this.#selected.get(null); id !== undefined; id = this.#selected.get(id))
      found.push(this.#nodes.get(id));
    return found;
  }

  /** The messages that led to one, itself included. */
  pathTo(id) {
    const found = [];
    for (let node = this.#nodes.get(id); node; node = this.#nodes.get(node.parent)) found.unshift(node);
    return found;
  }

  siblings(id) {
    const { parent } = this.#nodes.get(id);
    return this.messages().filter((node) => node.parent === parent);
  }

  /** Shows the sibling that stands `step` after a message, and what followed it; stops at the ends. */
  move(id, step) {
    const siblings = this.siblings(id);
    const index = siblings.findIndex((node) => node.id === id) + step;
    const target = siblings[Math.min(Math.max(index, 0), siblings.length - 1)];
    this.#selected.set(target.parent, target.id);
    return target;
  }

  /** What is stored and exported. A message is `shown` if it is the selected one of its siblings. */
  toJSON() {
    const shown = new Set(this.#selected.values());
    const messages = this.messages().map((node) => (shown.has(node.id) ? { ...node, shown: true } : { ...node }));
    return { id: this.id, title: this.title, created: this.created, updated: this.updated, messages };
  }

  /** Errors: TypeError, RangeError naming what is wrong. */
  static fromJSON(json) {
    const chat = new Chat({
      id: text(json, "id"),
      title: text(json, "title"),
      created: number(json, "created"),
      updated: number(json, "updated"),
    });
    if (!Array.isArray(json.messages)) throw new TypeError("messages: must be a list");
    const shown = [];
    for (const message of json.messages) {
      const node = chat.add(message.parent ?? null, checkedMessage(message));
      if (message.shown) shown.push(node);
    }
    for (const node of shown) chat.#selected.set(node.parent, node.id);
    return chat;
  }
}

function text(object, field, ...accepted) {
  const value = object?.[field];
  if (typeof value !== "string") throw new TypeError(`${field}: must be a text`);
  if (accepted.length > 0 && !accepted.includes(value))
    throw new RangeError(`${field}: must be ${accepted.join(" or ")}`);
  return value;
}

function number(object, field) {
  if (!Number.isFinite(object?.[field])) throw new TypeError(`${field}: must be a number`);
  return object[field];
}

function checkedMessage(message) {
  const found = {
    id: text(message, "id"),
    role: text(message, "role", "user", "assistant"),
    content: text(message, "content"),
    created: number(message, "created"),
  };
  for (const field of ["reasoning", "error", "finish", "model"]) {
    if (message[field] !== undefined) found[field] = text(message, field);
  }
  if (message.reasoningSeconds !== undefined) found.reasoningSeconds = number(message, "reasoningSeconds");
  if (message.calls !== undefined) {
    found.calls = message.calls.map((call) => ({ name: text(call, "name"), arguments: text(call, "arguments") }));
  }
  if (message.attachments !== undefined) {
    found.attachments = message.attachments.map((file) => ({ name: text(file, "name"), text: text(file, "text") }));
  }
  if (message.stats !== undefined) {
    found.stats = Object.fromEntries(
      ["tokens", "seconds", "firstToken", "promptTokens", "cachedTokens", "perSecond"]
        .filter((field) => message.stats[field] !== undefined)
        .map((field) => [field, number(message.stats, field)]),
    );
  }
  return found;
}
