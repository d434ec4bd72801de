//! Predicts whether the destination policy permits an origin, for an explanation. Looks up the name
//! of the origin, but opens no connection.

use crate::upstream::address::destination::{DestinationPolicy, DestinationRefusal};
use crate::upstream::address::resolve::{LookupLimits, Lookups, Resolve};
use crate::upstream::dial::{Dialer, Origin};
use crate::upstream::error::ConnectError;
use crate::upstream::settings::UpstreamSettings;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for the look-up, because the person who asked for the explanation waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a request would reach its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Direct,
    /// Through a parent proxy, which looks up the name of the origin itself.
    ThroughParent,
}

/// Returns why the destination policy forbids connections to `origin`. Returns `None` if it permits
/// them, or if the addresses of the origin are unknown.
pub(crate) async fn forbidden(
    settings: &UpstreamSettings,
    policy: &DestinationPolicy,
    resolver: Rc<dyn Resolve>,
    (origin, reach): (&Origin, Reach),
) -> Option<DestinationRefusal> {
    let limits = LookupLimits {
        timeout: settings.resolve_timeout,
        most: settings.lookups,
        of_client: settings.lookups_per_client,
    };
    let (lookups, policy) = (Lookups::new(resolver, limits), Rc::new(policy.clone()));
    let connects = (settings.connect_timeout, settings.source);
    let dialer = Dialer::new(lookups, policy, settings.tls.clone(), connects);
    let checked = match reach {
        Reach::ThroughParent => dialer.check_unresolved(origin),
        Reach::Direct => timeout(PATIENCE, dialer.addresses(origin, None)).await.ok()?.map(drop),
    };
    match checked {
        Err(ConnectError::Forbidden(refusal)) => Some(refusal),
        _ => None,
    }
}
