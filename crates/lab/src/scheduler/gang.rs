// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gang scheduling: the tasks of a VM run at the same time. The matrix of Ousterhout ("Scheduling Techniques for
//! Concurrent Systems", 1982): columns are pCPUs, rows are time slots; a VM's tasks are in one row, and all pCPUs
//! change rows at the same time. A pCPU whose task of the row is not runnable takes the next runnable one of its column
//! (Ousterhout's "alternate selection").
//!
//! Rows are filled in the order of families, each whole into the first row with room; a VM with more tasks than pCPUs
//! is split over several rows. A task without a family is a gang of one. Weights have no effect, nor does a directed
//! yield.

use super::{Allowed, Enqueue, HostScheduler, YieldTo};
use crate::ids::{Cpu, Group, Task};
use crate::topology::Topology;

/// The default length of a slot, ns.
pub const SLOT_NS: u64 = 10_000_000;

#[derive(Debug)]
struct Member {
    allowed: Allowed,
    family: Option<u32>,
    row: usize,
    cpu: Cpu,
    state: State,
    charged_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sleeps,
    Waits,
    Runs,
}

/// Gang scheduling; see the head of the file.
#[derive(Debug)]
pub struct Gang {
    slot_ns: u64,
    cpus: usize,
    members: Vec<Member>,
    /// Tasks, by row and pCPU.
    rows: Vec<Vec<Option<Task>>>,
    /// Whether tasks were added since the rows were filled.
    unplaced: bool,
    groups: u32,
    current: Vec<Option<Task>>,
    /// Time up to which a pCPU's current task is charged, ns.
    charged_ns: Vec<u64>,
    runnable: Vec<u32>,
}

impl Gang {
    /// The scheduler for this machine, with slots of `slot_ns`, 1 or more.
    pub fn new(topology: Topology, slot_ns: u64) -> Gang {
        let cpus = topology.cpus() as usize;
        Gang {
            slot_ns: slot_ns.max(1),
            cpus,
            members: Vec::new(),
            rows: Vec::new(),
            unplaced: false,
            groups: 0,
            current: vec![None; cpus],
            charged_ns: vec![0; cpus],
            runnable: vec![0; cpus],
        }
    }

    /// Places all sleeping tasks again; a runnable task keeps its pCPU and its row.
    fn place(&mut self) {
        if !std::mem::take(&mut self.unplaced) {
            return;
        }
        let mut order: Vec<Task> = (0..self.members.len() as u32).map(Task).collect();
        let placed = |task: &Task| self.members[task.index()].state != State::Sleeps;
        order.retain(|task| !placed(task));
        let family = |task: &Task| {
            self.members[task.index()]
                .family
                .map_or((1, task.0), |family| (0, family))
        };
        order.sort_by_key(|task| (family(task), *task));
        let moves = |task: &Option<Task>| {
            task.is_some_and(|task| self.members[task.index()].state == State::Sleeps)
        };
        for row in &mut self.rows {
            row.iter_mut()
                .filter(|task| moves(task))
                .for_each(|task| *task = None);
        }
        let mut gangs: Vec<Vec<Task>> = Vec::new();
        for task in order {
            match gangs.last_mut() {
                Some(gang) if family(&gang[0]) == family(&task) => gang.push(task),
                _ => gangs.push(vec![task]),
            }
        }
        for gang in gangs {
            self.place_gang(&gang);
        }
    }

    /// Into the first row that holds the whole gang; else as many as fit into each row.
    fn place_gang(&mut self, gang: &[Task]) {
        let whole = (0..self.rows.len()).find(|row| self.columns(*row, gang).len() == gang.len());
        let mut row = whole.unwrap_or(self.rows.len());
        let mut rest = gang;
        while !rest.is_empty() {
            if row == self.rows.len() {
                self.rows.push(vec![None; self.cpus]);
            }
            let columns = self.columns(row, rest);
            for (task, column) in rest.iter().zip(&columns) {
                self.rows[row][*column] = Some(*task);
                let member = &mut self.members[task.index()];
                member.row = row;
                member.cpu = Cpu(*column as u32);
            }
            rest = &rest[columns.len()..];
            row += 1;
        }
    }

    /// Free columns for the first tasks of a gang, each where the task may run, as many as there are.
    fn columns(&self, row: usize, gang: &[Task]) -> Vec<usize> {
        let mut taken = Vec::new();
        for task in gang {
            let allowed = &self.members[task.index()].allowed;
            let free = (0..self.cpus).find(|column| {
                self.rows[row][*column].is_none()
                    && !taken.contains(column)
                    && allowed.contains(Cpu(*column as u32))
            });
            match free {
                Some(column) => taken.push(column),
                None => break,
            }
        }
        taken
    }

    /// The row at that time.
    fn row_at(&self, now_ns: u64) -> usize {
        (now_ns / self.slot_ns) as usize % self.rows.len().max(1)
    }

    /// Number of rows from the present one to a task's.
    fn turns_until(&self, now_ns: u64, task: Task) -> usize {
        let rows = self.rows.len().max(1);
        (self.members[task.index()].row + rows - self.row_at(now_ns)) % rows
    }

    /// The runnable task of a column whose row is next, the current one included.
    fn nearest(&self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        let rows = self.rows.len();
        let slice = self.row_at(now_ns);
        (0..rows).find_map(|step| {
            let task = self.rows[(slice + step) % rows][cpu.index()]?;
            (self.members[task.index()].state != State::Sleeps).then_some(task)
        })
    }

    fn charge(&mut self, now_ns: u64, cpu: Cpu) {
        if let Some(task) = self.current[cpu.index()] {
            let since_ns = std::mem::replace(&mut self.charged_ns[cpu.index()], now_ns);
            self.members[task.index()].charged_ns += now_ns.saturating_sub(since_ns);
        }
    }
}

impl HostScheduler for Gang {
    fn add_group(&mut self, _parent: Group, _weight: u32) -> Group {
        self.groups += 1;
        Group(self.groups)
    }

    fn add_task(
        &mut self,
        _group: Group,
        _weight: u32,
        allowed: Allowed,
        family: Option<u32>,
    ) -> Task {
        self.unplaced = true;
        let (state, charged_ns) = (State::Sleeps, 0);
        self.members.push(Member {
            allowed,
            family,
            row: 0,
            cpu: Cpu(0),
            state,
            charged_ns,
        });
        Task(self.members.len() as u32 - 1)
    }

    fn select_cpu(&mut self, _now_ns: u64, task: Task, _waker: Option<Cpu>) -> Cpu {
        self.place();
        self.members[task.index()].cpu
    }

    fn enqueue(&mut self, _now_ns: u64, task: Task, cpu: Cpu, _why: Enqueue) {
        self.place();
        debug_assert_eq!(
            self.members[task.index()].cpu,
            cpu,
            "a task keeps its column"
        );
        self.members[task.index()].state = State::Waits;
        self.runnable[self.members[task.index()].cpu.index()] += 1;
    }

    fn wakeup_preempts(&mut self, now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        match self.current[cpu.index()] {
            None => true,
            Some(current) => self.turns_until(now_ns, woken) < self.turns_until(now_ns, current),
        }
    }

    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        let task = self.nearest(now_ns, cpu)?;
        self.members[task.index()].state = State::Runs;
        self.current[cpu.index()] = Some(task);
        self.charged_ns[cpu.index()] = now_ns;
        Some(task)
    }

    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        self.charge(now_ns, cpu);
        let Some(task) = self.current[cpu.index()].take() else {
            return;
        };
        if runnable {
            self.members[task.index()].state = State::Waits;
        } else {
            self.members[task.index()].state = State::Sleeps;
            self.runnable[cpu.index()] -= 1;
        }
    }

    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        self.charge(now_ns, cpu);
        self.nearest(now_ns, cpu) != self.current[cpu.index()]
    }

    /// The slot: ticks of all pCPUs are at the same times, at multiples of it.
    fn tick_period_ns(&self) -> u64 {
        self.slot_ns
    }

    fn timer_ns(&self, cpu: Cpu) -> Option<u64> {
        // For worlds whose ticks are not aligned.
        self.current[cpu.index()]
            .map(|_| (self.charged_ns[cpu.index()] / self.slot_ns + 1) * self.slot_ns)
    }

    fn yield_now(&mut self, now_ns: u64, cpu: Cpu) {
        self.charge(now_ns, cpu);
    }

    fn yield_to(&mut self, _now_ns: u64, _cpu: Cpu, _target: Task) -> YieldTo {
        YieldTo::Refused
    }

    fn charged_ns(&self, task: Task) -> u64 {
        self.members[task.index()].charged_ns
    }

    fn runnable(&self, cpu: Cpu) -> u32 {
        self.runnable[cpu.index()]
    }

    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        let member = &self.members[task.index()];
        (member.state != State::Sleeps).then_some(member.cpu)
    }
}
