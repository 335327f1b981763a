// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the hints of `unspin bench threads` come from: the best that this host allows, or what was asked for.

use unspin_agent::{ThreadHints, ThreadPages};
use unspin_bench::table::{GrantPages, HintPage, Hints, RseqOffers, rseq_offers};

use crate::{arguments::HintSource, failure::Failure};

/// The page of the BPF program, as the locks see it.
struct Page(ThreadHints);

// SAFETY: the map stays mapped, at one place and length, until ThreadHints is dropped.
unsafe impl HintPage for Page {
    fn first(&self) -> *const unspin_abi::unspin_thread_hint {
        self.0.first()
    }

    fn len(&self) -> u32 {
        unspin_abi::UNSPIN_THREAD_HINTS_MAX
    }

    fn register_this_thread(&self, number: u32) -> std::io::Result<()> {
        self.0.register_this_thread(number)
    }
}

/// The scheduler's pages of threads.
#[derive(Debug)]
pub struct Grants(ThreadPages);

// SAFETY: the map stays mapped, at one place and length, until ThreadPages is dropped.
unsafe impl GrantPages for Grants {
    fn first(&self) -> *mut unspin_abi::unspin_hint {
        self.0.first()
    }
}

impl Grants {
    /// Those of the running `unspin steer`.
    ///
    /// # Errors
    /// When there is none, or the kernel refuses.
    pub fn make() -> Result<Grants, Failure> {
        let pages = ThreadPages::of_running();
        let pages = pages.map_err(|error| anyhow::Error::new(error).context("--grants"))?;
        Ok(Grants(pages))
    }
}

/// What was chosen.
pub struct HintChoice {
    /// What rseq offers here.
    pub offers: RseqOffers,
    page: Option<Page>,
    rseq: bool,
    /// Why it is not BPF, when that was tried first.
    refused: Option<String>,
}

impl HintChoice {
    /// Takes what is asked for.
    ///
    /// # Errors
    /// When that is not to be had.
    pub fn make(source: HintSource) -> Result<HintChoice, Failure> {
        let offers = rseq_offers();
        let mut choice = HintChoice {
            offers,
            page: None,
            rseq: false,
            refused: None,
        };
        if matches!(source, HintSource::Best | HintSource::Bpf) {
            match ThreadHints::attach() {
                Ok(hints) => choice.page = Some(Page(hints)),
                Err(error) if source == HintSource::Bpf => {
                    return Err(Failure::Failed(
                        anyhow::Error::new(error).context("--hints bpf"),
                    ));
                }
                Err(error) => choice.refused = Some(first_line(&error.to_string())),
            }
        }
        choice.rseq = offers.area
            && (source == HintSource::Rseq
                || (source == HintSource::Best && choice.page.is_none()));
        if source == HintSource::Rseq && !offers.area {
            let message = "--hints rseq: this kernel or C library has no restartable sequences";
            return Err(Failure::Usage(message.into()));
        }
        Ok(choice)
    }

    /// As the locks take it.
    pub fn hints(&self) -> Hints<'_> {
        match &self.page {
            Some(page) => Hints::Page(page),
            None if self.rseq => Hints::Rseq,
            None => Hints::None,
        }
    }

    /// For the output.
    pub fn said(&self) -> String {
        match &self.refused {
            Some(why) => format!("{} (no BPF: {why})", self.hints().name()),
            None => self.hints().name().to_owned(),
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
