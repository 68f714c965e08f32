// The messages of the shown chat.
import { byId } from "./dom.js";
import { messageView } from "./message_view.js";
import { paced } from "./pace.js";
import { Follower } from "./scroll.js";

export class Thread {
  #views = [];
  #actions;
  #list = byId("messages");
  #reply;

  constructor(actions) {
    this.#actions = actions;
    const toEnd = byId("to-end");
    this.follower = new Follower(byId("scroller"), this.#list, (isFollowing) => (toEnd.hidden = isFollowing));
    toEnd.addEventListener("click", () => this.follower.follow());
    this.#drawSoon = paced(() => this.#draw());
  }

  #drawSoon;

  /** Shows a chat. Views of messages that stay are kept, with what is selected in them. `reply`: the one under way. */
  show(chat, reply) {
    const path = chat.path();
    const numKept = path.findIndex((node, index) => this.#views[index]?.node !== node);
    const from = numKept === -1 ? path.length : numKept;
    for (const view of this.#views.splice(from)) view.element.remove();
    for (const node of path.slice(from)) {
      const view = messageView(node, chat.siblings(node.id), this.#actions);
      this.#views.push(view);
      view.draw(reply?.node === node ? reply : undefined);
      this.#list.append(view.element);
    }
    this.#reply = reply;
    byId("welcome").hidden = path.length > 0;
  }

  /** Draws what a reply has added, soon. */
  changed(reply) {
    this.#reply = reply;
    this.#drawSoon();
  }

  /** Draws a reply that is complete, and says it to screen readers. */
  ended(reply) {
    if (this.#reply === reply) this.#reply = undefined;
    const view = this.#viewOf(reply.node);
    if (!view) return;
    view.draw();
    byId("announcer").textContent = view.spoken;
  }

  /** Draws a message again, whose reply begins to go on. */
  redraw(reply) {
    this.#reply = reply;
    this.#draw();
  }

  /** Keeps the keyboard where it was: at the arrows of a message that has taken another's place. */
  focusVersions(node, step) {
    const [back, on] = this.#viewOf(node).element.querySelectorAll(".branches button");
    const [same, other] = step < 0 ? [back, on] : [on, back];
    (same.disabled ? other : same).focus();
  }

  #draw() {
    if (this.#reply) this.#viewOf(this.#reply.node)?.draw(this.#reply);
  }

  #viewOf(node) {
    return this.#views.find((view) => view.node === node);
  }
}
