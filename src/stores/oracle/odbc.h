/* The inside of what is asked of the driver. Everything here runs on the connection's own thread,
 * and may block for as long as the driver likes: see conn.c. */
#ifndef HF_STORES_ORACLE_ODBC_H
#define HF_STORES_ORACLE_ODBC_H

#include "stores/oracle/oracle.h"

/* ODBC passes numbers as pointers. */
static inline SQLPOINTER hf__odbc_pointer(uintptr_t number)
{
    return (SQLPOINTER)number;
}

/* Notes the result in the job. True: it went well, or there was nothing to do; false: the trouble
 * of that handle is noted, too. */
bool hf__odbc_went_well(struct hf__ora_job *job, SQLRETURN result, SQLSMALLINT type,
                        SQLHANDLE handle);

/* odbc_run.c: a statement that is prepared when it is first needed, and a text for once. */
void hf__odbc_run_prepared(struct hf__ora_conn *c);
void hf__odbc_run_once(struct hf__ora_conn *c);
void hf__odbc_forget_all(struct hf__ora_link *link); /* what is prepared */

#endif
