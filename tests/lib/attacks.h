/* The strings of attacks.txt: names and notes that attack what handles them. */
#ifndef TESTS_LIB_ATTACKS_H
#define TESTS_LIB_ATTACKS_H

#include <stddef.h>

#define ATTACKS_MAX    128
#define ATTACK_LEN_MAX 256 /* so that each is a note as well */

struct attack {
    char bytes[ATTACK_LEN_MAX + 1]; /* with a NUL behind them */
    size_t len;
};

/* All of them; how many. The program ends if the file makes no sense. */
size_t read_attacks(struct attack attacks[ATTACKS_MAX]);

#endif
