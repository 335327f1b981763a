// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make test-long NAME=packages`: the packages are the same bytes twice, lintian finds nothing, and they install, upgrade and go
//! without a trace, in a Debian root of its own (mmdebstrap, about 40 MB to fetch). Of this build's binary.

#[path = "../common/mod.rs"]
mod common;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use common::{Ended, UNSPIN, ended, repository};

/// What dpkg, rpm, ldconfig and systemctl keep of what they did; and folders of other packages, which this root does not have.
const KEPT_BY_OTHERS: [&str; 8] = [
    "/var/lib/dpkg",
    "/var/log/dpkg.log",
    "/var/cache",
    "/root/.rpmdb",
    "/etc/ld.so.cache",
    "/run/systemd",
    "/usr/share/fish",
    "/usr/share/zsh",
];
const CONFIG: &str = "etc/unspin/unspin.toml";
const CHANGED: &str = "[serve]\nvms_max = 7\n";
const BILL_OF_MATERIALS: &str = "/usr/share/doc/unspin/unspin.cdx.json";
const LATCH: &str = "var/lib/unspin/steer-latch.toml";

#[track_caller]
fn passes(command: &mut Command) -> Ended {
    let ended = ended(command);
    assert_eq!(ended.status, 0, "{command:?}: {ended:#?}");
    ended
}

/// Whether what this needs is there; otherwise says what is not.
fn ready() -> bool {
    // SAFETY: takes nothing and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let there = |name: &str| Path::new("/usr/bin").join(name).exists();
    let missing: Vec<&str> = ["mmdebstrap", "lintian", "rpm"]
        .into_iter()
        .filter(|name| !there(name))
        .chain((!root).then_some("root"))
        .collect();
    if missing.is_empty() {
        return true;
    }
    let why = format!(
        "{} missing: setup/system-packages packages, as root\n",
        missing.join(", ")
    );
    eprint!("{why}");
    if let Some(file) = std::env::var_os("UNSPIN_NOT_TESTED") {
        fs::write(file, why).expect("it can be written");
    }
    false
}

/// Both packages of this build, the .deb first.
fn packages(into: &Path) -> [PathBuf; 2] {
    let mut command = Command::new("setup/packages");
    passes(command.arg(UNSPIN).arg(into).current_dir(repository()));
    ["deb", "rpm"].map(|kind| {
        let files = fs::read_dir(into).expect("a folder").flatten();
        let mut files = files.map(|file| file.path());
        files
            .find(|file| file.extension().is_some_and(|extension| extension == kind))
            .unwrap_or_else(|| panic!("no .{kind}"))
    })
}

/// A Debian system that does not run.
struct Root(PathBuf);

impl Root {
    fn make(path: PathBuf) -> Root {
        let release = fs::read_to_string("/etc/os-release").expect("a release");
        let mut lines = release.lines();
        let codename = lines.find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let mut command = Command::new("mmdebstrap");
        command
            .args(["--quiet", "--mode=root", "--variant=essential"])
            .args(["--include=systemd,init-system-helpers"])
            .args(["--aptopt=APT::Install-Recommends \"false\""])
            .arg(codename.unwrap_or("trixie"))
            .arg(&path);
        passes(&mut command);
        Root(path)
    }

    fn run(&self, line: &str) -> Ended {
        let mut command = Command::new("chroot");
        command.arg(&self.0).args(["/bin/sh", "-c", line]);
        ended(command.env("DEBIAN_FRONTEND", "noninteractive"))
    }

    #[track_caller]
    fn passes(&self, line: &str) -> Ended {
        let ended = self.run(line);
        assert_eq!(ended.status, 0, "{line}: {ended:#?}");
        ended
    }

    /// Every file and folder, but for theirs.
    fn files(&self) -> BTreeSet<String> {
        let skipped = KEPT_BY_OTHERS.map(|path| format!("-path {path} -prune -o"));
        let found = self.passes(&format!("find / -xdev {} -print", skipped.join(" ")));
        found.out.lines().map(str::to_owned).collect()
    }

    fn holds(&self, path: &str) -> bool {
        self.0
            .join(path.trim_start_matches('/'))
            .symlink_metadata()
            .is_ok()
    }

    fn install(&self, package: &Path) -> Ended {
        fs::copy(package, self.0.join("tmp/unspin.deb")).expect("copied");
        let done = self.passes("dpkg --install /tmp/unspin.deb");
        fs::remove_file(self.0.join("tmp/unspin.deb")).expect("removed");
        done
    }
}

/// The same package under a later version.
fn later(package: &Path, folder: &Path) -> PathBuf {
    let tree = folder.join("later");
    passes(Command::new("dpkg-deb").arg("-R").arg(package).arg(&tree));
    let control = tree.join("DEBIAN/control");
    let text = fs::read_to_string(&control).expect("control");
    let version = text.lines().find(|line| line.starts_with("Version: "));
    let version = version.expect("a version");
    fs::write(&control, text.replace(version, &format!("{version}.1"))).expect("written");
    let later = folder.join("later.deb");
    passes(
        Command::new("dpkg-deb")
            .args(["-Zgzip", "-b"])
            .arg(&tree)
            .arg(&later),
    );
    later
}

#[test]
fn packages_are_the_same_twice_and_leave_nothing() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [deb, rpm] = packages(&folder.path().join("first"));
    let again = packages(&folder.path().join("second"));
    for (first, second) in [(&deb, &again[0]), (&rpm, &again[1])] {
        let same = fs::read(first).expect("there") == fs::read(second).expect("there");
        assert!(same, "{} differs from the one before", second.display());
    }
    let mut lintian = Command::new("lintian");
    let found = ended(
        lintian
            .args(["--allow-root", "--fail-on", "error,warning"])
            .arg(&deb),
    );
    assert_eq!(found.status, 0, "{found:#?}");

    let root = Root::make(folder.path().join("root"));
    by_dpkg(&root, &deb, &later(&deb, folder.path()));
    by_rpm(&root, &rpm);
}

/// A licence, a registry or a second version that nobody has allowed is refused.
#[test]
fn libraries_are_those_that_are_allowed() {
    let allowed = repository().join("deny.toml");
    let text = fs::read_to_string(&allowed).expect("deny.toml");
    let folder = tempfile::tempdir().expect("a folder");
    let with = |old: &str, new: &str| {
        assert!(text.contains(old), "{old}");
        let config = folder.path().join("deny.toml");
        fs::write(&config, text.replace(old, new)).expect("written");
        ended(
            Command::new("setup/deny")
                .arg(&config)
                .current_dir(repository()),
        )
    };
    let as_it_is = with("[graph]", "[graph]");
    assert_eq!(as_it_is.status, 0, "{as_it_is:#?}");
    for (old, new, complaint) in [
        ("    \"ISC\",\n", "", "error[rejected]"),
        (
            "https://github.com/rust-lang/crates.io-index",
            "https://example.com/index",
            "error[source-not-allowed]",
        ),
        (
            "crate = \"bitflags@1.3.2\"",
            "crate = \"bitflags@1.3.1\"",
            "error[duplicate]",
        ),
    ] {
        let refused = with(old, new);
        assert_ne!(refused.status, 0, "{new}");
        assert!(refused.err.contains(complaint), "{complaint}: {refused:#?}");
    }
}

/// Installed, changed, upgraded, removed, purged.
fn by_dpkg(root: &Root, deb: &Path, later: &Path) {
    let before = root.files();
    root.install(deb);
    installed(root);
    let hook = "/etc/kernel/postinst.d/zz-unspin 9.9-none /boot/vmlinuz-9.9-none 2>&1";
    let hook = root.passes(hook);
    assert!(
        hook.out.contains("no such kernel is installed") && hook.out.contains("not known"),
        "{hook:#?}"
    );
    use_it(root);
    root.install(later);
    let config = root.0.join(CONFIG);
    assert_eq!(fs::read_to_string(&config).expect("kept"), CHANGED);
    assert!(root.holds(LATCH));
    let enabled = root.passes("systemctl is-enabled unspin-steer");
    assert_eq!(enabled.out, "enabled\n");
    root.passes("dpkg --remove unspin");
    assert!(!root.holds("/usr/bin/unspin"));
    assert!(root.holds(LATCH) && config.exists());
    root.passes("dpkg --purge unspin");
    left_behind(root, &before);
}

/// Installed, changed, upgraded by itself, erased.
fn by_rpm(root: &Root, package: &Path) {
    let rpm = |words: &[&str]| {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(&root.0).args(words);
        passes(&mut command);
    };
    let package = package.to_string_lossy();
    let before = root.files();
    rpm(&["--install", "--nodeps", "--nosignature", &package]);
    installed(root);
    use_it(root);
    rpm(&[
        "--upgrade",
        "--force",
        "--nodeps",
        "--nosignature",
        &package,
    ]);
    let config = root.0.join(CONFIG);
    assert_eq!(fs::read_to_string(&config).expect("kept"), CHANGED);
    assert!(root.holds(LATCH));
    rpm(&["--erase", "--nodeps", "unspin"]);
    // A file of configuration that was changed stays, as rpm does, under another name.
    let saved = config.with_extension("toml.rpmsave");
    assert_eq!(fs::read_to_string(&saved).expect("kept"), CHANGED);
    fs::remove_dir_all(root.0.join("etc/unspin")).expect("removed");
    left_behind(root, &before);
}

/// Somebody changes the configuration, enables both services, and one has latched.
fn use_it(root: &Root) {
    fs::write(root.0.join(CONFIG), CHANGED).expect("written");
    root.passes("systemctl enable unspin-watch unspin-steer");
    // unspin-steer belongs to multi-user.target and begins after it.
    let verified =
        root.passes("systemd-analyze verify --man=no multi-user.target graphical.target 2>&1");
    assert!(!verified.out.contains("cycle"), "{verified:#?}");
    for state in ["var/lib/unspin", "var/log/unspin"] {
        fs::create_dir_all(root.0.join(state)).expect("made");
    }
    fs::write(root.0.join(LATCH), "").expect("written");
}

#[track_caller]
fn left_behind(root: &Root, before: &BTreeSet<String>) {
    let after = root.files();
    let left: Vec<&String> = after.symmetric_difference(before).collect();
    assert!(left.is_empty(), "left behind, or gone: {left:#?}");
}

/// Libraries are named, and nothing of the folder in which it was made.
fn bill_of_materials(text: &str) {
    let bill: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(bill["bomFormat"], "CycloneDX");
    let components = bill["components"].as_array().expect("components").iter();
    let names: BTreeSet<&str> = components.filter_map(|it| it["name"].as_str()).collect();
    for library in ["libbpf-sys", "libbpf-rs", "arrow-array", "kvm-ioctls"] {
        assert!(names.contains(library), "{library} is not in {names:?}");
    }
    let folder = repository().to_string_lossy().into_owned();
    assert!(!text.contains(&folder), "{folder} is in it");
    assert!(!text.contains("serialNumber"));
}

/// What is there, and that nothing begins by itself.
fn installed(root: &Root) {
    assert!(root.passes("unspin --version").out.starts_with("unspin "));
    let check = root.passes("unspin config check");
    assert!(
        check
            .out
            .contains("/etc/unspin/unspin.toml: nothing is wrong"),
        "{check:#?}"
    );
    for path in [
        "/usr/share/man/man1/unspin-steer.1.gz",
        "/usr/share/bash-completion/completions/unspin",
        "/usr/share/fish/vendor_completions.d/unspin.fish",
        "/usr/share/unspin/monitoring/alerts.yml",
        "/usr/share/doc/unspin/install.md",
        "/usr/share/doc/unspin/reference/configuration.md",
        "/usr/share/doc/unspin/libraries.txt",
        BILL_OF_MATERIALS,
        "/usr/share/doc/unspin/copyright",
    ] {
        assert!(root.holds(path), "{path} is missing");
    }
    bill_of_materials(&root.passes(&format!("cat {BILL_OF_MATERIALS}")).out);
    for unit in ["unspin-watch", "unspin-steer"] {
        let verified = root.passes(&format!(
            "systemd-analyze verify --man=no {unit}.service 2>&1"
        ));
        assert!(!verified.out.contains("unspin"), "{verified:#?}");
        assert_eq!(
            root.run(&format!("systemctl is-enabled {unit}")).out,
            "disabled\n"
        );
    }
}
