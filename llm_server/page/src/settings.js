// What the reader has chosen. It survives a reload; the API key lasts as long as the tab.

/** Fields of a request; what is empty is left to the model. */
export const FIELDS = [
  { name: "system", label: "System prompt", kind: "text", hint: "Said to the model before every chat" },
  {
    name: "temperature",
    label: "Temperature",
    kind: "number",
    min: 0,
    max: 2,
    step: "any",
    hint: "0 always takes the likeliest token",
  },
  {
    name: "top_p",
    label: "Top p",
    kind: "number",
    min: 0,
    max: 1,
    step: "any",
    hint: "Keeps the likeliest tokens up to this share",
  },
  {
    name: "top_k",
    label: "Top k",
    kind: "number",
    min: 0,
    step: 1,
    hint: "Keeps this many of the likeliest; 0 keeps all",
  },
  {
    name: "min_p",
    label: "Min p",
    kind: "number",
    min: 0,
    max: 1,
    step: "any",
    hint: "Drops tokens below this share of the likeliest",
  },
  {
    name: "repetition_penalty",
    label: "Repetition penalty",
    kind: "number",
    min: 0.1,
    max: 10,
    step: "any",
    hint: "Above 1 repeats less",
  },
  {
    name: "max_completion_tokens",
    label: "Longest reply",
    kind: "number",
    min: 1,
    step: 1,
    hint: "In tokens; until the context is full if empty",
  },
  { name: "seed", label: "Seed", kind: "number", min: 0, step: 1, hint: "The same seed gives the same reply" },
  {
    name: "thinking",
    label: "Thinking",
    kind: "choice",
    choices: [
      ["", "The model's choice"],
      ["on", "On"],
      ["off", "Off"],
    ],
    hint: "For models that can reason before they reply",
  },
  { name: "stop", label: "Stop at", kind: "text", hint: "Texts that end a reply, one a line" },
];

const KEY = "mote.settings";
let values = read();

function read() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY)) ?? {};
    return Object.fromEntries(FIELDS.filter(({ name }) => name in found).map(({ name }) => [name, found[name]]));
  } catch {
    return {};
  }
}

/** Values by name; only those that are set. */
export function settings() {
  return values;
}

export function set(name, value) {
  const { [name]: _, ...rest } = values;
  values = value === "" || value === null ? rest : { ...rest, [name]: value };
  localStorage.setItem(KEY, JSON.stringify(values));
}

export function reset() {
  values = {};
  localStorage.removeItem(KEY);
}

/** Small choices of the page itself, such as the theme. */
export function preference(name) {
  return localStorage.getItem(`mote.${name}`);
}

export function setPreference(name, value) {
  if (value) localStorage.setItem(`mote.${name}`, value);
  else localStorage.removeItem(`mote.${name}`);
}

export function apiKey() {
  return sessionStorage.getItem("mote.key") ?? "";
}

export function setApiKey(value) {
  sessionStorage.setItem("mote.key", value.trim());
}
