//! What several settings say together that cannot be. Pure; the settings are complete.

use super::complaint::Complaint;
use super::rows::{Settings, Written};
use super::store_choice::StoreChoice;
use foxy_base::ByteSize;
use foxy_schemes::{SCHEMES, SchemeName};
use std::path::PathBuf;

/// Stores there may be.
const STORES: usize = 64;

/// Every contradiction, each with where one of its sides was written.
pub fn find(settings: &Settings, written: &Written) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut complain = |key: &str, message: String| {
        complaints.push(complaint(written, key, message));
    };
    if settings.network.listen.port() != 0
        && settings.network.admin == Some(settings.network.listen)
    {
        let address = settings.network.listen;
        let key = if written.sources.contains_key("admin") { "admin" } else { "listen" };
        complain(key, format!("`listen` and `admin` are both {address}; give one another port"));
    }
    let folders: Vec<_> = settings.disk.stores().map(|store| store.folder.clone()).collect();
    let key = stores_key(written);
    if let Some(twice) = repeated(&folders) {
        complain(key, format!("{} is named twice; name each store's folder once", twice.display()));
    }
    if folders.len() > STORES {
        complain(key, format!("{} stores are too many; name at most {STORES}", folders.len()));
    }
    if let (Some(size), Some(limit)) = (settings.disk.size, settings.disk.object_limit)
        && limit > size
    {
        complain(
            "object-limit",
            format!("{limit} is more than the store's size of {size}; make it smaller"),
        );
    }
    complaints.extend(client_tls(settings, written));
    complaints.extend(interception(settings, written));
    complaints.extend(too_large(settings, written));
    complaints.extend(policy_unasked(settings, written));
    complaints
}

fn complaint(written: &Written, key: &str, message: String) -> Complaint {
    Complaint { message, source: written.sources.get(key).cloned() }
}

/// The key that the stores are named by.
fn stores_key(written: &Written) -> &'static str {
    if written.sources.contains_key("cache-dir") { "cache-dir" } else { "store" }
}

/// Settings of TLS to clients that do not go together.
fn client_tls(settings: &Settings, written: &Written) -> Option<Complaint> {
    let (certificates, keys) =
        (settings.network.tls_certificate.len(), settings.network.tls_key.len());
    if certificates != keys {
        let key = if certificates > keys { "tls-certificate" } else { "tls-key" };
        let text = format!(
            "{certificates} × `tls-certificate` and {keys} × `tls-key`; give each certificate its \
             key"
        );
        return Some(complaint(written, key, text));
    }
    let address = settings.network.listen_tls?;
    if certificates == 0 {
        let text = "`listen-tls` needs a certificate; give `tls-certificate` and `tls-key`";
        return Some(complaint(written, "listen-tls", text.into()));
    }
    let taken = address == settings.network.listen || Some(address) == settings.network.admin;
    let text =
        || format!("`listen-tls` is {address}, as `listen` or `admin` is; give it another port");
    (taken && address.port() != 0).then(|| complaint(written, "listen-tls", text()))
}

/// Settings of interception that do not go together.
fn interception(settings: &Settings, written: &Written) -> Option<Complaint> {
    let (authority, hosts) =
        (settings.access.intercept_ca.is_some(), !settings.access.intercept_hosts.is_empty());
    let (key, text) = match (authority, hosts, settings.network.origin.is_some()) {
        (true, false, _) => {
            ("intercept-ca", "`intercept-ca` does nothing without `intercept-hosts`; list them")
        }
        (false, true, _) => (
            "intercept-hosts",
            "`intercept-hosts` needs a certificate authority; make one with `foxy ca init` and \
             name its folder in `intercept-ca`",
        ),
        (true, true, true) => (
            "intercept-hosts",
            "a reverse proxy (`origin`) takes no CONNECT, so it cannot intercept any; leave one \
             of them out",
        ),
        _ => return None,
    };
    Some(complaint(written, key, text.into()))
}

/// Stores of more bytes than their scheme can use.
fn too_large(settings: &Settings, written: &Written) -> Vec<Complaint> {
    let judge = |store: &StoreChoice| {
        let scheme = scheme_of(settings, store);
        let most = ByteSize(scheme.row().most_bytes());
        let size = store.size.or(settings.disk.size).filter(|&size| size > most)?;
        let key = if store.size.is_some() { stores_key(written) } else { "size" };
        let folder = store.folder.display();
        let message = format!(
            "{folder}: a store of {scheme} can use {most} at most, not {size}; make it smaller"
        );
        Some(complaint(written, key, message))
    };
    settings.disk.stores().filter_map(judge).collect()
}

/// A policy that was given and that no store asks.
fn policy_unasked(settings: &Settings, written: &Written) -> Option<Complaint> {
    let asks = |store: &StoreChoice| scheme_of(settings, store).row().takes_policy();
    let scheme = scheme_of(settings, settings.disk.stores().next()?);
    if !written.sources.contains_key("policy") || settings.disk.stores().any(asks) {
        return None;
    }
    let asking: Vec<_> =
        SCHEMES.iter().filter(|row| row.takes_policy()).map(|row| row.text).collect();
    let message = format!(
        "the scheme {scheme} has an order of its own; leave `policy` out, or use one of the \
         schemes {}",
        asking.join(", ")
    );
    Some(complaint(written, "policy", message))
}

fn scheme_of(settings: &Settings, store: &StoreChoice) -> SchemeName {
    store.scheme.unwrap_or(settings.disk.scheme)
}

fn repeated(folders: &[PathBuf]) -> Option<&PathBuf> {
    folders
        .iter()
        .enumerate()
        .find(|(index, folder)| folders[..*index].contains(folder))
        .map(|(_, f)| f)
}
