/* What stands in a ZooKeeper ensemble: names of nodes and their data, of whatever client. Nothing is read
 * that is not there, a name that is read back is the one that was written, and what is shown fits. */
#include "shape.h"
#include "stores/zookeeper/zk.h"

static const char *const parts[] = {
    "_c_00112233-4455-6677-8899-aabbccddeeff",
    "00112233445566778899aabbccddeeff",
    "-lock-",
    "-read-lock-",
    "__lock__",
    "__rlock__",
    "__READ__",
    "__WRIT__",
    "lock-",
    "_r",
    "0000000001",
    "-000000001",
    "-2147483648",
    "2147483647",
    "9999999999",
    "simple",
    "%break",
    "-now",
    "%00",
    "..",
};
static const char *const keys[] = {
    "holdfast1 ", " gen=",  " waits=",   " ttl=",  " delay=", " ticket=", " pid=",
    " host=",     " user=", " program=", " note=", " left=",  "=",        "holdfast2 "};

/* A text of known parts, numbers and any bytes. */
static char *build(struct shape *s, const char *const *known, unsigned count)
{
    size_t len = 0, room = 2 * HF__ZK_DATA_MAX;
    char *text = calloc(1, room);

    REQUIRE(text != NULL);
    for (unsigned left = shape_choose(s, 24); left > 0 && len + 300 < room; left--) {
        unsigned choice = shape_choose(s, count + 3);
        if (choice < count)
            len += (size_t)snprintf(text + len, room - len, "%s", known[choice]);
        else if (choice == count)
            len += (size_t)snprintf(text + len, room - len, "%" PRId64, shape_number(s));
        else
            len += shape_bytes(s, text + len, room - len);
        len = strlen(text);
    }
    return text;
}

static void check_order(const char *name)
{
    struct hf__zk_child c = hf__zk_child(name), simple = hf__zk_child(HF__ZK_SIMPLE);
    struct hf__zk_child first =
        hf__zk_child("_c_00112233-4455-6677-8899-aabbccddeeff-lock-0000000000");
    struct hf__ticket ticket;

    REQUIRE(first.sequential && first.mode == HF_EXCLUSIVE);
    REQUIRE(!hf__zk_blocks(&c, &c) && !hf__zk_blocks(&simple, &simple));
    REQUIRE(c.simple || !(hf__zk_blocks(&c, &first) && hf__zk_blocks(&first, &c)));
    for (int layout = HF__ZK_LAYOUT_CURATOR; layout <= HF__ZK_LAYOUT_KAZOO; layout++)
        (void)hf__zk_blind((enum hf__zk_layout)layout, name);
    if (hf__zk_ticket_of(name, &ticket)) {
        char again[64];
        hf__zk_node_name(HF__ZK_LAYOUT_CURATOR, &ticket, HF_SHARED, again);
        struct hf__zk_child ours = hf__zk_child(again);
        REQUIRE(ours.name == again);
    }
}

static void check_name(const char *name)
{
    char bytes[HF_NAME_MAX], path[HF__ZK_PATH_MAX];
    char prefix[] = "/p";
    struct hf__zk zk = {.prefix = prefix};
    size_t len;

    check_order(name);
    if (hf__zk_unescape(name, bytes, &len)) {
        REQUIRE(len >= 1 && len <= HF_NAME_MAX);
        REQUIRE(hf__zk_directory(&zk, bytes, len, path, sizeof path));
        REQUIRE(strcmp(path + strlen("/p/"), name) == 0);
    }
}

static void check_data(const char *data, size_t len)
{
    struct hf__zk_details d, again;
    int32_t left;

    if (hf__zk_parse_left(data, (int)len, &left)) {
        char text[HF__ZK_LEFT_MAX];
        hf__zk_format_left(left, text);
    }
    hf__zk_parse(data, (int)len, &d);
    REQUIRE(strlen(d.host) < sizeof d.host && strlen(d.note) <= HF_NOTE_MAX);
    REQUIRE(d.ttl_ms == HF__NEVER || (d.ttl_ms >= -1 && d.ttl_ms <= HF_TTL_MAX_MS));
    REQUIRE(d.lock_delay_ms >= 0 && d.lock_delay_ms <= HF_DELAY_MAX_MS);
    if (memchr(data, '\0', len) != NULL || d.ttl_ms < 0)
        return;
    char *line = hf__zk_redescribe(data, 7, true);
    REQUIRE(line != NULL);
    hf__zk_parse(line, (int)strlen(line), &again);
    REQUIRE(strlen(line) >= HF__ZK_DATA_MAX || again.ttl_ms >= 0);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shape s = {data, size};
    unsigned as = shape_choose(&s, 4);
    char *text = as == 0   ? build(&s, parts, sizeof parts / sizeof parts[0])
                 : as == 1 ? build(&s, keys, sizeof keys / sizeof keys[0])
                           : fuzz_text(s.data, s.size);

    if (as % 2 == 0)
        check_name(text);
    else
        check_data(text, as == 1 ? strlen(text) : s.size);
    free(text);
    return 0;
}
