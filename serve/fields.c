/* See fields.h. */
#include "fields.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/error.h"

#include "base/banned.h"

static int set_text(const struct field *field, const json_t *value, hf_error *err)
{
    char **text = field->value;

    if (!json_is_string(value))
        return hf__fail(err, HF_INVALID, "'%s' is a text", field->name);
    *text = strdup(json_string_value(value));
    return *text != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

static int set_number(const struct field *field, const json_t *value, hf_error *err)
{
    int64_t number = json_integer_value(value);

    if (field->kind == FIELD_SPAN && json_is_null(value))
        number = -1;
    else if (!json_is_integer(value) || number < field->min || number > field->max)
        return hf__fail(err, HF_INVALID, "'%s' is a number from %" PRId64 " to %" PRId64 "%s",
                        field->name, field->min, field->max,
                        field->kind == FIELD_SPAN ? ", in milliseconds, or null" : "");
    *(int64_t *)field->value = number;
    return 0;
}

static int set_choice(const struct field *field, const json_t *value, hf_error *err)
{
    const char *text = json_is_string(value) ? json_string_value(value) : "", *at = field->choices;

    for (int i = 0; at != NULL; i++) {
        size_t len = strcspn(at, "|");
        if (strlen(text) == len && memcmp(at, text, len) == 0) {
            *(int *)field->value = i;
            return 0;
        }
        at = at[len] == '|' ? at + len + 1 : NULL;
    }
    return hf__fail(err, HF_INVALID, "'%s' is one of %s", field->name, field->choices);
}

static int set(const struct field *field, const json_t *value, hf_error *err)
{
    switch (field->kind) {
    case FIELD_TEXT:
        return set_text(field, value, err);
    case FIELD_CHOICE:
        return set_choice(field, value, err);
    case FIELD_FLAG:
        if (!json_is_boolean(value))
            return hf__fail(err, HF_INVALID, "'%s' is true or false", field->name);
        *(bool *)field->value = json_is_true(value);
        return 0;
    default:
        return set_number(field, value, err);
    }
}

static const struct field *find(const struct field *fields, const char *name)
{
    while (fields->name != NULL && strcmp(fields->name, name) != 0)
        fields++;
    return fields->name != NULL ? fields : NULL;
}

static int set_all(json_t *object, const struct field *fields, hf_error *err)
{
    char shown[64];
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        const struct field *field = find(fields, name);
        if (field == NULL)
            return hf__fail(err, HF_INVALID, "there is no field '%s'",
                            hf__printable(name, strlen(name), shown, sizeof shown));
        int r = set(field, value, err);
        if (r < 0)
            return r;
    }
    for (; fields->name != NULL; fields++) {
        if (fields->required && json_object_get(object, fields->name) == NULL)
            return hf__fail(err, HF_INVALID, "the field '%s' is missing", fields->name);
    }
    return 0;
}

int fields_read(const char *body, size_t len, const struct field *fields, hf_error *err)
{
    json_error_t why;
    json_t *object = len > 0 ? json_loadb(body, len, JSON_REJECT_DUPLICATES, &why) : json_object();

    if (!json_is_object(object)) {
        json_decref(object);
        return hf__fail(err, HF_INVALID, "the body is not a JSON object");
    }
    int r = set_all(object, fields, err);
    json_decref(object);
    return r;
}
