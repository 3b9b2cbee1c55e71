/* Programs that a thread other than the first one starts, as Go's syscall.Exec does: the process keeps its id, and the kernel gives the
 * thread the place of the first one, its start time included.
 *
 *   thread_exec once N             N processes, one after another, of three threads; the second burns CPU time and becomes another program,
 *                                  which burns as well and ends. The others live until then.
 *   thread_exec watched N leave|stay ADDRESS PORT
 *                                  N processes at once. All have burned CPU time when it says `ready`. At a line on standard input each
 *                                  second thread sends a datagram of 1,000 bytes and becomes another program, which burns, sends one more and
 *                                  ends with exit code 7 (leave) or waits (stay); then it says `done`. At the next line all end.
 *
 * Static, and without libraries but libc, so that it runs in a micro-VM, too. */
#define _GNU_SOURCE
#include "program.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Milliseconds of CPU time: of a first or third thread, of a second one before anybody watches, and of the program that it becomes. */
enum { BESIDE_MS = 10, BEFORE_MS = 100, AFTER_MS = 40, ONCE_MS = 5 };
enum { DATAGRAM_BYTES = 1000 };

/* What all go by. The last three are pipes of `watched`: a byte in `reports` says that a thread has burned; `go` and `end` are closed. */
static struct {
    char *self, *mode, *address, *port;
    int reports[2], go[2], end[2];
} the;

static void start(void *(*thread)(void *)) {
    pthread_t own;
    if ((errno = pthread_create(&own, NULL, thread, NULL)))
        fail("pthread_create");
}

static void await_bytes(int from, long count) {
    for (char byte; count > 0; count--)
        if (read(from, &byte, 1) != 1)
            fail("read");
}

/* Returns when nobody holds the other end any more. */
static void await_end(int from) {
    char byte;
    if (read(from, &byte, 1) != 0)
        fail("read");
}

static void await_line(void) {
    for (char byte = 0; byte != '\n' && read(STDIN_FILENO, &byte, 1) == 1;) {
    }
}

static void report(int to) {
    if (write(to, "", 1) != 1)
        fail("write");
}

static void send_datagram(const char *host, const char *port) {
    static char datagram[DATAGRAM_BYTES];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    int own = socket(AF_INET, SOCK_DGRAM, 0);
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1 || connect(own, (struct sockaddr *)&to, sizeof to))
        fail(host);
    if (send(own, datagram, sizeof datagram, 0) != sizeof datagram)
        fail("send");
    close(own);
}

static void *staying(void *reporting) {
    burn(BESIDE_MS);
    if (reporting)
        report(the.reports[1]);
    for (;;)
        pause();
    return NULL;
}

static void *third(void *none) {
    (void)none;
    return staying(the.mode);
}

static void *second_once(void *none) {
    burn(ONCE_MS);
    execl(the.self, the.self, "burn", NULL);
    fail("exec");
    return none;
}

static void *second_watched(void *none) {
    char reports[12], end[12];
    burn(BEFORE_MS);
    report(the.reports[1]);
    await_end(the.go[0]);
    send_datagram(the.address, the.port);
    snprintf(reports, sizeof reports, "%d", the.reports[1]);
    snprintf(end, sizeof end, "%d", the.end[0]);
    execl(the.self, the.self, the.mode, the.address, the.port, reports, end, NULL);
    fail("exec");
    return none;
}

/* A process of three threads; returns in its parent. */
static void start_process(void *(*second)(void *)) {
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child > 0)
        return;
    if (the.mode)
        close(the.go[1]), close(the.end[1]);
    start(third);
    start(second);
    staying(the.mode);
}

static void once(long count) {
    for (; count > 0; count--) {
        start_process(second_once);
        wait(NULL);
    }
}

static void watched(long count) {
    if (pipe(the.reports) || pipe(the.go) || pipe(the.end))
        fail("pipe");
    for (long i = 0; i < count; i++)
        start_process(second_watched);
    await_bytes(the.reports[0], 3 * count);
    say("ready");
    await_line();
    close(the.go[1]);
    await_bytes(the.reports[0], count);
    for (long gone = 0; !strcmp(the.mode, "leave") && gone < count; gone++)
        wait(NULL);
    say("done");
    await_line();
    close(the.end[1]);
    while (wait(NULL) > 0) {
    }
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    the.self = words[0];
    if (!strcmp(what, "once") && count == 3) {
        once(atol(words[2]));
    } else if (!strcmp(what, "burn")) {
        burn(ONCE_MS);
    } else if (!strcmp(what, "watched") && count == 6) {
        the.mode = words[3], the.address = words[4], the.port = words[5];
        watched(atol(words[2]));
    } else if ((!strcmp(what, "leave") || !strcmp(what, "stay")) && count == 6) {
        burn(AFTER_MS);
        send_datagram(words[2], words[3]);
        report(atoi(words[4]));
        if (!strcmp(what, "leave"))
            return 7;
        await_end(atoi(words[5]));
    } else {
        return 2;
    }
    return 0;
}
