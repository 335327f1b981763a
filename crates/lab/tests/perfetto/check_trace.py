# SPDX-License-Identifier: MIT OR Apache-2.0
"""Decodes traces with Perfetto's own protobuf classes and checks them. Usage: check_trace.py FILE...

Each FILE is a trace; FILE.json beside it says how many things of each kind are in it. Prints one line for each trace,
"FILE: ok" or what is wrong with it. Exit status 0 when all are ok, 1 otherwise."""

import json
import sys
from collections import Counter

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


class Wrong(Exception):
    """What is wrong with a trace."""


def require(truth, what):
    if not truth:
        raise Wrong(what)


def ascending(trace):
    """Times never go back within a sequence of packets, nor within what a pCPU's bundles hold together."""
    last = {}

    def at(key, time):
        require(time >= last.get(key, 0), f"{key}: {time} ns after {last.get(key)} ns")
        last[key] = time

    for packet in trace.packet:
        require(packet.trusted_packet_sequence_id, "a packet without a sequence")
        if packet.HasField("track_event"):
            at(packet.trusted_packet_sequence_id, packet.timestamp)
        for event in packet.ftrace_events.event:
            at(packet.trusted_packet_sequence_id, event.timestamp)
            at(("pCPU", packet.ftrace_events.cpu), event.timestamp)


def switches(trace, found):
    """On each pCPU the one who leaves is the one who came, from idle to idle; nobody is on two; all have names."""
    threads = {thread.tid: thread.name for packet in trace.packet for thread in packet.process_tree.threads}
    processes = {process.pid for packet in trace.packet for process in packet.process_tree.processes}
    for packet in trace.packet:
        for thread in packet.process_tree.threads:
            require(thread.tgid in processes, f"thread {thread.tid} of no process")
    events = []
    for packet in trace.packet:
        for event in packet.ftrace_events.event:
            events.append((event.timestamp, packet.ftrace_events.cpu, event))
    running = Counter()
    for time, cpu, event in sorted(events, key=lambda one: one[:2]):
        if event.HasField("sched_waking"):
            found["wakings"] += 1
            require(event.sched_waking.comm == threads.get(event.sched_waking.pid), f"{time}: unknown task woken")
            continue
        require(event.HasField("sched_switch"), f"{time}: neither switch nor waking")
        switch = event.sched_switch
        require(running[cpu] == switch.prev_pid, f"{time}: {switch.prev_pid} leaves pCPU {cpu}, {running[cpu]} runs")
        for pid, comm in ((switch.prev_pid, switch.prev_comm), (switch.next_pid, switch.next_comm)):
            require(comm == (threads.get(pid) if pid else f"swapper/{cpu}"), f"{time}: {pid} is called {comm}")
        if switch.prev_pid:
            found["switch_outs"] += 1
            found[{0: "yielded", 1: "slept", 0x100: "preempted"}[switch.prev_state]] += 1
        if switch.next_pid:
            found["switch_ins"] += 1
        running[cpu] = switch.next_pid
    require(not any(running.values()), f"still running at the end: {running}")
    require(found["switch_ins"] == found["switch_outs"], "a switch without its pair")
    overlap(events)


def overlap(events):
    """No task runs on two pCPUs at once: its slices, taken from all pCPUs, do not overlap."""
    slices, begun = {}, {}
    for time, cpu, event in sorted(events, key=lambda one: one[:2]):
        if event.HasField("sched_switch"):
            if event.sched_switch.prev_pid:
                pid = event.sched_switch.prev_pid
                slices.setdefault(pid, []).append((begun.pop((cpu, pid)), time))
            begun[cpu, event.sched_switch.next_pid] = time
    for pid, spans in slices.items():
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            require(end <= begin, f"{pid} runs on two pCPUs at {begin} ns")


def tracks(trace, found):
    """Every event is on a track that was described before; no lane has two slices at once, and all end."""
    described, open_slices = {}, {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            require(descriptor.uuid not in described, f"track {descriptor.uuid} described twice")
            parent = descriptor.parent_uuid
            require(not parent or parent in described, f"track {descriptor.uuid} below an unknown one")
            described[descriptor.uuid] = descriptor
        if not packet.HasField("track_event"):
            continue
        event, track = packet.track_event, packet.track_event.track_uuid
        require(track in described, f"{packet.timestamp}: an event on an unknown track")
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            require(track not in open_slices, f"{packet.timestamp}: two slices at once on {described[track].name}")
            require(event.name, f"{packet.timestamp}: a slice without a name")
            open_slices[track] = event.name
            found[{"wait": "waits", "hold": "holds"}.get(event.name.split(" ")[0], "other_slices")] += 1
            if described[track].name.startswith("interrupts"):
                found["interrupts"] += 1
        elif event.type == TrackEvent.TYPE_SLICE_END:
            require(track in open_slices, f"{packet.timestamp}: an end without a begin on {described[track].name}")
            del open_slices[track]
        elif event.type == TrackEvent.TYPE_COUNTER:
            require(described[track].HasField("counter"), f"{packet.timestamp}: a value on a track of slices")
            require(event.counter_value >= 0, f"{packet.timestamp}: {described[track].name} below 0")
        else:
            require(event.type == TrackEvent.TYPE_INSTANT, f"{packet.timestamp}: type {event.type}")
            found["instants"] += 1
    require(not open_slices, f"{len(open_slices)} slices have no end")


def flows(trace, found):
    """Every arrow has one begin and one end, not before it."""
    begins = {}
    for packet in trace.packet:
        event = packet.track_event
        for flow in event.flow_ids:
            require(flow not in begins, f"arrow {flow} begins twice")
            begins[flow] = (packet.timestamp, event)
        for flow in event.terminating_flow_ids:
            require(flow in begins, f"arrow {flow} ends without a begin")
            time, begin = begins.pop(flow)
            require(time <= packet.timestamp, f"arrow {flow} ends before it begins")
            handover = begin.type == TrackEvent.TYPE_SLICE_END
            # With a lock that is not fair the one who let go may be the next.
            require(handover or begin.track_uuid != event.track_uuid, f"arrow {flow} leads to its own track")
            found["handovers" if handover else "ipis"] += 1
    require(not begins, f"arrows without an end: {sorted(begins)}")


def check(name):
    with open(name, "rb") as file:
        trace = Trace.FromString(file.read())
    found = Counter()
    ascending(trace)
    switches(trace, found)
    tracks(trace, found)
    flows(trace, found)
    with open(name + ".json", encoding="utf-8") as file:
        for what, expected in json.load(file).items():
            require(found[what] == expected, f"{expected} {what} expected, {found[what]} found")


def main():
    status = 0
    for name in sys.argv[1:]:
        try:
            check(name)
            print(f"{name}: ok")
        except Wrong as wrong:
            print(f"{name}: {wrong}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
