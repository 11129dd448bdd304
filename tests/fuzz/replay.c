/* Runs every file of a corpus, and every prefix of it, through one fuzz target: what was once found
 * stays fixed, in every build and without libFuzzer. Besides the files, which have names that say what
 * they are, there are those that a fuzzer came upon: a line of hex digits each, in corpus/url.hex.
 *
 *      replay_url corpus/url
 */
#include <dirent.h>

#include "fuzz.h"

#define INPUT_MAX 65536

static uint8_t input[INPUT_MAX];

/* Each prefix is copied, so that a read past its end is seen by the sanitizer. */
static void run_prefixes(size_t size)
{
    for (size_t len = 0; len <= size; len++) {
        uint8_t *copy = malloc(len > 0 ? len : 1);
        REQUIRE(copy != NULL);
        memcpy(copy, input, len);
        LLVMFuzzerTestOneInput(copy, len);
        free(copy);
    }
}

static int run_file(const char *dir, const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t size = fread(input, 1, sizeof input, file);
    fclose(file);
    run_prefixes(size);
    return 0;
}

/* Of a line; SIZE_MAX: it is none. */
static size_t read_hex(const char *line)
{
    size_t size = 0;
    unsigned byte;

    for (; sscanf(line, "%2x", &byte) == 1 && size < sizeof input; line += 2)
        input[size++] = (uint8_t)byte;
    return *line == '\n' ? size : SIZE_MAX;
}

/* How many; -1: not all could be read. */
static long run_lines(const char *dir)
{
    char path[4096], *line = NULL;
    size_t room = 0;
    long count = 0;

    snprintf(path, sizeof path, "%s.hex", dir);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    while (count >= 0 && getline(&line, &room, file) > 0) {
        size_t size = read_hex(line);
        if (size != SIZE_MAX)
            run_prefixes(size);
        count = size != SIZE_MAX ? count + 1 : -1;
    }
    free(line);
    fclose(file);
    return count;
}

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    size_t count = 0;
    int failed = 0;

    if (dir == NULL) {
        fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
        return 2;
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        failed |= run_file(argv[1], entry->d_name);
        count++;
    }
    closedir(dir);
    long lines = run_lines(argv[1]);
    printf("%zu inputs, %ld that a fuzzer found\n", count, lines);
    return failed != 0 || count == 0 || lines < 0;
}
