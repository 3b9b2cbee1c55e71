/* Processes in a known state.
 *
 *   states wait           sleeps until a signal comes
 *   states vfork          waits uninterruptibly (D) for a child of vfork, which sleeps
 *   states burn           burns CPU time for ever
 *   states hold BYTES     sleeps with so much memory in use
 *
 * Each says `ready` first. They end with the signal that ends them; the child of vfork ends with its parent. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "hold") && count == 3) {
        size_t bytes = strtoul(words[2], NULL, 10);
        char *memory = malloc(bytes);
        if (!memory)
            return 1;
        memset(memory, 1, bytes);
    } else if (strcmp(what, "wait") && strcmp(what, "vfork") && strcmp(what, "burn")) {
        return 2;
    }
    puts("ready");
    fflush(stdout);
    if (!strcmp(what, "vfork") && vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    while (!strcmp(what, "burn")) {
    }
    for (;;)
        pause();
}
