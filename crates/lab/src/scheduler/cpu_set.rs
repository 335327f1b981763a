// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of pCPUs, such as those that are idle or have waiting tasks.

use crate::ids::Cpu;

/// A set of pCPUs.
#[derive(Clone, Debug)]
pub(super) struct CpuSet {
    words: Vec<u64>,
}

impl CpuSet {
    pub fn empty(cpus: u32) -> CpuSet {
        CpuSet {
            words: vec![0; (cpus as usize).div_ceil(64)],
        }
    }

    pub fn full(cpus: u32) -> CpuSet {
        let mut set = CpuSet::empty(cpus);
        for cpu in 0..cpus {
            set.set(Cpu(cpu), true);
        }
        set
    }

    pub fn set(&mut self, cpu: Cpu, is_in: bool) {
        let bit = 1 << (cpu.0 % 64);
        let word = &mut self.words[cpu.index() / 64];
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    pub fn contains(&self, cpu: Cpu) -> bool {
        self.words[cpu.index() / 64] >> (cpu.0 % 64) & 1 == 1
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Removes and returns the lowest.
    pub fn take_first(&mut self) -> Option<Cpu> {
        let index = self.words.iter().position(|word| *word != 0)?;
        let word = &mut self.words[index];
        let cpu = index as u32 * 64 + word.trailing_zeros();
        *word &= *word - 1;
        Some(Cpu(cpu))
    }

    /// The members among `count` pCPUs from `first` on, ascending.
    pub fn within(&self, (first, count): (Cpu, u32)) -> impl Iterator<Item = Cpu> + '_ {
        let (start, end) = (first.0, first.0 + count);
        (start / 64..end.div_ceil(64)).flat_map(move |index| {
            let mut word = self.words[index as usize];
            std::iter::from_fn(move || {
                while word != 0 {
                    let cpu = index * 64 + word.trailing_zeros();
                    word &= word - 1;
                    if (start..end).contains(&cpu) {
                        return Some(Cpu(cpu));
                    }
                }
                None
            })
        })
    }
}
