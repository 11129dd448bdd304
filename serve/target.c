/* See target.h. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

#include "base/percent.h"

#include "base/banned.h"

/* Decodes in place; what was there is longer. False: there is a '%' that begins no escape. */
static bool decode(char *text, size_t len, struct bytes *ret_bytes)
{
    char *to = text;

    for (size_t i = 0; i < len; i++, to++) {
        int byte = (unsigned char)text[i];
        if (byte == '%') {
            byte = hf__percent_get(text + i, len - i);
            i += 2;
        }
        if (byte < 0)
            return false;
        *to = (char)byte;
    }
    *to = '\0';
    *ret_bytes = (struct bytes){text, (size_t)(to - text)};
    return true;
}

static bool parse_path(struct target *target, char *path)
{
    for (bool more = true; more;) {
        size_t len = strcspn(path, "/");
        more = path[len] == '/';
        if (target->part_count == TARGET_PARTS ||
            !decode(path, len, &target->parts[target->part_count++]))
            return false;
        path += len + 1;
    }
    return true;
}

static bool parse_arguments(struct target *target, char *text)
{
    for (bool more = *text != '\0'; more;) {
        struct argument *argument = &target->arguments[target->argument_count];
        size_t len = strcspn(text, "&"), name_len = strcspn(text, "=&");
        more = text[len] == '&';
        if (target->argument_count++ == TARGET_ARGUMENTS)
            return false;
        bool has_value = text[name_len] == '=';
        if (!decode(text + name_len + has_value, len - name_len - has_value, &argument->value) ||
            !decode(text, name_len, &argument->name))
            return false;
        text += len + 1;
    }
    return true;
}

bool target_parse(const char *text, struct target *ret_target)
{
    struct target target = {.text = text[0] == '/' ? strdup(text + 1) : NULL};

    if (target.text == NULL)
        return false;
    char *query = strchr(target.text, '?');
    if (query != NULL)
        *query++ = '\0';
    if (!parse_path(&target, target.text) || (query != NULL && !parse_arguments(&target, query))) {
        free(target.text);
        return false;
    }
    *ret_target = target;
    return true;
}

void target_clear(struct target *target)
{
    free(target->text);
    target->text = NULL;
}

const struct bytes *target_argument(const struct target *target, const char *name)
{
    for (size_t i = 0; i < target->argument_count; i++) {
        if (bytes_are(&target->arguments[i].name, name))
            return &target->arguments[i].value;
    }
    return NULL;
}

bool bytes_are(const struct bytes *bytes, const char *text)
{
    return strlen(text) == bytes->len && memcmp(bytes->at, text, bytes->len) == 0;
}

bool bytes_number(const struct bytes *bytes, int64_t max, int64_t *ret_number)
{
    int64_t number = 0;

    for (size_t i = 0; i < bytes->len; i++) {
        if (bytes->at[i] < '0' || bytes->at[i] > '9' || number > max / 10)
            return false;
        number = number * 10 + (bytes->at[i] - '0');
    }
    *ret_number = number;
    return bytes->len > 0 && number <= max;
}
