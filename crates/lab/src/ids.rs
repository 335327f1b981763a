// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ids of a simulated host. Numbers count from 0 in the order of the scenario.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A pCPU.
    Cpu
);
id!(
    /// A task of the host scheduler: a vCPU's thread, or a thread that only uses CPU time.
    Task
);
id!(
    /// A group of tasks with a weight, in a tree: the kernel's cgroup with the cpu controller. 0 is the root.
    Group
);
id!(
    /// A VM.
    Vm
);
id!(
    /// A lock, numbered over all VMs.
    Lock
);
