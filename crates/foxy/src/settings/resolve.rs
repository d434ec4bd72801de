//! Computes the final settings from the settings that the user wrote. Adds defaults, and reports
//! settings that contradict each other. Defaults may depend on facts about the machine
//! ([`Machine`]).

use super::cold;
use super::complaint::{Complaint, Complaints, Source};
use super::exposure;
use super::fleet;
use super::kind::Preset;
use super::listen_address::ListenAddress;
use super::rows::{self, Acme, DiskCache, Network, Settings, Written};
use super::store_choice::StoreChoice;
use super::text;
use foxy_base::ByteSize;
use foxy_cli::machine::Machine;
use foxy_rules::operator::Upstream;
use foxy_schemes::{SCHEMES, SchemeName};
use std::ffi::OsStr;
use std::path::PathBuf;

const MAX_STORES: usize = 64;
/// Divisor for the default size of the memory cache, which is the memory that the process may use
/// divided by this number. The bounds below limit the size.
const MEMORY_PART: u64 = 8;
const MIN_MEMORY: ByteSize = ByteSize(16 << 20);
const MAX_MEMORY: ByteSize = ByteSize(1 << 30);
/// Memory that the process may use, if the system does not say.
const UNKNOWN_MEMORY: ByteSize = ByteSize(1 << 30);
/// Divisor for the default size of a new store, which is the free space of the disk divided by this
/// number. The bound below limits the size.
const DISK_PART: u64 = 10;
const MAX_NEW_STORE_BYTES: u64 = 10 << 30;

/// Sets each missing setting to its default.
pub fn complete(written: &mut Written, machine: &Machine) {
    for setting in rows::all() {
        let Preset::Fixed(texts) = setting.default else { continue };
        if text::show(&setting.kind, written).is_none() {
            let texts: Vec<&OsStr> = texts.iter().map(OsStr::new).collect();
            text::put(&setting.kind, &texts, written)
                .expect("the table's defaults are sound; a test reads them");
        }
    }
    written.network.workers.get_or_insert(machine.cores);
    let connections = written.limits.connections.expect("the loop above has set the default");
    written.limits.connections_per_client.get_or_insert(connections - connections / 4);
    if written.disk.cache_dir.as_ref().is_none_or(Vec::is_empty) {
        let plain = || vec![StoreChoice::plain(machine.cache_folder.clone())];
        written.disk.store.get_or_insert_with(plain);
    }
    written.memory.size.get_or_insert_with(|| memory(machine.memory));
    let disk = DiskCache::of(&written.disk);
    if !written.sources.contains_key("policy") && !uses_policy(&disk) {
        written.disk.policy = None;
    }
}

fn memory(available: Option<ByteSize>) -> ByteSize {
    let available = available.unwrap_or(UNKNOWN_MEMORY);
    ByteSize(available.0 / MEMORY_PART).clamp(MIN_MEMORY, MAX_MEMORY)
}

/// Returns the default size of a new store, in whole mebibytes. `free` is the free space of its
/// disk.
pub fn new_store_size(free: ByteSize) -> ByteSize {
    let mebibytes = (free.0 / DISK_PART).min(MAX_NEW_STORE_BYTES) >> 20;
    ByteSize(mebibytes << 20)
}

/// Reports all settings that contradict each other. A contradiction is reported at the place of a
/// setting that takes part in it.
pub fn judge(settings: &Settings, written: &Written) -> Result<(), Complaints> {
    let mut complaints = Vec::new();
    complaints.extend(overlapping_listeners(settings, written));
    complaints.extend(open_proxy(settings, written));
    complaints.extend(users(settings, written));
    complaints.extend(no_listener(settings, written));
    complaints.extend(transparent(settings, written));
    complaints.extend(stores(settings, written));
    complaints.extend(client_tls(settings, written));
    complaints.extend(acme(settings, written));
    complaints.extend(fleet::complaint(settings, written));
    complaints.extend(cold::complaint(settings, written));
    complaints.extend(interception(settings, written));
    complaints.extend(too_large(settings, written));
    complaints.extend(unused_policy(settings, written));
    complaints.extend(crossed_watermarks(settings, written));
    complaints.extend(origins(settings, written));
    complaints.extend(upstreams(settings, written));
    let compiled = settings.rules.compiled().err();
    complaints.extend(compiled.map(|error| super::rules::complaint(&written.rules, error)));
    if complaints.is_empty() { Ok(()) } else { Err(Complaints(complaints)) }
}

fn complaint(written: &Written, key: &str, message: String) -> Complaint {
    Complaint { message, source: written.sources.get(key).cloned() }
}

/// Returns all listening addresses with the names of their settings.
fn listeners(settings: &Settings) -> Vec<(&'static str, &ListenAddress)> {
    let Network { listen, listen_tls, listen_transparent, admin, .. } = &settings.network;
    let nodes = &settings.fleet.listen;
    let all = [
        ("listen", listen),
        ("listen-tls", listen_tls),
        ("listen-transparent", listen_transparent),
        ("fleet.listen", nodes),
        ("admin", admin),
    ];
    all.into_iter().flat_map(|(key, list)| list.iter().map(move |address| (key, address))).collect()
}

fn overlapping_listeners(settings: &Settings, written: &Written) -> Option<Complaint> {
    let all = listeners(settings);
    let pairs = all
        .iter()
        .enumerate()
        .flat_map(|(at, second)| all[..at].iter().map(move |first| (first, second)));
    let ((key, address), (other_key, other)) =
        pairs.into_iter().find(|((_, first), (_, second))| first.overlaps(second))?;
    let is_written = written.sources.contains_key(other_key);
    let text = format!(
        "`{key}` is {address} and `{other_key}` is {other}, which overlap; change one of them"
    );
    Some(complaint(written, if is_written { other_key } else { key }, text))
}

fn crossed_watermarks(settings: &Settings, written: &Written) -> Option<Complaint> {
    let (low, high) = (settings.disk.low_watermark, settings.disk.high_watermark);
    let text = format!("`low-watermark` is {low}, above `high-watermark`, which is {high}");
    let is_written = written.sources.contains_key("low-watermark");
    let key = if is_written { "low-watermark" } else { "high-watermark" };
    (low > high).then(|| complaint(written, key, text))
}

fn open_proxy(settings: &Settings, written: &Written) -> Option<Complaint> {
    let (key, address) = listeners(settings)
        .into_iter()
        .find(|(key, address)| !matches!(*key, "admin" | "fleet.listen") && address.is_exposed())?;
    let mut complaint =
        complaint(written, key, exposure::refusal(settings, address, key == "listen-tls")?);
    if matches!(complaint.source, Some(Source::Environment(_))) {
        complaint.message.push_str("\n  FOXY_ALLOW_CLIENT=192.168.0.0/16");
    }
    Some(complaint)
}

/// Reports a `users-file` of a reverse proxy, and rules that name users without a `users-file`.
fn users(settings: &Settings, written: &Written) -> Option<Complaint> {
    match (&settings.access.users_file, settings.is_reverse()) {
        (Some(_), true) => {
            let text = "`users-file` is for a forward proxy; with `origin`, the origin itself asks \
                        for credentials; remove one of the two";
            Some(complaint(written, "users-file", text.into()))
        }
        (None, _) if settings.network.client_ca.is_empty() => {
            let naming = written.rules.iter().find(|written| written.value.names_users())?;
            let message = format!(
                "rule `{}`: `user` needs the setting `users-file` or `client-ca`; `foxy user` \
                 writes the users file",
                naming.value.name
            );
            Some(Complaint { message, source: Some(naming.source.clone()) })
        }
        (None, _) | (Some(_), false) => None,
    }
}

fn no_listener(settings: &Settings, written: &Written) -> Option<Complaint> {
    let Network { listen, listen_tls, listen_transparent, .. } = &settings.network;
    let is_deaf = listen.is_empty() && listen_tls.is_empty() && listen_transparent.is_empty();
    let text = "foxy would listen nowhere; give an address in `listen` or `listen-tls`";
    is_deaf.then(|| complaint(written, "listen", text.into()))
}

/// Reports transparent listeners that cannot work: of a reverse proxy, with `users-file`, or on a
/// Unix socket. Their clients do not know foxy, and so send no credentials.
fn transparent(settings: &Settings, written: &Written) -> Option<Complaint> {
    let listen = &settings.network.listen_transparent;
    let text = if listen.is_empty() {
        return None;
    } else if settings.is_reverse() {
        "`listen-transparent` is for a forward proxy; leave it out, or leave out `origin`"
    } else if settings.access.users_file.is_some() {
        "clients of `listen-transparent` send foxy no credentials; leave out `users-file`, or use \
         two foxy"
    } else if listen.iter().any(|address| matches!(address, ListenAddress::Unix(_))) {
        "the kernel directs no connection to a Unix socket; give a TCP address"
    } else {
        return None;
    };
    Some(complaint(written, "listen-transparent", text.into()))
}

/// Returns the key of the setting in which the user listed the stores.
fn stores_key(written: &Written) -> &'static str {
    if written.sources.contains_key("cache-dir") { "cache-dir" } else { "store" }
}

fn stores(settings: &Settings, written: &Written) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let folders: Vec<_> = settings.disk.stores().map(|store| store.folder.clone()).collect();
    let key = stores_key(written);
    if let Some(twice) = repeated(&folders) {
        let text = format!("{} is named twice; name each store's folder once", twice.display());
        complaints.push(complaint(written, key, text));
    }
    if folders.len() > MAX_STORES {
        let text = format!("{} stores are given; name at most {MAX_STORES}", folders.len());
        complaints.push(complaint(written, key, text));
    }
    if let (Some(size), Some(limit)) = (settings.disk.size, settings.disk.object_limit)
        && limit > size
    {
        let text = format!("{limit} is more than the store's size of {size}; make it smaller");
        complaints.push(complaint(written, "object-limit", text));
    }
    complaints
}

fn client_tls(settings: &Settings, written: &Written) -> Option<Complaint> {
    let certificates = settings.network.tls_certificate.len();
    let keys = settings.network.tls_key.len();
    if certificates != keys {
        let key = if certificates > keys { "tls-certificate" } else { "tls-key" };
        let text = format!(
            "{certificates} × `tls-certificate` but {keys} × `tls-key`; give one key for each \
             certificate"
        );
        return Some(complaint(written, key, text));
    }
    if !settings.network.client_ca.is_empty() && !settings.has_certificates() {
        let text = "`client-ca` is for clients of `listen-tls`; give `tls-certificate` and \
                    `tls-key`, or leave out `client-ca`";
        return Some(complaint(written, "client-ca", text.into()));
    }
    if settings.network.client_ca.is_empty() && !settings.network.client_crl.is_empty() {
        let text = "`client-crl` lists certificates of `client-ca`; give `client-ca` too";
        return Some(complaint(written, "client-crl", text.into()));
    }
    let lacks_certificate = !settings.network.listen_tls.is_empty() && !settings.has_certificates();
    let text = "`listen-tls` needs a certificate; give `tls-certificate` and `tls-key`, or \
                `acme.directory`";
    lacks_certificate.then(|| complaint(written, "listen-tls", text.into()))
}

/// Reports settings of ACME that lack another setting.
fn acme(settings: &Settings, written: &Written) -> Option<Complaint> {
    let Acme { folder, names, contact, ca, .. } = &settings.acme;
    let given = [
        ("acme.folder", folder.is_some()),
        ("acme.names", !names.is_empty()),
        ("acme.contact", !contact.is_empty()),
        ("acme.ca", !ca.is_empty()),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(key, _)| key);
    let (key, text) = match (&settings.acme.directory, given) {
        (None, Some(key)) => (key, format!("`{key}` does nothing without `acme.directory`")),
        (Some(_), _) if folder.is_none() => {
            let text = "`acme.directory` needs a folder for keys and certificates; give \
                        `acme.folder`";
            ("acme.directory", text.to_owned())
        }
        (Some(_), _) if settings.acme_names().is_empty() => {
            let text = "`acme.directory` needs host names; list them in `acme.names`";
            ("acme.directory", text.to_owned())
        }
        (Some(_), _) if settings.proves_names_over_http() && settings.network.listen.is_empty() => {
            let text = "`acme.challenge = \"http-01\"` needs `listen`, to which port 80 leads";
            ("acme.challenge", text.to_owned())
        }
        _ => return None,
    };
    Some(complaint(written, key, text))
}

fn interception(settings: &Settings, written: &Written) -> Option<Complaint> {
    let has_authority = settings.access.intercept_ca.is_some();
    let has_hosts = !settings.access.intercept_hosts.is_empty();
    let (key, text) = match (has_authority, has_hosts, settings.is_reverse()) {
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
            "a reverse proxy (`origin`) accepts no CONNECT, so it cannot intercept hosts; leave \
             out `origin` or `intercept-hosts`",
        ),
        _ => return None,
    };
    Some(complaint(written, key, text.into()))
}

/// Reports two origins with the same name, and `[[origin]]` together with `origin`.
fn origins(settings: &Settings, written: &Written) -> Option<Complaint> {
    if settings.network.origin.is_some() && !settings.origins.is_empty() {
        let text = "`origin` and `[[origin]]` name different origins; leave out one of them";
        return Some(complaint(written, "origin", text.into()));
    }
    let names: Vec<_> = settings.origins.iter().map(|origin| &origin.name).collect();
    let twice = (1..names.len()).find(|&at| names[..at].contains(&names[at]))?;
    let message = format!("origin `{}`: another origin has this name; change one", names[twice]);
    Some(Complaint { message, source: Some(written.origins[twice].source.clone()) })
}

/// Reports the first rule whose `upstream` names a parent or an origin that the settings lack.
fn upstreams(settings: &Settings, written: &Written) -> Option<Complaint> {
    written.rules.iter().find_map(|rule| {
        let missing = missing_upstream(settings, rule.value.then.upstream.as_ref()?)?;
        let message = format!("rule `{}`: {missing}", rule.value.name);
        Some(Complaint { message, source: Some(rule.source.clone()) })
    })
}

fn missing_upstream(settings: &Settings, upstream: &Upstream) -> Option<String> {
    let ways = match upstream {
        Upstream::Origin(name) => {
            let is_known = settings.origins.iter().any(|origin| origin.name == *name);
            return (!is_known).then(|| format!("no `[[origin]]` has the name `{name}`"));
        }
        Upstream::Ways(ways) => ways,
    };
    let parents = settings.parents.parent.as_deref().unwrap_or_default();
    if ways.all_parents && parents.is_empty() {
        return Some("`upstream = \"parents\"` needs the setting `parent`".into());
    }
    let is_known = |(host, port): &&(String, u16)| {
        parents.iter().any(|parent| parent.host() == *host && parent.port() == *port)
    };
    let (host, port) = ways.parents.iter().find(|named| !is_known(named))?;
    Some(format!("`parent` does not list the parent {host}:{port}"))
}

/// Reports each store whose size is above the limit of its scheme.
fn too_large(settings: &Settings, written: &Written) -> Vec<Complaint> {
    let judge = |store: &StoreChoice| {
        let scheme = scheme_of(&settings.disk, store);
        let most = ByteSize(scheme.row().most_bytes());
        let size = store.size.or(settings.disk.size).filter(|&size| size > most)?;
        let key = if store.size.is_some() { stores_key(written) } else { "size" };
        let folder = store.folder.display();
        let message = format!(
            "{folder}: a store of {scheme} can use at most {most}, not {size}; set a smaller size"
        );
        Some(complaint(written, key, message))
    };
    settings.disk.stores().filter_map(judge).collect()
}

/// Reports a written `policy` that no store uses, because no scheme of a store has a replacement
/// policy to choose.
fn unused_policy(settings: &Settings, written: &Written) -> Option<Complaint> {
    let scheme = scheme_of(&settings.disk, settings.disk.stores().next()?);
    if !written.sources.contains_key("policy") || uses_policy(&settings.disk) {
        return None;
    }
    let users: Vec<_> =
        SCHEMES.iter().filter(|row| row.takes_policy()).map(|row| row.text).collect();
    let message = format!(
        "the scheme {scheme} has its own eviction order; leave `policy` out, or use one of the \
         schemes {}",
        users.join(", ")
    );
    Some(complaint(written, "policy", message))
}

fn uses_policy(disk: &DiskCache) -> bool {
    disk.stores().any(|store| scheme_of(disk, store).row().takes_policy())
}

fn scheme_of(disk: &DiskCache, store: &StoreChoice) -> SchemeName {
    store.scheme.unwrap_or(disk.scheme)
}

fn repeated(folders: &[PathBuf]) -> Option<&PathBuf> {
    let mut numbered = folders.iter().enumerate();
    numbered.find(|(index, folder)| folders[..*index].contains(folder)).map(|(_, folder)| folder)
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
