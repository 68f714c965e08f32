// The page: which chat is shown, and what happens between its parts.
import "./page.css";
import { fetchModels } from "./api.js";
import { Composer } from "./composer.js";
import { byId, h, saveFile } from "./dom.js";
import { Reply } from "./reply.js";
import { requestBody } from "./request.js";
import { preference, setPreference, settings } from "./settings.js";
import { askForKey, setUpSettings } from "./settings_dialog.js";
import { Sidebar } from "./sidebar.js";
import { allChats, deleteChat, loadChat, onOtherTab, saveChat } from "./store.js";
import { Thread } from "./thread.js";
import { toast } from "./toast.js";
import { fileName, fromJson, newOnes, toJson, toMarkdown } from "./transfer.js";
import { Chat } from "./tree.js";

const SAVE_EVERY = 1000; // milliseconds, while a reply comes

let chat = new Chat();
let chats = []; // those that are kept, the latest first
const replies = new Map(); // id of a chat -> its reply under way
const saving = new Map(); // id of a chat -> the timer that saves it

const composer = new Composer({ onSend: send, onStop: stop, onRefused: toast });
const thread = new Thread({ edit, again, resume, move });
const sidebar = new Sidebar({ open, fresh: () => show(new Chat()), rename, remove, save, load });

function show(other) {
  const isOther = other !== chat;
  chat = other;
  const reply = replies.get(chat.id);
  thread.show(chat, reply);
  composer.setRunning(Boolean(reply));
  showList();
  history.replaceState(null, "", chat.isEmpty ? location.pathname : `#${chat.id}`);
  if (isOther) {
    thread.follower.follow();
    composer.focus();
  }
}

function showList() {
  sidebar.show(chats, chat.id, new Set(replies.keys()));
  document.title = chat.title || byId("model").value || "Mote";
}

function open(id) {
  const found = chats.find((other) => other.id === id);
  if (found) show(found);
}

async function keep(changed) {
  clearTimeout(saving.get(changed.id));
  saving.delete(changed.id);
  chats = [changed, ...chats.filter((other) => other.id !== changed.id)].sort((a, b) => b.updated - a.updated);
  try {
    await saveChat(changed);
  } catch (error) {
    toast(`The chat could not be saved: ${error.message}`);
  }
}

function send(text, attachments) {
  const question = { role: "user", content: text, ...(attachments.length > 0 && { attachments }) };
  chat.title ||= (text || attachments[0].name).split("\n")[0].slice(0, 80);
  ask(chat.path().at(-1)?.id ?? null, question);
}

function edit(node, text) {
  ask(node.parent, { role: "user", content: text, ...(node.attachments && { attachments: node.attachments }) });
}

function ask(parent, question) {
  answer(chat.add(parent, question).id);
}

/** Begins another reply to a question of the shown chat. */
function answer(question) {
  stop();
  const model = byId("model").value;
  begin(chat.add(question, { role: "assistant", content: "", model }), chat.pathTo(question));
}

/** Makes a reply again: beside the first one, if that has a text. */
function again(node) {
  if (node.content || node.reasoning) return answer(node.parent);
  stop();
  node.model = byId("model").value;
  begin(node, chat.pathTo(node.parent));
}

/** Goes on with a reply that was cut off. */
function resume(node) {
  stop();
  begin(node, chat.pathTo(node.id), true);
}

function begin(node, path, isContinued = false) {
  delete node.finish;
  delete node.error;
  const body = requestBody(byId("model").value, path, settings(), isContinued);
  const reply = new Reply(chat, node, body, { onChange: changed, onEnd: ended });
  if (replies.size > 0) reply.waitsFor = "Waiting for the reply of another chat";
  replies.set(chat.id, reply);
  chat.updated = Date.now();
  keep(chat);
  show(chat);
  thread.redraw(reply);
  thread.follower.follow();
  // What was clicked is hidden now, or gone.
  if (document.activeElement === document.body || !document.activeElement.checkVisibility()) composer.focus();
}

function changed(reply) {
  if (reply.chat === chat) thread.changed(reply);
  const { id } = reply.chat;
  if (!saving.has(id))
    saving.set(
      id,
      setTimeout(() => replies.has(id) && keep(reply.chat), SAVE_EVERY),
    );
}

function ended(reply, error) {
  if (replies.get(reply.chat.id) === reply) replies.delete(reply.chat.id);
  if (chats.some((other) => other.id === reply.chat.id)) keep(reply.chat);
  showList();
  if (reply.chat !== chat) return;
  thread.ended(reply);
  composer.setRunning(replies.has(chat.id));
  if (error?.status === 401) askAgain(reply.node);
}

async function askAgain(node) {
  if (!(await askForKey())) return;
  await showModels();
  again(node);
}

function stop() {
  const reply = replies.get(chat.id);
  reply?.stop();
  replies.delete(chat.id);
}

function move(node, step) {
  const target = chat.move(node.id, step);
  keep(chat);
  show(chat);
  thread.focusVersions(target, step);
}

function rename(id, title) {
  const found = chats.find((other) => other.id === id);
  found.title = title;
  keep(found);
  showList();
}

async function remove(id) {
  const found = chats.find((other) => other.id === id);
  replies.get(id)?.stop();
  replies.delete(id);
  chats = chats.filter((other) => other !== found);
  await deleteChat(id);
  if (chat === found) show(new Chat());
  else showList();
  if (document.activeElement === document.body) byId("new").focus();
  toast("The chat is deleted.", "Undo", async () => {
    await keep(found);
    showList();
  });
}

/** Saves a chat, or all of them, as a file. */
function save(id, kind) {
  const found = id === null ? chats : chats.filter((other) => other.id === id);
  const title = id === null ? "mote-chats" : found[0].title;
  if (kind === "json") saveFile(fileName(title, "json"), "application/json", toJson(found));
  else saveFile(fileName(title, "md"), "text/markdown", found.map(toMarkdown).join("\n"));
}

async function load(file) {
  try {
    const imported = fromJson(await file.text());
    const fresh = newOnes(imported, chats);
    for (const one of fresh) await keep(one);
    showList();
    const known = imported.length - fresh.length;
    toast(`Imported: ${fresh.length} of ${imported.length}${known ? `; the others were there already` : ""}.`);
  } catch (error) {
    toast(`${file.name}: ${error.message}`);
  }
}

async function showModels() {
  const select = byId("model");
  try {
    const models = await fetchModels();
    select.replaceChildren(...models.map(({ id }) => h("option", { value: id }, id)));
    if (models.some(({ id }) => id === preference("model"))) select.value = preference("model");
  } catch (error) {
    if (error.status === 401) {
      if (await askForKey()) await showModels();
    } else toast(error.message, "Try again", showModels);
  }
  showList();
}

function setUpKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && replies.has(chat.id)) {
      event.preventDefault();
      stop();
    } else if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.code === "KeyO") {
      event.preventDefault();
      show(new Chat());
    }
  });
}

/** A chat that another tab has changed is read again, unless a reply is written into it here. */
async function otherTabChanged(id) {
  if (replies.has(id)) return;
  const found = await loadChat(id);
  chats = chats.filter((other) => other.id !== id);
  if (found) chats = [found, ...chats].sort((a, b) => b.updated - a.updated);
  if (chat.id === id && found) show(found);
  else showList();
}

async function start() {
  setUpSettings();
  setUpKeys();
  composer.focus();
  byId("model").addEventListener("change", ({ target }) => setPreference("model", target.value));
  try {
    const stored = await allChats();
    const isNew = ({ id }) => !chats.some((other) => other.id === id); // the reader may have been quicker
    chats = [...chats, ...stored.filter(isNew)].sort((a, b) => b.updated - a.updated);
  } catch (error) {
    toast(`Chats cannot be kept in this browser: ${error.message}`);
  }
  onOtherTab(otherTabChanged);
  open(location.hash.slice(1));
  await showModels();
}

start();
