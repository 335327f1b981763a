// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a dry run counted, in the words of the host: processes, VMs, vCPUs, threads.

use std::collections::BTreeMap;

use unspin_abi as abi;

/// How often something was answered about one vCPU, and one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryAnswer {
    /// The VMM.
    pub process: u32,
    /// Of that process's VMs this one, by the ids of their threads: from 0.
    pub vm: u32,
    /// KVM's number of the vCPU that was asked about.
    pub vcpu: u32,
    /// Its thread.
    pub thread: u32,
    /// vCPU and thread that KVM proposed; `None`: there was none, or one that never entered its guest meanwhile.
    pub candidate: Option<(u32, u32)>,
    /// `UNSPIN_ON_YIELD` or `UNSPIN_ON_SLICE_END`.
    pub event: u32,
    /// `UNSPIN_REFUSE` and so on.
    pub action: u32,
    /// False: no policy was on, or none may touch these vCPUs; then nobody was asked, and it counts as refused.
    pub asked: bool,
    /// How often.
    pub count: u64,
}

/// A process's VMs are numbered by their least thread.
pub(super) fn typed(raw: &[(abi::unspin_dry_key, abi::unspin_dry_count)]) -> Vec<DryAnswer> {
    let mut first: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for (key, value) in raw {
        let thread = first.entry((value.process, key.vm)).or_insert(key.thread);
        *thread = key.thread.min(*thread);
    }
    let number = |process: u32, vm: u64| {
        let own = (first[&(process, vm)], vm);
        let earlier = first
            .iter()
            .filter(|((of, other), thread)| *of == process && (**thread, *other) < own);
        earlier.count() as u32
    };
    let mut answers: Vec<DryAnswer> = raw
        .iter()
        .map(|(key, value)| DryAnswer {
            process: value.process,
            vm: number(value.process, key.vm),
            vcpu: value.vcpu,
            thread: key.thread,
            candidate: (key.candidate != 0).then_some((value.candidate_vcpu, key.candidate)),
            event: key.event,
            action: key.action,
            asked: key.asked != 0,
            count: value.count,
        })
        .collect();
    answers.sort_by_key(|it| {
        (
            it.process,
            it.vm,
            it.vcpu,
            it.thread,
            it.event,
            it.action,
            it.candidate,
        )
    });
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vms_of_a_process_are_told_apart() {
        let answer = |process, vm, thread, candidate| {
            let key = abi::unspin_dry_key {
                vm,
                thread,
                candidate,
                event: 1,
                action: 2,
                asked: 1,
                reserved: 0,
            };
            let value = abi::unspin_dry_count {
                count: 5,
                process,
                vcpu: thread % 10,
                candidate_vcpu: candidate % 10,
                reserved: 0,
            };
            (key, value)
        };
        // Addresses in another order than threads, and one VM's address again in another process.
        let raw = [
            answer(7, 900, 11, 12),
            answer(7, 100, 21, 22),
            answer(7, 900, 12, 0),
            answer(8, 100, 30, 31),
        ];
        let answers = typed(&raw);
        let short: Vec<_> = answers
            .iter()
            .map(|it| (it.process, it.vm, it.vcpu, it.candidate))
            .collect();
        assert_eq!(
            short,
            [
                (7, 0, 1, Some((2, 12))),
                (7, 0, 2, None),
                (7, 1, 1, Some((2, 22))),
                (8, 0, 0, Some((1, 31))),
            ]
        );
        assert!(typed(&[]).is_empty());
    }
}
