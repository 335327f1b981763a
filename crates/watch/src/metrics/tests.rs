// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::view::{VcpuView, WatchHealth};

fn vm(number: u64, name: &str) -> VmView {
    VmView {
        number,
        name: name.to_owned(),
        process: Some(100),
        total: WatchCounters {
            run_ns: 1_500_000_000,
            spin_ns: 250_000_000,
            ple_exits: 7,
            ..WatchCounters::default()
        },
        vcpus: vec![VcpuView::default(), VcpuView::default()],
        sampled: SampledView {
            cpu_ns: 10,
            spin_ns: [("contention".to_owned(), 5_000_000_000)].into(),
        },
        ..VmView::default()
    }
}

fn view(vms: Vec<VmView>) -> HostView {
    HostView {
        vms,
        health: WatchHealth {
            bursts: 3,
            ..WatchHealth::default()
        },
        ..HostView::default()
    }
}

fn shown(view: &HostView, vms_max: usize, format: Format) -> String {
    text(view, &OwnCost::default(), vms_max, format)
}

#[test]
fn a_vm_is_shown_in_seconds_and_numbers() {
    let text = shown(&view(vec![vm(1, "web")]), VMS_MAX, Format::OpenMetrics);
    for line in [
        "# TYPE unspin_vm_run_seconds counter",
        "# UNIT unspin_vm_run_seconds seconds",
        "unspin_vm_run_seconds_total{vm=\"web\"} 1.5",
        "unspin_vm_spin_seconds_total{vm=\"web\"} 0.25",
        "unspin_vm_pause_loop_exits_total{vm=\"web\"} 7",
        "unspin_vm_vcpus{vm=\"web\"} 2",
        "unspin_vm_info{vm=\"web\",number=\"1\",process=\"100\"} 1",
        "unspin_vm_sampled_spin_seconds_total{vm=\"web\",cause=\"contention\"} 5.0",
        "unspin_bursts_total 3",
        "unspin_watching 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn names_cannot_break_out_of_their_label() {
    let hostile = "a\"} 1\nunspin_vms 99\\";
    let text = shown(&view(vec![vm(1, hostile)]), VMS_MAX, Format::OpenMetrics);
    let line = r#"unspin_vm_run_seconds_total{vm="a\"} 1\nunspin_vms 99\\"} 1.5"#;
    assert!(text.lines().any(|shown| shown == line), "{text}");
    assert!(text.lines().any(|shown| shown == "unspin_vms 1"));
    assert!(!text.lines().any(|shown| shown.starts_with("unspin_vms 99")));
}

#[test]
fn a_vm_has_25_series_at_most_and_the_host_100() {
    let samples = |vms: usize| {
        let vms = (0..vms as u64).map(|number| {
            let mut vm = vm(number, &format!("vm{number}"));
            for cause in unspin_analysis::explain::cause::Cause::ALL {
                vm.sampled.spin_ns.insert(cause.name().to_owned(), 1);
            }
            vm
        });
        let text = shown(&view(vms.collect()), VMS_MAX, Format::OpenMetrics);
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    assert!(samples(0) <= 100, "{}", samples(0));
    let each = samples(11) - samples(10);
    assert_eq!(each, 22);
    assert!(each <= 25);
}

#[test]
fn vms_beyond_the_limit_are_counted() {
    let text = shown(
        &view(vec![vm(1, "a"), vm(2, "b"), vm(3, "c")]),
        2,
        Format::OpenMetrics,
    );
    assert!(text.contains("unspin_vms 2\n") && text.contains("unspin_vms_hidden 1\n"));
    assert!(text.contains("vm=\"b\"") && !text.contains("vm=\"c\""));
}

#[test]
fn what_is_not_known_is_not_shown() {
    let mut view = view(vec![vm(1, "a")]);
    view.unknown = vec!["yields_tried".to_owned()];
    view.blind = Some("KVM is not loaded".to_owned());
    let text = shown(&view, VMS_MAX, Format::OpenMetrics);
    assert!(!text.contains("unspin_vm_directed_yields_total"));
    assert!(text.contains("unspin_vm_directed_yields_succeeded_total"));
    assert!(text.contains("unspin_watching 0\n"));
}

#[test]
fn the_older_format_names_counters_with_their_total() {
    let view = view(vec![vm(1, "a # TYPE x counter")]);
    let text = shown(&view, VMS_MAX, Format::Text);
    assert!(text.contains("# TYPE unspin_vm_run_seconds_total counter\n"));
    assert!(text.contains("# HELP unspin_vm_run_seconds_total CPU time"));
    assert!(text.contains("# TYPE unspin_vms gauge\n"));
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
    let accepted = [
        ("*/*", Format::Text),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            Format::OpenMetrics,
        ),
    ];
    for (accept, format) in accepted {
        assert_eq!(Format::accepted(accept), format);
    }
}

/// Whoever takes the dashboard or the alerts finds what they ask for.
#[test]
fn the_dashboard_and_the_alerts_ask_for_what_there_is() {
    let text = shown(&view(vec![vm(1, "web")]), VMS_MAX, Format::OpenMetrics);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../monitoring/");
    for (file, least) in [("dashboard.json", 15), ("alerts.yml", 6)] {
        let asks = std::fs::read_to_string(format!("{folder}{file}")).expect("it is there");
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':';
        let is_ours = |name: &&str| name.starts_with("unspin_") || name.starts_with("process_");
        let asked: std::collections::BTreeSet<&str> = asks.split(word).filter(is_ours).collect();
        assert!(asked.len() >= least, "{file}: {asked:?}");
        for name in asked {
            let there =
                |line: &str| line.starts_with(name) && line[name.len()..].starts_with([' ', '{']);
            assert!(text.lines().any(there), "{file}: {name}");
        }
    }
}
