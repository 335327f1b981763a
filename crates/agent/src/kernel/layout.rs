// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes of the kernel's structs and places of their fields, by BTF.

use std::ffi::CStr;

use libbpf_rs::libbpf_sys;

use crate::kernel::btf::{KernelBtf, Kind};

/// Structs in structs without a name that are looked into.
const DEEPEST: u32 = 8;

impl KernelBtf {
    /// The size of a struct.
    pub(crate) fn struct_bytes(&self, name: &str) -> Option<u32> {
        let id = self.find(name, Kind::Struct)?;
        // SAFETY: a live object and one of its types; the call only reads.
        let bytes = unsafe { libbpf_sys::btf__resolve_size(self.btf.as_ptr(), id) };
        u32::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }

    /// Where a field lies, in bytes from the struct's beginning: a path through structs in structs, not through pointers.
    /// `None` also for a bit field.
    pub(crate) fn field_offset(&self, name: &str, path: &[&str]) -> Option<u32> {
        let mut id = self.find(name, Kind::Struct)?;
        let mut bits = 0;
        for field in path {
            let (at, of) = self.member(id, field, DEEPEST)?;
            (bits, id) = (bits + at, of);
        }
        (bits % 8 == 0).then_some(bits / 8)
    }

    /// A member of a struct or union, itself or in one without a name: its place in bits, and its type.
    fn member(&self, id: u32, name: &str, deepest: u32) -> Option<(u32, u32)> {
        for (at, own_name, of) in self.members_at(id)? {
            if own_name == name {
                return Some((at, of));
            }
            let inside = match own_name {
                "" if deepest > 0 => self.member(of, name, deepest - 1),
                _ => None,
            };
            if let Some((further, of)) = inside {
                return Some((at + further, of));
            }
        }
        None
    }

    /// Place in bits, name and type of each member that is no bit field; `None`: neither struct nor union.
    fn members_at(&self, id: u32) -> Option<Vec<(u32, &str, u32)>> {
        const STRUCT: u32 = 4;
        const UNION: u32 = 5;
        let btf = self.btf.as_ptr();
        // SAFETY: the calls take a live object and any number, and give an error or NULL for a wrong one. libbpf has checked on
        // loading that so many members as a struct's `info` says (16 bits) follow it, and that names are C strings inside
        // the object, which outlives `self`.
        unsafe {
            let resolved = u32::try_from(libbpf_sys::btf__resolve_type(btf, id)).ok()?;
            let found = libbpf_sys::btf__type_by_id(btf, resolved).as_ref()?;
            // include/uapi/linux/btf.h: kind in bits 24 to 28; bit 31: offsets hold a bit field's size in their upper 8 bits.
            let (kind, with_sizes) = (found.info >> 24 & 0x1f, found.info >> 31 == 1);
            if kind != STRUCT && kind != UNION {
                return None;
            }
            let count = (found.info & 0xffff) as usize;
            let first = (found as *const libbpf_sys::btf_type).add(1);
            let members = std::slice::from_raw_parts(first.cast::<libbpf_sys::btf_member>(), count);
            let plain = members
                .iter()
                .filter(|member| !with_sizes || member.offset >> 24 == 0);
            let read = plain.map(|member| {
                let name = libbpf_sys::btf__name_by_offset(btf, member.name_off);
                let name = match name.is_null() {
                    true => "",
                    false => CStr::from_ptr(name).to_str().ok()?,
                };
                Some((member.offset, name, member.type_))
            });
            read.collect()
        }
    }
}
