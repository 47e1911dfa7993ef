/* A CUDA driver whose functions succeed and do nothing: enough for the compiler's own signature inference. */
#include <string.h>

static int succeed(void) { return 0; }

static int driver_version(int *version) {
    *version = 13040;
    return 0;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, unsigned long long flags, void *status) {
    (void)version, (void)flags, (void)status;
    *function = strcmp(symbol, "cuDriverGetVersion") == 0 ? (void *)driver_version : (void *)succeed;
    return 0;
}
