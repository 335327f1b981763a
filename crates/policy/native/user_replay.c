/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * user_replay.c - replays logged decisions with a user policy. Reads records of struct unspin_decision_record from
 * standard input; writes '=' for each whose decision and memory are the same to the bit, else '!'. Exit status 1 if the
 * input is cut.
 */
#include <stdio.h>
#include <string.h>

#include "steering/policies.h"

static int is_same(const struct unspin_decision_record *record)
{
	struct unspin_policy_memory memory = record->before;
	struct unspin_decision decision;

	return policies_replay(record, &memory, &decision) && !memcmp(&decision, &record->decision, sizeof(decision)) &&
	       !memcmp(&memory, &record->after, sizeof(memory));
}

int main(void)
{
	struct unspin_decision_record record;
	size_t bytes;

	while ((bytes = fread(&record, 1, sizeof(record), stdin)) == sizeof(record))
		putchar(is_same(&record) ? '=' : '!');
	return bytes != 0 || ferror(stdin) || fflush(stdout) != 0;
}
