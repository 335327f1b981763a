// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies in words, as `--policy` takes them: names, and a file with a user policy.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use unspin_policy::{
    auto::{AUTO, AutoSet},
    steering::{Policies, WindowPolicy},
};

use super::{
    host_slice::HostSlice,
    user_policy::{UserPolicy, UserPolicyError},
};

/// Some of the built-in policies, and perhaps a file: `./mine.c` or `./mine.bpf.o`. Wherever it stands in the list, the
/// user's own is asked first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyChoice {
    built_in: Policies,
    user_policy: Option<PathBuf>,
    window: Option<WindowPolicy>,
    /// Nothing but a policy for windows: the host's scheduler stays.
    window_alone: bool,
    /// Each VM gets what is best for it.
    auto: bool,
    /// The host's scheduler stays, and vCPUs get such slices.
    host_slice: Option<HostSlice>,
}

/// The word for slices of vCPUs under the host's own scheduler; `tune=100us`: all have that one.
const TUNE: &str = "tune";

/// The same, compiled and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenPolicies {
    /// What is on.
    pub policies: Policies,
    /// The user's own.
    pub user_policy: Option<UserPolicy>,
    /// Who sets the pause-loop window.
    pub window: Option<WindowPolicy>,
    /// Whether our scheduler is wanted.
    pub steers: bool,
    /// Whether each VM gets what is best for it; `policies` are the first set's then.
    pub auto: bool,
    /// Which slices vCPUs have under the host's own scheduler, if others than the kernel's.
    pub host_slice: Option<HostSlice>,
}

/// Whether a word of a list of policies is a file's name: a C file or an object.
pub fn is_file(word: &str) -> bool {
    word.ends_with(".c") || word.ends_with(".o")
}

impl FromStr for PolicyChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<PolicyChoice, String> {
        if let Some(host_slice) = host_slice(text)? {
            return Ok(PolicyChoice {
                host_slice: Some(host_slice),
                ..PolicyChoice::default()
            });
        }
        let (windows, others): (Vec<&str>, Vec<&str>) =
            text.split(',').partition(|word| WindowPolicy::is_one(word));
        let window = match windows[..] {
            [] => None,
            [word] => Some(word.parse()?),
            _ => return Err("one policy for the window, no more".into()),
        };
        if others.is_empty() {
            return Ok(PolicyChoice {
                window,
                window_alone: true,
                ..PolicyChoice::default()
            });
        }
        if others == [AUTO] {
            return Ok(PolicyChoice {
                built_in: AutoSet::FIRST.policies(),
                window,
                auto: true,
                ..PolicyChoice::default()
            });
        }
        if others.contains(&AUTO) {
            return Err("auto chooses among policies itself: it goes alone, or beside a policy for the window".into());
        }
        let (files, names): (Vec<&str>, Vec<&str>) =
            others.into_iter().partition(|word| is_file(word));
        let built_in = match (&files[..], &names[..]) {
            ([_, _, ..], _) => return Err("one file with a user policy, no more".into()),
            ([_], []) => Policies::REFUSE_YIELDS,
            ([_], names) if names.contains(&"refuse-yields") => {
                return Err("refuse-yields is no policy beside others".into());
            }
            _ => names.join(",").parse().map_err(|error| {
                let windows = WindowPolicy::WORDS.join(", ");
                format!("{error}; for the pause-loop window {windows}; or a file with one of your own, as in ./mine.c,loan")
            })?,
        };
        Ok(PolicyChoice {
            built_in,
            user_policy: files.first().map(PathBuf::from),
            window,
            window_alone: false,
            auto: false,
            host_slice: None,
        })
    }
}

/// What `tune` or `tune=TIME` asks for; `None`: it is something else.
fn host_slice(text: &str) -> Result<Option<HostSlice>, String> {
    let words = || text.split(',').map(|word| word.split('=').next());
    match text.strip_prefix(TUNE) {
        Some("") => Ok(Some(HostSlice::Auto)),
        Some(time) if time.starts_with('=') && !text.contains(',') => time[1..].parse().map(Some),
        _ if words().any(|word| word == Some(TUNE)) => Err(format!(
            "`{TUNE}` leaves the host's scheduler in place: it goes alone, as in {TUNE} or {TUNE}=100us"
        )),
        _ => Ok(None),
    }
}

fn tune_in_words(slice: HostSlice) -> String {
    match slice {
        HostSlice::Auto => TUNE.to_owned(),
        fixed => format!("{TUNE}={fixed}"),
    }
}

impl fmt::Display for PolicyChoice {
    /// In a form that can be read again.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self
            .user_policy
            .as_ref()
            .map(|path| path.display().to_string());
        let names = self.auto_or(with_name(self.policies(), own.as_deref()));
        out.write_str(&with_window(names, self.window, !self.window_alone))
    }
}

impl PolicyChoice {
    /// Who sets the pause-loop window, if anybody.
    pub fn window(&self) -> Option<WindowPolicy> {
        self.window
    }

    /// Whether our scheduler is wanted.
    pub fn steers(&self) -> bool {
        !self.window_alone && self.host_slice.is_none()
    }

    /// For those who have other means.
    ///
    /// # Errors
    /// When slices under the host's own scheduler are asked for.
    pub fn without_tune(&self, who: &str) -> Result<(), String> {
        match self.host_slice {
            None => Ok(()),
            Some(_) => Err(format!(
                "{who} does not tune the host's own scheduler: `unspin tune` does, and `unspin compare` measures it"
            )),
        }
    }

    /// The same, the window left to whoever sets it.
    pub fn without_its_window(&self) -> PolicyChoice {
        PolicyChoice {
            window: None,
            ..self.clone()
        }
    }

    /// For those who cannot set windows.
    ///
    /// # Errors
    /// When a policy for windows is among them.
    pub fn without_window(&self, who: &str) -> Result<(), String> {
        match self.window {
            None => Ok(()),
            Some(window) => Err(format!(
                "{who} does not set pause-loop windows: leave `{window}` to `unspin steer`"
            )),
        }
    }

    /// Whether each VM gets what is best for it.
    pub fn is_auto(&self) -> bool {
        self.auto
    }

    /// For those who do not choose while VMs run.
    ///
    /// # Errors
    /// When that is what was asked for.
    pub fn without_auto(&self, who: &str) -> Result<(), String> {
        match self.auto {
            false => Ok(()),
            true => Err(format!(
                "{who} does not choose policies as `{AUTO}` does: name some with --policy"
            )),
        }
    }

    fn auto_or(&self, names: String) -> String {
        match self.host_slice {
            Some(slice) => tune_in_words(slice),
            None if self.auto => AUTO.to_owned(),
            None => names,
        }
    }

    fn policies(&self) -> Policies {
        match self.user_policy {
            None => self.built_in,
            Some(_) => self.built_in.with_user_policy(),
        }
    }

    /// The file of the user's own.
    pub fn file(&self) -> Option<&Path> {
        self.user_policy.as_deref()
    }

    /// The same with the user's own by its name: that of its file up to the first point.
    pub fn names(&self) -> String {
        let file = self.user_policy.as_ref().and_then(|path| path.file_name());
        let file = file.map(|file| file.to_string_lossy().into_owned());
        let own = file.as_ref().and_then(|file| file.split('.').next());
        let names = self.auto_or(with_name(self.policies(), own));
        with_window(names, self.window, !self.window_alone)
    }

    /// Compiles the C file, or reads the object; `dry_run`: for a dry run.
    ///
    /// # Errors
    /// When there is no such file or no compiler, it does not compile, or was built by another version or for another use.
    pub fn ready(&self, dry_run: bool) -> Result<ChosenPolicies, UserPolicyError> {
        let own = self.user_policy.as_deref();
        let own = own.map(|path| UserPolicy::load(path, dry_run));
        Ok(ChosenPolicies {
            policies: self.policies(),
            user_policy: own.transpose()?,
            window: self.window,
            steers: self.steers(),
            auto: self.auto,
            host_slice: self.host_slice,
        })
    }
}

impl fmt::Display for ChosenPolicies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(slice) = self.host_slice {
            return out.write_str(&tune_in_words(slice));
        }
        let names = match self.auto {
            true => AUTO.to_owned(),
            false => with_name(
                self.policies,
                self.user_policy.as_ref().map(UserPolicy::name),
            ),
        };
        out.write_str(&with_window(names, self.window, self.steers))
    }
}

/// The names and the policy for windows, in a form that can be read again.
fn with_window(names: String, window: Option<WindowPolicy>, steers: bool) -> String {
    match window {
        None => names,
        Some(window) if steers => format!("{names},{window}"),
        Some(window) => window.to_string(),
    }
}

/// The policies' names, and the user's own by that.
fn with_name(policies: Policies, user_policy: Option<&str>) -> String {
    let names = policies.to_string();
    match user_policy {
        Some(name) => names.replacen("user-policy", name, 1),
        None => names,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> PolicyChoice {
        text.parse().expect("a choice")
    }

    #[test]
    fn names_and_one_file_are_read() {
        let loan: Policies = "loan".parse().expect("a policy");
        assert_eq!(choice("refuse-yields"), PolicyChoice::default());
        assert_eq!(choice("loan").built_in, loan);
        for both in ["./a/mine.c,loan", "loan,./a/mine.c"] {
            assert_eq!(choice(both).built_in, loan);
            assert_eq!(choice(both).user_policy, Some("./a/mine.c".into()));
        }
        let both = choice("loan,./a/mine.bpf.o");
        assert_eq!(both.to_string(), "./a/mine.bpf.o,loan");
        assert_eq!(choice(&both.to_string()), both);
        assert_eq!(both.names(), "mine,loan");
        assert_eq!(choice("refuse-yields").names(), "refuse-yields");
        assert_eq!(choice("mine.bpf.o").built_in, Policies::REFUSE_YIELDS);
        for wrong in [
            "",
            "a.c,b.c",
            "refuse-yields,a.c",
            "none",
            "mine",
            "loan,",
            "a.c,",
        ] {
            assert!(wrong.parse::<PolicyChoice>().is_err(), "{wrong}");
        }
        let error = "mine".parse::<PolicyChoice>().expect_err("no policy");
        assert!(
            error.contains("`mine`") && error.contains("./mine.c"),
            "{error}"
        );
    }

    #[test]
    fn a_policy_for_windows_goes_alone_or_beside_others() {
        for (text, window, alone) in [
            ("apple", "apple", true),
            ("window=200", "window=200", true),
            ("loan,window=kvm", "window=kvm", false),
            (
                "refuse-yields,apple=8/64/64/512",
                "apple=8/64/64/512",
                false,
            ),
        ] {
            let choice = choice(text);
            assert_eq!(
                choice.window.map(|window| window.to_string()).as_deref(),
                Some(window)
            );
            assert_eq!(
                (choice.window_alone, choice.to_string().as_str()),
                (alone, text)
            );
            assert!(choice.without_window("a dry run").is_err());
            assert_eq!(choice.steers(), !alone);
        }
        assert_eq!(choice("apple,loan").to_string(), "loan,apple");
        assert!(choice("loan").without_window("a dry run").is_ok());
        assert_eq!(choice("apple,loan").without_its_window(), choice("loan"));
        for wrong in [
            "window=0",
            "window",
            "apple,window=kvm",
            "apple,",
            "apple,mine",
        ] {
            assert!(wrong.parse::<PolicyChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn tune_goes_alone_and_leaves_the_hosts_scheduler() {
        for text in ["tune", "tune=100us"] {
            let choice = choice(text);
            assert!(!choice.steers() && choice.window().is_none() && !choice.is_auto());
            assert_eq!(
                (choice.to_string(), choice.names()),
                (text.into(), text.into())
            );
            assert!(choice.without_tune("steer").is_err());
            let ready = choice.ready(false).expect("nothing is compiled");
            assert!(!ready.steers && ready.host_slice.is_some());
            assert_eq!(ready.to_string(), text);
        }
        assert!(choice("auto").without_tune("steer").is_ok());
        for wrong in [
            "tune=",
            "tune=99us",
            "tune,loan",
            "loan,tune",
            "tune=1ms,loan",
            "tuned",
        ] {
            assert!(wrong.parse::<PolicyChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn auto_goes_alone_or_with_a_window() {
        for text in ["auto", "auto,window=kvm"] {
            let choice = choice(text);
            assert!(choice.is_auto() && choice.steers());
            assert_eq!(choice.to_string(), text);
            assert_eq!(choice.names(), text);
            assert!(choice.without_auto("the lab").is_err());
            let ready = choice.ready(false).expect("nothing is compiled");
            assert_eq!(
                (ready.auto, ready.policies),
                (true, AutoSet::FIRST.policies())
            );
            assert_eq!(ready.to_string(), text);
        }
        assert!(choice("loan").without_auto("the lab").is_ok());
        for wrong in ["auto,loan", "./mine.c,auto", "auto,auto", "auto=1"] {
            assert!(wrong.parse::<PolicyChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        for file in ["/no/mine.c", "/no/mine.bpf.o"] {
            let error = choice(file).ready(false).expect_err("it is not there");
            assert!(error.to_string().contains(file), "{error}");
        }
    }
}
