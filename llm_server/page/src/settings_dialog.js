// The dialog of the settings, the one for the API key, and the switch of the theme.
import { byId, h, icon } from "./dom.js";
import { FIELDS, preference, reset, set, setApiKey, setPreference, settings } from "./settings.js";

export function setUpSettings() {
  const dialog = byId("settings");
  byId("open-settings").addEventListener("click", () => {
    drawFields();
    dialog.showModal();
    byId(`setting-${FIELDS[0].name}`).focus();
  });
  byId("reset").addEventListener("click", () => {
    reset();
    drawFields();
  });
  // A click beside the dialog is one on its backdrop.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  for (const each of document.querySelectorAll("dialog")) {
    each.addEventListener("keydown", (event) => event.key === "Escape" && event.stopPropagation()); // it stops no reply
    each.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault(); // the page's policy lets no form be sent
      each.close();
    });
  }
  setUpTheme();
}

function drawFields() {
  byId("fields").replaceChildren(...FIELDS.map(fieldRow));
}

function fieldRow(field) {
  const id = `setting-${field.name}`;
  const control = controlOf(field, id);
  control.value = settings()[field.name] ?? "";
  control.addEventListener("input", () => {
    if (!control.checkValidity()) return;
    set(field.name, field.kind === "number" && control.value !== "" ? Number(control.value) : control.value);
  });
  const range = field.max === undefined ? `${field.min} or more` : `${field.min} to ${field.max}`;
  return h(
    "div",
    { class: `field field-${field.kind}` },
    h("label", { for: id }, field.label),
    control,
    h("p", { class: "hint", id: `${id}-hint` }, field.hint),
    field.kind === "number" && h("p", { class: "wrong" }, `A number, ${range}`),
  );
}

function controlOf({ name, kind, min, max, step, choices }, id) {
  const attributes = { id, name, "aria-describedby": `${id}-hint` };
  if (kind === "text") return h("textarea", { ...attributes, rows: name === "system" ? 4 : 2 });
  if (kind === "choice")
    return h("select", attributes, ...choices.map(([value, label]) => h("option", { value }, label)));
  return h("input", { ...attributes, type: "number", min, max, step, placeholder: "default", inputmode: "decimal" });
}

const THEMES = {
  "": ["auto", "Theme: as the system"],
  light: ["light", "Theme: light"],
  dark: ["dark", "Theme: dark"],
};

function setUpTheme() {
  const button = byId("theme");
  const show = (theme) => {
    const [name, label] = THEMES[theme];
    document.documentElement.dataset.theme = theme;
    button.replaceChildren(icon(name));
    button.title = label;
    button.setAttribute("aria-label", label);
  };
  let theme = preference("theme") in THEMES ? preference("theme") : "";
  show(theme);
  button.addEventListener("click", () => {
    theme = { "": "light", light: "dark", dark: "" }[theme];
    setPreference("theme", theme);
    show(theme);
  });
}

/** Asks for the API key. Resolves to whether one was given. */
export function askForKey() {
  const dialog = byId("key-dialog");
  const input = byId("key");
  input.value = "";
  dialog.showModal();
  input.focus();
  return new Promise((resolve) => {
    byId("key-cancel").onclick = () => {
      input.value = "";
      dialog.close();
    };
    dialog.onclose = () => {
      if (input.value.trim()) setApiKey(input.value);
      resolve(Boolean(input.value.trim()));
    };
    dialog.oncancel = () => (input.value = "");
  });
}
