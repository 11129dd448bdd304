/* What a `holdfast run` hands down to the holdfasts inside its command: the URL with its password,
 * and the variables that hold passwords. None of it is in the environment, which ends up in logs and
 * error reports, and which commands pass on to others. It is in memory of the running `run` (a
 * sealed memfd), and the environment says where: HOLDFAST_HANDED_DOWN=/proc/PID/fd/N. Only processes
 * of the same user can open that, they need not have inherited a descriptor, and it is gone with the
 * `run`.
 *
 * The memory holds entries "NAME=VALUE", each with a NUL; the first is HOLDFAST_URL. */
#ifndef HF_BASE_HANDED_DOWN_H
#define HF_BASE_HANDED_DOWN_H

#include <stddef.h>

#include "base_url.h"
#include "holdfast.h"

#define HF__HANDED_DOWN     "HOLDFAST_HANDED_DOWN"
#define HF__HANDED_DOWN_MAX (64 * 1024)

/* The name of the memory, by which it is recognised. */
#define HF__HANDED_DOWN_MEMORY "holdfast-handed-down"

/* How a URL is written in the environment: as it is, or with its secret hidden so that nobody takes
 * it for one that opens the store. `buf` has room for HF__URL_SHOWN bytes. */
#define HF__URL_SHOWN (3 * HF__URL_MAX + 1)
void hf__url_for_environment(const char *url, char *buf, size_t size);

/* The value of a variable that was handed down, together with the HOLDFAST_URL that the environment
 * has; NULL: it was not. The caller wipes and frees it. */
char *hf__handed_down(const char *name);

/* The URL that the environment names: HOLDFAST_URL, with the password that was handed down. *ret_url
 * is the caller's, and NULL if the environment names none. Errors: HF_INVALID (it is empty, or its
 * password was removed and not handed down), HF_NO_MEMORY. */
int hf__environment_url(char **ret_url, hf_error *err);

#endif
