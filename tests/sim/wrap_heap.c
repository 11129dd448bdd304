/* Memory, in place of the C library's: what is freed is filled with a pattern and never given out
 * again in this seed. So a read of it yields nonsense that soon shows, a write is found at the end,
 * and so is what a process has forgotten to free. Under AddressSanitizer its own heap does that
 * better, and this one steps aside but for the test's own memory. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "world.h"

#define ARENA  ((size_t)512 << 20) /* address space; a seed touches a few megabytes of it */
#define FREED  0xDD
#define IN_USE 0x600Du
#define GONE   0xDEADu
#define FENCE  UINT64_C(0xFE9CEFE9CEFE9CEF) /* behind each block */

struct block {
    uint32_t size;
    uint16_t owner; /* the number of the process; 0: the test's */
    uint16_t state;
    uint64_t unused; /* keeps what follows aligned */
};

static struct {
    char *start, *next;
} arena;

#ifdef __SANITIZE_ADDRESS__
#define THEIRS 1
#else
#define THEIRS 0
#endif

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void __real_free(void *at);

static size_t whole_of(size_t size)
{
    return (sizeof(struct block) + size + sizeof(uint64_t) + 15) & ~(size_t)15;
}

static void check_fence(const struct block *b)
{
    uint64_t fence = FENCE;

    if (memcmp((const char *)(b + 1) + b->size, &fence, sizeof fence) != 0)
        sim_fail("p%d or a guest has written past the end of %u bytes", b->owner, b->size);
}

static void *take(size_t size, int owner)
{
    size_t whole = whole_of(size);
    uint64_t fence = FENCE;

    if (arena.start == NULL) {
        arena.start = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        arena.next = arena.start;
        if (arena.start == MAP_FAILED)
            abort();
    }
    if (whole > (size_t)(arena.start + ARENA - arena.next))
        sim_fail("this seed uses more memory than there is");
    struct block *b = (struct block *)arena.next;
    arena.next += whole;
    *b = (struct block){.size = (uint32_t)size, .owner = (uint16_t)owner, .state = IN_USE};
    memcpy((char *)(b + 1) + size, &fence, sizeof fence);
    return b + 1;
}

static bool is_ours(const void *at)
{
    return (const char *)at >= arena.start && (const char *)at < arena.next;
}

void *sim_alloc(size_t size)
{
    return take(size, 0); /* fresh pages are zero, and none is used twice */
}

static int owner_now(void)
{
    return sim.self != NULL && !sim.self->for_test ? sim.self->process->number : 0;
}

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return THEIRS ? __real_malloc(size) : take(size, owner_now());
}

void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return THEIRS ? __real_calloc(count, size) : take(count * size, owner_now());
}

void __wrap_free(void *at);
void __wrap_free(void *at)
{
    if (at == NULL || !is_ours(at)) {
        __real_free(at);
        return;
    }
    struct block *b = (struct block *)at - 1;
    if (b->state != IN_USE)
        sim_fail("memory is freed twice");
    check_fence(b);
    b->state = GONE;
    memset(at, FREED, b->size);
}

void *__wrap_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size)
{
    if (THEIRS || (at != NULL && !is_ours(at)))
        return __real_realloc(at, size);
    void *moved = take(size, owner_now());
    if (at != NULL) {
        size_t old = ((struct block *)at - 1)->size;
        memcpy(moved, at, old < size ? old : size);
        __wrap_free(at);
    }
    return moved;
}

char *__wrap_strndup(const char *text, size_t most);
char *__wrap_strndup(const char *text, size_t most)
{
    size_t len = strnlen(text, most);
    char *copy = __wrap_malloc(len + 1);

    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

int __wrap_vasprintf(char **ret_text, const char *format, va_list args);
int __wrap_vasprintf(char **ret_text, const char *format, va_list args)
{
    char text[1024];
    int n = vsnprintf(text, sizeof text, format, args);

    if (n < 0 || n >= (int)sizeof text)
        return -1;
    *ret_text = __wrap_malloc((size_t)n + 1);
    memcpy(*ret_text, text, (size_t)n + 1);
    return n;
}

int __wrap_asprintf(char **ret_text, const char *format, ...) SIM_PRINTF(2, 3);
int __wrap_asprintf(char **ret_text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = __wrap_vasprintf(ret_text, format, args);
    va_end(args);
    return n;
}

static void check_freed(const struct block *b)
{
    const unsigned char *at = (const unsigned char *)(b + 1);

    for (uint32_t i = 0; i < b->size; i++) {
        if (at[i] != FREED)
            sim_fail("byte %u of %u was written after it was freed, by p%d or a guest", i, b->size,
                     b->owner);
    }
}

void sim_check_heap(void)
{
    const char *at = arena.start;

    while (at < arena.next) {
        const struct block *b = (const struct block *)at;
        check_fence(b);
        if (b->state == GONE)
            check_freed(b);
        else if (b->owner != 0 && !sim_is_dead(b->owner))
            sim_fail("p%d has not freed %u bytes", b->owner, b->size);
        at += whole_of(b->size);
    }
}
