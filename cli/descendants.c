/* See descendants.h. Two ways: down the tree by /proc/<pid>/task/<tid>/children, which is as fast as the
 * tree is small and so catches up with processes that keep forking; but the kernel may lack it, and
 * it may miss one whose sibling ends meanwhile. So if it finds nobody, a pass over all processes
 * has the last word. */
#include "descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

struct process {
    pid_t pid, parent, group;
    unsigned long long began; /* in ticks since boot */
    bool dead;                /* a zombie: it has children no more, and hears nothing */
    bool ours;
};

struct table {
    struct process *items;
    size_t count, room;
};

/* "pid (name) state ppid pgrp ...", where the name may hold anything, brackets too. The 22nd value
 * is when it began. */
static bool read_process(const char *pid_text, struct process *ret)
{
    char path[64], text[512];

    snprintf(path, sizeof path, "/proc/%s/stat", pid_text);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0)
        return false;
    text[len] = '\0';

    const char *rest = strrchr(text, ')');
    int parent, group;
    char state;
    unsigned long long began;
    if (!rest ||
        sscanf(rest + 1,
               " %c %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &state, &parent, &group, &began) != 4)
        return false;
    *ret = (struct process){
        .pid = (pid_t)strtol(pid_text, NULL, 10),
        .parent = parent,
        .group = group,
        .began = began,
        .dead = state == 'Z' || state == 'X',
    };
    return true;
}

static bool add(struct table *table, const struct process *item)
{
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 256;
        struct process *items = realloc(table->items, room * sizeof *items);
        if (!items)
            return false;
        table->items = items;
        table->room = room;
    }
    table->items[table->count++] = *item;
    return true;
}

static void read_all(struct table *table)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    struct process item;

    while (proc && (entry = readdir(proc)))
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(entry->d_name, &item) &&
            !add(table, &item))
            break;
    if (proc)
        closedir(proc);
}

static bool is_ours(const struct table *table, pid_t pid, pid_t root)
{
    if (pid == root)
        return true;
    for (size_t i = 0; i < table->count; i++)
        if (table->items[i].pid == pid)
            return table->items[i].ours;
    return false;
}

static unsigned long long ticks(int64_t ns)
{
    return (unsigned long long)(ns / (1000000000 / sysconf(_SC_CLK_TCK)));
}

/* Spreads "ours" from parents to children until nothing changes; pids have no order. */
static void mark(struct table *table, const struct descendants_search *search)
{
    unsigned long long since = ticks(search->since_ns);

    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < table->count; i++) {
            struct process *item = &table->items[i];
            if (item->ours || item->pid == search->root || item->began < since)
                continue;
            if (is_ours(table, item->parent, search->root))
                item->ours = changed = true;
        }
    }
}

/* The processes that are still to be looked at, the parents of those to come. */
static bool add_pid(struct table *table, pid_t pid)
{
    return add(table, &(struct process){.pid = pid});
}

/* Adds the children of one thread. */
static void add_children_of(struct table *table, pid_t pid, const char *thread)
{
    char path[300];
    int child;

    snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, thread);
    FILE *file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%d", &child) == 1 && add_pid(table, child))
        continue;
    if (file != NULL)
        fclose(file);
}

static void add_children(struct table *table, pid_t pid)
{
    char path[64];
    struct dirent *entry;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    while (threads != NULL && (entry = readdir(threads)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            add_children_of(table, pid, entry->d_name);
    if (threads != NULL)
        closedir(threads);
}

static bool is_wanted(const struct process *process, const struct descendants_search *search)
{
    return !process->dead && process->group != search->spared_group;
}

/* Gives how many were found. */
static size_t walk_down(const struct descendants_search *search)
{
    unsigned long long since = ticks(search->since_ns);
    struct table table = {0};
    size_t found = 0;
    struct process process;
    char name[24];

    add_children(&table, search->root);
    for (size_t i = 0; i < table.count; i++) {
        snprintf(name, sizeof name, "%d", (int)table.items[i].pid);
        if (!read_process(name, &process) || process.began < since)
            continue;
        if (is_wanted(&process, search)) {
            search->found(process.pid, search->arg);
            found++;
        }
        add_children(&table, process.pid);
    }
    free(table.items);
    return found;
}

void descendants_each(const struct descendants_search *search)
{
    struct table table = {0};

    if (walk_down(search) > 0)
        return;
    read_all(&table);
    mark(&table, search);
    for (size_t i = 0; i < table.count; i++)
        if (table.items[i].ours && is_wanted(&table.items[i], search))
            search->found(table.items[i].pid, search->arg);
    free(table.items);
}
