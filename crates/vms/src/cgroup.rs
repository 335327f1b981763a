// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the cgroup of a VMM says of its VM. The host puts the process there: it goes before the command line, which a process
//! may change.

use crate::command_line::uuid_of;

/// What a cgroup's path says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgroupPlace {
    /// libvirt's machine name without driver and number: what is left of the VM's name of letters, digits, `-` and `.`, cut
    /// where it is long.
    pub machine: Option<String>,
    /// Proxmox's number.
    pub proxmox_id: Option<String>,
    /// UID of the Kubernetes pod.
    pub pod_uid: Option<String>,
    /// The last part below a cgroup `firecracker`: the id in the jailer's default layout.
    pub firecracker_id: Option<String>,
}

impl CgroupPlace {
    /// Reads the paths of `/proc/PID/cgroup`, of all hierarchies. A path holds no newline: the kernel refuses names with one
    /// (kernel/cgroup/cgroup.c, cgroup_mkdir(), Linux 7.2). Of several parts that fit the one nearest to the root is taken: what
    /// is below may be the process's own doing.
    pub fn of_paths<'a>(paths: impl IntoIterator<Item = &'a str>) -> CgroupPlace {
        let mut place = CgroupPlace::default();
        for path in paths {
            let mut above = "";
            for part in path.split('/').filter(|part| !part.is_empty()) {
                keep(&mut place.machine, machine(part));
                keep(&mut place.pod_uid, pod_uid(part));
                if above == "qemu.slice" {
                    keep(&mut place.proxmox_id, number_of_scope(part));
                }
                if above == "firecracker" {
                    keep(&mut place.firecracker_id, Some(unescape(part)));
                }
                above = part;
            }
        }
        place
    }
}

fn keep(known: &mut Option<String>, found: Option<String>) {
    if known.is_none() {
        *known = found;
    }
}

/// `machine-qemu\x2d3\x2dweb.scope`, and `qemu-3-web.libvirt-qemu` of a libvirt without systemd: `web`
/// (libvirt src/hypervisor/domain_driver.c, virDomainDriverGenerateMachineName(), 10.0).
fn machine(part: &str) -> Option<String> {
    let scope = part
        .strip_prefix("machine-")
        .and_then(|part| part.strip_suffix(".scope"));
    let whole = match scope {
        Some(scope) => unescape(scope),
        None => part.strip_suffix(".libvirt-qemu")?.to_owned(),
    };
    let rest = ["qemu-", "ch-"]
        .iter()
        .find_map(|driver| whole.strip_prefix(driver))?;
    let rest = match rest.strip_prefix("embed-") {
        Some(embedded) => embedded.split_once('-')?.1,
        None => rest,
    };
    let (number, name) = rest.split_once('-')?;
    (is_number(number) && !name.is_empty()).then(|| name.to_owned())
}

/// `101.scope`.
fn number_of_scope(part: &str) -> Option<String> {
    let number = part.strip_suffix(".scope")?;
    is_number(number).then(|| number.to_owned())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `kubepods-burstable-pod4dea22b3_1d52_d8f3_2516_782e98ab3fa0.slice` of the kubelet's systemd driver, `pod4dea22b3-...` of its
/// other one (pkg/kubelet/cm, Kubernetes 1.34).
fn pod_uid(part: &str) -> Option<String> {
    let uid = match part.strip_suffix(".slice") {
        Some(slice) => slice.strip_prefix("kubepods-")?.rsplit_once("pod")?.1,
        None => part.strip_prefix("pod")?,
    };
    uuid_of(&uid.replace('_', "-"))
}

/// A part of a systemd unit's name with its `\x2d` taken back (systemd.unit(5)). Bytes that are no UTF-8 become U+FFFD.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.strip_prefix('x').and_then(|after| after.get(..2));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(b'\\');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether libvirt would make that machine name (or a beginning of it, where it is cut) of that VM's name. Versions differ in
/// which `-` and `.` they drop, so only letters and digits are compared.
pub(crate) fn is_machine_of(machine: &str, name: &str) -> bool {
    let letters =
        |text: &str| -> String { text.chars().filter(char::is_ascii_alphanumeric).collect() };
    letters(name).starts_with(&letters(machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> CgroupPlace {
        CgroupPlace::of_paths([path])
    }

    #[test]
    fn scopes_are_unescaped() {
        for (scope, name) in [
            (r"machine-qemu\x2d3\x2dweb.scope", Some("web")),
            (r"machine-qemu\x2d12\x2dweb\x2d3.a.scope", Some("web-3.a")),
            (
                r"machine-qemu\x2dembed\x2d0a1b2c3d\x2d1\x2ddb.scope",
                Some("db"),
            ),
            (r"machine-ch\x2d1\x2dweb.scope", Some("web")),
            (
                r"machine-qemu\x2d1\x2dinstance\x2d0000abcd.scope",
                Some("instance-0000abcd"),
            ),
            ("qemu-3-web.libvirt-qemu", Some("web")),
            // A container, a session's VM (its user's name may hold anything), and what is cut off.
            (r"machine-lxc\x2d3\x2dweb.scope", None),
            (r"machine-qemu\x2dpeter\x2d3\x2dweb.scope", None),
            (r"machine-qemu\x2d3\x2d.scope", None),
            (r"machine-qemu\x2d3.scope", None),
            (r"machine-qemu\x2d3\x2dweb", None),
        ] {
            let found = place(&format!("/machine.slice/{scope}/libvirt/emulator")).machine;
            assert_eq!(found.as_deref(), name, "{scope}");
        }
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescape(r"a\x2db\x5c\x2"), r"a-b\\x2");
        assert_eq!(unescape(r"\xzz\\x41é\"), r"\xzz\Aé\");
        assert_eq!(unescape(r"\xff\xc3\xa9"), "\u{fffd}é");
        assert_eq!(unescape("\\x\u{e9}\u{e9}"), "\\x\u{e9}\u{e9}");
        assert_eq!(unescape(r"\x+1"), r"\x+1");
    }

    #[test]
    fn the_part_next_to_the_root_counts() {
        let path = r"/machine.slice/machine-qemu\x2d3\x2dweb.scope/machine-qemu\x2d4\x2ddb.scope";
        assert_eq!(place(path).machine.as_deref(), Some("web"));
        let paths = ["/", "/qemu.slice/101.scope", "/qemu.slice/102.scope"];
        assert_eq!(
            CgroupPlace::of_paths(paths).proxmox_id.as_deref(),
            Some("101")
        );
    }

    #[test]
    fn pods_and_proxmox_are_known_by_whole_parts() {
        let uid = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";
        let systemd = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-1.scope",
            uid.replace('-', "_")
        );
        let guaranteed = format!(
            "/kubepods.slice/kubepods-pod{}.slice",
            uid.replace('-', "_")
        );
        for path in [
            systemd,
            guaranteed,
            format!("/kubepods/burstable/pod{uid}/0a1b"),
        ] {
            assert_eq!(place(&path).pod_uid.as_deref(), Some(uid), "{path}");
        }
        for none in [
            "/podman",
            "/kubepods-podx.slice",
            "/other.slice/101.scope",
            "/qemu.slice/x.scope",
            "/firecracker",
        ] {
            assert_eq!(place(none), CgroupPlace::default(), "{none}");
        }
        assert_eq!(
            place("/firecracker/web-3").firecracker_id.as_deref(),
            Some("web-3")
        );
    }

    #[test]
    fn a_machine_name_is_a_beginning_of_the_name_s_letters() {
        for (machine, name) in [
            ("web-3", "web-3"),
            ("web3", "web_3"),
            ("a.b", "-a.-b-"),
            ("lon", "long name"),
        ] {
            assert!(is_machine_of(machine, name), "{machine} {name}");
        }
        for (machine, name) in [("web-3", "db-1"), ("web-3", ""), ("web-33", "web-3")] {
            assert!(!is_machine_of(machine, name), "{machine} {name}");
        }
    }
}
