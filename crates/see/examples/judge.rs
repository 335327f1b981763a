// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the true causes of an event log and a guest log.
use std::{env, fs::File, io::BufReader};
use unspin_events::{TscClock, guest_log::GuestLog, log::EventLog};
use unspin_see::{vm_record::VmRecord, spin_locations::Naming, evaluation::{self, Evaluation}, cause::{Cause, CauseTimes}, presence, true_causes::{self, Order}};

fn main() {
    let folder = env::args().nth(1).expect("a folder");
    let minimum_ns: u64 = env::args().nth(2).map_or(35_000, |t| t.parse().expect("a number"));
    let open = |name: &str| BufReader::new(File::open(format!("{folder}/{name}")).expect("it is there"));
    let log = EventLog::read(&mut open("e.log")).expect("a log").log;
    let guest = GuestLog::read(&mut open("guest.json")).expect("a guest log");
    let clock = TscClock::new(guest.clock[0], guest.clock[1]).expect("a clock");
    for vm in &guest.vms {
        let presence = presence::of_vm(vm.vm, log.events());
        let waits = true_causes::true_causes(&vm.waits, &clock, Order::of_lock(&vm.lock), &presence);
        let mut counts = [0u64; 7];
        let mut times = CauseTimes::default();
        let mut all = CauseTimes::default();
        for wait in &waits {
            for cause in Cause::ALL { all.add(cause, wait.burnt.of(cause)); }
            if wait.burnt.total() < minimum_ns { continue; }
            for cause in Cause::ALL { times.add(cause, wait.burnt.of(cause)); }
            if let Some(cause) = wait.cause() { counts[cause.index()] += 1; }
        }
        let n: u64 = counts.iter().sum();
        println!("vm {} {} complete {} waits {} long {} burnt {:.1} ms of which in long {:.1} ms", vm.vm, vm.lock, vm.complete, waits.len(), n, all.total() as f64 / 1e6, times.total() as f64 / 1e6);
        for cause in Cause::ALL { if counts[cause.index()] > 0 { println!("  {:24} {:6} {:5.1} % of waits {:5.1} % of time", cause.name(), counts[cause.index()], 100.0 * counts[cause.index()] as f64 / n as f64, 100.0 * times.of(cause) as f64 / times.total() as f64); } }
        let record = VmRecord::new(vm.vm, log.events(), &Naming::default(), true);
        let slices = record.explain();
        let evaluation = Evaluation::new(&waits, &slices, minimum_ns, record.times().window_ns / 4);
        println!("  precision {:.4} coverage {:.4} always-majority {:.4}; burnt true {:.1} ms explained {:.1} ms: {:+.1} %",
            evaluation.right() as f64 / evaluation.attributed() as f64, evaluation.attributed() as f64 / evaluation.waits() as f64,
            evaluation.always_majority() as f64 / evaluation.waits() as f64,
            evaluation.true_burnt_ns as f64 / 1e6, evaluation.explained_burnt_ns as f64 / 1e6,
            100.0 * (evaluation.explained_burnt_ns as f64 / evaluation.true_burnt_ns as f64 - 1.0));
        for (cause, row) in Cause::ALL.iter().zip(evaluation.confusion) { if row.iter().sum::<u64>() > 0 { println!("    true {:24} explained {:?}", cause.name(), row); } }
        if env::args().nth(3).is_some() {
            let mut shown = 0;
            for wait in &waits {
                if wait.burnt.total() < minimum_ns { continue; }
                let own: Vec<_> = slices.iter().filter(|s| s.vcpu == wait.vcpu).collect();
                let explained = evaluation::explained(wait, &own);
                if explained.certain(record.times().window_ns / 4) != Some(Cause::Unknown) && explained.certain(record.times().window_ns / 4) != wait.cause() {
                    println!("wrong: vcpu {} {:?} {}..{} burnt {} true {:?} explained {:?}", wait.vcpu, wait.kind, wait.begin_ns - log.events()[0].time_ns, wait.end_ns - log.events()[0].time_ns, wait.burnt.total(), wait.burnt, explained);
                    let t0 = log.events()[0].time_ns;
                    for slice in &wait.slices { println!("    true {}..{} {:?} {:?}", slice.begin_ns - t0, slice.end_ns - t0, slice.cause, slice.blamed); }
                    let mut merged: Vec<unspin_see::true_causes::Slice> = Vec::new();
                    for slice in own.iter().filter(|s| s.end_ns > wait.begin_ns && s.begin_ns < wait.end_ns) { match merged.last_mut() { Some(l) if (l.cause, l.blamed, l.end_ns) == (slice.cause, slice.blamed, slice.begin_ns) => l.end_ns = slice.end_ns, _ => merged.push(**slice) } }
                    for slice in merged { println!("         said {}..{} {:?} {:?}", slice.begin_ns - t0, slice.end_ns - t0, slice.cause, slice.blamed); }
                    shown += 1;
                    if shown > 60 { break; }
                }
            }
        }
    }
}
