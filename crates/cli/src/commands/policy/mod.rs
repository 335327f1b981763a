// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin policy`: names, switching while it runs, policies of one's own, and taking logged decisions again.

pub(crate) mod args;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use unspin_agent::{
    PolicySetError, UserPolicy, reset_running_vm, running_policies, set_running_policies,
    set_running_vm, to_set_running,
};
use unspin_policy::{
    auto::AUTO,
    steering::{Policies, REFUSE_YIELDS, ReplayError, WindowPolicy, replay_file},
    user_policy::{UserPolicySource, UserPolicySourceError, write_new_policy},
};
use unspin_report::Table;
use unspin_vms::{VmName, in_words};

use crate::{
    commands::policy::args::{PolicyBuildArguments, PolicyReplayArguments, PolicyVerb},
    terminal::{failure::Failure, output},
};

/// Does one of them.
pub fn run(verb: &PolicyVerb) -> Result<(), Failure> {
    match verb {
        PolicyVerb::List => {
            let words = [AUTO, REFUSE_YIELDS].into_iter().chain(Policies::names());
            let words = words.chain(WindowPolicy::WORDS).map(str::to_owned);
            let mut out = io::stdout().lock();
            for word in words.chain(Policies::candidate_names()) {
                writeln!(out, "{word}")?;
            }
            Ok(())
        }
        PolicyVerb::Set(arguments) => {
            let vm = arguments.vm.as_ref().map(VmName::process).transpose()?;
            let set = to_set_running(&arguments.policy).and_then(|policies| {
                let set = match vm {
                    Some(process) => set_running_vm(process, policies),
                    None => set_running_policies(policies),
                };
                Ok(set?)
            });
            set.map_err(|error| match error {
                PolicySetError::Words(says) => Failure::Usage(says),
                PolicySetError::Steer(error) => Failure::Failed(error.into()),
            })
        }
        PolicyVerb::Reset(arguments) => {
            let process = arguments.vm.process()?;
            let had = reset_running_vm(process).map_err(anyhow::Error::new)?;
            match had {
                true => Ok(()),
                false => Err(anyhow!("{} has no policies of its own", in_words(process)).into()),
            }
        }
        PolicyVerb::Show(arguments) => {
            let rows = running_policies().map_err(anyhow::Error::new)?;
            let mut document = output::document("policy show");
            document.table(Table::of(
                "Policies by VM (-: all VMs without policies of their own)",
                rows,
            ));
            Ok(output::print(&document, arguments.output)?)
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
    let replayed = replay_file(&arguments.file, arguments.with.as_deref());
    let replayed = replayed.map_err(|error| match error {
        ReplayError::Source(error) => failure(error),
        error => Failure::Failed(error.into()),
    })?;
    let (different, decisions) = (replayed.different, replayed.decisions);
    if let Some(first) = replayed.first {
        return Err(anyhow!(
            "{different} of {decisions} decisions come out otherwise here; the first: {first:?}"
        )
        .into());
    }
    println!("{decisions} decisions: the same to the bit");
    Ok(())
}
