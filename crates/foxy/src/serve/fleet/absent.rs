//! Replaces `open` in a foxy without the feature `fleet`, which refuses every fleet.

use super::OpenFleet;
use crate::failure::Failure;
use crate::serve::admin::metrics::Exposition;
use crate::serve::fleet_purges::FleetPurges;
use crate::settings::Settings;
use serde_json::Value;

/// The state of a fleet, which never exists.
#[derive(Clone, Debug)]
pub enum NoFleet {}

/// Returns no fleet. `settings::fleet` has refused settings that name a fleet.
pub fn open(_: &Settings, _: Option<&FleetPurges>) -> Result<Option<OpenFleet>, Failure> {
    Ok(None)
}

/// Returns the same settings.
pub fn with_found_members(settings: &Settings) -> Settings {
    settings.clone()
}

impl NoFleet {
    pub fn discover(&mut self, _: &Settings) -> Result<(), Failure> {
        match *self {}
    }

    pub fn members_from(&self) -> Option<Value> {
        match *self {}
    }

    pub fn compare(&self, _: &str) {
        match *self {}
    }

    pub fn join(&self, _: &Settings) {
        match *self {}
    }

    pub fn leave(&self, _: bool) {
        match *self {}
    }

    pub fn others(&self) -> Vec<(String, bool)> {
        match *self {}
    }

    pub fn tick(&self) {
        match *self {}
    }

    pub fn set_members(&self, _: &Settings) {
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
