// SPDX-License-Identifier: MIT OR Apache-2.0
//! Letters and colours of all parts of a picture.

use plotters::{coord::Shift, prelude::*};

pub(super) const FONT: (&str, u32) = ("sans-serif", 12);
pub(super) const SMALL: (&str, u32) = ("sans-serif", 10);
/// Told apart by people who see few colours (Okabe and Ito), the light ones of them: black marks lie on them.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0xbb, 0xbb, 0xbb),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xf0, 0xe4, 0x42),
];

pub(super) type Failed = DrawingAreaErrorKind<std::io::Error>;
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The colour of a series.
pub(super) fn colour(series: usize) -> RGBColor {
    COLOURS[series % COLOURS.len()]
}
