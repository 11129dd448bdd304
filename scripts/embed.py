#!/usr/bin/env python3
"""Turns text files (SQL, Lua) into a C source with constant strings.

usage: embed.py [--sha1] [--replace OLD NEW]... INPUT... OUTPUT SYMBOL
       embed.py --statements [--replace OLD NEW]... INPUT... OUTPUT
       embed.py --files INPUT... OUTPUT SYMBOL

The first form makes one string of the files, one after the other. The second makes one string of each
statement: a line `-- : SYMBOL` begins it; comments are left out, its lines are joined, and the semicolon at
its end goes. The third makes a table of the files by their names: `struct { const char *name, *text; } SYMBOL[]`, which
ends with NULL. The declaration is the user's: `extern const char SYMBOL[];`. Each line becomes one literal, so
that the generated file reads like its source. --sha1 adds SYMBOL_sha1, by which a Redis server knows the text;
--replace makes a variant for tests, and fails if there is nothing to replace.
"""
import argparse
import hashlib
import os
import re


def literal(line):
    out = []
    for byte in line:
        char = chr(byte)
        if char in '\\"':
            out.append('\\' + char)
        elif char == '\n':
            out.append('\\n')
        elif 32 <= byte < 127 and char != '?':
            out.append(char)
        else:
            out.append('\\%03o' % byte)
    return '    "' + ''.join(out) + '"\n'


def write(f, symbol, text):
    f.write('extern const char %s[];\nconst char %s[] =\n' % (symbol, symbol))
    f.writelines(literal(line) for line in text.splitlines(keepends=True) or [b''])
    f.write('    ;\n')


def write_statements(f, text):
    parts = re.split(rb'^-- : (\w+)\n', text, flags=re.MULTILINE)
    for symbol, statement in zip(parts[1::2], parts[2::2]):
        lines = [line.strip() for line in statement.splitlines() if not line.startswith(b'--')]
        write(f, symbol.decode(), b' '.join(line for line in lines if line).rstrip(b';'))


def write_files(f, symbol, names):
    f.write('#include <stddef.h>\nstruct embedded_file {\n    const char *name, *text;\n};\n')
    f.write('extern const struct embedded_file %s[];\nconst struct embedded_file %s[] = {\n' % (symbol, symbol))
    for name in names:
        with open(name, 'rb') as source:
            f.write('{"%s",\n' % os.path.basename(name))
            f.writelines(literal(line) for line in source.read().splitlines(keepends=True) or [b''])
            f.write('},\n')
    f.write('{NULL, NULL}};\n')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--sha1', action='store_true')
    parser.add_argument('--statements', action='store_true')
    parser.add_argument('--files', action='store_true')
    parser.add_argument('--replace', nargs=2, action='append', default=[])
    parser.add_argument('names', nargs='+')
    options = parser.parse_args()
    names = options.names
    symbol = None if options.statements else names.pop()
    output = names.pop()

    if options.files:
        with open(output, 'w') as f:
            write_files(f, symbol, names)
        return
    text = b''
    for name in names:
        with open(name, 'rb') as f:
            text += f.read()
    for old, new in options.replace:
        if old.encode() not in text:
            raise SystemExit('embed.py: %s: there is no %r to replace' % (output, old))
        text = text.replace(old.encode(), new.encode())
    with open(output, 'w') as f:
        if symbol is None:
            write_statements(f, text)
            return
        write(f, symbol, text)
        if options.sha1:
            write(f, symbol + '_sha1', hashlib.sha1(text).hexdigest().encode())


main()
