//! Replaces `fleet_purges` in a foxy without the feature `fleet`, which refuses every fleet.

use crate::failure::Failure;
use crate::serve::admin::metrics::Exposition;
use crate::settings::Settings;
use foxy_base::Random;
use foxy_proxy::cache::purge::Purges;
use std::path::Path;

pub use self::{NoFleetPurgeFacts as FleetPurgeFacts, NoFleetPurges as FleetPurges};

pub struct NoFleetPurges;

impl NoFleetPurges {
    pub const fn facts(&self) -> NoFleetPurgeFacts {
        NoFleetPurgeFacts
    }

    pub const fn end(self) {}
}

/// Reads no credentials, because this foxy can belong to no fleet.
pub const fn credentials(_: &Settings) -> Result<(), Failure> {
    Ok(())
}

/// Continues after the last purge of the list, because this foxy can belong to no fleet.
pub const fn continued(
    _: &Settings,
    _: Option<&Path>,
    (_, latest): (u64, u64),
    _: &mut Random,
) -> Result<u64, Failure> {
    Ok(latest)
}

/// Starts no member, because this foxy can belong to no fleet.
pub const fn start(
    _: &Settings,
    _: &mut Purges,
    _: Option<&Path>,
    _: &mut Random,
) -> Result<NoFleetPurges, Failure> {
    Ok(NoFleetPurges)
}

/// Takes the place of the figures of a fleet's purges, and has none of them.
#[derive(Clone, Default)]
pub struct NoFleetPurgeFacts;

impl NoFleetPurgeFacts {
    /// Returns false, because this foxy can belong to no fleet.
    pub const fn are_shared(&self) -> bool {
        false
    }

    pub const fn as_json(&self) -> Option<()> {
        None
    }

    pub const fn trouble(&self) -> Option<String> {
        None
    }

    pub const fn expose(&self, _: &mut Exposition) {}
}
