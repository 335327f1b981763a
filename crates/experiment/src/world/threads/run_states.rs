// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the run_states of `unspin bench threads` come from: the best that this host allows, or what was asked for.

use unspin_agent::{ThreadPages, ThreadRunStates};
use unspin_lockbench::table::{GrantPages, RseqOffers, RunStatePage, RunStates, rseq_offers};

use crate::Error;

/// Where the locks' run states come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStateSource {
    /// bpf, else rseq, else none.
    Best,
    /// A BPF program at every switch of the scheduler; needs root.
    Bpf,
    /// Restartable sequences: who was last on my CPU does not run.
    Rseq,
    /// Nothing is ever said.
    None,
}

/// The page of the BPF program, as the locks see it.
struct Page(ThreadRunStates);

// SAFETY: the map stays mapped, at one place and length, until ThreadRunStates is dropped.
unsafe impl RunStatePage for Page {
    fn first(&self) -> *const unspin_abi::unspin_thread_run_state {
        self.0.first()
    }

    fn len(&self) -> u32 {
        unspin_abi::UNSPIN_THREADS_MAX
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
    fn first(&self) -> *mut unspin_abi::unspin_pv_page {
        self.0.first()
    }
}

impl Grants {
    /// Those of the running `unspin steer`.
    ///
    /// # Errors
    /// When there is none, or the kernel refuses.
    pub fn make() -> Result<Grants, Error> {
        let pages = ThreadPages::of_running();
        let pages = pages.map_err(|error| anyhow::Error::new(error).context("--grants"))?;
        Ok(Grants(pages))
    }
}

/// What was chosen.
pub struct RunStateChoice {
    /// What rseq offers here.
    pub offers: RseqOffers,
    page: Option<Page>,
    rseq: bool,
    /// Why it is not BPF, when that was tried first.
    refused: Option<String>,
}

impl RunStateChoice {
    /// Takes what is asked for.
    ///
    /// # Errors
    /// When that is not to be had.
    pub fn make(source: RunStateSource) -> Result<RunStateChoice, Error> {
        let offers = rseq_offers();
        let mut choice = RunStateChoice {
            offers,
            page: None,
            rseq: false,
            refused: None,
        };
        if matches!(source, RunStateSource::Best | RunStateSource::Bpf) {
            match ThreadRunStates::attach() {
                Ok(run_states) => choice.page = Some(Page(run_states)),
                Err(error) if source == RunStateSource::Bpf => {
                    return Err(Error::Failed(
                        anyhow::Error::new(error).context("--run_states bpf"),
                    ));
                }
                Err(error) => choice.refused = Some(first_line(&error.to_string())),
            }
        }
        choice.rseq = offers.area
            && (source == RunStateSource::Rseq
                || (source == RunStateSource::Best && choice.page.is_none()));
        if source == RunStateSource::Rseq && !offers.area {
            let message =
                "--run_states rseq: this kernel or C library has no restartable sequences";
            return Err(Error::Usage(message.into()));
        }
        Ok(choice)
    }

    /// As the locks take it.
    pub fn run_states(&self) -> RunStates<'_> {
        match &self.page {
            Some(page) => RunStates::Page(page),
            None if self.rseq => RunStates::Rseq,
            None => RunStates::None,
        }
    }

    /// For the output.
    pub fn said(&self) -> String {
        match &self.refused {
            Some(why) => format!("{} (no BPF: {why})", self.run_states().name()),
            None => self.run_states().name().to_owned(),
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
