/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * task.c - tasks: a run queue for each vCPU, sleep and wake-up, and the context switch.
 *
 * A vCPU's run queue is a word with a bit for each of its tasks, which run in turn in the order of their bits. Other
 * vCPUs only set bits. A tick preempts a task at any instruction: the interrupt frame is copied to the task's own
 * stack, from where the task continues later (guest.S, preempted). Tasks that hold a spinning lock, or wait for one,
 * raise preempt_count. Tasks do not move to other vCPUs.
 */
#include "guest.h"
#include "../policy/classify/wakeup.h"

#define TASK_STACK_BYTES 4096u

struct task {
	unspin_u64 rsp;		  /* valid while it is switched out */
	unspin_u64 rsp0;	  /* stack on which user mode returns (VCPU_RSP0) */
	unspin_u32 number, place; /* in the VM; on its vCPU */
	/* Saved while it is switched out, as the next three fields are. */
	struct iteration_state iteration;
	unspin_u32 state, asking;
	struct saved_sections sections;
	unspin_u64 out_tsc, out_stolen_ns, out_spins; /* when it was switched out */
	/*
	 * Written by its waker: 1: its next sleep returns at once; time of the wake-up, and its vCPU's steal time then.
	 */
	unspin_u32 woken __attribute__((aligned(64)));
	unspin_u64 woken_tsc, woken_stolen_ns;
} __attribute__((aligned(64)));

static struct task tasks[UNSPIN_GUEST_TASKS_MAX];
/* Stacks of all tasks but the first of each vCPU, which uses the vCPU's. */
static unspin_u8 task_stacks[UNSPIN_GUEST_TASKS_MAX][TASK_STACK_BYTES] __attribute__((aligned(4096)));

/* guest.S: switches to another stack; the address where an interrupted task continues. */
void stack_switch(unspin_u64 *save_rsp, unspin_u64 load_rsp);
extern const unspin_u8 preempted[];

/* Task numbers: first the first tasks of all vCPUs, then the second ones, and so on. */
static struct task *task_of(const struct vcpu *self, unspin_u32 place)
{
	return &tasks[place * PARAMETERS->vcpus + self->number];
}

unspin_u32 task_number(const struct vcpu *self)
{
	return self->task->number;
}

/* Counts the time for which a task that waits for a lock was switched out: it did not spin then. */
static void count_time_out(struct vcpu *self, const struct task *task)
{
	if (!self->asking)
		return;
	self->statistics->lock_parked_cycles += rdtsc() - task->out_tsc;
	self->statistics->lock_parked_stolen_ns += steal_time_ns(self) - task->out_stolen_ns;
}

static void switch_out(struct vcpu *self, struct task *task)
{
	preemption_poll(self);
	task->iteration = self->iteration;
	task->out_spins = self->statistics->spin_count;
	task->rsp0 = self->task_state.rsp[0];
	task->state = self->statistics->state;
	task->asking = self->asking;
	sections_save(self, &task->sections);
}

/* Loads the task's state. Spins are counted per vCPU: those of other tasks meanwhile are excluded from its wait. */
static void switch_in(struct vcpu *self, struct task *task)
{
	self->task = task;
	self->iteration = task->iteration;
	wait_shift(self, self->statistics->spin_count - task->out_spins);
	self->task_state.rsp[0] = task->rsp0;
	self->asking = task->asking;
	sections_restore(self, &task->sections);
	set_state(self, task->state);
}

/* Halts until a task of this vCPU is runnable. Either task_wake() sees `parked`, or its bit is seen here. */
static unspin_u32 wait_for_work(struct vcpu *self)
{
	unspin_u32 runnable;

	while ((runnable = __atomic_load_n(&self->runnable, __ATOMIC_ACQUIRE)) == 0) {
		__atomic_exchange_n(&self->parked, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&self->runnable, __ATOMIC_ACQUIRE) == 0) {
			self->statistics->lock_halts++;
			vcpu_halt(self);
		}
		__atomic_store_n(&self->parked, 0, __ATOMIC_RELAXED);
	}
	return runnable;
}

/* Switches to the next task, which may be the same; returns when this task runs again. Called with interrupts off. */
static void schedule(struct vcpu *self)
{
	struct task *task = self->task, *next;
	unspin_u32 runnable, after;

	task->out_tsc = rdtsc();
	task->out_stolen_ns = steal_time_ns(self);
	self->preempt_count++;
	runnable = wait_for_work(self);
	__atomic_store_n(&self->need_switch, 0, __ATOMIC_RELAXED);
	after = runnable & ~1u << task->place;
	next = task_of(self, (unspin_u32)__builtin_ctz(after ? after : runnable));
	if (next != task) {
		self->statistics->task_switches++;
		switch_out(self, task);
		switch_in(self, next);
		stack_switch(&task->rsp, next->rsp);
	}
	self->preempt_count--;
	count_time_out(self, task);
}

/* Lets other tasks of this vCPU run. Called with interrupts on, where the task may be switched out. */
void task_yield(struct vcpu *self)
{
	interrupts_off();
	schedule(self);
	interrupts_on();
}

/* Called by guest.S on the stack of the interrupted task, with interrupts off. */
void task_preempted(void)
{
	schedule(this_vcpu());
}

/*
 * Switches to another task at the end of a tick, if one is runnable and preemption is on. The tick returns to *frame,
 * so this is replaced by a frame that leads to preempted (guest.S), and copied to the task's stack below its used part
 * (there is no red zone), so that the stack is aligned for the call after the registers are saved (72 bytes).
 */
void task_tick(struct vcpu *self, struct interrupt_frame *frame)
{
	unspin_u64 rsp = (frame->cs & 3) ? self->task_state.rsp[0] : frame->rsp;
	struct interrupt_frame *copy = (struct interrupt_frame *)(((rsp - sizeof(*frame)) & ~15ull) - 8);

	if (!self->task || (__atomic_load_n(&self->runnable, __ATOMIC_RELAXED) & ~(1u << self->task->place)) == 0)
		return;
	if (self->preempt_count) {
		__atomic_store_n(&self->need_switch, 1, __ATOMIC_RELAXED);
		return;
	}
	*copy = *frame;
	*frame = (struct interrupt_frame){
		.rip = (unspin_u64)preempted,
		.cs = SELECTOR_KERNEL_CODE,
		.rflags = RFLAGS_KERNEL_OFF,
		.rsp = (unspin_u64)copy,
		.ss = SELECTOR_KERNEL_DATA,
	};
}

/* Counts the wake-up latency of a task that was woken and runs now (ruling 23). */
static void count_wakeup(struct vcpu *self, const struct task *task)
{
	struct unspin_guest_statistics *statistics = self->statistics;
	struct unspin_wakeup wakeup = {
		.woken_tsc = task->woken_tsc,
		.woken_stolen_ns = task->woken_stolen_ns,
		.halt_end_tsc = self->halt_end_tsc,
		.halt_end_stolen_ns = self->halt_end_stolen_ns,
		.now_tsc = rdtsc(),
		.now_stolen_ns = steal_time_ns(self),
		.tsc_khz = statistics->tsc_khz,
	};
	struct unspin_wakeup_parts parts;

	unspin_wakeup_split(&wakeup, &parts);
	statistics->task_wakes++;
	histogram_add(&statistics->bww, parts.exit + parts.host + parts.guest);
	statistics->bww_exit_cycles += parts.exit;
	statistics->bww_host_cycles += parts.host;
	statistics->bww_guest_cycles += parts.guest;
}

/*
 * As platform_sleep(). `woken` is read after the bit is cleared: a concurrent wake-up has either set it before or sets
 * the bit again.
 */
void task_sleep(const struct platform_word *word, unspin_u32 value)
{
	struct vcpu *self = this_vcpu();
	struct task *task = self->task;
	unspin_u32 bit = 1u << task->place;

	interrupts_off();
	if (!__atomic_load_n(&task->woken, __ATOMIC_ACQUIRE) && platform_load_acquire(word) == value) {
		__atomic_fetch_and(&self->runnable, ~bit, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&task->woken, __ATOMIC_SEQ_CST)) {
			__atomic_fetch_or(&self->runnable, bit, __ATOMIC_SEQ_CST);
		} else {
			self->statistics->task_sleeps++;
			count_spin(self);
			schedule(self);
			count_wakeup(self, task);
		}
	}
	__atomic_exchange_n(&task->woken, 0, __ATOMIC_SEQ_CST);
	interrupts_on();
}

/* As platform_wake(). A number that is no task of this VM is ignored. */
void task_wake(unspin_u32 number)
{
	unspin_u32 vcpus = PARAMETERS->vcpus;
	struct vcpu *self = this_vcpu(), *other;
	struct task *task;

	if (number >= vcpus * PARAMETERS->tasks_per_vcpu)
		return;
	task = &tasks[number];
	other = vcpu_of(number % vcpus);
	if ((__atomic_load_n(&other->runnable, __ATOMIC_RELAXED) >> task->place & 1) == 0) {
		task->woken_stolen_ns = *(volatile unspin_u64 *)&other->steal_time.steal_ns;
		task->woken_tsc = rdtsc();
	}
	__atomic_exchange_n(&task->woken, 1, __ATOMIC_SEQ_CST);
	if ((__atomic_fetch_or(&other->runnable, 1u << task->place, __ATOMIC_SEQ_CST) >> task->place & 1) == 0)
		__atomic_store_n(&other->need_switch, 1, __ATOMIC_RELAXED);
	if (other != self && __atomic_load_n(&other->parked, __ATOMIC_ACQUIRE))
		vcpu_wake(self, other->number);
}

/* The body of all tasks but the first of each vCPU. */
static _Noreturn void task_main(void)
{
	struct vcpu *self = this_vcpu();

	self->preempt_count--;
	interrupts_on();
	iterations_run(self);
	interrupts_off();
	self->tasks_left--;
	task_wake(self->number);
	__atomic_fetch_and(&self->runnable, ~(1u << self->task->place), __ATOMIC_SEQ_CST);
	schedule(self);
	__builtin_unreachable();
}

/* Sets up a new task: stack_switch() pops six registers from its stack and returns to task_main. */
static void task_create(struct vcpu *self, struct task *task, unspin_u32 place)
{
	unspin_u64 *top = (unspin_u64 *)(task_stacks[task->number] + TASK_STACK_BYTES);

	top[-2] = (unspin_u64)task_main;
	task->rsp = (unspin_u64)&top[-8];
	task->iteration.random = random_start(PARAMETERS->seed, task->number);
	task->iteration.iterations_until_shootdown = PARAMETERS->shootdown_every_iterations;
	task->iteration.iterations_until_wakeup = PARAMETERS->wakeup_every_iterations;
	task->state = UNSPIN_STATE_KERNEL;
	self->runnable |= 1u << place;
}

/* Creates this vCPU's tasks, before its first iteration; the caller becomes the first task. */
void tasks_start(struct vcpu *self)
{
	for (unspin_u32 place = 0; place < PARAMETERS->tasks_per_vcpu; place++) {
		struct task *task = task_of(self, place);

		task->number = place * PARAMETERS->vcpus + self->number;
		task->place = place;
		if (place)
			task_create(self, task, place);
	}
	self->tasks_left = PARAMETERS->tasks_per_vcpu - 1;
	self->task = task_of(self, 0);
	__atomic_fetch_or(&self->runnable, 1, __ATOMIC_RELEASE);
}

/* Called by the first task after its iterations: waits until the vCPU's other tasks have done theirs. */
void tasks_finish(struct vcpu *self)
{
	static const struct platform_word nothing;

	while (*(volatile unspin_u32 *)&self->tasks_left)
		task_sleep(&nothing, 0);
}
