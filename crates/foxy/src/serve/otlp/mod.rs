//! Exports the transactions of the sample as traces, and foxy's own messages as log records, to a
//! collector. The protocol is OTLP, the OpenTelemetry protocol, over HTTP. Nothing in foxy waits
//! for the collector: spans and messages enter a bounded queue. If the queue is full, they are
//! dropped.

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod attributes;
#[cfg(feature = "otlp")]
mod batch;
#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod counts;
#[cfg(feature = "otlp")]
mod exporter;
#[cfg(feature = "otlp")]
mod queue;
#[cfg(feature = "otlp")]
mod spans;

#[cfg(not(feature = "otlp"))]
pub use absent::{NoOtlp as OtlpCounts, NoOtlp as OtlpExporter, NoOtlp as OtlpQueue, open};
#[cfg(feature = "otlp")]
pub use {counts::OtlpCounts, exporter::OtlpExporter, exporter::open, queue::OtlpQueue};

use crate::failure::Failure;
use crate::settings::Settings;

/// Returns an error if the settings want traces that this program cannot export.
pub fn try_out(settings: &Settings) -> Result<(), Failure> {
    if settings.operation.otlp.is_none() || cfg!(feature = "otlp") {
        return Ok(());
    }
    let text = "otlp: this foxy was built without the feature `otlp`; use a foxy with it, or \
                remove the setting";
    Err(Failure::Unusable(text.into()))
}
