/* attention/scaled.c: scaled dot-product attention of any number of texts and heads. */
#include <math.h>

#include "attention/compute.h"
#include "base/error.h"
#include "base/fpenv.h"
#include "base/parallel.h"
#include "base/size.h"

enum { LINE = 16 };

typedef struct attention_job {
    const bert_attention *a;
    const bert_compute *compute;
    float *scratch; /* [slots, slot_floats] */
    size_t slot_floats;
    const bert_attend *head; /* the head that all workers share, and its k and v */
    const bert_attend_mask *mask;
    float *packed;
} attention_job;

/* ---- One head's part of the arrays. ---- */

static size_t place(const size_t step[3], size_t text, size_t head, size_t heads, size_t tokens, size_t d) {
    const bool dense = step[0] == 0 && step[1] == 0 && step[2] == 0;
    return dense ? (text * heads + head) * tokens * d : text * step[0] + head * step[1];
}

static size_t row_step(const size_t step[3], size_t d) {
    return step[0] == 0 && step[1] == 0 && step[2] == 0 ? d : step[2];
}

static bert_attend head_of(const bert_attention *a, size_t number, const bert_attend_mask *mask) {
    const size_t text = number / a->heads, head = number % a->heads, map = number * a->tq * a->tk;
    const bert_attention_mask *m = &a->mask;
    return (bert_attend){
        .q = a->q + place(a->q_step, text, head, a->heads, a->tq, a->d), .ldq = row_step(a->q_step, a->d),
        .k = a->k + place(a->k_step, text, head, a->heads, a->tk, a->d), .ldk = row_step(a->k_step, a->d),
        .v = a->v + place(a->v_step, text, head, a->heads, a->tk, a->d), .ldv = row_step(a->v_step, a->d),
        .context = a->result + place(a->result_step, text, head, a->heads, a->tq, a->d),
        .ldc = row_step(a->result_step, a->d),
        .scores = a->scores ? a->scores + map : NULL,
        .weights = a->weights ? a->weights + map : NULL,
        .mask = m->keys || m->causal || m->allowed || m->added ? mask : NULL,
        .scale = a->scale != 0.0f ? a->scale : (float)(1.0 / sqrt((double)a->d)),
        .steps = BERT_ATTEND_ALL,
        .tq = a->tq, .tk = a->tk, .d = a->d,
    };
}

static bert_attend_mask mask_of(const bert_attention *a, size_t number) {
    const size_t text = number / a->heads, head = number % a->heads;
    const bert_attention_mask *m = &a->mask;
    return (bert_attend_mask){
        .keys = m->keys ? m->keys[text] : a->tk,
        .causal = m->causal != 0,
        .first = m->first,
        .allowed = m->allowed ? m->allowed + text * m->allowed_step[0] + head * m->allowed_step[1] : NULL,
        .ld_allowed = a->tk,
        .added = m->added ? m->added + text * m->added_step[0] + head * m->added_step[1] : NULL,
        .ld_added = a->tk,
    };
}

/* ---- Two ways to divide the work: whole heads, or a long head's blocks of queries. ---- */

static bert_status head_item(void *arg, size_t item, int slot, bert_error *err) {
    const attention_job *j = arg;
    const bert_attend_mask mask = mask_of(j->a, item);
    const bert_attend head = head_of(j->a, item, &mask);
    (void)err;
    bert_attend_run(j->compute->kernels, &head, j->scratch + (size_t)slot * j->slot_floats);
    return BERT_OK;
}

static bert_status block_item(void *arg, size_t item, int slot, bert_error *err) {
    const attention_job *j = arg;
    (void)err;
    bert_attend_run_blocks(j->compute->kernels, j->head, j->packed, item, item + 1,
                           j->scratch + (size_t)slot * j->slot_floats);
    return BERT_OK;
}

static bert_status run_heads(attention_job *j, bert_error *err) {
    return bert_parallel(j->compute->workers, j->a->batch * j->a->heads, head_item, j, err);
}

static bert_status run_long_heads(attention_job *j, bert_error *err) {
    for (size_t i = 0; i < j->a->batch * j->a->heads; i++) {
        const bert_attend_mask mask = mask_of(j->a, i);
        const uint64_t host = bert_fpenv_enter(); /* scale is rounded to float here */
        const bert_attend head = head_of(j->a, i, &mask);
        bert_attend_pack(j->compute->kernels, &head, j->packed);
        bert_fpenv_leave(host);
        j->head = &head;
        TRY(bert_parallel(j->compute->workers, bert_attend_blocks(&head), block_item, j, err));
    }
    return BERT_OK;
}

bert_status bert_attention_compute(const bert_attention *a, const bert_compute *compute, bert_error *err) {
    attention_job j = {.a = a, .compute = compute};
    bert_arena arena = {.data = NULL};
    const uint64_t host = bert_fpenv_enter(); /* as above */
    const bert_attend head = head_of(a, 0, NULL);
    bert_fpenv_leave(host);
    const bool is_long = bert_attend_blocks(&head) >= 4 * compute->slots;
    const size_t shared = is_long ? bert_round_up(bert_attend_packed(&head), LINE) : 0;
    j.slot_floats = is_long ? bert_attend_block_scratch(&head) : bert_attend_scratch(&head);
    TRY(bert_compute_scratch(compute, &arena, shared, &j.slot_floats, err));
    j.packed = arena.data;
    j.scratch = arena.data + shared;
    const bert_status status = is_long ? run_long_heads(&j, err) : run_heads(&j, err);
    bert_arena_close(&arena);
    return status;
}

/* ---- Arguments. ---- */

bert_status bert_attention_mask_check(const bert_attention_mask *m, size_t batch, size_t tq, size_t tk,
                                      bert_error *err) {
    size_t last;
    for (size_t i = 0; m->keys && i < batch; i++)
        if (m->keys[i] > tk)
            return bert_fail(err, BERT_INVALID_ARGUMENT, "attention: text %zu has %zu keys, but Tk is %zu", i,
                             m->keys[i], tk);
    if (!bert_size_add(&last, m->first, tq))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "attention: mask.first %zu is too large", m->first);
    return BERT_OK;
}

/* Every size that is computed later comes from these products. */
static bool sizes_fit(const bert_attention *a) {
    const size_t factor[] = {a->batch, a->heads, a->tq > a->tk ? a->tq : a->tk, a->d + 2 * LINE, 2 * sizeof(float)};
    size_t floats = 32, map;
    for (size_t i = 0; i < sizeof factor / sizeof *factor; i++)
        if (!bert_size_mul(&floats, floats, factor[i])) return false;
    return (!a->scores && !a->weights) || (bert_size_mul(&map, a->batch * a->heads, a->tq) &&
                                           bert_size_mul(&map, map, a->tk) && bert_size_mul(&map, map, sizeof(float)));
}

static bert_status check(const bert_attention *a, bert_error *err) {
    if (a->size < sizeof *a)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "attention: size is not set: begin with BERT_ATTENTION_INIT");
    if (!a->batch || !a->heads || !a->tq || !a->tk || !a->d)
        return bert_fail(err, BERT_INVALID_ARGUMENT,
                         "attention: expected B, A, Tq, Tk and D of at least 1, found %zu, %zu, %zu, %zu, %zu",
                         a->batch, a->heads, a->tq, a->tk, a->d);
    if (!a->q || !a->k || !a->v || !a->result)
        return bert_fail(err, BERT_INVALID_ARGUMENT, "attention: %s is missing",
                         !a->q ? "q" : !a->k ? "k" : !a->v ? "v" : "result");
    if (!sizes_fit(a))
        return bert_fail(err, BERT_INVALID_ARGUMENT, "attention: arrays of these sizes do not fit the address space");
    return bert_attention_mask_check(&a->mask, a->batch, a->tq, a->tk, err);
}

bert_status bert_attention_run(const bert_attention *attention, const bert_compute_options *options, bert_error *err) {
    bert_compute compute;
    TRY(check(attention, err));
    TRY(bert_compute_make(&compute, options, err));
    return bert_attention_compute(attention, &compute, err);
}
