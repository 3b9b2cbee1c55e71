/* Stands in for libnvidia-ml.so.1 where there is no GPU. NVIDIA's own header declares every function below, so a signature
 * that differs does not compile, and a structure of another version than the header's is refused as the library does it.
 * What it answers is read from the file STATE at each call, one `key value` a line; what is not there is 0. */
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct nvmlDevice_st {
    unsigned int index;
};

static struct nvmlDevice_st devices[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};

static long get(const char *key)
{
    char name[64];
    long value, found = 0;
    FILE *state = fopen(STATE, "r");
    if (!state)
        abort();
    while (fscanf(state, "%63s %ld", name, &value) == 2)
        if (strcmp(name, key) == 0)
            found = value;
    fclose(state);
    return found;
}

static long of(const char *key, nvmlDevice_t device)
{
    char name[64];
    snprintf(name, sizeof name, "%s%u", key, device->index);
    return get(name);
}

/* A driver that does not answer. */
static void answer(void)
{
    while (get("hang"))
        usleep(10000);
}

nvmlReturn_t nvmlInit_v2(void)
{
    answer();
    return get("init");
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    snprintf(version, length, "575.57.08");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = get("count");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    *device = &devices[index];
    return of("handle_error", *device);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    snprintf(uuid, length, "GPU-00000000-0000-0000-0000-00000000000%u", device->index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    (void)device;
    snprintf(name, length, "NVIDIA Stand-in 80GB");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    answer();
    utilization->gpu = of("busy", device);
    utilization->memory = 1;
    return of("busy_error", device);
}

/* As an H100's driver does it: a sample each 200 ms, the last 70 of them kept, with the wall clock's time in microseconds. In one of five the device was as busy as `burst` says. */
enum { SAMPLE_US = 200000, KEPT = 70 };

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long after,
    nvmlValueType_t *kind, unsigned int *count, nvmlSample_t *samples)
{
    struct timespec now;
    unsigned int room = *count;
    long error = of("samples_error", device), stopped = of("samples_stopped", device);
    answer();
    if (error)
        return error;
    if (type != NVML_GPU_UTILIZATION_SAMPLES || (samples && room == 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned long long last = (now.tv_sec * 1000000ULL + now.tv_nsec / 1000) / SAMPLE_US;
    unsigned long long next = after / SAMPLE_US + 1;
    if (next + KEPT <= last)
        next = last - KEPT + 1;
    if (stopped || next > last)
        return NVML_ERROR_NOT_FOUND;
    *kind = NVML_VALUE_TYPE_UNSIGNED_INT;
    *count = last - next + 1;
    if (!samples)
        return NVML_SUCCESS;
    if (*count > room)
        *count = room;
    for (unsigned int index = 0; index < *count; index++, next++) {
        samples[index].timeStamp = next * SAMPLE_US;
        samples[index].sampleValue.uiVal = next % 5 ? of("busy", device) : of("busy", device) + of("burst", device);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = 80000000000ULL;
    memory->reserved = 500000000ULL;
    memory->used = 1000000000ULL * (device->index + 1);
    memory->free = memory->total - memory->used - memory->reserved;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
    *power = 70000 + device->index;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy)
{
    *energy = 123456789ULL + device->index;
    return NVML_SUCCESS;
}

/* With a null list and a count of 0 the library says how many there are. */
static nvmlReturn_t processes(long pid, unsigned int *count, nvmlProcessInfo_t *list)
{
    unsigned int room = *count;
    *count = pid != 0;
    if (pid == 0)
        return NVML_SUCCESS;
    if (room < 1)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memset(list, 0, sizeof *list);
    list->pid = pid;
    list->usedGpuMemory = 1 << 20;
    list->gpuInstanceId = list->computeInstanceId = 0xFFFFFFFF;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list)
{
    long error = of("processes_error", device);
    return error ? error : processes(of("pid", device), count, list);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list)
{
    (void)device, (void)count, (void)list;
    return NVML_ERROR_NOT_SUPPORTED;
}
