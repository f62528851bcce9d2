/* Every allocation and every system call fails once, and from then on, in the base and file rooms, on the whole way
 * from a folder to a vector or to attention maps, and in a tokenizer of many components: an error with a message, nothing
 * left behind, and the next call works. And the files of a model change at every read: an error, or results as if they
 * had not. The linker puts the functions below in front of those of the C library (meson.build lists them). */
#include "sanitizers.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <bert/bert.h>

#include "base/memory.h"
#include "file/json.h"
#include "file/source.h"

enum { MEMORY, OPEN, STAT, READ, THREAD, KINDS };

static struct {
    int calls[KINDS];   /* since the last reset */
    int fail_at[KINDS]; /* the call that fails, from 1; 0: none */
    bool and_after;     /* all later ones too */
    int error;          /* errno of calls that fail; 0 for READ: the end of the file comes early */
    bool tiny_reads;    /* one byte at a time, and interrupted before each */
    int blocks, files;  /* allocated and not freed, open and not closed */
    void (*meanwhile)(void); /* done once, before the read number `fail_at`, which then goes on */
} fault;

static void reset(void) {
    memset(&fault, 0, sizeof fault);
}

static bool fails(int kind) {
    const int call = ++fault.calls[kind], at = fault.fail_at[kind];
    if (kind == READ && fault.meanwhile != NULL) {
        if (call == at) fault.meanwhile();
        return false;
    }
    if (at == 0 || (fault.and_after ? call < at : call != at)) return false;
    errno = kind == MEMORY ? ENOMEM : fault.error;
    return true;
}

static void *counted(void *p) {
    if (p != NULL) fault.blocks++;
    return p;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
char *__real_strdup(const char *text);
void __real_free(void *p);
int __real_open64(const char *path, int flags, ...);
int __real_close(int fd);
int __real_fstat64(int fd, struct stat *is);
ssize_t __real_pread64(int fd, void *bytes, size_t n, off_t at);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg);

void *__wrap_malloc(size_t n) {
    return fails(MEMORY) ? NULL : counted(__real_malloc(n));
}

void *__wrap_calloc(size_t count, size_t n) {
    return fails(MEMORY) ? NULL : counted(__real_calloc(count, n));
}

void *__wrap_realloc(void *p, size_t n) {
    if (fails(MEMORY)) return NULL;
    void *bigger = __real_realloc(p, n);
    return p == NULL ? counted(bigger) : bigger;
}

void *__wrap_aligned_alloc(size_t align, size_t n) {
    return fails(MEMORY) ? NULL : counted(__real_aligned_alloc(align, n));
}

int __wrap_posix_memalign(void **p, size_t align, size_t n) {
    if (fails(MEMORY)) return ENOMEM;
    const int failed = __real_posix_memalign(p, align, n);
    if (!failed) fault.blocks++;
    return failed;
}

char *__wrap_strdup(const char *text) {
    return fails(MEMORY) ? NULL : counted(__real_strdup(text));
}

void __wrap_free(void *p) {
    if (p != NULL) fault.blocks--;
    __real_free(p);
}

int __wrap_open64(const char *path, int flags, ...) {
    if (fails(OPEN)) return -1;
    const int fd = __real_open64(path, flags);
    if (fd >= 0) fault.files++;
    return fd;
}

int __wrap_close(int fd) {
    fault.files--;
    return __real_close(fd);
}

int __wrap_fstat64(int fd, struct stat *is) {
    return fails(STAT) ? -1 : __real_fstat64(fd, is);
}

ssize_t __wrap_pread64(int fd, void *bytes, size_t n, off_t at) {
    static bool interrupted;
    if (fails(READ)) return fault.error != 0 ? -1 : 0;
    if (!fault.tiny_reads) return __real_pread64(fd, bytes, n, at);
    interrupted = !interrupted;
    if (!interrupted) return __real_pread64(fd, bytes, 1, at);
    errno = EINTR;
    return -1;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg) {
    return fails(THREAD) ? EAGAIN : __real_pthread_create(thread, attributes, body, arg);
}

/* What is tried: each returns the status of its work, having undone it again. */
static scratch files;

static bert_status use_container(bert_error *err) {
    char path[PATH_MAX];
    bert_safetensors *file;
    float x[4] = {0}, halves[4] = {0};
    snprintf(path, sizeof path, "%s/c", files.dir);
    bert_status status = bert_safetensors_open(&file, path, err);
    if (status != BERT_OK) return status;
    status = bert_safetensors_read_f32(file, bert_safetensors_find(file, "a"), 0, x, 4, err);
    if (status == BERT_OK)
        status = bert_safetensors_read_f32(file, bert_safetensors_find(file, "h"), 0, halves, 4, err);
    if (status == BERT_OK) status = bert_safetensors_unchanged(file, err);
    if (status == BERT_OK) cr_expect(x[0] == 1.0f && x[3] == 4.0f && halves[0] == 1.0f && halves[3] == 4.0f);
    bert_safetensors_close(&file);
    return status;
}

static bert_status use_text(bert_error *err) {
    char *text = NULL;
    size_t len;
    const bert_folder folder = {.dir = files.dir};
    bert_json root;
    bert_status status = bert_folder_text(&folder, "j.json", 1 << 20, &text, &len, err);
    if (status == BERT_OK) status = bert_json_check_file(&root, text, len, "j.json", err);
    __wrap_free(text); /* as the library would */
    return status;
}

static bert_status use_memory(bert_error *err) {
    bert_arena arena;
    const bert_memory memory = bert_memory_or_default(NULL);
    void *p = NULL;
    size_t count = 0;
    const int grown = bert_memory_grow(&memory, &p, &count, 10, 4) && bert_memory_grow(&memory, &p, &count, 100, 4);
    const int opened = bert_arena_open(&arena, NULL, 3 << 20);
    bert_arena_close(&arena);
    bert_memory_free(&memory, p, count, 4);
    snprintf(err->text, sizeof err->text, "callers make the message here");
    return grown && opened ? BERT_OK : BERT_NO_MEMORY;
}

static bert_status use_pool(bert_error *err) {
    bert_pool *pool;
    const bert_status status = bert_pool_open(&pool, 5, err);
    bert_pool_close(&pool);
    return status;
}

/* From a folder to a vector, by a caller who has workers: what is read at open, what is packed at the first pass, and
 * the pass. */
static bert_status use_pipeline(bert_error *err) {
    char path[PATH_MAX];
    bert_pipeline *pipeline = NULL;
    bert_session *session = NULL;
    bert_model_options model = BERT_MODEL_OPTIONS_INIT;
    bert_pipeline_options options = BERT_PIPELINE_OPTIONS_INIT;
    const bert_text text = {"the cat", 7, "a b", 3};
    float vector[40];
    model.weights = BERT_WEIGHTS_PACKED;
    options.model = &model;
    snprintf(path, sizeof path, "%s/models/tiny-bert", getenv("BERT_TEST_DATA"));
    bert_status status = bert_pipeline_open(&pipeline, path, &options, err);
    if (status == BERT_OK) status = bert_session_open(&session, bert_pipeline_model(pipeline), NULL, err);
    if (status == BERT_OK) status = bert_embed(session, pipeline, vector, &text, 1, NULL, NULL, err);
    bert_session_close(&session);
    bert_pipeline_close(&pipeline);
    return status;
}

/* Everything that a dump of attention asks for, in one pass. */
static bert_status use_maps(bert_error *err) {
    static const size_t start[] = {0, 5, 7};
    static const int32_t ids[] = {2, 7, 8, 9, 3, 2, 3};
    static const bert_batch batch = {sizeof batch, 2, start, ids, NULL};
    static const int32_t sites[] = {BERT_SITE_HIDDEN_STATES, BERT_SITE_SCORES, BERT_SITE_WEIGHTS, BERT_SITE_CONTEXT,
                                    BERT_SITE_VALUE_OUTPUT, BERT_SITE_FFN_PRE};
    enum { N = sizeof sites / sizeof *sites, ROOM = 1 << 14 };
    static float room[N][ROOM];
    bert_tap taps[N];
    char path[PATH_MAX];
    bert_model *model = NULL;
    bert_session *session = NULL;
    for (size_t i = 0; i < N; i++) {
        taps[i] = (bert_tap)BERT_TAP_INIT;
        taps[i].site = sites[i];
        taps[i].dst = room[i];
        taps[i].dst_len = ROOM;
    }
    snprintf(path, sizeof path, "%s/models/tiny-bert-sharded", getenv("BERT_TEST_DATA"));
    bert_status status = bert_model_open(&model, path, NULL, err);
    if (status == BERT_OK) status = bert_session_open(&session, model, NULL, err);
    if (status == BERT_OK) status = bert_run(session, &batch, taps, N, NULL, err);
    bert_session_close(&session);
    bert_model_close(&model);
    return status;
}

typedef bert_status head_use(bert_session *session, const bert_pipeline *pipeline, const bert_tokens *tokens,
                             bert_error *err);

/* Opens a folder and a pair of texts in windows for a head. */
static bert_status with_head(const char *name, const bert_text *text, head_use *use, bert_error *err) {
    char path[PATH_MAX];
    bert_pipeline *pipeline = NULL;
    bert_session *session = NULL;
    bert_tokens *tokens = NULL;
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    options.max_length = 9, options.overflow = BERT_OVERFLOW_PARTS, options.stride = 1;
    if (text->b) options.truncation = BERT_ONLY_SECOND;
    snprintf(path, sizeof path, "%s/models/%s", getenv("BERT_TEST_DATA"), name);
    bert_status status = bert_pipeline_open(&pipeline, path, NULL, err);
    if (status == BERT_OK) status = bert_session_open(&session, bert_pipeline_model(pipeline), NULL, err);
    if (status == BERT_OK) status = bert_tokenize(&tokens, bert_pipeline_tokenizer(pipeline), text, 1, &options, err);
    if (status == BERT_OK) status = use(session, pipeline, tokens, err);
    bert_tokens_close(&tokens);
    bert_session_close(&session);
    bert_pipeline_close(&pipeline);
    return status;
}

static const bert_text FOX = {"the quick brown fox jumps over the dog", 38, NULL, 0};
enum { ROWS = 64, LABELS = 5 };

static bert_status find_entities(bert_session *s, const bert_pipeline *p, const bert_tokens *tokens, bert_error *err) {
    static float logits[ROWS * LABELS];
    bert_place places[ROWS];
    bert_entity found[ROWS];
    bert_entities_options options = BERT_ENTITIES_OPTIONS_INIT;
    size_t n;
    bert_head *head;
    options.aggregation = BERT_AGGREGATION_AVERAGE;
    bert_status status = bert_head_open(&head, bert_pipeline_model(p), BERT_HEAD_TOKENS, err);
    if (status == BERT_OK) status = bert_head_run_tokens(s, head, logits, tokens, 0, NULL, err);
    bert_windows_place(places, tokens, 0);
    if (status == BERT_OK) status = bert_entities(found, &n, head, logits, tokens, 0, places, &FOX, &options, err);
    bert_head_close(&head);
    return status;
}
static bert_status use_entities(bert_error *err) { return with_head("tiny-bert-ner", &FOX, find_entities, err); }

static bert_status find_answers(bert_session *s, const bert_pipeline *p, const bert_tokens *tokens, bert_error *err) {
    static float logits[ROWS * 2];
    bert_answer answer;
    size_t n;
    bert_head *head;
    bert_status status = bert_head_open(&head, bert_pipeline_model(p), BERT_HEAD_SPAN, err);
    if (status == BERT_OK) status = bert_head_run_tokens(s, head, logits, tokens, 0, NULL, err);
    if (status == BERT_OK) status = bert_answers(&answer, &n, head, logits, tokens, 0, NULL, err);
    bert_head_close(&head);
    return status;
}
static bert_status use_answers(bert_error *err) {
    const bert_text pair = {"who", 3, FOX.a, FOX.a_len};
    return with_head("tiny-bert-qa", &pair, find_answers, err);
}

static bert_status fill_masks(bert_session *s, const bert_pipeline *p, const bert_tokens *tokens, bert_error *err) {
    int32_t ids[ROWS];
    float scores[ROWS];
    bert_mlm *mlm;
    const int32_t mask = bert_tokenizer_special(bert_pipeline_tokenizer(p), BERT_SPECIAL_MASK);
    bert_status status = bert_mlm_open(&mlm, bert_pipeline_model(p), err);
    if (status == BERT_OK) status = bert_mlm_fill(s, mlm, ids, scores, tokens, mask, 2, 0, 0, NULL, err);
    bert_mlm_close(&mlm);
    return status;
}
static bert_status use_masks(bert_error *err) {
    const bert_text text = {"the [MASK] sat", 14, NULL, 0};
    return with_head("tiny-bert", &text, fill_masks, err);
}

static bert_status rank_documents(bert_session *s, const bert_pipeline *p, const bert_tokens *tokens, bert_error *err) {
    float score;
    bert_head *head;
    (void)tokens;
    bert_status status = bert_head_open(&head, bert_pipeline_model(p), BERT_HEAD_SEQUENCE, err);
    if (status == BERT_OK) status = bert_rerank(s, p, head, &score, "who", 3, &FOX, 1, NULL, NULL, err);
    bert_head_close(&head);
    return status;
}
static bert_status use_ranking(bert_error *err) { return with_head("tiny-bert-reranker", &FOX, rank_documents, err); }

/* A tokenizer.json that takes the general path: normalizers, patterns, added tokens, a template. */
static const char components[] =
    "{\"added_tokens\":[{\"id\":4,\"content\":\"<x>\",\"single_word\":false,\"lstrip\":true,\"rstrip\":false,"
    "\"normalized\":true,\"special\":false}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"StripAccents\"},{\"type\":"
    "\"Replace\",\"pattern\":{\"Regex\":\"\\\\s+\"},\"content\":\" \"},{\"type\":\"Prepend\",\"prepend\":\"a \"}]},"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Whitespace\"},{\"type\":\"Split\","
    "\"pattern\":{\"String\":\"b\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"Digits\",\"individual_digits\":true}]},"
    "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",1]},"
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\""
    ":100,\"vocab\":{\"u\":0,\"a\":1,\"b\":2,\"##b\":3}}}";

static bert_status use_tokenizer(bert_error *err) {
    static const bert_file file = {"tokenizer.json", components, sizeof components - 1};
    static const bert_text texts[] = {{"a  ab <x>b1", 11, NULL, 0}, {"\xC3\xA9", 2, "b", 1}};
    const bert_tokenizer_options open = {.size = sizeof open, .tokenizer_json = 1};
    bert_tokenize_options options = BERT_TOKENIZE_OPTIONS_INIT;
    options.max_length = 6, options.overflow = BERT_OVERFLOW_PARTS, options.offsets_cp = 1;
    bert_tokenizer *tokenizer = NULL;
    bert_tokens *tokens = NULL;
    bert_status status = bert_tokenizer_open_files(&tokenizer, &file, 1, &open, err);
    if (status == BERT_OK) status = bert_tokenize(&tokens, tokenizer, texts, 2, &options, err);
    bert_tokens_close(&tokens);
    bert_tokenizer_close(&tokenizer);
    return status;
}

static bert_status open_tokenizer(const bert_file *from, size_t n, bert_error *err) {
    bert_tokenizer *tokenizer = NULL;
    const bert_status status = bert_tokenizer_open_files(&tokenizer, from, n, NULL, err);
    bert_tokenizer_close(&tokenizer);
    return status;
}

#define FILE_OF(name, text) {name, text, sizeof(text) - 1}
#define FLAGS "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false"

/* A folder as transformers 4 wrote it. */
static bert_status use_older_files(bert_error *err) {
    static const bert_file older[] = {
        FILE_OF("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n"),
        FILE_OF("tokenizer_config.json", "{\"do_lower_case\":false,\"unk_token\":\"[UNK]\"}"),
        FILE_OF("special_tokens_map.json", "{\"mask_token\":\"[MASK]\",\"additional_special_tokens\":[\"the\"]}"),
        FILE_OF("added_tokens.json", "{\"[MASK]\":4,\"w\":6}")};
    return open_tokenizer(older, 4, err);
}

/* A tokenizer.json without a post-processor, and a configuration that lists the added tokens. */
static bert_status use_newer_files(bert_error *err) {
    static const bert_file newer[] = {
        FILE_OF("tokenizer.json", "{\"padding\":{\"pad_id\":0,\"pad_token\":\"u\"},\"post_processor\":null,\"model\":{\"type\":"
                "\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\"}}"),
        FILE_OF("tokenizer_config.json", "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"added_tokens_decoder\":{\"1\":"
                "{\"special\":true,\"content\":\"w\"," FLAGS "}}}")};
    return open_tokenizer(newer, 2, err);
}

static void set_up(void) {
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
                                 "\"h\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[16,24]},"
                                 "\"__metadata__\":{\"k\":\"v\"}}      ";
    const uint64_t n = sizeof header - 1;
    const float data[4] = {1, 2, 3, 4};
    const uint16_t halves[4] = {0x3c00, 0x4000, 0x4200, 0x4400}; /* the same in F16 */
    char bytes[256], *text = malloc(100000), *p = text;
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    memcpy(bytes + 8 + n, data, sizeof data);
    memcpy(bytes + 8 + n + sizeof data, halves, sizeof halves);
    scratch_open(&files);
    scratch_write(&files, "c", bytes, 8 + n + sizeof data + sizeof halves);
    p += sprintf(p, "{\"\":0");
    for (int i = 0; i < 3000; i++) p += sprintf(p, ",\"key%d\":[{\"a\":1}]", i);
    p += sprintf(p, "}");
    scratch_write(&files, "j.json", text, (size_t)(p - text));
    free(text);
    reset();
}

static const struct {
    const char *name;
    bert_status (*use)(bert_error *err);
} works[] = {{"container", use_container}, {"text", use_text}, {"memory", use_memory}, {"pool", use_pool},
             {"pipeline", use_pipeline},   {"maps", use_maps},   {"tokenizer", use_tokenizer}, {"entities", use_entities},
             {"answers", use_answers},     {"masks", use_masks}, {"ranking", use_ranking},
             {"older", use_older_files},   {"newer", use_newer_files}};

enum { N_WORKS = sizeof works / sizeof works[0] };
static const size_t read_files[] = {0, 1, 4, 5}; /* those of them that read files */

/* Lets the n-th call of a kind fail for n = 1, 2, … until the work no longer gets there. */
static void fail_each(size_t w, int kind, int error, bool and_after, bert_status expected) {
    int failures = 0, n = 1;
    for (;; n += under_valgrind() ? 1 + n / 16 : 1) {
        bert_error err = {0};
        reset();
        fault.fail_at[kind] = n;
        fault.and_after = and_after;
        fault.error = error;
        const bert_status status = works[w].use(&err);
        const bool got_there = fault.calls[kind] >= n;
        cr_assert(fault.blocks == 0 && fault.files == 0, "%s, kind %d, call %d: %d blocks, %d files left", works[w].name,
                  kind, n, fault.blocks, fault.files);
        cr_assert(status == BERT_OK || status == expected, "%s, kind %d, call %d: status %d, %s", works[w].name, kind,
                  n, status, err.text);
        cr_assert(status == BERT_OK || err.text[0] != '\0', "no message");
        failures += status != BERT_OK;
        if (!got_there) {
            cr_assert_eq(status, BERT_OK, "%s does not work without a fault: %s", works[w].name, err.text);
            break;
        }
    }
    reset();
    cr_assert(n == 1 || failures > 0, "%s, kind %d: %d calls, none of them mattered", works[w].name, kind, n - 1);
}

Test(faults, memory) {
    set_up();
    for (size_t w = 0; w < N_WORKS; w++) {
        fail_each(w, MEMORY, 0, false, BERT_NO_MEMORY);
        fail_each(w, MEMORY, 0, true, BERT_NO_MEMORY);
    }
    scratch_close(&files);
}

Test(faults, system_calls) {
    set_up();
    static const struct {
        int kind, error;
        bert_status status;
    } rows[] = {{OPEN, EMFILE, BERT_IO}, {OPEN, ENOMEM, BERT_NO_MEMORY}, {OPEN, ENOENT, BERT_NOT_FOUND},
                {STAT, EIO, BERT_IO},    {READ, EIO, BERT_IO},           {READ, 0, BERT_CHANGED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 0; k < sizeof read_files / sizeof *read_files; k++) {
            fail_each(read_files[k], rows[i].kind, rows[i].error, false, rows[i].status);
            fail_each(read_files[k], rows[i].kind, rows[i].error, true, rows[i].status);
        }
    }
    scratch_close(&files);
}

Test(faults, interrupted_and_short_reads) {
    set_up();
    for (size_t w = 0; w < 2; w++) {
        bert_error err = {0};
        fault.tiny_reads = true;
        cr_expect_eq(works[w].use(&err), BERT_OK, "%s: %s", works[w].name, err.text);
        cr_expect_gt(fault.calls[READ], 100);
    }
    reset();
    scratch_close(&files);
}

Test(faults, threads_that_do_not_start) {
    set_up();
    fail_each(3, THREAD, 0, false, BERT_NO_MEMORY);
    scratch_close(&files);
}

/* ---- Files that change while they are read. ---- */

enum { WIDTH = 40, SETTLED_US = 12000 };

static void copy_file(const char *name, const char *as) {
    char path[PATH_MAX], *bytes = NULL;
    size_t len;
    bert_error err;
    snprintf(path, sizeof path, "%s/models/tiny-bert/%s", getenv("BERT_TEST_DATA"), name);
    cr_assert_eq(bert_read_text(&bytes, &len, path, 64 << 20, &err), BERT_OK, "%s", err.text);
    scratch_write(&files, as, bytes, len);
    __wrap_free(bytes);
}

static void cut_file(void) {
    cr_assert_eq(truncate(scratch_path(&files, "m/model.safetensors"), 30000), 0);
}

/* The same size, other weights. */
static void overwrite_file(void) {
    static const char noise[60000];
    FILE *file = fopen(scratch_path(&files, "m/model.safetensors"), "r+b");
    cr_assert(file != NULL && fseek(file, 20000, SEEK_SET) == 0);
    cr_assert_eq(fwrite(noise, 1, sizeof noise, file), sizeof noise);
    fclose(file);
}

static void replace_file(void) {
    char from[PATH_MAX];
    snprintf(from, sizeof from, "%s", scratch_path(&files, "other"));
    cr_assert_eq(rename(from, scratch_path(&files, "m/model.safetensors")), 0);
}

static void delete_file(void) {
    cr_assert_eq(unlink(scratch_path(&files, "m/model.safetensors")), 0);
}

static bert_status embed(float vector[WIDTH], bert_weights_from weights, bert_error *err) {
    bert_pipeline *pipeline = NULL;
    bert_session *session = NULL;
    bert_model_options model = BERT_MODEL_OPTIONS_INIT;
    bert_pipeline_options options = BERT_PIPELINE_OPTIONS_INIT;
    const bert_text text = {"the cat", 7, NULL, 0};
    model.weights = weights;
    options.model = &model;
    bert_status status = bert_pipeline_open(&pipeline, scratch_path(&files, "m"), &options, err);
    if (status == BERT_OK) status = bert_session_open(&session, bert_pipeline_model(pipeline), NULL, err);
    for (int pass = 0; pass < 3 && status == BERT_OK; pass++)
        status = bert_embed(session, pipeline, vector, &text, 1, NULL, NULL, err);
    bert_session_close(&session);
    bert_pipeline_close(&pipeline);
    return status;
}

/* As before, or as the file is now: it may have changed before it was opened. */
static bool same_as(const float vector[WIDTH], const float before[WIDTH], bert_weights_from weights) {
    float now[WIDTH];
    if (memcmp(vector, before, sizeof now) == 0) return true;
    fault.fail_at[READ] = 0;
    return embed(now, weights, NULL) == BERT_OK && memcmp(vector, now, sizeof now) == 0;
}

static void change_at_each_read(void (*change)(void), bert_weights_from weights) {
    float wanted[WIDTH], vector[WIDTH];
    int refused = 0;
    for (int n = 1;; n += 1 + n / 10) { /* each of the first ten, then most kinds of reads */
        bert_error err = {BERT_OK, ""};
        reset();
        copy_file("model.safetensors", "m/model.safetensors");
        copy_file("model.safetensors", "other");
        usleep(SETTLED_US); /* a file system's clock may stand still for some milliseconds */
        reset();
        if (n == 1) cr_assert_eq(embed(wanted, weights, &err), BERT_OK, "%s", err.text);
        const int reads = fault.calls[READ];
        reset();
        fault.fail_at[READ] = n;
        fault.meanwhile = change;
        const bert_status status = embed(vector, weights, &err);
        const bool changed = fault.calls[READ] >= n;
        fault.meanwhile = NULL;
        cr_expect(status == BERT_OK || status == BERT_CHANGED || status == BERT_BAD_FILE || status == BERT_NOT_FOUND,
                  "read %d: status %d: %s", n, status, err.text);
        cr_expect(status != BERT_OK || same_as(vector, wanted, weights), "read %d: neither the old file nor the new", n);
        cr_expect(fault.blocks == 0 && fault.files == 0, "read %d: something is left", n);
        refused += status != BERT_OK;
        if (!changed) break;
        cr_assert(n < 10000, "%d reads", reads);
    }
    cr_expect_gt(refused, 0);
}

Test(faults, files_that_change_while_they_are_read) {
    static void (*const changes[])(void) = {cut_file, overwrite_file, replace_file, delete_file};
    set_up();
    copy_file("config.json", "m/config.json");
    copy_file("vocab.txt", "m/vocab.txt");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        change_at_each_read(changes[i], BERT_WEIGHTS_FILE);
        change_at_each_read(changes[i], BERT_WEIGHTS_PACKED);
    }
    reset();
    scratch_close(&files);
}
