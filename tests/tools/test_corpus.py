"""Search in a local collection of documents."""

import json

import pytest

from skillc.errors import SkillcError
from skillc.tools.corpus import NOTHING, PASSAGE, Corpus, Document

DOCUMENTS = (
    Document("Heron", "The steamer Heron sailed from 1889 to 1931."),
    Document("Dipper", "The Dipper has sailed on the lake since 1949."),
    Document("Orchard", "Apples are picked in October."),
)


def test_the_passages_with_the_words_come_first_after_their_titles():
    corpus = Corpus(DOCUMENTS)
    assert corpus.search("when did the HERON sail? 1889").startswith("Heron\nThe steamer Heron")
    assert corpus.search("apples", most=1) == "Orchard\nApples are picked in October."
    assert len(corpus) == 3


@pytest.mark.parametrize("query", ["", "?!", "zeppelin"])
def test_a_query_without_a_known_word_finds_nothing(query):
    assert Corpus(DOCUMENTS).search(query) == NOTHING
    assert Corpus([]).search(query) == NOTHING


def test_a_long_document_is_found_by_its_passages_and_read_whole():
    parts = [f"{word} " * (PASSAGE // 10) for word in ("alpha", "beta", "gamma")]
    corpus = Corpus([Document("Greek", "\n\n".join(parts))])
    found = corpus.search("beta", most=1)
    assert "beta" in found
    assert "alpha" not in found
    assert "alpha" in corpus.read(" greek ")
    with pytest.raises(KeyError, match="no document is titled `Latin`"):
        corpus.read("Latin")


def test_equal_passages_come_in_the_order_of_the_documents():
    corpus = Corpus([Document(title, "the same words") for title in "cab"])
    assert [part.partition("\n")[0] for part in corpus.search("same words").split("\n\n")] == ["c", "a", "b"]


def test_a_corpus_is_a_folder_of_texts_or_a_file_of_rows(tmp_path):
    (tmp_path / "docs/ships").mkdir(parents=True)
    (tmp_path / "docs/ships/heron.md").write_text("a steamer")
    (tmp_path / "docs/notes.txt").write_text("about lakes")
    (tmp_path / "docs/picture.png").write_bytes(b"\x89PNG")
    folder = Corpus.load(tmp_path / "docs")
    assert folder.read("ships/heron") == "a steamer"
    assert folder.search("lakes") == "notes\nabout lakes"
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"title": "Heron", "text": "a steamer"}) + "\n\n")
    assert Corpus.load(rows).search("steamer") == "Heron\na steamer"


@pytest.mark.parametrize(
    ("content", "message"), [(None, "does not exist"), ("{}", "line 1 of the corpus"), ("[", "line 1 of the corpus")]
)
def test_what_is_no_corpus_is_refused(tmp_path, content, message):
    path = tmp_path / "rows.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SkillcError, match=message):
        Corpus.load(path)
