// SPDX-License-Identifier: MIT OR Apache-2.0
// standard.cpp - the standard library's locks, which are pthread's: an exception of a cancelled thread passes through a wait.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::recursive_timed_mutex recursive;
static std::shared_timed_mutex shared;
static std::condition_variable condition;
static std::condition_variable_any any;
static bool waits, cleaned;
static long sum, shared_sum, turns;

struct notes_end {
	~notes_end()
	{
		cleaned = true;
	}
};

static void *wait_for_ever(void *)
{
	notes_end note;
	std::unique_lock lock(mutex);
	waits = true;
	for (;;)
		condition.wait(lock);
}

static void count(int number)
{
	for (int i = 0; i < 500; i++) {
		{
			std::lock_guard guard(mutex);
			sum++;
		}
		if (recursive.try_lock_for(std::chrono::seconds(10))) {
			std::scoped_lock both(recursive, mutex);
			sum++;
			recursive.unlock();
		}
		if (i % 4 == number % 4) {
			std::lock_guard guard(shared);
			shared_sum++;
		} else {
			std::shared_lock guard(shared);
		}
		std::unique_lock lock(mutex);
		turns++;
		any.notify_all();
		condition.wait_for(lock, std::chrono::microseconds(20), [] { return turns % 2 == 0; });
	}
}

int main()
{
	pthread_t thread;
	void *result = nullptr;
	std::vector<std::thread> threads;

	pthread_create(&thread, nullptr, wait_for_ever, nullptr);
	for (bool there = false; !there; std::this_thread::yield()) {
		std::lock_guard guard(mutex);
		there = waits;
	}
	pthread_cancel(thread);
	pthread_join(thread, &result);
	bool free = mutex.try_lock();
	if (free)
		mutex.unlock();
	for (int i = 0; i < 6; i++)
		threads.emplace_back(count, i);
	for (auto &one : threads)
		one.join();
	bool ok = result == PTHREAD_CANCELED && cleaned && free && sum == 6000 && shared_sum == 750 && turns == 3000;
	std::puts(ok ? "ok" : "lost");
	return ok ? 0 : 1;
}
