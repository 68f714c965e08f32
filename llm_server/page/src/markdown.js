// Markdown of the model as elements. HTML in it is shown as text, and what comes out is sanitised nonetheless.
import { tex } from "@mdit/plugin-tex";
import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { copyButton, h } from "./dom.js";
import { highlight } from "./highlight.js";

export const parser = new MarkdownIt({ html: false, linkify: true, highlight });
const { escapeHtml } = parser.utils;
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

const mathClass = (isDisplay) => (isDisplay ? "math math-display" : "math");
parser.use(tex, {
  delimiters: "all",
  render: (source, isDisplay) => `<span class="${mathClass(isDisplay)}">${escapeHtml(source)}</span>`,
});

// Nothing is loaded from elsewhere: a picture of another site is a link to it.
const drawImage = parser.renderer.rules.image;
parser.renderer.rules.image = (tokens, index, options, env, renderer) => {
  const source = tokens[index].attrGet("src");
  if (source.startsWith("data:")) return drawImage(tokens, index, options, env, renderer);
  return `<a href="${escapeHtml(source)}">${escapeHtml(tokens[index].content || source)}</a>`;
};

// Models break lines in the cells of tables by <br>, the only way that there is.
parser.inline.ruler.before("html_inline", "br", (state, isSilent) => {
  const found = /^<br ?\/?>/i.exec(state.src.slice(state.pos, state.pos + 6));
  if (!found) return false;
  if (!isSilent) state.push("hardbreak", "br", 0);
  state.pos += found[0].length;
  return true;
});

const purifier = DOMPurify(window);
const SANITISE = {
  ALLOWED_TAGS: [
    "a",
    "blockquote",
    "br",
    "code",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
  ],
  ALLOWED_ATTR: ["alt", "class", "href", "src", "start", "title"],
  ALLOW_DATA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(https?:|mailto:|data:image\/(png|jpeg|gif|webp);)/i,
  RETURN_DOM_FRAGMENT: true,
};
purifier.addHook("afterSanitizeAttributes", (element) => {
  if (element.tagName === "A") {
    element.setAttribute("target", "_blank");
    element.setAttribute("rel", "noopener noreferrer");
  }
});

/** Elements of the tokens of a block. */
export function draw(tokens) {
  // Alignment of cells is a style attribute, which the page's policy does not allow.
  for (const token of tokens) {
    const align = token.attrGet?.("style")?.match(/text-align:(\w+)/)?.[1];
    if (align) token.attrs = [["class", `align-${align}`]];
  }
  const fragment = purifier.sanitize(parser.renderer.render(tokens, parser.options, {}), SANITISE);
  fragment.querySelectorAll("pre").forEach(dressCode);
  fragment.querySelectorAll("table").forEach(dressTable);
  fragment.querySelectorAll(".math").forEach(drawMath);
  return fragment;
}

function dressCode(pre) {
  const code = pre.querySelector("code");
  const language = code?.className.match(/language-(\S+)/)?.[1] ?? "";
  const bar = h(
    "div",
    { class: "code-bar" },
    h("span", {}, language),
    copyButton("Copy code", () => pre.textContent),
  );
  const box = h("div", { class: "code", role: "group", "aria-label": language ? `Code, ${language}` : "Code" });
  pre.replaceWith(box);
  pre.tabIndex = 0; // wide code is scrolled by the keyboard too
  box.append(bar, pre);
}

function dressTable(table) {
  const box = h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" });
  table.replaceWith(box);
  box.append(table);
}

let katex; // loaded with the first formula

function loadKatex() {
  document.head.append(h("link", { rel: "stylesheet", href: "math.css" }));
  return import("katex").then((module) => module.default);
}

async function drawMath(element) {
  const source = element.textContent;
  const displayMode = element.classList.contains("math-display");
  katex ??= loadKatex();
  const { render } = await katex;
  try {
    render(source, element, { displayMode, trust: false, maxExpand: 1000, maxSize: 20, strict: "ignore" });
  } catch {
    element.classList.add("math-error");
    element.textContent = source;
  }
}
