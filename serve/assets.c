/* What stands in this program: the dashboard, and what describes the API. A new file of the dashboard is named in
 * serve/meson.build. */
#include <string.h>

#include "routes.h"

#include "base/banned.h"

struct embedded_file { /* as scripts/embed.py writes it */
    const char *name, *text;
};

extern const struct embedded_file dashboard_files[];
extern const char openapi_json[];

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

static void give(struct request *request, const char *type, const char *text)
{
    request->reply =
        (struct reply){.status = 200, .type = type, .fixed = text, .len = strlen(text)};
}

static const char *type_of(const char *name)
{
    const char *ending = strrchr(name, '.');

    for (size_t i = 0; ending != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].ending, ending) == 0)
            return types[i].type;
    }
    return "text/plain; charset=utf-8";
}

static void give_file(struct request *request, const struct bytes *name)
{
    for (const struct embedded_file *file = dashboard_files; file->name != NULL; file++) {
        if (bytes_are(name, file->name)) {
            give(request, type_of(file->name), file->text);
            return;
        }
    }
    reply_refuse(&request->reply, 404, HF_NOT_FOUND, "there is no such file");
}

void asset_page(struct request *request)
{
    give_file(request, &(struct bytes){"index.html", strlen("index.html")});
}

void asset_file(struct request *request)
{
    give_file(request, &request->target.parts[1]);
}

void asset_openapi(struct request *request)
{
    give(request, REPLY_JSON, openapi_json);
}

void asset_health(struct request *request)
{
    give(request, "text/plain; charset=utf-8", "ok\n");
}
