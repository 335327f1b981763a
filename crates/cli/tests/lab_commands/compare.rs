// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab compare`: pairs by seed, and policies of a user's own.

use std::fs;

use crate::common::{
    folder,
    lab::{LAB_SCENARIO, number, rows},
    scenario, unspin,
};

#[test]
fn a_comparison_pairs_by_seed() {
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    let line = [
        "lab",
        "compare",
        &file,
        "--seeds",
        "5",
        "--policy",
        "scheduler=eevdf-7.2",
        "--policy",
        "off",
        "--set",
        "lab.host_noise=off",
        "--json",
    ];
    let compared = |workers: &str| unspin(&[&line[..], &["--workers", workers]].concat());
    let ended = compared("2");
    let policies = rows(&ended, "policy");
    let names: Vec<_> = policies
        .iter()
        .map(|row| row["policy"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["stock", "scheduler=eevdf-7.2", "off", "ideal"]);
    // The default named is the default.
    assert_eq!(policies[1]["throughput_ratio_to_stock"], 1.0);
    assert_eq!(policies[1]["gap_closed"], 0.0);
    assert_eq!(policies[2]["verdict"], "lower");
    assert_eq!(policies[2]["harm"], "harm");
    assert_eq!(policies[3]["verdict"], "higher");
    assert!(policies[0]["throughput_ratio_to_stock"].is_null());
    let seeds: Vec<u64> = rows(&ended, "sample")
        .iter()
        .map(|row| number(row, "seed"))
        .collect();
    assert_eq!(seeds, [[3, 4, 5, 6, 7]; 4].concat());
    assert_eq!(rows(&compared("1"), "sample"), rows(&ended, "sample"));
    let constant = unspin(&[
        "lab",
        "compare",
        &file,
        "--seeds",
        "2",
        "--policy",
        "off",
        "--set",
        "vm.hold=1us",
        "--set",
        "vm.user_work=2us",
        "--set",
        "vm.kernel_work=0s",
        "--set",
        "lab.host_noise=off",
    ]);
    assert!(
        constant.out.contains("this scenario draws nothing"),
        "{constant:#?}"
    );
    for (policy, piece) in [
        ("best", "there is no policy `best`"),
        ("loan:kernel-exit", "commas combine words now"),
        ("lag-credit=1", "there is no policy"),
        ("scheduler=cfs-9", "no host scheduler"),
    ] {
        let line = ["lab", "compare", &file, "--policy", policy];
        unspin(&line).refused(2, &[piece]);
    }
}

/// The policy of that answer to every question.
fn own(answer: &str) -> String {
    let functions = ["yield", "slice_end", "poll"].map(|event| {
        format!(
            "UNSPIN_PURE struct unspin_decision mine_on_{event}(const struct unspin_facts *facts, struct unspin_policy_state *state)\n\
             {{\n\treturn unspin_decide({answer}, 0);\n}}\n"
        )
    });
    format!(
        "#include <unspin/policy/contract.h>\n{}UNSPIN_PURE void mine_on_slice_start(const struct unspin_facts *facts, struct \
         unspin_policy_state *state)\n{{\n}}\n",
        functions.concat()
    )
}

#[test]
fn a_policy_of_a_users_own_decides() {
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    let path = folder.path().join("mine.c");
    let path = path.to_string_lossy();
    // One that does not lend: under those that do, slices are longer.
    let both = format!("{path},directed-yield");
    let compared = |answer: &str| {
        fs::write(&*path, own(answer)).expect("written");
        let line = [
            "lab",
            "compare",
            &file,
            "--seeds",
            "3",
            "--json",
            "--policy",
            "refuse-yields",
            "--policy",
            &path,
            "--policy",
            &both,
        ];
        let samples = rows(&unspin(&line), "sample");
        let of = |policy: &str| -> Vec<f64> {
            let ours = samples.iter().filter(|row| row["policy"] == policy);
            ours.map(|row| row["operations_per_second"].as_f64().expect("a rate"))
                .collect()
        };
        [of("refuse-yields"), of(&path), of(&both)]
    };
    // Who refuses everything is `refuse-yields`, whatever stands behind him.
    let [none, refuses, before_another] = compared("UNSPIN_REFUSE");
    assert_eq!((&refuses, &before_another), (&none, &none));
    // Who passes leaves it to the others.
    let [_, passes, before_another] = compared("UNSPIN_PASS");
    assert_ne!(before_another, none);
    assert_ne!(passes, none);
    fs::write(&*path, "no C\n").expect("written");
    let line = ["lab", "compare", &file, "--policy", &path];
    unspin(&line).refused(2, &["does not compile", "mine.c"]);
    fs::write(&*path, own("getpid()")).expect("written");
    unspin(&line).refused(2, &["does not compile"]);
    let out = folder.path().join("out");
    let set = format!("lab.policy={path}");
    let out = out.to_string_lossy();
    let refused = unspin(&[
        "lab",
        "sweep",
        &file,
        "--out",
        &out,
        "--set",
        "lab.scheduler=steer",
        "--set",
        &set,
    ]);
    refused.refused(2, &["`lab compare` takes such files"]);
}
