#!/usr/bin/env python3
"""Turns a text file (SQL, Lua) into a C source with one constant string.

usage: embed.py INPUT OUTPUT SYMBOL

The declaration is the user's: `extern const char SYMBOL[];`. Each line becomes one literal, so that the
generated file reads like its source.
"""
import sys


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
    source, target, symbol = sys.argv[1:]
    with open(source, 'rb') as f:
        lines = f.readlines()
    with open(target, 'w') as f:
        f.write('extern const char %s[];\nconst char %s[] =\n' % (symbol, symbol))
        f.writelines(literal(line) for line in lines or [b''])
        f.write('    ;\n')


main()
