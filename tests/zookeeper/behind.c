/* See behind.h. */
#include "zookeeper/behind.h"

struct proxy *proxy;
zhandle_t *zh;
char behind[40];

int set_up(void **state)
{
    char first[40];

    (void)state;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(servers(), ","), servers());
    zh = stranger();
    proxy = proxy_start(first);
    snprintf(behind, sizeof behind, "127.0.0.1:%d", proxy_port(proxy));
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    proxy_stop(proxy);
    zookeeper_close(zh);
    return 0;
}

int has_children(void *path)
{
    return child_count(zh, path) > 0;
}

int is_empty(void *path)
{
    return child_count(zh, path) == 0;
}

int has_answered(void *count)
{
    return proxy_answered(proxy) > *(size_t *)count;
}
