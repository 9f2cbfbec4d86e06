"""Text from data cannot control a terminal, turn the writing direction, or forge a line."""

import json
import unicodedata
from xml.etree import ElementTree

from schemas.printable import escape_line, escape_unprintable

HOSTILE = "\x1b[2J\x9b31m\u202egnp.exe\u2066\r\x07\ud800\x00\U000e0041"


def test_no_control_character_or_override_is_left() -> None:
    shown = escape_unprintable(HOSTILE)
    assert shown == "\\u001b[2J\\u009b31m\\u202egnp.exe\\u2066\\u000d\\u0007\\ud800\\u0000\\udb40\\udc41"
    assert json.loads(f'"{shown}"') == HOSTILE
    every = escape_unprintable("".join(map(chr, range(0x110000))))
    assert {c for c in every if unicodedata.category(c) in ("Cc", "Cs")} == {"\n", "\t"}
    assert not {
        c
        for c in every
        if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    }


def test_every_escaped_text_can_be_part_of_xml() -> None:
    every = escape_line("".join(map(chr, range(0x10000))))  # a result for a CI server is XML
    element = ElementTree.Element("testcase", name=every)
    assert ElementTree.fromstring(ElementTree.tostring(element, encoding="unicode")).get("name") == every


def test_writing_of_all_kinds_stays() -> None:
    text = "שלום עולم 👩\u200d🔬 क्\u200dष 日本\tx\n"
    assert escape_unprintable(text) == text


def test_a_line_stays_one_line() -> None:
    assert escape_line("new\n✓ gate pass\t\r\n\u2028x") == "new\\u000a✓ gate pass\\u0009\\u000a\\u2028x"
