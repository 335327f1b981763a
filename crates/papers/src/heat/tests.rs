// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of trees made by hand.

use std::{fs, path::Path};

use super::{Entry, HeatMap, Part, compared, entry::overcommit, notebook, text};
use crate::benchmark::Benchmarks;

/// A measurement of these rows.
fn plant(root: &Path, name: &str, head: &str, rows: &str) {
    let folder = root.join("benchmarks").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("benchmark.toml"),
        format!("command = \"true\"\n{head}"),
    )
    .unwrap();
    fs::write(folder.join("rows.jsonl"), rows).unwrap();
}

fn compared(root: &Path) -> Vec<Entry> {
    compared::entries(&Benchmarks::read(root).unwrap()).unwrap()
}

fn table(root: &Path, text: &str) -> anyhow::Result<Vec<Entry>> {
    let text = format!(
        "lab = []\n[[table]]\nbenchmark = \"b\"\npart = \"kvm-micro\"\ncpus = 2\nbaseline = \"stock\"\n{text}"
    );
    let text: text::HeatText = toml::from_str(&text)?;
    notebook::entries(&Benchmarks::read(root)?, &text.tables[0])
}

const TESTBED: &str = "machine = \"testbed\"\ndate = \"2026-11-01\"\ncommit = \"abc\"\n";

fn row(policy: &str, ratio: f64) -> String {
    format!(
        "{{\"policy\":\"{policy}\",\"shape\":\"2x4\",\"overcommit\":4.0,\"lock\":\"ticket\",\"pv_page\":true,\"ple_window\":200,\
         \"pairs\":4,\"throughput_ratio_to_stock\":{ratio},\"throughput_ratio_to_stock_low\":{},\
         \"throughput_ratio_to_stock_high\":{},\"replay\":\"unspin compare scenarios/compare/ticket.toml\"}}\n",
        ratio - 0.1,
        ratio + 0.1
    )
}

#[test]
fn the_newest_of_a_cell_is_shown_and_the_largest_is_best() {
    let tree = tempfile::tempdir().unwrap();
    let old = row("loan", 9.0) + &row("gang", 1.05);
    plant(tree.path(), "a-old", TESTBED, &old);
    let later = TESTBED.replace("11-01", "11-02").replace("abc", "def");
    plant(tree.path(), "b-new", &later, &row("loan", 2.0));
    let map = HeatMap::new(compared(tree.path()));
    let parts = map.parts();
    let [part] = &parts[..] else {
        panic!("one map")
    };
    assert_eq!(
        (part.part, &part.remedies[..]),
        (Part::KvmMicro, &["gang", "loan"][..])
    );
    let [row] = &part.rows[..] else {
        panic!("one load")
    };
    assert_eq!(row.place.setting, "window 200, pv page");
    let shown: Vec<_> = row
        .cells
        .iter()
        .flatten()
        .map(|number| &map.entries()[*number])
        .collect();
    assert_eq!(
        (shown[1].ratio, shown[1].origin.commit.as_str()),
        (2.0, "def")
    );
    assert_eq!(
        (shown[0].verdict(), shown[1].verdict()),
        ("not resolved", "higher")
    );
    assert_eq!(row.best, 1);
    let rows = map.rows();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows.iter().filter(|row| row.is_shown).count(), 2);
    let best: Vec<_> = rows.iter().filter(|row| row.is_best).collect();
    assert_eq!((best.len(), best[0].benchmark.as_str()), (1, "b-new"));
}

#[test]
fn what_was_not_measured_has_no_cell() {
    let tree = tempfile::tempdir().unwrap();
    let two = row("loan", 2.0) + &row("gang", 3.0).replace("2x4", "1x4");
    plant(tree.path(), "a", TESTBED, &two);
    let none = row("loan", 2.0).replace(
        "\"throughput_ratio_to_stock\":2",
        "\"throughput_ratio_to_stock\":null",
    );
    plant(tree.path(), "b", TESTBED, &none.replace("ticket", "mcs"));
    plant(tree.path(), "c", TESTBED, &row("stock", 1.0));
    let map = HeatMap::new(compared(tree.path()));
    assert_eq!(map.entries().len(), 2);
    let parts = map.parts();
    let cells = parts[0]
        .rows
        .iter()
        .map(|row| row.cells.iter().flatten().count());
    assert_eq!(cells.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn vcpu_threads_alone_are_another_remedy_and_scenarios_another_load() {
    let tree = tempfile::tempdir().unwrap();
    let alone = row("loan", 2.0).replace(
        "ticket.toml",
        "shootdown.toml --only-vms --set vm.shootdown_every_iterations=20",
    );
    plant(tree.path(), "a", TESTBED, &alone);
    let entries = compared(tree.path());
    assert_eq!(entries[0].remedy, "loan (VMs only)");
    assert_eq!(entries[0].place.load, "shootdown: ticket");
    assert_eq!(
        entries[0].place.setting,
        "window 200, pv page, vm.shootdown_every_iterations=20"
    );
}

#[test]
fn one_seed_of_the_lab_has_a_ratio_without_an_interval() {
    let tree = tempfile::tempdir().unwrap();
    let row = |policy: &str, rate: u32| {
        format!(
            "{{\"cell\":\"x\",\"table\":\"policy\",\"shape\":\"2x4\",\"policy\":\"{policy}\",\"scenario\":\"ticket\",\"stock_sha256\":\"1\",\
             \"throughput_ratio_to_stock\":null,\"operations_per_second\":{rate}}}\n"
        )
    };
    let head = "machine = \"lab: any\"\ndate = \"2026-11-01\"\n";
    plant(
        tree.path(),
        "a",
        head,
        &(row("stock", 100) + &row("auto", 250)),
    );
    let entries = compared(tree.path());
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].ratio, entries[0].interval), (2.5, None));
    assert_eq!(
        (entries[0].place.part, entries[0].verdict()),
        (Part::LabPolicies, "no interval")
    );
}

#[test]
fn tables_of_a_notebook_are_read_in_three_forms() {
    let tree = tempfile::tempdir().unwrap();
    let rows = "{\"t\":0,\"lock\":\"mcs\",\"shape\":\"2x4\",\"loan\":\"4.5, 0.9\",\"gang\":\"-\"}\n\
                {\"t\":1,\"what\":\"mmaps, 2x4 (b)\",\"policy\":\"gang\",\"x\":1.1,\"runs\":6}\n\
                {\"t\":2,\"lock\":\"ticket\",\"2_vms\":\"10 (8 to 20)\"}\n\
                {\"t\":2,\"lock\":\"mcs\",\"2_vms\":\"20 (10 to 40)\"}\n";
    plant(tree.path(), "b", TESTBED, rows);
    let wide = "rows = { t = 0 }\nload = \"{lock}\"\nshape = \"{shape}\"\nsetting = \"\"\nremedies = { loan = \"loan\", gang = \"gang\" }\n";
    let entries = table(tree.path(), wide).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].ratio, entries[0].place.overcommit),
        (4.5, Some(4.0))
    );
    let long = "rows = { t = 1 }\nsplit = { key = \"what\", into = [\"load\", \"shape\", \"build\"] }\nload = \"{load}\"\nshape = \"{shape}\"\n\
                setting = \"build {build}\"\nremedy = \"{policy}\"\nratio = \"x\"\npairs_key = \"runs\"\ncommit = \"{build}\"\ncommits = { b = \"123\" }\n";
    let entries = table(tree.path(), long).unwrap();
    assert_eq!(
        (entries[0].place.setting.as_str(), entries[0].pairs),
        ("build b", Some(6))
    );
    assert_eq!(entries[0].origin.commit, "123");
    let by_shape = "rows = { t = 2 }\nload = \"l\"\nshapes = { 2_vms = \"2x2\" }\nsetting = \"\"\nremedy = \"{lock}\"\n\
                    over = { t = 2, lock = \"ticket\" }\nskip = [\"ticket\"]\n";
    let entries = table(tree.path(), by_shape).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].ratio, entries[0].interval),
        (2.0, Some((0.5, 5.0)))
    );
    assert_eq!(entries[0].place.shape, "2x2");
}

#[test]
fn what_is_not_in_the_data_is_told() {
    let tree = tempfile::tempdir().unwrap();
    plant(
        tree.path(),
        "b",
        TESTBED,
        "{\"t\":0,\"lock\":\"mcs\",\"x\":\"many\"}\n",
    );
    let head = "load = \"{lock}\"\nshape = \"2x4\"\nsetting = \"\"\n";
    for (text, why) in [
        ("rows = { t = 1 }\nremedies = { x = \"x\" }\n", "no row has"),
        ("rows = { t = 0 }\nremedies = { x = \"x\" }\n", "no number"),
        (
            "rows = { t = 0 }\nremedy = \"{policy}\"\nratio = \"x\"\n",
            "no policy",
        ),
        ("rows = { t = 0 }\nremedy = \"{lock}\"\n", "either remedy"),
    ] {
        let error = table(tree.path(), &format!("{head}{text}")).expect_err(text);
        assert!(format!("{error:#}").contains(why), "{error:#}");
    }
}

#[test]
fn overcommit_is_vcpus_over_cpus() {
    assert_eq!(overcommit("2x4", 2), Some(4.0));
    assert_eq!(overcommit("1x2", 2), Some(1.0));
    assert_eq!(overcommit("two", 2), None);
}
