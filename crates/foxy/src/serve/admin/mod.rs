//! The admin server: metrics, health check, purges, explanations, reloads and upgrades over plain
//! HTTP/1.1. Each connection carries one request. The server shares no thread with the proxy.

pub mod access;
mod connections;
pub mod health;
pub mod metrics;
mod request_metrics;
pub mod requests;
mod routes;
mod whatif_metrics;

#[cfg(test)]
mod tests;

pub use connections::run;

use crate::serve::dashboard::DataRequest;
use crate::serve::reload::NotReloaded;
use crate::serve::upgrade::{NotUpgraded, Upgraded};
use foxy_base::HostPattern;
use foxy_proxy::cache::purge::NotPurged;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::core::token::Token;
use foxy_proxy::explain::Explanation;
use metrics::MetricsFormat;
use requests::{ExplainRequest, PurgeRequest, Purged};
use serde_json::Value;
use std::pin::Pin;

/// A future that is not sent to another thread.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// A future that returns data for the dashboard.
pub type DataFuture<'a> = Pin<Box<dyn Future<Output = Option<Value>> + 'a>>;

/// The health of the running proxy.
#[derive(Debug)]
pub struct Health {
    /// False if a trouble costs answers or stored responses.
    pub is_well: bool,
    pub troubles: Vec<String>,
}

/// The running proxy: facts and actions for the admin server.
pub trait Operated {
    fn metrics(&self, format: MetricsFormat) -> String;
    fn health(&self) -> Health;
    /// Returns the host names that `Host` may contain, in addition to addresses and `localhost`.
    fn hosts(&self) -> &[HostPattern];
    /// Returns data for the dashboard. Returns `None` if it does not exist.
    fn data(&self, wanted: DataRequest) -> DataFuture<'_>;
    fn token(&self) -> Option<&Token>;
    fn rules(&self) -> &RulesInForce;
    /// Reads the configuration again, and applies it. After a watched reload, takes the changes
    /// back if the rate of foxy's own error answers rises suddenly. Returns the changes.
    fn reload(&self, is_watched: bool) -> LocalFuture<Result<Value, NotReloaded>>;
    /// Replaces this process by a new process. `binary` is its program. `None` means the program of
    /// this process.
    fn upgrade(&self, binary: Option<String>) -> LocalFuture<Result<Upgraded, NotUpgraded>>;
    /// Makes this node begin to leave the fleet, or stay if `is_leaving` is false. Returns false if
    /// foxy belongs to no fleet.
    fn leave_fleet(&self, is_leaving: bool) -> bool;
    /// Purges stored responses, and counts them if the request asks for it.
    fn purge(&self, request: PurgeRequest) -> LocalFuture<Result<Purged, NotPurged>>;
    fn explain(&self, request: &ExplainRequest) -> LocalFuture<Explanation>;
}
