# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenarios as dataclasses, for editors and type checkers. What is ``None`` is absent, and its default holds.

Written by tests/test_classes.py from the schema of scenarios.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

#: Work: ``"300 loops"``, ``"1us"``, ``{"exponential": "1us"}`` or ``{"uniform": ["1us", "3us"]}``.
Work: TypeAlias = str | Mapping[str, Any]


@dataclass(kw_only=True)
class Host:
    """The machine below the VMs."""

    #: pCPUs that vCPUs may use, from CPU 0 on; all of the host when absent. A whole number from 1 to 4096.
    cpus: int | None = None
    #: `pause_filter_count` of kvm_amd (PAUSEs), `ple_window` of kvm_intel (TSC cycles); KVM's default when absent. A whole
    #: number from 1 to 65535.
    ple_window: int | None = None
    #: `pause_filter_thresh` of kvm_amd, `ple_gap` of kvm_intel (cycles); KVM's default, 128, when absent. A whole number
    #: from 1 to 65535.
    ple_gap: int | None = None
    #: Whether the window stays as it is set (KVM's grow and shrink are 1) or KVM grows and resets it (2 and 0, its
    #: defaults). Default: false.
    ple_window_fixed: bool | None = None


@dataclass(kw_only=True)
class NoiseSource:
    """Something that happens on each pCPU, or to each thread, at random: the times between are exponential."""

    #: The mean time from one to the next. A time from 10us to 3600s.
    every: str
    #: How much CPU time it takes. A time such as "5us", { exponential = "5us" } or { uniform = ["1us", "9us"] }.
    lasts: Work


@dataclass(kw_only=True)
class NoiseRates:
    """How often and how long other things than vCPUs run. What is absent does not happen."""

    #: Interrupts of devices and softirqs of each pCPU, besides its tick: they delay whatever runs there.
    interrupts: NoiseSource | None = None
    #: Runs of the kernel thread that each pCPU has, such as its kworker: the scheduler chooses when.
    bound_threads: NoiseSource | None = None
    #: Runs of threads that may run on any pCPU, such as `rcu_preempt` or a VMM's; there are as many of these as pCPUs.
    unbound_threads: NoiseSource | None = None
    #: Time from the start of one vCPU thread to that of the next, in random order; 0: all start at once, VM after VM. A time
    #: such as "5us", { exponential = "5us" } or { uniform = ["1us", "9us"] }. Default: 0s.
    vcpu_start: Work | None = None


@dataclass(kw_only=True)
class LabSettings:
    """The host that `unspin lab` simulates below the VMs."""

    #: Host scheduler by name and version, as in "eevdf-6.6" or "cfs-4.13+debooster=paper"; "eevdf-7.2" when absent. Text of
    #: 1 to 128 of the characters A-Z a-z 0-9 . _ - + = , /.
    scheduler: str | None = None
    #: Steering policies of the scheduler "steer", as in "loan,slice=2ms", or "auto"; none when absent. Text of 1 to 128 of
    #: the characters A-Z a-z 0-9 . _ - + = , /.
    policy: str | None = None
    #: Who changes the window of pause-loop exits; "kvm" when absent, "fixed" with `host.ple_window_fixed`. Text of 1 to 128
    #: of the characters A-Z a-z 0-9 . _ - + = , /.
    window_control: str | None = None
    #: How many iterations the host tells guests with a pv page to spin before they halt or ask for help, as in "4096", or
    #: "apple", or "apple=64/64/512/4096" (step, least, first, most); nothing when absent. Text of 1 to 128 of the characters
    #: A-Z a-z 0-9 . _ - + = , /.
    spin_count: str | None = None
    #: Whom `kvm_vcpu_on_spin()` chooses; "kvm-7.2" when absent. Text of 1 to 128 of the characters A-Z a-z 0-9 . _ - + = ,
    #: /.
    candidates: str | None = None
    #: Which pCPUs share what; `host.cpus` (2 when that is absent, too) below one cache when absent. Sockets x caches of each
    #: x cores of each x threads of each, as in "2x4x8x2", of at most 4096 pCPUs.
    topology: str | None = None
    #: Whose pause-loop hardware. Default: amd.
    vendor: Literal["amd", "intel"] | None = None
    #: Strict boost: a vCPU that was sent a reschedule interrupt only is no receiver. Default: false.
    ignore_reschedules: bool | None = None
    #: eCS's extra schedule for guests with pv pages. Default: off.
    ecs: Literal["off", "paper", "give-back"] | None = None
    #: How much older the facts of steering policies are than they would be at best. A time from 0s to 1s. Default: 0s.
    facts_age: str | None = None
    #: How often one of these facts is unknown because its event was lost, parts per million. A whole number from 0 to
    #: 1000000. Default: 0.
    lost_ppm: int | None = None
    #: Steering policies' extra time ends at ticks only: a kernel without `scx_bpf_kick_cpu`. Default: false.
    tick_only: bool | None = None
    #: Time between two polls of a borrower that gives no pv pages; "200us", as in the BPF scheduler, when absent. A time
    #: from 1ns to 1s.
    poll_period: str | None = None
    #: How long a vCPU without work polls before it sleeps; 0: not at all. A time from 0s to 1s. Default: 0s.
    halt_poll: str | None = None
    #: Guest tasks on each vCPU; each does the scenario's iterations. A whole number from 1 to 64. Default: 1.
    guest_tasks: int | None = None
    #: A page that the host has to fetch is touched every so many iterations of a vCPU; 0: never. A whole number from 0 to
    #: 4294967295. Default: 0.
    page_fault_every_iterations: int | None = None
    #: How long the host fetches a page; "100us" when absent. A time from 1ns to 1s.
    page_fetch: str | None = None
    #: Whether the guest is notified meanwhile (`KVM_FEATURE_ASYNC_PF`) or its vCPU sleeps. Default: true.
    async_page_faults: bool | None = None
    #: Shootdowns leave out descheduled vCPUs (`KVM_FEATURE_PV_TLB_FLUSH`). Default: false.
    pv_tlb_flush: bool | None = None
    #: A vCPU that waits for an answer yields to a descheduled receiver (`KVM_FEATURE_PV_SCHED_YIELD`). Default: false.
    pv_sched_yield: bool | None = None
    #: Interrupts for several receivers take one hypercall (`KVM_FEATURE_PV_SEND_IPI`). Default: false.
    pv_send_ipi: bool | None = None
    #: Threads that use CPU time beside the VMs. A whole number from 0 to 4096. Default: 0.
    cpu_hogs: int | None = None
    #: What the host does besides running vCPUs: "idle" when absent. `off`, `idle`, `busy`, or a table with interrupts,
    #: bound_threads, unbound_threads or vcpu_start. Default: idle.
    host_noise: Literal["off", "idle", "busy"] | NoiseRates | None = None
    #: Whether the ticks of pCPUs are spread over half a period (the kernel's parameter `skew_tick=1`); otherwise all pCPUs
    #: tick at once. Default: false.
    skew_tick: bool | None = None
    #: Which tasks share a group of the host scheduler: those of a "vm", or each "vcpu" has a group of its own in its VM's,
    #: as libvirt does it. Default: vm.
    groups: Literal["vm", "vcpu"] | None = None
    #: `cpu.weight` of the VMs of each `[[vm]]`, in their order; 100, the kernel's default, when absent. An array with one
    #: value for each [[vm]]: a whole number from 1 to 10000. Default: [].
    weights: list[int] | None = None
    #: pCPUs of the VMs of each `[[vm]]`, in their order, as in "0-3,6"; all when absent. An array with one value for each
    #: [[vm]]: pCPUs below 4096, ascending, as in "0-3,6". Default: [].
    pins: list[str] | None = None
    #: Costs that differ from the lab's defaults, by name, in the unit that ends the name. A table of names and numbers, as
    #: in { switch_ns = 1200 }.
    costs: Mapping[str, int] | None = None


@dataclass(kw_only=True)
class Vm:
    """A group of equal VMs."""

    #: How many of them. A whole number from 1 to 1000. Default: 1.
    count: int | None = None
    #: vCPUs of each. A whole number from 1 to 64.
    vcpus: int
    #: The lock its vCPUs take.
    lock: Literal[
        "test_and_set",
        "test_and_test_and_set",
        "ticket",
        "preemptable_ticket",
        "paravirtual_ticket",
        "paravirtual_preemptable_ticket",
        "mcs",
        "clh",
        "qspinlock",
        "paravirtual_qspinlock",
        "helping",
        "helping_named",
        "rwlock",
        "mutex",
        "mutex_schdspin",
        "mutex_eschdspin",
        "rwsem",
        "rwsem_schdspin",
        "rwsem_eschdspin",
        "adaptive_mutex",
        "adaptive_rwlock",
    ]
    #: How many locks all vCPUs of a VM share (each iteration draws one), or "private": one for each vCPU. A whole number
    #: from 1 to 64, or "private". Default: 1.
    locks: int | Literal["private"] | None = None
    #: Work in user mode (CPL 3) of each iteration. Work such as "300 loops" or "6us" (units: loops, ns, us, ms, s), {
    #: exponential = "300 loops" } or { uniform = ["100 loops", "500 loops"] }. Default: 0 loops.
    user_work: Work | None = None
    #: Work in the guest kernel (CPL 0) outside the lock, of each iteration. Work such as "300 loops" or "6us" (units: loops,
    #: ns, us, ms, s), { exponential = "300 loops" } or { uniform = ["100 loops", "500 loops"] }. Default: 0 loops.
    kernel_work: Work | None = None
    #: Work in the guest kernel inside the lock, of each iteration. Work such as "300 loops" or "6us" (units: loops, ns, us,
    #: ms, s), { exponential = "300 loops" } or { uniform = ["100 loops", "500 loops"] }.
    hold: Work
    #: A TLB shootdown every so many iterations; 0: never. A whole number from 0 to 4294967295. Default: 0.
    shootdown_every_iterations: int | None = None
    #: A wake-up of a halted vCPU every so many iterations; 0: never. A whole number from 0 to 4294967295. Default: 0.
    wakeup_every_iterations: int | None = None
    #: The load changes each time so many milliseconds have passed: from the locks without shootdowns to a lock of each
    #: vCPU's own with shootdowns, and back; 0: both all the time. A whole number from 0 to 3600000. Default: 0.
    load_changes_every_ms: int | None = None
    #: Timer interrupts per second and vCPU. A whole number from 0 to 10000. Default: 250.
    tick_hz: int | None = None
    #: PAUSE at every so many iterations of a waiting loop. A whole number from 1 to 65536. Default: 1.
    pause_every_spins: int | None = None
    #: Waits of ground truth kept for each vCPU, 64 bytes each, 10 MiB for all vCPUs of a VM; 0: none. A whole number from 0
    #: to 4294967295. Default: 0.
    log_records: int | None = None
    #: Waits of fewer iterations of the waiting loop are left out of the log. A whole number from 0 to 4294967295. Default:
    #: 0.
    log_minimum_spins: int | None = None
    #: A vCPU that waits for a lock asks the host to run another one (the policy `helping`) each time it has waited so many
    #: iterations; 0: never. Above an ordinary wait, below one for a vCPU that has no pCPU (Friebel 2008). A whole number
    #: from 0 to 4294967295. Default: 0.
    help_after_spins: int | None = None
    #: Tasks of each vCPU, which share its time; at most 64 in a VM. A whole number from 1 to 8. Default: 1.
    tasks_per_vcpu: int | None = None
    #: Iterations that take the lock for reading, percent, in the workloads "readers-writers" and "read-a-file". A whole
    #: number from 0 to 100. Default: 0.
    reader_percent: int | None = None
    #: Whether PAUSE may exit; without, `KVM_CAP_X86_DISABLE_EXITS` is used. Default: true.
    pause_exits: bool | None = None
    #: Whether HLT exits. Default: true.
    halt_exits: bool | None = None
    #: Whether the guest publishes what it asks for, holds and waits for (`abi/guest/pv_page.h`). Default: false.
    pv_page: bool | None = None
    #: In whose memory these pv pages lie. Default: guest.
    pv_page_memory: Literal["guest", "map"] | None = None
    #: What the tasks do with their iterations. Default: iterations.
    workload: Literal["iterations", "readers-writers", "interrupts", "ping-pong", "read-a-file"] | None = None
    #: What of eCS the guest leaves out, to show what it is for. Default: none.
    ecs_ablation: Literal["none", "no-save"] | None = None


@dataclass(kw_only=True)
class Scenario:
    """What runs, on what host, for how long, from which seed."""

    #: A short name for tables; the file's stem when absent. Text of 1 to 64 of the characters A-Z a-z 0-9 . _ -.
    name: str | None = None
    #: Everything random follows from it. A whole number from 0 to 9223372036854775807. Default: 1.
    seed: int | None = None
    #: How long the run lasts. Either this or `iterations`. A time from 1ns to 86400s.
    duration: str | None = None
    #: What rates leave out at the beginning; shorter than `duration`, 0 when absent. A time from 0s to 86400s.
    warm_up: str | None = None
    #: The run ends when each vCPU has done so many iterations. A whole number from 1 to 4294967295.
    iterations: int | None = None
    #: The machine below the VMs.
    host: Host | None = None
    #: The host that `unspin lab` simulates; nobody else looks at it.
    lab: LabSettings | None = None
    #: Groups of equal VMs. At least one [[vm]] with `vcpus`, `lock` and `hold`.
    vm: list[Vm]
