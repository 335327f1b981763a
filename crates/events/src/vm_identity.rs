// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who a VM is: what its manager calls it, by which ids, and why it has no name where it has none.

use serde::{Deserialize, Serialize};

/// Longest name that is kept or shown, characters. libvirt, Proxmox and Kubernetes allow no longer host names.
pub const NAME_LENGTH_MAX: usize = 64;

/// Who manages a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VmKind {
    /// libvirt by itself.
    Libvirt,
    /// OpenStack Nova, by libvirt.
    Nova,
    /// KubeVirt, by libvirt in a pod.
    Kubevirt,
    /// Proxmox VE.
    Proxmox,
    /// QEMU without any of these.
    Qemu,
    /// Cloud Hypervisor.
    CloudHypervisor,
    /// Firecracker.
    Firecracker,
    /// `unspin vm`: several VMs in one process, known by their numbers.
    Unspin,
    /// Another program, or one that may not be looked at.
    #[default]
    #[serde(other)]
    Other,
}

impl VmKind {
    /// The word for it in tables and JSON.
    pub fn word(self) -> &'static str {
        match self {
            VmKind::Libvirt => "libvirt",
            VmKind::Nova => "nova",
            VmKind::Kubevirt => "kubevirt",
            VmKind::Proxmox => "proxmox",
            VmKind::Qemu => "qemu",
            VmKind::CloudHypervisor => "cloud_hypervisor",
            VmKind::Firecracker => "firecracker",
            VmKind::Unspin => "unspin",
            VmKind::Other => "other",
        }
    }
}

/// Who a VM is. All texts are [`printable`]; `None`: there is none, or it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VmIdentity {
    /// Who manages it.
    pub kind: VmKind,
    /// Its name there; of KubeVirt without the namespace.
    pub name: Option<String>,
    /// Its UUID, in small letters.
    pub uuid: Option<String>,
    /// Its id there beside name and UUID: Proxmox's number, Nova's `instance-0000abcd`, the socket of Cloud Hypervisor's API,
    /// Firecracker's `--id`.
    pub id: Option<String>,
    /// KubeVirt: the namespace.
    pub namespace: Option<String>,
    /// The UID of the pod in which it runs.
    pub pod_uid: Option<String>,
    /// Why it has no name, or not the one that its command line says.
    pub name_problem: Option<String>,
}

impl VmIdentity {
    /// What people call it: `web-3`, `default/web-3`, `instance-0000abcd`, `101`; `None`: nothing but its process.
    pub fn called(&self) -> Option<String> {
        let name = self.name.as_ref().or(self.id.as_ref())?;
        let called = match &self.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.clone(),
        };
        // A recording may come from anybody.
        Some(printable(&called, 2 * NAME_LENGTH_MAX)).filter(|called| !called.is_empty())
    }
}

/// The text without anything that a terminal, a line of a log or a reader could take for something else: control characters
/// (and with them escape sequences), separators of lines, marks that change the direction of text, and characters that
/// cannot be seen are `?`. At most `length_max` characters; of a longer one the last is `…`.
pub fn printable(text: &str, length_max: usize) -> String {
    let mut characters = text.chars().map(|character| match is_shown(character) {
        true => character,
        false => '?',
    });
    let mut shown: String = characters.by_ref().take(length_max).collect();
    if characters.next().is_some() {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// Not so: categories Cc, Zl and Zp, and those of Cf that hide or reorder text (Unicode 15.1, UnicodeData.txt).
fn is_shown(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_short_and_does_nothing() {
        for (text, shown) in [
            ("web-3", "web-3"),
            ("größe 東京", "größe 東京"),
            ("a\u{1b}[2Jb\r\n\t\u{7}c", "a?[2Jb????c"),
            ("evil\u{202e}gpj\u{200b}.\u{2028}x", "evil?gpj?.?x"),
            ("\u{9b}31m", "?31m"),
            ("", ""),
        ] {
            assert_eq!(printable(text, 64), shown, "{text:?}");
        }
        let long = "ab".repeat(5_000);
        let shown = printable(&long, 64);
        assert_eq!(shown.chars().count(), 64);
        assert!(shown.starts_with("abab") && shown.ends_with('…'));
        assert_eq!(printable("abcd", 4), "abcd");
        assert_eq!(printable("abcde", 4), "abc…");
    }

    #[test]
    fn a_name_goes_before_an_id_and_a_namespace_before_both() {
        let text = |text: &str| Some(text.to_owned());
        let mut identity = VmIdentity::default();
        assert_eq!(identity.called(), None);
        identity.id = text("101");
        assert_eq!(identity.called(), text("101"));
        identity.name = text("web");
        assert_eq!(identity.called(), text("web"));
        identity.namespace = text("default");
        assert_eq!(identity.called(), text("default/web"));
        identity.name = text("<b>\u{1b}[31m");
        assert_eq!(identity.called(), text("default/<b>?[31m"));
    }

    #[test]
    fn kinds_of_later_versions_are_others() {
        let read = |text: &str| serde_json::from_str::<VmKind>(text).expect("a kind");
        for kind in [VmKind::Libvirt, VmKind::CloudHypervisor, VmKind::Other] {
            assert_eq!(read(&format!("\"{}\"", kind.word())), kind);
        }
        assert_eq!(read("\"crosvm\""), VmKind::Other);
    }
}
