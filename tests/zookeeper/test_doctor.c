/* What doctor tells: members and leader, releases with bugs, sessions, rights, quotas. Beside one
 * server and beside three. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zookeeper/live.h"

struct report {
    char all[8000];
    int worst;
};

static void note_finding(int level, const char *clause, const char *text, void *arg)
{
    struct report *r = arg;
    size_t used = strlen(r->all);

    (void)clause;
    snprintf(r->all + used, sizeof r->all - used, "%d %s\n", level, text);
    r->worst = level > r->worst ? level : r->worst;
}

static struct report ask_doctor(const char *url)
{
    struct report r = {0};
    hf_client *client = NULL;
    hf_error err;

    assert_int_equal(hf_open(url, NULL, &client, &err), HF_OK);
    if (hf_diagnose(client, note_finding, &r, &err) != HF_OK)
        fail_msg("%s", err.text);
    hf_close(client);
    return r;
}

static bool is_ensemble(void)
{
    return strchr(servers(), ',') != NULL;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void c1_doctor_tells_members_and_leader(void **state)
{
    struct report r = ask_doctor(url_of(servers(), ""));

    (void)state;
    check_contains("doctor", r.all, ", version 3.");
    if (is_ensemble()) {
        assert_int_equal(count_of(r.all, "is a leader"), 1);
        assert_int_equal(count_of(r.all, "is a follower"), 2);
        check_contains("doctor", r.all, "0 the ensemble has 3 members");
    } else {
        assert_int_equal(count_of(r.all, "is a standalone"), 1);
        check_contains("doctor", r.all, "1 the URL names one server");
    }
    check_contains("doctor", r.all, "0 a write takes");
}

static void c1_doctor_misses_members_that_the_url_does_not_name(void **state)
{
    char first[60];

    (void)state;
    if (!is_ensemble())
        return;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(servers(), ","), servers());
    struct report r = ask_doctor(url_of(first, ""));
    check_contains("doctor", r.all, "1 the URL names 1 of 3 members");
}

static void c3_doctor_tells_sessions(void **state)
{
    struct report r = ask_doctor(url_of(servers(), ""));

    (void)state;
    check_contains("doctor", r.all, "sessions last from 200 ms to 608400000 ms");
}

static void c2_doctor_tells_whom_the_nodes_belong_to(void **state)
{
    char url[300];
    zhandle_t *zh = stranger();

    (void)state;
    check_contains("world", ask_doctor(url_of(servers(), "")).all,
                   "2 acl=world: whoever reaches the servers may delete any node");
    snprintf(url, sizeof url, "zookeeper://ann:secret@%s/mine", servers());
    struct report r = ask_doctor(url);
    check_contains("creator", r.all, "0 nodes belong to their creator");
    check_lacks("creator", r.all, "open to the world");
    assert_int_equal(zoo_create(zh, "/theirs", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
    snprintf(url, sizeof url, "zookeeper://ann:secret@%s/theirs", servers());
    check_contains("made by others", ask_doctor(url).all, "2 /theirs was made by somebody else");
    zookeeper_close(zh);
}

/* Somebody else's path: what its nodes are is not this user's to say. */
static void c2_doctor_tells_who_may_not_write(void **state)
{
    char url[300];

    (void)state;
    snprintf(url, sizeof url, "zookeeper://owner:word@%s/others", servers());
    ask_doctor(url); /* makes the nodes */
    snprintf(url, sizeof url, "zookeeper://eve:word@%s/others", servers());
    struct report r = ask_doctor(url);
    check_contains("doctor", r.all, "3 this user may not write below /others: check user and");
    check_lacks("doctor", r.all, "only this user");
}

/* As zkCli's setquota does. */
static void set_quota(zhandle_t *zh, const char *limits)
{
    static const char *const paths[] = {"/zookeeper/quota/limited",
                                        "/zookeeper/quota/limited/zookeeper_limits",
                                        "/zookeeper/quota/limited/zookeeper_stats"};

    for (size_t i = 0; i < COUNT(paths); i++) {
        const char *data = i == 1 ? limits : "count=9,bytes=10";
        zoo_create(zh, paths[i], data, (int)strlen(data), &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
        assert_int_equal(zoo_set(zh, paths[i], data, (int)strlen(data), -1), ZOK);
    }
}

static void c5_doctor_tells_of_a_quota(void **state)
{
    char url[300];
    zhandle_t *zh = stranger();

    (void)state;
    check_contains("none", ask_doctor(url_of(servers(), "")).all, "0 there is no quota on /locks");
    assert_int_equal(zoo_create(zh, "/limited", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
    set_quota(zh, "count=1000,bytes=-1");
    snprintf(url, sizeof url, "zookeeper://%s/limited/below?acl=world", servers());
    check_contains("far", ask_doctor(url).all, "0 the quota of /limited: ");
    set_quota(zh, "count=2,bytes=-1");
    check_contains("near", ask_doctor(url).all, "2 the quota of /limited: ");
    zookeeper_close(zh);
}

/* Answers whoever connects like a server of another release. */
struct impostor {
    int fd;
    const char *version;
    char address[40];
    pthread_t thread;
};

static void *pretend(void *arg)
{
    struct impostor *who = arg;
    char text[200], word[4];

    snprintf(text, sizeof text, "Zookeeper version: %s-abc, built on 1\nMode: leader\n",
             who->version);
    for (int fd; (fd = accept(who->fd, NULL, NULL)) >= 0;) {
        if (recv(fd, word, 4, MSG_WAITALL) == 4 && memcmp(word, "srvr", 4) == 0)
            send(fd, text, strlen(text), MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static void start_impostor(struct impostor *who, const char *version)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;

    who->version = version;
    who->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(who->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(who->fd, 10), 0);
    assert_int_equal(getsockname(who->fd, (struct sockaddr *)&at, &len), 0);
    snprintf(who->address, sizeof who->address, "127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&who->thread, NULL, pretend, who), 0);
}

static void stop_impostor(struct impostor *who)
{
    shutdown(who->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(who->thread, NULL), 0);
    close(who->fd);
}

static void c1_doctor_knows_releases_with_bugs(void **state)
{
    static const struct {
        const char *version, *ticket; /* "": none */
    } cases[] = {{"3.4.10", "ZOOKEEPER-2355"}, {"3.5.9", "ZOOKEEPER-3911"},
                 {"3.6.2", "ZOOKEEPER-3911"},  {"3.8.4", "ZOOKEEPER-4785"},
                 {"3.9.3", "ZOOKEEPER-4925"},  {"3.9.4", ""}};
    char hosts[400];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct impostor who;
        start_impostor(&who, cases[i].version);
        snprintf(hosts, sizeof hosts, "%s,%s", servers(), who.address);
        struct report r = ask_doctor(url_of(hosts, ""));
        char said[200];
        snprintf(said, sizeof said, "%s runs %s: %s", who.address, cases[i].version,
                 cases[i].ticket);
        if (cases[i].ticket[0] != '\0')
            check_contains(cases[i].version, r.all, said);
        else
            check_lacks(cases[i].version, r.all, said);
        stop_impostor(&who);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_doctor_tells_members_and_leader),
        cmocka_unit_test(c1_doctor_misses_members_that_the_url_does_not_name),
        cmocka_unit_test(c3_doctor_tells_sessions),
        cmocka_unit_test(c2_doctor_tells_whom_the_nodes_belong_to),
        cmocka_unit_test(c2_doctor_tells_who_may_not_write),
        cmocka_unit_test(c5_doctor_tells_of_a_quota),
        cmocka_unit_test(c1_doctor_knows_releases_with_bugs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
