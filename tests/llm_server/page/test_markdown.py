"""Text of the model as Markdown, and nothing else."""

from __future__ import annotations

import pytest

REPLY = r"""# Title

Some **bold** text and `code` at <https://example.org>, a [link](https://example.org/a) and a [reference][r].

```python
def f(x: int):
    return x
```

| a | b |
|---|--:|
| one<br>two | 1 |

Inline $a^2$, \(b\) and
$$
\frac{1}{2}
$$

~~~unknown
a < b
~~~

[r]: https://example.org/r
"""

ATTACKS = [
    "<script>window.hit = 1</script>",
    '<img src=x onerror="window.hit = 1">',
    '<svg onload="window.hit = 1"></svg>',
    '<iframe srcdoc="<script>parent.hit = 1</script>"></iframe>',
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hit=1></style></mglyph></table></mtext></math>",
    "[click](javascript:window.hit=1)",
    "[click](JaVaScRiPt&#58;window.hit=1)",
    "[click](data:text/html;base64,PHNjcmlwdD53aW5kb3cuaGl0PTE8L3NjcmlwdD4=)",
    "[click](vbscript:hit)",
    "![x](javascript:window.hit=1)",
    "![x\" onerror=\"window.hit=1](https://example.org/x.png)",
    '[x](https://example.org "\\" onmouseover=\\"window.hit=1")',
    "```\"><img src=x onerror=window.hit=1>\n</code></pre><script>window.hit=1</script>\n```",
    "$\\href{javascript:window.hit=1}{x}$ $\\htmlData{x=1}{y}$ $\\includegraphics{https://example.org/x.png}$",
    "$$\\url{javascript:window.hit=1}$$",
    "$<img src=x onerror=window.hit=1>$",
    "<form action=https://example.org><button>x</button></form><style>body{display:none}</style>",
    "| <img src=x onerror=window.hit=1> |\n|---|\n| <a href=javascript:window.hit=1>x</a> |",
    "<https://example.org/\"onmouseover=window.hit=1>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
]  # fmt: skip


def test_markdown_is_shown(chat):
    chat.show(REPLY)
    page = chat.page
    assert page.texts(".markdown h1") == ["Title"]
    assert page.texts(".markdown strong") == ["bold"]
    assert page.texts(".markdown td") == ["one\ntwo", "1"]
    assert page.count(".markdown td br") == 1
    assert page.evaluate("getComputedStyle(document.querySelectorAll('td')[1]).textAlign") == "right"
    assert page.texts(".code-bar > span") == ["python", "unknown"]
    assert page.texts(".code pre") == ["def f(x: int):\n    return x\n", "a < b\n"]
    assert page.texts(".hljs-keyword") == ["def", "return"]
    page.until("document.querySelectorAll('.katex').length === 3")
    assert page.count(".math-display .mfrac") == 1
    links = page.evaluate("[...document.querySelectorAll('.markdown a')].map((e) => [e.href, e.target, e.rel])")
    assert [link[0] for link in links] == [f"https://example.org/{name}" for name in ("", "a", "r")]
    assert all(link[1:] == ["_blank", "noopener noreferrer"] for link in links)


def test_formulas_have_their_fonts(chat):
    chat.show("$$\\sum x$$")
    chat.page.until("document.querySelector('.katex') && document.fonts.check('16px KaTeX_Main')")
    loaded = "[...document.fonts].filter((font) => font.status === 'loaded').map((font) => font.family)"
    chat.page.until(f"{loaded}.includes('KaTeX_Math')")


def test_a_streamed_reply_ends_as_a_whole_one(chat):
    chat.show(REPLY, piece=3)
    chat.page.until("document.querySelectorAll('.katex').length === 3")
    streamed = chat.page.evaluate("document.querySelector('.assistant > .markdown').innerHTML")
    chat.page.reload()
    chat.page.until("document.querySelector('.assistant > .markdown')")
    chat.page.until("document.querySelectorAll('.katex').length === 3")
    assert chat.page.evaluate("document.querySelector('.assistant > .markdown').innerHTML") == streamed


def test_code_is_copied(chat):
    chat.show("```c\nint x;\n```")
    chat.catch_copies()
    chat.page.click(".code-bar button")
    chat.page.until("window.copied === 'int x;\\n' && document.querySelector('[aria-label=Copied]')")
    chat.page.click("[aria-label='Copy reply']")
    chat.page.until("window.copied === '```c\\nint x;\\n```'")


def test_code_is_copied_where_there_is_no_clipboard(chat):
    chat.show("`x`")
    chat.page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: undefined});"
        "document.execCommand = () => { window.copied = document.activeElement.value; }"
    )
    chat.page.click("[aria-label='Copy reply']")
    chat.page.until("window.copied === '`x`'")


def test_attacks_in_a_reply_do_nothing(chat):
    chat.show("\n\n".join(ATTACKS), piece=50)
    for attack in ATTACKS:  # also the user's own text, and a chat's title
        if "\n" not in attack and len(chat.server.requests) < 4:
            chat.ask(attack)
            assert chat.questions[-1] == attack
    page = chat.page
    page.until("!document.querySelector('.math:not(.math-error):empty')")
    page.evaluate(
        "for (const e of document.querySelectorAll('.markdown a')) e.dispatchEvent(new MouseEvent('mouseover'))"
    )
    assert page.evaluate("window.hit") is None
    assert page.evaluate(
        "[...document.querySelectorAll('.markdown *')].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name) "
        "|| /^\\s*(javascript|vbscript|data:text)/i.test(a.value))).map((e) => e.outerHTML)"
    ) == []  # fmt: skip
    assert page.count(".markdown :is(script, iframe, object, form, style, link, base, meta)") == 0
    assert page.count(".markdown img") == 0
    assert page.evaluate("performance.getEntriesByType('resource').every((e) => e.name.startsWith(location.origin))")


@pytest.mark.parametrize("source", ["https://example.org/x.png", "//example.org/x.png"])
def test_pictures_of_other_sites_are_links(chat, source):
    chat.show(f"![A cat]({source})")
    assert chat.page.count(".markdown img") == 0
    assert chat.replies == ["A cat"]


def test_the_page_is_confined(server):
    import httpx

    for path in ("/", "/page.js", "/theme.js", "/page.css", "/licences.txt"):
        answer = httpx.get(server.url + path)
        policy = answer.headers["content-security-policy"]
        assert answer.status_code == 200
        assert "default-src 'none'" in policy and "img-src data:;" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    html = httpx.get(server.url).text
    assert "://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert all("://" not in line for line in html.splitlines() if "src=" in line)
