// SPDX-License-Identifier: MIT OR Apache-2.0
//! One sentence that says what happened in a comparison, and why. It follows from the row's figures alone.

use super::Figures;
use crate::{Estimate, Row, Verdict};

/// Of the spin time, what a cause must have to be named, percent.
const NAMED_PERCENT: f64 = 1.0;

/// At this part of ideal and above, pairs that resolve nothing show no loss; below it they are too few.
const AS_IDEAL: f64 = 0.9;

/// What happened and why.
pub fn sentence(row: &Row<Figures>) -> String {
    let what = match row.world.pv_page || row.policy.is_none() {
        true => format!("{} with {}", row.shape, row.world.lock),
        false => format!("{} with {}, without pv_page", row.shape, row.world.lock),
    };
    let to_ideal = row.to_ideal.unwrap_or(Estimate::NOTHING_DONE);
    let resolved = to_ideal.verdict == Verdict::Lower;
    if !resolved && to_ideal.value >= AS_IDEAL {
        return format!(
            "{what}: these pairs show no loss of stock against ideal (ratio {:.3}, {}){}.",
            to_ideal.value,
            to_ideal.verdict,
            harm(row)
        );
    }
    let too_few = match (resolved, row.pairs) {
        (true, _) => String::new(),
        (false, 1) => ", which one pair does not resolve".to_owned(),
        (false, pairs) => format!(", which {pairs} pairs do not resolve"),
    };
    format!(
        "{what}: stock keeps {:.1} % of the ideal throughput{too_few}{}{}.",
        100.0 * to_ideal.value,
        why(row),
        cure(row)
    )
}

/// What stock's time went into, as `explain` sees it, or else by the guests' own word.
fn why(row: &Row<Figures>) -> String {
    let of = &row.world;
    let Some(spin) = of.stock_spin_time_percent else {
        return match of.stock_spin_share_percent {
            Some(spun) => format!(": its vCPUs spent {spun:.0} % of their CPU time spinning"),
            None => String::new(),
        };
    };
    let causes = [
        (
            of.next_waiter_preempted_percent,
            "for a preempted next waiter (LWP)",
        ),
        (
            of.holder_preempted_percent,
            "for a preempted lock holder (LHP)",
        ),
        (
            of.call_preempted_percent,
            "for a receiver of a function call off its CPU",
        ),
        (of.contention_percent, "while all concerned were running"),
    ];
    let largest = causes
        .into_iter()
        .filter_map(|(percent, words)| Some((percent?, words)))
        .filter(|(percent, _)| *percent >= NAMED_PERCENT)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let most = largest.map_or(String::new(), |(percent, words)| {
        format!(", {percent:.0} % of that {words}")
    });
    format!(": its vCPUs spent {spin:.0} % of their CPU time in spin loops{most}")
}

/// What the policy does about it; empty without one.
fn cure(row: &Row<Figures>) -> String {
    let (Some(policy), Some(ratio)) = (&row.policy, to_stock(row)) else {
        return match &row.policy {
            Some(policy) => format!("; with {policy} nothing was done at all"),
            None => String::new(),
        };
    };
    let stock = format!("{ratio:.2} of stock{}", resolved(row));
    match row.gap_closed.map(|gap| gap.value) {
        Some(gap) if gap >= 0.0 => {
            format!(
                "; {policy} closes {:.0} % of that gap ({stock})",
                100.0 * gap
            )
        }
        Some(_) => format!("; {policy} makes it worse ({stock})"),
        None => format!("; {policy} gives {stock}"),
    }
}

/// What the policy does where nothing is to be gained; empty without one.
fn harm(row: &Row<Figures>) -> String {
    match (&row.policy, to_stock(row), &row.harm) {
        (Some(policy), Some(ratio), Some(harm)) => {
            format!(
                "; {policy} gives {ratio:.3} of stock{}: {harm}",
                resolved(row)
            )
        }
        (Some(policy), None, _) => format!("; with {policy} nothing was done at all"),
        _ => String::new(),
    }
}

/// Policy / stock, if anything was done under the policy.
fn to_stock(row: &Row<Figures>) -> Option<f64> {
    row.to_stock.and_then(|of| of.known())
}

/// The interval of policy / stock, and whether it says anything.
fn resolved(row: &Row<Figures>) -> String {
    let Some(of) = row.to_stock else {
        return String::new();
    };
    let interval = match of.low.zip(of.high) {
        Some((low, high)) => format!(", 95 % from {low:.3} to {high:.3}"),
        None => String::new(),
    };
    match of.verdict {
        Verdict::Higher | Verdict::Lower => interval,
        unresolved => format!("{interval}, {unresolved}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(changes: serde_json::Value) -> Row<Figures> {
        let mut row = serde_json::json!({"shape": "1x4", "lock": "ticket", "overcommit": 2.0, "pv_page": true,
            "ideal_per_s": 1000.0, "ideal_deviation_per_s": 1.0, "stock_per_s": 200.0, "stock_deviation_per_s": 2.0,
            "stock_ratio_to_ideal": 0.2, "stock_verdict": "lower", "stock_ratio_to_stock": 1.0,
            "stock_collapsed_share_percent": 100.0, "pairs": 4, "unusable_pairs": 0, "window_ns": 500,
            "discard_ns": 250, "seed": 1, "scenario_sha256": "", "replay": ""});
        for (key, value) in changes.as_object().expect("an object") {
            row[key] = value.clone();
        }
        serde_json::from_value(row).expect("a row")
    }

    #[test]
    fn what_is_lost_why_and_what_comes_back() {
        let row = row(
            serde_json::json!({"stock_spin_time_percent": 78.2, "next_waiter_preempted_percent": 88.1,
            "holder_preempted_percent": 3.0, "unknown_percent": 8.9, "policy": "loan", "verdict": "higher",
            "throughput_ratio_to_stock": 4.8, "throughput_ratio_to_stock_low": 4.7,
            "throughput_ratio_to_stock_high": 4.9, "gap_closed": 0.951}),
        );
        assert_eq!(
            sentence(&row),
            "1x4 with ticket: stock keeps 20.0 % of the ideal throughput: its vCPUs spent 78 % of their CPU time in spin \
             loops, 88 % of that for a preempted next waiter (LWP); loan closes 95 % of that gap (4.80 of stock, 95 % from \
             4.700 to 4.900)."
        );
    }

    #[test]
    fn a_loss_that_few_pairs_do_not_resolve_is_no_absence_of_one() {
        let row = row(
            serde_json::json!({"stock_verdict": "not resolved", "stock_ratio_to_ideal": 0.214, "pairs": 2,
            "policy": "loan", "throughput_ratio_to_stock": 4.557, "throughput_ratio_to_stock_low": 0.064,
            "throughput_ratio_to_stock_high": 322.779, "verdict": "not resolved", "harm": "not resolved"}),
        );
        assert_eq!(
            sentence(&row),
            "1x4 with ticket: stock keeps 21.4 % of the ideal throughput, which 2 pairs do not resolve; loan gives 4.56 \
             of stock, 95 % from 0.064 to 322.779, not resolved."
        );
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(
            sentence(&row(serde_json::json!({}))),
            "1x4 with ticket: stock keeps 20.0 % of the ideal throughput."
        );
        let fits = row(
            serde_json::json!({"stock_verdict": "not resolved", "stock_ratio_to_ideal": 1.0004,
            "policy": "loan", "throughput_ratio_to_stock": 0.998, "verdict": "not resolved", "harm": "no harm",
            "pv_page": false}),
        );
        assert_eq!(
            sentence(&fits),
            "1x4 with ticket, without pv_page: these pairs show no loss of stock against ideal (ratio 1.000, not \
             resolved); loan gives 0.998 of stock, not resolved: no harm."
        );
    }
}
