//! Tries everything that `foxy serve` opens before it serves: addresses, files, keys and stores.
//! `foxy check` uses this module. The trial changes nothing.

use crate::failure::Failure;
use crate::serve::admin::access::read_token;
use crate::serve::tls::{self, ReloadableTls};
use crate::serve::{
    access_log, acme, cold, fleet, fleet_purges, listeners, origins, otlp, parents, stores,
};
use crate::settings::Settings;
use crate::settings::listen_address::ListenAddress;
use crate::settings::rows::Network;
use crate::users_file;
use foxy_base::clock;
use foxy_proxy::server::name_resolver;

/// Whether foxy could start in spite of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    /// foxy could start, or could start after the running foxy stops. Causes: an address or store
    /// is in use, a store has lost its content, or foxy would ask an authority for certificates.
    Warning,
}

/// Something that a start of foxy would report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Key of the setting that the finding concerns.
    pub key: &'static str,
    pub severity: Severity,
    pub message: String,
}

/// Returns everything that a start with these settings would report.
pub fn try_out(settings: &Settings) -> Vec<Finding> {
    let (network, access) = (&settings.network, &settings.access);
    let mut findings = listeners::try_out(network, &settings.fleet.listen);
    let error = |key, message: String| Finding { key, severity: Severity::Error, message };
    let failed = |key, failure: Failure| error(key, failure.to_string());
    findings.extend(access_log::try_out(settings).map_err(|f| failed("access-log", f)).err());
    findings.extend(
        tls::origin_tls(&network.origin_ca, None).map_err(|f| failed("origin-ca", f)).err(),
    );
    findings.extend(fleet::open(settings, None).map_err(|f| failed("fleet.node", f)).err());
    let credentials = fleet_purges::credentials(settings);
    let key = "fleet.engine-credentials-file";
    findings.extend(credentials.map_err(|f| failed(key, f)).err());
    findings.extend(cold::try_out(settings).map_err(|f| failed("cold.credentials-file", f)).err());
    findings.extend(origins::open(settings).map_err(|f| failed("origin", f)).err());
    findings.extend(otlp::try_out(settings).map_err(|f| failed("otlp", f)).err());
    if settings.has_certificates() {
        let read = ReloadableTls::read(settings);
        findings.extend(read.map_err(|message| error("tls-certificate", message)).err());
    }
    findings.extend(tls::directory_tls(settings).map_err(|f| failed("acme.ca", f)).err());
    let folder = acme::trial::unusable_folder(settings);
    findings.extend(folder.map(|message| error("acme.folder", message)));
    let warning = |message| Finding { key: "acme.directory", severity: Severity::Warning, message };
    findings.extend(acme::trial::requests(settings).map(warning));
    let interception = tls::open_interception(settings, clock::wall());
    findings.extend(interception.map_err(|f| failed("intercept-ca", f)).err());
    let token = access.admin_token_file.as_deref().map(read_token).transpose();
    findings.extend(token.map_err(|f| failed("admin-token-file", f)).err());
    findings.extend(users_file::of(settings).map_err(|f| failed("users-file", f)).err());
    let Network { listen, listen_tls, listen_transparent, admin, .. } = network;
    let listen = [listen, listen_tls, listen_transparent, admin].into_iter().flatten();
    let own: Vec<_> = listen.flat_map(ListenAddress::sockets).collect();
    findings.extend(parents::named(settings, &own).map_err(|f| failed("parent", f)).err());
    let credentials = parents::credentials(settings);
    findings.extend(credentials.map_err(|f| failed("parent-credentials-file", f)).err());
    let resolver = name_resolver(network.name_servers.clone())();
    findings.extend(resolver.map_err(|message| error("name-servers", message)).err());
    findings.extend(stores::trial::try_out(settings));
    findings
}
