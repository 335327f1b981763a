// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pv pages in the scheduler's own map (abi/bpf/pv_page_map.h): as good as those in guests' memory, nobody else's, and there also where
//! BPF may write no memory.

use std::{
    collections::BTreeSet,
    fs,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};
use unspin_testbed::check;

use libbpf_rs::{MapCore, MapFlags, MapHandle, query::MapInfoIter};
use unspin_abi as abi;
use unspin_agent::{GuestPages, Steerer};
use unspin_scenario::{PvPageMemory as Lie, Vm};
use unspin_vmm::{Phase, PvPages, RunOptions, RunReport};

use super::{
    host::{counter, still_there},
    observer_vms::{run_with, vcpus},
    vms::{fighting, operations, steer},
};

/// A VM whose vCPUs fight, with its pv pages in the map.
fn mapped(vcpus: u32) -> Vm {
    Vm {
        pv_page_memory: Lie::Map,
        ..fighting(vcpus)
    }
}

/// What a run needs for that.
fn with_pages() -> RunOptions {
    let maps = GuestPages::of_running().expect("one of ours runs");
    let pages = PvPages::new(maps.pages, &maps.owners).expect("it can be mapped");
    RunOptions {
        pv_pages: Some(Arc::new(pages)),
        ..RunOptions::default()
    }
}

/// Registrations of all vCPUs, and how many of them were answered.
fn registered(report: &RunReport) -> (u64, u64) {
    vcpus(report).fold((0, 0), |(registered, answered), (_, vcpu)| {
        let of = &vcpu.statistics;
        (
            registered + of.pv_page_registrations,
            answered + of.pv_page_acknowledgements,
        )
    })
}

/// `guest_owners` of the scheduler that runs, by page; 0: nobody's.
fn owners() -> Vec<u64> {
    let map = MapInfoIter::default()
        .filter(|map| map.name.to_string_lossy() == "guest_owners")
        .last()
        .expect("one of ours runs");
    let map = MapHandle::from_map_id(map.id).expect("it is there");
    let owner = |page: u32| {
        let value = map.lookup(&page.to_ne_bytes(), MapFlags::ANY);
        let value = value.expect("the kernel tells").expect("an array is full");
        u64::from_ne_bytes(value.try_into().expect("8 bytes"))
    };
    (0..abi::UNSPIN_PV_PAGES_MAX).map(owner).collect()
}

/// Runs of one program and the instructions they took: under icount a nanosecond is half a one.
fn cost(steerer: &Steerer, place: &str) -> (u64, u64) {
    let programs = steerer.programs().expect("the kernel tells");
    let found = programs
        .iter()
        .find(|program| program.name.ends_with(place))
        .expect("it is loaded");
    (found.run_count, found.run_time_ns / 2)
}

check!(STEERER_LONG: pv_pages_lie_in_the_map);
/// Loans drain the convoy as they do with the guest's own page; every registration is answered; where the guest is entered and
/// left, less is to be done; each VM has a page of its own, while it runs.
fn pv_pages_lie_in_the_map() {
    const PLACES: [&str; 2] = ["/kvm_entry", "/kvm_sched_out"];
    let steerer = steer("loan", |options| options.run_statistics = true);
    let run = |vm: Vm| {
        let before = PLACES.map(|place| cost(&steerer, place));
        let report = run_with(&with_pages(), 250, vec![vm]);
        still_there(&steerer);
        let costs = [0, 1].map(|at| {
            let ((runs, spent), (runs_now, spent_now)) = (before[at], cost(&steerer, PLACES[at]));
            (spent_now - spent) / (runs_now - runs)
        });
        (operations(&report), registered(&report), costs)
    };
    let (own, _, costs_own) = run(fighting(4));
    assert_eq!(counter(&steerer, "pv_pages_in_map"), 0);
    let (lent, failures) = (
        counter(&steerer, "lent"),
        counter(&steerer, "pv_page_failures"),
    );
    let (map, (registered, answered), costs_map) = run(mapped(4));
    println!("  {own} operations with the guest's page, {map} with the map's");
    println!("  {PLACES:?}: {costs_own:?} instructions, {costs_map:?}");
    assert!(map * 10 > own * 9, "{map} of {own}");
    assert_eq!(counter(&steerer, "pv_pages_in_map"), 4);
    assert!(counter(&steerer, "lent") > lent + 10);
    assert_eq!(counter(&steerer, "pv_page_failures"), failures);
    assert!(
        registered >= 4 && answered == registered,
        "{registered}, {answered}"
    );
    assert!(costs_map[0] <= costs_own[0] && costs_map[1] <= costs_own[1]);
    each_vm_has_pages_of_its_own();
    offers_are_kept_apart();
    all_taken_leaves_guests_their_own();
    still_there(&steerer);
}

/// 40 vCPUs need two pages, 2 need one; all come back.
fn each_vm_has_pages_of_its_own() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = Arc::clone(&seen);
    let options = RunOptions {
        on_phase: Some(Box::new(move |phase| {
            if phase == Phase::Started {
                *see.lock().expect("nobody panicked") = owners();
            }
        })),
        ..with_pages()
    };
    run_with(&options, 20, vec![mapped(40), mapped(2), mapped(2)]);
    let seen = seen.lock().expect("nobody panicked");
    let taken: Vec<u64> = seen.iter().copied().filter(|owner| *owner != 0).collect();
    let offers: BTreeSet<u64> = taken.iter().copied().collect();
    assert_eq!((taken.len(), offers.len()), (4, 4), "{taken:x?}");
    let own = u64::from(std::process::id());
    assert!(taken.iter().all(|owner| owner >> 32 == own), "{taken:x?}");
    assert!(owners().iter().all(|owner| *owner == 0));
}

fn say(option: u32, page: u64, address: u64, nonce: u64) {
    // SAFETY: an option that the kernel does not know; it looks at no argument.
    unsafe { libc::prctl(option as libc::c_int, page, address, nonce) };
}

/// The same from a process that ends at once.
fn another_says(option: u32, page: u64, address: u64, nonce: u64) {
    // SAFETY: the child makes two system calls and touches nothing that another thread might have locked.
    let child = unsafe { libc::fork() };
    if child == 0 {
        say(option, page, address, nonce);
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: our own child; `status` is written.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
}

/// What is another's is not to be had, nor what there is not; what a process leaves behind is.
fn offers_are_kept_apart() {
    const OFFER: u32 = abi::UNSPIN_PRCTL_OFFER_PAGE;
    const RETURN: u32 = abi::UNSPIN_PRCTL_RETURN_PAGE;
    let (own, at) = (u64::from(std::process::id()) << 32, 0x7f00_0000_0000_u64);
    let nobodys = |page: usize| owners()[page] == 0;
    // A page that is misaligned, an offer that says nothing, pages that there are none of.
    say(OFFER, 0, at + 128, 1);
    say(OFFER, 0, at, 0);
    for page in [abi::UNSPIN_PV_PAGES_MAX.into(), u64::from(u32::MAX)] {
        say(OFFER, page, at, 1);
        say(RETURN, page, at, 1);
    }
    assert!(owners().iter().all(|owner| *owner == 0));
    say(OFFER, 0, at, 1);
    assert_eq!(owners()[0], own | 1);
    // Twice, by another, and back by another or from elsewhere.
    say(OFFER, 0, at, 2);
    another_says(OFFER, 0, at, 3);
    another_says(RETURN, 0, at, 1);
    say(RETURN, 0, at + 4096, 1);
    assert_eq!(owners()[0], own | 1);
    say(RETURN, 0, at, 1);
    assert!(nobodys(0));
    // Of a process that is no more.
    another_says(OFFER, 5, at, 4);
    assert!(!nobodys(5) && owners()[5] >> 32 != own >> 32);
    say(OFFER, 5, at, 5);
    assert_eq!(owners()[5], own | 5);
    say(RETURN, 5, at, 5);
    assert!(owners().iter().all(|owner| *owner == 0));
}

/// Who takes every page harms nobody: the next VM's pv pages lie where they always have.
fn all_taken_leaves_guests_their_own() {
    for page in 0..u64::from(abi::UNSPIN_PV_PAGES_MAX) {
        say(abi::UNSPIN_PRCTL_OFFER_PAGE, page, 4096 * (page + 1), 1);
    }
    let options = with_pages();
    let report = run_with(&options, 20, vec![mapped(2)]);
    let pages = options.pv_pages.expect("set above");
    let (registered, answered) = registered(&report);
    assert!(pages.missed() == 1 && answered == registered && answered >= 2);
}

check!(STEERER_LONG: pages_outlive_their_scheduler);
/// The pages stay memory when their scheduler goes; the next one reads them as any guest's, and has pages for others.
pub fn pages_outlive_their_scheduler() {
    let first = steer("loan", |_| ());
    let options = with_pages();
    thread::scope(|scope| {
        let run = scope.spawn(|| run_with(&options, 12_000, vec![mapped(4)]));
        thread::sleep(Duration::from_millis(300));
        assert_eq!(counter(&first, "pv_pages_in_map"), 4);
        drop(first);
        thread::sleep(Duration::from_millis(100));
        let second = steer("loan", |_| ());
        thread::sleep(Duration::from_millis(2_000));
        assert_eq!(
            (
                counter(&second, "pv_pages"),
                counter(&second, "pv_pages_in_map")
            ),
            (4, 0)
        );
        assert!(counter(&second, "given_back") > 0);
        let other = run_with(&with_pages(), 100, vec![mapped(2)]);
        let (registered, answered) = registered(&other);
        assert!(answered == registered && counter(&second, "pv_pages_in_map") == 2);
        run.join().expect("the VM runs to its end");
        still_there(&second);
        assert_eq!(counter(&second, "pv_page_failures"), 0);
    });
}

check!(STEERER_LONG: a_locked_down_host_tells_guests_in_the_map);
/// Where BPF may write no memory, guests whose pv pages lie in the map are told, others are not and are steered by looks.
pub fn a_locked_down_host_tells_guests_in_the_map() {
    const SECURITY: &str = "/sys/kernel/security";
    // SAFETY: constant terminated strings; no data.
    let mounted = unsafe {
        let (kind, place) = (c"securityfs".as_ptr(), c"/sys/kernel/security".as_ptr());
        libc::mount(kind, place, kind, 0, std::ptr::null())
    };
    assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
    fs::write(format!("{SECURITY}/lockdown"), "integrity").expect("it can be raised");
    let steerer = steer("loan", |_| ());
    for (vm, told) in [(fighting(4), false), (mapped(4), true)] {
        let lent = counter(&steerer, "lent");
        let report = run_with(&with_pages(), 300, vec![vm]);
        still_there(&steerer);
        let (registered, answered) = registered(&report);
        let done = operations(&report);
        println!(
            "  told {told}: {answered} of {registered} registrations answered, {done} operations"
        );
        assert_eq!(answered, if told { registered } else { 0 });
        assert!(counter(&steerer, "lent") > lent + 10);
    }
}
