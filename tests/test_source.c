/* Reading files: only regular ones, only what was there at open, only inside the folder. */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "file/source.h"

static void expect_open(const char *path, bert_status expected, const char *what) {
    bert_source *source;
    bert_error err = {0};
    const bert_status status = bert_source_open(&source, path, &err);
    cr_expect_eq(status, expected, "%s: status %d, %s", path, status, err.text);
    cr_expect_eq(source != NULL, status == BERT_OK);
    const int named = strncmp(err.text, path, strlen(path)) == 0;
    if (status != BERT_OK) cr_expect(named && strstr(err.text, what) != NULL, "%s", err.text);
    bert_source_close(&source);
}

Test(source, only_regular_files, .timeout = 10) {
    scratch s;
    scratch_open(&s);
    const char *path = scratch_write(&s, "file", "abc", 3);
    expect_open(path, BERT_OK, "");
    char link[PATH_MAX + 8];
    snprintf(link, sizeof link, "%s/link", s.dir);
    cr_assert_eq(symlink("file", link), 0);
    expect_open(link, BERT_OK, "");
    expect_open(scratch_path(&s, "missing"), BERT_NOT_FOUND, "no such file");
    expect_open(scratch_path(&s, "file/below"), BERT_NOT_FOUND, "no such file");
    expect_open(s.dir, BERT_BAD_FILE, "a folder");
    expect_open("/dev/zero", BERT_BAD_FILE, "a device");
    expect_open("/dev/null", BERT_BAD_FILE, "a device");
    cr_assert_eq(mkfifo(scratch_path(&s, "fifo"), 0600), 0);
    expect_open(s.path, BERT_BAD_FILE, "a FIFO");
    snprintf(link, sizeof link, "%s/loop", s.dir);
    cr_assert_eq(symlink("loop", link), 0);
    expect_open(link, BERT_IO, "cannot open");
    snprintf(link, sizeof link, "%s/dangling", s.dir);
    cr_assert_eq(symlink("missing", link), 0);
    expect_open(link, BERT_BAD_FILE, "a link to a file that does not exist");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/socket", s.dir);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    expect_open(address.sun_path, BERT_BAD_FILE, "not a regular file");
    close(fd);
    if (geteuid() != 0) {
        cr_assert_eq(chmod(scratch_path(&s, "file"), 0), 0);
        expect_open(s.path, BERT_IO, "Permission denied");
    }
    scratch_close(&s);
}

Test(source, nothing_stays_open) {
    scratch s;
    scratch_open(&s);
    scratch_write(&s, "file", "abc", 3);
    const int before = dup(0);
    for (int i = 0; i < 20; i++) {
        bert_source *source;
        cr_assert_eq(bert_source_open(&source, s.path, NULL), BERT_OK);
        bert_source_close(&source);
        cr_expect_eq(bert_source_open(&source, s.dir, NULL), BERT_BAD_FILE);
    }
    const int after = dup(0);
    cr_expect_eq(after, before + 1);
    close(before);
    close(after);
    scratch_close(&s);
}

static void read_inside(const bert_source *source, const char *expected, size_t len) {
    char bytes[64];
    bert_error err;
    cr_assert_eq(bert_source_size(source), len);
    for (size_t at = 0; at <= len; at++) {
        for (size_t n = 0; at + n <= len; n++) {
            cr_assert_eq(bert_source_read(source, at, bytes, n, &err), BERT_OK, "%s", err.text);
            cr_assert_eq(memcmp(bytes, expected + at, n), 0);
        }
        cr_expect_eq(bert_source_read(source, at, bytes, len - at + 1, NULL), BERT_INVALID_ARGUMENT);
    }
    cr_expect_eq(bert_source_read(source, len + 1, bytes, 0, NULL), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_source_read(source, UINT64_MAX, bytes, 1, NULL), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_source_read(source, 1, bytes, SIZE_MAX, NULL), BERT_INVALID_ARGUMENT);
    cr_expect_eq(bert_source_unchanged(source, NULL), BERT_OK);
}

Test(source, any_part_from_disk_and_from_memory) {
    static const char bytes[] = "0123456789abcdef";
    scratch s;
    scratch_open(&s);
    bert_source *source;
    cr_assert_eq(bert_source_open(&source, scratch_write(&s, "f", bytes, 16), NULL), BERT_OK);
    cr_expect_str_eq(bert_source_name(source), s.path);
    read_inside(source, bytes, 16);
    bert_source_close(&source);
    const bert_file file = {"built.in", bytes, 16}, empty = {"empty", NULL, 0};
    cr_assert_eq(bert_source_open_memory(&source, &file, NULL), BERT_OK);
    cr_expect_str_eq(bert_source_name(source), "built.in");
    read_inside(source, bytes, 16);
    bert_source_close(&source);
    cr_assert_eq(bert_source_open_memory(&source, &empty, NULL), BERT_OK);
    read_inside(source, bytes, 0);
    bert_source_close(&source);
    cr_expect_null(source);
    bert_source_close(&source);
    scratch_close(&s);
}

/* What happens to the file while it is open, and what then must be noticed. */
enum { CUT, OVERWRITTEN, APPENDED, REPLACED, DELETED, HAPPENINGS };

static void let_happen(int what, scratch *s) {
    char other[PATH_MAX + 8];
    snprintf(other, sizeof other, "%s/other", s->dir);
    usleep(20000); /* more than a tick of the clock that file times are taken from */
    if (what == CUT) cr_assert_eq(truncate(s->path, 5), 0);
    if (what == DELETED) cr_assert_eq(unlink(s->path), 0);
    if (what == REPLACED) {
        FILE *file = fopen(other, "w");
        fputs("0123456789", file);
        fclose(file);
        cr_assert_eq(rename(other, s->path), 0);
    }
    if (what == OVERWRITTEN || what == APPENDED) {
        const int fd = open(s->path, O_WRONLY | (what == APPENDED ? O_APPEND : 0));
        cr_assert_eq(write(fd, "x", 1), 1);
        close(fd);
    }
}

Test(source, changes_are_noticed) {
    for (int what = 0; what < HAPPENINGS; what++) {
        scratch s;
        char bytes[10];
        bert_source *source;
        bert_error err;
        scratch_open(&s);
        cr_assert_eq(bert_source_open(&source, scratch_write(&s, "f", "0123456789", 10), NULL), BERT_OK);
        let_happen(what, &s);
        const bert_status read = bert_source_read(source, 0, bytes, 10, &err);
        cr_expect_eq(read, what == CUT ? BERT_CHANGED : BERT_OK, "happening %d: %s", what, err.text);
        cr_expect_eq(bert_source_unchanged(source, &err), BERT_CHANGED, "happening %d", what);
        cr_expect(strstr(err.text, "changed while open") != NULL, "%s", err.text);
        bert_source_close(&source);
        scratch_close(&s);
    }
}

static void *read_often(void *arg) {
    for (unsigned i = 0; i < 3000; i++) {
        char bytes[100];
        const unsigned at = i * 37 % 156;
        if (bert_source_read(arg, at, bytes, 100, NULL) != BERT_OK) return arg;
        for (unsigned k = 0; k < 100; k++) {
            if ((unsigned char)bytes[k] != at + k) return arg;
        }
    }
    return NULL;
}

Test(source, threads_share_it) {
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++) bytes[i] = (unsigned char)i;
    scratch s;
    scratch_open(&s);
    bert_source *source;
    cr_assert_eq(bert_source_open(&source, scratch_write(&s, "f", bytes, 256), NULL), BERT_OK);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, read_often, source);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        cr_expect_null(failed);
    }
    bert_source_close(&source);
    scratch_close(&s);
}

Test(text, whole_and_terminated) {
    scratch s;
    scratch_open(&s);
    char *text = NULL;
    size_t len = 0;
    bert_error err;
    cr_assert_eq(bert_read_text(&text, &len, scratch_write(&s, "t", "a\0b", 3), 3, &err), BERT_OK);
    cr_expect(len == 3 && memcmp(text, "a\0b", 4) == 0);
    free(text);
    cr_assert_eq(bert_read_text(&text, &len, scratch_write(&s, "e", "", 0), 0, &err), BERT_OK);
    cr_expect(len == 0 && text[0] == '\0');
    free(text);
    cr_expect_eq(bert_read_text(&text, &len, scratch_path(&s, "t"), 2, &err), BERT_BAD_FILE);
    cr_expect(strstr(err.text, "3 bytes, the limit is 2") != NULL, "%s", err.text);
    cr_expect_eq(bert_read_text(&text, &len, scratch_path(&s, "no"), 2, &err), BERT_NOT_FOUND);
    cr_expect_eq(bert_read_text(&text, &len, s.dir, 1000, &err), BERT_BAD_FILE);
    scratch_write(&s, "sparse", "", 0);
    cr_assert_eq(truncate(s.path, (off_t)1 << 40), 0);
    cr_expect_eq(bert_read_text(&text, &len, s.path, 1 << 20, &err), BERT_BAD_FILE);
    scratch_close(&s);
}

static const char *const not_plain[] = {"",          ".",         "..",   "a/b", "../t", "/etc/passwd",
                                        "sub/../t.json", "a\\b", "t.json/", "..\\t.json"};

static void use_folder(const bert_folder *folder) {
    char *text = NULL;
    size_t len;
    bert_error err;
    bert_source *source;
    cr_expect_eq(bert_folder_has(folder, "t.json"), 1);
    cr_expect_eq(bert_folder_has(folder, "T.json"), 0);
    cr_assert_eq(bert_folder_text(folder, "t.json", 100, &text, &len, &err), BERT_OK, "%s", err.text);
    cr_expect(len == 2 && strcmp(text, "{}") == 0);
    free(text);
    cr_expect_eq(bert_folder_text(folder, "t.json", 1, &text, &len, &err), BERT_BAD_FILE);
    cr_expect_eq(bert_folder_text(folder, "missing", 100, &text, &len, &err), BERT_NOT_FOUND);
    cr_assert_eq(bert_folder_source(folder, "t.json", &source, &err), BERT_OK);
    cr_expect_eq(bert_source_size(source), 2u);
    bert_source_close(&source);
    for (size_t i = 0; i < sizeof not_plain / sizeof not_plain[0]; i++) {
        cr_expect_eq(bert_folder_has(folder, not_plain[i]), 0, "%s", not_plain[i]);
        cr_expect_eq(bert_folder_source(folder, not_plain[i], &source, &err), BERT_BAD_FILE, "%s", not_plain[i]);
        cr_expect_null(source);
    }
}

Test(folder, on_disk) {
    scratch s;
    scratch_open(&s);
    scratch_write(&s, "t.json", "{}", 2);
    scratch_write(&s, "sub/x", "", 0);
    use_folder(&(bert_folder){.dir = s.dir});
    char link[PATH_MAX + 8];
    snprintf(link, sizeof link, "%s/loop", s.dir);
    cr_assert_eq(symlink("loop", link), 0);
    cr_expect_eq(bert_folder_has(&(bert_folder){.dir = s.dir}, "loop"), 1, "there, though it cannot be opened");
    snprintf(link, sizeof link, "%s/dangling", s.dir);
    cr_assert_eq(symlink("missing", link), 0);
    cr_expect_eq(bert_folder_has(&(bert_folder){.dir = s.dir}, "dangling"), 1, "somebody put it there");
    scratch_close(&s);
}

Test(folder, in_memory) {
    const bert_file files[] = {{"a", "", 0}, {"t.json", "{}", 2}};
    use_folder(&(bert_folder){.files = files, .n = 2});
}
