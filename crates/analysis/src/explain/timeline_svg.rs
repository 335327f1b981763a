// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vCPUs' time lines as a picture (SVG): who had a CPU, who spun, and for what.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use unspin_events::{Event, What, facts::Facts};

use crate::{
    Source, SourceError,
    explain::{attribution::Explanation, cause::Cause, words},
    waits::presence::{self, Place, Presence},
};

const LEFT: f64 = 90.0;
const WIDTH: f64 = 1_000.0;
const ROW: f64 = 30.0;
const BAR: f64 = 20.0;
/// Before the window, so that everybody's place is known where it begins; nanoseconds.
const LEAD_NS: u64 = 1_000_000_000;
const TICKS: u64 = 10;

/// Colours of what a vCPU does, told apart by people who see few colours (Okabe and Ito).
fn colour(cause: Cause) -> &'static str {
    match cause {
        Cause::HolderPreempted => "#d55e00",
        Cause::NextWaiterPreempted => "#cc79a7",
        Cause::CallUser => "#0072b2",
        Cause::CallKernel => "#56b4e9",
        Cause::CallHalted => "#009e73",
        Cause::Contention => "#f0e442",
        Cause::Unknown => "#999999",
    }
}
const RUNS: &str = "#dddddd";
const OFF: &str = "#444444";

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Its left end, host's clock; nanoseconds.
    pub from_ns: u64,
    /// Its right end, same clock; nanoseconds.
    pub to_ns: u64,
    /// Where its scale has 0: the recording's first event, same clock; nanoseconds.
    pub first_ns: u64,
}

impl Picture {
    /// Of `length` from `from` after the first event on, from the middle of what was explained when `from` is absent.
    ///
    /// # Errors
    /// When there are no events, or none that late.
    pub fn within(
        explanation: &Explanation,
        from: Option<Duration>,
        length: Duration,
    ) -> Result<Picture, SourceError> {
        let Some((first_ns, last_ns)) = explanation.span_ns else {
            return Err(SourceError::Usage("there are no events to draw".into()));
        };
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let middle_ns = first_ns + (last_ns - first_ns) / 2;
        let from_ns = from.map_or(middle_ns, |from| first_ns.saturating_add(nanoseconds(from)));
        if from_ns >= last_ns {
            let length_ms = (last_ns - first_ns) / 1_000_000;
            let message = format!("the recording is only {length_ms} ms long");
            return Err(SourceError::Usage(message));
        }
        Ok(Picture {
            from_ns,
            to_ns: from_ns.saturating_add(nanoseconds(length)),
            first_ns,
        })
    }

    /// The picture of what `source` has, as SVG; it ends with the last event at the latest.
    pub fn draw_source(&self, source: &mut Source, explanation: &Explanation) -> String {
        let mut events: Vec<Event> = Vec::new();
        source.each(|event| {
            if self.needs(&event) {
                events.push(event);
            }
        });
        let last_ns = explanation.span_ns.map_or(u64::MAX, |(_, last_ns)| last_ns);
        let shown = Picture {
            to_ns: self.to_ns.min(last_ns),
            ..*self
        };
        shown.draw(&source.facts, explanation, &events)
    }

    /// Whether the event is needed: switches in the picture, and for a second before it.
    pub fn needs(&self, event: &Event) -> bool {
        let switch = matches!(event.what, What::SwitchIn { .. } | What::SwitchOut { .. });
        switch && event.time_ns + LEAD_NS >= self.from_ns && event.time_ns < self.to_ns
    }

    /// The picture as SVG, of the events that it [`needs`](Picture::needs), in order of time.
    pub fn draw(&self, facts: &Facts, explanation: &Explanation, events: &[Event]) -> String {
        let mut body = String::new();
        let mut row = 1.0;
        for (&vm, of) in &explanation.vms {
            let presence: BTreeMap<u16, Presence> = presence::of_vm(vm, events);
            for (vcpu, presence) in presence {
                let y = row * ROW;
                row += 1.0;
                let name = words::vm_name(facts, vm);
                let _ = writeln!(
                    body,
                    r#"<text x="{:.0}" y="{:.0}" text-anchor="end">{} vCPU {vcpu}</text>"#,
                    LEFT - 8.0,
                    y + BAR * 0.7,
                    escape(&name)
                );
                self.places(&mut body, &presence, y);
                for slice in of.slices.iter().filter(|slice| slice.vcpu == vcpu) {
                    let span = (slice.begin_ns, slice.end_ns);
                    self.bar(&mut body, span, y, BAR, colour(slice.cause));
                }
            }
        }
        self.frame(&body, row)
    }

    /// Light where it had a CPU, a thin dark line where it could have used one; nothing where it slept.
    fn places(&self, body: &mut String, presence: &Presence, y: f64) {
        let changes = presence.changes();
        for (index, &(since_ns, place)) in changes.iter().enumerate() {
            let until_ns = changes
                .get(index + 1)
                .map_or(self.to_ns, |&(since_ns, _)| since_ns);
            match place {
                Place::On { .. } => self.bar(body, (since_ns, until_ns), y, BAR, RUNS),
                Place::Off(left) if left.runnable => {
                    self.bar(body, (since_ns, until_ns), y + BAR / 2.0 - 1.0, 2.0, OFF);
                }
                _ => {}
            }
        }
    }

    fn x(&self, time_ns: u64) -> f64 {
        let inside = time_ns.clamp(self.from_ns, self.to_ns) - self.from_ns;
        LEFT + WIDTH * inside as f64 / (self.to_ns - self.from_ns).max(1) as f64
    }

    fn bar(
        &self,
        body: &mut String,
        (begin_ns, end_ns): (u64, u64),
        y: f64,
        height: f64,
        fill: &str,
    ) {
        if end_ns <= self.from_ns || begin_ns >= self.to_ns {
            return;
        }
        let (x, end) = (self.x(begin_ns), self.x(end_ns));
        let _ = writeln!(
            body,
            r#"<rect x="{x:.1}" y="{y:.0}" width="{:.1}" height="{height:.0}" fill="{fill}"/>"#,
            (end - x).max(0.1)
        );
    }

    fn frame(&self, body: &str, rows: f64) -> String {
        let (width, bottom) = (LEFT + WIDTH + 20.0, (rows + 1.0) * ROW);
        let height = bottom + 60.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        svg += body;
        for tick in 0..=TICKS {
            let time_ns = self.from_ns + (self.to_ns - self.from_ns) * tick / TICKS;
            let label = (time_ns - self.first_ns) as f64 / 1e6;
            let _ = writeln!(
                svg,
                r#"<text x="{:.0}" y="{:.0}" text-anchor="middle">{label:.2} ms</text>"#,
                self.x(time_ns),
                bottom
            );
        }
        let mut x = LEFT;
        let legend = Cause::ALL
            .map(|cause| (colour(cause), words::short_cause(cause)))
            .into_iter()
            .chain([(RUNS, "runs"), (OFF, "runnable, off CPU")]);
        for (fill, word) in legend {
            let _ = writeln!(
                svg,
                r#"<rect x="{x:.0}" y="{:.0}" width="12" height="12" fill="{fill}"/><text x="{:.0}" y="{:.0}">{word}</text>"#,
                bottom + 22.0,
                x + 16.0,
                bottom + 32.0
            );
            x += 30.0 + 7.0 * word.len() as f64;
        }
        svg += "</svg>\n";
        svg
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURE: Picture = Picture {
        from_ns: 3_000_000_000,
        to_ns: 3_001_000_000,
        first_ns: 2_999_000_000,
    };

    #[test]
    fn only_what_is_inside_is_drawn() {
        let mut body = String::new();
        for span in [(0, PICTURE.from_ns), (PICTURE.to_ns, u64::MAX)] {
            PICTURE.bar(&mut body, span, 0.0, BAR, RUNS);
        }
        assert_eq!(body, "");
        PICTURE.bar(&mut body, (0, u64::MAX), 0.0, BAR, RUNS);
        assert!(body.contains(r#"x="90.0" y="0" width="1000.0""#), "{body}");
    }

    #[test]
    fn the_scale_begins_with_the_recording() {
        let svg = PICTURE.draw(&Facts::default(), &Explanation::default(), &[]);
        assert!(
            svg.contains("1.00 ms</text>") && svg.contains("2.00 ms</text>"),
            "{svg}"
        );
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(escape("a<b&c"), "a&lt;b&amp;c");
    }
}
