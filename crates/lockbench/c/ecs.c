/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ecs.c - what eCS's annotation costs (Kashyap et al. 2018, Table 4): empty sections of each class, without and with it.
 *
 * The spinlock is qspinlock, as Linux's is. Lock and annotation are inlined, as a kernel would have them.
 */
#include "driver.h"

#include "../../../locks/parts/ecs.h"
#include "../../../locks/mutex.h"
#include "../../../locks/qspinlock.h"
#include "../../../locks/parts/rcu.h"
#include "../../../locks/rwlock.h"
#include "../../../locks/rwsem.h"

#include <stdlib.h>

union ecs_object {
	struct qspinlock_lock spinlock;
	struct rwlock_lock rwlock;
	struct mutex_lock mutex;
	struct rwsem_lock rwsem;
	struct rcu rcu;
};

/* Annotated as locks/all.h does it; a borrowed CPU would be given back here, but nobody lends one to a thread. */
#define ECS_ROW(row, class, object, init_call, lock_call, unlock_call)                                                 \
	static void ecs_##row##_init(union ecs_object *all)                                                            \
	{                                                                                                              \
		init_call(&all->object);                                                                               \
	}                                                                                                              \
	static void ecs_##row##_plain(union ecs_object *all, unspin_u32 pairs)                                         \
	{                                                                                                              \
		while (pairs--) {                                                                                      \
			lock_call(&all->object);                                                                       \
			unlock_call(&all->object);                                                                     \
		}                                                                                                      \
	}                                                                                                              \
	static void ecs_##row##_annotated(union ecs_object *all, unspin_u32 pairs)                                     \
	{                                                                                                              \
		struct unspin_pv_page *pv_page = platform_pv_page();                                                   \
                                                                                                                       \
		/* As where it is a variable: the compiler must not know that it is not null. */                       \
		__asm__ volatile("" : "+r"(pv_page));                                                                  \
		while (pairs--) {                                                                                      \
			ecs_asks(pv_page);                                                                             \
			lock_call(&all->object);                                                                       \
			ecs_begins(pv_page, class);                                                                    \
			ecs_ends(pv_page, class);                                                                      \
			unlock_call(&all->object);                                                                     \
			if (ecs_released(pv_page))                                                                     \
				platform_help();                                                                       \
		}                                                                                                      \
	}

ECS_ROW(spinlock, UNSPIN_SECTION_SPIN, spinlock, qspinlock_init, qspinlock_lock, qspinlock_unlock)
ECS_ROW(rwlock_read, UNSPIN_SECTION_RWLOCK_READ, rwlock, rwlock_init, rwlock_read_lock, rwlock_read_unlock)
ECS_ROW(rwlock_write, UNSPIN_SECTION_RWLOCK_WRITE, rwlock, rwlock_init, rwlock_lock, rwlock_unlock)
ECS_ROW(mutex, UNSPIN_SECTION_MUTEX, mutex, mutex_init, mutex_lock, mutex_unlock)
ECS_ROW(rwsem_read, UNSPIN_SECTION_RWSEM_READ, rwsem, rwsem_init, rwsem_read_lock, rwsem_read_unlock)
ECS_ROW(rwsem_write, UNSPIN_SECTION_RWSEM_WRITE, rwsem, rwsem_init, rwsem_lock, rwsem_unlock)
ECS_ROW(rcu, UNSPIN_SECTION_RCU, rcu, rcu_init, rcu_read_lock, rcu_read_unlock)

#define ECS_ENTRY(row) {#row, ecs_##row##_init, ecs_##row##_plain, ecs_##row##_annotated}
static const struct {
	const char *name;
	void (*init)(union ecs_object *object);
	void (*plain)(union ecs_object *object, unspin_u32 pairs);
	void (*annotated)(union ecs_object *object, unspin_u32 pairs);
} ecs_rows[DRIVER_ECS_ROWS] = {
	ECS_ENTRY(spinlock),   ECS_ENTRY(rwlock_read), ECS_ENTRY(rwlock_write), ECS_ENTRY(mutex),
	ECS_ENTRY(rwsem_read), ECS_ENTRY(rwsem_write), ECS_ENTRY(rcu),
};

const char *driver_ecs_name(unspin_u32 row)
{
	return row < DRIVER_ECS_ROWS ? ecs_rows[row].name : 0;
}

void *driver_ecs_new(unspin_u32 row)
{
	unsigned long bytes = (sizeof(union ecs_object) + 63) / 64 * 64;
	union ecs_object *object = aligned_alloc(64, bytes);

	if (object)
		ecs_rows[row].init(object);
	return object;
}

void driver_ecs_free(void *object)
{
	free(object);
}

unspin_u64 driver_ecs_cycles(unspin_u32 row, void *object, unspin_u32 annotated, unspin_u32 pairs)
{
	unspin_u64 begin = driver_tsc();

	(annotated ? ecs_rows[row].annotated : ecs_rows[row].plain)(object, pairs);
	return driver_tsc() - begin;
}

unspin_u32 driver_ecs_left_over(void)
{
	const struct unspin_pv_page *pv_page = platform_pv_page();
	unspin_u32 sum = pv_page->critical | pv_page->non_preemptable_ecs_count | pv_page->preemptable_ecs_count;

	for (unspin_u32 i = 0; i < UNSPIN_SECTION_CLASSES; i++)
		sum |= pv_page->class_count[i];
	return sum;
}
