/* --gemm openblas: OpenBLAS is loaded only when it is asked for: from then on it has threads of its own. */
#include <dlfcn.h>

#include "engine.h"
#include "say.h"

static const char library[] = "libopenblas.so.0";

/* Values of cblas.h; its integers are int in the library of this name. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
typedef void cblas_sgemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

static cblas_sgemm_function *sgemm; /* of the one copy that the process has loaded */

/* y[T,N] = x[T,K] · w[N,K]ᵀ */
static void multiply(void *user, float *y, size_t ldy, const float *x, size_t ldx, const float *w, size_t ldw, size_t t,
                     size_t n, size_t k) {
    (void)user;
    sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, (int)t, (int)n, (int)k, 1, x, (int)ldx, w, (int)ldw, 0, y, (int)ldy);
}

int gemm_openblas_open(bert_gemm *gemm, int threads) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return say_error("--gemm openblas: cannot load %s (Debian: apt install libopenblas0): %s", library, dlerror());
    /* POSIX lets a void pointer become a function pointer; ISO C only through a union. */
    union {
        void *object;
        cblas_sgemm_function *sgemm;
        void (*set_threads)(int);
    } found = {.object = dlsym(handle, "cblas_sgemm")};
    if (!found.object) return say_error("--gemm openblas: %s has no cblas_sgemm", library);
    sgemm = found.sgemm;
    found.object = dlsym(handle, "openblas_set_num_threads");
    if (found.object) found.set_threads(threads);
    *gemm = (bert_gemm){.name = "openblas", .multiply = multiply};
    return 0;
}

int gemm_openblas_there(void) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    return handle != NULL;
}
