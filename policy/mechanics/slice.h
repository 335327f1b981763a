/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * slice.h - a slice that is passed on: how long it lasts, which task pays for it, which task continues it.
 *
 * The task with the least virtual time begins a slice of its own. Policies may have others of its VM run in it: that changes which
 * task runs, never when the slice ends nor which task is charged. So a slice that is passed on buys its VM no CPU time: what
 * others run in it is a debt of the task that began it. A grant alone lasts beyond the end of a slice: once, within its budget, and
 * never passed on.
 *
 * Threads are numbers from 1 on; 0 is none. Times are ns of one clock, less than 2^63 apart. Callable from anywhere. Ours: loans
 * are no part of the papers (docs/loan.md).
 */
#ifndef UNSPIN_POLICY_MECHANICS_SLICE_H
#define UNSPIN_POLICY_MECHANICS_SLICE_H

#include "virtual_time.h"

/* On which time a task runs. */
enum unspin_borrow_kind {
	UNSPIN_BORROWS_NOTHING = 0, /* its own slice, or the rest of another's for good */
	UNSPIN_BORROWS_LOAN = 1,    /* another's slice, for a budget: then the lender continues */
	UNSPIN_BORROWS_GRANT = 2,   /* after the end of its slice, for a budget */
};

/* What is left of a slice, or of a budget, that ends then; 0: it is over. */
UNSPIN_PURE unspin_u64 unspin_slice_left(unspin_u64 end_ns, unspin_u64 now_ns)
{
	return unspin_before(now_ns, end_ns) ? end_ns - now_ns : 0;
}

/* For how long a task runs that is let run in a slice of which so much is left: to its end, a loan for its budget at most. */
UNSPIN_PURE unspin_u64 unspin_slice_length(unspin_u64 left_ns, unspin_u32 borrow_kind, unspin_u32 budget_ns)
{
	/* 1 ns lasts until the next tick, where a slice ends whichever task runs. */
	if (!left_ns)
		left_ns = 1;
	return borrow_kind == UNSPIN_BORROWS_LOAN && left_ns > budget_ns ? budget_ns : left_ns;
}

/* The thread that pays when `self` passes on the slice in which it runs; `payer`: that pays for it so far, 0: self. */
UNSPIN_PURE unspin_u32 unspin_slice_payer(unspin_u32 payer, unspin_u32 self)
{
	return payer ? payer : self;
}

/*
 * The thread that continues after whom `self` passes the slice on to, 0: none. `lends`: on loan, otherwise for good; `lender`: that
 * was to continue after self. The first lender gets the slice back, not a borrower that lends on.
 */
UNSPIN_PURE unspin_u32 unspin_slice_lender(unspin_u32 lender, unspin_u32 self, _Bool lends)
{
	if (!lends)
		return 0;
	return lender ? lender : self;
}

/*
 * Whether the lender of a slice continues it, once the loan is over and so much is left. After the slice's end it would run to the
 * next tick, and if it lent again by then the tick would find its borrower: such slices lasted for 58 ms.
 */
UNSPIN_PURE _Bool unspin_slice_returns(unspin_u64 left_ns)
{
	return left_ns != 0;
}

/*
 * What is done of a decision about a task that spins (on_yield, on_help) on time of that kind. A grant is not passed on, only given
 * back: the next task could be granted time at the next tick, and so on. Guests that spun where they said that they were
 * critical kept all CPUs for 5 s like that, until the kernel's watchdog removed the scheduler.
 */
UNSPIN_PURE struct unspin_decision unspin_within_slice(unspin_u32 borrow_kind, struct unspin_decision decision)
{
	_Bool passes_on = decision.action == UNSPIN_DIRECT || decision.action == UNSPIN_LEND;

	return borrow_kind == UNSPIN_BORROWS_GRANT && passes_on ? unspin_decide(UNSPIN_GIVE_BACK, 0) : decision;
}

/* Whether policies are asked to grant time (on_slice_end) to a task whose time of that kind is over: once, and no borrower. */
UNSPIN_PURE _Bool unspin_may_be_granted(unspin_u32 borrow_kind)
{
	return borrow_kind == UNSPIN_BORROWS_NOTHING;
}

#endif
