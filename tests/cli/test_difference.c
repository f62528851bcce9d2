/* How far apart two numbers are, where one of them is none. */
#include <criterion/criterion.h>
#include <math.h>

#include "difference.h"

Test(difference, the_sums_of_what_is_finite) {
    difference d = {0};
    difference_add(&d, 5, 1);
    difference_add(&d, NAN, 1);
    difference_add(&d, -2, 1);
    cr_expect(d.count == 3 && d.not_finite == 1 && d.squares == 25 && d.largest == 4);
}

Test(difference, infinities_and_nan) {
    static const struct {
        double x, truth;
        size_t not_finite;
    } pairs[] = {{NAN, NAN, 1},  {NAN, 0, 1},           {0, NAN, 1},           {INFINITY, INFINITY, 0}, {0, INFINITY, 1},
                 {INFINITY, 0, 1}, {-INFINITY, INFINITY, 1}, {INFINITY, NAN, 1}, {-INFINITY, -INFINITY, 0}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        difference d = {0};
        difference_add(&d, pairs[i].x, pairs[i].truth);
        cr_expect(d.count == 1 && d.not_finite == pairs[i].not_finite && d.largest == 0 && d.squares == 0, "pair %zu", i);
    }
}
