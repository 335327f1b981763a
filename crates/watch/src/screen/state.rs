// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the screen shows, and what keys do.

use std::collections::BTreeSet;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    rates::{HostRates, VmRates},
    rows::by_waste,
};

/// By what VMs are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// CPU time wasted by spinning.
    #[default]
    Waste,
    /// Time without a CPU.
    Wait,
    /// CPU time.
    Run,
    /// Name.
    Name,
}

impl Sort {
    /// The word on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Waste => "waste",
            Sort::Wait => "wait",
            Sort::Run => "run",
            Sort::Name => "name",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Waste => Sort::Wait,
            Sort::Wait => Sort::Run,
            Sort::Run => Sort::Name,
            Sort::Name => Sort::Waste,
        }
    }
}

/// The screen.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    /// What is shown; `None`: nothing is known yet.
    pub(super) host: Option<HostRates>,
    pub(super) sort: Sort,
    /// The VM that is chosen, by number.
    pub(super) chosen: Option<u64>,
    /// VMs whose vCPUs are shown.
    pub(super) expanded: BTreeSet<u64>,
    /// The first line of the list that is shown; drawing moves it to where the chosen VM is seen.
    pub(super) first_line: usize,
}

impl Screen {
    /// Shows this from now on.
    pub fn show(&mut self, host: HostRates) {
        let there: BTreeSet<u64> = host.vms.iter().map(|vm| vm.number).collect();
        self.expanded.retain(|number| there.contains(number));
        self.chosen = self.chosen.filter(|number| there.contains(number));
        self.host = Some(host);
        if self.chosen.is_none() {
            self.chosen = self.sorted().first().map(|vm| vm.number);
        }
    }

    /// A key; true: quit.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Enter | KeyCode::Char(' ') => self.expand_chosen(),
            KeyCode::Char('a') => self.expand_all(),
            _ => {}
        }
        false
    }

    pub(super) fn sorted(&self) -> Vec<&VmRates> {
        let mut vms: Vec<&VmRates> = self.host.iter().flat_map(|host| &host.vms).collect();
        vms.sort_by(|one, other| {
            let (total, others) = (&one.total, &other.total);
            let first = match self.sort {
                Sort::Waste => std::cmp::Ordering::Equal,
                Sort::Wait => others.wait_percent.total_cmp(&total.wait_percent),
                Sort::Run => others.run_percent.total_cmp(&total.run_percent),
                Sort::Name => one.name.cmp(&other.name),
            };
            first.then(by_waste(one, other))
        });
        vms
    }

    fn choose(&mut self, by: isize) {
        let numbers: Vec<u64> = self.sorted().iter().map(|vm| vm.number).collect();
        let at = numbers
            .iter()
            .position(|number| Some(*number) == self.chosen);
        let last = numbers.len().saturating_sub(1);
        let next = at.unwrap_or(0).saturating_add_signed(by).min(last);
        self.chosen = numbers.get(next).copied();
    }

    fn expand_chosen(&mut self) {
        if let Some(number) = self.chosen {
            if !self.expanded.remove(&number) {
                self.expanded.insert(number);
            }
        }
    }

    /// All, or none if all are.
    fn expand_all(&mut self) {
        let all: BTreeSet<u64> = self.sorted().iter().map(|vm| vm.number).collect();
        self.expanded = match self.expanded == all {
            true => BTreeSet::new(),
            false => all,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::Rates;

    fn screen() -> Screen {
        let vm = |number, name: &str, run_percent, wait_percent, waste| VmRates {
            number,
            name: name.to_owned(),
            total: Rates {
                run_percent,
                wait_percent,
                waste_percent: Some(waste),
                ..Rates::default()
            },
            ..VmRates::default()
        };
        let mut screen = Screen::default();
        screen.show(HostRates {
            vms: vec![
                vm(1, "web", 90.0, 1.0, 2.0),
                vm(2, "db", 10.0, 5.0, 8.0),
                vm(3, "app", 50.0, 9.0, 1.0),
            ],
            ..HostRates::default()
        });
        screen
    }

    fn press(screen: &mut Screen, code: KeyCode) -> bool {
        screen.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn order(screen: &Screen) -> Vec<u64> {
        screen.sorted().iter().map(|vm| vm.number).collect()
    }

    #[test]
    fn s_sorts_by_one_thing_after_the_other() {
        let mut screen = screen();
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push((screen.sort.name(), order(&screen)));
            assert!(!press(&mut screen, KeyCode::Char('s')));
        }
        let expected = [
            ("waste", vec![2, 1, 3]),
            ("wait", vec![3, 2, 1]),
            ("run", vec![1, 3, 2]),
            ("name", vec![3, 2, 1]),
        ];
        assert_eq!(seen, expected);
        assert_eq!(screen.sort, Sort::Waste);
    }

    #[test]
    fn the_choice_stays_within_the_list_and_with_its_vm() {
        let mut screen = screen();
        assert_eq!(screen.chosen, Some(2));
        press(&mut screen, KeyCode::Up);
        assert_eq!(screen.chosen, Some(2));
        for _ in 0..5 {
            press(&mut screen, KeyCode::Down);
        }
        assert_eq!(screen.chosen, Some(3));
        press(&mut screen, KeyCode::Char('s'));
        assert_eq!(screen.chosen, Some(3));
        let mut left = screen.host.clone().expect("shown");
        left.vms.pop();
        screen.show(left);
        assert_ne!(screen.chosen, Some(3));
    }

    #[test]
    fn vms_are_expanded_one_by_one_or_all() {
        let mut screen = screen();
        press(&mut screen, KeyCode::Enter);
        assert_eq!(screen.expanded, BTreeSet::from([2]));
        press(&mut screen, KeyCode::Char('a'));
        assert_eq!(screen.expanded.len(), 3);
        press(&mut screen, KeyCode::Char('a'));
        assert!(screen.expanded.is_empty());
        press(&mut screen, KeyCode::Char(' '));
        press(&mut screen, KeyCode::Char(' '));
        assert!(screen.expanded.is_empty());
    }

    #[test]
    fn quitting_and_an_empty_host() {
        let mut screen = Screen::default();
        for code in [KeyCode::Down, KeyCode::Enter, KeyCode::Char('a')] {
            assert!(!press(&mut screen, code));
        }
        assert!(press(&mut screen, KeyCode::Char('q')));
        assert!(press(&mut screen, KeyCode::Esc));
        assert!(screen.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!press(&mut screen, KeyCode::Char('c')));
    }
}
