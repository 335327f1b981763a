// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times over time, in bins that double in width when there are too many: of bounded size, however long a recording is.

/// The narrowest bin, nanoseconds.
const WIDTH_MIN_NS: u64 = 1_000_000;

/// Nanoseconds of `KINDS` kinds in each bin, from a first moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series<const KINDS: usize> {
    first_ns: u64,
    width_ns: u64,
    bins_max: usize,
    bins: Vec<[u64; KINDS]>,
}

impl<const KINDS: usize> Series<KINDS> {
    /// Empty, from `first_ns` on; never more than `bins_max` bins (2 and more).
    pub fn new(first_ns: u64, bins_max: usize) -> Series<KINDS> {
        Series {
            first_ns,
            width_ns: WIDTH_MIN_NS,
            bins_max: bins_max.max(2),
            bins: Vec::new(),
        }
    }

    /// Width of a bin, nanoseconds.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Time at which a bin begins.
    pub fn begin_ns(&self, bin: usize) -> u64 {
        self.first_ns
            .saturating_add(self.width_ns.saturating_mul(bin as u64))
    }

    /// All bins, in order of time.
    pub fn bins(&self) -> &[[u64; KINDS]] {
        &self.bins
    }

    /// Adds the time between two moments to a kind; what lies before the first moment is left out.
    pub fn add(&mut self, kind: usize, begin_ns: u64, end_ns: u64) {
        let mut at_ns = begin_ns.max(self.first_ns) - self.first_ns;
        let Some(end_ns) = end_ns
            .checked_sub(self.first_ns)
            .filter(|end_ns| *end_ns > at_ns)
        else {
            return;
        };
        self.reach(end_ns);
        while at_ns < end_ns {
            let bin = (at_ns / self.width_ns) as usize;
            let until_ns = end_ns.min(self.width_ns.saturating_mul(bin as u64 + 1));
            let sum = &mut self.bins[bin][kind];
            *sum = sum.saturating_add(until_ns - at_ns);
            at_ns = until_ns;
        }
    }

    /// Widens the bins to this width, if they are narrower; it is one that doubling leads to.
    pub fn widen_to(&mut self, width_ns: u64) {
        while self.width_ns < width_ns {
            self.double();
        }
    }

    fn reach(&mut self, end_ns: u64) {
        while end_ns.div_ceil(self.width_ns) > self.bins_max as u64 {
            self.double();
        }
        let bins = end_ns.div_ceil(self.width_ns) as usize;
        if self.bins.len() < bins {
            self.bins.resize(bins, [0; KINDS]);
        }
    }

    fn double(&mut self) {
        self.width_ns *= 2;
        let pairs = self.bins.chunks(2).map(|pair| {
            let mut sum = pair[0];
            if let Some(second) = pair.get(1) {
                sum.iter_mut()
                    .zip(second)
                    .for_each(|(sum, more)| *sum = sum.saturating_add(*more));
            }
            sum
        });
        self.bins = pairs.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spread_over_bins_and_kept_when_they_double() {
        let mut series: Series<2> = Series::new(500, 4);
        let ms = 1_000_000;
        series.add(0, 500 + ms / 2, 500 + 2 * ms + ms / 4);
        assert_eq!(series.bins(), [[ms / 2, 0], [ms, 0], [ms / 4, 0]]);
        series.add(1, 0, 500 + 1); // mostly before it
        assert_eq!(series.bins()[0], [ms / 2, 1]);
        series.add(1, 500 + 6 * ms, 500 + 7 * ms);
        assert_eq!(series.width_ns(), 2 * ms);
        assert_eq!(
            series.bins(),
            [[ms + ms / 2, 1], [ms / 4, 0], [0, 0], [0, ms]]
        );
        assert_eq!(series.begin_ns(3), 500 + 6 * ms);
        series.widen_to(8 * ms);
        assert_eq!(series.bins(), [[ms + 3 * (ms / 4), 1 + ms]]);
    }

    #[test]
    fn a_long_time_has_few_bins_and_loses_nothing() {
        let mut series: Series<1> = Series::new(0, 1_024);
        let mut sum = 0;
        for second in 0..7_200u64 {
            let begin_ns = second * 1_000_000_000 + 17;
            series.add(0, begin_ns, begin_ns + 333_333_333);
            sum += 333_333_333;
        }
        assert!(series.bins().len() <= 1_024);
        assert_eq!(series.bins().iter().map(|bin| bin[0]).sum::<u64>(), sum);
        series.add(0, 5, 5);
        series.add(0, 9, 3);
        assert_eq!(series.bins().iter().map(|bin| bin[0]).sum::<u64>(), sum);
    }
}
