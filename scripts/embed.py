#!/usr/bin/env python3
"""Turns text files (SQL, Lua) into a C source with one constant string: the files, one after the other.

usage: embed.py [--sha1] [--replace OLD NEW]... INPUT... OUTPUT SYMBOL

The declaration is the user's: `extern const char SYMBOL[];`. Each line becomes one literal, so that the
generated file reads like its source. --sha1 adds SYMBOL_sha1, by which a Redis server knows the text;
--replace makes a variant for tests, and fails if there is nothing to replace.
"""
import argparse
import hashlib


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--sha1', action='store_true')
    parser.add_argument('--replace', nargs=2, action='append', default=[])
    parser.add_argument('inputs', nargs='+')
    parser.add_argument('output')
    parser.add_argument('symbol')
    options = parser.parse_args()

    text = b''
    for name in options.inputs:
        with open(name, 'rb') as f:
            text += f.read()
    for old, new in options.replace:
        if old.encode() not in text:
            raise SystemExit('embed.py: %s: there is no %r to replace' % (options.symbol, old))
        text = text.replace(old.encode(), new.encode())
    with open(options.output, 'w') as f:
        f.write('extern const char %s[];\nconst char %s[] =\n' % (options.symbol, options.symbol))
        f.writelines(literal(line) for line in text.splitlines(keepends=True) or [b''])
        f.write('    ;\n')
        if options.sha1:
            name = options.symbol + '_sha1'
            f.write('extern const char %s[];\nconst char %s[] = "%s";\n'
                    % (name, name, hashlib.sha1(text).hexdigest()))


main()
