// A sentence for some seconds, with something to do about it.
import { byId, h } from "./dom.js";

let timer;

export function toast(text, label, action) {
  const element = byId("toast");
  const hide = () => (element.hidden = true);
  element.hidden = false;
  element.replaceChildren(
    text,
    ...(label
      ? [
          h(
            "button",
            {
              type: "button",
              onclick: () => {
                hide();
                action();
              },
            },
            label,
          ),
        ]
      : []),
  );
  clearTimeout(timer);
  timer = setTimeout(hide, 8000);
}
