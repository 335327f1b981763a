// SPDX-License-Identifier: MIT OR Apache-2.0
//! What hostile guests run: each a few instructions of 64-bit code without an end, and the pages that they lie with.

use unspin_abi as abi;

use crate::steerer::raw_vm::{DATA, OTHERS, PV_PAGE_BYTES, Page, Program, VECTOR};

pub const VCPUS: u64 = 4;
/// The second page of data.
const MORE_DATA: u64 = DATA + 0x1000;

/// Machine code so far.
#[derive(Default)]
struct Code(Vec<u8>);

impl Code {
    fn add(&mut self, bytes: &[u8]) -> &mut Code {
        self.0.extend(bytes);
        self
    }

    /// A hypercall without an argument, or with that in RBX.
    fn call(&mut self, number: u32) -> &mut Code {
        self.add(&[0xb8]).add(&number.to_le_bytes()); // mov eax, ...
        self.add(&VMMCALL)
    }

    /// The next of 256 hypercalls of a page: number and argument.
    fn call_from(&mut self, page: u64) -> &mut Code {
        self.add(&[0x48, 0x8b, 0x06]); // mov rax, [rsi]
        self.add(&[0x48, 0x8b, 0x5e, 0x08]); // mov rbx, [rsi + 8]
        self.add(&[0x48, 0x83, 0xc6, 0x10]); // add rsi, 16
        self.add(&[0x81, 0xe6, 0xf0, 0x0f, 0, 0]); // and esi, 0xff0
        self.or_rsi(page).add(&VMMCALL)
    }

    fn or_rsi(&mut self, page: u64) -> &mut Code {
        let page = u32::try_from(page).expect("low memory");
        self.add(&[0x81, 0xce]).add(&page.to_le_bytes()) // or esi, page
    }

    fn pauses(&mut self, count: u64) -> &mut Code {
        (0..count).fold(self, |code, _| code.add(&PAUSE))
    }

    /// Interrupts are taken from here on.
    fn take_interrupts(&mut self) -> &mut Code {
        self.write_msr(0x80f, 0x1ff); // the x2APIC is on; spurious ones are vector 255
        self.add(&[0xfb]) // sti
    }

    /// An interrupt to all the others, in one write.
    fn interrupt_all(&mut self) -> &mut Code {
        self.write_msr(0x830, 0xc_0000 | u32::from(VECTOR)) // the x2APIC's ICR: all but self
    }

    /// Changes RAX, RCX and RDX.
    fn write_msr(&mut self, register: u32, value: u32) -> &mut Code {
        self.add(&[0xb9]).add(&register.to_le_bytes()); // mov ecx, ...
        self.add(&[0xb8]).add(&value.to_le_bytes()); // mov eax, ...
        self.add(&[0x31, 0xd2, 0x0f, 0x30]) // xor edx, edx; wrmsr
    }

    /// Goes back there, for ever.
    fn again_from(&mut self, begin: usize) {
        let length = i32::try_from(self.0.len() + 5 - begin).expect("short");
        self.add(&[0xe9]).add(&(-length).to_le_bytes()); // jmp
    }
}

const VMMCALL: [u8; 3] = [0x0f, 0x01, 0xd9];
const PAUSE: [u8; 2] = [0xf3, 0x90];

/// Steele, Lea and Flood's splitmix64 (OOPSLA'14): what differs from seed to seed.
pub struct Draws(pub u64);

impl Draws {
    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of 1 to `most`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        1 + self.next() % most
    }
}

/// The guest of that kind: how often it does what before it begins again, and which garbage it has, are drawn.
pub fn program(kind: &str, draws: &mut Draws) -> Program {
    let mut code = Code::default();
    let (mut data, mut others, mut begin) = (Vec::new(), Vec::new(), 0);
    match kind {
        "hypercalls" => {
            data = garbage(draws);
            code.call_from(DATA);
        }
        "neighbour" => {
            others = claims();
            data = addresses_of_others();
            code.call_from(DATA);
        }
        "counts" => {
            data = counts();
            code.add(&[0x48, 0x8b, 0x1e]); // mov rbx, [rsi]
            code.add(&[0x48, 0x83, 0xc6, 0x08]); // add rsi, 8
            code.add(&[0x81, 0xe6, 0xf8, 0x03, 0, 0]); // and esi, 0x3f8
            code.or_rsi(DATA)
                .call(abi::UNSPIN_HYPERCALL_REGISTER_COUNTS);
        }
        "help" => {
            code.call(abi::UNSPIN_HYPERCALL_HELP);
        }
        "critical" | "critical-in-user-mode" | "ballooned" | "unmapped" => {
            // Registers a page for each vCPU, and spins; it never takes `critical` back.
            data = claims();
            code.call(abi::UNSPIN_HYPERCALL_REGISTER_PV_PAGE);
            begin = code.0.len();
            code.pauses(draws.up_to(16));
        }
        "yields" => {
            code.pauses(draws.up_to(16));
        }
        "lends" => {
            // Every other vCPU spins, and so lends its slice to one that never does.
            code.add(&[0xf7, 0xc3]); // test ebx, ...
            code.add(&(PV_PAGE_BYTES as u32).to_le_bytes());
            code.add(&[0x75, PAUSE.len() as u8]).add(&PAUSE); // jnz over the PAUSE
        }
        "floods" => {
            code.take_interrupts();
            begin = code.0.len();
            for _ in 0..draws.up_to(32) {
                code.interrupt_all();
            }
            code.add(&PAUSE);
        }
        "everything" => {
            (data, begin) = (claims(), everything(&mut code, draws));
            data.resize((MORE_DATA - DATA) as usize, 0xff);
            data.extend(garbage(draws));
        }
        _ => panic!("{kind}: no such guest"),
    }
    code.again_from(begin);
    Program {
        code: code.0,
        data,
        others,
        vcpus: VCPUS,
        // Processes in the guest may not say anything: half of them try, or all.
        in_user_mode: match kind {
            "hypercalls" => VCPUS / 2,
            "critical-in-user-mode" => VCPUS,
            _ => 0,
        },
        interrupts: matches!(kind, "floods" | "everything"),
        page: match kind {
            "counts" | "ballooned" => Page::Ballooned,
            "unmapped" => Page::Unmapped,
            _ => Page::Stays,
        },
    }
}

/// Each vCPU claims a critical section for ever and says so again and again, floods the others with interrupts, makes
/// hypercalls of garbage, asks for help, gives back what it may have and yields. Where its loop begins.
fn everything(code: &mut Code, draws: &mut Draws) -> usize {
    code.add(&[0x49, 0x89, 0xd8]); // mov r8, rbx
    code.take_interrupts().or_rsi(MORE_DATA);
    let begin = code.0.len();
    code.add(&[0x4c, 0x89, 0xc3]); // mov rbx, r8
    code.call(abi::UNSPIN_HYPERCALL_REGISTER_PV_PAGE);
    for _ in 0..draws.up_to(8) {
        code.add(&PAUSE).interrupt_all().add(&PAUSE);
    }
    code.call_from(MORE_DATA);
    code.call(abi::UNSPIN_HYPERCALL_HELP);
    code.pauses(draws.up_to(4));
    code.call(abi::UNSPIN_HYPERCALL_GIVE_BACK);
    begin
}

/// A pv page for each vCPU, in which all that can be claimed is.
fn claims() -> Vec<u8> {
    let mut pages = Vec::new();
    for _ in 0..VCPUS {
        let words = [abi::UNSPIN_PV_PAGE_MAGIC, 1, u32::MAX, u32::MAX];
        pages.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        pages.resize(pages.len().next_multiple_of(PV_PAGE_BYTES), 0xff);
    }
    pages
}

/// 256 registrations, as a pv page and as counts, of what another VM has in its memory, and of what follows it.
fn addresses_of_others() -> Vec<u8> {
    let numbers = [
        abi::UNSPIN_HYPERCALL_REGISTER_PV_PAGE,
        abi::UNSPIN_HYPERCALL_REGISTER_COUNTS,
    ];
    let calls = (0..256u64).map(|at| {
        let number = numbers[at as usize % numbers.len()];
        [u64::from(number), OTHERS + at / 2 * PV_PAGE_BYTES as u64]
    });
    calls.flatten().flat_map(u64::to_le_bytes).collect()
}

/// 256 hypercalls: our numbers and their neighbours, with addresses outside memory, misaligned, across a page, of the host's
/// kernel and of other processes, of no page with a magic, and of one whose magic the guest gives.
fn garbage(draws: &mut Draws) -> Vec<u8> {
    static HERE: u8 = 0;
    let mut addresses = vec![
        0,
        DATA,
        DATA + 1,
        DATA + 2,
        DATA + 0xfe0,
        0xffff_fff0,
        0x1_0000,
        0xffff_8880_0000_0000,
        0xffff_ffff_8100_0000,
        u64::MAX,
        u64::MAX - 63,
        1 << 63,
        0x7fff_ffff_f000,
        &raw const HERE as u64,
    ];
    addresses.extend((1..50).map(|_| draws.next()));
    let first = u64::from(abi::UNSPIN_HYPERCALL_REGISTER_PV_PAGE) - 1;
    let pairs = (0..256u64).map(|at| {
        let number = if at % 64 == 63 {
            u64::MAX
        } else {
            first + at % 5
        };
        [number, addresses[at as usize % addresses.len()]]
    });
    pairs.flatten().flat_map(u64::to_le_bytes).collect()
}

/// 128 addresses of structs that say where counts lie, then the structs: one that always claims a critical section and a task
/// at the very end of memory, and some in which nothing is where it can be.
fn counts() -> Vec<u8> {
    const STRUCTS: u64 = DATA + 0x400;
    const MEMORY_END: u64 = 0x1_0000;
    let right = abi::unspin_counts {
        magic: abi::UNSPIN_COUNTS_MAGIC,
        preempt_count: DATA,
        current_task: STRUCTS + 0x38,
        direct_map_bytes: u64::MAX,
        rcu_nesting: abi::UNSPIN_COUNTS_OFFSET_MAX,
        task_flags: abi::UNSPIN_COUNTS_OFFSET_MAX - 1,
        sleeping: u32::MAX,
        hooks: 1,
        ..Default::default()
    };
    let places: [fn(&mut abi::unspin_counts, u64); 4] = [
        |counts, at| counts.preempt_count = at,
        |counts, at| counts.current_task = at,
        |counts, at| counts.direct_map = at,
        |counts, bytes| counts.direct_map_bytes = bytes,
    ];
    let mut structs = vec![right];
    for wrong in [
        0,
        1,
        MEMORY_END,
        MEMORY_END - 2,
        1 << 63,
        u64::MAX,
        0xffff_8880_0000_0000,
    ] {
        structs.extend(places.map(|set| {
            let mut counts = right;
            set(&mut counts, wrong);
            counts
        }));
    }
    structs.push(abi::unspin_counts {
        rcu_nesting: u32::MAX,
        ..right
    });
    structs.push(abi::unspin_counts { magic: 0, ..right });
    let mut addresses: Vec<u64> = (0..structs.len() as u64)
        .map(|at| STRUCTS + 64 * at)
        .collect();
    addresses.extend([
        STRUCTS + 4,
        DATA + 0xfd0,
        MEMORY_END,
        0,
        u64::MAX - 7,
        1 << 63,
    ]);
    let mut data: Vec<u8> = (0..128)
        .flat_map(|at| addresses[at % addresses.len()].to_le_bytes())
        .collect();
    for one in structs {
        // SAFETY: integers in a struct without a gap (abi/guest/counts.h asserts its size).
        data.extend(unsafe {
            std::mem::transmute::<abi::unspin_counts, [u8; size_of::<abi::unspin_counts>()]>(one)
        });
        // The pointer to the task that the structs name: the last word of memory.
        data.extend((MEMORY_END - 8).to_le_bytes());
    }
    data
}
