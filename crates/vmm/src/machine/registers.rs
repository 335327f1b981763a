// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state in which every vCPU executes its first instruction, as abi/guest/memory.h asks: 64-bit mode, no firmware, no
//! INIT or SIPI.
//!
//! Formats: AMD64 Architecture Programmer's Manual volume 2, 3.1 (control registers), 4.8 (long-mode segments).
use kvm_bindings::{kvm_dtable, kvm_regs, kvm_segment, kvm_sregs};
use unspin_abi as abi;

const CR0_PROTECTION: u64 = 1 << 0;
const CR0_MONITOR_COPROCESSOR: u64 = 1 << 1;
const CR0_EXTENSION_TYPE: u64 = 1 << 4;
const CR0_NUMERIC_ERROR: u64 = 1 << 5;
const CR0_WRITE_PROTECT: u64 = 1 << 16;
const CR0_PAGING: u64 = 1 << 31;
const CR4_PHYSICAL_ADDRESS_EXTENSION: u64 = 1 << 5;
const EFER_SYSTEM_CALL: u64 = 1 << 0;
const EFER_LONG_MODE_ENABLE: u64 = 1 << 8;
const EFER_LONG_MODE_ACTIVE: u64 = 1 << 10;
const EFER_NO_EXECUTE: u64 = 1 << 11;

const APIC_BASE_ADDRESS: u64 = 0xfee0_0000;
const APIC_BASE_BOOTSTRAP: u64 = 1 << 8;
const APIC_BASE_X2APIC: u64 = 1 << 10;
const APIC_BASE_ENABLE: u64 = 1 << 11;

/// Bit 1 of RFLAGS is always one; interrupts are off.
const RFLAGS_START: u64 = 1 << 1;

const CODE_SELECTOR: u16 = 0x08;
const DATA_SELECTOR: u16 = 0x10;
const CODE_EXECUTE_READ_ACCESSED: u8 = 11;
const DATA_READ_WRITE_ACCESSED: u8 = 3;
const TASK_STATE_64_BUSY: u8 = 11;

/// General registers of vCPU `vcpu` (0..64): RIP at the image's entry, RDI the vCPU's number. RSP is 0: the guest
/// takes its own stack, and a push before that faults instead of writing anywhere.
pub fn general(entry: u64, vcpu: u32) -> kvm_regs {
    kvm_regs {
        rip: entry,
        rdi: u64::from(vcpu),
        rflags: RFLAGS_START,
        ..Default::default()
    }
}

/// System registers of vCPU `vcpu`, from those that KVM gave it (`reset`: keeps CR8 and pending interrupts).
///
/// GDT and IDT are empty: the guest loads its own first, and an exception before that is a triple fault, which the
/// VMM reports.
pub fn system(reset: kvm_sregs, vcpu: u32) -> kvm_sregs {
    let data = data_segment();
    let empty = kvm_dtable {
        base: 0,
        limit: 0,
        padding: [0; 3],
    };
    kvm_sregs {
        cs: code_segment(),
        ds: data,
        es: data,
        fs: data,
        gs: data,
        ss: data,
        tr: task_segment(),
        ldt: kvm_segment {
            unusable: 1,
            ..Default::default()
        },
        gdt: empty,
        idt: empty,
        cr0: CR0_PROTECTION
            | CR0_MONITOR_COPROCESSOR
            | CR0_EXTENSION_TYPE
            | CR0_NUMERIC_ERROR
            | CR0_WRITE_PROTECT
            | CR0_PAGING,
        cr2: 0,
        cr3: u64::from(abi::UNSPIN_GUEST_PAGE_TABLES),
        cr4: CR4_PHYSICAL_ADDRESS_EXTENSION,
        efer: EFER_SYSTEM_CALL | EFER_LONG_MODE_ENABLE | EFER_LONG_MODE_ACTIVE | EFER_NO_EXECUTE,
        apic_base: apic_base(vcpu),
        ..reset
    }
}

/// The APIC base MSR: x2APIC mode, as guest IPIs and timers go through MSRs; vCPU 0 is the bootstrap processor.
fn apic_base(vcpu: u32) -> u64 {
    let bootstrap = if vcpu == 0 { APIC_BASE_BOOTSTRAP } else { 0 };
    APIC_BASE_ADDRESS | APIC_BASE_ENABLE | APIC_BASE_X2APIC | bootstrap
}

fn code_segment() -> kvm_segment {
    kvm_segment {
        selector: CODE_SELECTOR,
        type_: CODE_EXECUTE_READ_ACCESSED,
        l: 1,
        db: 0,
        ..data_segment()
    }
}

fn data_segment() -> kvm_segment {
    kvm_segment {
        base: 0,
        limit: 0xffff_ffff,
        selector: DATA_SELECTOR,
        type_: DATA_READ_WRITE_ACCESSED,
        present: 1,
        dpl: 0,
        db: 1,
        s: 1,
        l: 0,
        g: 1,
        avl: 0,
        unusable: 0,
        padding: 0,
    }
}

/// VMX refuses to enter a guest whose TR is not a busy TSS (Intel SDM volume 3, 28.3.1.2).
fn task_segment() -> kvm_segment {
    kvm_segment {
        limit: 0xffff,
        type_: TASK_STATE_64_BUSY,
        present: 1,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_starts_in_64_bit_mode_with_paging_and_interrupts_off() {
        let registers = system(kvm_sregs::default(), 0);
        assert_eq!(registers.cr0, 0x8001_0033);
        assert_eq!(registers.cr4, 0x20);
        assert_eq!(registers.efer, 0xd01);
        assert_eq!(registers.cr3, 0x1000);
        assert_eq!((registers.cs.l, registers.cs.db), (1, 0));
        assert_eq!((registers.cs.dpl, registers.ss.dpl), (0, 0));
        let registers = general(0x20_0000, 63);
        assert_eq!((registers.rip, registers.rdi), (0x20_0000, 63));
        assert_eq!(registers.rflags & (1 << 9), 0);
    }

    #[test]
    fn only_vcpu_0_is_the_bootstrap_processor_and_all_are_in_x2apic_mode() {
        assert_eq!(system(kvm_sregs::default(), 0).apic_base, 0xfee0_0d00);
        for vcpu in 1..64 {
            assert_eq!(system(kvm_sregs::default(), vcpu).apic_base, 0xfee0_0c00);
        }
    }

    #[test]
    fn what_the_guest_does_not_ask_for_stays_as_kvm_set_it() {
        let reset = kvm_sregs {
            cr8: 5,
            interrupt_bitmap: [1, 2, 3, 4],
            ..Default::default()
        };
        let registers = system(reset, 1);
        assert_eq!(registers.cr8, 5);
        assert_eq!(registers.interrupt_bitmap, [1, 2, 3, 4]);
    }
}
