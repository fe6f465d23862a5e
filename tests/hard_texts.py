"""Texts that tokenizers disagree on: marks, widths, controls, scripts, emoji, special tokens."""

import random
import unicodedata

HARD_TEXTS = [
    "Café naïve Ångström ÅÄÖ",
    "中文字符 test 漢字。、《》「」",
    "한국어 텍스트",
    "ภาษาไทย",
    "ひらがな カタカナ ｶﾅ ｆｕｌｌｗｉｄｔｈ",
    "עִבְרִית العَرَبِيَّة हिन्दी",
    "😀 emoji 👨\u200d👩\u200d👧 \U0001f1e9\U0001f1ea",
    "zero\u200dwidth\u200bspace\u2060joiner\ufeffbom",
    "soft\u00adhyphen",
    "straße GROẞ",
    "οδος σς",
    "İstanbul ıI ŉ ǅ",
    "… ellipsis ... x² H₂O ½ Ⅷ ①",
    "tab\tnew\nline\rreturn\x0bvertical\x0cfeed",
    "nul\0byte bad\ufffdchar",
    "control\x01\x02\x7f\x85codes",
    "nbsp\u00a0em\u2003ideographic\u3000line\u2028paragraph\u2029ogham\u1680",
    "[MASK] a [CLS][SEP]b[mask] [UNK] [PAD]",
    "a" * 100 + " " + "b" * 101 + " " + "c" * 200,
    "!@#$%^&*()`~|<>=+_-[]{}\\/;:'\",.?",
    "e\u0301 e\u0301\u0301 \u0301start",
    "ﬁ ﬂ K K Å",
    "\U00020000\U0002a6d6 \U000e0001tag",
    "##a ## # un##able",
    "don't it's U.S.A. 3.14 -1e-5",
    "",
    "   ",
    "\u0378unassigned \u180emongolian",
    "  spaces   outside and\n\n\ninside  ",
    "I'll we've they'd CAN'T o'clock 'tis",
    "https://example.org/a_b?c=d&e=%20#f user@example.com",
    "1,234.56 € £5 ¥100 +49 (0)30 1234-567",
    "def f(x):\n    return x ** 2\n",
    "ça\u00a0va ? «\u202foui\u202f» – non — “quotes” ‘single’",
    "ﷺ ﻻ ﺍ ﬀ ĳ ŀ ſ ǆ Ǆ",
    "日本語とEnglishのmixed文。２０２４年",
    "안녕하세요 여러분",
    "মানুষ தமிழ் తెలుగు ქართული հայերեն",
    "🏳\ufe0f\u200d🌈 👍🏽 ❤\ufe0f 🇩",
    "\u3000全角　空白\u3000",
    "<s> a </s> <mask>b<pad> <unk> <MASK>",
    "a <mask> <mask>b  <mask>",
    "Ġ ▁ ▁a Ċ \u0120x",
    "\u202eoverride\u202c \u200eleft\u200f",
    "x\u0338\u0327\u0301y\u20dd",
    "𝐛𝐨𝐥𝐝 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ℃ № ™ \U0001d11e",
]
# On two of these the `tokenizers` library departs from BERT's own code: a sigma at a word's end,
# and code points that are no characters.
HARDER_TEXTS = [
    "ὈΔΥΣΣΕΎΣ ΟΣ. ΣΑΣ\u0301 \u1f80\u0345 ᾳ ΐ",
    "\u1112\u1161\u11ab\u1100\u1173\u11af 가\u11a8 \u3131ﾡ ﾊﾟ パ",
    "q\u0323\u0307 q\u0307\u0323 a\u0315\u0300\u05ae\u0345b \u0344 "
    "\U0001d157\U0001d165\U0001d16d\u0301",
    "[[MASK]] [MA[MASK]SK] [SEP\u200d] \U000f0001[CLS]\U000f0000 \ue000\uf8ff\ufdd0\U0010ffff x",
]


def random_texts(count, seed):
    """Returns strings of characters from all of Unicode, half of them from its first blocks."""
    draw = random.Random(seed)

    def character():
        while True:
            limit = draw.choice([0x250, 0x3000, 0x11000, 0x110000])
            code = draw.randrange(limit)
            if not 0xD800 <= code < 0xE000:
                return chr(code)

    return ["".join(character() for _ in range(draw.randint(1, 40))) for _ in range(count)]


def mixed_texts(count, seed):
    """Returns strings of characters that affect each other: marks, jamo, special tokens, space."""
    draw = random.Random(seed)
    marks = [c for c in map(chr, range(0x20000)) if unicodedata.combining(c)]
    kinds = [
        marks,
        sorted(set("".join(HARD_TEXTS))),
        ["[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]", "[MA", "SK]", "[", "]"],
        [" ", "\u00a0", "\t", "\u200b", "\u034f", "\ufe0f", "\U000f0001", "\U000f0000"],
        ["\uac00", "\ud7a3", "\u1100", "\u1161", "\u11a8", "Σ", "ς", "ß", "İ", "\u1e69", "\u0344"],
        ["\U0001d15e", "\U0001d165", "\U0001d16d", "\u1baa", "\u302f", "\u0cca", "a", "é", "ab"],
    ]
    return [
        "".join(draw.choice(draw.choice(kinds)) for _ in range(draw.randint(1, 30)))
        for _ in range(count)
    ]
