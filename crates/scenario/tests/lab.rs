// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table `[lab]`: what is read, what is refused, overrides, and any text at all in it.

mod common;

use common::{MINIMAL, refused};
use proptest::prelude::*;
use unspin_scenario::{
    Distribution, HostNoise, LabEcs, LabGroups, LabSettings, LabTopology, LabVendor, NoiseRates,
    NoiseSource, Overrides, Scenario, Shape, WorkUnit,
};

const FULL: &str = "[lab]
scheduler = \"cfs-4.13+debooster=paper\"
policy = \"loan,slice=2ms\"
topology = \"2x4x5x2\"
vendor = \"intel\"
window_control = \"apple\"
spin_count = \"4096\"
candidates = \"strict\"
ignore_reschedules = true
ecs = \"give-back\"
facts_age = \"3us\"
lost_ppm = 7
tick_only = true
poll_period = \"1us\"
halt_poll = \"50us\"
guest_tasks = 2
page_fault_every_iterations = 9
page_fetch = \"70us\"
async_page_faults = false
pv_tlb_flush = true
pv_sched_yield = true
pv_send_ipi = true
cpu_hogs = 3
host_noise = { interrupts = { every = \"6.3ms\", lasts = { exponential = \"9us\" } }, unbound_threads = { every = \"1s\", lasts = \"20us\" }, vcpu_start = \"15us\" }
skew_tick = true
groups = \"vcpu\"
weights = [200]
pins = [\"0-3,6\"]
costs = { switch_ns = 1500, exit_ns = 0 }
";

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "s.toml").unwrap_or_else(|error| panic!("{}\n{text}", error.plain()))
}

#[test]
fn every_key() {
    let scenario = parse(&format!("{MINIMAL}{FULL}"));
    let some = |name: &str| Some(name.to_owned());
    let time = |shape| Distribution {
        unit: WorkUnit::Nanoseconds,
        shape,
    };
    let rates = NoiseRates {
        interrupts: Some(NoiseSource {
            every_ns: 6_300_000,
            lasts: time(Shape::Exponential { mean: 9_000 }),
        }),
        bound_threads: None,
        unbound_threads: Some(NoiseSource {
            every_ns: 1_000_000_000,
            lasts: time(Shape::Constant(20_000)),
        }),
        vcpu_start: time(Shape::Constant(15_000)),
    };
    let expected = LabSettings {
        scheduler: some("cfs-4.13+debooster=paper"),
        policy: some("loan,slice=2ms"),
        topology: Some(LabTopology {
            sockets: 2,
            caches: 4,
            cores: 5,
            threads: 2,
        }),
        vendor: LabVendor::Intel,
        window_control: some("apple"),
        spin_count: some("4096"),
        candidates: some("strict"),
        ignore_reschedules: true,
        ecs: LabEcs::GiveBack,
        facts_age_ns: 3_000,
        lost_ppm: 7,
        tick_only: true,
        poll_period_ns: Some(1_000),
        halt_poll_ns: 50_000,
        guest_tasks: 2,
        page_fault_every_iterations: 9,
        page_fetch_ns: Some(70_000),
        async_page_faults: false,
        pv_tlb_flush: true,
        pv_sched_yield: true,
        pv_send_ipi: true,
        cpu_hogs: 3,
        host_noise: HostNoise::Rates(Box::new(rates)),
        skew_tick: true,
        groups: LabGroups::Vcpu,
        weights: vec![200],
        pins: vec![vec![0, 1, 2, 3, 6]],
        costs: [("exit_ns".to_owned(), 0), ("switch_ns".to_owned(), 1_500)].into(),
    };
    assert_eq!(scenario.lab, Some(expected));
    assert_eq!(parse(&scenario.to_toml()), scenario);
    assert_eq!(
        parse(&format!("{MINIMAL}[lab]\n")).lab,
        Some(LabSettings::default())
    );
}

#[test]
fn without_it_nothing_changes() {
    let scenario = parse(MINIMAL);
    assert_eq!(scenario.lab, None);
    assert!(!scenario.to_toml().contains("lab"));
    assert_ne!(scenario.hash(), parse(&format!("{MINIMAL}[lab]\n")).hash());
}

#[test]
fn overrides() {
    let overridden = |text: &str, set: &[&str]| {
        let mut overrides = Overrides::default();
        for given in set {
            overrides.set(given).expect("a key");
        }
        Scenario::parse_with(text, "s.toml", "s", &overrides).map_err(|error| error.plain())
    };
    let set = [
        "lab.scheduler=eevdf-6.6",
        "lab.topology=1x1x8x1",
        "lab.costs.switch_ns=9",
    ];
    let full = format!("{MINIMAL}{FULL}");
    for text in [MINIMAL, &full] {
        let lab = overridden(text, &set).expect("valid").lab.expect("a lab");
        assert_eq!(lab.scheduler.as_deref(), Some("eevdf-6.6"));
        assert_eq!(lab.topology.map(|topology| topology.cpus()), Some(8));
        assert_eq!(lab.costs["switch_ns"], 9);
        assert_eq!(lab.costs.contains_key("exit_ns"), text != MINIMAL);
    }
    let error = overridden(MINIMAL, &["lab.cpu_hogs=4097"]).expect_err("too many");
    assert!(error.contains("from 0 to 4096"), "{error}");
    let unknown = Overrides::default()
        .set("lab.cpu_hog=1")
        .expect_err("unknown");
    assert!(unknown.to_string().contains("lab.KEY"), "{unknown}");
}

#[test]
fn noise_is_a_word_or_a_table() {
    let noise = |given: &str| {
        let scenario = parse(&format!("{MINIMAL}[lab]\nhost_noise = {given}\n"));
        assert_eq!(parse(&scenario.to_toml()), scenario, "{given}");
        scenario.lab.expect("a lab").host_noise
    };
    assert_eq!(LabSettings::default().host_noise, HostNoise::Idle);
    assert_eq!(noise("\"off\""), HostNoise::Off);
    assert_eq!(noise("\"idle\""), HostNoise::Idle);
    assert_eq!(noise("\"busy\""), HostNoise::Busy);
    let nothing = HostNoise::Rates(Box::default());
    assert_eq!(noise("{}"), nothing);
    assert_eq!(noise("{ vcpu_start = \"0us\" }"), nothing);
    assert_ne!(nothing, HostNoise::Off);
    let mut overrides = Overrides::default();
    overrides.set("lab.host_noise=busy").expect("a key");
    let scenario = Scenario::parse_with(MINIMAL, "s.toml", "s", &overrides);
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.plain()));
    assert_eq!(scenario.lab.expect("a lab").host_noise, HostNoise::Busy);
}

#[test]
fn noise_that_cannot_be() {
    let table = |inner: &str, message: &str, allowed: &str| {
        let text = format!("{MINIMAL}[lab]\nhost_noise = {inner}\n");
        let error = Scenario::parse(&text, "s.toml").expect_err(inner).plain();
        assert!(error.contains(message), "{inner}: {error}");
        assert!(error.contains(allowed), "{inner}: {error}");
    };
    table("\"loud\"", "loud", "`busy`");
    table("7", "cannot be 7", "interrupts, bound_threads");
    table("{ interrupt = {} }", "interrupt", "`interrupts`");
    table("{ interrupts = { every = \"1ms\" } }", "lasts", "lasts");
    table(
        "{ interrupts = { every = \"1us\", lasts = \"1us\" } }",
        "1us",
        "from 10us to 3600s",
    );
    table(
        "{ interrupts = { every = \"1ms\", lasts = \"7 loops\" } }",
        "loops",
        "a time such as",
    );
    table("{ vcpu_start = \"7 loops\" }", "loops", "a time such as");
}

#[test]
fn what_cannot_be() {
    let lab = |line: &str, message: &str, allowed: &str| {
        let column = line.find("= ").map_or(1, |place| place + 3);
        refused(
            "[[vm]]",
            &format!("[lab]\n{line}\n[[vm]]"),
            (4, column),
            message,
            allowed,
        );
    };
    refused(
        "[[vm]]",
        "[lab]\ncpus = 1\n[[vm]]",
        (4, 1),
        "unknown key `cpus` in [lab]",
        "`topology`",
    );
    lab(
        "scheduler = \"a b\"",
        "`scheduler` cannot be",
        "1 to 128 of",
    );
    lab("policy = \"\"", "`policy` cannot be", "1 to 128 of");
    for topology in [
        "2x2x2",
        "0x1x1x1",
        "2x2x2x2x2",
        "+1x1x1x1",
        "64x64x2x1",
        "99999999999x1x1x1",
    ] {
        let line = format!("topology = \"{topology}\"");
        lab(&line, "`topology` cannot be", "2x4x8x2");
    }
    lab("vendor = \"via\"", "there is no vendor `via`", "`intel`");
    lab(
        "halt_poll = \"2s\"",
        "`halt_poll` cannot be 2s",
        "from 0s to 1s",
    );
    lab(
        "groups = \"vms\"",
        "there is no groups `vms`",
        "did you mean `vm`?",
    );
    lab("weights = [1, 2]", "`weights` has 2 values", "1 in all");
    lab(
        "weights = 100",
        "`weights` cannot be 100",
        "one value for each [[vm]]",
    );
    refused(
        "[[vm]]",
        "[lab]\nweights = [0]\n[[vm]]",
        (4, 12),
        "cannot be 0",
        "from 1 to 10000",
    );
    for pins in ["", "3-1", "1,1", "2,1", "4096", "0-", "a"] {
        let text = format!("[lab]\npins = [\"{pins}\"]\n[[vm]]");
        refused("[[vm]]", &text, (4, 9), "`pins` cannot be", "\"0-3,6\"");
    }
    let costs = "[lab]\ncosts = { Switch = 1 }\n[[vm]]";
    refused(
        "[[vm]]",
        costs,
        (4, 11),
        "there is no cost `Switch`",
        "`switch_ns`",
    );
    let costs = "[lab]\ncosts = { switch_ns = -1 }\n[[vm]]";
    refused(
        "[[vm]]",
        costs,
        (4, 23),
        "`switch_ns` cannot be -1",
        "from 0 to",
    );
    refused(
        "[[vm]]",
        "lab = 1\n[[vm]]",
        (3, 7),
        "`lab` cannot be 1",
        "[lab]",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_changed_table_is_read_or_refused(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<char>(), 0u8..4), 1..6),
    ) {
        let mut table: Vec<char> = FULL.chars().collect();
        for (place, character, how) in edits {
            let at = place.index(table.len());
            match how {
                0 => table[at] = character,
                1 if table.len() > 1 => { table.remove(at); }
                2 => table.truncate(at.max(1)),
                _ => table.insert(at, "0123456789-x,\"[]{}= "
                    .chars().nth(character as usize % 20).expect("20 of them")),
            }
        }
        let text = format!("{MINIMAL}{}", table.iter().collect::<String>());
        match Scenario::parse(&text, "changed") {
            Ok(scenario) => prop_assert_eq!(
                Scenario::parse(&scenario.to_toml(), "again").map_err(|error| error.plain()),
                Ok(scenario)
            ),
            Err(error) => prop_assert!(error.plain().starts_with("changed:")),
        }
    }

    #[test]
    fn any_value_is_read_or_refused(
        key in prop::sample::select(vec!["scheduler", "topology", "halt_poll", "pins", "weights", "costs"]),
        value in "[-0-9a-zx,\"\\[\\]{}=. ]{0,30}",
    ) {
        let text = format!("{MINIMAL}[lab]\n{key} = {value}\n");
        if let Ok(scenario) = Scenario::parse(&text, "any") {
            let back = Scenario::parse(&scenario.to_toml(), "again").map_err(|error| error.plain());
            prop_assert_eq!(back, Ok(scenario));
        }
    }
}
