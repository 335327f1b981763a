// SPDX-License-Identifier: MIT OR Apache-2.0
//! A VM of a few instructions, in kernel or user mode, that never ends: what no honest guest does.

use std::{io, ptr, thread, time::Duration};

use kvm_bindings::{kvm_regs, kvm_segment, kvm_sregs, kvm_userspace_memory_region};
use kvm_ioctls::{Kvm, VcpuFd};

const BYTES: usize = 0x1_0000;
/// Where page tables, code and what it reads lie.
const TABLES: u64 = 0x1000;
const CODE: u64 = 0x5000;
/// A page for the code's own use.
pub const DATA: u64 = 0x6000;
/// From one vCPU's hint page to the next (abi/hint.h).
pub const HINT_BYTES: usize = size_of::<unspin_abi::unspin_hint>();

/// What its vCPUs do.
pub struct Program {
    /// 64-bit code without an end; RSI is `DATA` and RBX `DATA` plus `HINT_BYTES` for each vCPU before.
    pub code: Vec<u8>,
    /// The page at `DATA`.
    pub data: Vec<u8>,
    /// First value of RAX.
    pub rax: u64,
    /// How many run it.
    pub vcpus: u64,
    /// So many of them in CPL 3 instead of 0.
    pub in_user_mode: u64,
    /// The host takes the page at `DATA` away and gives it back all the time, as a balloon does.
    pub ballooned: bool,
}

/// Runs it until the process is killed; an exit to user space that is none of a signal panics.
pub fn run(program: &Program) {
    let kvm = Kvm::new().expect("KVM");
    let vm = kvm.create_vm().expect("a VM");
    let entries = kvm_bindings::KVM_MAX_CPUID_ENTRIES;
    let cpuid = kvm.get_supported_cpuid(entries).expect("CPUID");
    let memory: &[u8] = memory(program);
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: BYTES as u64,
        userspace_addr: memory.as_ptr() as u64,
    };
    // SAFETY: the mapping is never taken away: `memory` lives until the process ends.
    unsafe { vm.set_user_memory_region(region) }.expect("memory");
    let vcpus = (0..program.vcpus).map(|number| {
        let vcpu = vm.create_vcpu(number).expect("a vCPU");
        // Without, there is no long mode.
        vcpu.set_cpuid2(&cpuid).expect("CPUID");
        prepare(&vcpu, program, number);
        vcpu
    });
    let vcpus: Vec<VcpuFd> = vcpus.collect();
    thread::scope(|scope| {
        if program.ballooned {
            scope.spawn(|| balloon(program, memory));
        }
        for mut vcpu in vcpus {
            scope.spawn(move || {
                loop {
                    match vcpu.run() {
                        Ok(exit) => panic!("{exit:?}"),
                        Err(error) if error.errno() == libc::EINTR => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
}

/// Takes the data's page away, so that what was registered there is neither mapped nor what it was, and puts it back.
fn balloon(program: &Program, memory: &[u8]) {
    let page = memory[DATA as usize..].as_ptr().cast_mut();
    loop {
        // SAFETY: one page inside the mapping, which is never taken away; Rust looks at none of it after the start, the
        // guest at its own risk.
        unsafe {
            assert_eq!(libc::madvise(page.cast(), 4096, libc::MADV_DONTNEED), 0);
            thread::sleep(Duration::from_micros(200));
            ptr::copy_nonoverlapping(program.data.as_ptr(), page, program.data.len().min(4096));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Guest memory: four levels of page tables that map the first 2 MiB one to one, the code, the data.
fn memory(program: &Program) -> &'static mut [u8] {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new private mapping at an address that the kernel chooses.
    let address = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    assert_ne!(address, libc::MAP_FAILED, "{}", io::Error::last_os_error());
    // SAFETY: the whole of the mapping above, which nobody else has and nobody unmaps.
    let memory = unsafe { std::slice::from_raw_parts_mut(address.cast::<u8>(), BYTES) };
    // Present, writable, open to user mode; the last also a 2 MiB page.
    let entries = [
        (TABLES, TABLES + 0x1000 + 7),
        (TABLES + 0x1000, TABLES + 0x2000 + 7),
        (TABLES + 0x2000, 0x87),
    ];
    let mut write = |at: u64, bytes: &[u8]| {
        memory[at as usize..][..bytes.len()].copy_from_slice(bytes);
    };
    for (at, entry) in entries {
        write(at, &u64::to_le_bytes(entry));
    }
    write(CODE, &program.code);
    write(DATA, &program.data);
    memory
}

fn prepare(vcpu: &VcpuFd, program: &Program, number: u64) {
    let mut special: kvm_sregs = vcpu.get_sregs().expect("registers");
    let level = if number < program.in_user_mode { 3 } else { 0 };
    let data = kvm_segment {
        limit: 0xffff_ffff,
        selector: 0x10 | u16::from(level),
        type_: 3,
        present: 1,
        dpl: level,
        db: 1,
        s: 1,
        g: 1,
        ..kvm_segment::default()
    };
    special.cs = kvm_segment {
        selector: 0x8 | u16::from(level),
        type_: 0xb,
        db: 0,
        l: 1,
        ..data
    };
    (special.ss, special.ds, special.es) = (data, data, data);
    special.cr3 = TABLES;
    special.cr4 = 0x20; // PAE
    special.cr0 = 0x8000_0033; // PG, NE, ET, MP, PE
    special.efer = 0x500; // LMA, LME
    vcpu.set_sregs(&special).expect("registers");
    let registers = kvm_regs {
        rip: CODE,
        rflags: 2,
        rax: program.rax,
        rbx: DATA + HINT_BYTES as u64 * number,
        rsi: DATA,
        ..Default::default()
    };
    vcpu.set_regs(&registers).expect("registers");
}
