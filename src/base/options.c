/* The options of a URL against the tables that declare them. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/url.h"

#include "base/banned.h"

const struct hf__option hf__common_options[] = {
    {"op_timeout", HF__OPTION_DURATION, "5s", 100, 600000,
     "how long one request to the store may take"},
    {"retain", HF__OPTION_DURATION, "30d", 1000, HF__DURATION_MAX_MS,
     "how long the record of a lock that nobody uses is kept"},
    {"history", HF__OPTION_NUMBER, "0", 0, HF__HISTORY_MAX,
     "writes down who held what: the last so many bids of each lock are kept"},
    {0},
};

static const struct hf__option *find_in(const struct hf__option *table, const char *name)
{
    for (; table != NULL && table->name != NULL; table++) {
        if (strcmp(table->name, name) == 0)
            return table;
    }
    return NULL;
}

static const struct hf__option *find(const struct hf__option *table, const char *name)
{
    const struct hf__option *option = find_in(table, name);

    return option != NULL ? option : find_in(hf__common_options, name);
}

#define GUESS_MAX 32 /* longer names are not guessed at */

/* How many letters must be added, dropped or changed to make one of the other (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
    size_t row[GUESS_MAX + 1];
    size_t a_len = strlen(a), b_len = strlen(b);

    if (a_len > GUESS_MAX || b_len > GUESS_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_len];
}

/* The option that was meant, as far as slips of the finger tell. */
struct guess {
    const char *wrong, *nearest;
    size_t distance;
};

static void compare(struct guess *guess, const struct hf__option *table)
{
    for (; table != NULL && table->name != NULL; table++) {
        size_t d = distance(guess->wrong, table->name);
        if (d < guess->distance) {
            guess->distance = d;
            guess->nearest = table->name;
        }
    }
}

/* Some stores have more options than fit into a message: it says who lists them. */
static int refuse_unknown(const struct hf__url *url, const char *name,
                          const struct hf__option *table, hf_error *err)
{
    struct guess guess = {.wrong = name, .distance = 2 + strlen(name) / 3}; /* nearer than that */
    char shown[64];

    compare(&guess, table);
    compare(&guess, hf__common_options);
    hf__printable(name, strlen(name), shown, sizeof shown);
    if (guess.nearest == NULL)
        return hf__fail(err, HF_INVALID,
                        "unknown option '%s': 'holdfast stores %s' lists those there are", shown,
                        url->scheme);
    return hf__fail(err, HF_INVALID,
                    "unknown option '%s': did you mean '%s'? 'holdfast stores %s' lists all", shown,
                    guess.nearest, url->scheme);
}

static bool parse_number(const char *text, int64_t *ret_number)
{
    char *end;

    if (strspn(text, "-0123456789") != strlen(text) || text[0] == '\0')
        return false;
    errno = 0;
    intmax_t number = strtoimax(text, &end, 10);
    if (errno != 0 || *end != '\0' || number > INT64_MAX || number < INT64_MIN)
        return false;
    *ret_number = number;
    return true;
}

static bool parse_switch(const char *text, bool *ret_on)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], text) == 0) {
            *ret_on = i % 2 == 1;
            return true;
        }
    }
    return false;
}

static int refuse_value(const struct hf__option *option, const char *value, const char *wanted,
                        hf_error *err)
{
    char shown[64];

    if (hf__option_is_secret(option->name))
        snprintf(shown, sizeof shown, "***");
    else
        hf__printable(value, strlen(value), shown, sizeof shown);
    return hf__fail(err, HF_INVALID, "option '%s' is '%s': it must be %s", option->name, shown,
                    wanted);
}

static void format_bound(const struct hf__option *option, int64_t bound, char *buf, size_t size)
{
    if (option->kind == HF__OPTION_DURATION)
        hf__format_duration(bound, buf, size);
    else
        snprintf(buf, size, "%" PRId64, bound);
}

static int check_range(const struct hf__option *option, const char *value, int64_t number,
                       hf_error *err)
{
    char wanted[80], min[24], max[24];

    if ((option->min == 0 && option->max == 0) || (number >= option->min && number <= option->max))
        return 0;
    format_bound(option, option->min, min, sizeof min);
    format_bound(option, option->max, max, sizeof max);
    snprintf(wanted, sizeof wanted, "from %s to %s", min, max);
    return refuse_value(option, value, wanted, err);
}

static int check_value(const struct hf__option *option, const char *value, hf_error *err)
{
    int64_t number;
    bool on;

    switch (option->kind) {
    case HF__OPTION_NUMBER:
        if (!parse_number(value, &number))
            return refuse_value(option, value, "a whole number", err);
        return check_range(option, value, number, err);
    case HF__OPTION_DURATION:
        if (!hf__parse_duration(value, &number))
            return refuse_value(option, value, "a duration such as 250ms, 30s, 5m, 2h or 1d", err);
        return check_range(option, value, number, err);
    case HF__OPTION_SWITCH:
        return parse_switch(value, &on) ? 0 : refuse_value(option, value, "yes or no", err);
    case HF__OPTION_TEXT:
        break;
    }
    return 0;
}

static const struct hf__setting *find_setting(const struct hf__url *url, const char *name)
{
    for (size_t i = 0; i < url->setting_count; i++) {
        if (strcmp(url->settings[i].name, name) == 0)
            return &url->settings[i];
    }
    return NULL;
}

int hf__url_check(struct hf__url *url, const struct hf__option *table, hf_error *err)
{
    for (size_t i = 0; i < url->setting_count; i++) {
        const struct hf__setting *setting = &url->settings[i];
        const struct hf__option *option = find(table, setting->name);
        if (option == NULL)
            return refuse_unknown(url, setting->name, table, err);
        if (find_setting(url, setting->name) != setting)
            return hf__fail(err, HF_INVALID, "option '%s' is given twice", option->name);
        int code = check_value(option, setting->value, err);
        if (code != 0)
            return code;
    }
    url->options = table;
    return 0;
}

const char *hf__url_text(const struct hf__url *url, const char *name)
{
    const struct hf__option *option = find(url->options, name);
    const struct hf__setting *setting = find_setting(url, name);

    assert(option != NULL);
    return setting != NULL ? setting->value : option->preset;
}

int64_t hf__url_number(const struct hf__url *url, const char *name)
{
    const char *text = hf__url_text(url, name);
    bool duration = find(url->options, name)->kind == HF__OPTION_DURATION;
    int64_t number = 0;

    if (text == NULL ||
        !(duration ? hf__parse_duration(text, &number) : parse_number(text, &number)))
        return 0;
    return number;
}

bool hf__url_switch(const struct hf__url *url, const char *name)
{
    const char *text = hf__url_text(url, name);
    bool on = false;

    return text != NULL && parse_switch(text, &on) && on;
}

int hf__url_choose(const struct hf__url *url, const char *name, const struct hf__choice *choices,
                   int *ret_value, hf_error *err)
{
    const char *word = hf__url_text(url, name);
    char wanted[80] = "";
    size_t used = 0;

    if (word == NULL)
        return 0;
    for (const struct hf__choice *c = choices; c->word != NULL; c++) {
        const char *between = used == 0 ? "" : c[1].word != NULL ? ", " : " or ";
        if (strcmp(c->word, word) == 0) {
            *ret_value = c->value;
            return 0;
        }
        used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s%s", between, c->word);
    }
    return refuse_value(find(url->options, name), word, wanted, err);
}
