/* A disk that the test owns: a shim around SQLite's own VFS counts syncs and fails writes. */
#ifndef TESTS_SQLITE_DISK_H
#define TESTS_SQLITE_DISK_H

#include <sqlite3.h>
#include <stdint.h>

extern struct disk {
    int syncs;
    int fail_writes; /* with this result; 0: none */
    int fail_syncs;
    int64_t wal_room; /* bytes that a WAL may have; 0: any */
} disk;

void disk_install(void); /* for all databases of this process */

#endif
