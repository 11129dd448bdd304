/* Finds the descendants of a process. */
#ifndef CLI_DESCENDANTS_H
#define CLI_DESCENDANTS_H

#include <stdint.h>
#include <sys/types.h>

struct descendants_search {
    pid_t root;         /* whose descendants; itself not included */
    pid_t spared_group; /* nobody in this process group: it was dealt with; 0: none */
    int64_t since_ns; /* nobody who began before (CLOCK_BOOTTIME); as exact as the system's ticks */
    void (*found)(pid_t pid, void *arg);
    void *arg;
};

/* Calls `found` for each, in no order. What cannot be read is passed over. Those who are born
 * meanwhile may be missed, but not all: as long as there is one, one at least is found. */
void descendants_each(const struct descendants_search *search);

#endif
