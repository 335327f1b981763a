// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the screen; 80 columns are enough.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style, Stylize},
    text::{Line, Text},
};
use unspin_analysis::explain::cause::Cause;

use super::state::Screen;
use crate::{
    rates::{HostRates, Rates, VcpuRates, VmRates},
    view::BlameView,
};

/// Share of its CPU time above which a VM's line is coloured; percent.
const MUCH_PERCENT: f64 = 10.0;
/// Whom a VM spun for: so many lines of an expanded VM.
const BLAME_LINES: usize = 4;

/// Draws it.
pub fn draw(frame: &mut Frame, screen: &mut Screen) {
    let warnings = warnings(screen);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::try_from(warnings.len()).unwrap_or(0)),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ]);
    let [title, warned, header, list, keys] = areas.areas(frame.area());
    frame.render_widget(Line::from(summary(screen)).bold(), title);
    frame.render_widget(Text::from(warnings), warned);
    frame.render_widget(Line::styled(HEADER, Modifier::REVERSED), header);
    draw_list(frame, screen, list);
    let sort = screen.sort.name();
    let line = format!("q quit  s sort ({sort})  Up/Down choose  Enter vCPUs  a all");
    frame.render_widget(Line::from(line).dim(), keys);
}

const HEADER: &str =
    "VM              vCPUs   RUN%  WAIT%  HALT%  WASTE  SPIN%   PLE/s LOST/s MOSTLY  ";

fn summary(screen: &Screen) -> String {
    let Some(host) = &screen.host else {
        return "unspin top: the first figures come in a moment".to_owned();
    };
    let vcpus: usize = host.vms.iter().map(|vm| vm.vcpus.len()).sum();
    let (run, wasted) = sums(host);
    let wasted = wasted.map_or("spinning is not seen".to_owned(), |wasted| {
        let share = if run > 0.0 { 100.0 * wasted / run } else { 0.0 };
        format!(
            "{:.2} of {:.2} CPUs wasted by spinning ({share:.0} %)",
            wasted / 100.0,
            run / 100.0
        )
    });
    format!(
        "unspin top: {} VMs, {vcpus} vCPUs; {wasted}",
        host.vms.len()
    )
}

/// CPU time of all VMs and what of it was wasted; percent of one CPU.
fn sums(host: &HostRates) -> (f64, Option<f64>) {
    let run = host.vms.iter().map(|vm| vm.total.run_percent).sum();
    let wasted: Option<Vec<f64>> = host.vms.iter().map(|vm| vm.total.waste_percent).collect();
    (run, wasted.map(|wasted| wasted.iter().sum()))
}

fn warnings(screen: &Screen) -> Vec<Line<'static>> {
    let Some(host) = &screen.host else {
        return Vec::new();
    };
    let blind = host.blind.iter().map(|why| format!("not watched: {why}"));
    let lines = blind.chain(host.limits.iter().cloned());
    lines.map(|line| Line::from(line).yellow()).collect()
}

fn draw_list(frame: &mut Frame, screen: &mut Screen, area: Rect) {
    let mut lines = Vec::new();
    let mut chosen_at = 0;
    for vm in screen.sorted() {
        if Some(vm.number) == screen.chosen {
            chosen_at = lines.len();
        }
        lines.push(vm_line(vm, Some(vm.number) == screen.chosen));
        if screen.expanded.contains(&vm.number) {
            lines.extend(vm.vcpus.iter().map(vcpu_line));
            lines.extend(blame_lines(vm));
        }
    }
    let height = usize::from(area.height).max(1);
    if chosen_at < screen.first_line {
        screen.first_line = chosen_at;
    } else if chosen_at >= screen.first_line + height {
        screen.first_line = chosen_at + 1 - height;
    }
    screen.first_line = screen.first_line.min(lines.len().saturating_sub(height));
    let shown: Vec<Line> = lines
        .drain(..)
        .skip(screen.first_line)
        .take(height)
        .collect();
    frame.render_widget(Text::from(shown), area);
}

fn vm_line(vm: &VmRates, chosen: bool) -> Line<'static> {
    let mostly = vm.mostly().map_or("-".to_owned(), |(cause, percent)| {
        format!("{} {percent:.0}%", short(cause))
    });
    let name = cut(&vm.name, 15);
    let vcpus = vm.vcpus.len().to_string();
    let text = format!("{name}{vcpus:>6} {} {mostly:<8}", figures(&vm.total));
    let much = vm
        .total
        .spin_percent
        .is_some_and(|spin| spin >= MUCH_PERCENT);
    let mut style = Style::default();
    if much {
        style = style.fg(Color::Red);
    }
    if chosen {
        style = style.add_modifier(Modifier::REVERSED);
    }
    Line::styled(text, style)
}

fn vcpu_line(vcpu: &VcpuRates) -> Line<'static> {
    let name = format!("  vCPU {} ({})", vcpu.vcpu, vcpu.thread);
    Line::from(format!("{} {}", cut(&name, 20), figures(&vcpu.rates)))
}

fn blame_lines(vm: &VmRates) -> Vec<Line<'static>> {
    let total = vm.recent.sampled.total_ns().max(1) as f64;
    let line = |blame: &BlameView| {
        let share = 100.0 * blame.spin_ns as f64 / total;
        let whom = blame
            .vcpu
            .map_or(String::new(), |vcpu| format!(" for vCPU {vcpu}"));
        let instead = blame.instead.as_ref();
        let instead = instead.map_or(String::new(), |who| format!("; {who} ran instead"));
        Line::from(format!(
            "    sampled: {share:>3.0} % {}{whom}{instead}",
            short(&blame.cause)
        ))
        .dim()
    };
    vm.recent.blame.iter().take(BLAME_LINES).map(line).collect()
}

/// The columns that VMs and vCPUs have in common.
fn figures(rates: &Rates) -> String {
    let known = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    format!(
        "{:>6.1} {:>6.1} {:>6} {:>6} {:>6} {:>7} {:>6}",
        rates.run_percent,
        rates.wait_percent,
        known(rates.halted_percent, 1),
        known(rates.waste_percent, 1),
        known(rates.spin_percent, 1),
        known(rates.ple_exits_per_second, 0),
        known(rates.slices_lost_per_second, 0),
    )
}

/// So many columns of it, filled up with spaces; what is cut off is marked.
fn cut(text: &str, columns: usize) -> String {
    use ratatui::text::Span;
    if Span::raw(text).width() <= columns {
        let fill = columns - Span::raw(text).width();
        return format!("{text}{}", " ".repeat(fill));
    }
    let mut short = String::new();
    for character in text.chars() {
        let longer = format!("{short}{character}");
        if Span::raw(longer.as_str()).width() + 1 > columns {
            break;
        }
        short = longer;
    }
    let fill = columns - Span::raw(short.as_str()).width() - 1;
    format!("{short}~{}", " ".repeat(fill))
}

/// A cause in four letters.
fn short(cause: &str) -> &'static str {
    let known = Cause::ALL.into_iter().find(|known| known.name() == cause);
    match known {
        Some(Cause::HolderPreempted) => "LHP",
        Some(Cause::NextWaiterPreempted) => "LWP",
        Some(Cause::CallUser | Cause::CallKernel | Cause::CallHalted) => "call",
        Some(Cause::Contention) => "cont",
        Some(Cause::Unknown) | None => "?",
    }
}

#[cfg(test)]
mod tests;
