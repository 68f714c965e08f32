// The chats: open, search, rename, delete, export, import.
import { byId, h, iconButton } from "./dom.js";
import { openMenu } from "./menu.js";
import { preference, setPreference } from "./settings.js";
import { questionText } from "./request.js";

const NARROW = matchMedia("(max-width: 760px)");

export class Sidebar {
  #chats = [];
  #current;
  #actions;

  /** `actions`: open(id), fresh(), rename(id, title), remove(id), save(id or null, "json" or "md"), load(file) */
  constructor(actions) {
    this.#actions = actions;
    byId("search").addEventListener("input", () => this.#draw());
    for (const id of ["new", "new-narrow"]) byId(id).addEventListener("click", () => this.#leave(actions.fresh));
    const picker = byId("import-file");
    byId("import").addEventListener("click", () => picker.click());
    picker.addEventListener("change", async () => {
      await actions.load(picker.files[0]);
      picker.value = "";
    });
    byId("export").addEventListener("click", ({ currentTarget }) =>
      openMenu(currentTarget, [
        ["As JSON, to import again", () => actions.save(null, "json")],
        ["As Markdown, to read", () => actions.save(null, "md")],
      ]),
    );
    byId("toggle-sidebar").addEventListener("click", () => this.#setOpen(document.body.dataset.sidebar !== "open"));
    byId("backdrop").addEventListener("click", () => this.#setOpen(false));
    byId("sidebar").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !NARROW.matches) return;
      event.stopPropagation();
      this.#setOpen(false);
      byId("toggle-sidebar").focus();
    });
    NARROW.addEventListener("change", () => this.#fit());
    this.#fit();
  }

  /** `running`: ids of chats with a reply under way */
  show(chats, current, running) {
    this.#chats = chats;
    this.#current = current;
    this.#running = running;
    this.#draw();
  }

  #running = new Set();

  #fit() {
    this.#setOpen(!NARROW.matches && preference("sidebar") !== "closed", false);
  }

  #setOpen(isOpen, isChosen = true) {
    document.body.dataset.sidebar = isOpen ? "open" : "closed";
    byId("toggle-sidebar").setAttribute("aria-expanded", isOpen);
    if (isChosen && !NARROW.matches) setPreference("sidebar", isOpen ? "" : "closed");
  }

  /** Where the list lies over the chat, it makes room for it. */
  #leave(action) {
    if (NARROW.matches) this.#setOpen(false);
    action();
  }

  #draw() {
    const sought = byId("search").value.trim().toLocaleLowerCase();
    const found = this.#chats.filter((chat) => matches(chat, sought));
    byId("chats").replaceChildren(...found.map((chat) => this.#item(chat)));
    byId("no-chats").hidden = found.length > 0;
    byId("no-chats").textContent = sought ? "No chat has these words." : "No chats yet.";
  }

  #item(chat) {
    const { open, save, remove } = this.#actions;
    const isRunning = this.#running.has(chat.id);
    const menu = iconButton(
      "more",
      `More about ${chat.title}`,
      () =>
        openMenu(menu, [
          ["Rename", () => this.#rename(item, chat)],
          ["Export as JSON", () => save(chat.id, "json")],
          ["Export as Markdown", () => save(chat.id, "md")],
          ["Delete", () => remove(chat.id)],
        ]),
      { "aria-haspopup": "menu" },
    );
    const item = h(
      "li",
      { class: "chat", "data-id": chat.id },
      h(
        "button",
        {
          type: "button",
          class: "chat-open",
          title: chat.title,
          "aria-current": chat.id === this.#current ? "page" : null,
          onclick: () => this.#leave(() => open(chat.id)),
        },
        h("span", { class: "chat-title" }, chat.title),
        isRunning && h("span", { class: "running", role: "img", "aria-label": "A reply is under way" }),
      ),
      menu,
    );
    return item;
  }

  #rename(item, chat) {
    const input = h("input", { type: "text", class: "chat-name", "aria-label": "Name of the chat", maxlength: "120" });
    input.value = chat.title;
    let isOver = false;
    const end = (isKept) => {
      if (isOver) return;
      isOver = true;
      if (isKept && input.value.trim()) this.#actions.rename(chat.id, input.value.trim());
      else this.#draw();
    };
    input.addEventListener("blur", () => end(true));
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault(); // Enter does not press what has the focus next
      event.stopPropagation(); // Escape stops no reply
      end(event.key === "Enter");
      document.querySelector(`.chat[data-id="${CSS.escape(chat.id)}"] .chat-open`)?.focus();
    });
    item.replaceChildren(input);
    input.focus();
    input.select();
  }
}

function matches(chat, sought) {
  if (!sought || chat.title.toLocaleLowerCase().includes(sought)) return true;
  return chat
    .messages()
    .some((node) => (node.role === "user" ? questionText(node) : node.content).toLocaleLowerCase().includes(sought));
}
