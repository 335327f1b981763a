// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's VMs all the time: counters that the kernel keeps ([`Live`]), for whom they spin by sampled bursts, and the ways out:
//! OpenMetrics over HTTP ([`http`]), one JSON document over a unix socket ([`socket`]), and a screen ([`screen`]).

mod burst;
pub mod http;
mod live;
pub mod metrics;
mod own_cost;
pub mod rates;
pub mod recording;
pub mod rows;
pub mod screen;
pub mod socket;
mod table;
mod view;

pub use live::{Live, LiveOptions};
pub use own_cost::OwnCost;
pub use view::{
    BlameView, HostView, RecentView, SampledView, VIEW_FORMAT, VcpuView, ViewSource, VmView,
    WatchHealth,
};
