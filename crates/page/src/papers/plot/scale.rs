// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the axis of a panel is, and where on it a value lies.

use unspin_papers::plots::{Form, Panel, Plot};

/// How values lie on the axis.
pub(super) struct Scale {
    log: bool,
    pub low: f64,
    pub high: f64,
}

impl Scale {
    /// Room for all values, and for intervals unless they are far longer.
    pub fn of(plot: &Plot, panel: &Panel) -> Scale {
        let all = panel.marks.iter();
        let values = all
            .clone()
            .flat_map(|mark| [mark.value, mark.low.filter(|_| mark.value.is_none())]);
        let most = values.clone().flatten().fold(0.0, f64::max);
        let bounds = all.filter_map(|mark| mark.high);
        let high = bounds
            .filter(|high| *high <= 1.5 * most)
            .fold(most, f64::max);
        let high = match plot.form {
            Form::Stacked => 100.0,
            _ if high > 0.0 => high,
            _ => 1.0,
        };
        let least = values
            .flatten()
            .filter(|value| *value > 0.0)
            .fold(high, f64::min);
        match plot.log {
            true => Scale {
                log: true,
                low: (least / 2.0).log10(),
                high: (high * 1.3).log10(),
            },
            false => Scale {
                log: false,
                low: 0.0,
                high: high * 1.05,
            },
        }
    }

    /// Where a value lies; what is outside lies on the border.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.log {
            true if value <= 0.0 => self.low,
            true => value.log10(),
            false => value,
        };
        place.clamp(self.low, self.high)
    }

    /// A place in words.
    pub fn label(&self, place: f64) -> String {
        let value = if self.log { 10f64.powf(place) } else { place };
        match value.abs() {
            size if size >= 10.0 || value == 0.0 => format!("{value:.0}"),
            size if size >= 1.0 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        }
    }
}
