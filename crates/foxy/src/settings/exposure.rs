//! Refuses an open proxy: a forward proxy that other machines can reach although no setting says
//! which clients may use it.

use super::rows::Settings;
use std::net::SocketAddr;

/// Returns the reason to refuse a start with these listening addresses, or `None`.
pub fn refusal(
    settings: &Settings,
    listeners: impl IntoIterator<Item = SocketAddr>,
) -> Option<String> {
    if settings.network.origin.is_some() || says_who_may_use_foxy(settings) {
        return None;
    }
    let is_exposed = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    let exposed = listeners.into_iter().find(is_exposed)?;
    Some(format!(
        "other machines can reach {exposed}, and no setting says which clients may use foxy; add \
         the flag or the line of the file with your clients' network:\n  \
         --allow-client 192.168.0.0/16\n  \
         allow-client = [\"192.168.0.0/16\"]"
    ))
}

/// A reverse proxy needs no such setting, because it reaches only its own origin.
fn says_who_may_use_foxy(settings: &Settings) -> bool {
    !settings.access.allow_client.is_empty()
}
