/* Loses the end of a process on purpose: as if the kernel had not run the agent's program when it freed the process.
 *
 *   lose AGENT NAME       sets all that the agent's program counted at the end of processes of this name (CPU time and all other counters that the
 *                         kernel keeps) to zero, and prints how many nanoseconds of CPU time that were; 0 if the kernel has lost it by itself
 *
 * AGENT is the agent's process id; it must not have sampled since they ended. The map is found among the agent's descriptors. */
#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As node-agent-ebpf/src/lib.rs has them: Key, where its name begins, and how many counters the kernel keeps. */
enum { KEY_BYTES = 72, NAME_AT = 56, NAME_BYTES = 16, KEPT = 13, VALUE_BYTES = 232 };

static void fail(const char *what) {
    fprintf(stderr, "lose: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long bpf(int command, union bpf_attr *attributes) {
    return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static uint64_t address(const void *of) { return (uint64_t)(uintptr_t)of; }

/* A map of this name and shape; -1 if this id is another one's. */
static int map(uint32_t id) {
    union bpf_attr attributes = {.map_id = id};
    int fd = (int)bpf(BPF_MAP_GET_FD_BY_ID, &attributes);
    if (fd < 0)
        fail("BPF_MAP_GET_FD_BY_ID");
    struct bpf_map_info info = {0};
    attributes = (union bpf_attr){.info = {.bpf_fd = (uint32_t)fd, .info_len = sizeof info, .info = address(&info)}};
    if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes))
        fail("BPF_OBJ_GET_INFO_BY_FD");
    if (!strcmp(info.name, "AGGREGATED") && info.key_size == KEY_BYTES && info.value_size == VALUE_BYTES)
        return fd;
    close(fd);
    return -1;
}

static int map_of(const char *pid) {
    char path[300], line[256];
    snprintf(path, sizeof path, "/proc/%s/fdinfo", pid);
    DIR *all = opendir(path);
    if (!all)
        fail(path);
    for (struct dirent *entry; (entry = readdir(all));) {
        snprintf(path, sizeof path, "/proc/%s/fdinfo/%s", pid, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            unsigned id;
            int found = sscanf(line, "map_id: %u", &id) == 1 ? map(id) : -1;
            if (found >= 0)
                return found;
        }
        if (file)
            fclose(file);
    }
    fprintf(stderr, "lose: no map of this name and shape\n");
    exit(1);
}

static uint64_t lose(int fd, const char *name) {
    char keys[2][KEY_BYTES], padded[NAME_BYTES] = {0};
    uint64_t value[VALUE_BYTES / 8], lost = 0;
    memcpy(padded, name, strnlen(name, NAME_BYTES - 1));
    char *before = NULL, *next = keys[0];
    for (;;) {
        union bpf_attr attributes = {.map_fd = (uint32_t)fd, .key = address(before), .next_key = address(next)};
        if (bpf(BPF_MAP_GET_NEXT_KEY, &attributes))
            return lost;
        before = next;
        next = before == keys[0] ? keys[1] : keys[0];
        if (memcmp(before + NAME_AT, padded, NAME_BYTES))
            continue;
        attributes = (union bpf_attr){.map_fd = (uint32_t)fd, .key = address(before), .value = address(value)};
        if (bpf(BPF_MAP_LOOKUP_ELEM, &attributes))
            fail("BPF_MAP_LOOKUP_ELEM");
        lost += value[0];
        memset(value, 0, KEPT * sizeof *value);
        attributes = (union bpf_attr){
            .map_fd = (uint32_t)fd, .key = address(before), .value = address(value), .flags = BPF_EXIST};
        if (bpf(BPF_MAP_UPDATE_ELEM, &attributes))
            fail("BPF_MAP_UPDATE_ELEM");
    }
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "lose AGENT NAME\n");
        return 2;
    }
    printf("%llu\n", (unsigned long long)lose(map_of(words[1]), words[2]));
    return 0;
}
