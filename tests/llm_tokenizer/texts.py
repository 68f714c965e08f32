"""Text that tokenizers are compared on."""

from __future__ import annotations

import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPTS = {
    "latin": "Grüße, ça va? naïve façade, Łódź, İstanbul, ﬁne ﬂow; \u1e9b\u0323 Å \u212b e\u0301 n\u0303o",
    "greek": "Η γρήγορη αλεπού πηδάει πάνω από τον τεμπέλη σκύλο. ΆΈΉ Ω\u0345",
    "cyrillic": "Съешь же ещё этих мягких французских булок, да выпей чаю. Їжак і ґанок",
    "arabic": "نص حكيم له سر قاطع وذو شأن عظيم مكتوب ٠١٢٣٤ لا\u064e",
    "hebrew": "דג סקרן שט בים מאוכזב ולפתע מצא חברה שָׁלוֹם",
    "devanagari": "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा क्ष १२३",
    "thai": "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "chinese": "我能吞下玻璃而不伤身体。視野無限廣,窗外有藍天 一二三四〇",
    "japanese": "いろはにほへと ちりぬるを ガギグゲゴ カ\u3099 ー々〆 123",
    "korean": "다람쥐 헌 쳇바퀴에 타고파 \u1112\u1161\u11ab\u1100\u1173\u11af",
    "georgian": "ქართული ენა, Ⴐ ⴐ Ა",
    "tamil": "யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் கொ\u0bbe",
    "ethiopic": "ሰማይ አይታረስ ንጉሥ አይከሰስ።",
}
EMOJI = "😀👩\u200d👩\u200d👧\u200d👦🏳\ufe0f\u200d🌈👍🏽 \U0001f1e9\U0001f1ea 1\ufe0f\u20e3 ❤\ufe0f ☃"
CONTROL = "\x00\x01\x08\t\n\x0b\x0c\r\x1b\x1c\x7f\x80\x85\x9f\xa0\xad\u034f\u061c\u180e\u200b\u200d\u2028\u2029\u2060\ufeff\ufffd\U000e0041"
CODE = 'def f(x: int) -> str:\n\treturn f"{x:>8}"  # done\n\n\nif (a!=b)&&(c<=0x1F){ arr[i++]="\\n"; }\r\n<div class="x">&nbsp;</div>\n'
FIXED = [
    "",
    " ",
    "  ",
    "\n",
    " \n ",
    "a",
    " a",
    "a ",
    "Hello, world! It's 3 o'clock; we'll go. I'D SAY SO",
    "  leading and trailing  \n\n\n\ttabs\r\n  ",
    "123456789 1,234.5 ½ ² ٣٤٥ Ⅷ x\u00b2",
    "ſ 'ſ K 'S 'LL ’s 'Re 'vE n't do not 'tis",
    "camelCaseHTMLParser XMLHttpRequest iOS McDonald's ǅ ǅx",
    "http://example.com/a//b/\n\n//c",
    "a\u00a0b\u2003c\u3000d\u200be\ufefff\u180eg",
    "!!!???...,,,;;; ---___=== (((",
    "a" * 300,
    " " * 100 + "x" + "\n" * 20 + "y",
    "\u2581\u2581x \u2581y",
    EMOJI,
    CONTROL,
    CODE,
    *SCRIPTS.values(),
]
SOUP = [
    "<s>", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "<|endoftext|>", "<|im_start|>", "<|im_end|>",
    "<|eot_id|>", "<|begin_of_text|>", ">>TITLE<<", "<0x0A>", "<0xE2>", "\u2581", "##", "</w>", "Ġ", "zqz", "zqzk", "  two", "é!",
    "word", "Word", "'s", "'LL", "123", "4567", "...", "\r\n", "\n\n", "\t", " ", "  ", "http://", "ﬁ", "e\u0301",
]  # fmt: skip
RANGES = [(0x20, 0x7F), (0xA0, 0x250), (0x300, 0x36F), (0x370, 0x600), (0x600, 0x900), (0x900, 0xE80), (0x1100, 0x1200), (0x1E00, 0x2100),
          (0x2190, 0x2400), (0x3040, 0x3130), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xFB00, 0xFE70), (0x10330, 0x10400), (0x1D400, 0x1D500),
          (0x1F300, 0x1F700), (0x20000, 0x20050)]  # fmt: skip


def random_text(rng: random.Random, length: int = 40) -> str:
    """Returns valid text of pieces from everywhere: letters of many scripts, spaces, added tokens, any code point."""
    parts = []
    for _ in range(rng.randrange(1, length)):
        kind = rng.random()
        if kind < 0.35:
            parts.append("".join(rng.choice("abcdefgXYZ eitno") for _ in range(rng.randrange(1, 8))))
        elif kind < 0.5:
            parts.append(rng.choice(SOUP))
        elif kind < 0.6:
            parts.append(rng.choice([" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000"]))
        elif kind < 0.9:
            first, last = rng.choice(RANGES)
            parts.append("".join(chr(rng.randrange(first, last)) for _ in range(rng.randrange(1, 4))))
        else:
            parts.append(any_character(rng))
    return "".join(parts)


def any_character(rng: random.Random) -> str:
    """Returns any code point but a surrogate."""
    code = rng.randrange(0x110000 - 0x800)
    return chr(code if code < 0xD800 else code + 0x800)


def real_text() -> list[str]:
    """Returns prose and source code of this repository."""
    paths = (
        sorted(ROOT.glob("docs/*.md")) + sorted(ROOT.glob("llm_export/*.py")) + sorted(ROOT.glob("tokenizer/**/*.cpp"))
    )
    return [path.read_text() for path in [*paths, ROOT / "tests/fixtures/heldout_textwrap.txt"]]
