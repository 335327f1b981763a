/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * versions.c - a program that was linked with the oldest versions of the functions that libc has for x86-64, and a library that
 * it loads at run time, linked with today's, use the same objects. Compiled a second time with -DPLUGIN as that library.
 * Usage: versions PLUGIN.so; says "ok".
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

struct objects {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	int turn;
	long passed;
};

#define ROUNDS 2000

#ifndef PLUGIN
__asm__(".symver pthread_cond_init,pthread_cond_init@GLIBC_2.2.5");
__asm__(".symver pthread_cond_wait,pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_broadcast,pthread_cond_broadcast@GLIBC_2.2.5");
__asm__(".symver pthread_cond_destroy,pthread_cond_destroy@GLIBC_2.2.5");
#endif

/* Takes every second turn. */
static void take_turns(struct objects *objects, int own)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&objects->mutex);
		while (objects->turn != own)
			pthread_cond_wait(&objects->condition, &objects->mutex);
		objects->turn = !own;
		objects->passed++;
		pthread_cond_broadcast(&objects->condition);
		pthread_mutex_unlock(&objects->mutex);
	}
}

#ifdef PLUGIN
void *plugin_run(void *objects)
{
	take_turns(objects, 1);
	return 0;
}
#else
int main(int count, char **arguments)
{
	static struct objects objects = {.mutex = PTHREAD_MUTEX_INITIALIZER};
	void *plugin = count > 1 ? dlopen(arguments[1], RTLD_NOW) : 0;
	void *(*run)(void *) = plugin ? (void *(*)(void *))dlsym(plugin, "plugin_run") : 0;
	pthread_t thread;

	if (!run) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	pthread_cond_init(&objects.condition, 0);
	pthread_create(&thread, 0, run, &objects);
	take_turns(&objects, 0);
	pthread_join(thread, 0);
	pthread_cond_destroy(&objects.condition);
	printf("%s\n", objects.passed == 2 * ROUNDS ? "ok" : "lost");
	return 0;
}
#endif
