// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording as one HTML page: verdicts first, then time lines, distributions and shares. The page needs nothing but itself: its
//! Content-Security-Policy allows its own script and style by their hashes and no connection at all. The same recording gives
//! the same bytes. [`papers`] is a page of the papers' claims, made the same way.

mod lanes;
mod moment;
pub mod papers;
mod redact;
mod tables;
mod write;

use base64::{Engine, engine::general_purpose::STANDARD};
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use sha2::{Digest, Sha256};
use unspin_analysis::{
    Source,
    verdict::{
        study::Study,
        words::{Verdict, unix_ns},
    },
};

pub use moment::Moment;
pub use redact::redact;
pub use write::write;

/// Largest page, bytes.
pub const BYTES_MAX: usize = 1 << 20;

const TEMPLATE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The template or the data could not be written: an error of this program.
    #[error("the page cannot be written")]
    Template(#[from] minijinja::Error),
    /// As above.
    #[error("the page's data cannot be written")]
    Data(#[from] serde_json::Error),
    /// A plot could not be drawn: an error of this program.
    #[error("a figure cannot be drawn: {0}")]
    Plot(String),
    /// Claims or measurements that contradict themselves.
    #[error("the papers' claims cannot be read")]
    Papers(#[source] anyhow::Error),
    /// Even with all left out that can be it is larger than [`BYTES_MAX`].
    #[error("the page would be {0} bytes long, more than 1 MiB")]
    Large(usize),
}

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Lanes of pCPUs, and of vCPUs.
    pub lanes: usize,
    /// Bins of a lane.
    pub bins: usize,
    /// Pieces in the picture of the worst moment.
    pub pieces: usize,
    /// VMs in tables.
    pub vms: usize,
}

const LIMITS: Limits = Limits {
    lanes: 96,
    bins: 512,
    pieces: 6_000,
    vms: 200,
};

/// The page, of at most [`BYTES_MAX`] bytes: of a large host fewer lanes and VMs are shown, in the order of verdicts, and it says
/// how many are left out. `commit`: of this program. `moment`: see [`Moment::of`].
///
/// # Errors
/// See [`PageError`].
pub fn page(
    source: &Source,
    study: &Study,
    verdicts: &[Verdict],
    moment: Option<&Moment>,
    commit: &str,
) -> Result<String, PageError> {
    let mut limits = LIMITS;
    loop {
        let text = page_within(source, study, verdicts, moment, commit, limits)?;
        if text.len() <= BYTES_MAX {
            return Ok(text);
        }
        if limits.lanes <= 4 {
            return Err(PageError::Large(text.len()));
        }
        limits = Limits {
            lanes: limits.lanes / 2,
            bins: limits.bins,
            pieces: limits.pieces / 2,
            vms: limits.vms / 2,
        };
    }
}

/// What the script draws.
#[derive(Serialize)]
struct Data {
    overview: lanes::Overview,
    moment: Option<moment::MomentData>,
    lengths: tables::Lengths,
}

fn page_within(
    source: &Source,
    study: &Study,
    verdicts: &[Verdict],
    moment: Option<&Moment>,
    commit: &str,
    limits: Limits,
) -> Result<String, PageError> {
    let data = Data {
        overview: lanes::overview(study, verdicts, limits),
        moment: moment.map(|moment| moment.data(verdicts, limits)),
        lengths: tables::lengths(study, verdicts, limits),
    };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("page", TEMPLATE)?;
    let (first_ns, last_ns) = study.span_ns;
    let shown = verdicts.len().min(limits.vms);
    let context = context! {
        script => SCRIPT,
        style => STYLE,
        script_hash => hash(SCRIPT),
        style_hash => hash(STYLE),
        data => script_json(&data)?,
        verdicts => tables::verdicts(&verdicts[..shown]),
        shares => tables::shares(study, &verdicts[..shown]),
        blame => tables::blame(source, study, verdicts, limits),
        left_out => verdicts.len() - shown,
        events => study.events,
        seconds => format!("{:.1}", (last_ns - first_ns) as f64 / 1e9),
        begin_unix_ms => unix_ns(&source.facts, first_ns).map(|ns| ns / 1_000_000),
        machine => source.machine(),
        recorded_by => source.facts.commit,
        commit,
        losses => study.explanation.losses,
        ipis_blind => source.facts.ipi.blind,
        problems => source.problems,
    };
    Ok(environment.get_template("page")?.render(context)?)
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

/// JSON for a block inside a page: no `<`, with which a block or a comment could end or begin, and no separators of lines.
fn script_json<T: Serialize>(data: &T) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(data)?;
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe += &format!("\\u{:04x}", character as u32);
            }
            character => safe.push(character),
        }
    }
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_page_ends_no_block() {
        let text = script_json(&["</script><!--&\u{2028}é"]).expect("text");
        assert_eq!(text, r#"["\u003c/script\u003e\u003c!--\u0026\u2028é"]"#);
        let back: Vec<String> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, ["</script><!--&\u{2028}é"]);
    }

    #[test]
    fn nothing_in_script_and_style_reaches_out() {
        for text in [SCRIPT, STYLE, TEMPLATE] {
            for word in [
                "http:", "https:", "//cdn", "fetch(", "XMLHttp", "import ", "url(", "eval(",
            ] {
                assert!(!text.contains(word), "{word}");
            }
        }
        // What a hash stands for must stand between the tags to the byte.
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
        assert!(SCRIPT.ends_with('\n') && STYLE.ends_with('\n'));
    }
}
