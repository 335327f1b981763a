// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin policy`: names, switching while it runs, policies of one's own, and taking logged decisions again.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use unspin_agent::{UserPolicy, set_running_policies};
use unspin_policy::{
    steering::{DecisionRecord, Policies, REFUSE_YIELDS, WindowPolicy, read_decisions},
    user_policy::{UserPolicySource, UserPolicySourceError, write_new_policy},
};

use crate::{
    commands::policy::{
        args::{PolicyBuildArguments, PolicyReplayArguments, PolicyVerb},
        running,
    },
    terminal::failure::Failure,
};

/// Does one of them.
pub fn run(verb: &PolicyVerb) -> Result<(), Failure> {
    match verb {
        PolicyVerb::List => {
            let words = std::iter::once(REFUSE_YIELDS).chain(Policies::names());
            let words = words.chain(WindowPolicy::WORDS).map(str::to_owned);
            let mut out = io::stdout().lock();
            for word in words.chain(Policies::candidate_names()) {
                writeln!(out, "{word}")?;
            }
            Ok(())
        }
        PolicyVerb::Set(arguments) => {
            let policies = running::of_running(&arguments.policy)?;
            Ok(set_running_policies(policies).map_err(anyhow::Error::from)?)
        }
        PolicyVerb::New(arguments) => new(&arguments.name),
        PolicyVerb::Test(arguments) => test(&arguments.file),
        PolicyVerb::Build(arguments) => build(arguments),
        PolicyVerb::Replay(arguments) => replay(arguments),
    }
}

/// Whose fault it is: a name or a path that cannot be is the command line's.
fn failure(error: UserPolicySourceError) -> Failure {
    match error {
        UserPolicySourceError::Name(_) | UserPolicySourceError::Path(_) => {
            Failure::Usage(error.to_string())
        }
        error => Failure::Failed(error.into()),
    }
}

fn new(name: &str) -> Result<(), Failure> {
    let [policy, test] = write_new_policy(Path::new("."), name).map_err(failure)?;
    println!(
        "{} is the policy, {} its test",
        policy.display(),
        test.display()
    );
    println!("try it: unspin policy test {}", policy.display());
    println!(
        "steer by it: sudo unspin steer --policy {}",
        policy.display()
    );
    Ok(())
}

fn test(file: &Path) -> Result<(), Failure> {
    let tested = UserPolicySource::at(file)
        .and_then(|source| source.test())
        .map_err(failure)?;
    if !tested.output.is_empty() {
        println!("{}", tested.output);
    }
    if !tested.passed {
        return Err(anyhow!("the test of {} fails", file.display()).into());
    }
    println!("{}: passed", file.display());
    Ok(())
}

fn build(arguments: &PolicyBuildArguments) -> Result<(), Failure> {
    let own = UserPolicy::load(&arguments.file, arguments.dry_run)?;
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => PathBuf::from(format!("{}.bpf.o", own.name())),
    };
    fs::write(&output, own.object()).with_context(|| format!("writing {}", output.display()))?;
    println!("{}: to be loaded with --policy", output.display());
    Ok(())
}

fn replay(arguments: &PolicyReplayArguments) -> Result<(), Failure> {
    let records = read_decisions(&arguments.file)?;
    let same: Vec<bool> = match &arguments.with {
        Some(own) => UserPolicySource::at(own)
            .and_then(|source| source.replay(&records))
            .map_err(failure)?,
        None if records.iter().any(DecisionRecord::asked_own) => {
            return Err(anyhow!(
                "{}: a user policy was asked: say --with ./NAME.c, with the file that it was compiled from",
                arguments.file.display()
            )
            .into());
        }
        None => records.iter().map(DecisionRecord::replays).collect(),
    };
    let differ = same.iter().filter(|same| !**same).count();
    if let Some(first) = same.iter().position(|same| !same) {
        return Err(anyhow!(
            "{differ} of {} decisions come out otherwise here; the first: {:?}",
            records.len(),
            records[first]
        )
        .into());
    }
    println!("{} decisions: the same to the bit", records.len());
    Ok(())
}
