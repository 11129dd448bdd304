/* Did you mean: the word with the fewest slips of the finger. */
#include <string.h>

#include "cli.h"

#include "base/banned.h"

#define WORD_MAX 31

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Letters added, dropped, replaced, or swapped with their neighbour. */
static size_t slips(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    size_t row[3][WORD_MAX + 1];

    if (la > WORD_MAX || lb > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= lb; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *now = row[i % 3], *before = row[(i + 2) % 3], *older = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            now[j] = least(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], older[j - 2] + 1, WORD_MAX);
        }
    }
    return row[la % 3][lb];
}

const char *cli_nearest(const char *text, const char *(*word)(const void *ctx, size_t i),
                        const void *ctx)
{
    size_t best = strlen(text) < 4 ? 2 : 3; /* fewer slips than this */
    const char *found = NULL, *candidate;

    for (size_t i = 0; (candidate = word(ctx, i)) != NULL; i++) {
        size_t n = slips(text, candidate);
        if (n < best && n < strlen(candidate)) {
            best = n;
            found = candidate;
        }
    }
    return found;
}
