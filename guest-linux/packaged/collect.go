// SPDX-License-Identifier: GPL-2.0-only

// collect - the load "gc": workers of a Go program that answer requests out of memory that the collector has to clean up behind
// them. Each request builds a tree, puts it in the place of an older one of its worker and counts an older one's nodes; the
// collector runs whenever the heap has grown by a quarter, on as many threads as the machine has CPUs, and stops them all twice
// a cycle.
//
// Usage: collect WORKERS REQUESTS, 1..1000 and 1..1000000 requests of each worker; prints "Time: SECONDS", "requests: N",
// "p99: N us" and "max: N us" of the requests' latencies and "collections: N"; fails when a tree lost a node, or when
// there was nothing to collect.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	depth = 8  // 511 nodes of 24 bytes
	kept  = 32 // trees of each worker: 400 KB that the collector has to follow
)

type node struct {
	left, right *node
	value       int
}

func build(depth int) *node {
	if depth == 0 {
		return &node{value: 1}
	}
	return &node{build(depth - 1), build(depth - 1), 1}
}

func (tree *node) count() int {
	if tree == nil {
		return 0
	}
	return tree.value + tree.left.count() + tree.right.count()
}

// Answers requests; the latency of each goes to latencies.
func work(latencies []time.Duration) error {
	var trees [kept]*node
	for request := range latencies {
		begin := time.Now()
		trees[request%kept] = build(depth)
		// The one that is replaced next: the oldest.
		oldest := trees[(request+1)%kept]
		if count := oldest.count(); oldest != nil && count != 1<<(depth+1)-1 {
			return fmt.Errorf("a tree has %d nodes", count)
		}
		latencies[request] = time.Since(begin)
	}
	return nil
}

func number(at, most int) int {
	if len(os.Args) == 3 {
		if value, err := strconv.Atoi(os.Args[at]); err == nil && value >= 1 && value <= most {
			return value
		}
	}
	fmt.Fprintln(os.Stderr, "usage: collect WORKERS REQUESTS")
	os.Exit(2)
	return 0
}

func main() {
	workers, requests := number(1, 1_000), number(2, 1_000_000)
	debug.SetGCPercent(25)
	latencies := make([]time.Duration, workers*requests)
	failures := make([]error, workers)
	var all sync.WaitGroup
	begin := time.Now()
	for worker := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			failures[worker] = work(latencies[worker*requests : (worker+1)*requests])
		}()
	}
	all.Wait()
	took := time.Since(begin)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	for _, failure := range failures {
		if failure != nil {
			fmt.Fprintln(os.Stderr, "collect:", failure)
			os.Exit(1)
		}
	}
	if memory.NumGC == 0 {
		fmt.Fprintln(os.Stderr, "collect: nothing was collected; more requests are needed")
		os.Exit(1)
	}
	slices.Sort(latencies)
	rank := (len(latencies)*99 + 99) / 100
	fmt.Printf("requests: %d\np99: %.3f us\nmax: %.3f us\ncollections: %d\nTime: %.6f\n", len(latencies),
		microseconds(latencies[rank-1]), microseconds(latencies[len(latencies)-1]), memory.NumGC, took.Seconds())
}

func microseconds(latency time.Duration) float64 { return float64(latency.Nanoseconds()) / 1e3 }
