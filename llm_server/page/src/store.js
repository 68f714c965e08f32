// Chats in IndexedDB, as their JSON. Other tabs of the page hear of changes.
import { openDB } from "idb";
import { Chat } from "./tree.js";

const channel = new BroadcastChannel("mote-chats");

const opened = openDB("mote", 1, {
  upgrade(database) {
    database.createObjectStore("chats", { keyPath: "id" });
  },
});

/** All chats, the latest first. */
export async function allChats() {
  const records = await (await opened).getAll("chats");
  return records.sort((a, b) => b.updated - a.updated).flatMap(readable);
}

/** Nothing for a record that is no chat, so that one does not hide the others. */
function readable(record) {
  try {
    return [Chat.fromJSON(record)];
  } catch (error) {
    console.warn(`chat ${record.id} cannot be read: ${error.message}`);
    return [];
  }
}

export async function loadChat(id) {
  const record = await (await opened).get("chats", id);
  return record && Chat.fromJSON(record);
}

export async function saveChat(chat) {
  await (await opened).put("chats", chat.toJSON());
  channel.postMessage(chat.id);
}

export async function deleteChat(id) {
  await (await opened).delete("chats", id);
  channel.postMessage(id);
}

export function onOtherTab(listener) {
  channel.onmessage = ({ data }) => listener(data);
}
