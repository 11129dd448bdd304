/* Stores that are not built in: modules, holdfast-<name>.so, so that a machine needs only the
 * libraries of the stores it uses.
 *
 * A module is loaded when its scheme is first asked for and stays loaded, since its threads and its
 * code may be in use for as long as the process lives. So whoever loads it first decides from which
 * directory it comes, for the whole process. */
#ifndef HF_CORE_MODULES_H
#define HF_CORE_MODULES_H

#include "stores/store.h"

/* One scheme of a module; a module that serves several has its lines together. */
struct hf__module {
    const char *scheme, *name;
    const char *needs; /* the libraries it is linked with, as people call them; NULL: none */
    bool wrapper;      /* goes before another store's scheme: "trace+" */
};

/* The i-th line of the table; NULL past its end. */
const struct hf__module *hf__module_line(size_t i);

/* `dirs`: where to look, as hf_client_options.modules; may be NULL. HF_NO_STORE, with a sentence that
 * says what to install; HF_NO_MEMORY. */
int hf__module_load(const struct hf__module *module, const char *dirs,
                    const struct hf__store_type **ret_type, hf_error *err);

#endif
