#!/usr/bin/env python3
"""Writes unicode_classes.inc: the code point ranges of the Unicode classes that split patterns ask for.

    pip install unicodedata2==16.0.0
    python3 src/data/generate_unicode_classes.py > src/data/unicode_classes.inc

Unicode 16 is what the regular expressions of tiktoken 0.14 and rustbpe 0.1 use: a class that differs by one code
point splits differently.
"""

import sys

import unicodedata2

WANTED = "16.0.0"
# The property White_Space; unicodedata has categories only.
WHITE_SPACE = [0x9, 0xA, 0xB, 0xC, 0xD, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
               0x205F, 0x3000]


def ranges(members):
    out = []
    for c in members:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def table(name, members):
    lines = [f"constexpr CodePoints {name}[] = {{"]
    line = "   "
    for first, last in ranges(members):
        item = f" {{0x{first:x}, 0x{last:x}}},"
        if len(line) + len(item) > 110:
            lines.append(line)
            line = "   "
        line += item
    lines += [line, "};"]
    return "\n".join(lines)


def main():
    if unicodedata2.unidata_version != WANTED:
        sys.exit(f"unicodedata2 has Unicode {unicodedata2.unidata_version}, not {WANTED}")
    category = [unicodedata2.category(chr(c)) for c in range(0x110000)]
    print(f"// Unicode {WANTED}, written by generate_unicode_classes.py. Inclusive ranges.")
    print(table("kLetters", [c for c in range(0x110000) if category[c][0] == "L"]))
    print(table("kNumbers", [c for c in range(0x110000) if category[c][0] == "N"]))
    print(table("kWhiteSpace", WHITE_SPACE))


main()
