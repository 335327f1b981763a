// SPDX-License-Identifier: MIT OR Apache-2.0
//! BTF as libbpf reads it: the functions and types of the running kernel, of a module, or of a file; sizes of structs and
//! places of their fields.

use std::{
    ffi::{CStr, CString},
    path::Path,
    ptr::NonNull,
    rc::Rc,
};

use libbpf_rs::libbpf_sys;

/// Types of the kernel or of one module.
pub(crate) struct KernelBtf {
    pub(crate) btf: NonNull<libbpf_sys::btf>,
    /// What a module's types refer to: must live as long.
    _base: Option<Rc<KernelBtf>>,
}

/// A kind of BTF entry, numbered as in `include/uapi/linux/btf.h`.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// `BTF_KIND_STRUCT`.
    Struct = 4,
    /// `BTF_KIND_TYPEDEF`: tracepoints are `btf_trace_<name>`.
    Typedef = 8,
    /// `BTF_KIND_FUNC`.
    Function = 12,
}

/// `BTF_KIND_STRUCT`.
pub(crate) const KIND_STRUCT: u32 = 4;

impl KernelBtf {
    /// The kernel's own; `None` when it has none. Anybody may read it.
    pub(crate) fn vmlinux() -> Option<KernelBtf> {
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return None;
        }
        // SAFETY: takes no argument; returns a new object or NULL.
        let btf = unsafe { libbpf_sys::btf__load_vmlinux_btf() };
        NonNull::new(btf).map(|btf| KernelBtf { btf, _base: None })
    }

    /// A loaded module's; the kernel's own where it is built in (`kvm`); `None` when it is not there.
    pub(crate) fn module(name: &str) -> Option<KernelBtf> {
        let base = KernelBtf::vmlinux()?;
        if !Path::new("/sys/kernel/btf").join(name).exists() {
            return None;
        }
        let name = CString::new(name).ok()?;
        // SAFETY: a C string and a live base; returns a new object or NULL.
        let btf = unsafe { libbpf_sys::btf__load_module_btf(name.as_ptr(), base.btf.as_ptr()) };
        NonNull::new(btf).map(|btf| KernelBtf {
            btf,
            _base: Some(Rc::new(base)),
        })
    }

    /// From the section `.BTF` of a file, a module's with its kernel's as the base; `None`: libbpf does not take it.
    pub(crate) fn from_bytes(bytes: &[u8], base: Option<&Rc<KernelBtf>>) -> Option<KernelBtf> {
        let size = u32::try_from(bytes.len()).ok()?;
        let base_btf = base.map_or(std::ptr::null_mut(), |base| base.btf.as_ptr());
        // SAFETY: so many bytes, which libbpf copies and checks, and a live base or none; returns a new object or NULL.
        let btf = unsafe { libbpf_sys::btf__new_split(bytes.as_ptr().cast(), size, base_btf) };
        NonNull::new(btf).map(|btf| KernelBtf {
            btf,
            _base: base.cloned(),
        })
    }

    /// Types are numbered from 1 to below this, those of the base first.
    pub(crate) fn count(&self) -> u32 {
        // SAFETY: a live object; the call only reads.
        unsafe { libbpf_sys::btf__type_cnt(self.btf.as_ptr()) }
    }

    /// For libbpf's own functions, as long as `self` lives.
    pub(crate) fn raw(&self) -> *const libbpf_sys::btf {
        self.btf.as_ptr()
    }

    fn entry(&self, id: u32) -> Option<&libbpf_sys::btf_type> {
        // SAFETY: a live object and any number: NULL for a wrong one; what it points to lives as long as `self`.
        unsafe { libbpf_sys::btf__type_by_id(self.btf.as_ptr(), id).as_ref() }
    }

    fn text(&self, offset: u32) -> Option<&str> {
        // SAFETY: a live object and any offset: NULL for a wrong one, else a C string that lives as long as `self`.
        let text = unsafe {
            let text = libbpf_sys::btf__name_by_offset(self.btf.as_ptr(), offset);
            (!text.is_null()).then(|| CStr::from_ptr(text))?
        };
        text.to_str().ok().filter(|text| !text.is_empty())
    }

    /// Name of a type; `None`: it has none, or there is no such type.
    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.text(self.entry(id)?.name_off)
    }

    /// `BTF_KIND_...` of a type; 0: there is none.
    pub(crate) fn kind(&self, id: u32) -> u32 {
        self.entry(id).map_or(0, |entry| entry.info >> 24 & 0x1f)
    }

    /// The prototype of a function.
    pub(crate) fn prototype(&self, function: u32) -> Option<u32> {
        // SAFETY: every member of the union is a number of 32 bits.
        Some(unsafe { self.entry(function)?.__bindgen_anon_1.type_ })
    }

    /// Names of a struct's members.
    pub(crate) fn members(&self, id: u32) -> Vec<&str> {
        let Some(entry) = self.entry(id) else {
            return Vec::new();
        };
        if self.kind(id) != KIND_STRUCT {
            return Vec::new();
        }
        let first = std::ptr::from_ref(entry).wrapping_add(1);
        // SAFETY: libbpf has checked on loading that so many members as a struct's `info` says (16 bits) follow it.
        let members = unsafe {
            let first = first.cast::<libbpf_sys::btf_member>();
            std::slice::from_raw_parts(first, (entry.info & 0xffff) as usize)
        };
        let names = members
            .iter()
            .filter_map(|member| self.text(member.name_off));
        names.collect()
    }

    /// Whether there is an entry of that name and kind, here or in the base.
    pub(crate) fn has(&self, name: &str, kind: Kind) -> bool {
        self.find(name, kind).is_some()
    }

    /// Whether BPF programs can call that kernel function: it is there, and does not show the argument that the verifier
    /// adds by itself. A kernel with such arguments (KF_IMPLICIT_ARGS, Linux 7.0 and later) has two entries, NAME
    /// without and NAME_impl with it; a build that made only one, as Debian 13's backport, can never be called.
    pub(crate) fn callable(&self, name: &str) -> bool {
        self.find(name, Kind::Function)
            .is_some_and(|function| self.last_parameter(function) != Some("aux"))
    }

    pub(crate) fn find(&self, name: &str, kind: Kind) -> Option<u32> {
        let name = CString::new(name).ok()?;
        // SAFETY: a live object and a C string; the call only reads.
        let id = unsafe {
            libbpf_sys::btf__find_by_name_kind(self.btf.as_ptr(), name.as_ptr(), kind as u32)
        };
        u32::try_from(id).ok().filter(|id| *id > 0)
    }

    /// Name of a function's last parameter.
    fn last_parameter(&self, function: u32) -> Option<&str> {
        let btf = self.btf.as_ptr();
        // SAFETY: the calls take a live object and any number, and give NULL for a wrong one. libbpf has checked on
        // loading that a function's type is a prototype, that so many parameters as its `info` says (16 bits) follow it,
        // and that names are C strings inside the object, which outlives `self`.
        unsafe {
            let function = libbpf_sys::btf__type_by_id(btf, function).as_ref()?;
            let prototype = libbpf_sys::btf__type_by_id(btf, function.__bindgen_anon_1.type_);
            let count = (prototype.as_ref()?.info & 0xffff) as usize;
            let parameters = prototype.add(1).cast::<libbpf_sys::btf_param>();
            let last = parameters.add(count.checked_sub(1)?);
            let name = libbpf_sys::btf__name_by_offset(btf, (*last).name_off);
            (!name.is_null()).then(|| CStr::from_ptr(name).to_str().ok())?
        }
    }
}

impl Drop for KernelBtf {
    fn drop(&mut self) {
        // SAFETY: made by btf__load_*, freed once; `_base` is freed after it.
        unsafe { libbpf_sys::btf__free(self.btf.as_ptr()) };
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_btf_tells_functions_from_others() {
        let Some(btf) = KernelBtf::vmlinux() else {
            assert!(!Path::new("/sys/kernel/btf/vmlinux").exists());
            return;
        };
        assert!(btf.has("schedule", Kind::Function));
        assert!(!btf.has("schedule", Kind::Typedef));
        assert!(btf.has("btf_trace_sched_switch", Kind::Typedef));
        assert!(!btf.has("unspin_is_no_kernel_function", Kind::Function));
        assert!(!btf.has("a\0b", Kind::Function));
    }
}
