//! Replaces `open` in a foxy without the feature `fleet`, which refuses every fleet.

use super::OpenFleet;
use crate::failure::Failure;
use crate::serve::admin::metrics::Exposition;
use crate::settings::Settings;
use serde_json::Value;

/// The state of a fleet, which never exists.
#[derive(Clone, Debug)]
pub enum NoFleet {}

/// Returns no fleet. `settings::fleet` has refused settings that name a fleet.
pub fn open(_: &Settings) -> Result<Option<OpenFleet>, Failure> {
    Ok(None)
}

impl NoFleet {
    pub fn compare(&self, _: &str) {
        match *self {}
    }

    pub fn reload(&self) -> Result<(), String> {
        match *self {}
    }

    pub fn renew(&self) -> Option<Result<(), String>> {
        match *self {}
    }

    pub fn as_json(&self) -> Value {
        match *self {}
    }

    pub fn expose(&self, _: &mut Exposition) {
        match *self {}
    }
}
