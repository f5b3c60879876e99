"""The redactor: no planted secret survives, ordinary text does."""

import pytest

from outlast.telemetry.redactor import REDACTED, TEXT_CHARS_MAX, Redactor

CANARY = "cnry/7f3a+9b=="


@pytest.mark.parametrize(
    "text",
    [
        f"refused {CANARY}",
        f"GET /v1?key={CANARY}",
        "GET /v1?key=cnry%2F7f3a%2B9b%3D%3D",
        f"{'x' * (TEXT_CHARS_MAX - 4)}{CANARY}",
    ],
)
def test_a_known_secret_is_removed_in_every_spelling_and_place(text):
    clean = Redactor([CANARY, "other"]).text(text)
    assert "cnry" not in clean
    assert "7f3a" not in clean


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Authorization: Bearer abcdef123", "abcdef123"),
        ("{'authorization': 'abcdef123'}", "abcdef123"),
        ("x-api-key=abcdef123; next", "abcdef123"),
        ("sent bearer abcdef123 to it", "abcdef123"),
        ("Basic dXNlcjpwYXNz was refused", "dXNlcjpwYXNz"),
        ("Incorrect API key provided: sk-proj-abc123def", "abc123def"),
        ("key gsk_abc123def", "abc123def"),
        ("key AIzaSyA-1234567890abcdef", "1234567890"),
        ("https://user:pa55@host/v1", "pa55"),
        ("https://host/v1/models?api=abcdef&b=2 failed", "abcdef"),
    ],
)
def test_what_looks_like_a_secret_is_removed(text, hidden):
    clean = Redactor().text(text)
    assert hidden not in clean
    assert REDACTED in clean


@pytest.mark.parametrize(
    "text",
    [
        "",
        "connect to 127.0.0.1:8080 refused",
        "task-force asked? yes",
        "https://host/v1/models failed",
        "résumé 模型",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert Redactor(["s3cret"]).text(text) == text


def test_a_secret_too_short_to_be_one_does_not_wreck_the_log():
    assert Redactor(["x", ""]).text("x marks the box") == "x marks the box"


def test_text_is_cut_at_its_limit():
    clean = Redactor().text("é " * TEXT_CHARS_MAX)
    assert len(clean) == TEXT_CHARS_MAX + 1
    assert clean.endswith("…")


def test_text_that_is_no_valid_unicode_becomes_printable():
    assert Redactor().text("a\ud800b") == "a\\ud800b"


def test_structured_values_are_cleaned_at_every_depth():
    clean = Redactor([CANARY]).fields(
        {
            "api-key": "anything",
            "token": None,
            "count": 3,
            "open": True,
            "raw": f"{CANARY}".encode(),
            "deep": {"list": [f"see {CANARY}", ("a", 1.5)], "Authorization": "q"},
            CANARY: "name",
        }
    )
    assert clean == {
        "api-key": REDACTED,
        "token": None,
        "count": 3,
        "open": True,
        "raw": REDACTED,
        "deep": {"list": [f"see {REDACTED}", ["a", 1.5]], "Authorization": REDACTED},
        REDACTED: "name",
    }


def test_names_are_remembered_only_up_to_a_limit():
    redactor = Redactor([CANARY])
    for number in range(3000):
        assert redactor.name(f"{number}{CANARY}") == f"{number}{REDACTED}"
    assert redactor.name("gpt") == redactor.name("gpt") == "gpt"
    assert len(redactor._names) <= 1024


def test_a_value_without_end_is_cut():
    endless: list[object] = []
    endless.append(endless)
    assert REDACTED in str(Redactor().value(endless))


def test_it_never_shows_what_it_knows():
    assert CANARY not in repr(Redactor([CANARY]))
