// SPDX-License-Identifier: MIT OR Apache-2.0
//! The job: what the host asks PID 1 in the testbed to do, as a JSON file in the initramfs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where the job lies in the testbed.
pub const JOB_PATH: &str = "/job.json";
/// Where the command leaves what is to be brought back.
pub const OUT_DIRECTORY: &str = "/out";

/// One kernel module to load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Path in the testbed.
    pub path: String,
    /// As one would give them to `insmod`.
    pub parameters: String,
}

/// Everything PID 1 has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The command and its arguments; the first is looked for in `PATH`.
    pub command: Vec<String>,
    /// The command's working directory.
    pub working_directory: String,
    /// The command's whole environment.
    pub environment: BTreeMap<String, String>,
    /// In the order in which they must be loaded.
    pub modules: Vec<Module>,
    /// Send the files below [`OUT_DIRECTORY`].
    pub bring_back: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Job {
        Job {
            command: vec!["unspin".into(), "vm".into(), "run \"é\"".into()],
            working_directory: "/job".into(),
            environment: [("PATH".to_string(), "/bin".to_string())].into(),
            modules: vec![Module {
                path: "/m/kvm.ko".into(),
                parameters: "a=1 b=2".into(),
            }],
            bring_back: true,
        }
    }

    #[test]
    fn a_job_survives_its_file() {
        let text = serde_json::to_string(&sample()).expect("serialisable");
        assert_eq!(
            text,
            r#"{"command":["unspin","vm","run \"é\""],"working_directory":"/job","environment":{"PATH":"/bin"},"#.to_string()
                + r#""modules":[{"path":"/m/kvm.ko","parameters":"a=1 b=2"}],"bring_back":true}"#
        );
        assert_eq!(serde_json::from_str::<Job>(&text).expect("a job"), sample());
    }

    #[test]
    fn an_unknown_or_missing_field_is_refused() {
        let text = serde_json::to_string(&sample()).expect("serialisable");
        assert!(serde_json::from_str::<Job>(&text.replace("\"command\"", "\"comand\"")).is_err());
        assert!(serde_json::from_str::<Job>("{}").is_err());
    }
}
