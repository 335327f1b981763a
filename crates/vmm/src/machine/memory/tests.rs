// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

const RECORD_BYTES: u64 = size_of::<abi::unspin_guest_wait>() as u64;

fn memory() -> Memory {
    Memory::new().expect("16 MiB can be mapped")
}

/// Writes one field as the guest would.
fn claim_log_kept(memory: &Memory, vcpu: u32, records: u64) {
    let offset = std::mem::offset_of!(abi::unspin_guest_statistics, log_kept) as u64;
    memory.store(records, statistics_address(vcpu) + offset);
}

/// A record whose begin is `begin` and whose kind is `kind`, at that index of the whole log.
fn write_record(memory: &Memory, index: u64, begin: u64, kind: u8) {
    let address = u64::from(abi::UNSPIN_GUEST_LOG) + index * RECORD_BYTES;
    memory.store(begin, address);
    let kind_offset = std::mem::offset_of!(abi::unspin_guest_wait, kind) as u64;
    let word = address + kind_offset / 8 * 8;
    memory.store(u64::from(kind) << (8 * (kind_offset % 8)), word);
}

#[test]
fn loading_touches_little_of_it() {
    let memory = memory();
    assert_eq!(memory.resident_bytes(), 0);
    let entry = memory
        .load(GUEST_IMAGE, &Default::default())
        .expect("the image is good");
    assert!(
        entry >= u64::from(abi::UNSPIN_GUEST_IMAGE) && entry < u64::from(abi::UNSPIN_GUEST_USER)
    );
    let resident = memory.resident_bytes();
    assert!(resident > 0 && resident <= 256 << 10, "{resident} bytes");
}

#[test]
fn the_image_says_nothing_of_the_machine_that_built_it() {
    let workspace = env!("CARGO_MANIFEST_DIR").trim_end_matches("/crates/vmm");
    for path in [workspace, env!("OUT_DIR")] {
        let found = GUEST_IMAGE
            .windows(path.len())
            .any(|bytes| bytes == path.as_bytes());
        assert!(!found, "{path}");
    }
}

#[test]
fn statistics_are_those_of_their_vcpu() {
    let memory = memory();
    for vcpu in 0..abi::UNSPIN_GUEST_VCPUS_MAX {
        memory.store(u64::from(vcpu) + 1, statistics_address(vcpu));
        claim_log_kept(&memory, vcpu, u64::from(vcpu) + 100);
    }
    for vcpu in 0..abi::UNSPIN_GUEST_VCPUS_MAX {
        let statistics = memory.statistics(vcpu);
        assert_eq!(statistics.first_instruction_tsc, u64::from(vcpu) + 1);
        assert_eq!(memory.first_instruction_tsc(vcpu), u64::from(vcpu) + 1);
        assert_eq!(statistics.log_kept, u64::from(vcpu) + 100);
        assert_eq!(statistics.operations, 0);
    }
}

#[test]
fn stop_sets_stop_and_nothing_else() {
    let memory = memory();
    let parameters = abi::unspin_guest_parameters {
        vcpus: 3,
        fault_injection: 9,
        ..Default::default()
    };
    memory.write_parameters(&parameters);
    memory.request_stop();
    let read = |offset: usize| {
        let address = u64::from(abi::UNSPIN_GUEST_PARAMETERS) + offset as u64;
        memory
            .map
            .read_obj::<u32>(GuestAddress(address))
            .expect("inside")
    };
    assert_eq!(
        read(std::mem::offset_of!(abi::unspin_guest_parameters, stop)),
        1
    );
    assert_eq!(
        read(std::mem::offset_of!(
            abi::unspin_guest_parameters,
            fault_injection
        )),
        9
    );
    assert_eq!(
        read(std::mem::offset_of!(abi::unspin_guest_parameters, vcpus)),
        3
    );
}

#[test]
fn a_log_is_read_in_order_and_without_what_is_not_complete() {
    let memory = memory();
    for record in 0..10 {
        write_record(&memory, 10 + record, 1000 + record, u8::from(record != 4));
    }
    claim_log_kept(&memory, 1, 8);
    let waits = memory.waits(1, 10);
    let begins: Vec<u64> = waits.iter().map(|wait| wait.begin_tsc).collect();
    assert_eq!(begins, [1000, 1001, 1002, 1003, 1005, 1006, 1007]);
}

#[test]
fn a_guest_that_claims_too_much_gets_no_more_than_its_share() {
    let memory = memory();
    for record in 0..30 {
        write_record(&memory, record, record, 1);
    }
    claim_log_kept(&memory, 1, u64::MAX);
    let begins: Vec<u64> = memory
        .waits(1, 10)
        .iter()
        .map(|wait| wait.begin_tsc)
        .collect();
    assert_eq!(begins, (10..20).collect::<Vec<u64>>());
}

#[test]
fn the_last_record_of_the_log_is_read_and_none_beyond() {
    let memory = memory();
    let records = u64::from(abi::UNSPIN_GUEST_LOG_BYTES) / RECORD_BYTES;
    write_record(&memory, records - 1, 77, 2);
    let last = memory.wait(0, 0, records - 1).expect("it is inside");
    assert_eq!((last.begin_tsc, last.kind), (77, 2));
    assert!(memory.wait(0, 0, records).is_none());
    assert!(memory.wait(63, u32::MAX, u64::from(u32::MAX)).is_none());
    // More records than the log has: what lies outside is left out, and nothing panics.
    claim_log_kept(&memory, 63, u64::MAX);
    assert!(memory.waits(63, u32::MAX).is_empty());
}
