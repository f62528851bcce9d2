/* kernels/registry.c: which tables this build has, and which of them this processor can run. */
#include "base/cpu.h"
#include "kernels/table.h"

const bert_kernels *bert_kernels_get(bert_isa isa) {
    const bert_cpu cpu = bert_cpu_detect();
    const struct {
        const bert_kernels *kernels;
        bool usable;
    } tables[] = { /* best first */
#ifdef __x86_64__
        {&bert_kernels_avx512, cpu.avx512},
        {&bert_kernels_avx2, cpu.avx2_fma},
#endif
#ifdef __aarch64__
        {&bert_kernels_neon, cpu.neon},
#endif
        {&bert_kernels_ref, true},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (tables[i].usable && (isa == BERT_ISA_AUTO || isa == tables[i].kernels->isa)) return tables[i].kernels;
    return NULL;
}

bert_isa bert_kernels_isa(const bert_kernels *kernels) {
    return kernels->isa;
}

const char *bert_isa_name(bert_isa isa) {
    const bert_kernels *kernels = bert_kernels_get(isa);
    return kernels ? kernels->name : NULL;
}

bert_epilogue bert_epilogue_of(bert_activation activation) {
    switch (activation) {
    case BERT_GELU_TANH: return BERT_EPILOGUE_GELU_TANH;
    case BERT_RELU: return BERT_EPILOGUE_RELU;
    case BERT_SILU: return BERT_EPILOGUE_SILU;
    default: return BERT_EPILOGUE_GELU_ERF;
    }
}

void bert_pack_panel(const bert_kernels *kernels, float *panel, const float *w, size_t ld, size_t rows, size_t k) {
    kernels->pack_panel(panel, w, ld, rows, k);
}

void bert_layer_norm(const bert_kernels *kernels, float *y, size_t ldy, const float *x, size_t ldx,
                     const float *gamma, const float *beta, float eps, size_t rows, size_t h) {
    kernels->layer_norm(y, ldy, x, ldx, gamma, beta, eps, rows, h);
}

void bert_softmax(const bert_kernels *kernels, float *y, const float *x, size_t n) {
    kernels->softmax(y, n, x, n, 1.0f, 1, n);
}

float bert_sum_squares(const bert_kernels *kernels, const float *x, size_t n) {
    return kernels->sum_squares(x, n);
}

int bert_all_finite(const bert_kernels *kernels, const float *x, size_t n) {
    return kernels->all_finite(x, n);
}
