/* --gemm openblas in a command that was built without it. */
#include "engine.h"
#include "say.h"

int gemm_openblas_open(bert_gemm *gemm, int threads) {
    (void)gemm, (void)threads;
    return say_error("--gemm openblas: this bert was built without it (meson option openblas)");
}

int gemm_openblas_there(void) {
    return 0;
}
