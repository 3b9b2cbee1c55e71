/* What the laboratory's programs have in common. Whoever includes it defines _GNU_SOURCE first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
    exit(1);
}

/* Of this thread. */
static long long cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void burn(long ms) {
    for (long long begin = cpu_ns(); cpu_ns() - begin < ms * 1000000LL;) {
    }
}

static void say(const char *word) {
    puts(word);
    fflush(stdout);
}
