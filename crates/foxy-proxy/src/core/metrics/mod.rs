//! Durations, outcomes and traces of requests, for the metrics of the admin server and the logs.

pub mod exemplar;
pub mod request_metrics;
pub mod timing;
pub mod trace_context;
