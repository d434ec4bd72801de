//! Replaces `cold` in a foxy without the feature `cold`, which refuses every cold tier.

use crate::failure::Failure;
use crate::serve::admin::metrics::Exposition;
use crate::settings::Settings;
use foxy_proxy::cache::cold::ColdStore;
use foxy_proxy::cache::purge::Purges;
use std::sync::Arc;

pub use self::{NoCold as ColdPart, NoCold as ColdFacts};

#[derive(Clone)]
pub struct NoCold;

impl NoCold {
    pub const fn facts(&self) -> Self {
        Self
    }

    pub const fn store(&self) -> Option<Arc<dyn ColdStore>> {
        None
    }

    pub const fn end(self) {}

    pub const fn expose(&self, _: &mut Exposition) {}
}

/// Reads nothing.
pub const fn try_out(_: &Settings) -> Result<(), Failure> {
    Ok(())
}

/// Does nothing.
pub const fn start(_: &Settings, _: &mut Purges) -> Result<NoCold, Failure> {
    Ok(NoCold)
}
