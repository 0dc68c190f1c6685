#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of tests/onnx/flow: branches, loops, scans and searches in the form of ONNX's backend suite, which
`kiln verify` reads.

    write_flow.py [DIR]

Each case has a model in ONNX's text form, sets of inputs, and a function that computes the outputs in numpy. What it
computes is compared with onnxruntime, and with the reference evaluator of the package onnx where that follows the
standard. That evaluator stacks by vstack, lacks the axes and directions of Scan, and refuses empty stacks. onnxruntime
refuses a scan without iterations. Python needs onnx, onnxruntime and numpy. Only files that differ are written again."""
import pathlib
import sys

import flow_searches
import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
HEAD_8 = '<ir_version: 3, opset_import: ["" : 8]>\n'
CASES = {}
POSITIVE = """zero = Constant <value = float {0}> ()
         first = Constant <value = int64[1] {0}> ()
         total = ReduceSum <keepdims = 0> (x)
         c = Greater (total, zero)"""


def f32(*shape):
    """Small numbers with few bits. Their sums are exact."""
    return (np.arange(np.prod(shape, dtype=int)) % 7 - 3).reshape(shape).astype(np.float32)


def i64(value):
    return np.array(value, np.int64)


def flag(value):
    return np.array(value, bool)


def stack(parts, shape, axis=0):
    return np.stack(parts, axis) if parts else np.zeros(shape, np.float32)


def case(*sets, reference=True, runtime=True, head=HEAD):
    """Registers a case: the function's text is its model, its results are the outputs. Each set is the inputs in order.
    @reference, @runtime: whether the package's evaluator and onnxruntime follow the standard here."""
    def register(function):
        CASES[function.__name__] = (head + function.__doc__.replace("POSITIVE", POSITIVE), function, sets, (reference, runtime))
        return function
    return register


@case((flag(True), f32(2, 3)), (flag(False), f32(2, 3)))
def if_shapes(c, x):
    """g (bool c, float[2,3] x) => (float[n,3] y, float[3] z) {
         one = Constant <value = int64[1] {1}> ()
         zero = Constant <value = int64[1] {0}> ()
         r = If (c) <
           then_branch = yes () => (float[4,3] t) { t = Concat <axis = 0> (x, x) },
           else_branch = no () => (float[1,3] e) { e = Slice (x, zero, one) }>
         y = Neg (r)
         z = ReduceSum <keepdims = 0> (r, zero)
       }"""
    r = np.concatenate([x, x]) if c else x[:1]
    return -r, r.sum(0)


@case((f32(2, 1),), (f32(2, 1) + 3,))
def if_ranks(x):
    """g (float[2,1] x) => (float y) {
         axis = Constant <value = int64[1] {1}> ()
         zero = Constant <value = float {0}> ()
         s = ReduceSum <keepdims = 0> (x)
         c = Greater (s, zero)
         r = If (c) <
           then_branch = yes () => (float[2,1] t) { t = Neg (x) },
           else_branch = no () => (float[2] e) { e = Squeeze (x, axis) }>
         q = Exp (r)
         y = ReduceSum <keepdims = 0> (q)
       }"""
    return np.exp(-x if x.sum() > 0 else x[:, 0]).sum(),


@case((i64(10), flag(True), f32(2, 2) + 1), (i64(2), flag(True), f32(2, 2) + 1), (i64(9), flag(False), f32(2, 2)))
def loop_exits_early(n, go, x):
    """g (int64 n, bool go, float[2,2] x) => (float[2,2] y, int64 count) {
         zero = Constant <value = int64 {0}> ()
         one = Constant <value = int64 {1}> ()
         limit = Constant <value = float {20}> ()
         y, count = Loop (n, go, x, zero) <
           body = b (int64 i, bool c, float[2,2] a, int64 k) => (bool more, float[2,2] s, int64 k1) {
             t = Abs (a)
             s = Add (a, t)
             sum = ReduceSum <keepdims = 0> (s)
             more = Less (sum, limit)
             k1 = Add (k, one)
           }>
       }"""
    count = 0
    while go and count < n:
        x = x + abs(x)
        go = x.sum() < 20
        count += 1
    return x, i64(count)


@case((i64(3), f32(1, 2)), (i64(0), f32(1, 2)), (i64(1), f32(3, 2)))
def loop_grows(n, x):
    """g (int64 n, float[k,2] x) => (float[m,2] y, float[1,2] sums) {
         go = Constant <value = bool {1}> ()
         axis = Constant <value = int64[1] {0}> ()
         y, sums = Loop (n, go, x, x) <
           body = b (int64 i, bool c, float[p,2] a, float[q,2] s) => (bool more, float[r,2] grown, float[1,2] t) {
             more = Identity (c)
             u = Cast <to = 1> (i)
             shifted = Add (x, u)
             grown = Concat <axis = 0> (a, shifted)
             t = ReduceSum <keepdims = 1> (grown, axis)
           }>
       }"""
    sums, y = x, x
    for i in range(n):
        y = np.concatenate([y, x + np.float32(i)])
        sums = y.sum(0, keepdims=True)
    return y, sums


@case((i64(3), f32(2, 3)), (i64(0), f32(2, 3)), (i64(-2), f32(2, 3)), reference=False)
def loop_stacks(n, x):
    """g (int64 n, float[2,3] x) => (float[2,3] last, float[n,2,3] all, float[n] sums, int64[n] numbers) {
         go = Constant <value = bool {1}> ()
         last, all, sums, numbers = Loop (n, go, x) <
           body = b (int64 i, bool c, float[2,3] a) => (bool more, float[2,3] s, float[2,3] v, float w, int64 k) {
             more = Identity (c)
             u = Cast <to = 1> (i)
             s = Add (a, u)
             v = Neg (s)
             w = ReduceSum <keepdims = 0> (s)
             k = Identity (i)
           }>
       }"""
    parts = []
    for i in range(n):
        x = x + np.float32(i)
        parts.append(x)
    return (x, -stack(parts, (0, 2, 3)), np.array([p.sum() for p in parts], np.float32),
            np.arange(len(parts), dtype=np.int64))


@case((i64(4), f32(3)), (i64(1), f32(3)), reference=False)
def loop_swaps(n, x):
    """g (int64 n, float[3] x) => (float[3] a, float[3] b, float[3] same, float[n,3] all) {
         go = Constant <value = bool {1}> ()
         y = Neg (x)
         a, b, same, all = Loop (n, go, x, y, x) <
           body = l (int64 i, bool c, float[3] p, float[3] q, float[3] r)
                    => (bool more, float[3] q1, float[3] p1, float[3] r1, float[3] s) {
             more = Identity (c)
             q1 = Identity (q)
             p1 = Identity (p)
             r1 = Identity (r)
             s = Sub (p, r)
           }>
       }"""
    a, b, parts = x, -x, []
    for _ in range(n):
        parts.append(a - x)
        a, b = b, a
    return a, b, x, stack(parts, (0, 3))


@case((f32(4),), (f32(4) + 3,))
def loop_while(x):
    """g (float[4] x) => (float[4] y) {
         limit = Constant <value = float {5}> ()
         half = Constant <value = float {0.5}> ()
         m = ReduceMax <keepdims = 0> (x)
         go = Less (m, limit)
         y = Loop ("", go, x) <
           body = b (int64 i, bool c, float[4] a) => (bool more, float[4] s) {
             s = Add (a, half)
             n = ReduceMax <keepdims = 0> (s)
             more = Less (n, limit)
           }>
       }"""
    while x.max() < 5:
        x = x + np.float32(0.5)
    return x,


@case((i64(3), i64([0, 2, 0, 5])), (i64(2), i64([0, 0, 0, 0])), (i64(4), i64([1, 2, 3, 4])))
def loop_counts(n, x):
    """g (int64 n, int64[4] x) => (int64[m] found, int64[4] last) {
         go = Constant <value = bool {1}> ()
         none = Constant <value = int64[1] {0}> ()
         flat = Constant <value = int64[1] {-1}> ()
         one = Constant <value = int64 {1}> ()
         found, last = Loop (n, go, none, x) <
           body = b (int64 i, bool c, int64[k] a, int64[4] v) => (bool more, int64[j] a1, int64[4] v1) {
             more = Identity (c)
             places = NonZero (v)
             row = Reshape (places, flat)
             a1 = Concat <axis = 0> (a, row)
             v1 = Sub (v, one)
           }>
       }"""
    found = i64([0])
    for _ in range(n):
        found = np.concatenate([found, np.flatnonzero(x)])
        x = x - 1
    return found, x


@case((i64(3), flag(True), f32(2)), (i64(3), flag(False), f32(2)), (i64(0), flag(True), f32(2)))
def nest(n, c, x):
    """g (int64 n, bool c, float[2] x) => (float[2] y, float[2] z) {
         go = Constant <value = bool {1}> ()
         one = Constant <value = int64 {1}> ()
         w = Neg (x)
         y = Loop (n, go, x) <
           body = outer (int64 i, bool g1, float[2] a) => (bool more, float[2] r) {
             more = Identity (g1)
             m = Add (a, w)
             odd = Equal (i, one)
             take = Or (odd, c)
             r = If (take) <
               then_branch = yes () => (float[2] t) {
                 trips = Add (i, one)
                 t = Loop (trips, g1, m) <
                   body = inner (int64 j, bool g2, float[2] b) => (bool on, float[2] d) {
                     on = Identity (g2)
                     last = Equal (j, i)
                     d = If (last) <
                       then_branch = p () => (float[2] e) { e = Sub (b, x) },
                       else_branch = q () => (float[2] f) { f = Add (b, a) }>
                   }>
               },
               else_branch = no () => (float[2] u) { u = Add (m, x) }>
           }>
         z = Add (y, w)
       }"""
    w, a = -x, x
    for i in range(n):
        m = a + w
        if i == 1 or c:
            for j in range(i + 1):
                m = m - x if j == i else m + a
        else:
            m = m + x
        a = m
    return a, a + w


@case((f32(2), f32(3, 2), f32(2, 3)), reference=False)
def scan_axes(s, x, y):
    """g (float[2] s, float[3,2] x, float[2,3] y) => (float[2] last, float[2,3] sums, float[3,2] rows, float[3] dots) {
         last, sums, rows, dots = Scan <
           num_scan_inputs = 2, scan_input_axes = [0, -1], scan_input_directions = [0, 1],
           scan_output_axes = [1, -2, 0], scan_output_directions = [0, 1, 1],
           body = b (float[2] a, float[2] p, float[2] q) => (float[2] t, float[2] u, float[2] v, float w) {
             t = Add (a, p)
             u = Identity (t)
             v = Sub (q, p)
             pq = Mul (p, q)
             w = ReduceSum <keepdims = 0> (pq)
           }> (s, x, y)
       }"""
    sums, rows, dots = [], [], []
    for p, q in zip(x, y.T[::-1]):
        s = s + p
        sums.append(s)
        rows.insert(0, q - p)
        dots.insert(0, (p * q).sum())
    return s, np.stack(sums, 1), np.stack(rows), np.array(dots, np.float32)


@case((f32(2), f32(0, 2)), reference=False, runtime=False)
def scan_of_nothing(s, x):
    """g (float[2] s, float[n,2] x) => (float[2] last, float[2,n] sums) {
         last, sums = Scan <num_scan_inputs = 1, scan_output_axes = [1],
           body = b (float[2] a, float[2] p) => (float[2] t, float[2] u) { t = Add (a, p)  u = Identity (t) }> (s, x)
       }"""
    sums = []
    for p in x:
        s = s + p
        sums.append(s)
    return s, stack(sums, (2, 0), 1)


@case((i64(2), f32(3, 2)), (i64(0), f32(3, 2)), reference=False)
def scan_in_loop(n, x):
    """g (int64 n, float[3,2] x) => (float[2] last, float[n,3,2] all) {
         go = Constant <value = bool {1}> ()
         zero = Constant <value = float[2] {0, 0}> ()
         last, all = Loop (n, go, zero) <
           body = outer (int64 i, bool c, float[2] a) => (bool more, float[2] s, float[3,2] v) {
             more = Identity (c)
             u = Cast <to = 1> (i)
             s, v = Scan <num_scan_inputs = 1, scan_input_directions = [1],
               body = inner (float[2] p, float[2] q) => (float[2] t, float[2] w) {
                 qu = Add (q, u)
                 t = Add (p, qu)
                 w = Sub (t, a)
               }> (a, x)
           }>
       }"""
    a, parts = np.zeros(2, np.float32), []
    for i in range(n):
        p, rows = a, []
        for q in x[::-1]:
            p = p + q + np.float32(i)
            rows.append(p - a)
        a = p
        parts.append(np.stack(rows))
    return a, stack(parts, (0, 3, 2))


@case((i64(3), i64(5), f32(2, 2)), (i64(4), i64(1), f32(1, 2)), (i64(0), i64(2), f32(3, 2)))
def names_of_siblings(n, m, x):
    """g (int64 n, int64 m, float[k,2] x) => (float s, float t, float[j,2] z) {
         go = Constant <value = bool {1}> ()
         "r.x" = Loop (n, go, x) <
           body = b (int64 i, bool c, float[p,2] "a.b") => (bool more, float[q,2] grown) {
             more = Identity (c)
             grown = Concat <axis = 0> ("a.b", x)
           }>
         r_x = Loop (m, go, x) <
           body = b (int64 i, bool c, float[p,2] a_b) => (bool more, float[q,2] grown) {
             more = Identity (c)
             grown = Concat <axis = 0> (a_b, x)
           }>
         s = ReduceSum <keepdims = 0> ("r.x")
         t = ReduceSum <keepdims = 0> (r_x)
         z = Concat <axis = 0> ("r.x", r_x)
       }"""
    r = [np.concatenate([x] * (int(count) + 1)) for count in (n, m)]
    return r[0].sum(), r[1].sum(), np.concatenate(r)


@case((i64(3), i64(5), f32(2, 2)), (i64(2), i64(0), f32(1, 2)))
def names_of_nest(n, m, x):
    """g (int64 n, int64 m, float[k,2] x) => (float[j,2] y, float s) {
         go = Constant <value = bool {1}> ()
         axis = Constant <value = int64[1] {0}> ()
         y = Loop (n, go, x) <
           body = outer (int64 i, bool c, float[p,2] "a.b") => (bool more, float[q,2] grown) {
             more = Identity (c)
             r = Loop (m, go, x) <
               body = inner (int64 k1, bool c1, float[p1,2] a_b) => (bool on, float[q1,2] longer) {
                 on = Identity (c1)
                 sum = ReduceSum <keepdims = 1> ("a.b", axis)
                 longer = Concat <axis = 0> (a_b, sum)
               }>
             grown = Concat <axis = 0> ("a.b", r)
           }>
         s = ReduceSum <keepdims = 0> (y)
       }"""
    y = x
    for _ in range(n):
        y = np.concatenate([y, x, *(y.sum(0, keepdims=True) for _ in range(m))])
    return y, y.sum()


@case((f32(2, 3),), (f32(2, 3) + 3,), (f32(2, 3),))
def if_rank_output(x):
    """g (float[2,3] x) => (float[] y, float[] z, float s) {
         POSITIVE
         y = If (c) <
           then_branch = yes () => (float[2,3] t) { t = Neg (x) },
           else_branch = no () => (float[3] e) { e = ReduceSum <keepdims = 0> (x, first) }>
         z = Exp (y)
         s = ReduceSum <keepdims = 0> (z)
       }"""
    y = -x if x.sum() > 0 else x.sum(0)
    return y, np.exp(y), np.exp(y).sum()


@case((f32(2, 3),), (f32(2, 3) + 3,), (f32(2, 3) + 1,))
def if_rank_pairs(x):
    """g (float[2,3] x) => (float[] y, float s) {
         POSITIVE
         ten = Constant <value = float {10}> ()
         d = Greater (total, ten)
         a = If (c) <
           then_branch = yes () => (float[2,3] t) { t = Neg (x) },
           else_branch = no () => (float[3] e) { e = ReduceSum <keepdims = 0> (x, first) }>
         b = If (d) <
           then_branch = yes2 () => (float[1,2,3] t2) { t2 = Unsqueeze (x, first) },
           else_branch = no2 () => (float[2,3] e2) { e2 = Abs (x) }>
         y = Add (a, b)
         s = ReduceSum <keepdims = 0> (y)
       }"""
    a = -x if x.sum() > 0 else x.sum(0)
    y = a + (x[None] if x.sum() > 10 else abs(x))
    return y, y.sum()


@case((f32(2, 3),), (f32(2, 3) + 3,))
def if_rank_shapes(x):
    """g (float[2,3] x) => (float[] y, int64[n] z, float[k] w, float s) {
         POSITIVE
         one = Constant <value = float {1}> ()
         zeroth = Constant <value = int64 {0}> ()
         all = Constant <value = int64[1] {-1}> ()
         r = If (c) <
           then_branch = yes () => (float[2,3] t) { t = Neg (x) },
           else_branch = no () => (float[3] e) { e = ReduceSum <keepdims = 0> (x, first) }>
         z = Shape (r)
         y = Expand (one, z)
         m = Gather (z, zeroth)
         size = Unsqueeze (m, first)
         row = Expand (one, size)
         flat = Reshape (r, all)
         w = Concat <axis = 0> (row, flat)
         s = ReduceSum <keepdims = 0> (y)
       }"""
    r = -x if x.sum() > 0 else x.sum(0)
    y = np.ones(r.shape, np.float32)
    return y, np.array(r.shape, np.int64), np.concatenate([np.ones(r.shape[0], np.float32), r.ravel()]), y.sum()


@case((f32(2, 3), i64(2)), (f32(2, 3) + 3, i64(3)), (f32(2, 3) + 1, i64(0)))
def if_rank_nest(x, n):
    """g (float[2,3] x, int64 n) => (float s, float[] y, float t) {
         POSITIVE
         go = Constant <value = bool {1}> ()
         ten = Constant <value = float {10}> ()
         d = Greater (total, ten)
         r = If (c) <
           then_branch = yes () => (float[] p) {
             p = If (d) <
               then_branch = yes2 () => (float[1,2,3] t2) { t2 = Unsqueeze (x, first) },
               else_branch = no2 () => (float[2,3] e2) { e2 = Abs (x) }>
           },
           else_branch = no () => (float[3] e) { e = ReduceSum <keepdims = 0> (x, first) }>
         v = ReduceSum <keepdims = 0> (r)
         w = Exp (v)
         y = Mul (r, w)
         s = Loop (n, go, zero) <
           body = b (int64 i, bool c0, float a) => (bool m, float q) {
             m = Identity (c0)
             part = ReduceSum <keepdims = 0> (r)
             q = Add (a, part)
           }>
         t = Sub (w, v)
       }"""
    r = (x[None] if x.sum() > 10 else abs(x)) if x.sum() > 0 else x.sum(0)
    w = np.exp(r.sum())
    return np.float32(n * r.sum()), r * w, w - r.sum()


@case((f32(4, 3) - 1,), (f32(4, 3) + 1,), (f32(4, 3) - 3,), reference=False)
def if_rank_in_loop(x):
    """g (float[4,3] x) => (float s, float[4] y) {
         n = Constant <value = int64 {4}> ()
         go = Constant <value = bool {1}> ()
         first = Constant <value = int64[1] {0}> ()
         zero = Constant <value = float {0}> ()
         s, y = Loop (n, go, zero) <
           body = b (int64 i, bool c0, float a) => (bool m, float q, float p) {
             m = Identity (c0)
             row = Gather (x, i)
             total = ReduceSum <keepdims = 0> (row)
             c = Greater (total, zero)
             r = If (c) <
               then_branch = yes () => (float[1,3] t) { t = Unsqueeze (row, first) },
               else_branch = no () => (float[3] e) { e = Abs (row) }>
             d = MatMul (r, row)
             p = ReduceSum <keepdims = 0> (d)
             q = Add (a, p)
           }>
       }"""
    parts = np.array([(row if row.sum() > 0 else abs(row)) @ row for row in x])
    return parts.sum(), parts


@case((f32(3), i64(2)), (f32(3) + 2, i64(0)), (f32(3) + 1, i64(3)), reference=False)
def loop_ranks(x, n):
    """g (float[3] x, int64 n) => (float[] y, float s, float[m] t) {
         go = Constant <value = bool {1}> ()
         one = Constant <value = float {1}> ()
         first = Constant <value = int64[1] {0}> ()
         y, t = Loop (n, go, x) <
           body = b (int64 i, bool c0, float[] a) => (bool m, float[] q, float p) {
             m = Identity (c0)
             more = Add (a, one)
             q = Unsqueeze (more, first)
             p = ReduceSum <keepdims = 0> (a)
           }>
         s = ReduceSum <keepdims = 0> (y)
       }"""
    sums = [x.sum() + 3 * i for i in range(n)]
    y = (x + np.float32(n)).reshape((1,) * int(n) + (3,))
    return y, y.sum(), np.array(sums, np.float32)


@case((f32(3), i64(2)), (f32(3) + 2, i64(0)), (f32(3) + 1, i64(5)), reference=False)
def loop_ranks_swap(x, n):
    """g (float[3] x, int64 n) => (float[] y, float[] z, float[j] u, float s) {
         go = Constant <value = bool {1}> ()
         zero = Constant <value = float {0}> ()
         wide = Constant <value = float[2,1] {1, 2}> ()
         w = Mul (x, wide)
         y, z, s = Loop (n, go, x, w, zero) <
           body = b (int64 i, bool c0, float[] a, float[] d, float sum) => (bool m, float[] p, float[] q, float r) {
             m = Identity (c0)
             p = Neg (d)
             total = ReduceSum <keepdims = 0> (sum)
             big = Greater (total, zero)
             q = If (big) <
               then_branch = yes () => (float[] t) { t = ReduceMax <keepdims = 0> (a) },
               else_branch = no () => (float[] e) { e = Abs (a) }>
             part = ReduceSum <keepdims = 0> (p)
             r = Add (sum, part)
           }>
         flat = Constant <value = int64[1] {-1}> ()
         v = Reshape (z, flat)
         u = Exp (v)
       }"""
    y, z, s = x, x * np.array([[1], [2]], np.float32), np.float32(0)
    for _ in range(n):
        y, z, s = -z, np.asarray(y.max() if s > 0 else abs(y)), s + -z.sum()
    return y, z, np.exp(z.ravel()), s


@case((flag(True), i64(3), f32(4)), (flag(False), i64(2), f32(5)))
def names_in_branches(c, n, x):
    """g (bool c, int64 n, float[k] x) => (float s, float t, float[j] y) {
         go = Constant <value = bool {1}> ()
         r = If (c) <
           then_branch = yes () => (float[l] t) {
             u = Loop (n, go, x) <
               body = b (int64 i, bool c0, float[p] v) => (bool m, float[q] w) {
                 m = Identity (c0)
                 w = Concat <axis = 0> (v, x)
               }>
             t = Neg (u)
           },
           else_branch = no () => (float[l] t) {
             u = Loop (n, go, x) <
               body = b (int64 i, bool c0, float[p] v) => (bool m, float[q] w) {
                 m = Identity (c0)
                 w = Concat <axis = 0> (v, x, x)
               }>
             t = Abs (u)
           }>
         u = Loop (n, go, r) <
           body = b (int64 i, bool c0, float[p] v) => (bool m, float[q] w) {
             m = Identity (c0)
             w = Concat <axis = 0> (v, r)
           }>
         s = ReduceSum <keepdims = 0> (r)
         t = ReduceSum <keepdims = 0> (u)
         y = Concat <axis = 0> (u, r)
       }"""
    r = -np.concatenate([x] * (int(n) + 1)) if c else abs(np.concatenate([x] * (2 * int(n) + 1)))
    u = np.concatenate([r] * (int(n) + 1))
    return r.sum(), u.sum(), np.concatenate([u, r])


@case((f32(2, 6),), (f32(2, 6) - 2,), reference=False)
def scan_counts(x):
    """g (float[2,6] x) => (float[2] y) {
         flat = Constant <value = int64[1] {-1}> ()
         y = Scan <num_scan_inputs = 1, body = b (float[6] t) => (float k) {
           u = Relu (t)
           places = NonZero (u)
           row = Reshape (places, flat)
           v = Gather (t, row)
           k = ReduceSum <keepdims = 0> (v)
         }> (x)
       }"""
    return np.maximum(x, 0).sum(1),


def scan_batches(lengths, s, x, y):
    """The Scan of opset 8 with a state, x scanned forward and y backward."""
    last, sums, others = s.copy(), np.zeros_like(x), np.zeros(x.shape[:2], np.float32)
    for b, n in enumerate(lengths):
        for i in range(n):
            p, q = x[b, i], y[b, n - 1 - i]
            last[b] += p * q
            sums[b, i], others[b, i] = last[b], (p - q).sum()
    return last, sums, others


@case((f32(3, 2), f32(3, 4, 2), f32(3, 4, 2) + 1), (f32(1, 2), f32(1, 2, 2), f32(1, 2, 2)), reference=False, head=HEAD_8)
def scan_8(s, x, y):
    """g (float[b,2] s, float[b,n,2] x, float[b,n,2] y) => (float[b,2] last, float[b,n,2] sums, float[b,n] others) {
         last, sums, others = Scan <num_scan_inputs = 2, directions = [0, 1],
           body = b (float[2] a, float[2] p, float[2] q) => (float[2] t, float[2] u, float w) {
             pq = Mul (p, q)
             t = Add (a, pq)
             u = Identity (t)
             d = Sub (p, q)
             w = ReduceSum <keepdims = 0> (d)
           }> ("", s, x, y)
       }"""
    return scan_batches([x.shape[1]] * len(x), s, x, y)


@case((i64([2, 4, 1]), f32(3, 2), f32(3, 4, 2), f32(3, 4, 2) + 1), (i64([1]), f32(1, 2), f32(1, 3, 2), f32(1, 3, 2)),
      (i64([3, 3]), f32(2, 2), f32(2, 3, 2), f32(2, 3, 2) - 1), reference=False, head=HEAD_8)
def scan_8_lengths(lengths, s, x, y):
    """g (int64[b] lengths, float[b,2] s, float[b,n,2] x, float[b,n,2] y)
             => (float[b,2] last, float[b,n,2] sums, float[b,n] others) {
         last, sums, others = Scan <num_scan_inputs = 2, directions = [0, 1],
           body = b (float[2] a, float[2] p, float[2] q) => (float[2] t, float[2] u, float w) {
             pq = Mul (p, q)
             t = Add (a, pq)
             u = Identity (t)
             d = Sub (p, q)
             w = ReduceSum <keepdims = 0> (d)
           }> (lengths, s, x, y)
       }"""
    return scan_batches(lengths, s, x, y)


@case((i64([2, 1]), f32(2, 3, 2)), (i64([4]), f32(1, 4, 2)), reference=False, head=HEAD_8)
def scan_8_backward(lengths, x):
    """g (int64[b] lengths, float[b,n,2] x) => (float[b,n,2] y) {
         y = Scan <num_scan_inputs = 1, directions = [1], body = b (float[2] p) => (float[2] q) { q = Neg (p) }> (lengths, x)
       }"""
    y = np.zeros_like(x)
    for b, n in enumerate(lengths):
        y[b, :n] = -x[b, :n][::-1]
    return y,


for name, (function, *sets) in flow_searches.CASES.items():
    CASES[name] = (flow_searches.HEAD + flow_searches.texts_of(function), function, sets, (False, name not in flow_searches.NOT_DEFINED))


def same(found, expected):
    return len(found) == len(expected) and all(
        np.asarray(a).dtype == b.dtype and np.shape(a) == b.shape and np.allclose(a, b, 1e-6, 0)
        for a, b in zip(found, expected))


def check(name, model, names, inputs, expected, judges):
    makers = (ReferenceEvaluator, lambda model: onnxruntime.InferenceSession(model.SerializeToString()))
    for judge, make, label in zip(judges, makers, ("the reference evaluator", "onnxruntime")):
        found = make(model).run(None, dict(zip(names, inputs))) if judge else expected
        if not same(found, expected):
            sys.exit(f"{name}: {label} has other results: {found}, expected {expected}")


def write(path, message):
    data = message.SerializeToString(deterministic=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def check_model(model):
    """The checker asks for a shape of each output, which an output of any rank has not."""
    shaped = onnx.ModelProto()
    shaped.CopyFrom(model)
    for value in shaped.graph.output:
        value.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(shaped)


def main(folder):
    for name, (text, function, sets, judges) in CASES.items():
        model = onnx.parser.parse_model(text)
        check_model(model)
        write(folder / name / "model.onnx", model)
        names = [value.name for value in model.graph.input]
        for number, inputs in enumerate(sets):
            expected = [np.asarray(value) for value in function(*inputs)]
            check(f"{name}, set {number}", model, names, inputs, expected, judges)
            data = folder / name / f"test_data_set_{number}"
            for i, value in enumerate(inputs):
                write(data / f"input_{i}.pb", numpy_helper.from_array(value, names[i]))
            for i, value in enumerate(expected):
                write(data / f"output_{i}.pb", numpy_helper.from_array(value, model.graph.output[i].name))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "flow"))
