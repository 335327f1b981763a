// SPDX-License-Identifier: MIT OR Apache-2.0
//! A VM of a few instructions, in kernel or user mode, that never ends: what no honest guest does.

use std::{io, ptr, thread, time::Duration};

use kvm_bindings::{
    KVM_CAP_SPLIT_IRQCHIP, KVM_MP_STATE_RUNNABLE, kvm_dtable, kvm_enable_cap, kvm_mp_state,
    kvm_regs, kvm_segment, kvm_sregs, kvm_userspace_memory_region,
};
use kvm_ioctls::{Kvm, VcpuFd, VmFd};

/// What the threads of vCPUs are called; others of the process watch, or take memory away.
pub const VCPU_THREAD: &str = "vcpu";

const BYTES: usize = 0x1_0000;
/// Where page tables, code and what it reads lie.
const TABLES: u64 = 0x1000;
const CODE: u64 = 0x5000;
/// What answers interrupts.
const HANDLER: u64 = 0x5800;
/// Pages for the code's own use.
pub const DATA: u64 = 0x6000;
const DESCRIPTORS: u64 = 0x8000;
const INTERRUPTS: u64 = 0x9000;
/// For each vCPU so many bytes of stack from here on.
const STACKS: u64 = 0xa000;
const STACK_BYTES: u64 = 0x400;
/// Where only the other VM of this process has memory.
pub const OTHERS: u64 = 0x10_0000;
/// The vector that is answered: CALL_FUNCTION_VECTOR (arch/x86/include/asm/irq_vectors.h), as of a shootdown.
pub const VECTOR: u8 = 0xfc;
/// From one vCPU's pv page to the next (abi/guest/pv_page.h).
pub const PV_PAGE_BYTES: usize = size_of::<unspin_abi::unspin_pv_page>();

/// What its vCPUs do.
pub struct Program {
    /// 64-bit code without an end; RSI is `DATA` and RBX `DATA` plus `PV_PAGE_BYTES` for each vCPU before.
    pub code: Vec<u8>,
    /// The pages at `DATA`, two at most.
    pub data: Vec<u8>,
    /// How many run it.
    pub vcpus: u64,
    /// So many of them in CPL 3 instead of 0.
    pub in_user_mode: u64,
    /// They have local APICs, in x2APIC mode, and whoever enables interrupts answers `VECTOR`.
    pub interrupts: bool,
    /// What becomes of the page at `DATA`.
    pub page: Page,
    /// Another VM of this process has these bytes at `OTHERS`; that they change is a panic.
    pub others: Vec<u8>,
}

/// What the host does with a page of its guest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Page {
    Stays,
    /// It is taken away and given back all the time, as by a balloon.
    Ballooned,
    /// It is unmapped a moment after the start, for good.
    Unmapped,
}

/// Runs it until the process is killed; an exit to user space that is none of a signal panics.
pub fn run(program: &Program) {
    // A thread's panic would leave the others to run on.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("the hostile guest's VMM: {panic}");
        std::process::abort();
    }));
    let kvm = Kvm::new().expect("KVM");
    let vm = kvm.create_vm().expect("a VM");
    let entries = kvm_bindings::KVM_MAX_CPUID_ENTRIES;
    let cpuid = kvm.get_supported_cpuid(entries).expect("CPUID");
    if program.interrupts {
        // No other interrupt controller, as in crates/vmm.
        let apics = kvm_enable_cap {
            cap: KVM_CAP_SPLIT_IRQCHIP,
            ..Default::default()
        };
        vm.enable_cap(&apics).expect("local APICs");
    }
    let memory = Memory::of(memory(program));
    give(&vm, 0, memory);
    // It is there, and never runs.
    let other = kvm.create_vm().expect("a VM");
    let others = mapping();
    others[..program.others.len()].copy_from_slice(&program.others);
    let others = Memory::of(others);
    give(&other, OTHERS, others);
    let vcpus = (0..program.vcpus).map(|number| {
        let vcpu = vm.create_vcpu(number).expect("a vCPU");
        // Without, there is no long mode.
        vcpu.set_cpuid2(&cpuid).expect("CPUID");
        prepare(&vcpu, program, number);
        vcpu
    });
    let vcpus: Vec<VcpuFd> = vcpus.collect();
    thread::scope(|scope| {
        match program.page {
            Page::Stays => {}
            Page::Ballooned => drop(scope.spawn(move || balloon(program, memory))),
            Page::Unmapped => drop(scope.spawn(move || unmap(memory))),
        }
        if !program.others.is_empty() {
            scope.spawn(move || keep_watch(program, others));
        }
        for mut vcpu in vcpus {
            let thread = thread::Builder::new().name(VCPU_THREAD.into());
            let vcpu_runs = move || {
                loop {
                    match vcpu.run() {
                        Ok(exit) => panic!("{exit:?}"),
                        Err(error) if error.errno() == libc::EINTR => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            };
            thread.spawn_scoped(scope, vcpu_runs).expect("a thread");
        }
    });
}

/// A VM's memory, `BYTES` long. No reference: a guest, the host and `balloon` write to it at any time.
#[derive(Clone, Copy)]
struct Memory(*mut u8);

// SAFETY: an address that every thread of the process may use; who does says why it may.
unsafe impl Send for Memory {}

impl Memory {
    /// All of a mapping that nobody refers to from here on.
    fn of(mapping: &'static mut [u8]) -> Memory {
        assert_eq!(mapping.len(), BYTES);
        Memory(mapping.as_mut_ptr())
    }

    /// Where its byte `at` is.
    fn byte(self, at: usize) -> *mut u8 {
        assert!(at < BYTES);
        // SAFETY: in bounds, as just seen.
        unsafe { self.0.add(at) }
    }
}

/// A VM's memory, as its only slot.
fn give(vm: &VmFd, at: u64, memory: Memory) {
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: at,
        memory_size: BYTES as u64,
        userspace_addr: memory.byte(0) as u64,
    };
    // SAFETY: the mapping lives until the process ends, but for a page that `unmap` takes out of it, which no guest touches
    // from then on.
    unsafe { vm.set_user_memory_region(region) }.expect("memory");
}

/// Takes the data's page away for good, once it has been registered.
fn unmap(memory: Memory) {
    thread::sleep(Duration::from_millis(50));
    let page = memory.byte(DATA as usize);
    // SAFETY: one page inside the mapping; neither Rust nor the guest looks at it any more.
    let status = unsafe { libc::munmap(page.cast(), 4096) };
    assert_eq!(status, 0, "{}", io::Error::last_os_error());
}

/// Ends the process when anybody writes into the other VM's memory.
fn keep_watch(program: &Program, others: Memory) {
    loop {
        for (at, expected) in program.others.iter().enumerate() {
            // SAFETY: inside a mapping that stays; whoever writes to it is the failure that is looked for.
            let found = unsafe { others.byte(at).read_volatile() };
            assert_eq!(found, *expected, "byte {at} of another VM's page");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Takes the data's page away, so that what was registered there is neither mapped nor what it was, and puts it back.
fn balloon(program: &Program, memory: Memory) {
    let page = memory.byte(DATA as usize);
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

/// Zeros that stay until the process ends.
fn mapping() -> &'static mut [u8] {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new private mapping at an address that the kernel chooses.
    let address = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    assert_ne!(address, libc::MAP_FAILED, "{}", io::Error::last_os_error());
    // SAFETY: the whole of the mapping above, which nobody else has and nobody unmaps.
    unsafe { std::slice::from_raw_parts_mut(address.cast::<u8>(), BYTES) }
}

/// Guest memory: page tables that map the first 2 MiB one to one, the code, the data, and what an interrupt needs.
fn memory(program: &Program) -> &'static mut [u8] {
    let memory = mapping();
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
    assert!(program.code.len() < (HANDLER - CODE) as usize && program.data.len() <= 0x2000);
    write(CODE, &program.code);
    write(DATA, &program.data);
    // None, 64-bit code and data of level 0 (Intel SDM volume 3, 3.4.5).
    for (at, descriptor) in (0..).zip([0, 0x00af_9b00_0000_ffff_u64, 0x00cf_9300_0000_ffff]) {
        write(DESCRIPTORS + 8 * at, &descriptor.to_le_bytes());
    }
    // An interrupt gate: present, level 0 (Intel SDM volume 3, 6.14.1); the handler lies below 64 KiB.
    let gate = HANDLER | 0x8 << 16 | 0x8e00 << 32;
    write(INTERRUPTS + 16 * u64::from(VECTOR), &gate.to_le_bytes());
    write(HANDLER, &HANDLE);
    memory
}

/// Says that the interrupt has ended, and changes nothing.
const HANDLE: [u8; 19] = [
    0x50, 0x51, 0x52, // push rax, rcx, rdx
    0xb9, 0x0b, 0x08, 0, 0, // mov ecx, the x2APIC's EOI
    0x31, 0xc0, 0x31, 0xd2, // xor eax, eax; xor edx, edx
    0x0f, 0x30, // wrmsr
    0x5a, 0x59, 0x58, // pop rdx, rcx, rax
    0x48, 0xcf, // iretq
];

fn prepare(vcpu: &VcpuFd, program: &Program, number: u64) {
    let mut special: kvm_sregs = vcpu.get_sregs().expect("registers");
    // Kernels let processes be interrupted.
    let (level, rflags) = if number < program.in_user_mode {
        (3, 0x202)
    } else {
        (0, 2)
    };
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
    let table = |base| kvm_dtable {
        base,
        limit: 0xfff,
        ..Default::default()
    };
    (special.gdt, special.idt) = (table(DESCRIPTORS), table(INTERRUPTS));
    if program.interrupts {
        special.apic_base |= 0xc00; // enabled, in x2APIC mode
        let runnable = kvm_mp_state {
            mp_state: KVM_MP_STATE_RUNNABLE,
        };
        vcpu.set_mp_state(runnable).expect("it runs at once");
    }
    vcpu.set_sregs(&special).expect("registers");
    let registers = kvm_regs {
        rip: CODE,
        rflags,
        rbx: DATA + PV_PAGE_BYTES as u64 * number,
        rsi: DATA,
        rsp: STACKS + STACK_BYTES * (number + 1),
        ..Default::default()
    };
    vcpu.set_regs(&registers).expect("registers");
}
