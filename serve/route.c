/* Which path is whose. openapi.json says what each takes and gives. */
#include <string.h>

#include "routes.h"
#include "server.h"

#include "base/banned.h"

static const struct route routes[] = {
    {"GET", "", ROLE_NONE, asset_page, false},
    {"GET", "assets/{file}", ROLE_NONE, asset_file, false},
    {"GET", "healthz", ROLE_NONE, asset_health, false},
    {"GET", "readyz", ROLE_NONE, look_ready, false},
    {"GET", "metrics", ROLE_READ, measure_metrics, false},
    {"GET", "v1/openapi.json", ROLE_NONE, asset_openapi, false},
    {"GET", "v1/stores", ROLE_READ, look_stores, false},
    {"GET", "v1/stores/{store}/doctor", ROLE_READ, look_doctor, false},
    {"GET", "v1/stores/{store}/history", ROLE_READ, history_read, false},
    {"GET", "v1/stores/{store}/locks", ROLE_READ, look_locks, false},
    {"GET", "v1/stores/{store}/locks/{name}", ROLE_READ, look_lock, false},
    {"GET", "v1/stores/{store}/events", ROLE_READ, events_start, false},
    {"POST", "v1/stores/{store}/locks/{name}/acquire", ROLE_LOCK, bid_start, true},
    {"POST", "v1/stores/{store}/locks/{name}/renew", ROLE_LOCK, change_renew, true},
    {"POST", "v1/stores/{store}/locks/{name}/release", ROLE_LOCK, change_release, true},
    {"POST", "v1/stores/{store}/locks/{name}/break", ROLE_BREAK, change_break, true},
    {"POST", "v1/stores/{store}/check", ROLE_READ, change_check, true},
};

/* Part by part; what stands in braces is anything. */
static bool matches(const char *path, const struct target *target)
{
    size_t i = 0;

    for (bool more = true; more; i++) {
        size_t len = strcspn(path, "/");
        more = path[len] == '/';
        if (i == target->part_count)
            return false;
        const struct bytes *part = &target->parts[i];
        if (path[0] != '{' && (part->len != len || memcmp(part->at, path, len) != 0))
            return false;
        path += len + more;
    }
    return i == target->part_count;
}

static bool is_method(const char *wanted, const char *method)
{
    return strcmp(wanted, method) == 0 ||
           (strcmp(wanted, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* {store} is the third part and {name} the fifth, wherever there is one. */
static bool take_store(struct request *request)
{
    const struct target *target = &request->target;

    if (target->part_count < 4 || !bytes_are(&target->parts[1], "stores"))
        return true;
    request->store = stores_find(&request->server->stores, &target->parts[2]);
    if (target->part_count > 4)
        request->name = target->parts[4];
    return request->store != NULL;
}

const struct route *route_find(struct request *request, const char *method, unsigned *ret_status)
{
    *ret_status = 404;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!matches(routes[i].path, &request->target))
            continue;
        if (is_method(routes[i].method, method))
            return take_store(request) ? &routes[i] : NULL;
        *ret_status = 405;
        request->allow = routes[i].has_body ? "POST" : "GET, HEAD"; /* no path has both */
    }
    return NULL;
}
