/* See fiber.h.
 *
 * A fiber begins on a stack of its own by makecontext(); from then on it is entered and left by
 * _longjmp(), which makes no system call. Beside its registers a thread owns errno and what the
 * program declares _Thread_local; both are changed with it. */
#include "fiber.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK (192 * 1024)

static struct {
    struct fiber fibers[FIBERS_MAX];
    int number;
    jmp_buf scheduler;
    ucontext_t home, start;
#ifdef __SANITIZE_ADDRESS__
    void *fake_stack;
    const void *home_stack;
    size_t home_size;
#endif
} all;

/* The program's own thread-local data: where it is in the one real thread, and its first image. */
static struct {
    bool known;
    unsigned char *at;
    const unsigned char *image;
    size_t size, image_size;
} local;

static int find_local(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size, (void)ctx;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_TLS)
            continue;
        local.at = info->dlpi_tls_data;
        local.image = (const unsigned char *)(info->dlpi_addr + h->p_vaddr);
        local.size = local.at != NULL ? h->p_memsz : 0;
        local.image_size = h->p_filesz;
    }
    return 1; /* the first object is the program; the others' data is the C library's */
}

static void *map_stack(void)
{
    char *at = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED || mprotect(at, 4096, PROT_NONE) < 0)
        sim_fail("there is no room for a stack");
    return at + 4096;
}

static struct fiber *free_slot(void)
{
    for (int i = 0; i < FIBERS_MAX; i++) {
        if (!all.fibers[i].used)
            return &all.fibers[i];
    }
    sim_fail("too many threads");
}

struct fiber *sim_spawn(struct process *process, const char *name, void *(*run)(void *), void *arg)
{
    struct fiber *f = free_slot();
    char *stack = f->stack != NULL ? f->stack : map_stack();

    if (!local.known)
        dl_iterate_phdr(find_local, NULL);
    local.known = true;
    *f = (struct fiber){.number = ++all.number,
                        .process = process != NULL ? process : sim.self->process,
                        .used = true,
                        .priority = (int64_t)random_below(&sim.order, 1000),
                        .run = run,
                        .arg = arg,
                        .stack = stack,
                        .thread_local_data = f->thread_local_data};
    if (local.size > 0) {
        if (f->thread_local_data == NULL)
            f->thread_local_data = sim_alloc(local.size);
        memset(f->thread_local_data, 0, local.size);
        memcpy(f->thread_local_data, local.image, local.image_size);
    }
    snprintf(f->name, sizeof f->name, "p%d.%.10s%d", f->process->number, name, f->number);
    return f;
}

static void begin(void)
{
    struct fiber *f = sim.self;

#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, &all.home_stack, &all.home_size);
#endif
    f->run(f->arg);
    f->done = true;
    sim_wake_all(SIM_JOIN, f);
    fiber_leave();
    abort();
}

static void start(struct fiber *f)
{
    f->started = true;
    getcontext(&all.start);
    all.start.uc_stack.ss_sp = f->stack;
    all.start.uc_stack.ss_size = STACK;
    all.start.uc_link = NULL;
    makecontext(&all.start, begin, 0);
    swapcontext(&all.home, &all.start);
}

void fiber_enter(struct fiber *f)
{
    if (local.size > 0)
        memcpy(local.at, f->thread_local_data, local.size);
    errno = f->saved_errno;
    sim.self = f;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&all.fake_stack, f->stack, STACK);
#endif
    if (_setjmp(all.scheduler) == 0) {
        if (f->started)
            _longjmp(f->here, 1);
        start(f);
    }
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(all.fake_stack, NULL, NULL);
#endif
    f = sim.self;
    sim.self = NULL;
    f->saved_errno = errno;
    if (local.size > 0)
        memcpy(f->thread_local_data, local.at, local.size);
    if (f->done && !f->of_library)
        fiber_free(f);
}

void fiber_leave(void)
{
    struct fiber *f = sim.self;

#ifdef __SANITIZE_ADDRESS__
    void *fake_stack = NULL;
    __sanitizer_start_switch_fiber(f->done ? NULL : &fake_stack, all.home_stack, all.home_size);
#endif
    if (_setjmp(f->here) == 0)
        _longjmp(all.scheduler, 1);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_stack, &all.home_stack, &all.home_size);
#endif
}

static bool runs(const struct fiber *f)
{
    return f->used && !f->done && !f->process->frozen;
}

size_t fiber_list_ready(struct fiber *ready[FIBERS_MAX])
{
    size_t count = 0;

    for (int i = 0; i < FIBERS_MAX; i++) {
        struct fiber *f = &all.fibers[i];
        if (runs(f) && f->waits == SIM_NOT_WAITING && f->not_before_ns <= sim.now_ns)
            ready[count++] = f;
    }
    return count;
}

int64_t fiber_next_start(void)
{
    int64_t soon_ns = SIM_NEVER;

    for (int i = 0; i < FIBERS_MAX; i++) {
        const struct fiber *f = &all.fibers[i];
        if (runs(f) && f->waits == SIM_NOT_WAITING && f->not_before_ns < soon_ns)
            soon_ns = f->not_before_ns;
    }
    return soon_ns;
}

void sim_each_waiting(enum sim_wait waits, void (*visit)(struct fiber *, void *), void *ctx)
{
    for (int i = 0; i < FIBERS_MAX; i++) {
        if (all.fibers[i].used && all.fibers[i].waits == waits)
            visit(&all.fibers[i], ctx);
    }
}

struct fiber *fiber_find(int number)
{
    for (int i = 0; i < FIBERS_MAX; i++) {
        if (all.fibers[i].used && all.fibers[i].number == number)
            return &all.fibers[i];
    }
    return NULL;
}

void fiber_free(struct fiber *f)
{
    f->used = false;
}

bool sim_is_finished(const struct fiber *f)
{
    return f->done || !f->used;
}

void fiber_drop_all(const struct process *process)
{
    for (int i = 0; i < FIBERS_MAX; i++) {
        if (all.fibers[i].process == process)
            all.fibers[i].used = false;
    }
}

int sim_library_threads(const struct process *process)
{
    int count = 0;

    for (int i = 0; i < FIBERS_MAX; i++)
        count += all.fibers[i].used && all.fibers[i].of_library && all.fibers[i].process == process;
    return count;
}

const char *fiber_describe_waiting(void)
{
    static const char *const kinds[] = {"runs",        "mutex", "condition", "join",
                                        "descriptors", "sleep", "reply"};
    static char text[2000];
    size_t at = 0;

    text[0] = '\0';
    for (int i = 0; i < FIBERS_MAX && at < sizeof text - 60; i++) {
        const struct fiber *f = &all.fibers[i];
        if (f->used && !f->done)
            at += (size_t)snprintf(text + at, sizeof text - at, "    %s: %s%s\n", f->name,
                                   kinds[f->waits], f->process->frozen ? ", frozen" : "");
    }
    return text;
}
