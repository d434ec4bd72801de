//! Takes the place of the exporter in a foxy that was built without the feature `otlp`.

use super::try_out;
use crate::failure::Failure;
use crate::serve::admin::metrics::Exposition;
use crate::settings::Settings;
use std::sync::Arc;

/// The exporter, its queue and its counts, which never exist.
#[derive(Clone, Debug)]
pub enum NoOtlp {}

/// Fails if the settings name a collector.
pub fn open(settings: &Settings) -> Result<Option<NoOtlp>, Failure> {
    try_out(settings).map(|()| None)
}

impl NoOtlp {
    pub fn queue(&self) -> Self {
        match *self {}
    }

    pub fn counts(&self) -> Arc<Self> {
        match *self {}
    }

    pub fn offer(&self, _: &[u8]) {
        match *self {}
    }

    pub fn expose(&self, _: &mut Exposition) {
        match *self {}
    }
}
