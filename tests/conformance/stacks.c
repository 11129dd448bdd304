/* Where the processes of a case that does not end are standing. By gdb if there is one: a hang that
 * shows itself once in a thousand runs must tell its cause the first time. */
#include <stdio.h>
#include <stdlib.h>

#include "report.h"

void report_stacks(int process_group)
{
    char command[300];

    fflush(stdout);
    snprintf(command, sizeof command,
             "command -v gdb >/dev/null || exit 0\n"
             "for pid in $(pgrep -g %d); do\n"
             "    timeout 20 gdb -nx -batch -p $pid -ex 'thread apply all backtrace 16' 2>&1 |\n"
             "        grep -E '^(Thread|#)'\n"
             "done >&2",
             process_group);
    if (system(command) != 0)
        fprintf(stderr, "conformance: no stacks of process group %d\n", process_group);
}
