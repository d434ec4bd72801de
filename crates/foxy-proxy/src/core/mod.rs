//! Values and budgets that all parts of the proxy share: counters, HTTP/2 frames, limits on
//! connections, users, and TLS with clients.

pub(crate) mod acme_challenges;
pub mod addresses;
pub(crate) mod authentication;
pub(crate) mod background;
pub(crate) mod byte_budget;
pub mod client_certificates;
pub(crate) mod client_limits;
pub mod counters;
pub(crate) mod frames;
pub mod idle_client;
pub mod live;
pub mod metrics;
pub mod outcome;
pub(crate) mod places;
pub mod rules;
pub(crate) mod tags;
pub mod tls;
pub mod token;
pub(crate) mod transport;
pub mod users;

pub(crate) use crate::core::counters::{Counter, Counters};
pub(crate) use crate::core::outcome::{ForwardReason, HitSource, PurgeDoubt};

use foxy_http::Headers;
use foxy_rules::Fields;

/// Adapts the header list of `foxy_http` to the trait through which `foxy_rules` reads headers.
pub(crate) struct View<'a>(pub(crate) &'a Headers);

impl Fields for View<'_> {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.get_all(name)
    }
}
