/* Calls we do not use: each has a form that cannot overrun, or that says what went wrong. Included
 * last, after the system's headers, by every .c file of the library and the command. */
#ifndef HF_BASE_BANNED_H
#define HF_BASE_BANNED_H

#undef alloca /* glibc makes it a macro, and a macro cannot be poisoned */
#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atoll gets alloca rand srand \
    system
#pragma GCC poison strncpy strncat tmpnam mktemp

#endif
