// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration file of `unspin serve` and `unspin steer`: what is in it, how it is read, what its values may be.
//!
//! [`Configuration::load`] reads it; [`default_text`] is the file in which every key stands and none is set; [`rules`] holds for
//! options wherever they come from.

mod file;
mod model;
pub mod rules;
mod schema;
mod settings;
mod time;
mod value;

pub use file::{Configuration, PATH};
pub use model::{Config, ServeConfig, SteerConfig};
pub use schema::default_text;
pub use settings::{SteerGiven, SteerSettings};
pub use time::{parse_limit, parse_time};
pub use value::{FromRoot, Limit, ModulePath, SocketPath, Text, Time, Value};
