/* gpu_load BUSY_MS EVERY_MS SECONDS [MEGABYTES]
 *
 * Keeps an NVIDIA GPU busy for BUSY_MS in each EVERY_MS (0 for never), and so much of its memory for as long as it runs. At its end it says for how long kernels
 * ran, by the GPU's own clock: {"busy_ns":…,"elapsed_ns":…}. It needs the driver and no toolkit: the kernel is compiled by the driver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char KERNEL[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry spin(.param .u64 for_ns, .param .u64 to) {\n"
    "  .reg .u64 %begin, %now, %length, %for, %to;\n  .reg .pred %early;\n"
    "  ld.param.u64 %for, [for_ns];\n  ld.param.u64 %to, [to];\n  cvta.to.global.u64 %to, %to;\n"
    "  mov.u64 %begin, %globaltimer;\n"
    "AGAIN:\n  mov.u64 %now, %globaltimer;\n  sub.u64 %length, %now, %begin;\n  setp.lt.u64 %early, %length, %for;\n  @%early bra AGAIN;\n"
    "  st.global.u64 [%to], %length;\n  ret;\n}\n";

static void *library;

/* A function of the driver's, called with these arguments; anything but success ends the program. */
#define CALL(name, types, ...)                                                                    \
    do {                                                                                          \
        int (*driver_call) types = (int(*) types)dlsym(library, name);                               \
        int status = driver_call ? driver_call(__VA_ARGS__) : -1;                                       \
        if (status) {                                                                             \
            fprintf(stderr, "gpu_load: %s: %d\n", name, status);                                  \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int count, char **words) {
    if (count < 4) {
        fprintf(stderr, "gpu_load BUSY_MS EVERY_MS SECONDS [MEGABYTES]\n");
        return 2;
    }
    unsigned long long busy_ns = 1000000ULL * (unsigned long long)atoll(words[1]);
    long long every_ns = 1000000LL * atoll(words[2]), length_ns = 1000000000LL * atoll(words[3]);
    size_t bytes = count > 4 ? (size_t)atoll(words[4]) << 20 : 8;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "gpu_load: %s\n", dlerror());
        return 1;
    }
    int device;
    void *context, *module, *function;
    unsigned long long memory = 0;
    CALL("cuInit", (unsigned), 0);
    CALL("cuDeviceGet", (int *, int), &device, 0);
    CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device);
    CALL("cuCtxSetCurrent", (void *), context);
    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), &memory, bytes);
    CALL("cuModuleLoadData", (void **, const void *), &module, KERNEL);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &function, module, "spin");
    printf("ready\n");
    fflush(stdout);
    unsigned long long sum_ns = 0, one_ns = 0;
    void *arguments[] = { &busy_ns, &memory };
    long long begin = now_ns(), next = begin;
    while (now_ns() - begin < length_ns) {
        if (busy_ns) {
            CALL("cuLaunchKernel",
                 (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
                 function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
            CALL("cuCtxSynchronize", (void));
            CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t), &one_ns, memory, sizeof one_ns);
            sum_ns += one_ns;
        }
        next += every_ns;
        long long wait = next - now_ns();
        if (wait > 0) {
            struct timespec time = { wait / 1000000000LL, wait % 1000000000LL };
            nanosleep(&time, NULL);
        }
    }
    printf("{\"busy_ns\":%llu,\"elapsed_ns\":%lld}\n", sum_ns, now_ns() - begin);
    return 0;
}
