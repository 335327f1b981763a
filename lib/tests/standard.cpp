// SPDX-License-Identifier: MIT OR Apache-2.0
// standard.cpp - every class of unspin/locks.hpp under the standard library's lock types. Says "ok", or ends with an error.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include <unspin/locks.hpp>

namespace
{
constexpr int threads = 2;
constexpr long rounds = 20;

void check(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "%s\n", what);
	std::exit(1);
}

template <class Work> void together(Work work)
{
	std::vector<std::thread> all;
	for (int i = 0; i < threads; i++)
		all.emplace_back(work);
	for (auto &one : all)
		one.join();
}

// BasicLockable and Lockable: the expressions of [thread.req.lockable].
template <class Lock> void lockable(const char *name)
{
	static_assert(!std::is_copy_constructible_v<Lock> && !std::is_move_constructible_v<Lock>);
	static_assert(std::is_nothrow_default_constructible_v<Lock>);
	static_assert(std::is_same_v<decltype(std::declval<Lock &>().try_lock()), bool>);
	static Lock lock, other; // initialised at compile time: constexpr
	long sum = 0;

	together([&] {
		for (long i = 0; i < rounds; i++) {
			std::lock_guard guard(lock);
			sum++;
		}
	});
	together([&] {
		for (long i = 0; i < rounds; i++) {
			std::scoped_lock both(other, lock); // std::lock's way out of a deadlock: try_lock
			sum++;
		}
	});
	check(sum == 2 * threads * rounds, name);
	std::unique_lock guard(lock, std::try_to_lock);
	check(guard.owns_lock() && lock.is_locked() && !lock.try_lock(), name);
	guard.unlock();
	check(!lock.is_locked() && lock.native_handle() != nullptr, name);
}

// Two threads throw a ball, with std::condition_variable_any.
template <class Lock> void ball(const char *name)
{
	Lock lock;
	std::condition_variable_any turned;
	long turn = 0;
	auto play = [&](long me) {
		std::unique_lock guard(lock);
		for (long i = 0; i < 20; i++) {
			turned.wait(guard, [&] { return turn % 2 == me; });
			turn++;
			turned.notify_all();
		}
	};
	std::thread first(play, 0), second(play, 1);

	first.join();
	second.join();
	check(turn == 40, name);
}

template <class Lock> void shared(const char *name)
{
	Lock lock;
	long sum = 0, wrong = 0;

	{
		std::shared_lock one(lock);
		std::shared_lock two(lock, std::try_to_lock);
		check(two.owns_lock() && !lock.try_lock(), name);
	}
	together([&] {
		for (long i = 0; i < rounds; i++) {
			{
				std::unique_lock guard(lock);
				sum += 2;
			}
			std::shared_lock guard(lock);
			if (sum % 2 != 0)
				wrong++;
		}
	});
	check(sum == 2 * threads * rounds && wrong == 0, name);
	lockable<Lock>(name);
	ball<Lock>(name);
}

template <class Lock> void exclusive(const char *name)
{
	lockable<Lock>(name);
	ball<Lock>(name);
}
} // namespace

int main()
{
	exclusive<unspin::test_and_test_and_set>("test_and_test_and_set");
	exclusive<unspin::ticket>("ticket");
	exclusive<unspin::preemptable_ticket>("preemptable_ticket");
	exclusive<unspin::mcs>("mcs");
	exclusive<unspin::qspinlock>("qspinlock");
	exclusive<unspin::helping>("helping");
	exclusive<unspin::paravirtual_ticket>("paravirtual_ticket");
	exclusive<unspin::paravirtual_preemptable_ticket>("paravirtual_preemptable_ticket");
	exclusive<unspin::paravirtual_qspinlock>("paravirtual_qspinlock");
	exclusive<unspin::mutex>("mutex");
	exclusive<unspin::linux_mutex>("linux_mutex");
	shared<unspin::rwlock>("rwlock");
	shared<unspin::rwsem>("rwsem");
	std::puts("ok");
}
