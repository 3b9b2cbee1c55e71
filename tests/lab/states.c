/* Processes in a known state.
 *
 *   states wait           sleeps until a signal comes
 *   states nap            sleeps for an hour, again and again
 *   states poll           waits an hour for nothing
 *   states lock           waits an hour for a lock
 *   states poll-for-ever  waits for nothing without end
 *   states vfork          waits uninterruptibly (D) for a child of vfork, which sleeps
 *   states burn           burns CPU time for ever
 *   states deadlock       waits for a child that waits for it
 *   states zombies        leaves ten ended children unread
 *   states spin           asks a lock again and again that nobody gives back, without a call of the system
 *   states sum BYTES      adds up so much memory again and again
 *   states hold BYTES     sleeps with so much memory in use
 *
 * Each says `ready` first. They end with the signal that ends them; the child of vfork ends with its parent. */
#define _GNU_SOURCE
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_S = 3600 };

/* Sleeps in that call once; returns when its time is over, or a signal came. */
static void sleep_in(const char *call) {
    if (!strcmp(call, "nap"))
        sleep(HOUR_S);
    if (!strcmp(call, "poll"))
        poll(NULL, 0, HOUR_S * 1000);
    if (!strcmp(call, "poll-for-ever"))
        poll(NULL, 0, -1);
    if (!strcmp(call, "lock")) {
        sem_t lock;
        struct timespec end;
        sem_init(&lock, 0, 0);
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += HOUR_S;
        sem_timedwait(&lock, &end);
    }
}

static int is_call(const char *what) {
    return !strcmp(what, "nap") || !strcmp(what, "poll") || !strcmp(what, "poll-for-ever") || !strcmp(what, "lock");
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    static size_t bytes;
    static char *memory;
    if ((!strcmp(what, "hold") || !strcmp(what, "sum")) && count == 3) {
        bytes = strtoul(words[2], NULL, 10);
        memory = malloc(bytes);
        if (!memory)
            return 1;
        memset(memory, 1, bytes);
    } else if (strcmp(what, "wait") && strcmp(what, "vfork") && strcmp(what, "burn") && strcmp(what, "deadlock") &&
               strcmp(what, "zombies") && strcmp(what, "spin") && !is_call(what)) {
        return 2;
    }
    puts("ready");
    fflush(stdout);
    while (is_call(what))
        sleep_in(what);
    if (!strcmp(what, "vfork") && vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    if (!strcmp(what, "deadlock")) {
        /* Each reads what the other one would write. */
        int there[2], back[2];
        char byte;
        if (pipe(there) || pipe(back))
            return 1;
        pid_t child = fork();
        if (read(child ? back[0] : there[0], &byte, 1) == 1)
            (void)!write(child ? there[1] : back[1], &byte, 1);
    }
    for (int one = 0; one < 10 && !strcmp(what, "zombies"); one++)
        if (fork() == 0)
            _exit(3);
    volatile int lock = 1;
    while (!strcmp(what, "spin") && lock) {
    }
    volatile unsigned sum = 0;
    while (!strcmp(what, "sum"))
        for (size_t at = 0; at < bytes; at += 64)
            sum += (unsigned char)memory[at];
    while (!strcmp(what, "burn")) {
    }
    for (;;)
        pause();
}
