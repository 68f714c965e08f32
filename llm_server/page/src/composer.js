// Where the next question is written.
import { byId, h, icon, iconButton } from "./dom.js";
import { isSending } from "./message_view.js";

const MAX_FILE_BYTES = 1 << 20;

export class Composer {
  #text = byId("text");
  #files = [];
  #isRunning = false;

  /** `onSend(text, attachments)`; `onStop()`; `onRefused(why)` */
  constructor({ onSend, onStop, onRefused }) {
    Object.assign(this, { onSend, onRefused });
    byId("composer").addEventListener("submit", (event) => this.#submit(event));
    byId("stop").addEventListener("click", onStop);
    this.#text.addEventListener("keydown", (event) => isSending(event) && this.#submit(event));
    this.#text.addEventListener("input", () => this.#fit());
    const picker = byId("attach-file");
    byId("attach").addEventListener("click", () => picker.click());
    picker.addEventListener("change", async () => {
      await this.attach([...picker.files]);
      picker.value = "";
    });
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      this.attach([...event.dataTransfer.files]);
    });
    this.#fit();
  }

  focus() {
    this.#text.focus();
  }

  setRunning(isRunning) {
    const hadFocus = document.activeElement === byId("stop") || document.activeElement === byId("send");
    this.#isRunning = isRunning;
    byId("send").hidden = isRunning;
    byId("stop").hidden = !isRunning;
    if (hadFocus) this.focus();
  }

  async attach(files) {
    for (const file of files) {
      try {
        this.#files.push({ name: file.name, text: await readText(file) });
      } catch (error) {
        this.onRefused(`${file.name}: ${error.message}`);
      }
    }
    this.#showFiles();
    this.focus();
  }

  #submit(event) {
    event.preventDefault();
    const text = this.#text.value.trim();
    if (this.#isRunning || (!text && this.#files.length === 0)) return;
    const files = this.#files;
    this.#text.value = "";
    this.#files = [];
    this.#showFiles();
    this.#fit();
    this.onSend(text, files);
  }

  #fit() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${this.#text.scrollHeight}px`;
    byId("send").disabled = !this.#text.value.trim() && this.#files.length === 0;
  }

  #showFiles() {
    byId("files").replaceChildren(
      ...this.#files.map((file) =>
        h(
          "li",
          {},
          icon("file"),
          h("span", {}, file.name),
          iconButton("close", `Remove ${file.name}`, () => {
            this.#files = this.#files.filter((other) => other !== file);
            this.#showFiles();
            this.focus();
          }),
        ),
      ),
    );
    this.#fit();
  }
}

/** Errors: Error in words for the reader, if it is no text. */
async function readText(file) {
  if (file.size > MAX_FILE_BYTES) throw new Error("files of up to 1 MB can be attached");
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (!text.includes("\0")) return text.replace(/\r\n/g, "\n");
  } catch {
    // said below
  }
  throw new Error("only text files (UTF-8) can be attached");
}
