// SPDX-License-Identifier: MIT OR Apache-2.0
//
// unspin/locks.hpp - the locks of unspin/locks.h as C++17 classes: each is Lockable, rwlock and rwsem are SharedLockable too.
// So std::lock_guard, std::unique_lock, std::scoped_lock, std::shared_lock and std::condition_variable_any take them.
//
// A lock of static storage is initialised at compile time. It is neither copied nor moved. No function throws.
#ifndef UNSPIN_LOCKS_HPP
#define UNSPIN_LOCKS_HPP

#include "locks.h"

#define UNSPIN_CLASS_BEGIN(name, NAME)                                                                                 \
	class name                                                                                                     \
	{                                                                                                              \
	      public:                                                                                                  \
		using native_handle_type = unspin_##name *;                                                            \
		constexpr name() noexcept : native_ UNSPIN_##NAME##_INIT                                               \
		{                                                                                                      \
		}                                                                                                      \
		name(const name &) = delete;                                                                           \
		name &operator=(const name &) = delete;                                                                \
		void lock() noexcept                                                                                   \
		{                                                                                                      \
			unspin_##name##_lock(&native_);                                                                \
		}                                                                                                      \
		[[nodiscard]] bool try_lock() noexcept                                                                 \
		{                                                                                                      \
			return unspin_##name##_trylock(&native_);                                                      \
		}                                                                                                      \
		void unlock() noexcept                                                                                 \
		{                                                                                                      \
			unspin_##name##_unlock(&native_);                                                              \
		}                                                                                                      \
		[[nodiscard]] bool is_locked() const noexcept                                                          \
		{                                                                                                      \
			return unspin_##name##_is_locked(&native_);                                                    \
		}                                                                                                      \
		native_handle_type native_handle() noexcept                                                            \
		{                                                                                                      \
			return &native_;                                                                               \
		}

#define UNSPIN_CLASS_READERS(name)                                                                                     \
	void lock_shared() noexcept                                                                                    \
	{                                                                                                              \
		unspin_##name##_read_lock(&native_);                                                                   \
	}                                                                                                              \
	[[nodiscard]] bool try_lock_shared() noexcept                                                                  \
	{                                                                                                              \
		return unspin_##name##_read_trylock(&native_);                                                         \
	}                                                                                                              \
	void unlock_shared() noexcept                                                                                  \
	{                                                                                                              \
		unspin_##name##_read_unlock(&native_);                                                                 \
	}

#define UNSPIN_CLASS_END(name)                                                                                         \
      private:                                                                                                         \
	unspin_##name native_;                                                                                         \
	}                                                                                                              \
	;

#define UNSPIN_CLASS(name, NAME)                                                                                       \
	UNSPIN_CLASS_BEGIN(name, NAME)                                                                                 \
	UNSPIN_CLASS_END(name)
#define UNSPIN_SHARED_CLASS(name, NAME)                                                                                \
	UNSPIN_CLASS_BEGIN(name, NAME)                                                                                 \
	UNSPIN_CLASS_READERS(name)                                                                                     \
	UNSPIN_CLASS_END(name)

namespace unspin
{
UNSPIN_CLASS(test_and_test_and_set, TEST_AND_TEST_AND_SET)
UNSPIN_CLASS(ticket, TICKET)
UNSPIN_CLASS(preemptable_ticket, PREEMPTABLE_TICKET)
UNSPIN_CLASS(mcs, MCS)
UNSPIN_CLASS(qspinlock, QSPINLOCK)
UNSPIN_CLASS(helping, HELPING)
UNSPIN_CLASS(mutex, MUTEX)
UNSPIN_CLASS(paravirtual_ticket, PARAVIRTUAL_TICKET)
UNSPIN_CLASS(paravirtual_preemptable_ticket, PARAVIRTUAL_PREEMPTABLE_TICKET)
UNSPIN_CLASS(paravirtual_qspinlock, PARAVIRTUAL_QSPINLOCK)
UNSPIN_CLASS(linux_mutex, LINUX_MUTEX)
UNSPIN_SHARED_CLASS(rwlock, RWLOCK)
UNSPIN_SHARED_CLASS(rwsem, RWSEM)
} // namespace unspin

#undef UNSPIN_CLASS_BEGIN
#undef UNSPIN_CLASS_READERS
#undef UNSPIN_CLASS_END
#undef UNSPIN_CLASS
#undef UNSPIN_SHARED_CLASS

#endif
