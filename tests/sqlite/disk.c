/* See disk.h. */
#include "sqlite/disk.h"

#include "lib/check.h"

struct disk disk;

static sqlite3_vfs *real;

struct shim {
    sqlite3_file base;
    int flags;
    sqlite3_file *real; /* behind this struct */
};

static struct shim *shim_of(sqlite3_file *file)
{
    return (struct shim *)file;
}

static int shim_close(sqlite3_file *file)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xClose(s->real);
}

static int shim_read(sqlite3_file *file, void *buf, int size, sqlite3_int64 at)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xRead(s->real, buf, size, at);
}

static int shim_write(sqlite3_file *file, const void *buf, int size, sqlite3_int64 at)
{
    struct shim *s = shim_of(file);

    if (disk.fail_writes != 0 && (s->flags & SQLITE_OPEN_WAL))
        return disk.fail_writes;
    if (disk.wal_room != 0 && (s->flags & SQLITE_OPEN_WAL) && at + size > disk.wal_room)
        return SQLITE_FULL;
    return s->real->pMethods->xWrite(s->real, buf, size, at);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xTruncate(s->real, size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
    struct shim *s = shim_of(file);

    disk.syncs++;
    if (disk.fail_syncs != 0)
        return SQLITE_IOERR_FSYNC;
    return s->real->pMethods->xSync(s->real, flags);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xFileSize(s->real, size);
}

static int shim_lock(sqlite3_file *file, int level)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xLock(s->real, level);
}

static int shim_unlock(sqlite3_file *file, int level)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xUnlock(s->real, level);
}

static int shim_reserved(sqlite3_file *file, int *ret)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xCheckReservedLock(s->real, ret);
}

static int shim_control(sqlite3_file *file, int op, void *arg)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xFileControl(s->real, op, arg);
}

static int shim_sector(sqlite3_file *file)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xSectorSize(s->real);
}

static int shim_device(sqlite3_file *file)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xDeviceCharacteristics(s->real);
}

static int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xShmMap(s->real, page, size, extend, ret);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xShmLock(s->real, offset, n, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
    struct shim *s = shim_of(file);

    s->real->pMethods->xShmBarrier(s->real);
}

static int shim_shm_unmap(sqlite3_file *file, int remove_it)
{
    struct shim *s = shim_of(file);

    return s->real->pMethods->xShmUnmap(s->real, remove_it);
}

static const sqlite3_io_methods shim_methods = {
    .iVersion = 2,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_reserved,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector,
    .xDeviceCharacteristics = shim_device,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    struct shim *s = shim_of(file);
    int result;

    (void)vfs;
    *s = (struct shim){.flags = flags, .real = (sqlite3_file *)(s + 1)};
    result = real->xOpen(real, name, s->real, flags, ret_flags);
    s->base.pMethods = result == SQLITE_OK ? &shim_methods : NULL;
    return result;
}

void disk_install(void)
{
    static sqlite3_vfs shim;

    real = sqlite3_vfs_find(NULL);
    shim = *real;
    shim.zName = "shim";
    shim.szOsFile += (int)sizeof(struct shim);
    shim.xOpen = shim_open;
    assert_int_equal(sqlite3_vfs_register(&shim, 1), SQLITE_OK);
}
