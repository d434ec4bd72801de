//! Refuses an open proxy: a forward proxy that other machines can reach although no setting says
//! which clients may use it.

use super::rows::{Network, Settings};
use foxy_rules::operator::{logins_name_clients, serve_named_clients_alone};
use std::fmt::Display;

/// Returns why foxy refuses to start with a listener at `address`, which other machines can reach.
/// Returns `None` if the settings say which clients may use foxy. A reverse proxy needs no such
/// setting, because it reaches only its own origins. Nor does a listener for TLS that requires
/// certificates of clients.
pub fn refusal(settings: &Settings, address: impl Display, is_tls: bool) -> Option<String> {
    let is_client_rule = serve_named_clients_alone(&settings.rules);
    let access = &settings.access;
    let says = is_client_rule
        || !access.allow_client.is_empty()
        || (access.users_file.is_some() && logins_name_clients(&settings.rules))
        || (is_tls && needs_certificates(&settings.network));
    if settings.is_reverse() || says {
        return None;
    }
    if access.users_file.is_some() {
        return Some(format!(
            "other machines can reach {address}, and a rule with `login = false` serves all of \
             them; add `client` to `when` of this rule, or set allow-client"
        ));
    }
    Some(format!(
        "other machines can reach {address}, and no setting says which clients may use foxy; give \
         users-file, or add the flag or the line of the file with your clients' network:\n  \
         --allow-client 192.168.0.0/16\n  \
         allow-client = [\"192.168.0.0/16\"]"
    ))
}

/// Returns whether each client of `listen-tls` must present a certificate.
fn needs_certificates(network: &Network) -> bool {
    !network.client_ca.is_empty() && network.client_certificates == "required"
}
