// SPDX-License-Identifier: MIT OR Apache-2.0
//! A VMM's command line. Only options that name the VM are looked at: the rest may hold secrets.

use unspin_events::vm_identity::VmKind;

/// What a command line says of a VM's name, as it stands there: not yet safe to print.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// By the program; `Other`: it is none of those that we know.
    pub kind: VmKind,
    /// Its name.
    pub name: Option<String>,
    /// Its UUID, in small letters.
    pub uuid: Option<String>,
    /// Proxmox's `-id`, Cloud Hypervisor's socket, Firecracker's `--id`.
    pub id: Option<String>,
}

/// Names of sockets that say nothing of the VM: then the folder does, as in Kata's `/run/vc/vm/<id>/clh-api.sock`.
const SOCKETS_OF_ANYBODY: [&str; 7] = [
    "api",
    "ch",
    "ch-api",
    "clh",
    "clh-api",
    "cloud-hypervisor",
    "vmm",
];
/// What Firecracker is called when it was given no id (src/firecracker/src/main.rs, 1.13).
const FIRECRACKER_DEFAULT_ID: &str = "anonymous-instance";

impl CommandLine {
    /// Reads `/proc/PID/cmdline`: words that end with a zero byte.
    pub fn parse(bytes: &[u8]) -> CommandLine {
        let text = String::from_utf8_lossy(bytes);
        let words: Vec<&str> = text.split('\0').collect();
        let Some((program, words)) = words.split_first() else {
            return CommandLine::default();
        };
        let options = Options(words);
        match kind_of(program) {
            VmKind::Qemu => qemu(&options),
            VmKind::CloudHypervisor => cloud_hypervisor(&options),
            VmKind::Firecracker => CommandLine {
                kind: VmKind::Firecracker,
                id: options
                    .last("id")
                    .filter(|id| *id != FIRECRACKER_DEFAULT_ID)
                    .map(str::to_owned),
                ..CommandLine::default()
            },
            kind => CommandLine {
                kind,
                ..CommandLine::default()
            },
        }
    }
}

/// Which VMM a program is, by its file's name; `Other`: none that we know.
pub(crate) fn kind_of(program: &str) -> VmKind {
    let file = program.rsplit('/').next().unwrap_or(program);
    match file {
        "kvm" | "qemu-kvm" | "qemu" => VmKind::Qemu,
        "cloud-hypervisor" => VmKind::CloudHypervisor,
        "firecracker" => VmKind::Firecracker,
        "unspin" => VmKind::Unspin,
        _ if file.starts_with("qemu-system-") => VmKind::Qemu,
        _ => VmKind::Other,
    }
}

/// `-name guest=web,debug-threads=on`, `-uuid`, `-smbios type=1,uuid=...,manufacturer=OpenStack Foundation`, Proxmox's `-id`.
fn qemu(options: &Options) -> CommandLine {
    let name = options.last("name").and_then(|value| {
        let parts = parts(value);
        let named = parts
            .iter()
            .rev()
            .find_map(|part| part.strip_prefix("guest="));
        let first = parts.first().filter(|part| !part.contains('='));
        named.or(first.map(String::as_str)).map(str::to_owned)
    });
    let system: Vec<String> = options
        .all("smbios")
        .map(parts)
        .filter(|parts| parts.iter().any(|part| part == "type=1"))
        .flatten()
        .collect();
    let of_system = |key: &str| system.iter().find_map(|part| part.strip_prefix(key));
    let uuid = options.last("uuid").or(of_system("uuid="));
    let openstack = ["manufacturer=", "product="];
    let nova = openstack
        .iter()
        .any(|key| of_system(key).is_some_and(|of| of.contains("OpenStack")))
        || name.as_deref().is_some_and(is_nova_instance);
    let id = options
        .last("id")
        .filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
    // What KubeVirt gives its guests as their machine's (cluster's firmware defaults; seen in kubevirt issues 6567 and 11552).
    let kubevirt =
        of_system("manufacturer=") == Some("KubeVirt") || of_system("family=") == Some("KubeVirt");
    let kind = match (id, nova) {
        (Some(_), _) => VmKind::Proxmox,
        (None, _) if kubevirt => VmKind::Kubevirt,
        (None, true) => VmKind::Nova,
        // The alias of the secret that libvirt gives every QEMU (src/qemu/qemu_alias.c, 10.0).
        (None, false) if options.0.iter().any(|word| word.contains("masterKey0")) => {
            VmKind::Libvirt
        }
        (None, false) => VmKind::Qemu,
    };
    CommandLine {
        kind,
        uuid: uuid.and_then(uuid_of),
        id: match kind {
            VmKind::Nova => name.clone(),
            _ => id.map(str::to_owned),
        },
        name: name.filter(|name| !name.is_empty()),
    }
}

/// `--api-socket path=/run/web-3.sock`, `--platform uuid=...`.
fn cloud_hypervisor(options: &Options) -> CommandLine {
    let socket = options.last("api-socket").map(|value| {
        let parts = parts(value);
        let path = parts.iter().find_map(|part| part.strip_prefix("path="));
        path.map_or_else(|| parts.first().cloned().unwrap_or_default(), str::to_owned)
    });
    let socket = socket.filter(|path| !path.starts_with("fd="));
    let name = socket.as_deref().and_then(|path| {
        let mut folders = path.rsplit('/').filter(|part| !part.is_empty());
        let file = folders.next()?;
        let stem = file
            .strip_suffix(".sock")
            .or(file.strip_suffix(".socket"))
            .unwrap_or(file);
        match SOCKETS_OF_ANYBODY.contains(&stem) {
            true => folders.next(),
            false => Some(stem),
        }
        .map(str::to_owned)
    });
    let uuid = options.last("platform").and_then(|value| {
        let parts = parts(value);
        parts
            .iter()
            .find_map(|part| part.strip_prefix("uuid=").and_then(uuid_of))
    });
    CommandLine {
        kind: VmKind::CloudHypervisor,
        name,
        uuid,
        id: socket,
    }
}

/// Nova's name for an instance where nobody has changed `instance_name_template` (nova/conf/compute.py: `instance-%08x`).
fn is_nova_instance(name: &str) -> bool {
    name.strip_prefix("instance-").is_some_and(|digits| {
        digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// A UUID in small letters; `None`: it is none.
pub(crate) fn uuid_of(text: &str) -> Option<String> {
    let groups = text.split('-').map(str::len);
    let digits = text
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    (digits && groups.eq([8, 4, 4, 4, 12])).then(|| text.to_ascii_lowercase())
}

/// QEMU's `a=1,b=2`; a doubled comma is one in a value (util/qemu-option.c, 10.0).
fn parts(value: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = value.chars().peekable();
    while let Some(character) = characters.next() {
        let last = parts.last_mut().expect("there is always one");
        match character {
            ',' if characters.next_if_eq(&',').is_some() => last.push(','),
            ',' => parts.push(String::new()),
            character => last.push(character),
        }
    }
    parts
}

/// The words behind the program.
struct Options<'a>(&'a [&'a str]);

impl<'a> Options<'a> {
    /// Every value of `-key VALUE`, `--key VALUE` and `--key=VALUE`. A word that begins with `-` is never a value here: it may be
    /// what somebody else wrote into an option before.
    fn all(&self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let words = self.0;
        words.iter().enumerate().filter_map(move |(place, word)| {
            let option = word.strip_prefix("--").or(word.strip_prefix('-'))?;
            if option == key {
                let value = words.get(place + 1).copied()?;
                return (!value.starts_with('-')).then_some(value);
            }
            option.strip_prefix(key)?.strip_prefix('=')
        })
    }

    /// The last of them, which holds.
    fn last(&self, key: &'a str) -> Option<&'a str> {
        self.all(key).last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> CommandLine {
        CommandLine::parse(words.join("\0").as_bytes())
    }

    fn name(words: &[&str]) -> Option<String> {
        parsed(words).name
    }

    #[test]
    fn qemu_is_named_as_it_reads_its_options() {
        for (value, expected) in [
            ("web", Some("web")),
            ("guest=web,debug-threads=on", Some("web")),
            ("debug-threads=on,guest=db", Some("db")),
            ("guest=a,,b", Some("a,b")),
            ("web,process=x", Some("web")),
            ("guest=old,guest=new", Some("new")),
            ("debug-threads=on", None),
            ("guest=", None),
            ("", None),
        ] {
            assert_eq!(
                name(&["kvm", "-name", value]).as_deref(),
                expected,
                "{value}"
            );
        }
        assert_eq!(
            name(&["/usr/bin/qemu-system-x86_64", "--name", "web"]).as_deref(),
            Some("web")
        );
        assert_eq!(name(&["kvm", "-m", "1G", "-name"]), None);
        assert_eq!(name(&["secret", "-name", "web"]), None);
        assert_eq!(parsed(&[]), CommandLine::default());
    }

    #[test]
    fn what_a_guest_s_owner_writes_into_an_option_is_no_option() {
        let append = ["kvm", "-append", "-name", "-initrd", "x"];
        assert_eq!(name(&append), None);
        let append = ["kvm", "-name", "web", "-append", "-name", "-initrd", "x"];
        assert_eq!(name(&append).as_deref(), Some("web"));
        assert_eq!(parsed(&["kvm", "-append", "-uuid", "-id", "x"]).id, None);
    }

    #[test]
    fn uuids_are_whole_or_none() {
        let whole = "4DEA22B3-1D52-D8F3-2516-782E98AB3FA0";
        let small = whole.to_ascii_lowercase();
        assert_eq!(parsed(&["kvm", "-uuid", whole]).uuid, Some(small.clone()));
        let system = format!("type=1,uuid={whole}");
        assert_eq!(parsed(&["kvm", "-smbios", &system]).uuid, Some(small));
        let board = format!("type=2,uuid={whole}");
        assert_eq!(parsed(&["kvm", "-smbios", &board]).uuid, None);
        for wrong in [
            "",
            "web",
            &whole[1..],
            "4DEA22B3-1D52-D8F3-2516-782E98AB3FAg",
        ] {
            assert_eq!(parsed(&["kvm", "-uuid", wrong]).uuid, None, "{wrong}");
        }
    }

    #[test]
    fn sockets_name_cloud_hypervisor_s_vms() {
        for (value, expected) in [
            ("/run/ch/web-3.sock", Some("web-3")),
            ("path=/run/ch/web-3.socket", Some("web-3")),
            ("/run/vc/vm/0a1b/clh-api.sock", Some("0a1b")),
            ("web", Some("web")),
            ("api.sock", None),
            ("fd=3", None),
            ("", None),
        ] {
            let found = name(&["cloud-hypervisor", "--api-socket", value]);
            assert_eq!(found.as_deref(), expected, "{value}");
        }
        assert_eq!(
            name(&["cloud-hypervisor", "--api-socket=/x/db.sock"]).as_deref(),
            Some("db")
        );
    }

    #[test]
    fn firecracker_s_default_is_no_id() {
        let id = |words: &[&str]| parsed(words).id;
        assert_eq!(
            id(&["/firecracker", "--id=web-3", "--start-time-us", "1"]).as_deref(),
            Some("web-3")
        );
        assert_eq!(
            id(&["firecracker", "--id", "web-3"]).as_deref(),
            Some("web-3")
        );
        assert_eq!(id(&["firecracker", "--id", "anonymous-instance"]), None);
        assert_eq!(id(&["firecracker", "--api-sock", "/run/x"]), None);
    }
}
