// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench host`: the host itself under the kernel's scheduler and ours, as a table.

use unspin_agent::Steerer;
use unspin_experiment::{
    check_user_policies,
    host::{Command, Load, Measured, Plan, compare},
    rival::{check_rivals, note},
    watch::Observe,
};
use unspin_report::Table;

use crate::{
    commands::bench::args::HostArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Measures every load, or the command, under every scheduler and prints a row for each.
pub fn run(arguments: &HostArguments) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    Steerer::check().map_err(anyhow::Error::from)?;
    let measured: Vec<Measured> = match (Command::of(&arguments.command), &*arguments.loads) {
        (Some(command), _) => vec![Measured::Command(command)],
        (None, []) => Load::ALL.map(Measured::Load).into(),
        (None, some) => some.iter().copied().map(Measured::Load).collect(),
    };
    let progress = Experiment::new(true);
    let compared = compare(&measured, &plan, arguments.programs, &progress.session()?)?;
    let mut document = output::document("bench host");
    document.table(Table::of("", compared.rows));
    if arguments.programs {
        let title = "What our scheduler's programs take while they are counted";
        document.table(Table::of(title, compared.programs));
    }
    if let Some(rivals) = note(&arguments.rivals)? {
        document.note(rivals);
    }
    Ok(output::print(&document, arguments.output)?)
}

fn plan(arguments: &HostArguments) -> Result<Plan, Failure> {
    check_user_policies(&arguments.policies)?;
    check_rivals(&arguments.rivals)?;
    arguments
        .policies
        .iter()
        .try_for_each(|policy| {
            policy.without_window("`bench host`")?;
            policy.without_auto("`bench host`, which runs no VM,")?;
            policy.without_tune("`bench host`, which runs no VM,")
        })
        .map_err(Failure::Usage)?;
    Ok(Plan {
        pairs: arguments.pairs,
        sample: arguments.sample,
        discard: arguments.discard,
        observe: Observe::Off,
        policies: arguments.policies.clone(),
        rivals: arguments.rivals.clone(),
        only_vms: false,
        useful_time: false,
    })
}
