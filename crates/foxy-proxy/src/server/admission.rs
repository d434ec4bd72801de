//! Decides whether a client may use the proxy. Every request passes this decision before the proxy
//! looks at anything else.

use crate::request::reason::ErrorReason;
use crate::server::listener;
use crate::settings::ProxySettings;
use std::net::SocketAddr;

/// Returns the reason to refuse all requests of `client`. Returns `None` if the client may use the
/// proxy. The mode of a Unix socket already decides who may connect.
pub(crate) fn refusal(settings: &ProxySettings, client: SocketAddr) -> Option<ErrorReason> {
    let allowed = settings.allow_client.get();
    if allowed.is_empty() || listener::is_unix(client) {
        return None;
    }
    let address = client.ip().to_canonical();
    let is_allowed = allowed.iter().any(|block| block.contains(address));
    (!is_allowed).then_some(ErrorReason::ClientNotAllowed)
}
