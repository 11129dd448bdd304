/* What `doctor` finds, in words: for the command and for the server. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include "json.h"

/* The levels of hf_finding_callback. */
enum cli_level { CLI_FINE, CLI_NOTE, CLI_WARNING, CLI_PROBLEM };

/* "fine", "note", "warning" or "problem", also for what is beyond them. */
const char *cli_level_name(int level);

/* {"level":...,"clause":...,"text":...} */
void cli_json_finding(struct cli_json *json, int level, const char *clause, const char *text);

/* A finding for each capability, whether the store has it or not. */
void cli_find_capabilities(uint32_t has, hf_finding_callback *found, void *arg);

/* What somebody wants to know who reads only one line. */
const char *cli_verdict(size_t problems, size_t warnings);

#endif
