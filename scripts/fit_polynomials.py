#!/usr/bin/env python3
"""Fits the polynomials of src/kernels/polynomials.h and prints them. Needs numpy and mpmath.

Minimax by Lawson's iteration (reweighted least squares on Chebyshev points); the coefficients are rounded to
float32 one by one from the constant upwards, and the rest is fitted again to what the rounding left.
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 40


def lawson(x, target, weight, powers):
    scale = np.abs(x).max()
    basis = np.stack([(x / scale) ** p for p in powers], 1)
    importance = np.full(len(x), 1 / len(x))
    best_error, best = np.inf, None
    for _ in range(200):
        root = np.sqrt(importance) * weight
        c = np.linalg.lstsq(basis * root[:, None], target * root, rcond=1e-18)[0]
        error = np.abs((basis @ c - target) * weight)
        if error.max() < best_error:
            best_error, best = error.max(), c
        importance = importance * (error + 1e-300)
        importance /= importance.sum()
    return best / scale ** np.array(powers, dtype=float)


def fit(function, weight, low, high, degree):
    points = 800
    x = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * points)) for i in range(points)]
    wide = lambda values: np.array([np.longdouble(mp.nstr(v, 25)) for v in values])
    rest, w, x = wide([function(t) for t in x]), wide([weight(t) for t in x]), wide(x)
    coefficients = []
    for power in range(degree + 1):
        c = lawson(x.astype(float), rest.astype(float), w.astype(float), range(power, degree + 1))
        coefficients.append(np.float32(c[0]))
        rest = rest - np.longdouble(coefficients[-1]) * x ** power
    return coefficients, float(np.abs(rest * w).max())


def show(name, result):
    coefficients, error = result
    print(f"/* weighted error of the fit: {error:.1e} */")
    parts = [float(c).hex().split("p") for c in coefficients]
    digits = [f"{mantissa.rstrip('0')}p{exponent}f" for mantissa, exponent in parts]
    print(f"static const float {name}[] = {{{', '.join(digits)}}};")


half_ln2 = mp.log(2) / 2 * mp.mpf("1.002")
upper = lambda a: mp.erfc(a / mp.sqrt(2)) / 2  # Φ(−a)
root_tanh = lambda u: mp.tanh(mp.sqrt(u)) / mp.sqrt(u)
show("EXP_POLY", fit(lambda r: (mp.e**r - 1 - r) / r**2, lambda r: r * r / mp.e**r, -half_ln2, half_ln2, 4))
# Weighted for the relative error of x·Φ(x) at x = a; the constant keeps some accuracy in the tail of the other side.
show("GELU_POLY", fit(lambda a: mp.log(upper(a)), lambda a: upper(a) / upper(-a) + mp.mpf("1e-3"),
                      mp.mpf(0), mp.mpf(6), 10))
show("TANH_POLY", fit(lambda u: (root_tanh(u) - 1) / u, lambda u: u / root_tanh(u), mp.mpf("1e-6"), mp.mpf("0.4"), 4))
