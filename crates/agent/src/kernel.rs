// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the running kernel has: the functions and types of its BTF, and the caller's rights.

use std::{
    ffi::{CStr, CString},
    fs,
    path::Path,
    ptr::NonNull,
    rc::Rc,
};

use libbpf_rs::libbpf_sys;

use crate::Error;

/// Release of the running kernel, as `uname -r` prints it.
pub(crate) fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

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

/// Effective capabilities of this process; bit numbers of `include/uapi/linux/capability.h`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities(u64);

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

impl Capabilities {
    /// Of this process; none when /proc cannot be read.
    pub(crate) fn own() -> Capabilities {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Capabilities::parse(&status)
    }

    fn parse(status: &str) -> Capabilities {
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))
            .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        Capabilities(mask.unwrap_or(0))
    }

    fn has(self, bit: u32) -> bool {
        self.0 & (1 << bit) != 0
    }

    /// What is missing for loading our programs. The BTF of modules can be had with CAP_SYS_ADMIN only
    /// (`kernel/bpf/syscall.c`, `bpf_btf_get_fd_by_id()`).
    pub(crate) fn missing_for_observing(self, kvm_is_module: bool) -> Option<&'static str> {
        if self.has(CAP_SYS_ADMIN) {
            None
        } else if kvm_is_module {
            Some("CAP_SYS_ADMIN")
        } else if !self.has(CAP_BPF) {
            Some("CAP_BPF")
        } else if !self.has(CAP_PERFMON) {
            Some("CAP_PERFMON")
        } else {
            None
        }
    }
}

/// What a program needs: kind, name, and the module it is in (`vmlinux`: the kernel itself).
type Need = (Kind, &'static str, &'static str);

/// Observing.
const NEEDED: [Need; 9] = [
    (Kind::Typedef, "kvm_exit", "kvm"),
    (Kind::Typedef, "kvm_entry", "kvm"),
    (Kind::Function, "kvm_vcpu_on_spin", "kvm"),
    (Kind::Function, "kvm_destroy_vm", "kvm"),
    (Kind::Function, "yield_to", "vmlinux"),
    (Kind::Function, "register_fprobe_ips", "vmlinux"), // CONFIG_FPROBE: kprobe.multi programs
    (Kind::Typedef, "sched_switch", "vmlinux"),
    (Kind::Typedef, "sched_wakeup", "vmlinux"),
    (Kind::Typedef, "sched_process_exit", "vmlinux"),
];

/// Windows of pause-loop exits.
const NEEDED_FOR_WINDOWS: [Need; 4] = [
    (Kind::Typedef, "kvm_exit", "kvm"),
    (Kind::Typedef, "kvm_entry", "kvm"),
    (Kind::Function, "kvm_destroy_vm", "kvm"),
    (Kind::Typedef, "sched_switch", "vmlinux"),
];

/// A dry run; without function tracing it does not see yields, and that is said.
const NEEDED_FOR_DRY_RUN: [Need; 4] = [
    (Kind::Typedef, "kvm_entry", "kvm"),
    (Kind::Typedef, "kvm_hypercall", "kvm"),
    (Kind::Typedef, "sched_switch", "vmlinux"),
    (Kind::Typedef, "sched_process_exit", "vmlinux"),
];

/// Checks that all that the observer's programs need is there and that the caller may load them.
///
/// # Errors
/// The first thing that is missing, in the order in which a user would mend it.
pub(crate) fn check() -> Result<(), Error> {
    check_for(&NEEDED)
}

/// The same for those of a dry run.
pub(crate) fn check_for_dry_run() -> Result<(), Error> {
    check_for(&NEEDED_FOR_DRY_RUN)
}

/// The same for those that set windows.
pub(crate) fn check_for_windows() -> Result<(), Error> {
    check_for(&NEEDED_FOR_WINDOWS)
}

fn check_for(needed: &[Need]) -> Result<(), Error> {
    let vmlinux = KernelBtf::vmlinux().ok_or(Error::NoBtf)?;
    let module = KernelBtf::module("kvm");
    let built_in = vmlinux.has("btf_trace_kvm_exit", Kind::Typedef);
    let kvm = match (&module, built_in) {
        (Some(module), _) => Some(module),
        (None, true) => Some(&vmlinux),
        (None, false) => None,
    };
    let in_kvm = kvm.map(|kvm| |name: &str, kind| kvm.has(name, kind));
    find_missing(
        needed,
        Capabilities::own(),
        built_in,
        &|name, kind| vmlinux.has(name, kind),
        in_kvm.as_ref().map(|has| has as &Has<'_>),
    )
}

/// Whether there is an entry of that name and kind.
type Has<'a> = dyn Fn(&str, Kind) -> bool + 'a;

fn find_missing(
    needed: &[Need],
    capabilities: Capabilities,
    kvm_built_in: bool,
    in_vmlinux: &Has<'_>,
    in_kvm: Option<&Has<'_>>,
) -> Result<(), Error> {
    let in_kvm = in_kvm.ok_or(Error::KvmNotLoaded)?;
    if let Some(missing) = capabilities.missing_for_observing(!kvm_built_in) {
        return Err(Error::NotPermitted { missing });
    }
    for (kind, name, module) in needed.iter().copied() {
        let has = if module == "kvm" { in_kvm } else { in_vmlinux };
        let (what, there) = match kind {
            Kind::Typedef => ("tracepoint", has(&format!("btf_trace_{name}"), kind)),
            Kind::Function => ("function", has(name, kind)),
            Kind::Struct => ("struct", has(name, kind)),
        };
        if !there {
            return Err(Error::Missing {
                what,
                name,
                module,
                kernel: release(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status_file() {
        let all = Capabilities::parse("Name:\tx\nCapEff:\t000001ffffffffff\n");
        assert_eq!(all.missing_for_observing(true), None);
        let none = Capabilities::parse("CapEff:\t0000000000000000\n");
        assert_eq!(none.missing_for_observing(true), Some("CAP_SYS_ADMIN"));
        assert_eq!(none.missing_for_observing(false), Some("CAP_BPF"));
        let bpf = Capabilities::parse("CapEff:\t0000008000000000\n");
        assert_eq!(bpf.missing_for_observing(false), Some("CAP_PERFMON"));
        let both = Capabilities::parse("CapEff:\t000000c000000000\n");
        assert_eq!(both.missing_for_observing(false), None);
        assert_eq!(both.missing_for_observing(true), Some("CAP_SYS_ADMIN"));
        assert_eq!(
            Capabilities::parse("nonsense").missing_for_observing(true),
            Some("CAP_SYS_ADMIN")
        );
    }

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

    const ALL: Capabilities = Capabilities(u64::MAX);

    #[test]
    fn what_is_missing_is_named_and_where() {
        let everything = |_: &str, _| true;
        assert!(find_missing(&NEEDED, ALL, false, &everything, Some(&everything)).is_ok());
        let error = find_missing(&NEEDED, ALL, false, &everything, None).expect_err("no kvm");
        assert!(error.to_string().contains("modprobe kvm_amd"), "{error}");
        let error = find_missing(
            &NEEDED,
            Capabilities(0),
            false,
            &everything,
            Some(&everything),
        );
        let error = error.expect_err("not permitted").to_string();
        assert!(error.contains("root") && error.contains("sudo"), "{error}");
        for (kind, name, module) in NEEDED {
            let wanted = match kind {
                Kind::Typedef => format!("btf_trace_{name}"),
                Kind::Function | Kind::Struct => name.to_owned(),
            };
            let lacking = |asked: &str, _| asked != wanted;
            let result = match module {
                "kvm" => find_missing(&NEEDED, ALL, false, &everything, Some(&lacking)),
                _ => find_missing(&NEEDED, ALL, false, &lacking, Some(&everything)),
            };
            let error = result.expect_err("one is missing").to_string();
            let said = format!("`{name}` in the BTF of {module}");
            assert!(error.contains(&said), "{error}");
        }
    }
}
