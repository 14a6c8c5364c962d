/* Interposed between a program and the C library (LD_PRELOAD): counts the operations on files below
   some folders, and makes one of them fail or kill the process. Once armed, it stays so. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READ = 1, ALLOCATE = 2, CHANGE = 4 };  /* kinds of operations */
enum { COUNT, FAIL, FULL, KILL };             /* what happens at the chosen one */

static char folders[4][PATH_MAX];
static int mask, action, armed;
static long chosen;
static long *count; /* shared with the process that waits for this one */

void arm(const char *const *paths, int kinds, int what, long number, long *counter) {
  for (int i = 0; i < 4 && paths[i]; i++) strncpy(folders[i], paths[i], PATH_MAX - 1);
  mask = kinds, action = what, chosen = number, count = counter, armed = 1;
}

static int inside(const char *path) {
  for (int i = 0; i < 4; i++) {
    size_t length = strlen(folders[i]);
    if (length && !strncmp(path, folders[i], length) && (path[length] == '/' || !path[length])) return 1;
  }
  return 0;
}

static int watched(int folder, const char *path) {
  char full[2 * PATH_MAX], link[64];
  if (path && path[0] == '/') return inside(path);
  if (folder == AT_FDCWD) {
    if (!getcwd(full, PATH_MAX)) return 0;
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, full, PATH_MAX - 1);
    if (length < 0) return 0;
    full[length] = 0;
  }
  if (path) strcat(full, "/"), strncat(full, path, PATH_MAX - 1);
  return inside(full);
}

/* Whether this operation fails; kills the process instead if that was asked for. */
static int fails(int kind, int folder, const char *path) {
  if (!armed || !(kind & mask) || !watched(folder, path)) return 0;
  long number = __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
  if (action == COUNT || number < chosen || (number > chosen && action != FULL)) return 0;
  if (action == KILL) kill(getpid(), SIGKILL);
  errno = action == FULL ? ENOSPC : EIO;
  return 1;
}

#define REAL(type, name) static type (*real)(); if (!real) real = (type (*)())dlsym(RTLD_NEXT, #name)
#define KIND_OF(flags) ((flags) & (O_CREAT | O_TRUNC) ? ALLOCATE : (flags) & (O_WRONLY | O_RDWR) ? 0 : READ)

#define OPEN(name)                                                        \
  int name(const char *path, int flags, ...) {                            \
    REAL(int, name);                                                      \
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
    return fails(KIND_OF(flags), AT_FDCWD, path) ? -1 : real(path, flags, mode); \
  }
OPEN(open) OPEN(open64)

#define OPENAT(name)                                                      \
  int name(int at, const char *path, int flags, ...) {                    \
    REAL(int, name);                                                      \
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
    return fails(KIND_OF(flags), at, path) ? -1 : real(at, path, flags, mode); \
  }
OPENAT(openat) OPENAT(openat64)

/* A process that is killed while it writes has written a part. */
static int write_fails(int file, const void *data, size_t length) {
  if (armed && action == KILL && *count + 1 == chosen && (mask & ALLOCATE) && watched(file, 0)) {
    static ssize_t (*real)();
    if (!real) real = (ssize_t (*)())dlsym(RTLD_NEXT, "write");
    real(file, data, length / 2);
  }
  return fails(ALLOCATE, file, 0);
}

ssize_t write(int file, const void *data, size_t length) {
  REAL(ssize_t, write);
  return write_fails(file, data, length) ? -1 : real(file, data, length);
}
ssize_t pwrite64(int file, const void *data, size_t length, off64_t at) {
  REAL(ssize_t, pwrite64);
  return fails(ALLOCATE, file, 0) ? -1 : real(file, data, length, at);
}
ssize_t writev(int file, const struct iovec *parts, int number) {
  REAL(ssize_t, writev);
  return fails(ALLOCATE, file, 0) ? -1 : real(file, parts, number);
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t length) {
  REAL(ssize_t, sendfile64);
  return fails(ALLOCATE, out, 0) ? -1 : real(out, in, at, length);
}
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t length, unsigned flags) {
  REAL(ssize_t, copy_file_range);
  return fails(ALLOCATE, out, 0) ? -1 : real(in, from, out, to, length, flags);
}
int posix_fallocate64(int file, off64_t at, off64_t length) {
  REAL(int, posix_fallocate64);
  return fails(ALLOCATE, file, 0) ? errno : real(file, at, length);
}
ssize_t read(int file, void *data, size_t length) {
  REAL(ssize_t, read);
  return fails(READ, file, 0) ? -1 : real(file, data, length);
}
ssize_t pread64(int file, void *data, size_t length, off64_t at) {
  REAL(ssize_t, pread64);
  return fails(READ, file, 0) ? -1 : real(file, data, length, at);
}
DIR *opendir(const char *path) {
  REAL(DIR *, opendir);
  return fails(READ, AT_FDCWD, path) ? NULL : real(path);
}
int mkdir(const char *path, mode_t mode) {
  REAL(int, mkdir);
  return fails(ALLOCATE, AT_FDCWD, path) ? -1 : real(path, mode);
}
int symlink(const char *target, const char *path) {
  REAL(int, symlink);
  return fails(ALLOCATE, AT_FDCWD, path) ? -1 : real(target, path);
}
int link(const char *from, const char *path) {
  REAL(int, link);
  return fails(ALLOCATE, AT_FDCWD, path) ? -1 : real(from, path);
}
int linkat(int at, const char *from, int to, const char *path, int flags) {
  REAL(int, linkat);
  return fails(ALLOCATE, to, path) ? -1 : real(at, from, to, path, flags);
}
int rename(const char *from, const char *path) {
  REAL(int, rename);
  return fails(CHANGE, AT_FDCWD, path) ? -1 : real(from, path);
}
int unlink(const char *path) {
  REAL(int, unlink);
  return fails(CHANGE, AT_FDCWD, path) ? -1 : real(path);
}
int unlinkat(int at, const char *path, int flags) {
  REAL(int, unlinkat);
  return fails(CHANGE, at, path) ? -1 : real(at, path, flags);
}
int rmdir(const char *path) {
  REAL(int, rmdir);
  return fails(CHANGE, AT_FDCWD, path) ? -1 : real(path);
}
int chmod(const char *path, mode_t mode) {
  REAL(int, chmod);
  return fails(CHANGE, AT_FDCWD, path) ? -1 : real(path, mode);
}
int utimensat(int at, const char *path, const struct timespec times[2], int flags) {
  REAL(int, utimensat);
  return fails(CHANGE, at, path) ? -1 : real(at, path, times, flags);
}
/* Nothing is really synced: a kill loses no data that the system has, and it would take long. */
int fsync(int file) {
  REAL(int, fsync);
  return fails(CHANGE, file, 0) ? -1 : armed ? 0 : real(file);
}
int fdatasync(int file) {
  REAL(int, fdatasync);
  return fails(CHANGE, file, 0) ? -1 : armed ? 0 : real(file);
}
int ftruncate64(int file, off64_t length) {
  REAL(int, ftruncate64);
  return fails(CHANGE, file, 0) ? -1 : real(file, length);
}
