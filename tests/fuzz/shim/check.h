/* SPDX-License-Identifier: BSD-3-Clause */
/* Check's assertions for fuzzers, where no runner is there to report to: a failure is a crash. */
#pragma once

#include <stdlib.h>

typedef struct Suite Suite;

#define ck_assert(cond)          ((cond) ? (void)0 : abort())
#define ck_assert_msg(cond, ...) ck_assert(cond)
#define ck_abort_msg(...)        abort()
#define ck_assert_int_eq(a, b)   ck_assert((a) == (b))
#define ck_assert_int_ge(a, b)   ck_assert((a) >= (b))
#define ck_assert_uint_eq(a, b)  ck_assert((a) == (b))
#define ck_assert_uint_ge(a, b)  ck_assert((a) >= (b))
#define ck_assert_ptr_nonnull(p) ck_assert((p) != NULL)
#define ck_assert_ptr_null(p)    ck_assert((p) == NULL)
