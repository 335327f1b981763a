// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accounting of credits: how many were used, and how many are given out (csched_acct() of xen/common/sched_credit.c,
//! Xen 3.3).

use super::{Credit, Priority, SLICE_NS};
use crate::ids::Cpu;

impl Credit {
    /// burn_credits() of Xen 4.
    pub(super) fn charge(&mut self, now_ns: u64, cpu: Cpu) {
        let pcpu = &mut self.pcpus[cpu.index()];
        let Some(task) = pcpu.current else {
            return;
        };
        let delta_ns = now_ns.saturating_sub(pcpu.charged_ns);
        pcpu.charged_ns = now_ns;
        let vcpu = &mut self.vcpus[task.index()];
        vcpu.charged_ns += delta_ns;
        vcpu.credit_ns -= delta_ns as i64;
    }

    /// csched_vcpu_acct(): at a tick, for the running vCPU.
    pub(super) fn account_running(&mut self, cpu: Cpu) {
        let Some(task) = self.pcpus[cpu.index()].current else {
            return;
        };
        let vcpu = &mut self.vcpus[task.index()];
        vcpu.priority = vcpu.priority.min(Priority::Under);
        if !std::mem::replace(&mut vcpu.active, true) {
            let domain = vcpu.domain;
            self.domains[domain].active += 1;
            if self.domains[domain].active == 1 {
                self.order.insert(0, domain);
            }
        }
    }

    /// Gives out the credits of a period: csched_acct(). Sums are below pCPUs x 30 ms x weights, which fits 64 bits.
    pub(super) fn account(&mut self) {
        let weight_total: u64 = self
            .order
            .iter()
            .map(|domain| self.domains[*domain].weight)
            .sum();
        if weight_total == 0 {
            self.balance_ns = 0;
            return;
        }
        let owed_ns = (-self.balance_ns).max(0) as u64;
        let mut total_ns = self.pcpus.len() as u64 * SLICE_NS + owed_ns;
        let (mut weight_left, mut balance_ns, mut some_wanted_more) = (weight_total, 0, false);
        let order = std::mem::take(&mut self.order);
        let mut next = Vec::with_capacity(order.len());
        for domain in order {
            let (weight, active) = (
                self.domains[domain].weight,
                u64::from(self.domains[domain].active),
            );
            weight_left -= weight;
            let peak_ns = active * SLICE_NS + scaled(owed_ns, weight, weight_total);
            let mut fair_ns = scaled(total_ns, weight, weight_total);
            let mut to_head = false;
            if fair_ns < peak_ns {
                some_wanted_more = true;
            } else {
                if weight_left > 0 {
                    total_ns += scaled(fair_ns - peak_ns, weight_total, weight_left);
                }
                to_head = some_wanted_more;
                fair_ns = peak_ns;
            }
            balance_ns += self.credit_domain(domain, fair_ns.div_ceil(active));
            if self.domains[domain].active > 0 {
                let position = if to_head { 0 } else { next.len() };
                next.insert(position, domain);
            }
        }
        self.order = next;
        self.balance_ns = balance_ns;
        self.accounts += 1;
    }

    /// Gives each active vCPU of a domain this many credits, and sets its priority. Returns the sum of their credits.
    fn credit_domain(&mut self, domain: usize, each_ns: u64) -> i64 {
        let mut balance_ns = 0;
        for index in 0..self.domains[domain].vcpus.len() {
            let vcpu = &mut self.vcpus[self.domains[domain].vcpus[index].index()];
            if !vcpu.active {
                continue;
            }
            vcpu.credit_ns += each_ns as i64;
            if vcpu.credit_ns < 0 {
                vcpu.priority = Priority::Over;
                vcpu.credit_ns = vcpu.credit_ns.max(-(SLICE_NS as i64));
            } else {
                vcpu.priority = Priority::Under;
                if vcpu.credit_ns > SLICE_NS as i64 {
                    vcpu.active = false;
                    vcpu.credit_ns = 0;
                    self.domains[domain].active -= 1;
                }
            }
            balance_ns += vcpu.credit_ns;
        }
        balance_ns
    }
}

/// amount x weight / all, rounded up.
fn scaled(amount: u64, weight: u64, all: u64) -> u64 {
    (u128::from(amount) * u128::from(weight)).div_ceil(u128::from(all)) as u64
}
