"""The tokenizer: words in lower case, pieces of rarer words, and DSPy's fixed sentences as single tokens.

A word is the same token wherever it stands (after a space, a quote or a line break), so that to find it again is to
find the same code. What that costs: only single spaces come back from a reply, and letters beyond Latin-1 are unknown.
A capital is a mark before the lower-case letter, so that `Refund` and `refund` are the same word. The mark is the
replacement character because readers of a token stream hold that one back until the next token comes.
"""

from __future__ import annotations

import json
import random
import string
from collections import Counter
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from . import words

PAD, SYSTEM, USER, ASSISTANT, END, UNKNOWN = (
    "<|pad|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    "<|unknown|>",
)
SPECIAL = (PAD, SYSTEM, USER, ASSISTANT, END, UNKNOWN)
# What DSPy's chat adapter and skillc write in every prompt.
FIXED = (
    "Your input fields are:",
    "Your output fields are:",
    "All interactions will be structured in the following way, with the appropriate values filled in.",
    "# note: the value you produce must exactly match (no extra characters) one of:",
    "In adhering to this structure, your objective is:",
    "Given the fields",
    "produce the fields",
    "Follow the rules of this skill; they come before your own judgement.",
    "Respond with the corresponding output fields, starting with the field",
    "(must be formatted as a valid Python",
    "and then ending with the marker for",
    "[[ ## completed ## ]]",
    "[[ ##",
    "## ]]",
    "['",
    "', '",
    "']",
    '", "',
)
MARK = "\N{REPLACEMENT CHARACTER}"  # before a letter that is a capital
JOIN = "\N{CHARACTER TIE}"  # before a piece that follows without a space
INNER = JOIN + MARK  # before a capital inside a word
NEWLINE, PARAGRAPH = JOIN + "\n", JOIN + "\n\n"
PUNCTUATION = list(string.punctuation) + list("“”‘’«»…–—→←⇒•·✓✗§©€£¥°½×")
LETTERS = string.ascii_lowercase + string.digits + "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþßÿœ"
INSIDE = "-_'’/.&+"
BEGINNINGS, INSIDES = 700, 1500
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] | trim + '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def vocabulary() -> list[str]:
    """All tokens but the fixed sentences, in order; a split word appears as its pieces."""
    chance = random.Random("pieces")
    sample = [*words.training(), *(words.invented(chance) for _ in range(10_000))]
    begin = Counter(word[:size] for word in sample for size in (2, 3, 4))
    inside = Counter(
        JOIN + word[at : at + size] for word in sample for size in (2, 3, 4) for at in range(1, len(word) - size + 1)
    )
    pieces = [*_saving(begin, BEGINNINGS), *_saving(inside, INSIDES)]
    singles = [*LETTERS, *(JOIN + letter for letter in LETTERS), *(JOIN + mark for mark in INSIDE)]
    ordered = [
        *SPECIAL,
        NEWLINE,
        PARAGRAPH,
        MARK,
        INNER,
        *PUNCTUATION,
        *singles,
        *sorted(words.FUNCTION),
        *words.whole(),
        *pieces,
    ]
    return list(dict.fromkeys(ordered))


def capital(token: str) -> str:
    """Return a word or piece with a capital as its first letter."""
    body = token.removeprefix(JOIN)
    return token[: len(token) - len(body)] + body[:1].upper() + body[1:]


def twins() -> dict[str, str]:
    """Return the tokens with capitals, each with its token in lower case."""
    found: dict[str, str] = {}
    for token in vocabulary():
        body = token.removeprefix(JOIN)
        if token not in SPECIAL and body.isalpha():
            shouted = token[: len(token) - len(body)] + body.upper()
            # A letter such as `ß` has no capital of one letter.
            for twin in (capital(token), shouted) if len(body.upper()) == len(body) else ():
                found.setdefault(twin, token)
    return found


def numbers() -> list[str]:
    """Return the tokens of two digits, alone and inside words."""
    return [f"{start}{number}" for start in ("", JOIN) for number in range(10, 100)]


def _saving(counted: Counter[str], most: int) -> list[str]:
    """The pieces that save most tokens, in order."""
    best = sorted(counted, key=lambda piece: (-counted[piece] * (len(piece.lstrip(JOIN)) - 1), piece))
    return sorted(best[:most])


def build(*, marks: bool = False) -> Tokenizer:
    """Build the tokenizer, the same each time; with `marks`, that of the first stage of the training."""
    tokens = vocabulary()
    if not marks:
        tokens = [token for token in tokens if token not in (MARK, INNER)] + [*twins(), *numbers()]
    made = Tokenizer(
        models.WordPiece(
            {token: number for number, token in enumerate(tokens)},
            unk_token=UNKNOWN,
            continuing_subword_prefix=JOIN,
            max_input_chars_per_word=64,
        )
    )
    made.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.Replace("\r\n", "\n"),
            normalizers.Replace(Regex(r"[ \t]*\n([ \t]*\n)+[ \t]*"), PARAGRAPH),
            normalizers.Replace(Regex(r"(?<!\n)[ \t]*(?<!" + JOIN + r"|\n)\n(?!\n)[ \t]*"), NEWLINE),
            *(_marking() if marks else ()),
        ]
    )
    word = rf"[\p{{L}}\p{{N}}]+(?:[{INSIDE}][\p{{L}}\p{{N}}]+)*" + ("" if marks else r"\+*")
    mark = rf"{JOIN}?{MARK}|" if marks else ""
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(rf"{JOIN}\n\n?|{mark}{word}|[^\s\p{{L}}\p{{N}}]"), "isolated"),
            pre_tokenizers.Split(Regex(r"[ \t]+"), "removed"),
        ]
    )
    pieces = [decoders.WordPiece(prefix=JOIN, cleanup=False), decoders.Fuse()]
    if marks:
        pieces += [decoders.Replace(f"{MARK} {letter}", letter.upper()) for letter in string.ascii_lowercase]
    else:
        pieces += [decoders.Replace("( ", "("), decoders.Replace(" )", ")")]
    # DSPy finds a field's header at the start of a line only, with nothing before it.
    headers = [decoders.Replace("\n ", "\n"), decoders.Replace(" [[ ##", "[[ ##")]
    made.decoder = decoders.Sequence([*pieces, *headers])
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    made.add_tokens([AddedToken(text, normalized=False, single_word=False) for text in FIXED])
    return made


def _marking() -> list[normalizers.Normalizer]:
    """Return what writes a capital as a mark and the letter in lower case."""
    return [
        *(
            normalizers.Replace(pattern, mark + letter.lower())
            for letter in string.ascii_uppercase
            for pattern, mark in ((Regex(rf"(?<=[\p{{L}}\p{{N}}]){letter}"), INNER), (letter, MARK))
        ),
        normalizers.Lowercase(),
    ]


def structural(made: Tokenizer) -> list[int]:
    """Return the tokens that training may move: marks, function words, fixed sentences. Others keep a random code."""
    written = {*words.FUNCTION, *(twin for twin, token in twins().items() if token in words.FUNCTION)}
    tokens = [*SPECIAL, NEWLINE, PARAGRAPH, MARK, INNER, *PUNCTUATION, *sorted(written), *FIXED]
    return sorted({number for token in tokens if (number := made.token_to_id(token)) is not None})


def inner(made: Tokenizer) -> list[int]:
    """The tokens that go on with a word."""
    return sorted(
        number for token, number in made.get_vocab().items() if token.startswith(JOIN) and token[1:].isalnum()
    )


def save(made: Tokenizer, folder: Path) -> None:
    """Writes it as Hugging Face's libraries read it."""
    from transformers import PreTrainedTokenizerFast

    whole = PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=4096,
    )
    whole.save_pretrained(folder)
    # As every version of transformers has it, not only the one that wrote it.
    about = folder / "tokenizer_config.json"
    about.write_text(
        json.dumps(json.loads(about.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}, indent=2)
    )
