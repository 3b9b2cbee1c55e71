/* Small works of one kind each, for a machine on which nothing else works (tests/scenarios/real_machine). Each goes on until it is killed.
 *
 *   work burn                 burns a tenth of a CPU
 *   work renamed NAME         the same, under the name that it gives itself by prctl(2)
 *   work scan FILE            maps a file and reads it from the disk again and again, a megabyte at a time
 *   work fetch ADDRESS PORT   takes in what comes over the network
 *   work serve PORT           answers each message of one peer with as many bytes
 *   work pause                does nothing, as the process that holds a pod's namespaces does
 *   work obey DEVICE          burns from a `b` on and rests from an `r` on, as whoever is at the other end of a serial line says; it rests at first
 *
 * Static, and without libraries but libc, so that it runs in a container without files, too. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MEGABYTE = 1 << 20, PAGE = 4096 };

static void fail(const char *what) {
    fprintf(stderr, "work: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void pause_ms(long ms) {
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&time, NULL);
}

static long long cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void burn_once(void) {
    for (long long begin = cpu_ns(); cpu_ns() - begin < 20 * 1000000LL;) {
    }
    pause_ms(180);
}

static void burn(void) {
    for (;;) burn_once();
}

static void scan(const char *path) {
    int file = open(path, O_RDONLY);
    struct stat facts;
    if (file < 0 || fstat(file, &facts)) fail(path);
    unsigned sum = 0;
    for (;;) {
        for (off_t at = 0; at + MEGABYTE <= facts.st_size; at += MEGABYTE) {
            posix_fadvise(file, at, MEGABYTE, POSIX_FADV_DONTNEED);
            volatile unsigned char *bytes = mmap(NULL, MEGABYTE, PROT_READ, MAP_SHARED, file, at);
            if (bytes == MAP_FAILED) fail("mmap");
            for (int page = 0; page < MEGABYTE; page += PAGE) sum += bytes[page];
            munmap((void *)bytes, MEGABYTE);
            pause_ms(200);
        }
    }
}

static struct sockaddr_in address(const char *host, const char *port) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port)) };
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail(host);
    return address;
}

static void fetch(const char *host, const char *port) {
    struct sockaddr_in to = address(host, port);
    int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
    if (socket_fd < 0 || connect(socket_fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
    static char bytes[MEGABYTE];
    while (read(socket_fd, bytes, sizeof bytes) > 0) {
    }
    fail("the other side");
}

static void serve(const char *port) {
    struct sockaddr_in at = address("0.0.0.0", port);
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes)) fail("socket");
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 8)) fail("listen");
    int peer = accept(listener, NULL, NULL);
    if (peer < 0) fail("accept");
    char bytes[PAGE];
    for (ssize_t count; (count = read(peer, bytes, sizeof bytes)) > 0;) {
        if (write(peer, bytes, (size_t)count) != count) fail("write");
    }
}

static void obey(const char *device) {
    int line = open(device, O_RDONLY | O_NOCTTY);
    if (line < 0) fail(device);
    for (char said = 'r';;) {
        struct pollfd more = { line, POLLIN, 0 };
        if (said == 'b' && !poll(&more, 1, 0)) {
            burn_once();
            continue;
        }
        // While it rests nothing wakes it but that line.
        if (read(line, &said, 1) != 1) fail("what is said");
    }
}

int main(int count, char **words) {
    const char *kind = count > 1 ? words[1] : "";
    if (!strcmp(kind, "burn")) burn();
    if (!strcmp(kind, "renamed") && count == 3) {
        prctl(PR_SET_NAME, words[2]);
        burn();
    }
    if (!strcmp(kind, "scan") && count == 3) scan(words[2]);
    if (!strcmp(kind, "fetch") && count == 4) fetch(words[2], words[3]);
    while (!strcmp(kind, "pause")) pause();
    if (!strcmp(kind, "obey") && count == 3) obey(words[2]);
    if (!strcmp(kind, "serve") && count == 3) serve(words[2]);
    return 1;
}
