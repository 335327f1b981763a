// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that ask, claim and yield without end. Beside them nobody loses anything: not a share, not a VM, not the scheduler.

use std::{
    fs,
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use unspin_abi as abi;
use unspin_agent::Steerer;

use super::{
    checks::{counter, still_there},
    helping,
    observer_vms::run_for,
    raw_vm::{DATA, HINT_BYTES, Program, run},
    vms::{fighting, steer},
};

const VCPUS: u64 = 4;
const VICTIMS: u64 = 2;
/// Nobody is further ahead or behind than two slices and a tick, some 15 ms: below 2 % of a victim's part of this.
const MEASURED: Duration = Duration::from_millis(1_800);
/// Off by so much of their fair share at most.
const TOLERANCE: f64 = 0.02;
/// The same of the long form, five times, each from another seed of the machine's.
const LONG: Duration = Duration::from_secs(30);
const LONG_TOLERANCE: f64 = 0.01;
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What runs in a boot of its own.
pub static CHECKS: [(&str, fn()); 3] = [
    (
        "help_drains_what_kvm_cannot",
        helping::help_drains_what_kvm_cannot,
    ),
    (
        "a_slice_lasts_what_it_says",
        helping::a_slice_lasts_what_it_says,
    ),
    (
        "nobody_loses_beside_a_hostile_guest",
        nobody_loses_beside_a_hostile_guest,
    ),
];

/// What this binary does when it is started as `hostile KIND`.
pub fn child() {
    let words: Vec<String> = std::env::args().skip(1).take(2).collect();
    if let [word, kind] = &words[..] {
        if word == "hostile" {
            guest(kind);
        }
    }
}

/// Guests that do something wrong.
struct Kind {
    name: &'static str,
    /// What is on beside it.
    policies: &'static str,
    /// The counter that shows that it did, more than 100 times.
    shows: &'static str,
    /// What is said of it, in part; empty: nothing, it wastes its own time only.
    named: &'static str,
}

const LOANS: &str = "loan,loan-cpl,kernel-exit,helping,directed-yield";
const GRANTS: &str = "ecs,ecs-give-back,loan,helping,debooster-ancestor";

/// The first so many are in `make test`, all of them in the long form.
const SHORT: usize = 4;

static KINDS: [Kind; 7] = [
    Kind {
        name: "hypercalls",
        policies: LOANS,
        shows: "hint_failures",
        named: "no page of its memory",
    },
    Kind {
        name: "help",
        policies: LOANS,
        shows: "helped",
        named: "",
    },
    Kind {
        name: "critical",
        policies: LOANS,
        shows: "lent",
        // It spins: most of its loans end by its next yield, not by the clock, and the rule does not see it.
        named: "",
    },
    Kind {
        name: "yields",
        policies: LOANS,
        shows: "directed",
        named: "",
    },
    Kind {
        name: "counts",
        policies: LOANS,
        shows: "counts",
        named: "",
    },
    Kind {
        name: "critical",
        policies: GRANTS,
        shows: "lent",
        // It spins: most of its loans end by its next yield, not by the clock, and the rule does not see it.
        named: "",
    },
    Kind {
        name: "ballooned",
        policies: GRANTS,
        shows: "hint_failures",
        named: "has no magic",
    },
];

/// The guest of that kind, until somebody kills this process.
fn guest(kind: &str) {
    let (mut code, mut data, mut rax) = (Vec::new(), Vec::new(), 0);
    const VMMCALL: [u8; 3] = [0x0f, 0x01, 0xd9];
    match kind {
        "hypercalls" => {
            data = garbage();
            code.extend([0x48, 0x8b, 0x06]); // mov rax, [rsi]
            code.extend([0x48, 0x8b, 0x5e, 0x08]); // mov rbx, [rsi + 8]
            code.extend([0x48, 0x83, 0xc6, 0x10]); // add rsi, 16
            code.extend([0x81, 0xe6, 0xf0, 0x0f, 0, 0]); // and esi, 0xff0
            code.extend([0x81, 0xce, 0x00, 0x60, 0, 0]); // or esi, DATA
            code.extend(VMMCALL);
        }
        "counts" => {
            data = counts();
            code.extend([0x48, 0xc7, 0xc0]); // mov rax, ...
            code.extend(abi::UNSPIN_HYPERCALL_REGISTER_COUNTS.to_le_bytes());
            code.extend([0x48, 0x8b, 0x1e]); // mov rbx, [rsi]
            code.extend([0x48, 0x83, 0xc6, 0x08]); // add rsi, 8
            code.extend([0x81, 0xe6, 0xf8, 0x03, 0, 0]); // and esi, 0x3f8
            code.extend([0x81, 0xce, 0x00, 0x60, 0, 0]); // or esi, DATA
            code.extend(VMMCALL);
        }
        "help" => {
            code.push(0xb8); // mov eax, ...
            code.extend(abi::UNSPIN_HYPERCALL_HELP.to_le_bytes());
            code.extend(VMMCALL);
        }
        "critical" | "ballooned" => {
            // Registers a page for each vCPU, and spins; it never takes `critical` back.
            rax = abi::UNSPIN_HYPERCALL_REGISTER_HINT.into();
            for _ in 0..VCPUS {
                let words = [abi::UNSPIN_HINT_MAGIC, 1, u32::MAX, u32::MAX];
                data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                data.resize(data.len().next_multiple_of(HINT_BYTES), 0xff);
            }
            code.extend(VMMCALL);
            code.extend([0xf3, 0x90, 0xeb, 0xfc]); // pause; jmp to it
        }
        "yields" => code.extend([0xf3, 0x90]), // pause
        _ => panic!("{kind}: no such guest"),
    }
    let length = i8::try_from(code.len() + 2).expect("short");
    code.extend([0xeb, length.wrapping_neg() as u8]); // jmp to the beginning
    run(&Program {
        code,
        data,
        rax,
        vcpus: VCPUS,
        // Processes in the guest may not say anything: half of them try.
        in_user_mode: if kind == "hypercalls" { VCPUS / 2 } else { 0 },
        ballooned: matches!(kind, "counts" | "ballooned"),
    });
}

/// 256 hypercalls: our numbers and their neighbours, with addresses outside memory, misaligned, across a page, of the host's
/// kernel and of other processes, of no page with a magic, and of one whose magic the guest gives.
fn garbage() -> Vec<u8> {
    let mut addresses = vec![
        0,
        DATA,
        DATA + 1,
        DATA + 2,
        DATA + 0xfe0,
        0xffff_fff0,
        0x1_0000,
        0xffff_8880_0000_0000,
        0xffff_ffff_8100_0000,
        u64::MAX,
        u64::MAX - 63,
        1 << 63,
        0x7fff_ffff_f000,
        &raw const KINDS as u64,
    ];
    // Any others: splitmix64's increment (Steele, Lea, Flood, OOPSLA'14).
    addresses.extend((1..50).map(|step: u64| step.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let first = u64::from(abi::UNSPIN_HYPERCALL_REGISTER_HINT) - 1;
    let pairs = (0..256u64).map(|at| {
        let number = if at % 64 == 63 {
            u64::MAX
        } else {
            first + at % 5
        };
        [number, addresses[at as usize % addresses.len()]]
    });
    pairs.flatten().flat_map(u64::to_le_bytes).collect()
}

/// 128 addresses of structs that say where counts lie, then the structs: one that always claims a critical section and a task
/// at the very end of memory, and some in which nothing is where it can be.
fn counts() -> Vec<u8> {
    const STRUCTS: u64 = DATA + 0x400;
    const MEMORY_END: u64 = 0x1_0000;
    let right = abi::unspin_counts {
        magic: abi::UNSPIN_COUNTS_MAGIC,
        preempt_count: DATA,
        current_task: STRUCTS + 0x38,
        direct_map_bytes: u64::MAX,
        rcu_nesting: abi::UNSPIN_COUNTS_OFFSET_MAX,
        task_flags: abi::UNSPIN_COUNTS_OFFSET_MAX - 1,
        sleeping: u32::MAX,
        hooks: 1,
        ..Default::default()
    };
    let places: [fn(&mut abi::unspin_counts, u64); 4] = [
        |counts, at| counts.preempt_count = at,
        |counts, at| counts.current_task = at,
        |counts, at| counts.direct_map = at,
        |counts, bytes| counts.direct_map_bytes = bytes,
    ];
    let mut structs = vec![right];
    for wrong in [
        0,
        1,
        MEMORY_END,
        MEMORY_END - 2,
        1 << 63,
        u64::MAX,
        0xffff_8880_0000_0000,
    ] {
        structs.extend(places.map(|set| {
            let mut counts = right;
            set(&mut counts, wrong);
            counts
        }));
    }
    structs.push(abi::unspin_counts {
        rcu_nesting: u32::MAX,
        ..right
    });
    structs.push(abi::unspin_counts { magic: 0, ..right });
    let mut addresses: Vec<u64> = (0..structs.len() as u64)
        .map(|at| STRUCTS + 64 * at)
        .collect();
    addresses.extend([
        STRUCTS + 4,
        DATA + 0xfd0,
        MEMORY_END,
        0,
        u64::MAX - 7,
        1 << 63,
    ]);
    let mut data: Vec<u8> = (0..128)
        .flat_map(|at| addresses[at % addresses.len()].to_le_bytes())
        .collect();
    for one in structs {
        // SAFETY: integers in a struct without a gap (abi/counts.h asserts its size).
        data.extend(unsafe {
            std::mem::transmute::<abi::unspin_counts, [u8; size_of::<abi::unspin_counts>()]>(one)
        });
        // The pointer to the task that the structs name: the last word of memory.
        data.extend((MEMORY_END - 8).to_le_bytes());
    }
    data
}

/// A process with such a guest, killed (SIGKILL) when dropped.
struct Hostile(Child);

impl Hostile {
    fn start(kind: &str) -> Hostile {
        let own = std::env::current_exe().expect("procfs is mounted");
        let mut command = Command::new(own);
        command.args(["hostile", kind]).stdout(Stdio::null());
        Hostile(command.spawn().expect("this very binary"))
    }

    /// CPU time of all its threads.
    fn cpu_ns(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).expect("it runs");
        tasks
            .map(|task| cpu_ns(&task.expect("a thread").path().display().to_string()))
            .sum()
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it was killed");
    }
}

/// The first number of a task's schedstat.
fn cpu_ns(folder: &str) -> u64 {
    let text = fs::read_to_string(format!("{folder}/schedstat")).expect("it runs");
    let ns = text.split(' ').next().and_then(|word| word.parse().ok());
    ns.expect("a number")
}

/// What the victims got, and what the guest did, in the same time.
struct Measured {
    victims_ns: u64,
    guest_ns: u64,
    longest_wait: Duration,
}

/// Threads that always want to run beside the guest; each notes for how long it did not.
fn beside(guest: &Hostile, time: Duration) -> Measured {
    let (longest_ns, end) = (AtomicU64::new(0), AtomicBool::new(false));
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..VICTIMS {
            let send = send.clone();
            scope.spawn(|| {
                // SAFETY: takes nothing, touches no memory.
                let thread = unsafe { libc::gettid() };
                { send }.send(thread).expect("somebody listens");
                let mut before = Instant::now();
                while !end.load(Ordering::Relaxed) {
                    let now = Instant::now();
                    longest_ns.fetch_max((now - before).as_nanos() as u64, Ordering::Relaxed);
                    before = now;
                }
            });
        }
        let threads: Vec<i32> = receive.iter().take(VICTIMS as usize).collect();
        // Those that have just started catch up first.
        thread::sleep(Duration::from_millis(200));
        let victims_ns = || -> u64 {
            let each = threads
                .iter()
                .map(|thread| format!("/proc/self/task/{thread}"));
            each.map(|folder| cpu_ns(&folder)).sum()
        };
        longest_ns.store(0, Ordering::Relaxed);
        let before = (victims_ns(), guest.cpu_ns());
        thread::sleep(time);
        let after = (victims_ns(), guest.cpu_ns());
        end.store(true, Ordering::Relaxed);
        Measured {
            victims_ns: after.0 - before.0,
            guest_ns: after.1 - before.1,
            longest_wait: Duration::from_nanos(longest_ns.load(Ordering::Relaxed)),
        }
    })
}

/// Many policies at once, so that every path of theirs is taken.
fn nobody_loses_beside_a_hostile_guest() {
    each_kind(&KINDS[..SHORT], MEASURED, TOLERANCE);
}

/// For half a minute each.
#[allow(dead_code, reason = "in make test-long only")]
pub fn nobody_loses_in_the_long_run() {
    each_kind(&KINDS, LONG, LONG_TOLERANCE);
}

fn each_kind(kinds: &[Kind], time: Duration, tolerance: f64) {
    let steerer = steer(LOANS, |_| ());
    for kind in kinds {
        let policies = kind.policies.parse().expect("policies");
        steerer.set_policies(policies).expect("at any time");
        let before = counter(&steerer, kind.shows);
        let mut guest = Hostile::start(kind.name);
        let measured = beside(&guest, time);
        let lost = guest.0.try_wait().expect("it is ours");
        assert!(lost.is_none(), "{}: the VM is lost: {lost:?}", kind.name);
        check(&steerer, kind, before, &measured, tolerance);
        is_named(&steerer, kind, guest.0.id());
    }
    // They were killed in the middle of it; an honest VM finds all as it was.
    let report = run_for(100, vec![fighting(2)]);
    assert!(
        report.vms[0]
            .vcpus
            .iter()
            .all(|vcpu| vcpu.statistics.operations > 100)
    );
    still_there(&steerer);
    // That VM was this process's.
    let conduct = steerer.conduct().expect("the kernel tells");
    let own = conduct
        .iter()
        .find(|(process, _)| *process == std::process::id());
    let (_, own) = own.expect("it had a VM");
    println!("  an honest guest: {own:?}");
    assert_eq!(own.says(), Vec::<String>::new(), "{own:?}");
}

/// Who lies is named, by the number of its process; where nothing is expected, nothing is said.
fn is_named(steerer: &Steerer, kind: &Kind, process: u32) {
    let conduct = steerer.conduct().expect("the kernel tells");
    let found = conduct.iter().find(|(of, _)| *of == process);
    let (_, of) = found.expect("its vCPUs ran");
    let says = of.says().join("; ");
    println!("  {} ({}): named: {says}; {of:?}", kind.name, kind.policies);
    assert!(says.contains(kind.named), "{}: {of:?}", kind.name);
    assert_eq!(
        says.is_empty(),
        kind.named.is_empty(),
        "{}: {of:?}",
        kind.name
    );
}

fn check(steerer: &Steerer, kind: &Kind, before: u64, measured: &Measured, tolerance: f64) {
    let (kind, shows) = (kind.name, kind.shows);
    still_there(steerer);
    let all = (measured.victims_ns + measured.guest_ns) as f64;
    let share = measured.victims_ns as f64 / all;
    let fair = VICTIMS as f64 / (VICTIMS + VCPUS) as f64;
    let did = counter(steerer, shows) - before;
    println!(
        "  {kind}: {shows} {did}; victims' share {share:.4} of {fair:.4}, waited {} us at most",
        measured.longest_wait.as_micros()
    );
    assert!(did > 100, "{kind}: {shows} only {did} times");
    assert!(
        (share / fair - 1.0).abs() < tolerance,
        "{kind}: {share} of {fair}"
    );
    assert!(measured.longest_wait < LONGEST_WAIT, "{kind}");
}
