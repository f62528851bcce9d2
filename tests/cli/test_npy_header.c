/* The header of npy files, written and read; CRC-32 against its published check value. */
#include <criterion/criterion.h>
#include <string.h>

#include "output/npy_header.h"
#include "output/zip.h"

Test(npy_header, round_trip) {
    static const size_t shapes[][3] = {{0, 0, 0}, {7, 0, 0}, {3, 40, 0}, {2, 22, 384}};
    for (int rank = 0; rank <= 3; rank++) {
        buffer b = {0};
        npy_header h;
        npy_header_add(&b, "<f4", shapes[rank], rank);
        cr_assert_eq(b.len % 64, 0);
        cr_assert_null(npy_header_read(&h, b.data, b.len));
        cr_assert(h.kind == 'f' && h.size == 4 && h.rank == rank && h.length == b.len);
        for (int i = 0; i < rank; i++) cr_assert_eq(h.dim[i], shapes[rank][i]);
        for (size_t n = 0; n < b.len; n++) cr_assert_not_null(npy_header_read(&h, b.data, n), "cut to %zu", n);
        buffer_close(&b);
    }
}

static const char *read(const char *dict) {
    static char file[400];
    npy_header h;
    size_t n = strlen(dict);
    memcpy(file, "\x93NUMPY\x01", 8);
    file[8] = (char)n;
    file[9] = 0;
    memcpy(file + 10, dict, n);
    return npy_header_read(&h, file, n + 10);
}

Test(npy_header, refuses) {
    cr_assert_null(read("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }"));
    cr_assert_null(read("{'descr': '|u1', 'fortran_order': True, 'shape': (2,), }"));
    cr_assert_null(read("{'descr': '<i8', 'fortran_order': False, 'shape': (), }"));
    static const char *const bad[] = {"",
                                      "{}",
                                      "{'descr': '<i8', 'fortran_order': False}",
                                      "{'descr': '>i8', 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': '<i3', 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': '<i8', 'fortran_order': True, 'shape': (2, 3), }",
                                      "{'descr': '<i8', 'fortran_order': False, 'shape': (-2,), }",
                                      "{'descr': '<i8', 'fortran_order': False, 'shape': (x,), }",
                                      "{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
                                      "{'descr': '<i8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
                                      "{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': '<i8x', 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': '<i4294967304', 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': '<i', 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': '<",
                                      "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3",
                                      "{'descr': '<i8', 'fortran_order': False, 'shape': (2, -3), }",
                                      "{'descr': '<i8', 'fortran_order': False, 'shape': (2, +3), }",
                                      "{'descr': '<i8', 'shape': (2,), }",
                                      "{'descr': '<i8', 'fortran_order': 0, 'shape': (2,), }"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) cr_expect_not_null(read(bad[i]), "%s", bad[i]);
}

Test(zip, crc) {
    cr_assert_eq(crc32_add(0, "123456789", 9), 0xCBF43926); /* the check value of CRC-32/ISO-HDLC */
    unsigned char bytes[100];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 37);
    for (size_t cut = 0; cut <= sizeof bytes; cut++)
        cr_assert_eq(crc32_add(crc32_add(0, bytes, cut), bytes + cut, sizeof bytes - cut), crc32_add(0, bytes, 100));
}
