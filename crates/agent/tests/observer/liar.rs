// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that registers pv pages as no honest one does: 3 bytes of code in real mode, its registers set from here.

use std::{ptr, thread, time::Duration};
use unspin_testbed::check;

use kvm_bindings::{kvm_regs, kvm_userspace_memory_region};
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use unspin_abi as abi;
use unspin_agent::{EventMask, ObserveOptions, Observer};
use unspin_events::What;

const CODE: u64 = 0x1000;
/// `vmmcall; hlt`
const VMMCALL_HLT: [u8; 4] = [0x0f, 0x01, 0xd9, 0xf4];
const LOW_BYTES: usize = 0x1_0000;
/// A second slot, far above the first, whose memory goes away.
const HIGH: u64 = 0x10_0000;
const HIGH_BYTES: usize = 0x4000;
const REGISTRATIONS: u64 = 4_000;
/// A pv page (abi/guest/pv_page.h).
const PV_PAGE_BYTES: u64 = size_of::<abi::unspin_pv_page>() as u64;

/// Memory of this process that a VM has as its own.
struct Memory {
    address: *mut u8,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> Memory {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new private mapping at an address that the kernel chooses.
        let address = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        assert_ne!(address, libc::MAP_FAILED);
        Memory {
            address: address.cast(),
            bytes,
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(offset as usize + bytes.len() <= self.bytes);
        // SAFETY: within the mapping, by the line above; nobody else has a reference to it.
        unsafe {
            ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.address.add(offset as usize),
                bytes.len(),
            );
        }
    }

    /// Takes the memory away from below the VM, whose slot stays.
    fn vanish(&self) {
        // SAFETY: the mapping that `new` made; nothing reads it through a reference.
        assert_eq!(unsafe { libc::munmap(self.address.cast(), self.bytes) }, 0);
    }
}

struct Liar {
    vcpu: VcpuFd,
    _vm: VmFd,
    low: Memory,
    high: Memory,
}

impl Liar {
    fn new() -> Liar {
        let vm = Kvm::new().expect("KVM").create_vm().expect("a VM");
        let (low, high) = (Memory::new(LOW_BYTES), Memory::new(HIGH_BYTES));
        for (slot, guest_phys_addr, memory) in [(0, 0, &low), (1, HIGH, &high)] {
            let region = kvm_userspace_memory_region {
                slot,
                flags: 0,
                guest_phys_addr,
                memory_size: memory.bytes as u64,
                userspace_addr: memory.address as u64,
            };
            // SAFETY: the mapping lives until `vanish`, after which KVM finds nothing there and says so to the guest.
            unsafe { vm.set_user_memory_region(region) }.expect("memory");
        }
        low.write(CODE, &VMMCALL_HLT);
        let vcpu = vm.create_vcpu(0).expect("a vCPU");
        let mut special = vcpu.get_sregs().expect("registers");
        (special.cs.base, special.cs.selector) = (0, 0);
        vcpu.set_sregs(&special).expect("registers");
        Liar {
            vcpu,
            _vm: vm,
            low,
            high,
        }
    }

    /// Registers that address, halts, and sleeps so that the vCPU leaves its CPU.
    fn register(&mut self, address: u64, sleep: bool) {
        let registers = kvm_regs {
            rip: CODE,
            rflags: 2,
            rax: u64::from(abi::UNSPIN_HYPERCALL_REGISTER_PV_PAGE),
            rbx: address,
            ..Default::default()
        };
        self.vcpu.set_regs(&registers).expect("registers");
        let exit = self.vcpu.run().expect("it runs");
        assert!(matches!(exit, VcpuExit::Hlt), "{exit:?}");
        if sleep {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn pv_page_bytes(critical: u32, lock: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [abi::UNSPIN_PV_PAGE_MAGIC, critical, critical, u32::MAX] {
        bytes.extend(word.to_le_bytes());
    }
    for word in [lock, u64::MAX, u64::MAX, 0, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// Pv pages since the last look: their arguments.
fn pv_page(observer: &mut Observer) -> Vec<[u64; 3]> {
    let mut pv_page = Vec::new();
    let undecodable = observer.drain(&mut |event| {
        if let What::PvPage { arguments } = event.what {
            pv_page.push(arguments);
        }
    });
    assert_eq!(undecodable.expect("the ring"), 0);
    pv_page
}

check!(INTERRUPTED: a_lying_guest_gets_wrong_pv_pages_and_nothing_else);
/// Whatever is registered, the host reads that VM's memory or nothing, and pays little.
pub fn a_lying_guest_gets_wrong_pv_pages_and_nothing_else() {
    let options = ObserveOptions {
        events: EventMask::SWITCHES.and(EventMask::PV_PAGES),
        run_statistics: true,
        ..ObserveOptions::default()
    };
    let mut observer = Observer::attach(&options).expect("the testbed's kernel has all it takes");
    let mut liar = Liar::new();
    let (first, last) = (0x2000, LOW_BYTES as u64 - PV_PAGE_BYTES);
    liar.low.write(first, &pv_page_bytes(u32::MAX, 7));
    liar.low.write(last, &pv_page_bytes(3, 8));
    liar.high.write(0x800, &pv_page_bytes(1, 9));
    // Across two pages: whole in memory, and still refused.
    liar.low.write(0x3fe0, &pv_page_bytes(1, 10));

    for (address, lock) in [(first, 7), (last, 8), (HIGH + 0x800, 9)] {
        liar.register(address, true);
        let said = pv_page(&mut observer);
        assert!(!said.is_empty(), "{address:#x}");
        assert!(
            said.iter()
                .all(|said| said[1] == lock && said[0] >> 24 == 0),
            "{said:?}"
        );
    }
    // 255 and no more; 3 is 3.
    liar.register(first, true);
    assert!(
        pv_page(&mut observer)
            .iter()
            .all(|said| said[0] == 0xff_ff_ff)
    );

    let nowhere = [
        0x3fe0,
        0x5000,
        last + 1,
        HIGH - PV_PAGE_BYTES,
        HIGH + HIGH_BYTES as u64,
        0xffff_ffff,
        0,
    ];
    for address in nowhere {
        liar.register(address, false);
        pv_page(&mut observer); // of the place before, if the thread was preempted meanwhile
        liar.register(address, true);
        assert_eq!(pv_page(&mut observer), [[0; 3]; 0], "{address:#x}");
    }

    // What was there is there no more.
    liar.register(HIGH + 0x800, true);
    assert!(!pv_page(&mut observer).is_empty());
    liar.high.vanish();
    pv_page(&mut observer);
    thread::sleep(Duration::from_millis(2));
    assert_eq!(pv_page(&mut observer), [[0; 3]; 0]);

    let mut address = 0_u64;
    for _ in 0..REGISTRATIONS {
        address = (address + 0x0012_3456_789b) & 0xffff_ffff;
        liar.register(address, false);
    }
    let health = observer.health().expect("the kernel tells");
    let program = health
        .programs
        .iter()
        .find(|program| program.name == "tp_btf/kvm_hypercall")
        .expect("it is loaded for pv_page");
    assert!(program.run_count >= REGISTRATIONS, "{program:?}");
    let mean_ns = program.run_time_ns / program.run_count;
    println!("a registration by a liar takes {mean_ns} ns in the mean");
    assert!(mean_ns < 4_000, "{program:?}");
    assert_eq!(
        (health.lost_events, health.unobserved_exits),
        (0, 0),
        "{health:?}"
    );
}
