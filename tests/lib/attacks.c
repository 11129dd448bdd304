/* See attacks.h. */
#include "lib/attacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char attacks_text[];

static void refuse(const char *line)
{
    fprintf(stderr, "attacks.txt: cannot read: %.60s\n", line);
    exit(99);
}

/* One character as printf's %b reads it; *at goes behind it. */
static char read_one(const char **at)
{
    static const char letters[] = "nrt\\", meant[] = "\n\r\t\\";
    const char *c = *at;
    int value = 0;

    *at = c + 1;
    if (*c != '\\')
        return *c;
    const char *letter = c[1] != '\0' ? strchr(letters, c[1]) : NULL;
    if (letter == NULL && c[1] != '0')
        refuse(c);
    *at = c + 2;
    if (letter != NULL)
        return meant[letter - letters];
    for (int i = 0; i < 3 && **at >= '0' && **at <= '7'; i++)
        value = value * 8 + *(*at)++ - '0';
    return (char)value;
}

size_t read_attacks(struct attack attacks[ATTACKS_MAX])
{
    size_t count = 0;

    for (const char *at = attacks_text; *at != '\0'; at++) {
        struct attack *a = &attacks[count];
        const char *line = at;
        if (*at == '#') {
            at += strcspn(at, "\n");
            continue;
        }
        if (count == ATTACKS_MAX)
            refuse(line);
        for (a->len = 0; *at != '\n'; a->len++) {
            if (a->len == ATTACK_LEN_MAX || *at == '\0')
                refuse(line);
            a->bytes[a->len] = read_one(&at);
        }
        a->bytes[a->len] = '\0';
        count += a->len > 0;
    }
    return count;
}
