/* Filling in an hf_error. Every function accepts err == NULL and returns the code, so that a
 * failing function can end in `return hf__fail(err, HF_BUSY, "...")`. */
#ifndef HF_BASE_ERROR_H
#define HF_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast.h"

#define HF__PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* Sets the code and the text; `format` NULL means the code's own text. Never put a secret in it. */
int hf__fail(hf_error *err, int code, const char *format, ...) HF__PRINTF(3, 4);

/* The same, with errno's text appended and errno as store_code. */
int hf__fail_errno(hf_error *err, int code, const char *format, ...) HF__PRINTF(3, 4);

/* What errno `error` means. Gives back `buf` or a static text: the C libraries differ. */
const char *hf__errno_text(int error, char *buf, size_t size);

/* Puts "prefix: " before the text that is there; gives back err->code (HF_SYSTEM if err is NULL is
 * not needed: pass the code). */
int hf__wrap(hf_error *err, int code, const char *format, ...) HF__PRINTF(3, 4);

/* The store's own number, beside the text. */
void hf__set_store_code(hf_error *err, long store_code);

/* Writes a name or other bytes in a form that is safe in a message and on a terminal, one for each
 * name: control, invisible, bidirectional and non-UTF-8 characters, '%', and a blank at either end
 * as %XX; cut with "..." to fit. Gives back `buf`. */
const char *hf__printable(const char *bytes, size_t len, char *buf, size_t size);

/* The same for what a server says: blanks and '%' too are as they are. */
const char *hf__sentence(const char *bytes, size_t len, char *buf, size_t size);

#endif
