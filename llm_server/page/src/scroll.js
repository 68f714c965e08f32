// Keeps the end of a chat in view while it grows, unless the reader has gone elsewhere.

const NEAR = 24; // pixels from the end that count as being there, on the way down

export class Follower {
  #scroller;
  #last = 0;

  /** `onChange(isFollowing)` is called when the reader leaves the end, and when they are back. */
  constructor(scroller, content, onChange) {
    this.#scroller = scroller;
    this.isFollowing = true;
    this.onChange = onChange;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.isFollowing && this.#toEnd()).observe(content);
    new ResizeObserver(() => this.isFollowing && this.#toEnd()).observe(scroller);
  }

  follow() {
    this.#set(true);
    this.#toEnd();
  }

  #toEnd() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#last = this.#scroller.scrollTop;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const distance = scrollHeight - clientHeight - scrollTop;
    const isUp = scrollTop < this.#last;
    this.#last = scrollTop;
    // A chat that becomes shorter moves up too, and is at its end then.
    if (distance <= 1 || (!isUp && distance <= NEAR)) this.#set(true);
    else if (isUp) this.#set(false);
  }

  #set(isFollowing) {
    if (this.isFollowing === isFollowing) return;
    this.isFollowing = isFollowing;
    this.onChange(isFollowing);
  }
}
