// SPDX-License-Identifier: MIT OR Apache-2.0
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};

use super::*;
use crate::view::{RecentView, SampledView};

fn rates(part: f64) -> Rates {
    Rates {
        run_percent: 180.5 * part,
        wait_percent: 210.0 * part,
        halted_percent: Some(9.5 * part),
        waste_percent: Some(140.25 * part),
        spin_percent: Some(77.7),
        ple_exits_per_second: Some(12_345.6 * part),
        yields_percent: Some(99.0),
        slices_lost_per_second: Some(321.0 * part),
    }
}

fn vm(number: u64, name: &str, part: f64) -> VmRates {
    let blame = |cause: Cause, vcpu, instead: Option<&str>, spin_ns| BlameView {
        cause: cause.name().to_owned(),
        vcpu,
        instead: instead.map(str::to_owned),
        spin_ns,
    };
    VmRates {
        number,
        name: name.to_owned(),
        process: Some(4711),
        total: rates(part),
        vcpus: (0..4)
            .map(|vcpu| VcpuRates {
                vcpu,
                thread: 4712 + vcpu,
                rates: rates(part / 4.0),
            })
            .collect(),
        recent: RecentView {
            bursts: 8,
            sampled: SampledView {
                cpu_ns: 200,
                spin_ns: [
                    (Cause::NextWaiterPreempted.name().to_owned(), 81),
                    (Cause::Contention.name().to_owned(), 19),
                ]
                .into(),
            },
            blame: vec![
                blame(Cause::NextWaiterPreempted, Some(3), Some("own vCPU 1"), 43),
                blame(Cause::NextWaiterPreempted, Some(0), Some("db-1"), 38),
                blame(Cause::Contention, None, None, 19),
            ],
        },
    }
}

fn screen() -> Screen {
    let mut quiet = vm(2, "db-1", 0.1);
    quiet.total.spin_percent = Some(0.4);
    quiet.recent = RecentView::default();
    let mut screen = Screen::default();
    screen.show(HostRates {
        seconds: 1.0,
        vms: vec![
            quiet,
            vm(1, "web-3", 1.0),
            vm(3, "a very long name\u{1F980} that goes on", 0.5),
        ],
        ..HostRates::default()
    });
    screen
}

fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a buffer");
    terminal.draw(|frame| draw(frame, screen)).expect("drawn");
    terminal.backend().to_string()
}

fn press(screen: &mut Screen, code: KeyCode) {
    screen.press(KeyEvent::new(code, KeyModifiers::NONE));
}

#[test]
fn vms_by_what_they_waste() {
    insta::assert_snapshot!(drawn(&mut screen(), 80, 24));
}

#[test]
fn an_expanded_vm_shows_its_vcpus_and_for_whom_it_spun() {
    let mut screen = screen();
    press(&mut screen, KeyCode::Enter);
    insta::assert_snapshot!(drawn(&mut screen, 80, 24));
}

#[test]
fn limits_and_blindness_are_said() {
    let mut screen = Screen::default();
    let before = drawn(&mut screen, 80, 6);
    assert!(
        before.contains("the first figures come in a moment"),
        "{before}"
    );
    let mut unseen = vm(1, "web-3", 1.0);
    unseen.total.waste_percent = None;
    unseen.total.spin_percent = None;
    unseen.recent = RecentView::default();
    screen.show(HostRates {
        vms: vec![unseen],
        blind: Some("KVM is not loaded".to_owned()),
        limits: vec!["blind: pause-loop exits are off".to_owned()],
        ..HostRates::default()
    });
    insta::assert_snapshot!(drawn(&mut screen, 80, 8));
}

#[test]
fn the_chosen_vm_is_seen_on_the_smallest_screen() {
    let mut screen = screen();
    press(&mut screen, KeyCode::Char('a'));
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Down);
    let small = drawn(&mut screen, 80, 5);
    assert!(small.contains("db-1"), "{small}");
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Up);
    let small = drawn(&mut screen, 80, 5);
    assert!(small.contains("web-3"), "{small}");
    // No size makes it fail.
    for (width, height) in [(1, 1), (10, 2), (300, 100)] {
        drawn(&mut screen, width, height);
    }
}

#[test]
fn names_are_cut_by_columns() {
    assert_eq!(cut("web", 5), "web  ");
    assert_eq!(cut("webserver", 5), "webs~");
    assert_eq!(cut("\u{1F980}\u{1F980}\u{1F980}", 5), "\u{1F980}\u{1F980}~");
    assert_eq!(cut("\u{1F980}\u{1F980}\u{1F980}", 4), "\u{1F980}~ ");
}
