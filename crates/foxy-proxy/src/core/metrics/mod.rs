//! Durations and outcomes of requests, for the metrics of the admin server.

pub mod exemplar;
pub mod request_metrics;
pub mod timing;
