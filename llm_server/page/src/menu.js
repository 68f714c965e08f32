// One menu beside the button that opened it.
import { byId, h } from "./dom.js";

/** `items`: [label, action] */
export function openMenu(button, items) {
  const menu = byId("menu");
  menu.replaceChildren(
    ...items.map(([label, action]) =>
      h(
        "button",
        {
          type: "button",
          role: "menuitem",
          onclick: () => {
            menu.hidePopover();
            action();
          },
        },
        label,
      ),
    ),
  );
  menu.showPopover();
  const { left, bottom, top } = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  menu.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  menu.style.top = `${bottom + height + 8 < innerHeight ? bottom + 4 : Math.max(8, top - height - 4)}px`;
  menu.firstElementChild.focus();
  menu.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") event.stopPropagation(); // it stops no reply
    if (!step) return;
    event.preventDefault();
    const all = [...menu.children];
    all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus();
  };
  menu.ontoggle = ({ newState }) => {
    if (newState === "closed" && (menu.contains(document.activeElement) || document.activeElement === document.body))
      button.focus();
  };
}
