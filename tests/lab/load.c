/* A mixed load whose every process is known: what tests compare the agent's counters with.
 *
 *   load storm N          N children, one after another: of ten, one exits with 3, one is killed by SIGKILL, eight exit with 0
 *   load threads N        N children whose threads burn CPU time and end before their leader, or after it
 *   load exec N           N children that burn CPU time, become another program and go on
 *   load disk FILE BYTES  writes and then reads that much past the page cache
 *   load serve ADDRESS PORT        takes one connection, reads it to its end and sends as much back
 *   load talk ADDRESS PORT BYTES   the other end of it
 *   load burn MS          burns that much CPU time
 *   load move MS GROUP MS burns, moves itself to another cgroup, and burns again
 *   load hold CALLS READS WRITES   asks for its parent, reads a megabyte and writes a byte so often, and burns CPU time, all on CPU 0;
 *                         says `held` and stays, having done nothing since
 *   load crowd N          N processes that share its memory, each under a name of its own; says `crowded` and stays until SIGTERM
 *
 * Static, and without libraries but libc, so that it runs in a micro-VM, too. */
#define _GNU_SOURCE
#include "program.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1 << 20 };

static void *burning(void *ms) {
    burn((long)ms);
    return NULL;
}

static void move(long before, const char *group, long after) {
    burn(before);
    char path[4096];
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    FILE *processes = fopen(path, "w");
    if (!processes || fprintf(processes, "%d\n", (int)getpid()) < 0 || fclose(processes))
        fail(path);
    burn(after);
}

static void *ending_all(void *ms) {
    burn((long)ms);
    exit(5);
}

static pid_t forked(void) {
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    return child;
}

/* Says how often the kernel began anew with small process ids: ids are used again then. */
static void storm(long count) {
    long wraps = 0;
    pid_t last = 0;
    for (long i = 0; i < count; i++) {
        pid_t child = forked();
        if (child == 0) {
            if (i % 10 == 0)
                _exit(3);
            if (i % 10 == 1)
                raise(SIGKILL);
            _exit(0);
        }
        wraps += child < last;
        last = child;
        wait(NULL);
    }
    printf("wraps %ld\n", wraps);
}

static void thread(void *(*of)(void *), long ms, pthread_t *to) {
    pthread_t own;
    if ((errno = pthread_create(to ? to : &own, NULL, of, (void *)ms)))
        fail("pthread_create");
}

/* Of four children: two whose leader goes first, one whose thread ends everybody with exit code 5, one whose leader stays. */
static void threads(long count) {
    for (long i = 0; i < count; i++) {
        if (forked() == 0) {
            pthread_t first, second;
            thread(burning, 8, &first);
            thread(burning, 3, &second);
            if (i % 4 < 2)
                pthread_exit(NULL);
            pthread_join(first, NULL);
            pthread_join(second, NULL);
            if (i % 4 == 2) {
                thread(ending_all, 2, NULL);
                pause();
            }
            burn(2);
            _exit(0);
        }
        wait(NULL);
    }
}

static void execs(long count, char *self) {
    for (long i = 0; i < count; i++) {
        if (forked() == 0) {
            burn(5);
            execl(self, self, "burn", "5", NULL);
            fail("exec");
        }
        wait(NULL);
    }
}

static void disk(const char *path, long long bytes) {
    char *block;
    if (posix_memalign((void **)&block, 4096, BLOCK))
        fail("memory");
    memset(block, 7, BLOCK);
    int file = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (file < 0)
        fail(path);
    for (long long at = 0; at < bytes; at += BLOCK)
        if (pwrite(file, block, BLOCK, at) != BLOCK)
            fail("pwrite");
    for (long long at = 0; at < bytes; at += BLOCK)
        if (pread(file, block, BLOCK, at) != BLOCK)
            fail("pread");
}

static struct sockaddr_in address(const char *host, const char *port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
        fail(host);
    return to;
}

static void give(int socket, long long bytes) {
    static char block[1 << 16];
    while (bytes > 0) {
        ssize_t sent = send(socket, block, bytes < (long long)sizeof block ? bytes : (long long)sizeof block, MSG_NOSIGNAL);
        if (sent < 0)
            fail("send");
        bytes -= sent;
    }
    shutdown(socket, SHUT_WR);
}

static long long take(int socket) {
    static char block[1 << 16];
    long long bytes = 0;
    for (ssize_t got; (got = recv(socket, block, sizeof block, 0)) != 0; bytes += got)
        if (got < 0)
            fail("recv");
    return bytes;
}

/* Once the peer has all of it: how much of it went over the cable more than once. */
static void say_retransmitted(const char *who, int peer) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    for (int left = 1; left > 0; usleep(1000))
        if (ioctl(peer, SIOCOUTQ, &left))
            fail("SIOCOUTQ");
    if (getsockopt(peer, IPPROTO_TCP, TCP_INFO, &info, &size))
        fail("TCP_INFO");
    printf("%s_retransmitted %llu\n", who, (unsigned long long)info.tcpi_bytes_retrans);
    fflush(stdout);
}

static void serve(const char *host, const char *port) {
    struct sockaddr_in own = address(host, port);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, 1))
        fail("listen");
    say("listening");
    int peer = accept(listener, NULL, NULL);
    if (peer < 0)
        fail("accept");
    give(peer, take(peer));
    say_retransmitted("serve", peer);
}

static void talk(const char *host, const char *port, long long bytes) {
    struct sockaddr_in to = address(host, port);
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(peer, (struct sockaddr *)&to, sizeof to))
        fail("connect");
    give(peer, bytes);
    if (take(peer) != bytes)
        fail("not all came back");
    say_retransmitted("talk", peer);
}

static void hold(long calls, long reads, long writes) {
    static char block[BLOCK];
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    if (sched_setaffinity(0, sizeof first, &first))
        fail("sched_setaffinity");
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    for (long i = 0; i < calls; i++)
        syscall(SYS_getppid);
    for (long i = 0; i < reads; i++)
        if (read(zero, block, sizeof block) != sizeof block)
            fail("read");
    for (long i = 0; i < writes; i++)
        if (write(null, block, 1) != 1)
            fail("write");
    for (int i = 0; i < 50; i++)
        usleep(1000);
    for (volatile long i = 0; i < 600000000; i++) {
    }
    say("held");
    pause();
}

static int waiting(void *number) {
    char name[16];
    snprintf(name, sizeof name, "crowd-%ld", (long)number);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    /* The memory is everybody's: so is stdio, which nobody here touches. */
    while (pause() < 0) {
    }
    return 0;
}

static void crowd(long count) {
    enum { STACK = 8192 };
    sigset_t end;
    int got;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    char *stacks = mmap(NULL, count * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t *all = calloc(count, sizeof *all);
    if (stacks == MAP_FAILED || !all)
        fail("memory");
    for (long i = 0; i < count; i++)
        if ((all[i] = clone(waiting, stacks + (i + 1) * STACK, CLONE_VM | SIGCHLD, (void *)i)) < 0)
            fail("clone");
    say("crowded");
    sigwait(&end, &got);
    for (long i = 0; i < count; i++)
        kill(all[i], SIGKILL);
    for (long i = 0; i < count; i++)
        waitpid(all[i], NULL, 0);
}

int main(int count, char **words) {
    const char *what = count > 2 ? words[1] : "";
    if (!strcmp(what, "storm"))
        storm(atol(words[2]));
    else if (!strcmp(what, "threads"))
        threads(atol(words[2]));
    else if (!strcmp(what, "exec"))
        execs(atol(words[2]), words[0]);
    else if (!strcmp(what, "burn"))
        burn(atol(words[2]));
    else if (!strcmp(what, "crowd"))
        crowd(atol(words[2]));
    else if (!strcmp(what, "move") && count == 5)
        move(atol(words[2]), words[3], atol(words[4]));
    else if (!strcmp(what, "hold") && count == 5)
        hold(atol(words[2]), atol(words[3]), atol(words[4]));
    else if (!strcmp(what, "disk") && count == 4)
        disk(words[2], atoll(words[3]));
    else if (!strcmp(what, "serve") && count == 4)
        serve(words[2], words[3]);
    else if (!strcmp(what, "talk") && count == 5)
        talk(words[2], words[3], atoll(words[4]));
    else
        return 2;
    return 0;
}
